"""Word alignments of the bitext used, and how far they are from gold links."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Alignment
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import percent


def alignment_tables(runs: Sequence[Run]) -> list[Table]:
    """Return one table of all alignments; without any gold there is nothing to say about them."""
    there = [(run, row) for run in runs for row in run_rows(run, Alignment)[0]]
    if not any(row.gold_pairs for _, row in there):
        return []
    settings = _settings(runs)
    ordered = sorted(there, key=lambda one: (one[1].bitext, one[1].languages, one[1].split, one[1].pairs))
    table = Table(
        name="word-alignment",
        title="Word alignments against gold links",
        caption=(
            "Precision, recall, F1 and AER (alignment error rate; 0 is best) in percent, on the pairs that "
            "have gold links."
        ),
        header=cells(*_HEADS),
        align="lllllrrrrrrr",
        rows=tuple(
            cells(
                *(row.bitext, row.languages, row.split, row.aligner, settings[run.id]),
                *(f"{number:,}" for number in (row.pairs, row.links, row.gold_pairs)),
                *(_percent(number) for number in (row.precision, row.recall, row.f1, row.aer)),
            )
            for run, row in ordered
        ),
        data=[{"run": run.id, **asdict(row), "settings": settings[run.id]} for run, row in ordered],
    )
    return [table]


_HEADS = (
    *("bitext", "languages", "split", "aligner", "settings", "pairs", "links", "gold pairs"),
    *("precision", "recall", "F1", "AER"),
)


def _percent(value: float | None) -> str:
    return "–" if value is None else percent(value)


def _settings(runs: Sequence[Run]) -> dict[str, str]:
    """Return, by run, the fields in which aligners of one kind differ."""
    aligners = {run.id: _aligner(run) for run in runs}
    found: dict[str, str] = {}
    for same in grouped(aligners, lambda name: aligners[name].get("kind")).values():
        names = dict.fromkeys(field for name in same for field in aligners[name])
        differing = [field for field in names if len({str(aligners[name].get(field)) for name in same}) > 1]
        found |= {
            name: ", ".join(f"{field} {aligners[name].get(field)}" for field in differing) for name in same
        }
    return found


def _aligner(run: Run) -> Mapping[str, Any]:
    part = run.record.run.get("aligner") if run.record else None
    return part if isinstance(part, Mapping) else {}
