import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from looks import look_at

from isogloss.core.errors import DataError
from isogloss.data.examples import Translation
from isogloss.diagnostics.retrieval import Retrieval, nearest_is_translation
from isogloss.encoders import load_masked_lm, load_tokenizer
from made_up import TEXT

SEEDS = st.integers(0, 10_000)


def points(seed, rows=12, dim=6):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed))


@given(SEEDS)
def test_identical_sides_are_found_always(seed):
    x = points(seed)
    assert nearest_is_translation(x, x.clone()) == 1.0


@given(SEEDS)
def test_sides_in_another_order_are_found_only_where_they_stayed(seed):
    x = points(seed)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed + 1))
    assert nearest_is_translation(x, x[order]) == float((order == torch.arange(len(x))).float().mean())


def test_unrelated_sides_are_found_by_chance():
    found = [nearest_is_translation(points(seed, 50), points(seed + 1000, 50)) for seed in range(200)]
    assert sum(found) / 200 == pytest.approx(1 / 50, abs=0.006)


@settings(deadline=None)
@given(SEEDS)
def test_a_constant_difference_scale_and_rotation_do_not_count(seed):
    x, y = points(seed), points(seed) + 0.3 * points(seed + 1)
    before = nearest_is_translation(x, y)
    turn, _ = torch.linalg.qr(points(seed + 2, 6))
    assert nearest_is_translation(x + 100, y - 50) == before
    assert nearest_is_translation(5 * x, 0.1 * y) == before
    assert nearest_is_translation(x @ turn, y @ turn) == before


@given(SEEDS)
def test_renumbering_both_sides_changes_nothing(seed):
    x, y = points(seed), points(seed) + points(seed + 1)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    assert nearest_is_translation(x[order], y[order]) == pytest.approx(nearest_is_translation(x, y))


@given(SEEDS)
def test_it_is_brute_force(seed):
    x, y = points(seed), points(seed) + points(seed + 1)
    a, b = x - x.mean(dim=0), y - y.mean(dim=0)
    right = 0
    for number, one in enumerate(a):
        similar = [float(torch.cosine_similarity(one, other, dim=0)) for other in b]
        right += similar.index(max(similar)) == number
    assert nearest_is_translation(x, y) == pytest.approx(right / len(x))


@pytest.fixture
def loaded(encoder_folder):
    return load_masked_lm(encoder_folder), load_tokenizer(encoder_folder)


LINES = [" ".join(TEXT.split()[a:b]) for a, b in ((0, 3), (4, 12), (2, 4), (8, 16), (1, 7), (10, 14))]


def measured(loaded, pairs, **fields):
    asked = []

    def bitext(pair):
        asked.append(pair)
        return [Translation(id=str(n), first=a, second=b) for n, (a, b) in enumerate(pairs)]

    look = look_at([loaded], languages=("en", "de", "fr"), columns={"encoder": "tiny"}, bitext=bitext)
    return Retrieval(**fields).measure(look), asked


@pytest.mark.parametrize("layer", [-1, 0, 2])
def test_every_language_is_compared_with_the_first(loaded, layer):
    rows, asked = measured(loaded, [(line, line) for line in LINES], layer=layer)
    assert asked == ["en-de", "en-fr"]
    assert rows == [
        {
            "encoder": "tiny",
            "first": "en",
            "second": second,
            "layer": layer,
            "candidates": 6,
            "accuracy_forward": 1.0,
            "accuracy_backward": 1.0,
            "chance": 1 / 6,
        }
        for second in ("de", "fr")
    ]


def test_shuffled_translations_are_not_found(loaded):
    rows, _ = measured(loaded, list(zip(LINES, [*LINES[1:], LINES[0]], strict=True)))
    assert {row["accuracy_forward"] for row in rows} == {0.0}


def test_no_translations_are_an_error(loaded):
    with pytest.raises(DataError, match="no translations en-de"):
        measured(loaded, [])
