import random
import struct
import sys
from math import lgamma, log

import numpy as np
import pytest

from isogloss.aligners import AlignSetting
from isogloss.aligners.diagonal_model import joint
from isogloss.aligners.fast_align import FastAlign, read_lexicon
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import Translation
from isogloss.data.symmetrization import SYMMETRIZATIONS

systran_align = pytest.importorskip("systran_align")

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def made_up(count=200, seed=0):
    """Sentences in a language whose words stand the other way round in pairs: their links are known."""
    rng = random.Random(seed)
    for number in range(count):
        words = rng.sample(NUMBERS, rng.randint(2, 6))
        order = [place ^ 1 if place ^ 1 < len(words) else place for place in range(len(words))]
        yield Translation(
            id=f"{number}",
            first=" ".join(words),
            second=" ".join(words[place][::-1] for place in order),
            links=tuple(sorted((place, order.index(place)) for place in range(len(words)))),
        )


PAIRS = list(made_up())


def align(pairs, folder, **fields):
    return FastAlign(**fields).align(AlignSetting(pairs=pairs, folder=folder))


@pytest.mark.parametrize("how", SYMMETRIZATIONS)
def test_words_that_always_come_together_are_linked(tmp_path, how):
    made = align(PAIRS, tmp_path, symmetrization=how)
    right = sum(aligned.links == pair.links for aligned, pair in zip(made, PAIRS, strict=True))
    assert right >= 0.95 * len(PAIRS)


def test_new_pairs_are_aligned_with_what_was_kept(tmp_path):
    made = align(PAIRS, tmp_path)
    setting = AlignSetting(pairs=PAIRS, folder=tmp_path)
    assert FastAlign().align_new(setting) == made
    new = list(made_up(20, seed=1))
    found = FastAlign().align_new(AlignSetting(pairs=new, folder=tmp_path))
    assert sum(aligned.links == pair.links for aligned, pair in zip(found, new, strict=True)) >= 18


def test_aligning_again_gives_the_same(tmp_path):
    assert align(PAIRS, tmp_path / "a") == align(PAIRS, tmp_path / "b")


def test_intersection_is_one_to_one_and_scores_are_shares(tmp_path):
    for aligned in align(PAIRS, tmp_path):
        assert len({i for i, _ in aligned.links}) == len({j for _, j in aligned.links}) == len(aligned.links)
        assert len(aligned.scores) == len(aligned.links)
        assert all(0 < score <= 1 for score in aligned.scores)


def test_exchanged_languages_exchange_the_directions(tmp_path):
    turned = [Translation(id=pair.id, first=pair.second, second=pair.first) for pair in PAIRS]
    one = align(PAIRS, tmp_path / "a", symmetrization="forward")
    other = align(turned, tmp_path / "b", symmetrization="backward")
    for here, there in zip(one, other, strict=True):
        assert sorted((j, i) for i, j in there.links) == list(here.links)


def test_our_reading_of_the_lexicon_gives_the_librarys_own_probabilities(tmp_path):
    text, forward, backward = (tmp_path / name for name in ("text", "forward", "backward"))
    number = {word: n for n, word in enumerate([*NUMBERS, *(word[::-1] for word in NUMBERS)], 1)}
    coded = [
        [[f"a{number[word]}" for word in side.split()] for side in (pair.first, pair.second)]
        for pair in PAIRS
    ]
    text.write_text("".join(f"{' '.join(first)} ||| {' '.join(second)}\n" for first, second in coded))
    systran_align.generate_alignment_probabilities(
        str(text), str(forward), str(backward), favor_diagonal=True
    )
    for path in (forward, backward):  # It reads the last row twice, so let that be one without entries.
        path.write_bytes(path.read_bytes() + struct.pack("<ii", 1, 0))
    library = systran_align.Aligner(str(forward), str(backward))
    for first, second in coded[:20]:
        said = library.align(first, second)
        given, made = (np.array([int(word[1:]) for word in side]) for side in (first, second))
        for path, pair, key in (
            (forward, (given, made), "forward_log_prob"),
            (backward, (made, given), "backward_log_prob"),
        ):
            (matrix,) = joint(read_lexicon(path), [pair], tension=4.0, none=0.08)
            rate, length = 0.05 + len(pair[0]), len(pair[1])  # The library adds how likely the length is.
            poisson = length * log(rate) - lgamma(length + 1) - rate
            assert np.log(matrix.sum(axis=1)).sum() + poisson == pytest.approx(said[key], abs=1e-4)


def test_a_side_without_words_has_no_links_and_odd_words_do_no_harm(tmp_path):
    odd = [
        Translation(id="x", first=first, second=second)
        for first, second in (("", "a"), ("||| <eps>", "<eps> a0"))
    ]
    made = align([*odd, *PAIRS], tmp_path)
    assert made[0].links == ()
    assert len(made) == len(PAIRS) + 2
    assert [one.links for one in align(odd[:1], tmp_path)] == [()]
    assert align([], tmp_path) == []


def test_capitals_count_as_small_letters_unless_said(tmp_path):
    mixed = [Translation(id=pair.id, first=pair.first.upper(), second=pair.second) for pair in PAIRS[:20]]
    align(PAIRS, tmp_path)
    setting = AlignSetting(pairs=mixed, folder=tmp_path)
    small = AlignSetting(pairs=PAIRS[:20], folder=tmp_path)
    assert FastAlign().align_new(setting) == FastAlign().align_new(small)
    assert FastAlign(lowercase=False).align_new(setting) != FastAlign().align_new(small)


def test_without_the_library_the_error_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "systran_align", None)
    with pytest.raises(ConfigError, match=r"pip install systran-align, or.* choose the aligner encoder"):
        align(PAIRS, tmp_path)


def test_new_pairs_need_no_library(tmp_path, monkeypatch):
    made = align(PAIRS, tmp_path)
    monkeypatch.setitem(sys.modules, "systran_align", None)
    assert FastAlign().align_new(AlignSetting(pairs=PAIRS, folder=tmp_path)) == made


@pytest.mark.parametrize("damage", [None, "fast-align.npz", "fast-align.json"])
def test_a_folder_without_a_whole_model_is_said(tmp_path, damage):
    if damage:
        align(PAIRS[:9], tmp_path)
        (tmp_path / damage).write_bytes(b"PK")
    with pytest.raises(DataError, match="no whole alignment model is here"):
        FastAlign().align_new(AlignSetting(pairs=PAIRS, folder=tmp_path))
