"""Consistency of models: equal labels of texts, and of words along given and found links, counted by hand."""

from collections import Counter
from dataclasses import replace

import pytest

import in_translation
import isogloss
from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.choosing.candidates import all_candidates
from isogloss.features.choosing.label_consistency import LabelConsistencyOfModels
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from isogloss.training.parallel_text import BitextSentences
from says import says

COUNT = 14


@pytest.fixture(scope="module")
def models(bert_folder):
    return {task: TASKS[task].head(bert_folder, seed=0).eval() for task in ("upos", "nli")}


def read_evaluation(bert_folder, task, examples, language):
    optimization = with_fields(Optimization(), limit=40, overlap=8, precision="float32")
    return evaluation(TASKS[task], examples, load_tokenizer(bert_folder), optimization, language=language)


def link_examples(examples):
    """Link each word to the word at its place from the end, and leave the first word out."""
    return [
        replace(example, links=tuple((len(example.words) - 1 - n, n) for n in range(1, len(example.words))))
        for example in examples
    ]


def read_both(bert_folder, task, linked=True):
    read = in_translation.READ[task]
    translations = read("de-en", COUNT)[:-2]
    if task == "upos" and linked:
        translations = link_examples(translations)
    return (
        read_evaluation(bert_folder, task, read("de", COUNT), "de"),
        read_evaluation(bert_folder, task, translations, "en"),
    )


def measure(bert_folder, model, data, translated):
    setting = MeasureSetting(
        subjects=(Subject(id="m", rows=(), folder=bert_folder),),
        languages=("en", "de"),
        split="test",
        source=("en",),
        load=lambda _: model,
        evaluation=lambda _: data,
        translated_evaluation=lambda _: translated,
        encoder=lambda _: (model.base_model, load_tokenizer(bert_folder)),
        bitext=lambda _: [],
        parallel=BitextSentences(lambda _: []),
    )
    (row,) = LabelConsistencyOfModels().measure(setting)
    return row


def count_pairs(pairs):
    """Return the share of equal labels, and that of labels drawn from both sides' frequencies."""
    firsts, seconds = (Counter(side) for side in zip(*pairs, strict=True))
    chance = sum(firsts[label] / len(pairs) * seconds[label] / len(pairs) for label in firsts)
    return sum(first == second for first, second in pairs) / len(pairs), chance


def test_texts_are_compared_with_their_translations(models, bert_folder):
    data, translated = read_both(bert_folder, "nli")
    row = measure(bert_folder, models["nli"], data, translated)
    answers = data.predict(models["nli"])[:-2]
    pairs = list(zip(answers, translated.predict(models["nli"]), strict=True))
    share, chance = count_pairs(pairs)
    assert (row.language, row.pairs, row.links) == ("de", COUNT - 2, None)
    assert (row.share, row.chance) == pytest.approx((share, chance))
    expected = isogloss.consistency(*zip(*pairs, strict=True))
    assert (row.low, row.high) == (expected.low, expected.high)


def test_words_are_compared_along_the_links_of_translations(models, bert_folder):
    data, translated = read_both(bert_folder, "upos")
    row = measure(bert_folder, models["upos"], data, translated)
    answers = data.predict(models["upos"])
    pairs = [
        (answers[index][word], translated_answer[other_word])
        for index, translated_answer in enumerate(translated.predict(models["upos"]))
        for word, other_word in translated.examples[index].links
    ]
    share, chance = count_pairs(pairs)
    assert (row.pairs, row.links) == (COUNT - 2, len(pairs))
    assert (row.share, row.chance) == pytest.approx((share, chance))


def test_words_without_links_are_linked_by_the_encoder(models, bert_folder):
    data, translated = read_both(bert_folder, "upos", linked=False)
    row = measure(bert_folder, models["upos"], data, translated)
    words, translated_words = (
        [example.words for example in side.examples[: COUNT - 2]] for side in (data, translated)
    )
    links = isogloss.align(
        words, translated_words, models["upos"].base_model, load_tokenizer(bert_folder), on_progress=print
    )
    answers = data.predict(models["upos"])[: COUNT - 2]
    expected = isogloss.consistency(answers, translated.predict(models["upos"]), links)
    assert (row.share, row.links) == (expected.share, expected.pairs)


def test_a_text_that_is_its_own_translation_has_its_label(models, bert_folder):
    for task in each(models):
        data = read_evaluation(bert_folder, task, in_translation.READ[task]("en", COUNT), "en")
        links = [tuple((n, n) for n in range(len(getattr(item, "words", ())))) for item in data.examples]
        examples = [
            replace(item, links=link) if task == "upos" else item
            for item, link in zip(data.examples, links, strict=True)
        ]
        row = measure(bert_folder, models[task], data, replace(data, examples=examples))
        assert row.share == 1.0 and row.high == pytest.approx(1.0)


def test_what_cannot_be_compared_is_refused(models, bert_folder):
    with says(ConfigError, "label-consistency", "'qa'"):
        LabelConsistencyOfModels().check(TASKS["qa"])
    with says(ConfigError, "label-consistency", "between", "2", "one"):
        LabelConsistencyOfModels(between=("a", "b"))
    data, _ = read_both(bert_folder, "nli")
    strangers = [replace(example, id=f"x{example.id}") for example in data.examples]
    with says(DataError, "label-consistency", "de", "id"):
        measure(bert_folder, models["nli"], data, replace(data, examples=strangers))


RECIPE = """
title = "Consistency of words"
encoder = "shipped"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0, 1]
examples = 40
dev_examples = 8
optimization = { epochs = 1, learning_rate = 1e-3, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "label-free"
split = "test"
examples = 12

[[measure]]
name = "label-consistency"
split = "test"
examples = 12
inputs = "paired"
"""


@pytest.mark.slow
def test_a_choice_reads_the_consistency_of_words(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(path, out=tmp_path / "runs", jobs=1)
    assert not result.outcome.failed
    measurements = isogloss.read(tmp_path / "runs").measurements
    rows = measurements.frame("label-consistency").set_index("model")
    (candidates,) = all_candidates(measurements)
    assert candidates.languages == ("qab",) and len(candidates.models) == 2
    for index, model in enumerate(candidates.models):
        assert candidates.consistency[index, 0] == rows.loc[model, "share"]
        assert candidates.pairs[index, 0] == 12 < rows.loc[model, "links"]
    assert "Labels of translations" in (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
