"""Lexicons equal the formulas, computed word by word, and the lexicons of a port of fast_align."""

import os
from collections import defaultdict
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from each import each
from isogloss.features.statistical_alignment.fast_align import (
    UNSEEN,
    EMSettings,
    TranslationTable,
    best_links,
    joint,
    learn_lexicons,
)

sentence = st.lists(st.integers(1, 4), min_size=1, max_size=4)
trainings = st.builds(
    EMSettings,
    rounds=st.integers(0, 3),
    tension=st.floats(0, 8),
    prior=st.sampled_from([0.0, 0.01, 0.5]),
    none=st.floats(0.01, 0.5),
)


def numbers(pairs):
    return [tuple(np.array(side, dtype=np.int64) for side in pair) for pair in pairs]


def as_table(lexicon):
    return {
        (int(key) >> 32, int(key) & 0xFFFFFFFF): float(probability)
        for key, probability in zip(lexicon.keys, lexicon.probabilities, strict=True)
    }


def train_slowly(pairs, training):
    """Learn t(f|e) with dictionaries, as the paper writes it."""
    table = defaultdict(lambda: UNSEEN)
    for _ in range(training.rounds):
        counts = defaultdict(float)
        for given_words, made_words in pairs:
            n = len(given_words)
            measurements = len(made_words)
            for j, made_word in enumerate(made_words, 1):
                near_powers = [
                    exp(-training.tension * abs(i / n - j / measurements)) for i in range(1, n + 1)
                ]
                prior = [
                    training.none,
                    *((1 - training.none) * near_power / sum(near_powers) for near_power in near_powers),
                ]
                words = (0, *given_words)
                joint = [p * table[e, made_word] for p, e in zip(prior, words, strict=True)]
                for e, value in zip(words, joint, strict=True):
                    counts[e, made_word] += value / sum(joint)
        sums = defaultdict(float)
        sizes = defaultdict(int)
        for (e, _), count in counts.items():
            sums[e] += count
            sizes[e] += 1
        alpha = training.prior
        for (e, f), count in counts.items():
            total = sums[e] + alpha * sizes[e]
            table[e, f] = exp(digamma(count + alpha) - digamma(total)) if alpha else count / total
    return {pair: value for pair, value in table.items() if value > UNSEEN}


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5), trainings)
def test_lexicons_are_the_papers_sums(pairs, training):
    turned_pairs = [pair[::-1] for pair in pairs]
    for lexicon, way in zip(
        learn_lexicons(numbers(pairs), training, lambda _: None), (pairs, turned_pairs), strict=True
    ):
        assert list(lexicon.keys) == sorted(lexicon.keys)
        fields = train_slowly(way, training)
        probabilities = as_table(lexicon)
        for pair in (
            fields.keys() | probabilities.keys()
        ):  # A probability of UNSEEN itself may fall on either side.
            assert probabilities.get(pair, UNSEEN) == pytest.approx(fields.get(pair, UNSEEN), rel=1e-5)


def test_rounds_of_both_directions_are_told():
    reports = []
    learn_lexicons(
        numbers([([1, 2], [1, 2])]), EMSettings(rounds=3, tension=4, prior=0.01, none=0.1), reports.append
    )
    assert reports == [1, 2, 3, 4, 5, 6]


def test_many_pairs_are_learned_in_parts_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.integers(1, 9, rng.integers(1, 6)) for _ in range(2)) for _ in range(60)]
    training = EMSettings(rounds=3, tension=4, prior=0.01, none=0.1)
    whole_lexicons = learn_lexicons(pairs, training, lambda _: None)
    monkeypatch.setattr("isogloss.features.statistical_alignment.fast_align.WORD_PAIRS_PER_CHUNK", 20)
    for left, right in each(
        zip(whole_lexicons, learn_lexicons(pairs, training, lambda _: None), strict=True)
    ):
        assert np.array_equal(left.keys, right.keys)
        assert left.probabilities == pytest.approx(right.probabilities, rel=1e-5)


@pytest.fixture
def one_core():
    """Give this process one core: on several, the port's threads lose what they add to a sum at once."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


@pytest.mark.parametrize("prior", [0.0, 0.01])
def test_lexicons_are_those_of_the_port_of_fast_align(tmp_path, prior, one_core):
    library = pytest.importorskip("systran_align")
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.integers(1, 12, rng.integers(1, 7)) for _ in range(2)) for _ in range(100)]
    text, *files = (tmp_path / name for name in ("text", "forward", "backward"))
    lines = (f"{' '.join(f'a{e}' for e in item)} ||| {' '.join(f'b{f}' for f in two)}" for item, two in pairs)
    text.write_text("".join(f"{line}\n" for line in lines))
    library.generate_alignment_probabilities(
        str(text),
        *(str(file) for file in files),
        iterations=4,
        favor_diagonal=True,
        beam_threshold=-30,
        variational_bayes=prior > 0,
        alpha=prior or 0.01,
    )
    training = EMSettings(rounds=3, tension=4.0, prior=prior, none=0.08)
    for path, ours in each(zip(files, learn_lexicons(pairs, training, lambda _: None), strict=True)):
        theirs, probabilities = lexicon_of(path), as_table(ours)  # Its last round links, and learns nothing.
        assert len(theirs) > 100
        for pair in theirs.keys() | probabilities.keys():
            assert probabilities.get(pair, 0) == pytest.approx(theirs.get(pair, 0), rel=1e-4, abs=1e-6)


def lexicon_of(path):
    """Read a file of the port: its words, each ended by a zero byte, then a row of entries for each.

    Rows begin with their word and length; entries are a word and its probability. Words count from 1.
    """
    content = path.read_bytes()
    words = []
    place = 8
    for _ in range(int.from_bytes(content[4:8], "little")):
        end = content.index(b"\0", place)
        words.append(content[place:end].decode("ascii"))
        place = end + 1
    ours = [-1, *(0 if word == "<eps>" else int(word[1:]) if word[1:].isdigit() else -1 for word in words)]
    place += 4
    result = {}
    while place < len(content):
        word, size = np.frombuffer(content, "<i4", 2, place).tolist()
        row = np.frombuffer(content, [("word", "<i4"), ("probability", "<f4")], size, place + 8)
        result |= {(ours[word], ours[item["word"]]): float(item["probability"]) for item in row}
        place += 8 + size * row.itemsize
    return result


words = st.lists(st.integers(-1, 4).filter(bool), min_size=1, max_size=5).map(
    lambda numbers: np.array(numbers, dtype=np.int64)
)
entries = st.dictionaries(
    st.tuples(st.integers(0, 4), st.integers(1, 4)), st.floats(2**-10, 1, width=32), max_size=12
)


def lexicon(table):
    keys, result = (np.array([key[side] for key in table], dtype=np.int64) for side in (0, 1))
    return TranslationTable.of(keys, result, np.array(list(table.values()), dtype=np.float32))


@given(entries, st.lists(st.tuples(words, words), max_size=3), st.floats(0, 10), st.floats(0.01, 0.5))
def test_joint_is_the_papers_product_cell_by_cell(table, pairs, tension, none):
    joints = list(joint(lexicon(table), pairs, tension=tension, none=none))
    assert len(joints) == len(pairs)
    for (source, other_pair), matrix in zip(pairs, joints, strict=True):
        n = len(source)
        count = len(other_pair)
        for j in range(count):
            near_powers = [exp(-tension * abs((i + 1) / n - (j + 1) / count)) for i in range(n)]
            prior = [none, *((1 - none) * near_power / sum(near_powers) for near_power in near_powers)]
            request = [
                p * table.get((int(e), int(other_pair[j])), UNSEEN)
                for p, e in zip(prior, (0, *source), strict=True)
            ]
            assert matrix[j].tolist() == pytest.approx(request)


def test_best_links_leave_out_words_that_come_from_none():
    result = best_links(np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.2, 0.2, 0.6]]))
    assert result == {(0, 0): pytest.approx(0.6), (1, 2): pytest.approx(0.6)}


def test_many_pairs_are_looked_up_in_parts_with_the_same_result(monkeypatch):
    table = {(e, f): (e + f + 1) / 10 for e in range(5) for f in range(1, 5)}
    pairs = [(np.array([1, 2, n % 4 + 1]), np.array([n % 3 + 1, 4])) for n in range(20)]
    whole_parts = list(joint(lexicon(table), pairs, tension=4.0, none=0.1))
    monkeypatch.setattr("isogloss.features.statistical_alignment.fast_align.WORD_PAIRS_PER_CHUNK", 20)
    parts = list(joint(lexicon(table), pairs, tension=4.0, none=0.1))
    assert all(np.array_equal(whole_part, part) for whole_part, part in zip(whole_parts, parts, strict=True))
