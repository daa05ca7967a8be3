"""Mixing ratios are numpy's, for target languages alone; a sweep tries every ratio in every layer."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from measuring import measure_setting, subject

from in_translation import READ, setting
from isogloss.core.errors import ConfigError
from isogloss.diagnostics.mixup import MixupRatio, MixupSweep, grid_of, mean_share, mixing_at, ratio_summary
from isogloss.encoders import load_tokenizer
from isogloss.encoders.mixup import Mixup
from isogloss.nn import mixup_ratio
from isogloss.tasks import TASKS
from isogloss.training.evaluation import beside_translations, evaluation

SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=30)
POINT = st.tuples(st.integers(1, 12), st.floats(0, 1))


@given(SHARES)
def test_the_summary_is_numpys(values):
    found = ratio_summary(torch.tensor(values, dtype=torch.float64))
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["std"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    for name, share in (("lowest", 0), ("q05", 5), ("median", 50), ("q95", 95), ("highest", 100)):
        assert found[name] == pytest.approx(np.percentile(values, share))


def test_one_example_has_no_spread():
    assert np.isnan(ratio_summary(torch.tensor([0.25]))["std"])


class Paired:
    """Ratios of each language; nan for an example without a translation."""

    def __init__(self, language):
        self.own = {"en": [9.0], "de": [0.5, 0.5], "fr": [0.1, torch.nan, 0.3], "sw": [torch.nan]}[language]

    def ratios(self, model):
        return torch.tensor(self.own)


def test_every_target_language_with_translations_has_a_row_and_others_a_warning():
    said = []
    given = replace(
        measure_setting(["m"], languages=("en", "de", "fr", "sw")), paired=Paired, warn=said.append
    )
    rows = MixupRatio().measure(given)
    assert [(row.model, row.language, row.examples) for row in rows] == [
        (subject("0").id, "de", 2),
        (subject("0").id, "fr", 2),
    ]
    assert [row.mean for row in rows] == pytest.approx([0.5, 0.2])
    assert [row.std for row in rows] == pytest.approx([0, 0.1 * 2**0.5])
    assert said == ["mixup-ratio: no example of sw has a translation, so none has a ratio."]


@pytest.mark.parametrize("diagnostic", [MixupRatio(), MixupSweep()])
def test_a_model_that_mixes_nothing_has_no_rows(diagnostic):
    assert diagnostic.measure(measure_setting(["m"])) == []


@given(POINT, st.lists(st.floats(0, 1), max_size=4), st.lists(st.integers(1, 12), max_size=4))
def test_every_ratio_is_tried_in_every_layer_and_what_was_trained(trained, ratios, layers):
    found = grid_of(trained, ratios, layers)
    assert found == sorted(set(found))
    expected = {(layer, ratio) for layer in (layers or [trained[0]]) for ratio in ratios}
    assert set(found) == expected | {trained}


@pytest.fixture(params=["nli", "upos"])
def model_and_paired(request, bert_folder, tmp_path):
    """A model, and what pairs examples with English ones for it."""
    task, how = TASKS[request.param], setting(request.param, bert_folder, tmp_path).optimization
    ratio = mixup_ratio.MixupRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    tokenizer, read = load_tokenizer(bert_folder), READ[request.param]

    def paired(language):
        own = evaluation(task, read(language, 24), tokenizer, how, baseline=0.25)
        mixup = Mixup(layer=2, largest=0.7, ratio=ratio)
        return beside_translations(own, read("en", 24), tokenizer, how, mixup=mixup)

    return task.head(bert_folder, seed=0), paired


def swept(model, paired, on_progress=None, **fields):
    setting = measure_setting([model], languages=("en", "de", "fr"), on_progress=on_progress)
    return MixupSweep(**fields).measure(replace(setting, paired=paired))


@pytest.mark.slow
def test_rows_are_the_scores_of_models_that_mix_so(model_and_paired):
    model, paired = model_and_paired
    done = []
    rows = swept(model, paired, done.append, ratios=(0.0, 0.25, 1.0), layers=(1, 2, 3))
    assert [row.language for row in rows] == ["de"] * 10 + ["fr"] * 10  # The source is not mixed.
    assert [one.done for one in done] == [*range(11), *range(11)]
    for row in rows:
        scorer = paired(row.language)
        there = replace(scorer, mixup=replace(scorer.mixup, layer=row.layer, largest=row.ratio))
        assert row.score == there.score(model)
        assert row.mean == pytest.approx(there.ratios(model).mean().item(), abs=1e-6)
        assert (row.model, row.baseline, row.examples) == (subject("0").id, 0.25, 24)
        assert row.trained == ((row.layer, row.ratio) == (2, 0.7))
    assert sum(row.trained for row in rows) == 2


@pytest.mark.slow
def test_without_layers_it_is_the_trained_one(model_and_paired):
    rows = swept(*model_and_paired)
    assert {row.layer for row in rows} == {2}
    assert [row.ratio for row in rows if row.language == "de"] == pytest.approx(
        [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]
    )


def test_a_constant_ratio_has_all_of_it(model_and_paired):
    model, paired = model_and_paired
    scorer = paired("de")
    constant = replace(scorer, mixup=replace(scorer.mixup, learned=False))
    assert mean_share(constant, model, 1) == 1
    assert mixing_at(constant, 3, 0.25).mixup == Mixup(layer=3, largest=0.25, learned=False)


def test_a_layer_that_is_not_there_is_refused_before_anything_is_scored(model_and_paired):
    model, paired = model_and_paired
    with pytest.raises(ConfigError, match="no layer 4 to mix in: this encoder has the layers 1 to 3"):
        swept(model, paired, layers=(1, 4))
