"""Sounds and scripts: every word is a sequence of syllables in Latin letters, then spelled in a script.

A syllable is one consonant, one vowel and perhaps a closing consonant, so a word in Latin letters splits
into syllables in one way only, and every spelling below can be read back.
"""

import re
from functools import cache

CONSONANTS = "bdfghjklmnprstvyz"
VOWELS = "aeiou"
CODAS = ("", "n", "r", "s", "l")

_LATIN = CONSONANTS + VOWELS
_ALPHABETS = {
    "latin": _LATIN,
    "cyrillic": "бдфгхжклмнпрствшзаеиоу",
    "greek": "βδφγχξκλμνπρστψθζαειου",
    "arabic": "بدفگھجكلمنپرستۋيزاەىوۇ",  # as Uyghur, which writes every vowel
}
_TABLES = {script: str.maketrans(_LATIN, letters) for script, letters in _ALPHABETS.items()}

_DEVANAGARI = dict(zip(CONSONANTS, "बदफगहजकलमनपरसतवयष", strict=True))
_MATRAS = {"a": "", "e": "े", "i": "ि", "o": "ो", "u": "ु"}
_VIRAMA = "्"

_HAN_FIRST, _HAN_STEP = 0x4E00, 47
"""One character a syllable, spread over the 20,992 of the block that all fonts have."""

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
    onset, vowel, coda = syllable[0], syllable[1], syllable[2:]
    return _DEVANAGARI[onset] + _MATRAS[vowel] + (_DEVANAGARI[coda] + _VIRAMA if coda else "")


def _han(syllable: str) -> str:
    onset, vowel = CONSONANTS.index(syllable[0]), VOWELS.index(syllable[1])
    number = (onset * len(VOWELS) + vowel) * len(CODAS) + CODAS.index(syllable[2:])
    return chr(_HAN_FIRST + _HAN_STEP * number)
