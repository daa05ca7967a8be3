"""Tables about the work itself: the claims, and what was run, where, how long and with which trouble."""

from collections.abc import Mapping, Sequence
from typing import Any

from isogloss.core.records import Row
from isogloss.oldreports.claims import Claim
from isogloss.oldreports.gather import Run, run_rows
from isogloss.oldreports.rows import Epoch
from isogloss.oldreports.tables import Cell, Table, cells

STATES = {
    "finished": "finished",
    "failed": "failed",
    "damaged": "damaged record",
    "missing": "not run yet",
}


def claim_table(claims: Sequence[Claim]) -> Table:
    """Return the claims about transfer with number and verdict."""
    return _claims("claims", "What the paper claims, and what these runs say", claims)


def adjustment_claim_table(claims: Sequence[Claim]) -> list[Table]:
    """Return the claims about adjustment in a table of their own; none where they do not come up."""
    title = "What is claimed of cross-lingual adjustment, and what these runs say"
    return [_claims("claims-adjustment", title, claims)] if claims else []


def interference_claim_table(claims: Sequence[Claim]) -> list[Table]:
    """Return the claims about negative interference in a table of their own; none where there are none."""
    title = "What is claimed of negative interference, and what these runs say"
    return [_claims("claims-interference", title, claims)] if claims else []


def mixup_claim_table(claims: Sequence[Claim]) -> list[Table]:
    """Return the claims about X-Mixup in a table of their own; none where there are none."""
    title = "What is claimed of X-Mixup, and what these runs say"
    return [_claims("claims-x-mixup", title, claims)] if claims else []


def _claims(name: str, title: str, claims: Sequence[Claim]) -> Table:
    return Table(
        name=name,
        title=title,
        caption="Each verdict follows from these runs alone, by the rule in the last column.",
        header=cells("", "claim", "found here", "verdict", "how it was computed"),
        align="lllll",
        rows=tuple(
            (
                Cell(claim.letter),
                Cell(claim.sentence),
                Cell(claim.number),
                Cell(claim.verdict, claim.verdict),
                Cell(claim.how, "how"),
            )
            for claim in claims
        ),
        data=[
            {name: getattr(claim, name) for name in ("letter", "sentence", "number", "verdict", "how")}
            for claim in claims
        ],
    )


def run_table(runs: Sequence[Run]) -> Table:
    """Return every run of the plan with how it ended."""
    rows = [_run_row(run) for run in runs]
    shown = ("id", "title", "kind", "state", "seconds", "device", "epoch", "remarks")
    finished = sum(run.state == "finished" for run in runs)
    return Table(
        name="runs",
        title=f"Every run of the plan ({finished} of {len(runs)} finished)",
        caption="Seconds and device as written beside the record; epoch: the one that was kept.",
        header=cells(*shown),
        align="llllrlrl",
        rows=tuple(
            tuple(Cell(_text(row[name]), str(run.state) if name == "state" else "") for name in shown)
            for run, row in zip(runs, rows, strict=True)
        ),
        data=rows,
        folded=len(rows) > 12,
    )


def _run_row(run: Run) -> Row:
    warnings = "; ".join(run.record.warnings) if run.record else ""
    return {
        "id": run.id,
        "title": run.title if run.record else "",
        "kind": run.diagnostic or run.kind,
        "state": STATES[run.state],
        "seconds": _number(run.made, "seconds"),
        "device": str(run.made.get("device", "")),
        "threads": _number(run.made, "threads"),
        "precision": str(run.made.get("precision", "")),
        "epoch": _kept_epoch(run),
        "remarks": "; ".join(filter(None, (run.error, warnings))),
    }


def _number(made: Mapping[str, Any], name: str) -> float | None:
    value = made.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _kept_epoch(run: Run) -> int | None:
    if run.kind != "fine-tune":
        return None
    return next((row.epoch for row in run_rows(run, Epoch)[0] if row.chosen), None)


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)
