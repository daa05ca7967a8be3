"""Label-free signals: their definitions by hand, without target labels, for every kind of answer."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import in_translation
from in_translation import without_tags
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.examples import LabelledText, ParsedSentence
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.choosing.label_free import LabelFree, estimated_by_threshold, moved_weights
from isogloss.tasks import TASKS, find_task
from isogloss.training.evaluation import evaluation
from measuring import equal, measure_setting, weights

SHARES = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=30)


def unlabelled_trees(language, count):
    return [
        ParsedSentence(id=sentence.id, words=sentence.words, tags=sentence.tags, heads=(), relations=())
        for sentence in in_translation.sentences(language, count)
    ]


READ = {
    "upos": in_translation.sentences,
    "nli": in_translation.pairs,
    "qa": in_translation.questions,
    "multiple-choice": in_translation.choices,
    "parsing": unlabelled_trees,
}


def evaluations(name, folder, *, change=lambda _, examples: examples):
    options = with_fields(Optimization(), limit=64, overlap=8, precision="float32")
    tokenizer = load_tokenizer(folder)

    def read(language):
        examples = change(language, READ[name](language, 12))
        return evaluation(TASKS[name], examples, tokenizer, options, language=language)

    return read


def values_by_signal(rows):
    return {(row.language, row.signal): row.value for row in rows}


@pytest.mark.parametrize("name", READ)
def test_every_kind_of_answer_has_signals_of_its_probabilities(name, bert_folder):
    model = TASKS[name].head(bert_folder, seed=0)
    sources = () if name == "parsing" else ("en",)
    kept_values = []
    read = evaluations(name, bert_folder)
    setting = replace(measure_setting([model], read, source=sources), keep=kept_values.append)
    rows = values_by_signal(LabelFree(draws=1).measure(setting))
    names = {"confidence", "entropy", "steadiness"}
    if sources:
        names |= {"atc", "doc"}
    assert {signal for language, signal in rows if language == "de"} == names
    assert all(0 <= value <= 1 for (_, signal), value in rows.items() if signal != "doc")
    assert [kept_value.language for kept_value in kept_values] == ["en", "de"]
    for row in kept_values:
        assert list(row.ids) == [example.id for example in read(row.language).examples]
        assert len(row.predicted) == len(row.ids) > 0
        assert not row.contributions


def test_signals_are_as_defined(bert_folder):
    read = evaluations("upos", bert_folder)
    model = TASKS["upos"].head(bert_folder, seed=0)
    rows = values_by_signal(LabelFree(draws=1, noise=0.3).measure(measure_setting([model], read)))
    source, target = (
        torch.cat(read(language).scores(model)).double().softmax(-1) for language in ("en", "de")
    )
    score = read("en").score(model)
    assert rows["en", "score"] == score
    assert rows["de", "confidence"] == pytest.approx(float(target.amax(-1).mean()))
    entropy = -(target * target.log()).sum(-1).mean() / torch.log(torch.tensor(target.shape[-1]))
    assert rows["de", "entropy"] == pytest.approx(float(entropy))
    assert rows["de", "doc"] == pytest.approx(
        score - float(source.amax(-1).mean()) + rows["de", "confidence"]
    )
    assert rows["de", "atc"] == estimated_by_threshold(source.amax(-1), score, target.amax(-1))
    moved_tensor = torch.cat(read("de").scores(moved_weights(model, 0.3, seed=0)))
    assert (
        rows["de", "steadiness"] == float((moved_tensor.argmax(-1) == target.argmax(-1)).double().mean()) < 1
    )


def test_several_labels_are_units_of_their_own_and_numbers_are_refused(bert_folder):
    task = find_task("multi-label-classification", ("joy", "fear", "hope"))
    examples = [
        LabelledText(id=str(n), text=f"the cat {n}", label=("joy", "hope")[: n % 3]) for n in range(6)
    ]
    model = task.head(bert_folder, seed=0)
    tokenizer = load_tokenizer(bert_folder)
    read = evaluation(task, examples, tokenizer, Optimization(), language="de")
    setting = measure_setting([model], lambda _: read, languages=("de",))
    rows = values_by_signal(LabelFree(draws=1).measure(setting))
    probabilities = torch.cat(read.scores(model)).double().sigmoid()
    assert probabilities.shape == (6, 3)
    expected = torch.maximum(probabilities, 1 - probabilities).mean()
    assert rows["de", "confidence"] == pytest.approx(float(expected))
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
    result = estimated_by_threshold(torch.tensor(confidences), score, torch.tensor(confidences))
    # A threshold does not separate equal confidences.
    least_score = round(score * len(set(confidences))) if len(set(confidences)) == len(confidences) else 0
    assert result >= least_score / len(confidences) - 1 / len(confidences)
    if len(set(confidences)) == len(confidences):
        assert result == pytest.approx(score, abs=0.51 / len(confidences))


def test_no_noise_moves_nothing_and_more_noise_changes_more(bert_folder):
    model = TASKS["upos"].head(bert_folder, seed=0)
    weights_before = weights(model)
    distances = [
        sum(
            float((weight_after - weights_before[name]).norm())
            for name, weight_after in weights(moved_value).items()
        )
        for moved_value in (moved_weights(model, noise, seed=3) for noise in (1e-3, 1e-2))
    ]
    assert distances[1] == pytest.approx(10 * distances[0], rel=1e-2)
    assert equal(weights(model), weights_before)
    assert equal(*(weights(moved_weights(model, 1e-2, seed=3)) for _ in range(2)))
    assert not equal(*(weights(moved_weights(model, 1e-2, seed=seed)) for seed in (3, 4)))
