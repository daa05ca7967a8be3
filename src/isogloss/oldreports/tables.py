"""Tables: what a page shows, the same as LaTeX, and the numbers behind as CSV."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from isogloss.core.records import Row, Value


@dataclass(frozen=True, slots=True)
class Cell:
    """A text and what it stands out as: "best", "source", a verdict, or nothing."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table to read (``rows``) and the numbers it was made from (``data``).

    ``align`` has one letter per column, l or r. A folded table is closed until a reader opens it.
    """

    name: str
    title: str
    caption: str
    header: tuple[Cell, ...]
    align: str
    rows: tuple[tuple[Cell, ...], ...]
    data: Sequence[Row]
    folded: bool = False


def cells(*texts: str) -> tuple[Cell, ...]:
    """Return plain cells."""
    return tuple(Cell(text) for text in texts)


def to_csv(rows: Iterable[Row]) -> str:
    """Write rows as CSV, columns in the order first met; what is not a number is an empty field."""
    kept = list(rows)
    columns = list(dict.fromkeys(name for row in kept for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(row.get(name)) for name in columns] for row in kept)
    return text.getvalue()


def to_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package; the best numbers are bold."""
    lines = [
        f"% {_one_line(table.title)}: needs \\usepackage{{booktabs}}",
        f"\\begin{{tabular}}{{{table.align}}}",
        "\\toprule",
        _latex_row(table.header),
        "\\midrule",
        *(_latex_row(row) for row in table.rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def plain_table(name: str, title: str, rows: Sequence[Row], *, shown: int = 200) -> Table:
    """Return rows nobody gave a form to, as they are; the page shows the first, the CSV has all."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    more = f" The first {shown} of {len(rows)} rows; the CSV has all." if len(rows) > shown else ""
    return Table(
        name=name,
        title=title,
        caption=f"Rows as recorded.{more}",
        header=cells(*columns),
        align="l" * len(columns),
        rows=tuple(tuple(Cell(_plain(row.get(column))) for column in columns) for row in rows[:shown]),
        data=rows,
        folded=len(rows) > 12,
    )


def _field(value: Value) -> Value:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _latex_row(row: Sequence[Cell]) -> str:
    return " & ".join(_latex_cell(cell) for cell in row) + r" \\"


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(_one_line(cell.text))
    return f"\\textbf{{{text}}}" if cell.mark == "best" else text


def _one_line(text: str) -> str:
    return " ".join(text.split())


_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "→": r"$\to$",
    "‖": r"$\Vert$",
    "°": r"$^\circ$",
    "≥": r"$\geq$",
    "²": r"$^2$",
    "α": r"$\alpha$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "δ": r"$\delta$",
    "θ": r"$\theta$",
    "λ": r"$\lambda$",
    "₀": r"$_0$",
    "ρ": r"$\rho$",
    "Δ": r"$\Delta$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
}
