"""Write the report of a folder of runs: a page, its figures as PDF, its tables as CSV and LaTeX.

From records alone, without torch. The same records give the same bytes; where nothing has changed since the
last report, nothing is drawn or written.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from isogloss.core.records import MADE, RECORD, write_bytes, writing
from isogloss.core.stamps import package_stamp, stamp
from isogloss.data.result_files import PREDICTIONS
from isogloss.reports import claims_adjustment, claims_interference, claims_mixup, claims_transfer
from isogloss.reports.comparison import SYSTEM, best_split
from isogloss.reports.measurements import FAILED, PLAN, Measurements, read_measurements
from isogloss.reports.names import and_list, count, language, percent, slug
from isogloss.reports.page import SECTIONS, Page, counted, ended, render, run_table, shown
from isogloss.reports.scored_sets import ScoredSet, scored_sets
from isogloss.reports.scores import UNITS, values_of
from isogloss.reports.tables import to_csv, to_latex
from isogloss.reports.verdicts import Outcome, claims, judge

CLAIMS = claims(
    {
        **claims_transfer.TESTS,
        **claims_mixup.TESTS,
        **claims_adjustment.TESTS,
        **claims_interference.TESTS,
    }
)
"""What the four papers claim, paper by paper."""

PAGE, WRITTEN = "report.html", "tables/.written"
"""The page, and what is known of the last report: what it was made from, its files, what was found."""

LABELLED = ("target-only", "bilingual", "few-shot", "continual-few-shot")
"""Methods that are trained on labels of the targets, which transfer does without."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """Where everything was written, and what a terminal should say about it."""

    html: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    found: str
    """What carried over and by how much, in a sentence or two."""
    claims: tuple[Outcome, ...]
    """What became of the papers' claims, without the checks behind."""
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
    return _report_of(out, known if known["current"] else _written_again(out, known.get("files", ())))


def finished_report(out: Path) -> Report | None:
    """Return the report of a folder where the whole plan is finished and nothing changed since; else None."""
    known = _known(out)
    return _report_of(out, known) if known["current"] and known["whole"] else None


def _report_of(out: Path, known: Mapping[str, Any]) -> Report:
    """Return a report from what is known of it."""
    by_id = {claim.id: claim for claim in CLAIMS}
    paths = [out / name for name in known["files"]]
    return Report(
        html=out / PAGE,
        figures=tuple(path for path in paths if path.parent.name == "figures"),
        tables=tuple(path for path in paths if path.parent.name == "tables"),
        found=known["found"],
        claims=tuple(
            Outcome(claim=by_id[key], verdict=verdict, found=text) for key, verdict, text in known["claims"]
        ),
        runs=known["runs"],
        warnings=tuple(known["warnings"]),
    )


def _known(out: Path) -> dict[str, Any]:
    """Return what is known of the last report, and whether all that it read and wrote is as it was.

    Of an earlier version's, only the files are known.
    """
    text = ""
    try:
        text = (out / WRITTEN).read_text(encoding="utf-8")
        known = dict(json.loads(text))
    except (OSError, TypeError, ValueError):
        known = {"files": text.splitlines()}
    stamps = [*_read(out), stamp(out / name for name in known.get("files", ()))]
    return {**known, "current": known.get("stamps") == stamps}


def _read(out: Path) -> list[str]:
    """Return stamps of all that a report is made from: the package, the plan, and records."""
    plan = (out / PLAN).read_bytes() if (out / PLAN).is_file() else b""
    seen = (path for name in (RECORD, FAILED, MADE, PREDICTIONS) for path in out.glob(f"*/{name}"))
    return [package_stamp(), sha256(plan).hexdigest(), stamp(seen)]


def _written_again(out: Path, old: Iterable[str]) -> dict[str, Any]:
    """Make everything, write what is new, and remove what the last report wrote and this one does not."""
    read, m = _read(out), read_measurements(out)
    raw: dict[str, Any] = {slug("rows", kind): m.raw(kind) for kind in m.kinds()}
    page = Page(
        m=m,
        found=what_was_found(m),
        outcomes=judge(CLAIMS, m),
        sections=[shown(section, m) for section in SECTIONS],
        runs=run_table(m),
        raw=raw | {"facts": m.models.rename_axis("id").reset_index()},
    )
    contents = {**dict(_beside(page)), PAGE: render(page).encode()}
    with writing(out):
        _replace(out, contents, set(old) - set(contents))
    known = {
        "stamps": [*read, stamp(out / name for name in contents)],
        "files": list(contents),
        "found": page.found,
        "claims": [(one.claim.id, one.verdict, one.found) for one in page.outcomes],
        "runs": ended(m),
        "whole": all(run.state == "finished" for run in m.runs),
        "warnings": list(m.warnings),
    }
    write_bytes(out / WRITTEN, json.dumps(known, ensure_ascii=False, indent=1).encode())
    return known


def _replace(out: Path, contents: Mapping[str, bytes], old: Iterable[str]) -> None:
    """Write what is not there yet and remove old figures and tables; a name that leads elsewhere is left."""
    for name, content in contents.items():
        path = out / name
        if not path.is_file() or path.read_bytes() != content:
            write_bytes(path, content)
    for own in map(PurePosixPath, old):
        if str(own.parent) in ("figures", "tables") and own.suffix in (".pdf", ".csv", ".tex"):
            (out / own).unlink(missing_ok=True)


def _beside(page: Page) -> Iterator[tuple[str, bytes]]:
    """Give name and content of every file beside the page."""
    tables = [*(table for table, _ in page.claims), *(one for part in page.sections for one in part.tables)]
    figures = [one for part in page.sections for one in part.figures]
    for table in (*tables, page.runs):
        yield f"tables/{table.name}.csv", to_csv(table.data).encode()
        yield f"tables/{table.name}.tex", to_latex(table).encode()
    for figure in figures:
        yield f"tables/{figure.name}.csv", to_csv(figure.data).encode()
        yield f"figures/{figure.name}.pdf", figure.pdf
    for name, rows in page.raw.items():
        yield f"tables/{name}.csv", to_csv(rows).encode()


def what_was_found(m: Measurements) -> str:
    """Say how far the source carries on the first test set that tells, and what gains most there."""
    scores = m.frame("scores")
    best = best_split(scores[scores["main"].eq(True)]).index
    told = (_found(one) for one in scored_sets(m) if one.rows.index.isin(best).all())
    none = f"These runs hold {count(len(scores), 'score')} and no baseline trained on the source alone."
    return next(filter(None, told), none)


def _found(where: ScoredSet) -> str:
    """Say it of one test set; nothing without a baseline that was scored on source and targets."""
    by_system, sides = values_of(where).groupby(SYSTEM), {"high": where.sources, "low": where.targets}
    means = by_system.mean().reindex(columns=[*where.sources, *where.targets])
    systems = pd.DataFrame(where.systems).set_index(SYSTEM, drop=False).assign(units=by_system.size())
    systems = systems.assign(
        **{side: means[[*own]].mean(axis=1, skipna=False) for side, own in sides.items()}
    )
    known = systems.dropna(subset=["high", "low"])
    plain = known["method"].eq("source-only") & known[["encoder.adjusted", "inputs"]].eq("").all(axis=1)
    if not plain.any():
        return ""
    base, about = known[plain].iloc[0], {name: text for name, text in where.about.items() if text}
    test_set = " ".join(about[name] for name in ("corpus", "treebank", "task", "split") if name in about)
    carried = (
        f"Trained on {and_list(map(language, about['source'].split('+')))} alone, models score "
        f"{percent(base['high'])} percent on the source language and {percent(base['low'])} on the targets, "
        f"a gap of {percent(base['high'] - base['low'])} points ({about['metric']} on {test_set}, mean over "
        f"{count(base['units'], UNITS[where.unit])})."
    )
    others = systems.drop(base.name).dropna(subset="low")
    gains = others.assign(gain=others["low"] - base["low"]).groupby(others["method"].isin(LABELLED))
    return " ".join([carried, *(_most_gained(own, labels) for labels, own in gains)])


def _most_gained(others: pd.DataFrame, labels: bool) -> str:
    """Say which of the systems that know labels of the targets, or of those that do not, gains most."""
    which, best = "with" if labels else "without", others.nlargest(1, "gain").iloc[0]
    if best["gain"] <= 0:
        return f"None of the other systems {which} target labels ({len(others)}) does better there."
    among = f"Of {count(len(others), 'other system')} {which} target labels"
    return f"{among}, {best['name']} gains most there: {percent(best['gain'])} points."
