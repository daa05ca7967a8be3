"""Tables as values: what a page shows, the same as LaTeX, and the numbers behind as CSV."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems, plus_minus, slug


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
    data: pd.DataFrame
    folded: bool = False


@dataclass(frozen=True, kw_only=True)
class Number:
    """A column of numbers: mean ± standard deviation of a frame's column over the rows of a line."""

    column: str
    scale: float = 1
    digits: int = 2

    def of(self, rows: pd.DataFrame) -> str:
        """Write it; a dash where there is no number."""
        values = rows[self.column].to_numpy(dtype=float, na_value=math.nan)
        values = values[~np.isnan(values)]
        mean = float(values.mean()) if len(values) else math.nan
        std = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        return plus_minus(mean, std, scale=self.scale, digits=self.digits)


POINTS = {"scale": 100, "digits": 1}

HEADS = {
    "encoder.label": "encoder",
    "name": "model",
    "base": "encoder",
    "origin.name": "origin",
    "first.name": "to",
    "second.name": "and to",
    "first": "from",
    "second": "to",
}
"""What stands above columns that are called otherwise."""


def heads(*columns: str) -> dict[str, str]:
    """Return columns of a frame with the head of each."""
    return {name: HEADS.get(name, name) for name in columns}


def percents(**columns: str) -> dict[str, Number]:
    """Return columns that are shown in percent, by their heads."""
    return {head: Number(column=name, scale=100, digits=1) for head, name in columns.items()}


def numbers(digits: int = 2, /, **columns: str) -> dict[str, Number]:
    """Return columns with so many digits, by their heads."""
    return {head: Number(column=name, digits=digits) for head, name in columns.items()}


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A table of one frame: a line for each group of rows, numbers as mean ± standard deviation over it.

    ``by`` are columns of the frame, with the head each gets; of those that are the same in all lines only
    ``keep`` are shown. ``name`` and ``encoder.label`` may be among them: names are made for what is shown.
    """

    frame: str | Callable[[Measurements], pd.DataFrame]
    """The name of a frame, or what makes one."""
    title: str
    caption: str
    by: Mapping[str, str]
    values: Mapping[str, Number]
    over: str = "seeds"
    """What the rows of a line are."""
    name: str = ""
    choose: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Gives the rows that are shown, with columns added; all of them without it."""
    keep: tuple[str, ...] = ()
    pivot: str = ""
    """A column whose values become columns, instead of ``values``, which then has one entry."""
    apart: tuple[str, ...] = ()
    """Columns that keep lines apart without being shown, as ids."""

    def tables(self, m: Measurements) -> list[Table]:
        """Return the table; none where nothing was measured."""
        rows = m.frame(self.frame) if isinstance(self.frame, str) else self.frame(m)
        if len(rows) and self.choose:
            rows = self.choose(rows)
        if rows.empty:
            return []
        rows = name_systems(rows, m.labels) if "method" in rows and "name" not in rows else rows
        by = [one for one in self.by if rows[one].nunique(dropna=False) > 1 or one in self.keep]
        by = by or list(self.by)[:1]
        keys = [*by, *(one for one in self.apart if one not in by)]
        lines = [(key[: len(by)], group) for key, group in rows.groupby(keys, sort=False, dropna=False)]
        heads, numbers = self._columns(rows)
        return [
            Table(
                name=slug(self.name or str(self.frame)),
                title=self.title,
                caption=self.caption,
                header=cells(*(self.by[one] for one in by), *heads, self.over),
                align="l" * len(by) + "r" * (len(heads) + 1),
                rows=tuple(
                    cells(*map(_plain, key), *(one(group) for one in numbers), str(self._count(group)))
                    for key, group in lines
                ),
                data=rows,
                folded=len(lines) > 12,
            )
        ]

    def _columns(self, rows: pd.DataFrame) -> tuple[list[str], list[Callable[[pd.DataFrame], str]]]:
        if not self.pivot:
            return list(self.values), [one.of for one in self.values.values()]
        (number,) = self.values.values()
        names = list(rows[self.pivot].drop_duplicates())
        return [str(name) for name in names], [
            lambda group, name=name: number.of(group[[number.column]][group[self.pivot] == name])  # type: ignore[misc]
            for name in names
        ]

    def _count(self, group: pd.DataFrame) -> int:
        return int(group.groupby(self.pivot).size().max()) if self.pivot else len(group)


def cells(*texts: str) -> tuple[Cell, ...]:
    """Return plain cells."""
    return tuple(Cell(text) for text in texts)


def plain_table(name: str, title: str, rows: pd.DataFrame, *, shown: int = 200) -> Table:
    """Return rows nobody gave a form to, as they are; the page shows the first, the CSV has all."""
    more = f" The first {shown} of {len(rows)} rows; the CSV has all." if len(rows) > shown else ""
    return Table(
        name=name,
        title=title,
        caption=f"Rows as recorded.{more}",
        header=cells(*map(str, rows.columns)),
        align="l" * len(rows.columns),
        rows=tuple(cells(*map(_plain, row)) for row in rows.head(shown).itertuples(index=False)),
        data=rows,
        folded=len(rows) > 12,
    )


def to_csv(frame: pd.DataFrame) -> str:
    """Write a frame as CSV, without the columns that say nothing; what is not there is an empty field."""
    said = frame.loc[:, [bool(frame[name].notna().any() and (frame[name] != "").any()) for name in frame]]
    return str(said.to_csv(index=False, lineterminator="\n"))


def to_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package; the best numbers are bold."""
    lines = [
        f"% {' '.join(table.title.split())}: needs \\usepackage{{booktabs}}",
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


def _plain(value: object) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _latex_row(row: Sequence[Cell]) -> str:
    return " & ".join(_latex_cell(cell) for cell in row) + r" \\"


def _latex_cell(cell: Cell) -> str:
    text = escape_latex(" ".join(cell.text.split()))
    return f"\\textbf{{{text}}}" if cell.mark == "best" else text


_LATEX = {
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
    **{
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        '"': r"\textquotedbl{}",
    },
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "−": r"$-$"},
    **{"→": r"$\to$", "‖": r"$\Vert$", "°": r"$^\circ$", "≥": r"$\geq$", "²": r"$^2$", "₀": r"$_0$"},
    **{
        "α": r"$\alpha$",
        "δ": r"$\delta$",
        "θ": r"$\theta$",
        "λ": r"$\lambda$",
        "ρ": r"$\rho$",
        "Δ": r"$\Delta$",
    },
    **{"·": r"$\cdot$", "–": "--", "—": "---", "…": r"\ldots{}"},
}
