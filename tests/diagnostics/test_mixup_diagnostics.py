"""Mixing ratios equal numpy's, only for target languages. A sweep tries every ratio in every layer."""

from copy import deepcopy
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from in_translation import READ, setting
from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders import mixup as mixing
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.landscapes.diagnostic import Interpolation, Plane
from isogloss.features.landscapes.scored_points import _mixing_so
from isogloss.features.x_mixup.diagnostics import (
    MixupRatio,
    MixupSweep,
    grid_of,
    mean_share,
    mixing_at,
    ratio_summary,
)
from isogloss.tasks import TASKS
from isogloss.training.evaluation import Evaluation, evaluation, pair_with_translations
from measuring import measure_setting, subject

SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=30)
POINT = st.tuples(st.integers(1, 12), st.floats(0, 1))


@given(SHARES)
def test_the_summary_is_numpys(values):
    row = ratio_summary(torch.tensor(values, dtype=torch.float64))
    assert row["mean"] == pytest.approx(np.mean(values))
    assert row["std"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    for name, share in (("lowest", 0), ("q05", 5), ("median", 50), ("q95", 95), ("highest", 100)):
        assert row[name] == pytest.approx(np.percentile(values, share))


def test_one_example_has_no_spread():
    assert np.isnan(ratio_summary(torch.tensor([0.25]))["std"])


class Paired:
    """Ratios of each language. Nan for an example without a translation."""

    def __init__(self, language):
        self.own = {"en": [9.0], "de": [0.5, 0.5], "fr": [0.1, torch.nan, 0.3], "sw": [torch.nan]}[language]

    def ratios(self, model):
        return torch.tensor(self.own)


def test_every_target_language_with_translations_has_a_row_and_others_a_warning():
    message = []
    inputs = replace(
        measure_setting(["m"], languages=("en", "de", "fr", "sw")), paired=Paired, warn=message.append
    )
    rows = MixupRatio().measure(inputs)
    assert [(row.model, row.language, row.examples) for row in rows] == [
        (subject("0").id, "de", 2),
        (subject("0").id, "fr", 2),
    ]
    assert [row.mean for row in rows] == pytest.approx([0.5, 0.2])
    assert [row.std for row in rows] == pytest.approx([0, 0.1 * 2**0.5])
    assert message == ["mixup-ratio: no example of sw has a translation, so none has a ratio."]


@pytest.mark.parametrize("diagnostic", [MixupRatio(), MixupSweep()])
def test_a_model_that_mixes_nothing_has_no_rows(diagnostic):
    assert diagnostic.measure(measure_setting(["m"])) == []


@given(POINT, st.lists(st.floats(0, 1), max_size=4), st.lists(st.integers(1, 12), max_size=4))
def test_every_ratio_is_tried_in_every_layer_and_what_was_trained(trained_model, ratios, layers):
    grid = grid_of(trained_model, ratios, layers)
    assert grid == sorted(set(grid))
    expected = {(layer, ratio) for layer in (layers or [trained_model[0]]) for ratio in ratios}
    assert set(grid) == expected | {trained_model}


@pytest.fixture(params=["nli", "upos"])
def model_and_paired(request, bert_folder, tmp_path):
    """A model, and what pairs examples with English ones for it."""
    task = TASKS[request.param]
    optimization = setting(request.param, bert_folder, tmp_path).optimization
    ratio = mixing.LearnedRatio()
    with torch.no_grad():
        ratio.weight.fill_(-0.5)
        ratio.bias.fill_(1.0)
    tokenizer = load_tokenizer(bert_folder)
    read = READ[request.param]

    def pair_language(language):
        own_evaluation = evaluation(task, read(language, 24), tokenizer, optimization, baseline=0.25)
        mixup = Mixup(layer=2, ratio=0.7, ratio_module=ratio)
        return pair_with_translations(own_evaluation, read("en", 24), tokenizer, optimization, mixup=mixup)

    return task.head(bert_folder, seed=0), pair_language


def swept(model, pairs, on_progress=None, **fields):
    setting = measure_setting([model], languages=("en", "de", "fr"), on_progress=on_progress)
    return MixupSweep(**fields).measure(replace(setting, paired=pairs))


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_are_the_scores_of_models_that_mix_so(model_and_paired):
    model, pairs = model_and_paired
    step = []
    rows = swept(model, pairs, step.append, ratios=(0.0, 0.25, 1.0), layers=(1, 2, 3))
    assert [row.language for row in rows] == ["de"] * 10 + ["fr"] * 10  # The source is not mixed.
    assert [item.done for item in step] == [*range(11), *range(11)]
    for row in rows:
        scorer = pairs(row.language)
        folder = replace(scorer, mixup=replace(scorer.mixup, layer=row.layer, ratio=row.ratio))
        assert row.score == folder.score(model)
        assert row.mean == pytest.approx(folder.ratios(model).mean().item(), abs=1e-6)
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
    model, pairs = model_and_paired
    scorer = pairs("de")
    constant = replace(scorer, mixup=replace(scorer.mixup, learned=False))
    assert mean_share(constant, model, 1) == 1
    assert mixing_at(constant, 3, 0.25).mixup == Mixup(layer=3, ratio=0.25, learned=False)


def test_a_layer_that_is_not_there_is_refused_before_anything_is_scored(model_and_paired):
    model, pairs = model_and_paired
    with pytest.raises(ConfigError, match=r"4.*encoder.*1.*3"):
        swept(model, pairs, layers=(1, 4))


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
    first_item, pairs = model_and_paired
    models = [first_item, deepcopy(first_item), deepcopy(first_item)]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in (parameter for model in models[1:] for parameter in model.parameters()):
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    trained_mixup = pairs("de").mixup
    mixups = [
        trained_mixup,
        mixing_so(trained_mixup, 2.0, -1.0, 0.3),
        mixing_so(trained_mixup, 0.0, 3.0, 1.0),
    ]

    def setting(count, mixups=mixups):
        result = measure_setting(models[:count], pairs, languages=("de",))
        return replace(result, paired=pairs, mixup=lambda example: mixups[int(example.id)])

    return models, mixups, pairs, setting


@pytest.mark.nightly
@pytest.mark.slow
def test_paths_and_planes_end_in_models_that_mix_as_they_infer(walk):
    models, mixups, paired_walk, setting = walk
    single_scores = [replace(paired_walk("de"), mixup=mixups[n]).score(models[n]) for n in range(3)]
    unmixed_scores = [
        replace(paired_walk("de"), mixup=replace(mixups[n], ratio=0.0)).score(models[n]) for n in range(3)
    ]
    rows = Interpolation(alphas=(0.0, 1.0)).measure(setting(2))
    assert [row.score for row in rows] == single_scores[:2]
    corners = Plane(alphas=(0.0, 1.0)).measure(setting(3))
    assert [row.score for row in corners][:3] == [single_scores[0], single_scores[2], single_scores[1]]
    assert single_scores != unmixed_scores  # Mixing matters to these scores.


def test_between_two_models_lies_their_mean_and_that_of_what_the_ratio_is_made_of(walk):
    models, mixups, paired_walk, setting = walk
    middle_model = deepcopy(models[0])
    with torch.no_grad():
        for weight, other_parameter in zip(middle_model.parameters(), models[1].parameters(), strict=True):
            weight.lerp_(other_parameter, 0.5)
    tensors = []

    class Watched(Evaluation):
        def score_by_example(self, model):
            tensors.append(torch.cat(self.scores(model)))
            return super().score_by_example(model)

    def watch_batches(language):
        item = paired_walk(language)
        return Watched(**{field.name: getattr(item, field.name) for field in fields(item)})

    for part in ("all", "head"):
        Interpolation(alphas=(0.5,), part=part).measure(replace(setting(2), evaluation=watch_batches))
    replace(watch_batches("de"), mixup=mixing_so(mixups[0], 0.75, 0.0, 0.5)).score_by_example(middle_model)
    assert torch.allclose(tensors[0], tensors[2], rtol=1e-4, atol=1e-5)
    home = models[0].state_dict()
    home.update(
        {name: value for name, value in middle_model.state_dict().items() if name.startswith("classifier")}
    )
    middle_model.load_state_dict(home)
    watch_batches("de").score_by_example(middle_model)  # The first model's encoder and mixup.
    assert torch.allclose(tensors[1], tensors[3], rtol=1e-4, atol=1e-5)
    assert _mixing_so(mixups[0], [torch.zeros(1), torch.zeros(1), torch.tensor(-0.25)]).ratio == 0.0


def test_models_that_mix_otherwise_or_not_at_all_have_no_path_in_pairs(walk):
    _, mixups, _, setting = walk
    for other_mixup in (replace(mixups[1], layer=1), None):
        with pytest.raises(ModelError, match=r"inputs.*translations.*layers.*ways"):
            Interpolation(alphas=(0.5,)).measure(setting(2, [mixups[0], other_mixup]))
