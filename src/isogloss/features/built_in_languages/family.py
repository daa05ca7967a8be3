"""The family of built-in languages: every dial of every language (family.toml), and their scripts.

Each language differs from the source, qaa, by dials that can be turned one at a time, so that cause and
effect in cross-lingual transfer can be measured. A ``Language`` that you define works wherever a code does.

Every word is a sequence of syllables in Latin letters, then spelled in a script. A syllable is one consonant,
one vowel and an optional closing consonant. So a word in Latin letters splits into syllables in only one way,
and every spelling below can be read back.
"""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

from isogloss.core.errors import ConfigError, check_named, unknown_name

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
    """Return the language of a code, or the language itself.

    Raises ConfigError for an unknown code.
    """
    if isinstance(language, Language):
        return language
    check_named("built-in languages", "language", LANGUAGES, language)
    return LANGUAGES[language]


def card(language: str | Language) -> dict[str, str]:
    """Describe a language in words: its typology card."""
    spec = find_language(language)
    side = {"before": "before the noun", "after": "after the noun"}
    case = "not marked" if spec.case == "none" else f"object marked by {spec.case}"
    shared = (
        "the source itself" if spec.code == SOURCE else f"{spec.shared:.0%} of content words with {SOURCE}"
    )
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
        "names": "shared by all languages, spelled in the script",
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
