"""Distances of related and unrelated words: known answers, invariances, and the draw of unrelated pairs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.data.examples import Translation
from isogloss.features.word_distance import word_pairs as module
from isogloss.features.word_distance.diagnostic import WordDistance, distance_rows
from isogloss.features.word_distance.rows import DimensionShareRow, WordDistanceRow
from isogloss.features.word_distance.separation import FineCounts
from isogloss.features.word_distance.word_pairs import (
    compute_share_of_largest,
    cosine,
    count,
    drawn_blocks,
    drawn_unrelated,
    l2,
)
from isogloss.training.states import word_states
from measuring import WORDS, load, measure_setting, subject, translations, vectors

SEEDS = st.integers(0, 10_000)


def count_distances(distances):
    fine_counts = FineCounts()
    count(fine_counts, distances, "en-de")
    return fine_counts


def summary(x, y, sentence, kind="l2", distance=l2):
    """Measure states of linked words as the diagnostic does."""
    related_text, other_texts = drawn_unrelated(np.array(sentence), 1, np.random.default_rng(0))
    groups = (
        count_distances(distance(x, y)),
        count_distances(distance(x[related_text], y[other_texts])),
    )
    return next(iter(distance_rows(("e", "en", "de"), {(-1, kind): groups}, 5)))


# Distances


@given(SEEDS)
def test_distances_are_those_of_torch_and_zero_for_equals(seed):
    x = vectors(seed)
    y = vectors(seed + 1)
    assert torch.allclose(l2(x, y), torch.nn.functional.pairwise_distance(x, y, eps=0), atol=1e-5)
    assert torch.allclose(cosine(x, y), 1 - torch.cosine_similarity(x, y), atol=1e-6)
    for distance in (l2, cosine):
        assert not distance(x, x.clone()).any()
        assert torch.equal(distance(x, y), distance(y, x))
        assert (distance(x, y) >= 0).all()
    assert torch.allclose(cosine(x, -x), torch.full((12,), 2.0))


@given(SEEDS)
def test_rotation_changes_no_distance(seed):
    x = vectors(seed)
    y = vectors(seed + 1)
    turn, _ = torch.linalg.qr(vectors(seed + 2, 6))
    for distance in (l2, cosine):
        assert torch.allclose(distance(x @ turn, y @ turn), distance(x, y), atol=1e-5)


@given(SEEDS, st.floats(0.1, 10))
def test_scale_multiplies_l2_and_leaves_cosine(seed, scale):
    x = vectors(seed)
    y = vectors(seed + 1)
    assert torch.allclose(l2(scale * x, scale * y), scale * l2(x, y), rtol=1e-5)
    assert torch.allclose(cosine(scale * x, scale * y), cosine(x, y), atol=1e-6)


def test_orthogonal_words_that_translate_each_other_are_apart_from_all_others():
    """Each link has a separate axis: distances are 0 between related words, √2 or 1 between any others."""
    x = torch.eye(8)
    for kind, distance, far_points in (("l2", l2, 2**0.5), ("cosine", cosine, 1.0)):
        row = summary(x, x.clone(), range(8), kind, distance)
        assert (row.related_mean, row.auc, row.auc_within) == (0, 1, 0)
        assert row.unrelated_mean == pytest.approx(far_points)
        assert (row.related_pairs, row.unrelated_pairs) == (8, 8)


def test_words_that_are_all_alike_cannot_be_told_apart():
    row = summary(torch.ones(8, 3), torch.ones(8, 3), range(8))
    assert (row.related_mean, row.unrelated_mean, row.auc) == (0, 0, 0.5)


def test_words_paired_at_random_are_not_separated():
    x = vectors(0, 4000)
    y = vectors(1, 4000)
    assert summary(x, y, np.arange(4000) // 10).auc == pytest.approx(0.5, abs=0.02)


# The draw


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(1, 3), SEEDS)
def test_unrelated_words_are_of_another_sentence(sizes, times, seed):
    sentence = np.repeat(np.arange(len(sizes)), sizes)
    links, other_texts = drawn_unrelated(sentence, times, np.random.default_rng(seed))
    assert (sentence[links] != sentence[other_texts]).all()
    several = len(set(sentence)) > 1
    assert sorted(links) == sorted(list(range(len(sentence))) * times * several)


def test_every_link_of_other_sentences_is_drawn_equally_often():
    sentence = np.array([0, 0, 1, 2, 2, 2])
    links, other_texts = drawn_unrelated(sentence, 3000, np.random.default_rng(0))
    for link, allowed_value in ((0, [2, 3, 4, 5]), (2, [0, 1, 3, 4, 5]), (4, [0, 1, 2])):
        drawn_ratio = np.bincount(other_texts[links == link], minlength=6) / 3000
        assert drawn_ratio[allowed_value] == pytest.approx(
            [1 / len(allowed_value)] * len(allowed_value), abs=0.03
        )
        assert sum(drawn_ratio[allowed_value]) == pytest.approx(1)


@given(st.integers(0, 2000))
def test_blocks_hold_every_translation_once_and_never_one_alone(index):
    blocks = drawn_blocks(index, np.random.default_rng(0))
    assert sorted(place for block in blocks for place in block) == list(range(index))
    assert all(len(block) <= module.TRANSLATIONS_PER_BLOCK for block in blocks)
    assert index < 2 or min(len(value) for value in blocks) > 1


# Distances of an encoder


LINES = [" ".join(WORDS[start : start + 4]) for start in range(0, 16, 2)]


def link_lines(other_lines=LINES, links=((0, 0), (1, 1), (3, 3))):
    return translations(LINES, other_lines, links)


def measure_distances(loaded_encoder, pairs, *, languages=("en", "de"), **fields):
    setting = measure_setting([loaded_encoder], languages=languages, bitext=lambda _: pairs)
    return WordDistance(**fields).measure(replace(setting, precision="float32"))


def summaries(rows):
    return [row for row in rows if isinstance(row, WordDistanceRow)]


def test_the_same_text_on_both_sides_has_related_distance_0(loaded_encoder):
    rows = summaries(measure_distances(loaded_encoder, link_lines()))
    assert [row.distance for row in rows] == ["l2", "cosine"]
    for row in rows:
        assert row.related_mean == 0
        assert row.unrelated_mean > 0
        assert row.auc > 0.9


def test_rows_are_those_of_a_loop_over_links(encoder_folder):
    loaded_data = load(encoder_folder)
    pairs = link_lines(LINES[::-1])
    x, y = (
        word_states(*loaded_data, [text.split() for text in side], layers=(1,), precision="float32")
        for side in (LINES, LINES[::-1])
    )
    last_num_hidden_layers = loaded_data[0].config.num_hidden_layers
    expected = [
        float((a[0, i] - b[0, j]).norm()) for a, b in zip(x, y, strict=True) for i, j in pairs[0].links
    ]
    (row,) = summaries(
        measure_distances(loaded_data, pairs, layers=(1, -last_num_hidden_layers), distances=("l2",))
    )
    assert row.related_mean == pytest.approx(np.mean(expected), rel=1e-5)
    assert row.related_pairs == row.unrelated_pairs == 24
    assert (row.model, row.first, row.second, row.layer) == (subject("0").id, "en", "de", 1)


def test_shares_of_the_bins_sum_to_1_for_every_layer_distance_and_language(loaded_encoder):
    rows = measure_distances(
        loaded_encoder, link_lines(), languages=("en", "de", "fr"), layers=(0, -1), bins=7
    )
    groups = {}
    for row in rows:
        key = (row.second, row.layer, row.distance)
        groups.setdefault(key, []).append(row)
    assert len(groups) == 2 * 2 * 2
    for head, *bins in groups.values():
        assert isinstance(head, WordDistanceRow) and 1 <= len(bins) <= 7
        assert [
            sum(getattr(row, name) for row in bins) for name in ("related", "unrelated")
        ] == pytest.approx([1, 1])
        assert all(row.low < row.high for row in bins)


def test_shares_of_few_dimensions_are_those_of_sorted_squares(encoder_folder):
    loaded_data = load(encoder_folder)
    pairs = link_lines(LINES[::-1])
    x, y = (
        word_states(*loaded_data, [text.split() for text in side], layers=(-1,), precision="float32")
        for side in (LINES, LINES[::-1])
    )
    differences = [a[0, i] - b[0, j] for a, b in zip(x, y, strict=True) for i, j in pairs[0].links]
    squares = np.sort(torch.stack(differences).double().square().sum(dim=0).numpy())[::-1]
    rows = measure_distances(loaded_data, pairs, dimensions=(1, 5, len(squares)))
    shares = [row for row in rows if isinstance(row, DimensionShareRow)]
    expected = [squares[:count].sum() / squares.sum() for count in (1, 5, len(squares))]
    assert [row.related_share for row in shares] == pytest.approx(expected, rel=1e-5)
    assert [(row.dimensions, row.width) for row in shares] == [
        (n, len(squares)) for n in (1, 5, len(squares))
    ]
    assert 5 / len(squares) < shares[1].unrelated_share < shares[2].unrelated_share == pytest.approx(1)
    assert [row for row in rows if row not in shares] == measure_distances(loaded_data, pairs)
    with pytest.raises(ConfigError, match=f"dimensions: .*999;.*encoder.*{len(squares)}"):
        measure_distances(loaded_data, pairs, dimensions=(5, 999))


def test_differences_in_one_dimension_are_all_of_the_distance():
    squares = torch.tensor([0.0, 4.0, 0.0, 0.0])
    assert [compute_share_of_largest(squares, index) for index in (1, 2)] == [1.0, 1.0]
    assert compute_share_of_largest(torch.ones(4), 1) == 0.25
    assert compute_share_of_largest(torch.zeros(4), 3) == 0.75


def test_several_unrelated_pairs_can_be_drawn_for_each_related_one(loaded_encoder):
    row, *_ = measure_distances(loaded_encoder, link_lines(), unrelated=5)
    assert (row.related_pairs, row.unrelated_pairs) == (24, 120)


def test_the_seed_decides_the_draw(loaded_encoder):
    pairs = link_lines(LINES[::-1])
    first_measurement, again, other_measurement = (
        measure_distances(loaded_encoder, pairs, seed=seed) for seed in (0, 0, 1)
    )
    assert first_measurement == again
    assert first_measurement[0].related_mean == pytest.approx(other_measurement[0].related_mean)
    assert first_measurement[0].unrelated_mean != other_measurement[0].unrelated_mean


def test_blocks_change_neither_related_distances_nor_what_is_in_memory(loaded_encoder, monkeypatch):
    pairs = link_lines(LINES[::-1])
    whole_measurement = measure_distances(loaded_encoder, pairs)
    counts = []
    real_word_states = module.word_states
    monkeypatch.setattr(module, "TRANSLATIONS_PER_BLOCK", 2)
    monkeypatch.setattr(
        module,
        "word_states",
        lambda *inputs, **options: counts.append(len(inputs[2])) or real_word_states(*inputs, **options),
    )
    blocks = measure_distances(loaded_encoder, pairs)
    assert counts == [2] * 8
    assert blocks[0].related_mean == pytest.approx(whole_measurement[0].related_mean, rel=1e-5)
    assert blocks[0].unrelated_pairs == whole_measurement[0].unrelated_pairs == 24


def test_long_sentences_and_translations_without_links_are_left_out(loaded_encoder):
    long_translation = replace(link_lines()[0], first=" ".join(WORDS * 9))
    pairs = [
        *link_lines(),
        long_translation,
        replace(long_translation, links=()),
        replace(long_translation, links=None),
    ]
    assert measure_distances(loaded_encoder, pairs) == measure_distances(loaded_encoder, link_lines())
    row, *_ = measure_distances(loaded_encoder, pairs, longest=500)
    assert row.related_pairs == 27


def test_links_beyond_the_encoders_positions_are_left_out(encoder_folder):
    loaded_data = load(encoder_folder)
    links = ((0, 0), (299, 299))
    long_translation = Translation(
        id="x", first=" ".join(["the"] * 300), second=" ".join(["cat"] * 300), links=links
    )
    row, *_ = measure_distances(loaded_data, [*link_lines(), long_translation], longest=300)
    assert row.related_pairs == 25


@pytest.mark.parametrize("pairs", [[], link_lines()[:1], link_lines(links=())])
def test_too_few_translations_are_an_error(loaded_encoder, pairs):
    with pytest.raises(DataError, match=r"en-de.*64"):
        measure_distances(loaded_encoder, pairs)


def test_states_that_are_no_numbers_are_an_error():
    with pytest.raises(ModelError, match="en-de"):
        count_distances(torch.tensor([1.0, float("nan")]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"words": "avrage"}, "'avrage'.*'average'"),
        ({"distances": ("l3",)}, "distances: .*'l3'.*l2"),
        ({"bins": 0}, "bins.*0.*1"),
        ({"unrelated": 0}, "0.*1"),
    ],
)
def test_fields_that_cannot_be_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        WordDistance(**fields)
