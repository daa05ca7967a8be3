"""The words of one language: roots coined from its own sounds, and all of their forms."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import NamedTuple, TypeVar

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws, Weighted
from isogloss.features.built_in_languages.family import (
    CODAS,
    CONSONANTS,
    LANGUAGES,
    SOURCE,
    VOWELS,
    Language,
    write,
)
from isogloss.features.built_in_languages.relations import Relation

Item = TypeVar("Item")

CONTENT = (*c.NOUNS, *c.VERBS, *c.ADJECTIVES, *c.ADVERBS)
"""Concepts whose roots may be shared with the source."""

FUNCTION = range(c.NUMERALS.start, c.PERSONS.start)

HOMONYMS = 16
"""Number of verbs that sound like a noun, so that a word's class depends on its context."""


class Form(NamedTuple):
    """A form of a word as written, with its CoNLL-U lemma, tag and features."""

    text: str
    lemma: str
    tag: str
    features: str


class WordReading(NamedTuple):
    """A meaning of a form: a concept, ``plural`` or ``tense``, and ``marked`` as object or ``negated``."""

    concept: int
    first: int = 0
    second: int = 0


@dataclass(frozen=True, eq=False)
class Lexicon:
    """All words of a language. Concepts index every table."""

    language: Language
    roots: dict[int, str]
    """Roots in Latin letters, whatever the script."""
    nouns: dict[int, tuple[tuple[Form, Form], tuple[Form, Form]]]
    """Forms by concept, indexed by plural, then by marked as object."""
    verbs: dict[int, tuple[tuple[Form, Form], ...]]
    """Forms by concept, indexed by tense, then by negated."""
    adjectives: dict[int, tuple[Form, Form]]
    """Forms by concept, indexed by plural."""
    words: dict[int, Form]
    """Words without inflection: function words, adverbs, particles."""
    names: dict[int, tuple[Form, ...]]
    name_words: tuple[str, ...]
    """Words of names as written, in the order of the world's."""
    readings: dict[str, dict[str, WordReading]] = field(default_factory=dict)
    """Meanings by form and tag. The meaning of a name's word (PROPN) is its index in the world."""
    called: dict[tuple[str, ...], int] = field(default_factory=dict)
    """Concepts of names by their words."""


@lru_cache(maxsize=64)
def lexicon(language: Language) -> Lexicon:
    """Build the words of a language, which are the same in every process."""
    if language.relation is None:
        roots = _Coiner(language).coin()
        names: dict[str, str] = {}
    else:
        roots, names = _DerivedCoiner(language, language.relation).derive()
    name_words = {word: write(names.get(word, word), language) for word in c.world().name_words}
    result = Lexicon(
        language=language,
        roots=roots,
        nouns={concept: _noun(language, roots, concept) for concept in c.NOUNS},
        verbs={concept: _verb(language, roots, concept) for concept in c.VERBS},
        adjectives={concept: _adjective(language, roots, concept) for concept in c.ADJECTIVES},
        words={
            concept: _form(language, roots, concept, tag, features=_FEATURES.get(concept, "_"))
            for concept, tag in _TAGS.items()
        },
        names={
            concept: tuple(Form(name_words[word], name_words[word], "PROPN", "_") for word in words)
            for concept, words in c.world().names.items()
        },
        name_words=tuple(name_words.values()),
    )
    _index(result)
    return result


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
        pronoun: f"Number={'Plur' if person > 2 else 'Sing'}|Person={person % 3 + 1}|PronType=Prs"
        for person, pronoun in enumerate(c.PRONOUNS)
    },
    c.THE: "Definite=Def|PronType=Art", c.SOME: "PronType=Ind", c.THIS: "PronType=Dem",
    c.THAT: "PronType=Dem", c.EVERY: "PronType=Tot", c.PLURAL: "Number=Plur", c.OBJECT: "Case=Acc",
    c.PAST: "Tense=Past",    c.FUTURE: "Tense=Fut", c.NOT: "Polarity=Neg",
}  # fmt: skip

TENSE_MARKERS = {c.PRESENT_TENSE: None, c.PAST_TENSE: c.PAST, c.FUTURE_TENSE: c.FUTURE}
_TENSE_NAMES = ("Pres", "Past", "Fut")


def add_affixes(language: Language, roots: dict[int, str], stem: str, markers: Iterable[int]) -> str:
    """Add the affixes of markers to a stem, the innermost first.

    Particles and unwritten markers add nothing.
    """
    for marker in markers:
        dial = marking(language, marker)
        if dial == "suffix":
            stem += roots[marker]
        elif dial == "prefix":
            stem = roots[marker] + stem
    return stem


def marking(language: Language, marker: int) -> str:
    """Return the form of a marker in a language: suffix, prefix, particle or none."""
    if marker == c.PLURAL:
        return language.number
    if marker == c.OBJECT:
        return language.case
    return language.negation if marker == c.NOT else language.tense


def _form(
    language: Language, roots: dict[int, str], concept: int, tag: str, *markers: int, features: str
) -> Form:
    """Spell the form of a concept's root with these markers."""
    word = add_affixes(language, roots, roots[concept], markers)
    return Form(write(word, language), write(roots[concept], language), tag, features)


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
    def form(tense: int, *, is_negated: bool) -> Form:
        features = []
        if is_negated and language.negation != "particle":
            features.append("Polarity=Neg")
        if language.tense != "particle":
            features.append(f"Tense={_TENSE_NAMES[tense]}")
        features.append("VerbForm=Fin")
        marker = TENSE_MARKERS[tense]
        markers = [] if marker is None else [marker]
        markers += [c.NOT] * is_negated
        return _form(language, roots, concept, "VERB", *markers, features="|".join(features))

    return tuple((form(tense, is_negated=False), form(tense, is_negated=True)) for tense in TENSE_MARKERS)


def _adjective(language: Language, roots: dict[int, str], concept: int) -> tuple[Form, Form]:
    if not language.agreement or language.number == "particle":
        form = _form(language, roots, concept, "ADJ", features="_")
        return form, form
    return (
        _form(language, roots, concept, "ADJ", features="Number=Sing"),
        _form(language, roots, concept, "ADJ", c.PLURAL, features="Number=Plur"),
    )


def _index(words: Lexicon) -> None:
    """Fill the tables from forms to concepts."""
    for form, reading in all_forms(words):
        words.readings.setdefault(form.text, {}).setdefault(form.tag, reading)
    for concept, name in words.names.items():
        words.called[tuple(form.text for form in name)] = concept
    for index, name_word in enumerate(words.name_words):
        words.readings[name_word] = {"PROPN": WordReading(index)}


def all_forms(words: Lexicon) -> Iterator[tuple[Form, WordReading]]:
    """Yield every form with its meaning, except for names."""
    for tables in (words.nouns, words.verbs):
        for concept, table in tables.items():
            for row_index, row in enumerate(table):
                for column_index, form in enumerate(row):
                    yield form, WordReading(concept, row_index, column_index)
    for concept, pair in words.adjectives.items():
        yield pair[0], WordReading(concept)
        yield pair[1], WordReading(concept, 1)
    for concept, form in words.words.items():
        yield form, WordReading(concept)


_FUNCTION_LENGTHS = Weighted([(1, 3), (2, 2)])
_CONTENT_LENGTHS = Weighted([(2, 5), (3, 4), (4, 1)])
_HAN_LENGTHS = Weighted([(2, 1)])
_CHAINS: tuple[tuple[int, ...], ...] = (
    (), (c.PLURAL,), (c.OBJECT,), (c.PLURAL, c.OBJECT), (c.NOT,),
    (c.PAST,), (c.PAST, c.NOT), (c.FUTURE,), (c.FUTURE, c.NOT),
)  # fmt: skip
"""Markers of the forms of a word, the innermost first."""

_TRIES_PER_LENGTH = 50
"""Number of tries after which a root becomes one syllable longer."""


class _Coiner:
    """Coins one root per concept, such that no two forms of a language are equal except for homonyms."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.draws = Draws(derive(language.seed, "words", language.origin))
        self.onsets = self.draws.shuffle(CONSONANTS)[: 9 + self.draws.whole_number(4)]
        self.vowels = self.draws.shuffle(VOWELS)[: 4 + self.draws.whole_number(2)]
        closing = self.draws.shuffle(CODAS[1:])[: 1 + self.draws.whole_number(3)]
        self.codas = ["", "", "", *closing]
        self.roots: dict[int, str] = {}
        self.taken: set[str] = {word for words in c.world().names.values() for word in words}
        self.opened: set[str] = set()
        for word in self.taken:
            self._open(write(word, language))
        self.spelled = {write(word, language) for word in self.taken}
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
        """Copy ``count`` roots of the source, for random concepts of CONTENT.

        Raises ConfigError if not enough of them fit into the language.
        """
        source_roots = _source().roots
        shared_roots = set[str]()
        for concept in self.draws.shuffle(CONTENT):
            if count == 0:
                return
            root = source_roots[concept]
            if root in shared_roots:  # It is a homonym in the source, so it may be used again.
                self.roots[concept] = root
            elif not self._claim(concept, root):
                continue
            shared_roots.add(root)
            count -= 1
        if count:
            maximum = int(100 * (self.language.shared - count / len(CONTENT))) / 100
            raise ConfigError(
                f"language {self.language.code}: shared is {self.language.shared}, but with these dials some "
                f"words of {SOURCE} would look like different words. Set shared to {maximum:.2f} or less."
            )

    def _homonyms(self) -> dict[int, int]:
        """Draw the verbs that will sound like a noun."""
        candidates = [verb for verb in c.VERBS if verb not in self.roots]
        verbs = self.draws.shuffle(candidates)[:HOMONYMS]
        return dict(zip(verbs, self.draws.shuffle(c.NOUNS), strict=False))

    def _coin(self, concept: int, lengths: Weighted[int]) -> None:
        tries = 0
        while True:
            length = self.draws.draw(lengths) + tries // _TRIES_PER_LENGTH
            root = "".join(self._syllable() for _ in range(length))
            if concept in c.MARKERS and len(root) > 3:
                root = root[:3] if root[2:3] in CODAS else root[:2]
            if root not in self.foreign and self._claim(concept, root):
                return
            tries += 1

    def _syllable(self) -> str:
        draws = self.draws
        return draws.choice(self.onsets) + draws.choice(self.vowels) + draws.choice(self.codas)

    def _claim(self, concept: int, root: str) -> bool:
        """Assign the root to the concept unless one of its forms looks like an existing word.

        Return whether it was assigned.
        """
        forms = self._forms(concept, root)
        if not self.taken.isdisjoint(forms) or (self.language.script == "han" and not self._splits(forms)):
            return False
        self.roots[concept] = root
        self.taken |= forms
        return True

    def _forms(self, concept: int, root: str) -> set[str]:
        """Return all possible forms of a root, as a noun and as a verb, because it may become a homonym."""
        if concept not in CONTENT:
            return {root}
        return {add_affixes(self.language, self.roots, root, chain) for chain in _CHAINS}

    def _splits(self, forms: set[str]) -> bool:
        """Return whether text without spaces still splits in only one way.

        It does if no word begins with a shorter word.
        """
        words = [write(form, self.language) for form in forms]
        for word in words:
            if word in self.opened or any(word[:end] in self.spelled for end in range(1, len(word))):
                return False
        for word in words:
            self.spelled.add(word)
            self._open(word)
        return True

    def _open(self, word: str) -> None:
        self.opened.update(word[:end] for end in range(1, len(word)))


class _DerivedCoiner(_Coiner):
    """Coins a second root for each root of a source, and a second word for each word of a name.

    A dial takes the first ones of a random order, so that what differs at a value also differs at every
    higher one. All second roots are coined, whatever the dials: forms of both languages never look alike,
    even with the affixes of the other language.
    """

    def __init__(self, language: Language, relation: Relation) -> None:
        super().__init__(language)
        self.relation = relation
        self.source = lexicon(LANGUAGES[relation.source])
        self.foreign = set(self.source.roots.values())

    def derive(self) -> tuple[dict[int, str], dict[str, str]]:
        """Return the roots by concept, and the words of names that differ by those of the source."""
        units = self._units()
        self._coin_markers(units)
        names = self._coin_names()
        for concept in FUNCTION:
            if concept not in self.roots:
                self._coin(concept, _FUNCTION_LENGTHS)
        lengths = _HAN_LENGTHS if self.language.script == "han" else _CONTENT_LENGTHS
        for concept, *_ in units:
            self._coin(concept, lengths)
        roots = dict(self.source.roots)
        changing = self._order("words", [*([concept] for concept in FUNCTION), *units])
        for unit in changing[: self.relation.count("words", len(changing))]:
            roots |= dict.fromkeys(unit, self.roots[unit[0]])
        self._change_senses(roots)
        changing_names = self._order("names", list(names))
        changed_names = changing_names[: self.relation.count("names", len(names))]
        return roots, {word: names[word] for word in changed_names}

    def _units(self) -> list[list[int]]:
        """Return the concepts of CONTENT that have a root of the source, for each root."""
        units: dict[str, list[int]] = {}
        for concept in CONTENT:
            units.setdefault(self.source.roots[concept], []).append(concept)
        return list(units.values())

    def _coin_markers(self, units: list[list[int]]) -> None:
        """Coin affixes with which no two roots of the source look alike."""
        source_roots = self.source.roots
        self.taken |= {source_roots[concept] for concept in FUNCTION}
        if self.language.script == "han":
            self._splits(set(source_roots.values()))
        names = set(self.taken)
        while True:
            for concept in c.MARKERS:
                self._coin(concept, _FUNCTION_LENGTHS)
            forms = [self._forms(unit[0], source_roots[unit[0]]) for unit in units]
            all_forms_of_source = set().union(*forms)
            is_clear = len(all_forms_of_source) == sum(len(unit_forms) for unit_forms in forms)
            if is_clear and all_forms_of_source.isdisjoint(self.taken):
                self.taken |= all_forms_of_source
                return
            self.taken = set(names)
            for concept in c.MARKERS:
                del self.roots[concept]

    def _coin_names(self) -> dict[str, str]:
        """Return a second word for each word of a name."""
        source_words = c.world().name_words
        names: dict[str, str] = {}
        known_words = list(source_words)
        for word in source_words:
            while word not in names:
                second_word = c.coin_name_words(self.draws, 1, known_words)[0]
                is_free = second_word not in self.taken
                if is_free and (self.language.script != "han" or self._splits({second_word})):
                    names[word] = second_word
                    known_words.append(second_word)
                    self.taken.add(second_word)
        return names

    def _change_senses(self, roots: dict[int, str]) -> None:
        """Let verbs sound like nouns that sound like no verb in the source."""
        verb_roots = {self.source.roots[verb] for verb in c.VERBS}
        nouns = [noun for noun in c.NOUNS if self.source.roots[noun] not in verb_roots]
        pairs = list(zip(self._order("senses", list(c.VERBS)), self._order("nouns", nouns), strict=False))
        for verb, noun in pairs[: self.relation.count("senses", len(pairs))]:
            roots[verb] = roots[noun]

    def _order(self, purpose: str, items: list[Item]) -> list[Item]:
        return Draws(derive(self.relation.draw, purpose, self.relation.source)).shuffle(items)

    def _forms(self, concept: int, root: str) -> set[str]:
        """Return all possible forms of a root, with affixes of the source and its own in all combinations."""
        if concept not in CONTENT:
            return {root}
        forms = {root}
        for chain in _CHAINS:
            for tables in product((self.source.roots, self.roots), repeat=len(chain)):
                stem = root
                for marker, roots in zip(chain, tables, strict=True):
                    stem = add_affixes(self.language, roots, stem, [marker])
                forms.add(stem)
        return forms


def _source() -> Lexicon:
    return lexicon(LANGUAGES[SOURCE])
