"""Sources by nearest states (NN-Rank): brute force, ties, the error over sentences, and doubts."""

from math import isnan, nan, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.features.choosing.nearest_sources import NearestSource, explain_doubt, states_of_examples
from isogloss.functional.states import States
from says import says

SEEDS = st.integers(0, 10_000)


def draw_states(seed, items, dim=6):
    return np.random.default_rng(seed).normal(size=(items, dim))


def count_neighbours(target, candidates, neighbours):
    """Return the share of each candidate among the neighbours, an item at a time."""
    size = min(len(rows) for rows in candidates.values())
    counts = dict.fromkeys(candidates, 0)
    for item in target:
        cosines = [
            (float(item @ row / np.linalg.norm(item) / np.linalg.norm(row)), language)
            for language, rows in candidates.items()
            for row in rows[:size]
        ]
        for _, language in sorted(cosines, reverse=True)[:neighbours]:
            counts[language] += 1
    return {language: count / neighbours / len(target) for language, count in counts.items()}


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([1, 2, 5]), st.lists(st.integers(3, 9), min_size=2, max_size=4))
def test_shares_are_those_of_brute_force(seed, neighbours, sizes):
    target = draw_states(seed, 7)
    candidates = {f"l{index}": draw_states((seed, index), size) for index, size in enumerate(sizes)}
    ranking = isogloss.rank_sources_by_states(target, candidates, neighbours=neighbours)
    expected = count_neighbours(target, candidates, neighbours)
    assert {row.language: row.share for row in ranking} == pytest.approx(expected)
    assert [row.share for row in ranking] == pytest.approx(sorted(expected.values(), reverse=True))
    assert [row.behind for row in ranking] == pytest.approx([ranking[0].share - row.share for row in ranking])


@given(SEEDS)
def test_length_of_states_and_order_of_candidates_do_not_matter(seed):
    target = draw_states(seed, 8)
    candidates = {language: draw_states((seed, index), 5) for index, language in enumerate("abc")}
    ranking = isogloss.rank_sources_by_states(target, candidates)
    turned = {language: 7 * rows for language, rows in reversed(candidates.items())}
    again = isogloss.rank_sources_by_states(target / 3, turned)
    shares = {row.language: row.share for row in ranking}
    assert shares == pytest.approx({row.language: row.share for row in again})
    assert sum(shares.values()) == pytest.approx(1)


def test_rows_that_tie_share_the_places():
    target = np.eye(3)[:1]
    same = np.eye(3)[[0, 0]]
    ranking = isogloss.rank_sources_by_states(
        target, {"a": same, "b": same, "c": np.eye(3)[1:]}, neighbours=2
    )
    assert [(row.language, row.share) for row in ranking] == [("a", 0.5), ("b", 0.5), ("c", 0)]


def test_a_larger_candidate_has_no_more_places():
    target = draw_states(0, 40)
    rows = draw_states(1, 300)
    small = draw_states(2, 30)
    ranking = isogloss.rank_sources_by_states(target, {"large": rows, "small": small})
    assert ranking == isogloss.rank_sources_by_states(target, {"large": rows[:30], "small": small})


def test_centring_removes_what_all_states_of_a_language_share():
    target = draw_states(0, 30)
    candidates = {"a": draw_states(1, 30), "b": draw_states(2, 30)}
    moved = {language: rows + 9 * index for index, (language, rows) in enumerate(candidates.items())}
    first = isogloss.rank_sources_by_states(target, candidates, centred=True)
    second = isogloss.rank_sources_by_states(target + 4, moved, centred=True)
    assert [row.share for row in first] == pytest.approx([row.share for row in second])


def test_the_error_is_over_sentences():
    vectors = torch.eye(2)[[0, 0, 1, 0, 1, 1, 1]].unsqueeze(0)
    sentences = (0, 0, 0, 1, 2, 2, 2)
    target = States(vectors, layers=(4,), precision="float32", sentences=sentences)
    candidates = {"a": torch.eye(2)[:1], "b": torch.eye(2)[1:]}
    first, second = isogloss.rank_sources_by_states(target, candidates, neighbours=1)
    assert (first.language, second.language) == ("b", "a")
    assert isnan(first.error)
    differences = np.array([-1, -1, 1, -1, 1, 1, 1])
    centred = differences - differences.mean()
    sums = [centred[np.array(sentences) == sentence].sum() for sentence in range(3)]
    assert second.error == pytest.approx(sqrt(sum(x * x for x in sums) * 3 / 2) / 7)
    assert second.behind == pytest.approx(1 / 7)


@pytest.mark.parametrize(
    ("others", "facts"),
    [
        ([("fr", 0.4, 0.02)], ()),
        ([("fr", 0.02, 0.02)], ("es", "fr", "4 points")),
        ([("fr", 0.02, 0.02), ("it", 0.1, 0.07), ("de", 0.2, 0.01)], ("es", "fr", "it", "14 points")),
        ([("fr", 0.4, nan)], ("sentence",)),
        ([], ("one",)),
    ],
)
def test_the_first_is_a_choice_where_more_than_chance_puts_it_first(others, facts):
    ranking = [NearestSource("es", 0.5, 0.0, nan)]
    ranking += [NearestSource(language, 0.5 - behind, behind, error) for language, behind, error in others]
    doubt = explain_doubt(ranking)
    assert bool(doubt) == bool(facts)
    assert all(fact in doubt for fact in facts)
    assert "de" not in doubt


@pytest.mark.slow
def test_without_a_difference_the_first_is_seldom_a_choice():
    chosen = 0
    for seed in range(100):
        target = draw_states(seed, 60)
        candidates = {language: draw_states((seed, language), 40) for language in (1, 2)}
        ranking = isogloss.rank_sources_by_states(
            target, {str(number): rows for number, rows in candidates.items()}
        )
        chosen += not explain_doubt(ranking)
    assert chosen <= 10


WRONG = {
    "no candidates": (np.ones((2, 3)), {}, {}, ConfigError, ("candidates",)),
    "states of two encoders": (np.ones((2, 3)), {"fr": np.ones((9, 4))}, {}, DataError, ("fr", "4", "3")),
    "too few items": (np.ones((2, 3)), {"fr": np.ones((2, 3))}, {}, DataError, ("1", "2", "5")),
    "a layer that is missing": (np.ones((2, 3)), {"fr": np.ones((9, 3))}, {"layer": 3}, ConfigError, ("3",)),
    "no neighbours": (np.ones((2, 3)), {"fr": np.ones((9, 3))}, {"neighbours": 0}, ConfigError, ("0",)),
    "numbers that are not finite": (
        np.full((2, 3), nan),
        {"fr": np.ones((9, 3))},
        {},
        DataError,
        ("target",),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_be_ranked_is_refused(case):
    target, candidates, options, error, facts = WRONG[case]
    with says(error, "rank_sources_by_states", *facts):
        isogloss.rank_sources_by_states(target, candidates, **options)


@pytest.mark.slow
def test_words_are_their_first_subword_and_texts_their_mean():
    model, tokenizer = isogloss.load_encoder("shipped")
    sentences = isogloss.load_corpus("ud", "qaa", "test", examples=3)
    of_words = states_of_examples(model, tokenizer, sentences, "qaa")
    assert len(of_words) == sum(len(sentence.words) for sentence in sentences)
    expected = isogloss.states(model, tokenizer, [x.words for x in sentences], words="first", layers=[-1])
    torch.testing.assert_close(of_words.vectors, expected.vectors)
    pairs = isogloss.load_corpus("xnli", "qaa", "test", examples=3)
    of_texts = states_of_examples(model, tokenizer, pairs, "qaa")
    assert len(of_texts) == 3 and of_texts.sentences is None
