from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measuring import Toy, equal, measure_setting, subject, weights

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import with_fields
from isogloss.core.runs import Optimization
from isogloss.diagnostics.interpolation import COARSE, FINE, Interpolation, Plane, on_path, on_plane
from isogloss.diagnostics.scores import Scores
from isogloss.encoders import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.evaluation import Evaluation, evaluation
from made_up import tagged

FLOATS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=4, max_size=4).map(torch.tensor)
ALPHAS = st.floats(-0.5, 1.5)


def path(start, end, alpha):
    out = torch.empty_like(start)
    on_path(start, end, alpha, out=out)
    return out


def plane(origin, first, second, *alphas):
    out = torch.empty_like(origin)
    on_plane(origin, (first, second), alphas, out=out)
    return out


# The arithmetic


@given(FLOATS, FLOATS)
def test_the_ends_of_a_path_are_the_models_to_the_bit(start, end):
    assert torch.equal(path(start, end, 0.0), start)
    assert torch.equal(path(start, end, 1.0), end)


@given(FLOATS, FLOATS, FLOATS)
def test_the_corners_of_a_plane_are_the_models_to_the_bit(origin, first, second):
    assert torch.equal(plane(origin, first, second, 0.0, 0.0), origin)
    assert torch.equal(plane(origin, first, second, 1.0, 0.0), first)
    assert torch.equal(plane(origin, first, second, 0.0, 1.0), second)


@given(FLOATS, FLOATS, FLOATS, ALPHAS)
def test_the_axes_of_a_plane_are_paths_to_the_bit(origin, first, second, alpha):
    assert torch.equal(plane(origin, first, second, alpha, 0.0), path(origin, first, alpha))
    assert torch.equal(plane(origin, first, second, 0.0, alpha), path(origin, second, alpha))


@given(FLOATS, FLOATS, FLOATS, ALPHAS, ALPHAS)
def test_paths_and_planes_are_those_of_the_equations(origin, first, second, one, two):
    o, x, y = (side.double() for side in (origin, first, second))
    assert torch.allclose(path(origin, first, one).double(), one * x + (1 - one) * o, atol=1e-2)
    expected = o + one * (x - o) + two * (y - o)
    assert torch.allclose(plane(origin, first, second, one, two).double(), expected, atol=1e-2)


@given(FLOATS, st.floats(-0.5, 1.5))
def test_between_a_model_and_itself_nothing_moves(start, alpha):
    assert torch.equal(path(start, start.clone(), alpha), start)


def test_the_values_are_the_papers():
    assert tuple(pytest.approx(-0.5 + step / 10) for step in range(21)) == COARSE
    assert {0.0, 1.0} < set(COARSE)
    assert Interpolation().alphas == tuple(sorted((*COARSE, *FINE)))
    assert len(Interpolation().alphas) == 33
    assert len(Plane().alphas) ** 2 == 441


# Known scores on a toy model


class Known:
    """Scores a model by one of its weights, whose value on every path is known."""

    def __init__(self, name):
        self.name, self.metric, self.seen = name, "accuracy", []

    def score(self, model):
        self.seen.append(weights(model))
        return first_of(model, self.name)


@pytest.fixture
def known():
    """What gives looks at toys, and what scores them."""
    scorers = {"en": Known("encoder.0.weight"), "de": Known("classifier.bias")}
    return SimpleNamespace(scorers=scorers, setting=partial(measure_setting, evaluation=scorers.__getitem__))


def first_of(model, name):
    return model.get_parameter(name).flatten()[0].item()


def test_a_path_scores_every_point_in_every_language(known):
    a, b = Toy(0), Toy(1)
    rows = Interpolation().measure(known.setting([a, b]))
    alphas = Interpolation().alphas
    assert [(row.alpha, row.language, row.role) for row in rows] == [
        (alpha, language, role) for alpha in alphas for language, role in (("en", "source"), ("de", "target"))
    ]
    for row in rows:
        name = known.scorers[row.language].name
        mixed = row.alpha * first_of(b, name) + (1 - row.alpha) * first_of(a, name)
        assert row.score == pytest.approx(mixed, abs=1e-6)
        assert (row.start, row.end, row.part) == (subject("0").id, subject("1").id, "all")
        assert (row.split, row.metric) == ("dev", "accuracy")


def test_a_plane_scores_every_point_of_the_grid(known):
    o, x, y = Toy(0), Toy(1), Toy(2)
    rows = Plane(alphas=(-0.5, 0.0, 1.0)).measure(known.setting([o, x, y]))
    assert len(rows) == 9 * 2
    for row in rows:
        name = known.scorers[row.language].name
        one, two = row.alpha_first, row.alpha_second
        at = [first_of(model, name) for model in (o, x, y)]
        assert row.score == pytest.approx(at[0] + one * (at[1] - at[0]) + two * (at[2] - at[0]), abs=1e-6)


def test_the_models_at_the_ends_and_corners_are_the_models(known):
    models = [Toy(0), Toy(1), Toy(2)]
    Interpolation(alphas=(0.0, 1.0)).measure(known.setting(models[:2]))
    start, end = known.scorers["en"].seen
    assert equal(start, weights(models[0]))
    assert equal(end, weights(models[1]))
    known.scorers["en"].seen.clear()
    Plane(alphas=(0.0, 1.0)).measure(known.setting(models))
    origin, second, first, _ = known.scorers["en"].seen
    assert equal(origin, weights(models[0]))
    assert equal(first, weights(models[1]))
    assert equal(second, weights(models[2]))


@pytest.mark.parametrize("part", ["encoder", "head"])
@pytest.mark.parametrize(
    "diagnostic", [Interpolation(alphas=(-0.5, 0.3, 1.0)), Plane(alphas=(0.0, 0.7, 1.0))]
)
def test_moving_one_part_leaves_the_other(known, diagnostic, part):
    models = [Toy(seed) for seed in range(len(diagnostic.between))]
    home = weights(models[0])
    replace(diagnostic, part=part).measure(known.setting(models))
    moved = set()
    for seen in known.scorers["en"].seen:
        moved |= {name for name in home if not torch.equal(seen[name], home[name])}
    assert moved == {name for name in home if name.startswith("encoder.") == (part == "encoder")}


@pytest.mark.parametrize("diagnostic", [Interpolation(alphas=(0.5,)), Plane(alphas=(0.5,))])
def test_a_walk_changes_no_model_and_leaves_nothing(known, diagnostic):
    models = [Toy(seed) for seed in range(len(diagnostic.between))]
    before = [weights(model) for model in models]
    held = [[id(weight) for weight in model.parameters()] for model in models]
    diagnostic.measure(known.setting(models))
    assert all(equal(weights(model), kept) for model, kept in zip(models, before, strict=True))
    assert [[id(weight) for weight in model.parameters()] for model in models] == held


def test_a_walk_that_fails_leaves_nothing(known):
    def failing(model):
        raise KeyboardInterrupt

    known.scorers["de"].score = failing
    models = [Toy(0), Toy(1)]
    before, held = weights(models[0]), [id(weight) for weight in models[0].parameters()]
    with pytest.raises(KeyboardInterrupt):
        Interpolation().measure(known.setting(models))
    assert equal(weights(models[0]), before)
    assert [id(weight) for weight in models[0].parameters()] == held


def test_every_source_language_has_the_role_of_one(known):
    """A model may be trained on several source languages."""
    known.scorers["fr"] = Known("classifier.bias")
    setting = known.setting([Toy(0), Toy(1)], languages=("en", "de", "fr"), source=("en", "fr"))
    rows = Interpolation(alphas=(0.0,)).measure(setting)
    assert {row.language: row.role for row in rows} == {"en": "source", "fr": "source", "de": "target"}


def test_progress_counts_points(known):
    told = []
    Interpolation(alphas=(0.0, 0.5, 1.0)).measure(known.setting([Toy(0), Toy(1)], on_progress=told.append))
    assert [(one.done, one.total) for one in told] == [(1, 3), (2, 3), (3, 3)]


# Real models


@pytest.fixture
def real(encoder_folder):
    """Three real taggers and data to score them on."""
    task = TASKS["upos"]
    models = [task.head(encoder_folder, seed=seed) for seed in range(3)]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for model in models[1:]:
            for weight in model.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    tokenizer = load_tokenizer(encoder_folder)
    how = with_fields(Optimization(), limit=32, overlap=8, precision="float32")

    def data(language) -> Evaluation:
        return evaluation(task, tagged(language, 15), tokenizer, how)

    return models, data


def test_scores_at_the_ends_are_those_of_the_models(real):
    models, data = real
    rows = Interpolation(alphas=(0.0, 1.0)).measure(measure_setting(models[:2], data))
    for alpha, model in ((0.0, models[0]), (1.0, models[1])):
        alone = Scores().measure(measure_setting([model], data))
        here = [row.score for row in rows if row.alpha == alpha]
        assert here == [row.score for row in alone if row.main]


def test_scores_at_the_corners_are_those_of_the_models(real):
    models, data = real
    rows = Plane(alphas=(0.0, 1.0)).measure(measure_setting(models, data))
    for corner, model in (((0.0, 0.0), models[0]), ((1.0, 0.0), models[1]), ((0.0, 1.0), models[2])):
        alone = Scores().measure(measure_setting([model], data))
        here = [row.score for row in rows if (row.alpha_first, row.alpha_second) == corner]
        assert here == [row.score for row in alone if row.main]


def test_raw_scores_at_the_ends_are_equal_to_the_bit(real):
    models, data = real
    scored = data("en")
    seen = []

    class Raw:
        metric = "accuracy"

        def score(self, model):
            seen.append(scored.scores(model))
            return 0.0

    setting = measure_setting(models[:2], lambda _: Raw(), languages=("en",))
    Interpolation(alphas=(0.0, 1.0)).measure(setting)
    for found, model in zip(seen, models[:2], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(found, scored.scores(model), strict=True))


# Mistakes


@pytest.mark.parametrize("kind", [Interpolation, Plane])
def test_an_unknown_part_is_an_error_with_the_nearest(kind):
    with pytest.raises(ConfigError, match=r"no part 'haed'. Did you mean 'head'\? Known: all, encoder, head"):
        kind(part="haed")


@pytest.mark.parametrize(("kind", "count"), [(Interpolation, 2), (Plane, 3)])
def test_a_wrong_number_of_methods_is_an_error(kind, count):
    with pytest.raises(
        ConfigError, match=rf"between names 1 methods, but {count} are needed: \['bilingual'\]"
    ):
        kind(between=("bilingual",))


@settings(deadline=None)
@given(FLOATS, FLOATS, st.lists(ALPHAS, min_size=1, max_size=4))
def test_a_walk_does_not_depend_on_where_it_was_before(start, end, alphas):
    out = torch.empty_like(start)
    for alpha in alphas:
        on_path(start, end, alpha, out=out)
    assert torch.equal(out, path(start, end, alphas[-1]))
