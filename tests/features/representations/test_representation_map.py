"""The map is scikit-learn's PCA and depends only on the sentences."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from isogloss.core.errors import DataError
from isogloss.features.representations.geometry import language_variance_share, principal_components
from isogloss.features.representations.representation_map import RepresentationMap, map_points, space_evenly
from isogloss.training.states import sentence_states
from measuring import WORDS, measure_setting, points, rotation, subject, translations

SEEDS = st.integers(0, 10_000)


def on_map(states, languages, points):
    return list(map_points(("m", 3), states, languages, points))


@given(SEEDS)
def test_components_and_shares_are_those_of_scikit_learn(seed):
    x = points(seed, 20, 6) @ points(seed + 1, 6, 6) + 5
    directions, shares = principal_components(x, 2)
    theirs = PCA(n_components=2).fit(x.numpy())
    assert shares.tolist() == pytest.approx(theirs.explained_variance_ratio_)
    cosines = np.abs((directions.numpy() * theirs.components_).sum(axis=1))
    assert cosines == pytest.approx([1, 1], abs=1e-6)


@given(SEEDS)
def test_signs_do_not_depend_on_the_order_of_sentences(seed):
    x = points(seed, 20, 6)
    order = torch.randperm(20, generator=torch.Generator().manual_seed(seed))
    components, shuffled_components = principal_components(x, 2)[0], principal_components(x[order], 2)[0]
    assert torch.allclose(components, shuffled_components, atol=1e-6)
    assert (components.gather(1, components.abs().argmax(dim=1, keepdim=True)) > 0).all()


@given(SEEDS)
def test_distances_on_the_map_do_not_change_under_rotation_and_shift(seed):
    states = points(seed, 3, 10, 6)
    turn = rotation(seed + 1, 6)
    first_map, turned_map = (on_map(s, ["a", "b", "c"], 10) for s in (states, states @ turn + 7))

    def apart(rows):
        places = torch.tensor([[row.x, row.y] for row in rows])
        return torch.cdist(places, places)

    assert torch.allclose(apart(first_map), apart(turned_map), atol=1e-4)
    assert first_map[0].explained_x == pytest.approx(turned_map[0].explained_x)
    assert first_map[0].between == pytest.approx(turned_map[0].between)


@given(SEEDS)
def test_a_centroid_is_the_mean_of_its_points(seed):
    rows = on_map(points(seed, 2, 10, 6), ["a", "b"], 10)
    assert [row.what for row in rows] == ["centroid"] * 2 + ["sentence"] * 20
    for centroid in rows[:2]:
        own_rows = [row for row in rows[2:] if row.language == centroid.language]
        for axis in "xy":
            assert getattr(centroid, axis) == pytest.approx(
                sum(getattr(row, axis) for row in own_rows) / 10, abs=1e-9
            )


def test_equal_languages_have_no_variance_between_and_points_on_centroids_nothing_else():
    states = points(0, 1, 10, 4)
    assert language_variance_share(torch.cat([states, states])) == pytest.approx(0, abs=1e-12)
    assert language_variance_share(points(0, 2, 1, 4).expand(2, 10, 4)) == pytest.approx(1)
    assert language_variance_share(torch.ones(2, 5, 3)) == 0


@given(st.integers(1, 40), st.integers(1, 40))
def test_spaced_items_are_different_in_order_and_as_many_as_asked(length, count):
    numbers = space_evenly(range(length), count)
    assert len(numbers) == min(length, count)
    assert numbers == sorted(set(numbers))


LINES = [" ".join(WORDS[start : start + 2 + start % 5]) for start in range(12)]


def measure_map(loaded, sides, **fields):
    setting = measure_setting(
        [loaded],
        languages=("en", *sides),
        bitext=lambda pair: translations(*zip(*sides[pair[3:]], strict=True)),
    )
    return RepresentationMap(**fields).measure(setting)


def test_a_map_holds_the_sentences_that_are_in_every_pair(loaded_encoder):
    sides = {
        "de": [(line, line + " the") for line in LINES],
        "fr": [(line, "a " + line) for line in reversed(LINES[2:])],
    }
    rows = measure_map(loaded_encoder, sides, points=4)
    assert [row.language for row in rows[:3]] == ["en", "de", "fr"]
    assert {(row.model, row.layer, row.sentences) for row in rows} == {(subject("0").id, 3, 10)}
    assert len(rows) == 3 + 3 * 4
    kept_lines = LINES[2:]
    states = torch.stack(
        [
            sentence_states(*loaded_encoder, lines)[0]
            for lines in (
                kept_lines,
                [line + " the" for line in kept_lines],
                ["a " + line for line in kept_lines],
            )
        ]
    )
    for ours, theirs in zip(rows, on_map(states, ["en", "de", "fr"], 4), strict=True):
        assert (ours.x, ours.y) == pytest.approx((theirs.x, theirs.y), abs=1e-4)


def test_pairs_that_share_no_sentence_are_an_error(loaded_encoder):
    sides = {"de": [(line, line) for line in LINES[:6]], "fr": [(line, line) for line in LINES[6:]]}
    with pytest.raises(DataError, match=r"0.*en.*de, fr; 3"):
        measure_map(loaded_encoder, sides)
