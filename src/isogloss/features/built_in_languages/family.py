"""The family of built-in languages: every dial of every language (family.toml), and their scripts.

Each language differs from the source, qaa, by dials that can be turned one at a time, so that cause and
effect in cross-lingual transfer can be measured. A ``Language`` that you define works wherever a code does.

Every word is a sequence of syllables in Latin letters, then spelled in a script. A syllable is one consonant,
one vowel and an optional closing consonant. So a word in Latin letters splits into syllables in only one way,
and every spelling below can be read back.
"""

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal, get_args, get_origin, get_type_hints

from isogloss.core.errors import ConfigError, check_named, unknown_name
from isogloss.core.identity import derive
from isogloss.features.built_in_languages.relations import DECISIONS, Relation, read_relation

VERSION = 2
"""Version of the generated data, raised when they change. It is part of the ids of runs that read them."""

SOURCE = "qaa"
"""Language with which the others share words."""

Order = Literal["SVO", "SOV", "VSO"]
Side = Literal["before", "after"]
Marking = Literal["suffix", "prefix", "particle"]
CaseMarking = Literal["suffix", "prefix", "particle", "none"]
Script = Literal["latin", "cyrillic", "greek", "devanagari", "arabic", "han"]


@dataclass(frozen=True, kw_only=True)
class Language:
    """One language: its grammar, its script and its similarity to the source."""

    code: str
    """ISO 639-3 code of the private range qaa to qtz. The built-in languages use qaa to qai."""
    name: str
    order: Order
    """Order of subject, verb and object."""
    adjective: Side
    """Position of adjectives relative to their noun."""
    adposition: Side
    """Position of adpositions and of the particles of case, tense and negation. A phrase that modifies a noun
    follows it for "before", and precedes it for "after"."""
    relative: Side
    """Position of relative clauses relative to their noun."""
    determiner: Side = "before"
    """Position of determiners and numerals relative to their noun."""
    script: Script = "latin"
    """Script of words and names. "han" has one character per syllable and no spaces."""
    number: Marking = "suffix"
    case: CaseMarking = "none"
    tense: Marking = "suffix"
    negation: Marking = "particle"
    agreement: bool = False
    """Whether adjectives agree with their noun in number (if number is an affix)."""
    shared: float = 0.0
    """Share of nouns, verbs, adjectives and adverbs with the same root as in the source, 0 to 1."""
    size: float = 1.0
    """Factor on the sizes of training splits: below 1 for a low-resource language."""
    seed: int
    """Seed of the sounds and words."""
    relation: Relation | None = None
    """Distances from the language that this one was derived from (``derive_language``). Default: none."""

    def __post_init__(self) -> None:
        for field, choices in _ALLOWED.items():
            if getattr(self, field) not in choices:
                raise unknown_name(f"language {self.code}", field, str(getattr(self, field)), choices)
        if not 0 <= self.shared <= 1 or not 0 < self.size <= 1:
            raise ConfigError(
                f"language {self.code}: shared is {self.shared} and size is {self.size}; "
                f"shared must be in [0, 1] and size in (0, 1]."
            )
        affix_kinds = {self.number, self.case, self.tense, self.negation} - {"particle", "none"}
        if self.script == "han" and affix_kinds:
            raise ConfigError(
                f"language {self.code}: script 'han' writes no spaces, so its words take no affixes "
                f"(found {', '.join(sorted(affix_kinds))}). Use 'particle' for number, "
                f"case, tense and negation."
            )
        if self.relation and self.relation.script and self.script not in _ALPHABETS:
            raise ConfigError(
                f"language {self.code}: script is {self.relation.script}, but {self.relation.source} has the "
                f"script {self.script!r} without an alphabet. Derive it from a language in "
                f"{', '.join(_ALPHABETS)}, or leave script at 0."
            )

    @property
    def origin(self) -> str:
        """Seed of words and training examples: the code, or the source and draw of a derived language."""
        return self.relation.origin if self.relation else self.code


_ALLOWED = {
    field: get_args(kind) for field, kind in get_type_hints(Language).items() if get_origin(kind) is Literal
}

LANGUAGES: dict[str, Language] = {
    language: Language(code=language, **dials)
    for language, dials in tomllib.loads(
        Path(__file__).with_name("family.toml").read_text(encoding="utf-8")
    ).items()
}


def find_language(language: str | Language) -> Language:
    """Return the language of a code (qab, or a derived one such as qaa_Wrda_025), or the language itself.

    Raises ConfigError for an unknown code.
    """
    if isinstance(language, Language):
        return language
    if relation := read_relation(language):
        return _derive(relation, language)
    check_named("built-in languages", "language", LANGUAGES, language)
    return LANGUAGES[language]


def derive_language(
    source: str = SOURCE,
    *,
    words: float = 0.0,
    names: float = 0.0,
    senses: float = 0.0,
    world: float = 0.0,
    order: float = 0.0,
    script: float = 0.0,
    draw: int = 0,
    language_code: str = "",
) -> Language:
    """Return a language at known distances from a built-in one, by dial, from 0 (equal) to 1 (unrelated).

    ``words`` replaces roots, function words and affixes, ``names`` the words of names, ``senses`` makes verbs
    sound like nouns, ``world`` replaces sentences by sentences without a translation, ``order`` turns the
    five decisions of word order, and ``script`` writes letters in another alphabet. ``draw`` numbers
    independent languages at the same distances. ``language_code`` Default: the
    code of recipes if there is one.

    Raises ConfigError for values out of range.

    >>> derive_language("qaa", words=0.25).code
    'qaa_Wrda_025'
    """
    check_named("built-in languages", "language", LANGUAGES, source)
    relation = Relation(
        source=source, words=words, names=names, senses=senses, world=world, order=order, script=script,
        draw=draw,
    )  # fmt: skip
    return _derive(relation, language_code or relation.language_code())


@cache
def _derive(relation: Relation, language_code: str) -> Language:
    """Return a derived language. Decisions of word order are turned in the order of the draw."""
    source = LANGUAGES[relation.source]
    turned: dict[str, Any] = {field: _opposite_side(getattr(source, field)) for field in _SIDES}
    random = Random(derive(relation.draw, "order", relation.source)).random
    orders = [order for order in get_args(Order) if order != source.order]
    turned["order"] = orders[int(random() * len(orders))]
    fields = sorted(turned, key=lambda field: (random(), field))[: relation.count("order", DECISIONS)]
    title = ", ".join(f"{dial} {value:g}" for dial, value in relation.turned().items())
    return replace(
        source,
        code=language_code,
        name=f"{source.name} ({title})" if title else f"{source.name} again",
        relation=relation,
        **{field: turned[field] for field in fields},
    )


_SIDES = ("adjective", "adposition", "relative", "determiner")


def _opposite_side(side: str) -> str:
    return "after" if side == "before" else "before"


def card(language: str | Language) -> dict[str, str]:
    """Describe a language in words: its typology card."""
    spec = find_language(language)
    side = {"before": "before the noun", "after": "after the noun"}
    case = "not marked" if spec.case == "none" else f"object marked by {spec.case}"
    shared = (
        "the source itself" if spec.code == SOURCE else f"{spec.shared:.0%} of content words with {SOURCE}"
    )
    names = "shared by all languages, spelled in the script"
    if spec.relation:
        shared = f"{1 - spec.relation.words:.0%} of all words with {spec.relation.source}"
        names = f"{1 - spec.relation.names:.0%} of their words shared, spelled in the script"
    return {
        "language": f"{spec.name} ({spec.code})",
        "word order": spec.order,
        "adjectives": side[spec.adjective],
        "determiners and numerals": side[spec.determiner],
        "adpositions": {"before": "prepositions", "after": "postpositions"}[spec.adposition],
        "relative clauses": side[spec.relative],
        "script": spec.script.capitalize() + (", no spaces" if spec.script == "han" else ""),
        "number": f"{spec.number}{', adjectives agree' if spec.agreement else ''}",
        "case": case,
        "tense": spec.tense,
        "negation": spec.negation,
        "shared vocabulary": shared,
        "names": names,
        "training data": "full size" if spec.size == 1 else f"low-resource, {spec.size:.0%} of full size",
    }


CONSONANTS = "bdfghjklmnprstvyz"
VOWELS = "aeiou"
CODAS = ("", "n", "r", "s", "l")

_LATIN = CONSONANTS + VOWELS
_ALPHABETS = {
    "latin": _LATIN,
    "cyrillic": "бдфгхжклмнпрствшзаеиоу",
    "greek": "βδφγχξκλμνπρστψθζαειου",
    "arabic": "بدفگھجكلمنپرستۋيزاەىوۇ",  # Uyghur's alphabet, which writes every vowel
}
_TABLES = {script: str.maketrans(_LATIN, letters) for script, letters in _ALPHABETS.items()}

_DEVANAGARI = dict(zip(CONSONANTS, "बदफगहजकलमनपरसतवयष", strict=True))
_MATRAS = {"a": "", "e": "े", "i": "ि", "o": "ो", "u": "ु"}
_VIRAMA = "्"

_HAN_FIRST = 0x4E00
_HAN_STEP = 47
"""Distance between the characters of syllables, spread over the 20,992 of the block that all fonts have."""

_SYLLABLE = re.compile(rf"[{CONSONANTS}][{VOWELS}](?:[nrsl](?![{VOWELS}]))?")


def syllables(word: str) -> list[str]:
    """Split a word in Latin letters into its syllables."""
    return _SYLLABLE.findall(word)


def write(word: str, language: Language) -> str:
    """Spell a word, given in Latin letters, in the script of a language."""
    relation = language.relation
    if relation is None or not relation.script:
        return spell(word, language.script)
    return word.translate(_mixed_alphabet(relation, language.script))


@cache
def _mixed_alphabet(relation: Relation, script: str) -> dict[int, str]:
    """Return the characters of the letters: for the dial's share those of a second alphabet."""
    random = Random(derive(relation.draw, "script", relation.source)).random
    scripts = [name for name in _ALPHABETS if name != script]
    other_alphabet = _ALPHABETS[scripts[int(random() * len(scripts))]]
    letters = sorted(range(len(_LATIN)), key=lambda letter: (random(), letter))
    replaced = set(letters[: relation.count("script", len(letters))])
    return {
        ord(letter): (other_alphabet if index in replaced else _ALPHABETS[script])[index]
        for index, letter in enumerate(_LATIN)
    }


@cache
def spell(word: str, script: str) -> str:
    """Spell a word, given in Latin letters, in a script."""
    if script == "devanagari":
        return "".join(_devanagari(syllable) for syllable in syllables(word))
    if script == "han":
        return "".join(_han(syllable) for syllable in syllables(word))
    return word.translate(_TABLES[script])


def _devanagari(syllable: str) -> str:
    onset = syllable[0]
    vowel = syllable[1]
    coda = syllable[2:]
    return _DEVANAGARI[onset] + _MATRAS[vowel] + (_DEVANAGARI[coda] + _VIRAMA if coda else "")


def _han(syllable: str) -> str:
    onset = CONSONANTS.index(syllable[0])
    vowel = VOWELS.index(syllable[1])
    index = (onset * len(VOWELS) + vowel) * len(CODAS) + CODAS.index(syllable[2:])
    return chr(_HAN_FIRST + _HAN_STEP * index)
