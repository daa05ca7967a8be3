"""Bitext mining: what is known beforehand, brute force, and thresholds by trying them all."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import ComparableText
from isogloss.features.built_in_languages.corpora import split_translations
from isogloss.features.mining import diagnostic as module
from isogloss.features.mining import vectors as blocks
from isogloss.features.mining.diagnostic import (
    Mined,
    Mining,
    SentencePools,
    best_threshold,
    scores_at,
    unique_sides,
)
from isogloss.features.mining.rows import MiningRow
from isogloss.features.mining.vectors import MARGINS, mine
from isogloss.training import states
from measuring import WORDS, measure_setting, subject, translations

SEEDS = st.integers(0, 10_000)


def directions(seed, rows=12, dim=6):
    states = torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(states, dim=1)


def naive(x, y, k, margin):
    """Artetxe & Schwenk (2019, Eq. 2 and 3, "max"), a pair at a time."""
    cosine = {(i, j): float(x[i] @ y[j]) for i, j in product(range(len(x)), range(len(y)))}

    def list_neighbours(i):
        return sorted(range(len(y)), key=lambda j: -cosine[i, j])[:k]

    def to(j):
        return sorted(range(len(x)), key=lambda i: -cosine[i, j])[:k]

    def score(i, j):
        around = [cosine[i, z] / len(list_neighbours(i)) / 2 for z in list_neighbours(i)] + [
            cosine[z, j] / len(to(j)) / 2 for z in to(j)
        ]
        match margin:
            case "ratio":
                return cosine[i, j] / max(sum(around), 1e-6)
            case "distance":
                return cosine[i, j] - sum(around)
            case _:
                return cosine[i, j]

    proposed_scores = [max((score(i, j), i, j) for j in list_neighbours(i)) for i in range(len(x))]
    proposed_scores += [max((score(i, j), i, j) for i in to(j)) for j in range(len(y))]
    kept_values = []
    for best_proposed_score, i, j in sorted(proposed_scores, reverse=True):
        if not any(i == left or j == right for _, left, right in kept_values):
            kept_values.append((best_proposed_score, i, j))
    return kept_values


@pytest.mark.slow
@settings(max_examples=40)
@given(
    SEEDS,
    st.sampled_from(sorted(MARGINS)),
    st.sampled_from([1, 3, 4, 50]),
    st.sampled_from([1, 5, 4096]),
    st.integers(1, 12),
)
def test_pairs_and_scores_are_brute_force_whatever_the_blocks(seed, margin, neighbours, block, other_items):
    x = directions(seed)
    y = directions(seed + 1, other_items)
    cosine_block_before = blocks.COSINE_BLOCK
    blocks.COSINE_BLOCK = block
    try:
        pairs, scores = mine(x, y, neighbours=neighbours, margin=margin)
    finally:
        blocks.COSINE_BLOCK = cosine_block_before
    expected = naive(x, y, neighbours, margin)
    # With one neighbour, mutual pairs have equal scores, in any order.
    assert sorted(pairs.tolist()) == sorted([i, j] for _, i, j in expected)
    np.testing.assert_allclose(scores, [score for score, _, _ in expected], rtol=1e-9)


@settings(max_examples=20)
@given(SEEDS)
def test_sides_can_be_exchanged(seed):
    x = directions(seed)
    y = directions(seed + 1, 9)
    pair, scores = mine(x, y)
    back, again = mine(y, x)
    assert sorted(pair.tolist()) == sorted(back.flip(1).tolist())
    torch.testing.assert_close(scores, again)


@given(SEEDS)
def test_each_sentence_is_in_one_pair_at_most(seed):
    pairs, scores = mine(directions(seed), directions(seed + 1, 20))
    assert all(len(set(side)) == len(pairs) for side in pairs.T.tolist())
    assert scores.tolist() == sorted(scores.tolist(), reverse=True)


def mined_of(pairs, scores, gold, rows=0):
    correct = torch.tensor([tuple(pair) in gold for pair in pairs.tolist()])
    return Mined(scores, correct, SentencePools(["a"] * rows, ["b"] * rows, gold))


@settings(max_examples=20)
@given(SEEDS, st.sampled_from(sorted(MARGINS)))
def test_identical_sides_are_mined_whole(seed, margin):
    x = directions(seed, dim=64)
    mined_value = mined_of(*mine(x, x.clone(), margin=margin), {(n, n) for n in range(12)})
    assert scores_at(mined_value, best_threshold(mined_value)) == (12, 1, 1, 1)


@settings(max_examples=20)
@given(SEEDS)
def test_f1_falls_with_every_gold_pair_that_is_moved(seed):
    x = directions(seed, dim=64)
    reached_scores = []
    for moved_index in range(0, 13, 3):
        gold = {(n, n if n >= moved_index else (n + 1) % 12 + 100) for n in range(12)}
        mined_value = mined_of(*mine(x, x.clone()), gold)
        reached_scores.append(scores_at(mined_value, best_threshold(mined_value))[3])
    assert reached_scores[0] == 1
    assert reached_scores[-1] == 0
    assert all(left > right for left, right in pairwise(reached_scores))


def test_unrelated_sides_are_found_by_chance():
    result = []
    for seed in range(60):
        pairs, scores = mine(directions(seed, 40), directions(seed + 1000, 40))
        mined_value = mined_of(pairs, scores, {(n, n) for n in range(40)})
        result.append(scores_at(mined_value, float("-inf"))[1])
    assert sum(result) / 60 == pytest.approx(1 / 40, abs=0.012)


SCORES = st.lists(
    st.tuples(st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 2.0]), st.booleans()), min_size=1, max_size=12
)


@given(SCORES, st.integers(0, 5))
def test_no_threshold_is_better_than_the_one_chosen(samples, missed_value):
    samples = sorted(samples, reverse=True)
    scores = torch.tensor([score for score, _ in samples], dtype=torch.float64)
    correct = torch.tensor([right for _, right in samples])
    gold = {(n, n) for n in range(max(1, int(correct.sum()) + missed_value))}
    mined_value = Mined(scores, correct, SentencePools([], [], gold))
    tried_ratios = {}
    for threshold in [0.25, *sorted({score for score, _ in samples})]:
        taken_rights = [right for score, right in samples if score >= threshold]
        right = sum(taken_rights)
        precision = right / len(taken_rights)
        recall = right / len(gold)
        tried_ratios[threshold] = 2 * precision * recall / (precision + recall) if right else 0
        assert scores_at(mined_value, threshold) == (
            len(taken_rights),
            precision,
            recall,
            pytest.approx(tried_ratios[threshold]),
        )
    assert scores_at(mined_value, best_threshold(mined_value))[3] == pytest.approx(max(tried_ratios.values()))


def test_a_threshold_lies_between_the_last_pair_taken_and_the_next():
    scores = torch.tensor([1.5, 1.25, 1.0]).double()
    right = torch.tensor([True, True, False])
    assert best_threshold(Mined(scores, right, SentencePools([], [], {(0, 0), (1, 1)}))) == 1.125
    assert best_threshold(Mined(scores[:2], right[:2], SentencePools([], [], {(0, 0), (1, 1)}))) == 1.25


def test_a_threshold_that_nothing_passes_mines_nothing():
    mined_value = Mined(torch.tensor([1.0]).double(), torch.tensor([True]), SentencePools([], [], {(0, 0)}))
    assert scores_at(mined_value, 2.0) == (0, 0, 0, 0)


def test_a_ratio_keeps_the_sign_of_its_cosine():
    x = torch.eye(2).double()
    assert mine(x, -x, neighbours=2)[1].max() == 0
    assert mine(x, -x[:1], neighbours=2)[1].min() <= 0


TEXTS = [("1", "a", "b"), ("2", "a", ""), ("3", "c", "d"), ("4", "", "e"), ("5", "a", "b"), ("6", "c", "b")]


@given(st.permutations(TEXTS))
def test_sentences_that_stand_twice_are_one_and_their_order_is_lost(texts):
    sides = unique_sides([ComparableText(id=name, first=a, second=b) for name, a, b in texts])
    assert sides == SentencePools(["a", "c"], ["b", "d", "e"], {(0, 0), (1, 1), (1, 0)})


LINES = [" ".join(WORDS[index : index + 4]) for index in range(18)]


def measure_mining(loaded_encoder, comparable, split="dev", **fields):
    pairs = []

    def read(pair, split):
        pairs.append((pair, split))
        return comparable(split)

    setting = measure_setting([loaded_encoder], languages=("en", "de", "fr"))
    return Mining(**fields).measure(replace(setting, comparable=read, split=split)), pairs


def same(_):
    return list(split_translations(translations(LINES, LINES)))


def test_each_pair_has_rows_of_dev_and_of_the_split_asked_for(loaded_encoder):
    rows, comparable = measure_mining(loaded_encoder, same, "test", layers=(0, -1))
    assert comparable == [(pair, split) for pair in ("en-de", "en-fr") for split in ("dev", "test")]
    assert [(row.second, row.split, row.layer) for row in rows] == [
        (second, split, layer) for second in ("de", "fr") for split in ("dev", "test") for layer in (0, -1)
    ]
    assert rows[-1] == MiningRow(
        model=subject("0").id,
        first="en",
        second="fr",
        split="test",
        layer=-1,
        centred=False,
        margin="ratio",
        neighbours=4,
        sentences_first=12,
        sentences_second=12,
        gold=6,
        mined=rows[-1].mined,
        threshold=rows[-1].threshold,
        precision=rows[-1].precision,
        recall=1.0,
        f1=rows[-1].f1,
    )
    assert all(row.f1 > 0.6 for row in rows)


def test_dev_s_threshold_is_applied_to_test(loaded_encoder):
    wrong = list(split_translations(translations(LINES, LINES[1:] + LINES[:1])))
    rows, _ = measure_mining(loaded_encoder, lambda split: same(split) if split == "dev" else wrong, "test")
    dev, test = rows[:2]
    own_row, _ = measure_mining(loaded_encoder, lambda _: wrong)[0]
    assert test.threshold == dev.threshold != own_row.threshold
    assert test.f1 <= own_row.f1 < dev.f1
    single_comparable, comparable = measure_mining(loaded_encoder, same)
    assert comparable == [("en-de", "dev"), ("en-fr", "dev")]
    assert single_comparable == [rows[0], rows[2]]


def test_a_difference_between_languages_does_not_count_where_they_are_centred(loaded_encoder, monkeypatch):
    plain_sentence_states = states.sentence_states
    turns = iter(range(100))

    def move_states(*inputs, **options):
        return plain_sentence_states(*inputs, **options) + 50 * torch.eye(32)[next(turns) % 2]

    comparable_before, _ = measure_mining(loaded_encoder, same, centred=True)
    monkeypatch.setattr(states, "sentence_states", move_states)
    comparable_after, _ = measure_mining(loaded_encoder, same, centred=True)
    assert [row.f1 for row in comparable_after] == [row.f1 for row in comparable_before]


def test_states_are_computed_a_part_at_a_time(loaded_encoder, monkeypatch):
    whole_comparable, _ = measure_mining(loaded_encoder, same, layers=(0, 1))
    monkeypatch.setattr(module, "SENTENCES_IN_MEMORY", 5)
    parts, _ = measure_mining(loaded_encoder, same, layers=(0, 1))
    assert [(row.mined, row.f1) for row in parts] == [(row.mined, row.f1) for row in whole_comparable]


def test_text_without_any_translation_is_an_error(loaded_encoder):
    with pytest.raises(DataError, match="mining: en-de dev:"):
        measure_mining(loaded_encoder, lambda _: [ComparableText(id="1", first="a", second="")])


def test_an_unknown_margin_is_refused():
    with pytest.raises(ConfigError, match=r"mining: .*'ration'.*'ratio'"):
        Mining(margin="ration")
