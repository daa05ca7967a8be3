"""Translations that were made: how much of them was lost, and how near they are to other people's."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Translated:
    """One translated split: what was lost, and, of bitext, chrF against its own translations."""

    diagnostic: ClassVar[str] = "translate"
    corpus: str
    languages: str
    split: str
    translator: str
    examples: int
    translated: int
    lost: int
    cuts: int
    metric: str = ""
    score: float | None = None


def translation_tables(runs: Sequence[Run]) -> list[Table]:
    """Return one table of all translations."""
    there = [(run, row) for run in runs for row in run_rows(run, Translated)[0]]
    if not there:
        return []
    ordered = sorted(
        there, key=lambda one: (one[1].corpus, one[1].languages, one[1].split, one[1].translator)
    )
    table = Table(
        name="translations",
        title="Translations",
        caption=(
            "Lost: questions whose answer was not found again, which are left out. Cuts: places at which "
            "texts were too long for the translator. chrF in percent, against the corpus's own translations."
        ),
        header=cells(*_HEADS),
        align="llllrrrr",
        rows=tuple(
            cells(
                *(row.corpus, row.languages, row.split, row.translator),
                *(f"{number:,}" for number in (row.examples, row.lost, row.cuts)),
                "–" if row.score is None else percent(row.score),
            )
            for _, row in ordered
        ),
        data=[{"run": run.id, **asdict(row)} for run, row in ordered],
    )
    return [table]


_HEADS = ("corpus", "languages", "split", "translator", "examples", "lost", "cuts", "chrF")
