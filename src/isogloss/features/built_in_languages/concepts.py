"""The concepts for which every language has a word, as whole numbers, and their combinations.

Nouns have eight classes. A verb prefers classes for its subject and object, an adjective for its noun. Verbs
and adjectives come in pairs of opposites: 240 and 241, 242 and 243, …

Random choices are the same on every machine and Python version: only ``random.Random(int).random()`` is used,
whose sequence Python guarantees. Weights are whole numbers, so no choice depends on rounding.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from random import Random
from typing import Generic, TypeVar

from isogloss.core.identity import derive
from isogloss.features.built_in_languages.family import CONSONANTS, VOWELS

Item = TypeVar("Item")

ZIPF_EXPONENT = 0.8
"""Exponent of the decay of frequency with rank, close to the exponent of running text."""

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
    """Returns the next number in [0, 1)."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed).random

    def whole_number(self, count: int) -> int:
        """Return a whole number from 0 to count - 1."""
        return int(self.random() * count)

    def chance(self, rate: float) -> bool:
        """Return True with this probability."""
        return self.random() < rate

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one of the items with equal probabilities."""
        return items[int(self.random() * len(items))]

    def draw(self, table: Weighted[Item]) -> Item:
        """Return one of the items with probabilities proportional to their weights."""
        return table.items[bisect_right(table.cumulative, int(self.random() * table.total))]

    def shuffle(self, items: Iterable[Item]) -> list[Item]:
        """Return the items in random order."""
        order = list(items)
        for index in range(len(order) - 1, 0, -1):
            swap = int(self.random() * (index + 1))
            item = order[index]
            order[index] = order[swap]
            order[swap] = item
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
"""Conjunctions of two phrases."""
LINKS = (AND, BUT, BECAUSE, WHEN)
"""Conjunctions of two clauses. The last two make the second clause adverbial."""
ADVERBIAL = (BECAUSE, WHEN)
RELATIVES = WHICH_DOES, WHICH_IS_DONE = range(494, 496)
"""Relative pronouns as subject and as object of their clause."""
QUESTIONS = WHO, WHAT, WHERE = range(496, 499)
MARKERS = PLURAL, OBJECT, PAST, FUTURE, NOT = range(499, 504)
"""Affixes or particles, depending on the language's dials."""
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
"""Adpositions with the class of their noun, if the phrase belongs to the adjacent noun."""

OF_VERB = (
    (IN, PLACE), (IN, PLACE), (NEAR, PLACE), (NEAR, PLACE), (WITH, TOOL), (WITH, PERSON), (FOR, PERSON),
    (FOR, ORGANISATION), (FROM, ORGANISATION),
)  # fmt: skip
"""The same, if the phrase belongs to the verb: only meaning distinguishes the two. Repeated pairs are twice
as frequent."""


@dataclass(frozen=True)
class Frame:
    """Noun classes of a verb's subject and object. ``objects`` is empty for an intransitive verb."""

    subjects: tuple[int, ...]
    objects: tuple[int, ...]


@dataclass(frozen=True)
class World:
    """The possible meanings and their frequencies, which are the same in every language."""

    frames: dict[int, Frame]
    adjectives: tuple[Weighted[int], ...]
    """Adjectives that fit each noun class."""
    names: dict[int, tuple[str, ...]]
    """Words of each name, in Latin letters."""
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
    """Return the single world of all built-in languages."""
    return _make_world(Draws(derive(0, "world")))


@cache
def other_world(draw: int) -> World:
    """Return a world with the same names, in which all else is drawn anew: actors, properties, frequencies.

    A verb has an object if it has one in ``world``, so the grammar is the same.
    """
    draws = Draws(derive(draw, "other world"))
    common_world = world()
    frames = dict(common_world.frames)
    for is_transitive in (True, False):
        verbs = [verb for verb in VERBS[::2] if bool(frames[verb].objects) == is_transitive]
        for verb, donor in zip(verbs, draws.shuffle(verbs), strict=True):
            frames[verb] = frames[opposite(verb)] = common_world.frames[donor]
    return replace(
        _make_world(draws), frames=frames, names=common_world.names, name_words=common_world.name_words
    )


def _make_world(draws: Draws) -> World:
    fits = {
        adjective: set(draws.shuffle(range(len(CLASSES)))[:4])
        for adjective in ADJECTIVES
        if adjective % 2 == 0
    }
    frequent = draws.shuffle(ADJECTIVES)
    frames = _frames(draws)
    names = _names(draws)
    return World(
        frames=frames,
        adjectives=tuple(zipf([a for a in frequent if kind in fits[a & ~1]]) for kind in range(len(CLASSES))),
        names=names,
        name_words=tuple(dict.fromkeys(word for name in names.values() for word in name)),
        nouns=tuple(
            zipf(draws.shuffle(NOUNS[kind * NOUNS_A_CLASS : (kind + 1) * NOUNS_A_CLASS]))
            for kind in range(len(CLASSES))
        ),
        called={kind: zipf(draws.shuffle(names)) for kind, names in NAMES_OF_CLASS.items()},
        verbs=zipf(draws.shuffle(VERBS)),
        adverbs=zipf(draws.shuffle(ADVERBS)),
    )


_SUBJECTS = (
    (PERSON,), (PERSON, ORGANISATION), (PERSON, ANIMAL), (ORGANISATION,), (PERSON,), (ANIMAL,),
    (PERSON, ORGANISATION), (TOOL,), (PERSON, PLANT),
)  # fmt: skip
_MUTUAL = (PERSON, ORGANISATION, ANIMAL)
"""Classes that can be both subject and object of the same verb."""


def _frames(draws: Draws) -> dict[int, Frame]:
    frames = {}
    for pair, verb in enumerate(VERBS[::2]):
        subjects = _SUBJECTS[pair % len(_SUBJECTS)]
        objects: tuple[int, ...] = ()
        if pair % 10 < 4:
            objects = tuple(kind for kind in _MUTUAL if kind in subjects) or (PERSON,)
        elif pair % 10 < 8:
            objects = tuple(sorted(draws.shuffle(range(len(CLASSES)))[:2]))
        frames[verb] = frames[opposite(verb)] = Frame(subjects, objects)
    return frames


_MONONYMS = 30
_GIVEN = 80
_FAMILIES = 90
_PLAIN_PLACES = 48
_QUALIFIERS = 4
_KINDS = 8
"""Numbers of words in names, by kind."""


def _names(draws: Draws) -> dict[int, tuple[str, ...]]:
    """Coin names of one to three words, such that a sequence of names can be read in only one way.

    A mononym is never a given name, and qualifiers and kinds are never names by themselves.
    """
    counts = (_MONONYMS, _GIVEN, _FAMILIES, _PLAIN_PLACES, _QUALIFIERS, _KINDS, 15)
    words = coin_name_words(draws, sum(counts))
    pools = []
    for count in counts:
        pools.append(words[:count])
        words = words[count:]
    mononyms, given_names, families, place_words, qualifiers, kinds, brands = pools
    persons = _distinct(draws, len(PERSONS) - _MONONYMS, (given_names, families))
    cities = _distinct(draws, len(PLACES) - _PLAIN_PLACES, (qualifiers, place_words))
    owners = families + place_words
    firms = _distinct(draws, 30, (owners, kinds)) + _distinct(draws, 15, (families, families, kinds))
    persons += [(word,) for word in mononyms]
    places = [(word,) for word in place_words] + cities
    organisations = [(word,) for word in brands] + firms
    return dict(enumerate(persons + places + organisations, start=PERSONS.start))


def _distinct(draws: Draws, count: int, pools: Sequence[list[str]]) -> list[tuple[str, ...]]:
    """Draw ``count`` different rows with one word from each pool and no repeated word."""
    rows: dict[tuple[str, ...], None] = {}
    while len(rows) < count:
        row = tuple(draws.choice(pool) for pool in pools)
        if len(set(row)) == len(row):
            rows[row] = None
    return list(rows)


def coin_name_words(draws: Draws, count: int, known_words: Iterable[str] = ()) -> list[str]:
    """Coin name words such that none begins with a shorter one, so scripts without spaces can be read."""
    words = list(known_words)
    total = len(words) + count
    while len(words) < total:
        length = 2 + draws.whole_number(2)
        word = "".join(_name_syllable(draws) for _ in range(length))
        if not any(word.startswith(earlier) or earlier.startswith(word) for earlier in words):
            words.append(word)
    return words[-count:]


def _name_syllable(draws: Draws) -> str:
    return draws.choice(CONSONANTS) + draws.choice(VOWELS) + draws.choice(("", "", "", "n", "r"))
