"""Write the report of a folder of runs: a page, its figures as PDF, its tables as CSV and LaTeX.

From records alone, without torch. The same records give the same bytes; where nothing has changed since the
last report, nothing is drawn or written.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd

from isogloss.core.records import MADE, RECORD, write_bytes, writing
from isogloss.core.stamps import package_stamp, stamp
from isogloss.data.prediction_table import PREDICTIONS
from isogloss.reports import claims_adjustment, claims_interference, claims_mixup, claims_transfer
from isogloss.reports.comparison import PLACE, best_split, spoken_for
from isogloss.reports.measurements import FAILED, PLAN, Measurements, read_measurements
from isogloss.reports.names import count, joined, language, name_systems, percent, slug
from isogloss.reports.page import Page, counted, render, run_table
from isogloss.reports.sections import SECTIONS, shown
from isogloss.reports.tables import to_csv, to_latex
from isogloss.reports.verdicts import Claim, Outcome, judge

CLAIMS: tuple[Claim, ...] = (
    *claims_transfer.CLAIMS,
    *claims_mixup.CLAIMS,
    *claims_adjustment.CLAIMS,
    *claims_interference.CLAIMS,
)
"""What the four papers claim, paper by paper."""

PAGE, WRITTEN = "report.html", "tables/.written"
"""The page, and what is known of the last report: the state of the folder, files, what was found."""

WHOLE = ("", "paired", "translated")
"""Ways in which inputs come whole; the others mix languages within an input."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where everything was written, and what a terminal should say about it."""

    html: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    found: str
    """What carried over and by how much, in a sentence or two."""
    claims: tuple[Outcome, ...]
    """What became of the papers' claims; of a report that was there already, without checks."""
    runs: str
    """How many runs finished."""
    warnings: tuple[str, ...]

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return (label, text) rows for a terminal."""
        verdicts = [(f"({one.claim.id}) {one.verdict}", one.found) for one in self.claims]
        return ("found", self.found), ("claims", counted(self.claims)), *verdicts, ("runs", self.runs)

    @cached_property
    def measurements(self) -> Measurements:
        """Everything the report was made from, read when it is asked for."""
        return read_measurements(self.html.parent)


def write_report(out: Path) -> Report:
    """Write ``report.html``, ``figures/`` and ``tables/`` into a folder of runs, where they are not there.

    Raises ConfigError where there is neither a plan nor a record, StorageError where nothing can be written.
    A run that is missing, failed or damaged is named in the report.
    """
    known = _known(out)
    return _report_of(out, known) if is_as_it_was(out, known) else _written_again(out)


def finished_report(out: Path) -> Report | None:
    """Return the report of a folder where the whole plan is finished and nothing changed since; else None."""
    known = _known(out)
    return _report_of(out, known) if known.get("whole") and is_as_it_was(out, known) else None


def is_as_it_was(out: Path, known: Mapping[str, Any]) -> bool:
    """Tell whether the folder, the package and all that the last report wrote are as they were then."""
    return "stamp" in known and known["state"] == _state(out) and known["stamp"] == stamp(_paths(out, known))


def _report_of(out: Path, known: Mapping[str, Any], outcomes: Sequence[Outcome] = ()) -> Report:
    """Return a report from what is known of it."""
    claims = {claim.id: claim for claim in CLAIMS}
    there = [
        Outcome(claim=claims[key], verdict=verdict, found=text) for key, verdict, text in known["claims"]
    ]
    paths = _paths(out, known)
    return Report(
        html=out / PAGE,
        figures=tuple(path for path in paths if path.parent.name == "figures"),
        tables=tuple(path for path in paths if path.parent.name == "tables"),
        found=known["found"],
        claims=tuple(outcomes or there),
        runs=known["runs"],
        warnings=tuple(known["warnings"]),
    )


def _known(out: Path) -> dict[str, Any]:
    """Return what is known of the last report; of an earlier version's, its files alone."""
    try:
        text = (out / WRITTEN).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return {}
    try:
        known = json.loads(text)
    except ValueError:
        return {"files": text.splitlines()}
    return known if isinstance(known, dict) else {}


def _state(out: Path) -> str:
    """Return the stamp of all that a report is made from: plan, records and the package."""
    names = (RECORD, FAILED, MADE, PREDICTIONS)
    plan = (out / PLAN).read_bytes() if (out / PLAN).is_file() else b""
    seen = stamp(path for name in names for path in out.glob(f"*/{name}"))
    return f"{package_stamp()} {seen} {sha256(plan).hexdigest()[:16]}"


def _paths(out: Path, known: Mapping[str, Any]) -> list[Path]:
    return [out / name for name in known["files"]]


def _written_again(out: Path) -> Report:
    """Make everything, write what is new, and remove what the last report wrote and this one does not."""
    state, earlier, m = _state(out), _known(out), read_measurements(out)
    page = Page(
        m=m,
        found=what_was_found(m),
        outcomes=judge(CLAIMS, m),
        sections=[shown(section, m) for section in SECTIONS],
        runs=run_table(m),
        raw={slug("rows", kind): m.raw(kind) for kind in m.kinds()}
        | {"facts": m.models.rename_axis("id").reset_index()},
    )
    contents = {**dict(_beside(page)), PAGE: render(page).encode()}
    finished = sum(run.state == "finished" for run in m.runs)
    with writing(out):
        _write(out, contents)
        _remove(out, set(earlier.get("files", ())) - set(contents))
    known = {
        "state": state,
        "files": list(contents),
        "found": page.found,
        "claims": [(one.claim.id, one.verdict, one.found) for one in page.outcomes],
        "runs": f"{finished} of {len(m.runs)} finished",
        "whole": finished == len(m.runs),
        "warnings": list(m.warnings),
    }
    known["stamp"] = stamp(_paths(out, known))
    write_bytes(out / WRITTEN, json.dumps(known, ensure_ascii=False, indent=1).encode())
    return _report_of(out, known, page.outcomes)


def _write(out: Path, contents: Mapping[str, bytes]) -> None:
    """Write what is not there yet."""
    for name, content in contents.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != content:
            write_bytes(path, content)


def _remove(out: Path, names: Iterable[str]) -> None:
    """Remove figures and tables; a name that leads elsewhere is left alone."""
    for name in names:
        folder, _, file = name.rpartition("/")
        if folder in ("figures", "tables") and Path(file).suffix in (".pdf", ".csv", ".tex"):
            (out / folder / file).unlink(missing_ok=True)


def _beside(page: "Page") -> Iterator[tuple[str, bytes]]:
    """Give name and content of every file beside the page."""
    for table in page.tables:
        yield f"tables/{table.name}.csv", to_csv(table.data).encode()
        yield f"tables/{table.name}.tex", to_latex(table).encode()
    for figure in page.figures:
        yield f"figures/{figure.name}.pdf", figure.pdf
        yield f"tables/{figure.name}.csv", to_csv(figure.data).encode()
    for name, rows in page.raw.items():
        yield f"tables/{name}.csv", to_csv(rows).encode()


def what_was_found(m: Measurements) -> str:
    """Say how far the source carries, and which other system gains most on the same targets."""
    scores = m.frame("scores")
    scores = best_split(spoken_for(scores[scores["main"].eq(True) & scores["inputs"].isin(WHOLE)]))
    scores = name_systems(scores, m.labels)
    is_plain = (
        scores["method"].eq("source-only") & scores["encoder.adjusted"].eq("") & scores["inputs"].eq("")
    )
    first = scores[is_plain]["name"].iloc[:1].tolist()
    own = [code in way.split("+") for code, way in zip(scores["language"], scores["source"], strict=True)]
    targets = scores[[not one for one in own]]
    alone = scores[is_plain & scores["name"].isin(first)]
    carried = alone[alone.index.isin(targets.index)]
    if carried.empty or len(carried) == len(alone):
        return f"These runs hold {count(len(scores), 'score')} and no baseline trained on the source alone."
    others = targets[~targets["name"].isin(first)]
    return " ".join(
        filter(None, (_carried(alone.drop(carried.index), carried), _most_gained(others, carried)))
    )


def _carried(on_source: pd.DataFrame, carried: pd.DataFrame) -> str:
    """Say what models trained on the source alone do there and on the targets."""
    high, low = on_source["score"].mean(), carried["score"].mean()
    sources = dict.fromkeys("+".join(on_source["source"].unique()).split("+"))
    seeds = count(on_source["seed"].nunique(), "seed")
    return (
        f"Trained on {joined(map(language, sources))} alone, models score {percent(high)} percent on the "
        f"source language and {percent(low)} on the targets, a gap of {percent(high - low)} points "
        f"({joined(on_source['split'].unique())} sets, mean over {seeds})."
    )


def _most_gained(others: pd.DataFrame, carried: pd.DataFrame) -> str:
    """Say which system gains most over the models trained on the source alone, where both were scored."""
    keys = [*(one for one in PLACE if one != "source"), "language"]
    base = carried.groupby(keys)["score"].mean()
    gains = {
        name: (rows.groupby(keys)["score"].mean() - base).dropna().mean()
        for name, rows in others.groupby("name", sort=False)
    }
    known = {name: gain for name, gain in gains.items() if not math.isnan(gain)}
    if not known:
        return ""
    best = max(known, key=lambda name: known[name])
    if known[best] <= 0:
        return f"None of the other systems ({len(known)}) does better there."
    among = f"Of {count(len(known), 'other system')}, {best} gains most there"
    return f"{among}: {percent(known[best])} points."
