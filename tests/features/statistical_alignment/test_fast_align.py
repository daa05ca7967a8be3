import random
from dataclasses import replace

import pytest

from each import each
from isogloss.aligners.setting import AlignSetting
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import SYMMETRIZATIONS
from isogloss.features.statistical_alignment.fast_align import FastAlign

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def made_up(count=200, seed=0):
    """Sentences in a language whose words stand the other way round in pairs: their links are known."""
    rng = random.Random(seed)
    for index in range(count):
        words = rng.sample(NUMBERS, rng.randint(2, 6))
        order = [place ^ 1 if place ^ 1 < len(words) else place for place in range(len(words))]
        yield Translation(
            id=f"{index}",
            first=" ".join(words),
            second=" ".join(words[place][::-1] for place in order),
            links=tuple(sorted((place, order.index(place)) for place in range(len(words)))),
        )


PAIRS = list(made_up())


def align(pairs, **fields):
    return FastAlign(**fields).align(AlignSetting(pairs=pairs))


@pytest.mark.parametrize("symmetrization", SYMMETRIZATIONS)
def test_words_that_always_come_together_are_linked(symmetrization):
    links = align(PAIRS, symmetrization=symmetrization)
    right = sum(aligned_link.links == pair.links for aligned_link, pair in zip(links, PAIRS, strict=True))
    assert right >= 0.95 * len(PAIRS)


def test_aligning_again_gives_the_same():
    assert align(PAIRS) == align(PAIRS)


def test_intersection_is_one_to_one_and_scores_are_shares():
    for aligned_pair in each(align(PAIRS)):
        assert (
            len({i for i, _ in aligned_pair.links})
            == len({j for _, j in aligned_pair.links})
            == len(aligned_pair.links)
        )
        assert len(aligned_pair.scores) == len(aligned_pair.links)
        assert all(0 < score <= 1 for score in aligned_pair.scores)


def test_exchanged_languages_exchange_the_directions():
    turned_translations = [Translation(id=pair.id, first=pair.second, second=pair.first) for pair in PAIRS]
    links = align(PAIRS, symmetrization="forward")
    other_links = align(turned_translations, symmetrization="backward")
    for pair, folder in each(zip(links, other_links, strict=True)):
        assert sorted((j, i) for i, j in folder.links) == list(pair.links)


def test_a_side_without_words_has_no_links_and_odd_words_do_no_harm():
    odd = [
        Translation(id="x", first=first_name, second=second)
        for first_name, second in (("", "a"), ("||| <eps>", "<eps> a0"))
    ]
    links = align([*odd, *PAIRS])
    assert links[0].links == ()
    assert len(links) == len(PAIRS) + 2
    assert [link.links for link in align(odd[:1])] == [()]
    assert align([]) == []


def test_links_count_given_words_else_those_of_the_tokenizer():
    raw = [replace(pair, first=f"{pair.first}.") for pair in PAIRS]
    inputs = [
        replace(pair, words=((*pair.first.split(), "u v"), tuple(pair.second.split()))) for pair in PAIRS
    ]
    for pairs in (raw, inputs):
        links = align(pairs, symmetrization="backward")
        for pair, aligned_pair in each(zip(pairs, links, strict=True)):
            assert [i for i, _ in aligned_pair.links] == list(range(len(pair.first.split()) + 1))


def test_capitals_count_as_small_letters_unless_said():
    mixed_pairs = [
        replace(pair, first=pair.first.upper()) if index % 2 else pair for index, pair in enumerate(PAIRS)
    ]
    assert align(mixed_pairs) == align(PAIRS)
    assert align(mixed_pairs, lowercase=False) != align(PAIRS)
