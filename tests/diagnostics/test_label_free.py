"""Label-free signals: their definitions by hand, without target labels, for every kind of answer."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from measuring import equal, measure_setting, weights

import in_translation
from in_translation import without_tags
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.examples import LabelledText, ParsedSentence
from isogloss.diagnostics.label_free import LabelFree, estimated_by_threshold, moved_weights
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS, find_task
from isogloss.training.evaluation import evaluation

SHARES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def unlabelled_trees(language, count):
    return [
        ParsedSentence(id=one.id, words=one.words, tags=one.tags, heads=(), relations=())
        for one in in_translation.sentences(language, count)
    ]


READ = {
    "upos": in_translation.sentences,
    "nli": in_translation.pairs,
    "qa": in_translation.questions,
    "multiple-choice": in_translation.choices,
    "parsing": unlabelled_trees,
}


def evaluations(name, folder, *, change=lambda _, examples: examples):
    how = with_fields(Optimization(), limit=64, overlap=8, precision="float32")
    tokenizer = load_tokenizer(folder)

    def read(language):
        examples = change(language, READ[name](language, 12))
        return evaluation(TASKS[name], examples, tokenizer, how, language=language)

    return read


def values_by_signal(rows):
    return {(row.language, row.signal): row.value for row in rows}


@pytest.mark.parametrize("name", READ)
def test_every_kind_of_answer_has_signals_of_its_probabilities(name, bert_folder):
    model = TASKS[name].head(bert_folder, seed=0)
    sources = () if name == "parsing" else ("en",)
    kept = []
    read = evaluations(name, bert_folder)
    setting = replace(measure_setting([model], read, source=sources), keep=kept.append)
    found = values_by_signal(LabelFree(draws=1).measure(setting))
    names = {"confidence", "entropy", "steadiness"}
    assert {signal for language, signal in found if language == "de"} == names | (
        {"atc", "doc"} if sources else set()
    )
    assert all(0 <= value <= 1 for (_, signal), value in found.items() if signal != "doc")
    assert [one.language for one in kept] == ["en", "de"]
    for one in kept:
        assert [*one.ids] == [example.id for example in read(one.language).examples]
        assert len(one.predicted) == len(one.ids) > 0
        assert not one.contributions


def test_signals_are_as_defined(bert_folder):
    read, model = evaluations("upos", bert_folder), TASKS["upos"].head(bert_folder, seed=0)
    found = values_by_signal(LabelFree(draws=1, noise=0.3).measure(measure_setting([model], read)))
    source, target = (torch.cat(read(code).scores(model)).double().softmax(-1) for code in ("en", "de"))
    score = read("en").score(model)
    assert found["en", "score"] == score
    assert found["de", "confidence"] == pytest.approx(float(target.amax(-1).mean()))
    entropy = -(target * target.log()).sum(-1).mean() / torch.log(torch.tensor(target.shape[-1]))
    assert found["de", "entropy"] == pytest.approx(float(entropy))
    assert found["de", "doc"] == pytest.approx(
        score - float(source.amax(-1).mean()) + found["de", "confidence"]
    )
    assert found["de", "atc"] == estimated_by_threshold(source.amax(-1), score, target.amax(-1))
    moved = torch.cat(read("de").scores(moved_weights(model, 0.3, seed=0)))
    assert found["de", "steadiness"] == float((moved.argmax(-1) == target.argmax(-1)).double().mean()) < 1


def test_several_labels_are_units_of_their_own_and_numbers_are_refused(bert_folder):
    task = find_task("multi-label-classification", ("joy", "fear", "hope"))
    examples = [
        LabelledText(id=str(n), text=f"the cat {n}", label=("joy", "hope")[: n % 3]) for n in range(6)
    ]
    model, tokenizer = task.head(bert_folder, seed=0), load_tokenizer(bert_folder)
    read = evaluation(task, examples, tokenizer, Optimization(), language="de")
    setting = measure_setting([model], lambda _: read, languages=("de",))
    found = values_by_signal(LabelFree(draws=1).measure(setting))
    probabilities = torch.cat(read.scores(model)).double().sigmoid()
    assert probabilities.shape == (6, 3)
    expected = torch.maximum(probabilities, 1 - probabilities).mean()
    assert found["de", "confidence"] == pytest.approx(float(expected))
    with pytest.raises(ConfigError, match=r"label-free: .*'regression'"):
        LabelFree().check(find_task("regression"))


def test_labels_of_targets_are_not_looked_at(bert_folder):
    model = TASKS["upos"].head(bert_folder, seed=0)
    hidden = evaluations(
        "upos",
        bert_folder,
        change=lambda language, examples: without_tags(examples) if language == "de" else examples,
    )
    rows = [
        LabelFree(draws=0).measure(measure_setting([model], read))
        for read in (evaluations("upos", bert_folder), hidden)
    ]
    assert rows[0] == rows[1]
    assert {row.language for row in rows[0]} == {"en", "de"}


@given(SHARES, st.floats(0, 1))
def test_the_threshold_gives_the_score_where_it_was_found(confidences, score):
    found = estimated_by_threshold(torch.tensor(confidences), score, torch.tensor(confidences))
    # Equal confidences lie on one side of any threshold.
    least = round(score * len({*confidences})) if len({*confidences}) == len(confidences) else 0
    assert found >= least / len(confidences) - 1 / len(confidences)
    if len({*confidences}) == len(confidences):
        assert found == pytest.approx(score, abs=0.51 / len(confidences))


def test_no_noise_moves_nothing_and_more_noise_changes_more(bert_folder):
    model = TASKS["upos"].head(bert_folder, seed=0)
    before = weights(model)
    distances = [
        sum(float((after - before[name]).norm()) for name, after in weights(moved).items())
        for moved in (moved_weights(model, noise, seed=3) for noise in (1e-3, 1e-2))
    ]
    assert distances[1] == pytest.approx(10 * distances[0], rel=1e-2)
    assert equal(weights(model), before)
    assert equal(*(weights(moved_weights(model, 1e-2, seed=3)) for _ in range(2)))
    assert not equal(*(weights(moved_weights(model, 1e-2, seed=seed)) for seed in (3, 4)))
