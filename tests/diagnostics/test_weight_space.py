"""Weight space: the arithmetic of Eqs 1 to 3, scores on paths and planes, norms, angles, replaced weights."""

from dataclasses import replace
from functools import partial
from math import sqrt
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from each import each
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.rows.models import Contributions
from isogloss.core.run_parts import Optimization, Updates
from isogloss.data.examples import Choice, LabelledText, ParsedSentence, Question, SentencePair
from isogloss.diagnostics.scores import Scores
from isogloss.diagnostics.weight_space import (
    on_path,
    on_plane,
    parameter_names,
    replaced_parameters,
    weights_of,
)
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.landscapes.deltas import norms_and_angle
from isogloss.features.landscapes.diagnostic import COARSE, FINE, MODEL_PARTS, Deltas, Interpolation, Plane
from isogloss.features.landscapes.point_records import labels_of, path_sentence, units_of
from isogloss.features.parsing.task import PARSING
from isogloss.metrics.labels import Tree
from isogloss.metrics.texts import GoldAnswers
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from made_up import tagged_sentences
from measuring import Toy, equal, measure_setting, subject, weights

FLOATS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=4, max_size=4).map(torch.tensor)
ALPHAS = st.floats(-0.5, 1.5)


def path(start, end, alpha):
    tensor = torch.empty_like(start)
    on_path(start, end, alpha, out=tensor)
    return tensor


def plane(origin, first_part, second, *alphas):
    tensor = torch.empty_like(origin)
    on_plane(origin, (first_part, second), alphas, out=tensor)
    return tensor


# The arithmetic of paths and planes


@given(FLOATS, FLOATS, FLOATS)
def test_ends_of_paths_and_corners_of_planes_are_the_models_to_the_bit(origin, first_part, second):
    assert torch.equal(path(origin, first_part, 0.0), origin)
    assert torch.equal(path(origin, first_part, 1.0), first_part)
    assert torch.equal(plane(origin, first_part, second, 0.0, 0.0), origin)
    assert torch.equal(plane(origin, first_part, second, 1.0, 0.0), first_part)
    assert torch.equal(plane(origin, first_part, second, 0.0, 1.0), second)


@given(FLOATS, FLOATS, FLOATS, ALPHAS)
def test_the_axes_of_a_plane_are_paths_to_the_bit(origin, first_part, second, alpha):
    assert torch.equal(plane(origin, first_part, second, alpha, 0.0), path(origin, first_part, alpha))
    assert torch.equal(plane(origin, first_part, second, 0.0, alpha), path(origin, second, alpha))


@given(FLOATS, FLOATS, FLOATS, ALPHAS, ALPHAS)
def test_paths_and_planes_are_those_of_the_equations(origin, first_part, second, item, two):
    o, x, y = (side.double() for side in (origin, first_part, second))
    assert torch.allclose(path(origin, first_part, item).double(), item * x + (1 - item) * o, atol=1e-2)
    expected = o + item * (x - o) + two * (y - o)
    assert torch.allclose(plane(origin, first_part, second, item, two).double(), expected, atol=1e-2)


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
        self.name = name
        self.metric = "accuracy"
        self.seen = []
        self.examples = [SimpleNamespace(id="0")]
        self.gold = [()]

    def score_by_example(self, model):
        self.seen.append(weights(model))
        score = first_of(model, self.name)
        return score, Contributions([score], [1.0]), [()]


@pytest.fixture
def toy_settings():
    """Settings of toys, and what scores them."""
    scorers = {"en": Known("encoder.0.weight"), "de": Known("classifier.bias")}
    return SimpleNamespace(scorers=scorers, setting=partial(measure_setting, evaluation=scorers.__getitem__))


def first_of(model, name):
    return model.get_parameter(name).flatten()[0].item()


def test_a_path_scores_every_point_in_every_language(toy_settings):
    a = Toy(0)
    b = Toy(1)
    rows = Interpolation().measure(toy_settings.setting([a, b]))
    alphas = Interpolation().alphas
    assert [(row.alpha, row.language, row.role) for row in rows] == [
        (alpha, language, role) for alpha in alphas for language, role in (("en", "source"), ("de", "target"))
    ]
    for row in rows:
        name = toy_settings.scorers[row.language].name
        mixed_alpha = row.alpha * first_of(b, name) + (1 - row.alpha) * first_of(a, name)
        assert row.score == pytest.approx(mixed_alpha, abs=1e-6)
        assert (row.start, row.end, row.part) == (subject("0").id, subject("1").id, "all")
        assert (row.split, row.metric) == ("dev", "accuracy")


def test_a_plane_scores_every_point_of_the_grid(toy_settings):
    o = Toy(0)
    x = Toy(1)
    y = Toy(2)
    rows = Plane(alphas=(-0.5, 0.0, 1.0)).measure(toy_settings.setting([o, x, y]))
    assert len(rows) == 9 * 2
    for row in rows:
        name = toy_settings.scorers[row.language].name
        alpha_first = row.alpha_first
        two = row.alpha_second
        position = [first_of(model, name) for model in (o, x, y)]
        assert row.score == pytest.approx(
            position[0] + alpha_first * (position[1] - position[0]) + two * (position[2] - position[0]),
            abs=1e-6,
        )


def test_the_models_at_the_ends_and_corners_are_the_models(toy_settings):
    models = [Toy(0), Toy(1), Toy(2)]
    Interpolation(alphas=(0.0, 1.0)).measure(toy_settings.setting(models[:2]))
    start, end = toy_settings.scorers["en"].seen
    assert equal(start, weights(models[0]))
    assert equal(end, weights(models[1]))
    toy_settings.scorers["en"].seen.clear()
    Plane(alphas=(0.0, 1.0)).measure(toy_settings.setting(models))
    origin, second, first_item, _ = toy_settings.scorers["en"].seen
    assert equal(origin, weights(models[0]))
    assert equal(first_item, weights(models[1]))
    assert equal(second, weights(models[2]))


@pytest.mark.parametrize("part", ["encoder", "head"])
@pytest.mark.parametrize(
    "diagnostic", [Interpolation(alphas=(-0.5, 0.3, 1.0)), Plane(alphas=(0.0, 0.7, 1.0))]
)
def test_moving_one_part_leaves_the_other(toy_settings, diagnostic, part):
    models = [Toy(seed) for seed in range(len(diagnostic.between))]
    home = weights(models[0])
    replace(diagnostic, part=part).measure(toy_settings.setting(models))
    moved_value = set()
    for calls in toy_settings.scorers["en"].seen:
        moved_value |= {name for name in home if not torch.equal(calls[name], home[name])}
    assert moved_value == {name for name in home if name.startswith("encoder.") == (part == "encoder")}


@pytest.mark.parametrize("diagnostic", [Interpolation(alphas=(0.5,)), Plane(alphas=(0.5,))])
def test_a_walk_changes_no_model_and_leaves_nothing(toy_settings, diagnostic):
    models = [Toy(seed) for seed in range(len(diagnostic.between))]
    weights_before = [weights(model) for model in models]
    held_value = [[id(weight) for weight in model.parameters()] for model in models]
    diagnostic.measure(toy_settings.setting(models))
    assert all(
        equal(weights(model), kept_values) for model, kept_values in zip(models, weights_before, strict=True)
    )
    assert [[id(weight) for weight in model.parameters()] for model in models] == held_value


def test_a_walk_that_fails_leaves_nothing(toy_settings):
    def failing(model):
        raise KeyboardInterrupt

    toy_settings.scorers["de"].score_by_example = failing
    models = [Toy(0), Toy(1)]
    weights_before = weights(models[0])
    held_ids = [id(weight) for weight in models[0].parameters()]
    with pytest.raises(KeyboardInterrupt):
        Interpolation().measure(toy_settings.setting(models))
    assert equal(weights(models[0]), weights_before)
    assert [id(weight) for weight in models[0].parameters()] == held_ids


def test_every_source_language_has_the_role_of_one(toy_settings):
    """A model may be trained on several source languages."""
    toy_settings.scorers["fr"] = Known("classifier.bias")
    setting = toy_settings.setting([Toy(0), Toy(1)], languages=("en", "de", "fr"), source=("en", "fr"))
    rows = Interpolation(alphas=(0.0,)).measure(setting)
    assert {row.language: row.role for row in rows} == {"en": "source", "fr": "source", "de": "target"}


def test_progress_counts_points(toy_settings):
    messages = []
    Interpolation(alphas=(0.0, 0.5, 1.0)).measure(
        toy_settings.setting([Toy(0), Toy(1)], on_progress=messages.append)
    )
    assert [(message.done, message.total) for message in messages] == [(1, 3), (2, 3), (3, 3)]


@given(FLOATS, FLOATS, st.lists(ALPHAS, min_size=1, max_size=4))
def test_a_walk_does_not_depend_on_where_it_was_before(start, end, alphas):
    tensor = torch.empty_like(start)
    for alpha in alphas:
        on_path(start, end, alpha, out=tensor)
    assert torch.equal(tensor, path(start, end, alphas[-1]))


@pytest.mark.parametrize(("kind", "count"), [(Interpolation, 2), (Plane, 3)])
def test_unknown_parts_and_wrong_numbers_of_methods_are_errors(kind, count):
    with pytest.raises(ConfigError, match=r"'haed'.*'head'\?.*encoder,"):
        kind(part="haed")
    text = rf"1.*{count}.*\['bilingual'\]"
    with pytest.raises(ConfigError, match=text):
        kind(between=("bilingual",))


# Real models, with transformers' heads and with isogloss's head

SENTENCES = [
    ParsedSentence(
        id=str(index),
        words=("the", "cat", "ran")[: index + 1],
        tags=("DET", "NOUN", "VERB")[: index + 1],
        heads=((0,), (2, 0), (2, 3, 0))[index],
        relations=(("root",), ("det", "root"), ("det", "nsubj", "root"))[index],
    )
    for index in range(3)
]
REAL = {
    "upos": (TASKS["upos"], lambda language: tagged_sentences(language, 15)),
    "parsing": (replace(PARSING, arc_dim=8, relation_dim=4), lambda _: SENTENCES),
}


@pytest.fixture(params=REAL)
def real_models(request, encoder_folder):
    """Three models of a task, and data to score them on."""
    task, read = REAL[request.param]
    models = [task.head(encoder_folder, seed=0) for _ in range(3)]
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for model in models[1:]:
            for weight in model.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    tokenizer = load_tokenizer(encoder_folder)
    optimization = Optimization(limit=32, overlap=8, updates=Updates(precision="float32"))
    return models, lambda language: evaluation(task, read(language), tokenizer, optimization)


def main_scores(model, data):
    return [row.score for row in Scores().measure(measure_setting([model], data)) if row.main]


@pytest.mark.slow
def test_scores_at_ends_and_corners_are_those_of_the_models(real_models):
    models, data = real_models
    single_scores = [main_scores(model, data) for model in models]
    rows = Interpolation(alphas=(0.0, 1.0)).measure(measure_setting(models[:2], data))
    assert [[row.score for row in rows if row.alpha == alpha] for alpha in (0.0, 1.0)] == single_scores[:2]
    rows = Plane(alphas=(0.0, 1.0)).measure(measure_setting(models, data))
    corners = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))
    scores = [
        [row.score for row in rows if (row.alpha_first, row.alpha_second) == corner] for corner in corners
    ]
    assert scores == single_scores


@pytest.mark.each_value
def test_what_each_example_adds_to_a_score_is_stored_for_paths_and_the_axes_of_planes(real_models):
    models, data = real_models
    stored_values = []
    kept_setting = replace(measure_setting(models, data), keep=stored_values.append)
    rows = Plane(alphas=(0.0, 0.5)).measure(kept_setting)
    names = ["at 0 0", "at 0 0.5", "at 0.5 0"]
    assert [
        [name.split(" ", 1)[1] for name in stored_value.contributions] for stored_value in stored_values
    ] == [names, names]
    path_stored = []
    Interpolation(alphas=(0.0, 1.0)).measure(
        replace(measure_setting(models[:2], data), keep=path_stored.append)
    )
    for row in each((*stored_values, *path_stored)):
        assert row.ids == [example.id for example in data(row.language).examples]
        assert all(
            len(added_contribution.part) == len(added_contribution.whole) == len(row.ids)
            for added_contribution in row.contributions.values()
        )
    scores = {(row.alpha_first, row.alpha_second, row.language): row.score for row in rows}
    for row in each(stored_values):
        (added_value,) = [
            added_contribution
            for name, added_contribution in row.contributions.items()
            if name.endswith("at 0 0.5")
        ]
        assert sum(added_value.part) / sum(added_value.whole) == pytest.approx(scores[0.0, 0.5, row.language])


@pytest.mark.each_value
def test_sentences_are_stored_with_what_the_models_predict_at_each_point(real_models):
    models, data = real_models
    stored_value = {}
    keep = replace(
        measure_setting(models[:2], data), keep=lambda part: stored_value.update({part.language: part})
    )
    rows = Interpolation(alphas=(0.0, 0.5, 1.0), sentences=2).measure(keep)
    assert rows == Interpolation(alphas=(0.0, 0.5, 1.0)).measure(measure_setting(models[:2], data))
    for language in ("en", "de"):
        scored_data = data(language)
        part = stored_value[language]
        sentences = {name: path_sentence(text) for name, text in zip(part.ids, part.predicted, strict=True)}
        text = {name: sentence for name, sentence in sentences.items() if sentence}
        assert len(text) == 2
        sizes = [len(example.words) for example in scored_data.examples]
        ends = [list(map(labels_of, scored_data.predict(model), sizes)) for model in models[:2]]
        changes = {
            example.id: sum(a != b for a, b in zip(*sides, strict=True))
            for example, *sides in zip(scored_data.examples, *ends, strict=True)
        }
        assert min(changes[name] for name in text) >= max(changes[name] for name in set(changes) - set(text))
        for index, example in enumerate(scored_data.examples):
            if sentence := text.get(example.id):
                assert sentence.units == example.words
                assert sentence.gold == labels_of(scored_data.gold[index], sizes[index])
                assert [alpha for alpha, _ in sentence.predicted] == [0.0, 0.5, 1.0]
                assert [sentence.predicted[position][1] for position in (0, 2)] == [
                    end[index] for end in ends
                ]


def test_each_kind_of_answer_is_a_label_for_each_unit():
    examples = [
        LabelledText(id="0", text="Good.", label="yes"),
        SentencePair(id="0", first="A.", second="B.", label="same"),
        Question(id="0", passage="In Ansa.", question="Where?", answers=((3, "Ansa"),)),
        Choice(id="0", context="It rained.", question="", options=("Wet.", "Dry."), label=0),
    ]
    units = [("Good.",), ("A. / B.",), ("Where? / In Ansa.",), ("It rained. / Wet. / Dry.",)]
    assert [units_of(example) for example in examples] == units
    assert labels_of(GoldAnswers(("Ansa", "in Ansa")), 1) == ("Ansa | in Ansa",)
    assert labels_of(Tree((2, 0), ("det", "root")), 2) == ("det 2", "root 0")
    assert (labels_of(("a", "b"), 1), labels_of((), 1), labels_of(1, 1)) == (("a, b",), ("",), ("1",))


@pytest.mark.slow
def test_raw_scores_at_the_ends_are_equal_to_the_bit(real_models):
    models, data = real_models
    scored_data = data("en")
    scores = []

    class Raw:
        metric = "accuracy"
        examples = ()
        gold = ()

        def score_by_example(self, model):
            scores.append(scored_data.scores(model))
            return 0.0, Contributions([], []), []

    setting = measure_setting(models[:2], lambda _: Raw(), languages=("en",))
    Interpolation(alphas=(0.0, 1.0)).measure(setting)
    assert len(scores) == 2
    for score, model in zip(scores, models[:2], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(score, scored_data.scores(model), strict=True))


@pytest.mark.each_value
def test_encoder_and_head_are_all_parameters_and_their_deltas_add_up(real_models):
    models, _ = real_models
    interval, encoder, head = (parameter_names(models[0], part) for part in MODEL_PARTS)
    assert interval == [name for name, _ in models[0].named_parameters()]
    assert sorted(encoder + head) == sorted(interval)
    own_texts = {
        f"{models[0].base_model_prefix}.{name}" for name, _ in models[0].base_model.named_parameters()
    }
    assert own_texts == set(encoder)
    assert {"classifier", "head"} >= {name.split(".")[0] for name in head} > set()
    whole_measurement, *parts = Deltas().measure(measure_setting(models))
    assert whole_measurement.norm_first**2 == pytest.approx(sum(part.norm_first**2 for part in parts))
    assert 80 < parts[1].angle < 100  # two random directions


# Norms and angles

NUMBERS = st.lists(st.floats(-100, 100, width=32), min_size=6, max_size=6)


def t(*numbers):
    return torch.tensor(numbers, dtype=torch.float32)


@pytest.mark.parametrize(
    ("item", "two", "angle"),
    [
        ((1, 0), (0, 1), 90.0),
        ((1, 0), (0, -3), 90.0),
        ((1, 2), (2, 4), 0.0),
        ((1, 2), (-2, -4), 180.0),
        ((1, 0), (1, 1), 45.0),
    ],
)
def test_known_angles(item, two, angle):
    origin = t(5, -7)
    first_item, second, result = norms_and_angle([(origin, origin + t(*item), origin + t(*two))])
    assert result == pytest.approx(angle, abs=1e-5)
    assert (first_item, second) == pytest.approx((np.linalg.norm(item), np.linalg.norm(two)))


def test_the_same_model_twice_is_an_angle_of_exactly_0():
    generator = torch.Generator().manual_seed(0)
    o, x = (torch.randn(1000, generator=generator) for _ in range(2))
    assert norms_and_angle([(o, x, x)])[2] == 0.0


def test_a_model_that_did_not_move_has_no_angle():
    o = t(1, 2)
    x = t(3, 4)
    assert norms_and_angle([(o, o, x)]) == (0.0, sqrt(8), None)
    assert norms_and_angle([(o, x, o)]) == (sqrt(8), 0.0, None)
    assert norms_and_angle([]) == (0.0, 0.0, None)


@given(NUMBERS, NUMBERS, NUMBERS, st.randoms())
def test_order_and_cutting_of_parameters_do_not_matter(o, x, y, random):
    whole_tensors = [tuple(torch.tensor(side) for side in (o, x, y))]
    parts = [tuple(t(side[n]) for side in (o, x, y)) for n in range(6)]
    random.shuffle(parts)
    item = norms_and_angle(whole_tensors)
    other_item = norms_and_angle(parts)
    assert other_item[:2] == pytest.approx(item[:2], rel=1e-9)
    assert (item[2] is None) == (other_item[2] is None)
    if item[2] is not None:
        assert other_item[2] == pytest.approx(item[2], abs=1e-5)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_norms_and_angle_are_those_of_numpy(o, x, y):
    item, two, angle = norms_and_angle([tuple(torch.tensor(side) for side in (o, x, y))])
    a, b = (np.float64(np.float32(side)) - np.float64(np.float32(o)) for side in (x, y))
    assert (item, two) == pytest.approx((np.linalg.norm(a), np.linalg.norm(b)))
    if angle is not None:
        cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        assert np.cos(np.radians(angle)) == pytest.approx(cosine, abs=1e-9)


def test_rows_are_of_all_encoder_and_head():
    models = [Toy(seed) for seed in range(3)]
    rows = Deltas().measure(measure_setting(models))
    assert [row.part for row in rows] == ["all", "encoder", "head"]
    row, encoder, head = rows
    for norm in ("norm_first", "norm_second"):
        item, *parts = (getattr(row, norm) for row in (row, encoder, head))
        assert item == pytest.approx(np.linalg.norm(parts))
    assert all(row.ratio == pytest.approx(row.norm_first / row.norm_second) for row in rows)
    ids = tuple(subject(name).id for name in "012")
    assert {(row.origin, row.first, row.second) for row in rows} == {ids}


def test_a_model_that_is_the_bilingual_one_has_neither_ratio_nor_angle():
    models = [Toy(0), Toy(1), Toy(0)]
    for row in each(Deltas().measure(measure_setting(models))):
        assert (row.norm_second, row.ratio, row.angle) == (0.0, None, None)


# Replaced parameters


def replacements(model, value=1.0):
    return {
        name: nn.Parameter(torch.full_like(weight, value), requires_grad=False)
        for name, weight in model.named_parameters()
    }


def parameters(model):
    return [(name, id(weight), weight.requires_grad) for name, weight in model.named_parameters()]


def test_weights_are_given_in_the_order_of_their_names():
    model = Toy(0)
    names = parameter_names(model, "all")
    for order in (names, names[::-1]):
        assert all(
            torch.equal(weight, model.get_parameter(name))
            for name, weight in zip(order, weights_of(model, order), strict=True)
        )


def test_models_that_do_not_match_are_an_error_that_names_the_parameter():
    with pytest.raises(ModelError, match=r"'encoder\.2\.bias'"):
        weights_of(Toy(0), ["encoder.0.bias", "encoder.2.bias"])


def test_replacements_are_used_and_originals_restored():
    model = Toy(0)
    weights_before = weights(model)
    held_names = parameters(model)
    state = list(model.state_dict())
    x = torch.ones(2, 4)
    own_model = model(x)
    with replaced_parameters(model, replacements(model)):
        assert not torch.equal(model(x), own_model)
        assert all(bool((weight == 1).all()) for weight in model.parameters())
        assert list(model.state_dict()) == state
    assert equal(weights(model), weights_before)
    assert parameters(model) == held_names
    assert torch.equal(model(x), own_model)
    assert all(not module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("error", [KeyboardInterrupt, TypeError])
def test_originals_are_restored_after_an_error(error):
    model = Toy(0)
    held_names = parameters(model)
    wrong = {"classifier.bias": torch.ones(2)} if error is TypeError else {}  # a tensor is no parameter
    with pytest.raises(error), replaced_parameters(model, {**replacements(model), **wrong}):
        raise error
    assert parameters(model) == held_names


def test_replacements_can_move_in_place():
    model = Toy(0)
    moving = replacements(model, 0.0)
    with replaced_parameters(model, moving), torch.no_grad():
        assert not model(torch.ones(1, 4)).any()
        moving["classifier.bias"].fill_(3.0)
        assert (model(torch.ones(1, 4)) == 3).all()


def test_a_weight_of_several_names_is_replaced_under_each(headless_folder):
    """Embeddings of mT5 have two."""
    model, other_model = (TASKS["upos"].head(headless_folder, seed=seed) for seed in (0, 1))
    with torch.no_grad():
        for weight in other_model.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    read = evaluation(
        TASKS["upos"], tagged_sentences("en", 5), load_tokenizer(headless_folder), Optimization()
    )
    tensor_before, tensor_after = (torch.cat(read.scores(model)) for model in (model, other_model))
    with replaced_parameters(model, dict(other_model.named_parameters())):
        assert torch.equal(torch.cat(read.scores(model)), tensor_after)
    assert torch.equal(torch.cat(read.scores(model)), tensor_before)
