"""The concepts that every language has a word for, as whole numbers, and how they may combine.

Nouns are of eight classes; a verb prefers classes for its subject and object, an adjective for its noun.
Verbs and adjectives come in pairs of opposites: 240 and 241, 242 and 243, …

Random choices are the same on every machine and Python version: only ``random.Random(int).random()`` is used,
whose sequence Python guarantees; weights are whole numbers, so no rounding of a machine's arithmetic decides
a choice.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from isogloss.core.identity import derive
from isogloss.data.languages.family import CONSONANTS, VOWELS

Item = TypeVar("Item")

ZIPF_EXPONENT = 0.8
"""How fast frequency falls with rank; about that of running text."""

TOP_WEIGHT = 1_000_000
"""Weight of the most frequent item."""


class Weighted(Generic[Item]):
    """Items with whole-number weights, ready to draw from."""

    __slots__ = ("cumulative", "items", "total")

    def __init__(self, weights: Iterable[tuple[Item, int]]) -> None:
        pairs = list(weights)
        self.items = [item for item, _ in pairs]
        self.cumulative = list(accumulate(weight for _, weight in pairs))
        self.total = self.cumulative[-1]


def zipf(items: Sequence[Item]) -> Weighted[Item]:
    """Weigh items by rank: the first is the most frequent."""
    return Weighted(
        (item, round(TOP_WEIGHT / (rank + 1) ** ZIPF_EXPONENT)) for rank, item in enumerate(items)
    )


class Draws:
    """A stream of random choices from one seed."""

    __slots__ = ("random",)

    random: Callable[[], float]
    """The next number in [0, 1)."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def below(self, count: int) -> int:
        """Return a whole number from 0 to count - 1."""
        return int(self.random() * count)

    def chance(self, rate: float) -> bool:
        """Return True with this probability."""
        return self.random() < rate

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items, all equally likely."""
        return items[int(self.random() * len(items))]

    def weighted(self, table: Weighted[Item]) -> Item:
        """Return one of the items, as likely as it weighs."""
        return table.items[bisect_right(table.cumulative, int(self.random() * table.total))]

    def shuffled(self, items: Iterable[Item]) -> list[Item]:
        """Return the items in random order."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order


CLASSES = ("person", "animal", "food", "tool", "plant", "place", "organisation", "idea")
PERSON, ANIMAL, FOOD, TOOL, PLANT, PLACE, ORGANISATION, IDEA = range(len(CLASSES))
NOUNS_A_CLASS = 30

NOUNS = range(240)
VERBS = range(240, 360)
ADJECTIVES = range(360, 440)
ADVERBS = range(440, 464)
NUMERALS = range(464, 472)
PRONOUNS = range(472, 478)
"""First, second and third person singular, then plural."""
DETERMINERS = THE, SOME, THIS, THAT, EVERY = range(478, 483)
ADPOSITIONS = OF, IN, WITH, FOR, NEAR, FROM = range(483, 489)
AND, OR, BUT, BECAUSE, WHEN = range(489, 494)
CONJUNCTIONS = (AND, OR)
"""What joins two phrases."""
LINKS = (AND, BUT, BECAUSE, WHEN)
"""What joins two clauses; the last two make the second one adverbial."""
ADVERBIAL = (BECAUSE, WHEN)
RELATIVES = WHICH_DOES, WHICH_IS_DONE = range(494, 496)
"""The relative pronoun as subject and as object of its clause."""
QUESTIONS = WHO, WHAT, WHERE = range(496, 499)
MARKERS = PLURAL, OBJECT, PAST, FUTURE, NOT = range(499, 504)
"""Affixes or particles, as the language's dials say."""
PERSONS = range(504, 704)
PLACES = range(704, 764)
ORGANISATIONS = range(764, 824)

PRESENT_TENSE, PAST_TENSE, FUTURE_TENSE = range(3)

NAMES_OF_CLASS: dict[int, range] = {PERSON: PERSONS, PLACE: PLACES, ORGANISATION: ORGANISATIONS}
ENTITY_OF_CLASS = {PERSON: "PER", PLACE: "LOC", ORGANISATION: "ORG"}

OF_NOUN = (
    (OF, PERSON), (OF, ORGANISATION), (OF, PLACE), (FROM, PLACE), (WITH, FOOD), (WITH, ANIMAL),
    (NEAR, PLANT), (IN, IDEA), (FOR, IDEA),
)  # fmt: skip
"""Adpositions with the class of their noun, where the phrase belongs to the adjacent noun."""

OF_VERB = (
    (IN, PLACE), (IN, PLACE), (NEAR, PLACE), (NEAR, PLACE), (WITH, TOOL), (WITH, PERSON), (FOR, PERSON),
    (FOR, ORGANISATION), (FROM, ORGANISATION),
)  # fmt: skip
"""The same, where the phrase belongs to the verb: only meaning distinguishes the two. Listed twice: twice as
frequent."""


@dataclass(frozen=True)
class Frame:
    """The noun classes a verb takes: ``objects`` is empty for an intransitive verb."""

    subjects: tuple[int, ...]
    objects: tuple[int, ...]


@dataclass(frozen=True)
class World:
    """The possible meanings and their frequencies, the same in every language."""

    frames: dict[int, Frame]
    adjectives: tuple[Weighted[int], ...]
    """Adjectives that fit each noun class."""
    names: dict[int, tuple[str, ...]]
    """The words of each name, in Latin letters."""
    name_words: tuple[str, ...]
    """Every word of a name once."""
    nouns: tuple[Weighted[int], ...]
    """Nouns of each class."""
    called: dict[int, Weighted[int]]
    """Names of each class that has names."""
    verbs: Weighted[int]
    adverbs: Weighted[int]


def class_of(concept: int) -> int:
    """Return the noun class of a noun, name or pronoun."""
    if concept < NOUNS.stop:
        return concept // NOUNS_A_CLASS
    if concept >= ORGANISATIONS.start:
        return ORGANISATION
    return PLACE if concept >= PLACES.start else PERSON


def opposite(concept: int) -> int:
    """Return the antonym of a verb or an adjective."""
    return concept ^ 1


@cache
def world() -> World:
    """Return the one world of all built-in languages."""
    draws = Draws(derive(0, "world"))
    fits = {
        adjective: set(draws.shuffled(range(len(CLASSES)))[:4])
        for adjective in ADJECTIVES
        if adjective % 2 == 0
    }
    frequent = draws.shuffled(ADJECTIVES)
    frames, names = _frames(draws), _names(draws)
    return World(
        frames=frames,
        adjectives=tuple(zipf([a for a in frequent if kind in fits[a & ~1]]) for kind in range(len(CLASSES))),
        names=names,
        name_words=tuple(dict.fromkeys(word for name in names.values() for word in name)),
        nouns=tuple(
            zipf(draws.shuffled(NOUNS[kind * NOUNS_A_CLASS : (kind + 1) * NOUNS_A_CLASS]))
            for kind in range(len(CLASSES))
        ),
        called={kind: zipf(draws.shuffled(names)) for kind, names in NAMES_OF_CLASS.items()},
        verbs=zipf(draws.shuffled(VERBS)),
        adverbs=zipf(draws.shuffled(ADVERBS)),
    )


_SUBJECTS = (
    (PERSON,), (PERSON, ORGANISATION), (PERSON, ANIMAL), (ORGANISATION,), (PERSON,), (ANIMAL,),
    (PERSON, ORGANISATION), (TOOL,), (PERSON, PLANT),
)  # fmt: skip
_MUTUAL = (PERSON, ORGANISATION, ANIMAL)
"""Classes that can as well do as be done to."""


def _frames(draws: Draws) -> dict[int, Frame]:
    frames = {}
    for pair, verb in enumerate(VERBS[::2]):
        subjects = _SUBJECTS[pair % len(_SUBJECTS)]
        objects: tuple[int, ...] = ()
        if pair % 10 < 4:
            objects = tuple(kind for kind in _MUTUAL if kind in subjects) or (PERSON,)
        elif pair % 10 < 8:
            objects = tuple(sorted(draws.shuffled(range(len(CLASSES)))[:2]))
        frames[verb] = frames[opposite(verb)] = Frame(subjects, objects)
    return frames


_MONONYMS, _GIVEN, _FAMILIES = 30, 80, 90
_PLAIN_PLACES, _QUALIFIERS, _KINDS = 48, 4, 8


def _names(draws: Draws) -> dict[int, tuple[str, ...]]:
    """Coin names of one to three words, such that a row of names can be read in one way only.

    A mononym is never a given name, and qualifiers and kinds never stand alone.
    """
    counts = (_MONONYMS, _GIVEN, _FAMILIES, _PLAIN_PLACES, _QUALIFIERS, _KINDS, 15)
    words = _name_words(draws, sum(counts))
    pools = []
    for count in counts:
        pools.append(words[:count])
        words = words[count:]
    mononyms, given_names, families, plain, qualifiers, kinds, brands = pools
    persons = _distinct(draws, len(PERSONS) - _MONONYMS, (given_names, families))
    cities = _distinct(draws, len(PLACES) - _PLAIN_PLACES, (qualifiers, plain))
    owners = families + plain
    firms = _distinct(draws, 30, (owners, kinds)) + _distinct(draws, 15, (families, families, kinds))
    persons += [(word,) for word in mononyms]
    places = [(word,) for word in plain] + cities
    organisations = [(word,) for word in brands] + firms
    return dict(enumerate(persons + places + organisations, start=PERSONS.start))


def _distinct(draws: Draws, count: int, pools: Sequence[list[str]]) -> list[tuple[str, ...]]:
    """Draw that many different rows, one word of each pool, no word twice in a row."""
    rows: dict[tuple[str, ...], None] = {}
    while len(rows) < count:
        row = tuple(draws.choice(pool) for pool in pools)
        if len(set(row)) == len(row):
            rows[row] = None
    return list(rows)


def _name_words(draws: Draws, count: int) -> list[str]:
    """Coin name words none of which begins another, so that scripts without spaces can be read."""
    words: list[str] = []
    while len(words) < count:
        length = 2 + draws.below(2)
        word = "".join(_name_syllable(draws) for _ in range(length))
        if not any(word.startswith(other) or other.startswith(word) for other in words):
            words.append(word)
    return words


def _name_syllable(draws: Draws) -> str:
    return draws.choice(CONSONANTS) + draws.choice(VOWELS) + draws.choice(("", "", "", "n", "r"))
