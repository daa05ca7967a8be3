import random
from dataclasses import replace

import pytest

from each import each
from isogloss.aligners.fast_align import FastAlign
from isogloss.aligners.setting import AlignSetting
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import SYMMETRIZATIONS

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


def align(pairs, **fields):
    return FastAlign(**fields).align(AlignSetting(pairs=pairs))


@pytest.mark.parametrize("how", SYMMETRIZATIONS)
def test_words_that_always_come_together_are_linked(how):
    made = align(PAIRS, symmetrization=how)
    right = sum(aligned.links == pair.links for aligned, pair in zip(made, PAIRS, strict=True))
    assert right >= 0.95 * len(PAIRS)


def test_aligning_again_gives_the_same():
    assert align(PAIRS) == align(PAIRS)


def test_intersection_is_one_to_one_and_scores_are_shares():
    for aligned in each(align(PAIRS)):
        assert len({i for i, _ in aligned.links}) == len({j for _, j in aligned.links}) == len(aligned.links)
        assert len(aligned.scores) == len(aligned.links)
        assert all(0 < score <= 1 for score in aligned.scores)


def test_exchanged_languages_exchange_the_directions():
    turned = [Translation(id=pair.id, first=pair.second, second=pair.first) for pair in PAIRS]
    one = align(PAIRS, symmetrization="forward")
    other = align(turned, symmetrization="backward")
    for here, there in each(zip(one, other, strict=True)):
        assert sorted((j, i) for i, j in there.links) == list(here.links)


def test_a_side_without_words_has_no_links_and_odd_words_do_no_harm():
    odd = [
        Translation(id="x", first=first, second=second)
        for first, second in (("", "a"), ("||| <eps>", "<eps> a0"))
    ]
    made = align([*odd, *PAIRS])
    assert made[0].links == ()
    assert len(made) == len(PAIRS) + 2
    assert [one.links for one in align(odd[:1])] == [()]
    assert align([]) == []


def test_links_count_given_words_else_those_of_the_tokenizer():
    raw = [replace(pair, first=f"{pair.first}.") for pair in PAIRS]
    given = [
        replace(pair, words=((*pair.first.split(), "u v"), tuple(pair.second.split()))) for pair in PAIRS
    ]
    for pairs in (raw, given):
        made = align(pairs, symmetrization="backward")
        for pair, aligned in each(zip(pairs, made, strict=True)):
            assert [i for i, _ in aligned.links] == list(range(len(pair.first.split()) + 1))


def test_capitals_count_as_small_letters_unless_said():
    mixed = [
        replace(pair, first=pair.first.upper()) if number % 2 else pair for number, pair in enumerate(PAIRS)
    ]
    assert align(mixed) == align(PAIRS)
    assert align(mixed, lowercase=False) != align(PAIRS)
