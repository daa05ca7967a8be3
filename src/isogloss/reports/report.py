"""Write the report of a folder of runs: an HTML page, figures as PDF, tables as CSV and LaTeX.

It needs only records, without torch. Equal records give equal bytes. If the records are unchanged since the
last report, drawing and writing are skipped.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from operator import attrgetter
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field

from isogloss.core import plug_ins
from isogloss.core.atomic_files import write_bytes, writing
from isogloss.core.checksums import package_stamp, stamp
from isogloss.core.errors import ConfigError, check_named, one_line
from isogloss.core.processes import is_of_code
from isogloss.core.progress import OnProgress, no_progress, one_by_one
from isogloss.core.records import FAILED, MADE, PLAN, PREDICTIONS, RECORD, run_files
from isogloss.core.registry import Registry
from isogloss.core.shared_files import IrregularFileError, file_size, is_file, read_file, remove
from isogloss.core.untrusted import convert_json, parse_json
from isogloss.reports.checks import Check
from isogloss.reports.drawing import STYLES
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.names import slug
from isogloss.reports.next_steps import next_steps
from isogloss.reports.opening import write_opening
from isogloss.reports.page import Page, finished_runs, render, run_table, verdict_counts
from isogloss.reports.sections import SECTIONS, make_added_parts, show_section
from isogloss.reports.tables import to_csv, to_latex
from isogloss.reports.verdicts import (
    CLAIMS_FILE,
    Claim,
    ClaimOutcome,
    Verdict,
    check_rows,
    claims_content,
    judge,
)

CLAIMS: Registry[Claim | Sequence[Claim]] = Registry({}, "claims")
"""Claims that reports judge, by the names of the features and packages that add them."""


def all_claims() -> tuple[Sequence[Claim], Sequence[str]]:
    """Return all claims, and the errors of packages whose claims cannot be used."""
    claims: list[Claim] = []
    errors: list[str] = []
    for name in CLAIMS:
        try:
            entry = CLAIMS[name]
            added_claims = entry if isinstance(entry, Sequence) else (entry,)
            if name not in CLAIMS.places:
                taken_ids = {claim.id for claim in claims}
                added_claims = [_check_claim(name, claim, taken_ids) for claim in added_claims]
            claims += added_claims
        except ConfigError as error:
            errors.append(str(error))
    return claims, errors


def _check_claim(name: str, claim: Claim, ids: Collection[str]) -> Claim:
    """Return a plug-in's claim.

    An exception in its rule becomes its finding, and all other claims are judged.
    """
    if not isinstance(claim, Claim) or not claim.title or claim.id in ids:
        raise ConfigError(
            f"plug-in {name}: expected claims with a title and ids of their own, found {claim!r:.80}."
        )

    def test(measurements: Measurements) -> list[Check]:
        try:
            checks = list(claim.test(measurements))
            judge(
                [replace(claim, needs=(), test=lambda _: checks)], measurements
            )  # Their numbers may also fail.
            return checks
        except BaseException as error:  # Whatever the code of others raises.
            if not is_of_code(error):
                raise
            return [Check(about=f"its rule failed ({one_line(error)}), not tested")]

    return replace(claim, test=test)


NAME = r"((figures|tables)/)?\w[\w.-]{0,200}"
"""Pattern of the names of a report's files."""


@dataclass(frozen=True)
class LastReport:
    """The findings of the last report, and its files."""

    stamps: list[str]
    files: list[str]
    found: str
    claims: list[Annotated[list[str], Field(min_length=3, max_length=3)]]
    runs: str
    complete: bool
    warnings: list[str]


State = dict[str, Any]
"""The recorded state of the last report: its inputs, files and findings."""

PAGE, WRITTEN = "report.html", "tables/.written"
"""The page, and the file of the state of the last report."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """The files of a report, and its summary for a terminal."""

    html: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    found: str
    """The main result, in a sentence or two."""
    claims: tuple[ClaimOutcome, ...]
    """The verdicts on the papers' claims, without their checks."""
    runs: str
    """The number of finished runs, in words."""
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        """Return the page and the numbers of its files."""
        files = f"{len(self.figures)} figures, {len(self.tables)} tables, {len(self.claims)} claims"
        return f"Report({str(self.html)!r:.150}, {files})"

    @property
    def summary(self) -> tuple[tuple[str, str], ...]:
        """Return (label, text) rows for a terminal."""
        verdicts = [(f"({outcome.claim.id}) {outcome.verdict}", outcome.found) for outcome in self.claims]
        return ("found", self.found), ("claims", verdict_counts(self.claims)), *verdicts, ("runs", self.runs)

    @cached_property
    def measurements(self) -> Measurements:
        """All data of the report, read on first access."""
        return read_measurements(self.html.parent)


def write_report(folder: Path, on_progress: OnProgress = no_progress) -> Report:
    """Write ``report.html``, ``figures/`` and ``tables/`` into a folder of runs, unless they are up to date.

    ConfigError without a plan or a record, StorageError where nothing can be written.
    Missing, failed and damaged runs are named in the report.
    """
    state = _last_report(folder)
    return _report_of(folder, state if state["current"] else _rewrite(folder, state, on_progress))


def finished_report(folder: Path) -> Report | None:
    """Return the report of a folder if its whole plan is finished and unchanged since. Otherwise None."""
    state = _last_report(folder)
    return _report_of(folder, state) if state["current"] and state["complete"] else None


def last_verdicts(folder: Path) -> list[Verdict]:
    """Return the verdicts of the last report of a folder, current or not. Empty without a report."""
    return [verdict for _, verdict, _ in _last_report(folder).get("claims", ())]


def _report_of(folder: Path, state: State) -> Report:
    claims_by_id = {claim.id: claim for claim in all_claims()[0]}
    paths = [folder / name for name in state["files"]]
    return Report(
        html=folder / PAGE,
        figures=tuple(path for path in paths if path.parent.name == "figures"),
        tables=tuple(path for path in paths if path.parent.name == "tables"),
        found=state["found"],
        claims=tuple(
            ClaimOutcome(claim=claims_by_id[key], verdict=verdict, found=text)
            for key, verdict, text in state["claims"]
            if key in claims_by_id
        ),
        runs=state["runs"],
        warnings=tuple(state["warnings"]),
    )


def _last_report(folder: Path) -> State:
    """Return the state of the last report, the stamps of its ``inputs`` now, and whether it is ``current``.

    For a report by an earlier version, only the files are known.
    """
    text = ""
    try:
        text = read_file(folder, WRITTEN).decode()
        state = asdict(convert_json(LastReport, parse_json(text)))
    except (OSError, ValueError):
        state = {"files": text.splitlines()}
    files = [name for name in state["files"] if re.fullmatch(NAME, name)]
    inputs = _input_stamps(folder)
    current = state.get("stamps") == [
        *inputs,
        stamp(folder / name for name in files if is_file(folder, name)),
    ]
    return {**state, "files": files, "inputs": inputs, "current": current}


def _input_stamps(folder: Path) -> list[str]:
    plan = read_file(folder, PLAN) if is_file(folder, PLAN) else b""
    records = run_files(folder, RECORD, FAILED, MADE, PREDICTIONS)
    return [package_stamp(), plug_ins.stamp(), sha256(plan).hexdigest(), stamp(records)]


@plug_ins.plug_ins_named()
def _rewrite(folder: Path, last_state: State, on_progress: OnProgress) -> State:
    """Make the report, write what changed, and remove files of the last report that this one lacks."""
    claims, errors = all_claims()
    measurements = read_measurements(folder, on_progress)
    added_parts = make_added_parts(measurements)
    measurements = replace(measurements, notes=(*measurements.notes, *errors, *added_parts.errors))
    outcomes = judge(one_by_one(claims, "claims", on_progress), measurements)
    raw = {slug("rows", kind): measurements.raw(kind) for kind in measurements.kinds()}
    raw["facts"] = measurements.models.rename_axis("id").reset_index()
    if outcomes:
        raw["checks"] = check_rows(outcomes)
    page = Page(
        m=measurements,
        opening=write_opening(measurements),
        outcomes=outcomes,
        sections=[
            show_section(section, measurements, added_parts)
            for section in one_by_one(SECTIONS, "sections", on_progress)
        ],
        runs=run_table(measurements),
        steps=next_steps(measurements),
        raw=raw,
    )
    contents = {**dict(page_files(page, on_progress)), PAGE: render(page).encode()}
    if outcomes:
        verdicts = json.dumps(claims_content(outcomes, measurements), ensure_ascii=False, indent=1)
        contents[CLAIMS_FILE] = verdicts.encode()
    with writing(folder):
        _replace(folder, contents, set(last_state["files"]) - set(contents))
    state = {
        "stamps": [*last_state["inputs"], stamp(folder / name for name in contents)],
        "files": list(contents),
        "found": page.opening.results,
        "claims": [(outcome.claim.id, outcome.verdict, outcome.found) for outcome in page.outcomes],
        "runs": finished_runs(measurements),
        "complete": all(run.state == "finished" for run in measurements.runs),
        "warnings": list(measurements.warnings),
    }
    write_bytes(folder, WRITTEN, json.dumps(state, ensure_ascii=False, indent=1).encode())
    return state


def draw_figures(target: Path, style: str, on_progress: OnProgress = no_progress) -> list[Path]:
    """Draw every figure for a paper or slides (``drawing.STYLES``), at each width, as PDF, SVG and PNG.

    ConfigError for an unknown style, or without a plan or a record.
    """
    check_named("--style", "style", STYLES, style)
    measurements = read_measurements(target, on_progress)
    folder = f"figures/{style}"
    added_parts = make_added_parts(measurements)
    figures = [
        figure for section in SECTIONS for figure in show_section(section, measurements, added_parts).figures
    ]
    contents = {
        f"{folder}/{figure.name}-{width}.{form}": content
        for figure in one_by_one(figures, "figures", on_progress, attrgetter("title"))
        for width, layout in STYLES[style].items()
        for form, content in figure.drawn(layout, "pdf", "svg", "png").items()
    }
    with writing(target):
        for name, content in contents.items():
            write_bytes(target, name, content)
    return [target / name for name in contents]


def _replace(folder: Path, contents: Mapping[str, bytes], old_files: Iterable[str]) -> None:
    """Write changed files and remove old figures and tables, but no file in any other folder."""
    for name, content in contents.items():
        if not is_file(folder, name) or not _has_content(folder, name, content):
            write_bytes(folder, name, content)
    for old_path in (PurePosixPath(name) for name in old_files):
        is_report_file = str(old_path.parent) in ("figures", "tables") and old_path.suffix in (
            ".pdf",
            ".csv",
            ".tex",
            ".json",
        )
        if is_report_file:
            with suppress(IrregularFileError):  # What a link leads to may be anybody's.
                remove(folder, str(old_path))


def _has_content(folder: Path, name: str, content: bytes) -> bool:
    return file_size(folder, name) == len(content) and read_file(folder, name, len(content)) == content


def page_files(page: Page, on_progress: OnProgress = no_progress) -> Iterator[tuple[str, bytes]]:
    """Yield the figures and tables of a page, by their paths."""
    tables = [
        *(table for table, _ in page.claims),
        *(table for part in page.sections for table in part.tables),
    ]
    figures = [figure for part in page.sections for figure in part.figures]
    for table in (*tables, page.runs):
        yield f"tables/{table.name}.csv", to_csv(table.data).encode()
        yield f"tables/{table.name}.tex", to_latex(table).encode()
    for figure in one_by_one(figures, "figures", on_progress, attrgetter("title")):
        yield f"tables/{figure.name}.csv", to_csv(figure.data).encode()
        yield f"figures/{figure.name}.pdf", figure.pdf
    for name, rows in page.raw.items():
        yield f"tables/{name}.csv", to_csv(rows).encode()
