"""Mixing ratios equal numpy's, only for target languages; a sweep tries every ratio in every layer."""

from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from measuring import measure_setting, subject

from in_translation import READ, setting
from isogloss.core.errors import ConfigError, ModelError
from isogloss.diagnostics.mixup import MixupRatio, MixupSweep, grid_of, mean_share, mixing_at, ratio_summary
from isogloss.diagnostics.weight_space import Interpolation, Plane, _mixing_so
from isogloss.encoders import mixup as mixing
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import Evaluation, evaluation, pair_with_translations

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
    ratio = mixing.LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    tokenizer, read = load_tokenizer(bert_folder), READ[request.param]

    def pair_language(language):
        own = evaluation(task, read(language, 24), tokenizer, how, baseline=0.25)
        mixup = Mixup(layer=2, ratio=0.7, ratio_module=ratio)
        return pair_with_translations(own, read("en", 24), tokenizer, how, mixup=mixup)

    return task.head(bert_folder, seed=0), pair_language


def swept(model, paired, on_progress=None, **fields):
    setting = measure_setting([model], languages=("en", "de", "fr"), on_progress=on_progress)
    return MixupSweep(**fields).measure(replace(setting, paired=paired))


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_are_the_scores_of_models_that_mix_so(model_and_paired):
    model, paired = model_and_paired
    done = []
    rows = swept(model, paired, done.append, ratios=(0.0, 0.25, 1.0), layers=(1, 2, 3))
    assert [row.language for row in rows] == ["de"] * 10 + ["fr"] * 10  # The source is not mixed.
    assert [one.done for one in done] == [*range(11), *range(11)]
    for row in rows:
        scorer = paired(row.language)
        there = replace(scorer, mixup=replace(scorer.mixup, layer=row.layer, ratio=row.ratio))
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
    assert mixing_at(constant, 3, 0.25).mixup == Mixup(layer=3, ratio=0.25, learned=False)


def test_a_layer_that_is_not_there_is_refused_before_anything_is_scored(model_and_paired):
    model, paired = model_and_paired
    with pytest.raises(ConfigError, match=r"4.*encoder.*1.*3"):
        swept(model, paired, layers=(1, 4))


# Paths and planes between models that mix


def mixing_so(mixup, weight, bias, largest):
    ratio = mixing.LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(weight)
        ratio.bias.fill_(bias)
    return replace(mixup, ratio=largest, ratio_module=ratio)


@pytest.fixture
def walk(model_and_paired):
    """Models, how each mixes, and the setting of a measurement between them."""
    first, paired = model_and_paired
    models = [first, deepcopy(first), deepcopy(first)]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in (one for model in models[1:] for one in model.parameters()):
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    trained = paired("de").mixup
    mixups = [trained, mixing_so(trained, 2.0, -1.0, 0.3), mixing_so(trained, 0.0, 3.0, 1.0)]

    def setting(count, mixups=mixups):
        made = measure_setting(models[:count], paired, languages=("de",))
        return replace(made, paired=paired, mixup=lambda one: mixups[int(one.id)])

    return models, mixups, paired, setting


@pytest.mark.slow
def test_paths_and_planes_end_in_models_that_mix_as_they_infer(walk):
    models, mixups, paired, setting = walk
    alone = [replace(paired("de"), mixup=mixups[n]).score(models[n]) for n in range(3)]
    unmixed = [replace(paired("de"), mixup=replace(mixups[n], ratio=0.0)).score(models[n]) for n in range(3)]
    rows = Interpolation(alphas=(0.0, 1.0)).measure(setting(2))
    assert [row.score for row in rows] == alone[:2]
    corners = Plane(alphas=(0.0, 1.0)).measure(setting(3))
    assert [row.score for row in corners][:3] == [alone[0], alone[2], alone[1]]
    assert alone != unmixed  # Mixing matters to these scores.


def test_between_two_models_lies_their_mean_and_that_of_what_the_ratio_is_made_of(walk):
    models, mixups, paired, setting = walk
    middle = deepcopy(models[0])
    with torch.no_grad():
        for weight, other in zip(middle.parameters(), models[1].parameters(), strict=True):
            weight.lerp_(other, 0.5)
    seen = []

    class Watched(Evaluation):
        def score_by_example(self, model):
            seen.append(torch.cat(self.scores(model)))
            return super().score_by_example(model)

    def watch_batches(language):
        one = paired(language)
        return Watched(**{field.name: getattr(one, field.name) for field in fields(one)})

    for part in ("all", "head"):
        Interpolation(alphas=(0.5,), part=part).measure(replace(setting(2), evaluation=watch_batches))
    replace(watch_batches("de"), mixup=mixing_so(mixups[0], 0.75, 0.0, 0.5)).score_by_example(middle)
    assert torch.allclose(seen[0], seen[2], rtol=1e-4, atol=1e-5)
    home = models[0].state_dict()
    home.update({name: value for name, value in middle.state_dict().items() if name.startswith("classifier")})
    middle.load_state_dict(home)
    watch_batches("de").score_by_example(middle)  # The first model's encoder and mixup.
    assert torch.allclose(seen[1], seen[3], rtol=1e-4, atol=1e-5)
    assert _mixing_so(mixups[0], [torch.zeros(1), torch.zeros(1), torch.tensor(-0.25)]).ratio == 0.0


def test_models_that_mix_otherwise_or_not_at_all_have_no_path_in_pairs(walk):
    _, mixups, _, setting = walk
    for other in (replace(mixups[1], layer=1), None):
        with pytest.raises(ModelError, match=r"inputs.*translations.*layers.*ways"):
            Interpolation(alphas=(0.5,)).measure(setting(2, [mixups[0], other]))
