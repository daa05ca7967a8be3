"""Write the report of a folder of runs: a page, its figures as PDF, its tables as CSV and LaTeX.

From records alone, without torch; the same records give the same bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.records import write_bytes, write_text, writing
from isogloss.oldreports.claims import Claim
from isogloss.oldreports.drawing import Figure
from isogloss.oldreports.findings import findings
from isogloss.oldreports.found import what_was_found
from isogloss.oldreports.gather import Gathered, gather
from isogloss.oldreports.page import Page, render
from isogloss.oldreports.run_tables import (
    adjustment_claim_table,
    claim_table,
    interference_claim_table,
    mixup_claim_table,
    run_table,
)
from isogloss.oldreports.sections import Section, sections
from isogloss.oldreports.tables import Table, to_csv, to_latex
from isogloss.oldreports.words import slug

PAGE = "report.html"

PARTS = {("figures", ".pdf"), ("tables", ".csv"), ("tables", ".tex")}
"""What a report writes beside its page: folders and endings."""

WRITTEN = ".written"
"""Names what the last report wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Where everything was written, and what a terminal should say about it."""

    html: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    summary: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]
    warnings: tuple[str, ...]


def write_report(out: Path) -> Report:
    """Write ``report.html``, ``figures/`` and ``tables/`` into a folder of runs.

    Raises ConfigError where there is neither a plan nor a record, StorageError where nothing can be written.
    A run that is missing, failed or damaged is named in the report.
    """
    gathered = gather(out)
    found, notes = findings(gathered)
    claims, of_adjustment = found.claims(), found.adjustment_claims()
    of_interference, of_mixup = found.interference_claims(), found.mixup_claims()
    warnings = (*gathered.warnings, *_troubles(gathered), *notes)
    paragraph = what_was_found(gathered, found, (claims, of_adjustment, of_interference, of_mixup))
    page = Page(
        gathered=gathered,
        found=paragraph,
        warnings=warnings,
        claims=[
            claim_table(claims),
            *adjustment_claim_table(of_adjustment),
            *interference_claim_table(of_interference),
            *mixup_claim_table(of_mixup),
        ],
        sections=sections(gathered, found),
        runs=run_table(gathered.runs),
        rows=[(_rows_name(kind), len(gathered.raw(kind))) for kind in _kinds(gathered)],
    )
    figures, tables = _write_parts(out, page)
    write_text(out / PAGE, render(page))
    return Report(
        html=out / PAGE,
        figures=figures,
        tables=tables,
        summary=_summary(gathered, (*claims, *of_adjustment, *of_interference, *of_mixup), paragraph),
        claims=(*claims, *of_adjustment, *of_interference, *of_mixup),
        warnings=warnings,
    )


def _troubles(gathered: Gathered) -> list[str]:
    """Return one warning per run that failed or left a damaged record, and the runs' own warnings."""
    words = {"failed": "failed", "damaged": "could not be read"}
    troubles = [
        f"Run {run.id} {words[run.state]}: {run.error}" for run in gathered.runs if run.state in words
    ]
    own = [(run, text) for run in gathered.runs if run.record for text in run.record.warnings]
    return [*troubles, *(f"{run.title}: {text}" for run, text in own)]


def _kinds(gathered: Gathered) -> list[str]:
    """Return the kinds of rows there are: the diagnostics, then the trainings."""
    trainings = [kind for kind in ("pretrain", "align", "adjust", "fine-tune") if gathered.finished(kind)]
    return [kind for kind in (*gathered.diagnostics(), *trainings) if gathered.raw(kind)]


def _rows_name(kind: str) -> str:
    return slug("rows", kind)


def _write_parts(out: Path, page: Page) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Write every figure and table of a page; return where."""
    figures = [_write_figure(out, figure) for section in page.sections for figure in section.figures]
    tables = [path for table in _all_tables(page.sections, page) for path in _write_table(out, table)]
    tables += [path for _, path in figures]
    for kind in _kinds(page.gathered):
        tables.append(out / "tables" / f"{_rows_name(kind)}.csv")
        write_text(tables[-1], to_csv(page.gathered.raw(kind)))
    with writing(out):
        _remove_stale(out, [*tables, *(path for path, _ in figures)])
    return tuple(path for path, _ in figures), tuple(tables)


def _all_tables(parts: Sequence[Section], page: Page) -> list[Table]:
    return [*page.claims, *(table for section in parts for table in section.tables), page.runs]


def _write_figure(out: Path, figure: Figure) -> tuple[Path, Path]:
    drawing, numbers = out / "figures" / f"{figure.name}.pdf", out / "tables" / f"{figure.name}.csv"
    write_bytes(drawing, figure.pdf)
    write_text(numbers, to_csv(figure.data))
    return drawing, numbers


def _write_table(out: Path, table: Table) -> tuple[Path, Path]:
    numbers, latex = out / "tables" / f"{table.name}.csv", out / "tables" / f"{table.name}.tex"
    write_text(numbers, to_csv(table.data))
    write_text(latex, to_latex(table))
    return numbers, latex


def _remove_stale(out: Path, written: Sequence[Path]) -> None:
    """Remove what an earlier report, of another recipe say, wrote here and this one did not."""
    known = out / "tables" / WRITTEN
    names = sorted({f"{path.parent.name}/{path.name}" for path in written})
    earlier = known.read_text(encoding="utf-8", errors="replace").splitlines() if known.is_file() else []
    for name in set(earlier).difference(names):
        folder, _, file = name.partition("/")
        if (folder, Path(file).suffix) in PARTS and file == Path(file).name:
            (out / folder / file).unlink(missing_ok=True)
    write_text(known, "".join(f"{name}\n" for name in names))


def _summary(gathered: Gathered, claims: Sequence[Claim], paragraph: str) -> tuple[tuple[str, str], ...]:
    """Return (label, text) rows for a terminal."""
    finished = sum(run.state == "finished" for run in gathered.runs)
    return (
        ("found", paragraph),
        *((f"({claim.letter}) {claim.verdict}", claim.number) for claim in claims),
        ("runs", f"{finished} of {len(gathered.runs)} finished"),
    )
