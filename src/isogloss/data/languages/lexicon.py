"""The words of one language: roots coined from its own sounds, and every form they take."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.data.languages import concepts as c
from isogloss.data.languages.concepts import Draws, Weighted
from isogloss.data.languages.family import CODAS, CONSONANTS, LANGUAGES, SOURCE, VOWELS, Language, spell

CONTENT = (*c.NOUNS, *c.VERBS, *c.ADJECTIVES, *c.ADVERBS)
"""The concepts whose roots may be shared with the source."""

FUNCTION = range(c.NUMERALS.start, c.PERSONS.start)

HOMONYMS = 16
"""Verbs that sound like a noun, so that a word's class needs its context."""


class Form(NamedTuple):
    """One form of a word as written, with its CoNLL-U lemma, tag and features."""

    text: str
    lemma: str
    tag: str
    features: str


class WordReading(NamedTuple):
    """What a form may mean: a concept; ``plural`` or ``tense``; ``marked`` as object or ``negated``."""

    concept: int
    first: int = 0
    second: int = 0


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All words of a language; concepts index every table."""

    language: Language
    roots: dict[int, str]
    """Roots in Latin letters, whatever the script."""
    nouns: dict[int, tuple[tuple[Form, Form], tuple[Form, Form]]]
    """Indexed by plural, then by marked as object."""
    verbs: dict[int, tuple[tuple[Form, Form], ...]]
    """Indexed by tense, then by negated."""
    adjectives: dict[int, tuple[Form, Form]]
    """Indexed by plural."""
    words: dict[int, Form]
    """Words without inflection: function words, adverbs, particles."""
    names: dict[int, tuple[Form, ...]]
    readings: dict[str, dict[str, WordReading]] = field(default_factory=dict)
    """Every form, then the tag, then what it may mean; for a name's word (PROPN) its number in the world."""
    called: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Names by their words."""


@lru_cache(maxsize=64)
def lexicon(language: Language) -> Lexicon:
    """Build the words of a language: the same ones every time."""
    roots = _Coiner(language).coin()
    grown = Lexicon(
        language=language,
        roots=roots,
        nouns={concept: _noun(language, roots, concept) for concept in c.NOUNS},
        verbs={concept: _verb(language, roots, concept) for concept in c.VERBS},
        adjectives={concept: _adjective(language, roots, concept) for concept in c.ADJECTIVES},
        words={
            concept: _form(language, roots, concept, tag, features=_FEATURES.get(concept, "_"))
            for concept, tag in _TAGS.items()
        },
        names={concept: _name(words, language.script) for concept, words in c.world().names.items()},
    )
    _index(grown)
    return grown


_TAGS: dict[int, str] = {
    **dict.fromkeys(c.ADVERBS, "ADV"), **dict.fromkeys(c.NUMERALS, "NUM"),
    **dict.fromkeys(c.PRONOUNS, "PRON"), **dict.fromkeys(c.DETERMINERS, "DET"),
    **dict.fromkeys(c.ADPOSITIONS, "ADP"),
    c.AND: "CCONJ", c.OR: "CCONJ", c.BUT: "CCONJ", c.BECAUSE: "SCONJ", c.WHEN: "SCONJ",
    **dict.fromkeys(c.RELATIVES, "PRON"), c.WHO: "PRON", c.WHAT: "PRON", c.WHERE: "ADV",
    c.PLURAL: "DET", c.OBJECT: "ADP", c.PAST: "AUX", c.FUTURE: "AUX", c.NOT: "PART",
}  # fmt: skip

_FEATURES: dict[int, str] = {
    **dict.fromkeys(c.NUMERALS, "NumType=Card"), **dict.fromkeys(c.RELATIVES, "PronType=Rel"),
    **dict.fromkeys(c.QUESTIONS, "PronType=Int"),
    **{
        pronoun: f"Number={'Plur' if which > 2 else 'Sing'}|Person={which % 3 + 1}|PronType=Prs"
        for which, pronoun in enumerate(c.PRONOUNS)
    },
    c.THE: "Definite=Def|PronType=Art", c.SOME: "PronType=Ind", c.THIS: "PronType=Dem",
    c.THAT: "PronType=Dem", c.EVERY: "PronType=Tot", c.PLURAL: "Number=Plur", c.OBJECT: "Case=Acc",
    c.PAST: "Tense=Past",    c.FUTURE: "Tense=Fut", c.NOT: "Polarity=Neg",
}  # fmt: skip

TENSE_MARKERS = {c.PRESENT_TENSE: None, c.PAST_TENSE: c.PAST, c.FUTURE_TENSE: c.FUTURE}
_TENSE_NAMES = ("Pres", "Past", "Fut")


def affixed(language: Language, roots: dict[int, str], stem: str, markers: Iterable[int]) -> str:
    """Add the affixes of these markers to a stem, the innermost first; particles add nothing."""
    for marker in markers:
        dial = marking(language, marker)
        if dial == "suffix":
            stem += roots[marker]
        elif dial == "prefix":
            stem = roots[marker] + stem
    return stem


def marking(language: Language, marker: int) -> str:
    """Return how a language writes a marker: suffix, prefix, particle or none."""
    if marker == c.PLURAL:
        return language.number
    if marker == c.OBJECT:
        return language.case
    return language.negation if marker == c.NOT else language.tense


def _form(
    language: Language, roots: dict[int, str], concept: int, tag: str, *markers: int, features: str
) -> Form:
    """Spell the form that a concept's root takes with these markers."""
    word = affixed(language, roots, roots[concept], markers)
    return Form(spell(word, language.script), spell(roots[concept], language.script), tag, features)


def _noun(
    language: Language, roots: dict[int, str], concept: int
) -> tuple[tuple[Form, Form], tuple[Form, Form]]:
    def form(*markers: int) -> Form:
        features = []
        if language.case in ("suffix", "prefix"):
            features.append(f"Case={'Acc' if c.OBJECT in markers else 'Nom'}")
        if language.number != "particle":
            features.append(f"Number={'Plur' if c.PLURAL in markers else 'Sing'}")
        return _form(language, roots, concept, "NOUN", *markers, features="|".join(features) or "_")

    return (form(), form(c.OBJECT)), (form(c.PLURAL), form(c.PLURAL, c.OBJECT))


def _verb(language: Language, roots: dict[int, str], concept: int) -> tuple[tuple[Form, Form], ...]:
    def form(tense: int, *, negated: bool) -> Form:
        features = []
        if negated and language.negation != "particle":
            features.append("Polarity=Neg")
        if language.tense != "particle":
            features.append(f"Tense={_TENSE_NAMES[tense]}")
        features.append("VerbForm=Fin")
        marker = TENSE_MARKERS[tense]
        markers = [c.NOT] * negated if marker is None else [marker, *[c.NOT] * negated]
        return _form(language, roots, concept, "VERB", *markers, features="|".join(features))

    return tuple((form(tense, negated=False), form(tense, negated=True)) for tense in TENSE_MARKERS)


def _adjective(language: Language, roots: dict[int, str], concept: int) -> tuple[Form, Form]:
    if not language.agreement or language.number == "particle":
        form = _form(language, roots, concept, "ADJ", features="_")
        return form, form
    return (
        _form(language, roots, concept, "ADJ", features="Number=Sing"),
        _form(language, roots, concept, "ADJ", c.PLURAL, features="Number=Plur"),
    )


def _name(words: tuple[str, ...], script: str) -> tuple[Form, ...]:
    spelled = (spell(word, script) for word in words)
    return tuple(Form(word, word, "PROPN", "_") for word in spelled)


def _index(grown: Lexicon) -> None:
    """Fill the tables that lead from forms back to concepts."""
    for form, reading in all_forms(grown):
        grown.readings.setdefault(form.text, {}).setdefault(form.tag, reading)
    for concept, name in grown.names.items():
        grown.called[tuple(form.text for form in name)] = concept
    for number, word in enumerate(c.world().name_words):
        grown.readings[spell(word, grown.language.script)] = {"PROPN": WordReading(number)}


def all_forms(grown: Lexicon) -> Iterator[tuple[Form, WordReading]]:
    """Yield every form with its reading, names apart."""
    for tables in (grown.nouns, grown.verbs):
        for concept, table in tables.items():
            for first, row in enumerate(table):
                for second, form in enumerate(row):
                    yield form, WordReading(concept, first, second)
    for concept, pair in grown.adjectives.items():
        yield pair[0], WordReading(concept)
        yield pair[1], WordReading(concept, 1)
    for concept, form in grown.words.items():
        yield form, WordReading(concept)


_FUNCTION_LENGTHS = Weighted([(1, 3), (2, 2)])
_CONTENT_LENGTHS = Weighted([(2, 5), (3, 4), (4, 1)])
_HAN_LENGTHS = Weighted([(2, 1)])
_TRIES_PER_LENGTH = 50
"""Tries after which a word may become one syllable longer."""


class _Coiner:
    """Coins one root per concept, so that no two forms of a language are equal except homonyms."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.draws = Draws(derive(language.seed, "words", language.code))
        self.onsets = self.draws.shuffled(CONSONANTS)[: 9 + self.draws.below(4)]
        self.vowels = self.draws.shuffled(VOWELS)[: 4 + self.draws.below(2)]
        closing = self.draws.shuffled(CODAS[1:])[: 1 + self.draws.below(3)]
        self.codas = ["", "", "", *closing]
        self.roots: dict[int, str] = {}
        self.taken: set[str] = {word for words in c.world().names.values() for word in words}
        self.opened: set[str] = set()
        for word in self.taken:
            self._open(spell(word, language.script))
        self.spelled = {spell(word, language.script) for word in self.taken}
        self.foreign: set[str] = set()

    def coin(self) -> dict[int, str]:
        """Coin all roots: function words and affixes, shared roots, own roots, homonyms."""
        language = self.language
        if language.code != SOURCE:
            self.foreign = set(_source().roots.values())
        for concept in (*c.MARKERS, *FUNCTION):
            if concept not in self.roots:
                self._coin(concept, _FUNCTION_LENGTHS)
        if language.code != SOURCE:
            self._share(round(language.shared * len(CONTENT)))
        homonyms = self._homonyms()
        lengths = _HAN_LENGTHS if language.script == "han" else _CONTENT_LENGTHS
        for concept in CONTENT:
            if concept not in self.roots and concept not in homonyms:
                self._coin(concept, lengths)
        for verb, noun in homonyms.items():
            self.roots[verb] = self.roots[noun]
        return self.roots

    def _share(self, count: int) -> None:
        """Take that many roots of the source, each concept of CONTENT as likely."""
        source, shared = _source().roots, set[str]()
        for concept in self.draws.shuffled(CONTENT):
            if count == 0:
                return
            root = source[concept]
            if root in shared:  # Its homonym of the source is shared too.
                self.roots[concept] = root
            elif not self._take(concept, root):
                continue
            shared.add(root)
            count -= 1
        if count:
            most = int(100 * (self.language.shared - count / len(CONTENT))) / 100
            raise ConfigError(
                f"language {self.language.code}: shared is {self.language.shared}, but with these dials some "
                f"words of {SOURCE} would look like others. Set shared to {most:.2f} or less."
            )

    def _homonyms(self) -> dict[int, int]:
        """Choose the verbs that will sound like a noun."""
        free = [verb for verb in c.VERBS if verb not in self.roots]
        verbs = self.draws.shuffled(free)[:HOMONYMS]
        return dict(zip(verbs, self.draws.shuffled(c.NOUNS), strict=False))

    def _coin(self, concept: int, lengths: Weighted[int]) -> None:
        tries = 0
        while True:
            length = self.draws.weighted(lengths) + tries // _TRIES_PER_LENGTH
            root = "".join(self._syllable() for _ in range(length))
            if concept in c.MARKERS and len(root) > 3:
                root = root[:3] if root[2:3] in CODAS else root[:2]
            if root not in self.foreign and self._take(concept, root):
                return
            tries += 1

    def _syllable(self) -> str:
        draws = self.draws
        return draws.choice(self.onsets) + draws.choice(self.vowels) + draws.choice(self.codas)

    def _take(self, concept: int, root: str) -> bool:
        """Return the root to the concept unless one of its forms looks like another word."""
        forms = self._forms(concept, root)
        if not self.taken.isdisjoint(forms) or (self.language.script == "han" and not self._splits(forms)):
            return False
        self.roots[concept] = root
        self.taken |= forms
        return True

    def _forms(self, concept: int, root: str) -> set[str]:
        """Return all forms a root would have, as a noun and as a verb, as it may become a homonym."""
        if concept not in CONTENT:
            return {root}
        language, roots = self.language, self.roots
        chains: list[list[int]] = [[], [c.PLURAL], [c.OBJECT], [c.PLURAL, c.OBJECT], [c.NOT]]
        chains += [[tense, *more] for tense in (c.PAST, c.FUTURE) for more in ([], [c.NOT])]
        return {affixed(language, roots, root, chain) for chain in chains}

    def _splits(self, forms: set[str]) -> bool:
        """Return whether text without spaces still splits one way only: no word begins another."""
        words = [spell(form, self.language.script) for form in forms]
        for word in words:
            if word in self.opened or any(word[:end] in self.spelled for end in range(1, len(word))):
                return False
        for word in words:
            self.spelled.add(word)
            self._open(word)
        return True

    def _open(self, word: str) -> None:
        self.opened.update(word[:end] for end in range(1, len(word)))


def _source() -> Lexicon:
    return lexicon(LANGUAGES[SOURCE])
