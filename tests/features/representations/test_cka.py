"""CKA: invariances, a Gram-matrix oracle, and the streamed form against the whole."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.features.representations import parallel_states
from isogloss.features.representations.cka import Cka
from isogloss.features.representations.linear_cka import StreamedCka
from isogloss.training.states import sentence_states
from measuring import WORDS, measure_setting, points, rotation, subject, translations

SEEDS = st.integers(0, 10_000)


def related_points(seed, dim=4):
    return points(seed, 12, 5)[:, :dim] @ points(seed + 1, dim, dim) + 0.5 * points(seed + 2, 12, dim) + 3


def stream_blocks(x, y, cuts=()):
    streamed_cka = StreamedCka()
    edges = [0, *sorted(cuts), x.shape[-2]]
    for start, stop in pairwise(edges):
        if stop > start:
            streamed_cka.add(
                x[..., start:stop, :].reshape(-1, stop - start, x.shape[-1]),
                y[..., start:stop, :].reshape(-1, stop - start, y.shape[-1]),
            )
    return streamed_cka


def cka(x, y):
    return float(stream_blocks(x, y).compute())


def compute_debiased(x, y):
    return float(stream_blocks(x, y).compute_debiased())


def biased_hsic(k, h):
    n = len(k)
    centring = torch.eye(n, dtype=k.dtype) - 1 / n
    return float(torch.trace(k @ centring @ h @ centring))


def unbiased_hsic(k, h):
    """Song et al. (2012), Eq. 5, on Gram matrices."""
    n = len(k)
    k, h = k - torch.diag(k.diagonal()), h - torch.diag(h.diagonal())
    ones_vector = torch.ones(n, dtype=k.dtype)
    total = ones_vector @ k @ ones_vector * (ones_vector @ h @ ones_vector) / ((n - 1) * (n - 2))
    return float(
        (torch.trace(k @ h) + total - 2 / (n - 2) * (ones_vector @ k @ h @ ones_vector)) / (n * (n - 3))
    )


def kernel_cka(hsic, x, y):
    k, h = x @ x.T, y @ y.T
    return hsic(k, h) / math.sqrt(hsic(k, k) * hsic(h, h))


@given(SEEDS)
def test_cka_of_a_set_with_itself_is_1(seed):
    x = points(seed, 12, 5)
    assert cka(x, x) == pytest.approx(1)
    assert compute_debiased(x, x) == pytest.approx(1)


@pytest.mark.parametrize("similarity", [cka, compute_debiased])
@given(SEEDS)
def test_the_order_of_the_sides_does_not_count(similarity, seed):
    x, y = points(seed, 12, 5), related_points(seed)
    assert similarity(x, y) == pytest.approx(similarity(y, x))


@pytest.mark.parametrize("similarity", [cka, compute_debiased])
@given(SEEDS, st.floats(0.01, 100))
def test_rotation_scale_and_shift_do_not_count(similarity, seed, scale):
    x, y = points(seed, 12, 5), related_points(seed)
    moved_x = scale * x @ rotation(seed + 3, 5) + points(seed + 4, 1, 5)
    assert similarity(moved_x, y) == pytest.approx(similarity(x, y), rel=1e-6)


def test_a_general_linear_map_counts():
    x, y = points(0, 12, 5), related_points(0)
    stretched_x = x @ torch.diag(torch.tensor([10.0, 1, 1, 1, 0.1], dtype=x.dtype))
    assert abs(cka(stretched_x, y) - cka(x, y)) > 0.05
    assert cka(stretched_x, x) < 0.9


@given(SEEDS)
def test_it_is_the_ratio_of_kernel_statistics(seed):
    x, y = points(seed, 12, 5), related_points(seed)
    assert cka(x, y) == pytest.approx(kernel_cka(biased_hsic, x, y))


@given(SEEDS)
def test_the_debiased_form_is_song_and_others_equation_5(seed):
    x, y = points(seed, 12, 5), related_points(seed)
    assert compute_debiased(x, y) == pytest.approx(kernel_cka(unbiased_hsic, x, y))


def test_unrelated_states_have_high_cka_without_debiasing():
    pairs = [(points(seed, 20, 60), points(seed + 500, 20, 60)) for seed in range(50)]
    assert sum(cka(x, y) for x, y in pairs) / 50 > 0.7
    assert sum(compute_debiased(x, y) for x, y in pairs) / 50 == pytest.approx(0, abs=0.02)


@pytest.mark.slow
@given(SEEDS, st.lists(st.integers(1, 11), max_size=6))
def test_streamed_is_whole_wherever_it_is_cut(seed, cuts):
    x, y = points(seed, 12, 5) + 50, related_points(seed)
    x[6:] += 100  # Blocks whose means lie far apart.
    streamed_cka = stream_blocks(x, y, cuts)
    assert float(streamed_cka.compute()) == pytest.approx(kernel_cka(biased_hsic, x, y), rel=1e-9)
    assert float(streamed_cka.compute_debiased()) == pytest.approx(kernel_cka(unbiased_hsic, x, y), rel=1e-7)


@pytest.mark.slow
@given(SEEDS)
def test_layers_do_not_mix(seed):
    x, y = points(seed, 3, 12, 5), points(seed + 1, 3, 12, 4) + points(seed, 3, 12, 5)[..., :4]
    streamed_cka = stream_blocks(x, y, [5])
    assert streamed_cka.compute().tolist() == pytest.approx([cka(a, b) for a, b in zip(x, y, strict=True)])


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6])
def test_constant_states_have_no_cka(value):
    x, y = torch.full((9, 3), value), points(1, 9, 5).float()
    for streamed_cka in (stream_blocks(x, y), stream_blocks(y, x), stream_blocks(x, y, [4])):
        assert streamed_cka.compute().isnan().all()
        assert streamed_cka.compute_debiased().isnan().all()


def test_what_is_kept_does_not_grow():
    def count_kept(blocks):
        streamed_cka = StreamedCka()
        for seed in range(blocks):
            streamed_cka.add(points(seed, 2, 12, 5), points(seed + 1, 2, 12, 5))
        return sum(
            getattr(kept_sums, name).numel()
            for kept_sums in streamed_cka._kept
            for name in ("product", "third_x")
        )

    assert count_kept(1) == count_kept(7)


def test_nothing_added_is_an_error():
    with pytest.raises(ValueError, match="states"):
        StreamedCka().compute()


LINES = [" ".join(WORDS[start : start + 2 + start % 5]) for start in range(20)]
OTHERS = [" ".join(reversed(line.split())) for line in LINES]


def measure_cka(loaded, count=20, **fields):
    lines = {"de": OTHERS, "fr": LINES[1:] + LINES[:1]}
    setting = measure_setting(
        [loaded],
        languages=("en", "de", "fr"),
        bitext=lambda pair: translations(LINES, lines[pair[3:]])[:count],
    )
    return Cka(**fields).measure(setting)


@pytest.mark.slow
def test_rows_are_the_cka_of_pooled_states(loaded_encoder, monkeypatch):
    monkeypatch.setattr(parallel_states, "PAIRS_PER_BLOCK", 6)
    rows = measure_cka(loaded_encoder)
    assert [(row.second, row.layer) for row in rows] == [(x, n) for x in ("de", "fr") for n in range(4)]
    assert {(row.model, row.first, row.sentences) for row in rows} == {(subject("0").id, "en", 20)}
    x, y = (sentence_states(*loaded_encoder, lines, layers=range(4)) for lines in (LINES, OTHERS))
    expected = [cka(a, b) for a, b in zip(x, y, strict=True)]
    assert [row.cka for row in rows[:4]] == pytest.approx(expected, rel=1e-4)
    assert rows[0].cka > rows[4].cka  # The same words in another order, against other words.
    assert all(row.debiased < row.cka for row in rows)


def test_all_layers_come_from_one_pass(loaded_encoder):
    model, _ = loaded_encoder
    calls = []
    with_hook = model.base_model.register_forward_hook(lambda *_: calls.append(1))
    measure_cka(loaded_encoder, layers=(-1,))
    call_count = len(calls)
    measure_cka(loaded_encoder)
    with_hook.remove()
    assert len(calls) == 2 * call_count


def test_layers_are_numbered_from_the_embeddings(loaded_encoder):
    rows = measure_cka(loaded_encoder, layers=(-1, 0, 3))
    assert [row.layer for row in rows if row.second == "de"] == [3, 0]


def test_a_layer_that_is_not_there_is_named(loaded_encoder):
    with pytest.raises(ConfigError, match=r"cka: no layer 7: .*3.*0.*3"):
        measure_cka(loaded_encoder, layers=(7,))


def test_too_few_translations_are_an_error(loaded_encoder):
    with pytest.raises(DataError, match="3 translations en-de; 4"):
        measure_cka(loaded_encoder, count=3)
