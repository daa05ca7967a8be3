"""Relations: how far a language is from the language that it was derived from, one dial for each property.

Each dial goes from 0, where the language equals its source in this property, to 1, where it is unrelated. The
other dials stay where they are. What changes at a value also changes at every higher one: the words that
differ at 0.3 have the same forms at 0.5.

Recipes give a relation as a code: the source, the dial with a draw, and hundredths. ``qaa_Wrda_025`` is qaa
with a quarter of its words replaced, in draw a. In ``qaa_Mixa_203`` three digits turn words, order and
script, in fifths.
"""

import re
from dataclasses import dataclass
from string import ascii_lowercase

from isogloss.core.errors import ConfigError, check_named

DIALS = {
    "words": "Wrd",
    "names": "Nam",
    "senses": "Sen",
    "world": "Wld",
    "order": "Ord",
    "script": "Scr",
}
"""Dials by the three letters of a code."""

MIXED = "Mix"
"""Letters of a code whose digits turn several dials."""

MIXED_DIALS = ("words", "order", "script")

DECISIONS = 5
"""Decisions of word order: the order of the clause, and the sides of adjectives, adpositions, relative
clauses and determiners."""

LABELS_NEED_MEANINGS = ("pawsx", "squad", "xnli")
"""Corpora whose labels and answers follow from the meanings of sentences."""

_HUNDREDTHS = 100
_CODE = re.compile(r"(?P<source>qa[a-i])_(?P<dial>[A-Z][a-z]{2})(?P<draw>[a-z])_(?P<number>[0-9]{3})")


@dataclass(frozen=True, kw_only=True)
class Relation:
    """Distance of a language from its source by dial, from 0 (equal) to 1 (unrelated)."""

    source: str
    """Code of the built-in language from which the language was derived."""

    words: float = 0.0
    """Share of roots, function words and affixes that differ from the source's."""

    names: float = 0.0
    """Share of the words of names that differ from the source's."""

    senses: float = 0.0
    """Share of verbs that sound like a noun where the source has a different word (polysemy)."""

    world: float = 0.0
    """Share of sentences without a translation. Instead, the language has a sentence from a world with
    different actors, properties and frequencies. ``ud``, ``wikiann``, ``text`` and bitext only."""

    order: float = 0.0
    """Share of the five decisions of word order that differ from the source's: 0, 0.2, 0.4, 0.6, 0.8 or 1."""

    script: float = 0.0
    """Share of letters that are written with a character of another alphabet."""

    draw: int = 0
    """Number of the random draw of everything that differs. In codes, a to z are 0 to 25."""

    def __post_init__(self) -> None:
        """Raise ConfigError for a dial outside 0 to 1, and for an order between two decisions."""
        for dial in DIALS:
            value = getattr(self, dial)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise ConfigError(
                    f"language derived from {self.source}: {dial} is {value!r}; a dial goes from 0 (equal to "
                    f"the source) to 1 (unrelated)."
                )
        decisions = self.order * DECISIONS
        if abs(decisions - round(decisions)) > 1e-9:
            raise ConfigError(
                f"language derived from {self.source}: order is {self.order}; word order has {DECISIONS} "
                f"decisions, so give 0, 0.2, 0.4, 0.6, 0.8 or 1."
            )
        if isinstance(self.draw, bool) or not isinstance(self.draw, int) or self.draw < 0:
            raise ConfigError(
                f"language derived from {self.source}: draw is {self.draw!r}; give a whole number from 0."
            )

    @property
    def origin(self) -> str:
        """Source and draw. Languages that differ only in their dials have the same."""
        return f"{self.source} draw {self.draw}"

    def count(self, dial: str, total: int) -> int:
        """Return how many of a number of things differ."""
        share: float = getattr(self, dial)
        return round(share * total)

    def check_corpus(self, corpus: str) -> None:
        """Raise ConfigError if the labels of a corpus would be lost in a language with a world of its own."""
        if self.world and corpus in LABELS_NEED_MEANINGS:
            raise ConfigError(
                f"language derived from {self.source}: world is {self.world:g}, and labels of {corpus} "
                f"follow from meanings, which its sentences lack. Choose ud, wikiann, text or bitext, or "
                f"world 0."
            )

    def turned(self) -> dict[str, float]:
        """Return the dials that are not at 0."""
        return {dial: getattr(self, dial) for dial in DIALS if getattr(self, dial)}

    def language_code(self) -> str:
        """Return the code of recipes, or a description if no code has these values."""
        turned = self.turned() or {"words": 0.0}
        if self.draw < len(ascii_lowercase):
            letter = ascii_lowercase[self.draw]
            if len(turned) == 1:
                ((dial, value),) = turned.items()
                if (number := _as_whole(value * _HUNDREDTHS)) is not None:
                    return f"{self.source}_{DIALS[dial]}{letter}_{number:03}"
            digits = [_as_whole(getattr(self, dial) * DECISIONS) for dial in MIXED_DIALS]
            if None not in digits and set(turned) <= set(MIXED_DIALS):
                return f"{self.source}_{MIXED}{letter}_{''.join(map(str, digits))}"
        values = "_".join(f"{dial}{value:g}" for dial, value in turned.items())
        return f"{self.source}_{values}_draw{self.draw}"


def read_relation(language_code: str) -> Relation | None:
    """Return the relation that a code of recipes stands for, or None if it has a different form.

    Raises ConfigError for an unknown dial and for values out of range.
    """
    match = _CODE.fullmatch(language_code)
    if match is None:
        return None
    dials = {letters: dial for dial, letters in DIALS.items()}
    check_named(f"language {language_code}", "dial", (*dials, MIXED), match["dial"])
    draw = ascii_lowercase.index(match["draw"])
    if match["dial"] == MIXED:
        values = [int(digit) / DECISIONS for digit in match["number"]]
        if max(values) > 1:
            raise ConfigError(
                f"language {language_code}: {match['number']} turns {', '.join(MIXED_DIALS)} in fifths, "
                f"so each digit is 0 to {DECISIONS}."
            )
        return Relation(source=match["source"], draw=draw, **dict(zip(MIXED_DIALS, values, strict=True)))
    number = int(match["number"])
    if number > _HUNDREDTHS:
        raise ConfigError(
            f"language {language_code}: {match['number']} is beyond {_HUNDREDTHS}. A dial goes in hundredths "
            f"from 000 (equal to the source) to {_HUNDREDTHS} (unrelated)."
        )
    return Relation(source=match["source"], draw=draw, **{dials[match["dial"]]: number / _HUNDREDTHS})


def _as_whole(number: float) -> int | None:
    return round(number) if abs(number - round(number)) < 1e-9 else None
