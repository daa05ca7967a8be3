from math import sqrt
from operator import attrgetter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from measuring import Toy, measure_setting, subject, weights

from isogloss.diagnostics.deltas import Deltas, norms_and_angle

NUMBERS = st.lists(st.floats(-100, 100, width=32), min_size=6, max_size=6)


def t(*numbers):
    return torch.tensor(numbers, dtype=torch.float32)


@pytest.mark.parametrize(
    ("one", "two", "angle"),
    [
        ((1, 0), (0, 1), 90.0),
        ((1, 0), (0, -3), 90.0),
        ((1, 2), (2, 4), 0.0),
        ((1, 2), (-2, -4), 180.0),
        ((1, 0), (1, 1), 45.0),
    ],
)
def test_known_angles(one, two, angle):
    origin = t(5, -7)
    first, second, found = norms_and_angle([(origin, origin + t(*one), origin + t(*two))])
    assert found == pytest.approx(angle, abs=1e-5)
    assert (first, second) == pytest.approx((np.linalg.norm(one), np.linalg.norm(two)))


def test_the_same_model_twice_is_an_angle_of_exactly_0():
    generator = torch.Generator().manual_seed(0)
    o, x = (torch.randn(1000, generator=generator) for _ in range(2))
    assert norms_and_angle([(o, x, x)])[2] == 0.0


def test_a_model_that_did_not_move_has_no_angle():
    o, x = t(1, 2), t(3, 4)
    assert norms_and_angle([(o, o, x)]) == (0.0, sqrt(8), None)
    assert norms_and_angle([(o, x, o)]) == (sqrt(8), 0.0, None)
    assert norms_and_angle([]) == (0.0, 0.0, None)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS, st.randoms())
def test_order_and_cutting_of_parameters_do_not_matter(o, x, y, random):
    whole = [tuple(torch.tensor(side) for side in (o, x, y))]
    parts = [tuple(t(side[n]) for side in (o, x, y)) for n in range(6)]
    random.shuffle(parts)
    one, other = norms_and_angle(whole), norms_and_angle(parts)
    assert other[:2] == pytest.approx(one[:2], rel=1e-9)
    assert (one[2] is None) == (other[2] is None)
    if one[2] is not None:
        assert other[2] == pytest.approx(one[2], abs=1e-5)


@settings(deadline=None)
@given(NUMBERS, NUMBERS, NUMBERS)
def test_norms_and_angle_are_those_of_numpy(o, x, y):
    one, two, angle = norms_and_angle([tuple(torch.tensor(side) for side in (o, x, y))])
    a, b = (np.float64(np.float32(side)) - np.float64(np.float32(o)) for side in (x, y))
    assert (one, two) == pytest.approx((np.linalg.norm(a), np.linalg.norm(b)))
    if angle is not None:
        cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        assert np.cos(np.radians(angle)) == pytest.approx(cosine, abs=1e-9)


@given(NUMBERS, NUMBERS, NUMBERS)
def test_changing_sides_changes_the_norms_and_not_the_angle(o, x, y):
    o, x, y = (torch.tensor(side) for side in (o, x, y))
    one, two, angle = norms_and_angle([(o, x, y)])
    assert norms_and_angle([(o, y, x)]) == (two, one, angle)


def test_rows_are_of_all_encoder_and_head():
    models = [Toy(seed) for seed in range(3)]
    rows = Deltas().measure(measure_setting(models))
    assert [row.part for row in rows] == ["all", "encoder", "head"]
    every, encoder, head = rows
    for norm in (attrgetter("norm_first"), attrgetter("norm_second")):
        assert norm(every) == pytest.approx(sqrt(norm(encoder) ** 2 + norm(head) ** 2))
    assert all(row.ratio == pytest.approx(row.norm_first / row.norm_second) for row in rows)
    ids = tuple(subject(name).id for name in "012")
    assert {(row.origin, row.first, row.second) for row in rows} == {ids}


def test_a_model_that_is_the_bilingual_one_has_neither_ratio_nor_angle():
    models = [Toy(0), Toy(1), Toy(0)]
    for row in Deltas().measure(measure_setting(models)):
        assert (row.norm_second, row.ratio, row.angle) == (0.0, None, None)


def test_looking_changes_no_model():
    models = [Toy(seed) for seed in range(3)]
    before = [weights(model) for model in models]
    Deltas().measure(measure_setting(models))
    for model, kept in zip(models, before, strict=True):
        assert all(torch.equal(weight, kept[name]) for name, weight in model.named_parameters())
