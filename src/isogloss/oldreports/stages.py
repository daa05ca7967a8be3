"""The stages of an encoder: as it was, adjusted to a pair of languages, fine-tuned, or both of these.

Paper: "… Cross-Lingual Adjustment …", Fig. 2: original, adjusted, fine-tuned, adjusted and fine-tuned, and
fine-tuned in continual mode. A stage is told from the columns of a row: the encoder's label ("mini,
cross-lingual-adjustment on 5000 en-es (0a1b2c)"), the task and the method.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import DistanceBin, Distances

PLAIN = "source-only"
"""The method that is meant where a stage names none."""

CONTINUAL = "continual"

_ADJUSTED = re.compile(
    r"(?P<before>.+), (?P<how>[a-z][a-z-]*) on (?:(?P<size>\d+) )?(?P<pairs>[A-Za-z+-]+) \([0-9a-f]{6}\)"
)


R = TypeVar("R", Distances, DistanceBin)
"""Rows about an encoder, or the one within a model, and two languages."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What an encoder was made from, and the pairs of languages it was adjusted to, if any."""

    base: str
    pairs: frozenset[str] = frozenset()
    how: str = ""
    """The last adjustment."""
    size: int = 0
    """Translations of each pair in the last adjustment; 0 where the label does not say it."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, of one task where it was fine-tuned.

    ``number`` tells encoders apart that were adjusted to one pair in several ways, from 1.
    """

    task: str = ""
    method: str = ""
    adjusted: bool = False
    number: int = 1
    how: str = ""
    """How it was adjusted, where stages differ in that."""
    size: int = 0
    """On how many translations, where stages differ in that."""

    @property
    def original(self) -> bool:
        """Tell whether this is the encoder as it was."""
        return not (self.task or self.adjusted)

    @property
    def label(self) -> str:
        """The stage in words, as in "nli: adjusted + fine-tuned"."""
        tuned = {"": "", PLAIN: "fine-tuned"}.get(self.method, self.method)
        size = f"{self.size:,}" if self.size else ""
        about = [self.how, size, str(self.number) if self.number > 1 else ""]
        made = f"adjusted ({', '.join(filter(None, about))})" if any(about) else "adjusted"
        parts = [made] if self.adjusted else []
        words = " + ".join([*parts, *filter(None, [tuned])]) or "original"
        return f"{self.task}: {words}" if self.task else words

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key: encoders first, then by task; continual mode last."""
        about = (self.how, self.size, self.number)
        return self.task, self.method.startswith(CONTINUAL), self.method, self.adjusted, *about


def origin(encoder: str) -> Origin:
    """Take an encoder's label apart; what is no label of an adjusted one is its own base."""
    match = _ADJUSTED.fullmatch(encoder)
    if not match:
        return Origin(encoder)
    before = origin(match["before"])
    pairs = before.pairs | {*match["pairs"].split("+")}
    return Origin(before.base, pairs, match["how"], int(match["size"] or 0))


def by_stage(rows: Sequence[R]) -> dict[Stage, dict[str, list[R]]]:
    """Return the rows of one base encoder by stage and pair of languages, stages in order.

    Of adjusted encoders those are meant that were adjusted to the pair itself: what an adjustment does to
    other pairs is left out.
    """
    found: dict[Stage, dict[str, list[R]]] = {}
    kind = _kinds(rows)
    for (first, second), members in grouped(rows, lambda row: (row.first, row.second)).items():
        own = [row for row in members if _is_own(origin(row.encoder), first, second)]
        for stage, group in grouped(own, kind).items():
            for number, same in enumerate(grouped(group, lambda row: row.encoder).values(), start=1):
                found.setdefault(replace(stage, number=number), {})[f"{first}–{second}"] = same
    return dict(sorted(found.items(), key=lambda item: item[0].order))


def _is_own(made: Origin, first: str, second: str) -> bool:
    return not made.pairs or bool(made.pairs & {f"{first}-{second}", f"{second}-{first}"})


def _kinds(rows: Sequence[Distances | DistanceBin]) -> Callable[[Distances | DistanceBin], Stage]:
    """Return what tells the stage of a row, but its number; names are what not all adjustments share."""
    made = {row.encoder: origin(row.encoder) for row in rows}
    several_ways = len({one.how for one in made.values() if one.pairs}) > 1
    several_sizes = len({one.size for one in made.values() if one.pairs}) > 1

    def kind(row: Distances | DistanceBin) -> Stage:
        one = made[row.encoder]
        how, size = one.how if several_ways else "", one.size if several_sizes else 0
        return Stage(row.task, row.method, bool(one.pairs), how=how, size=size)

    return kind
