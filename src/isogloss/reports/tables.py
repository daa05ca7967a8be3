"""Tables as values: what a page shows, the same as LaTeX, and the numbers behind as CSV."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
        values = pd.Series(rows[self.column].to_numpy(dtype=float, na_value=math.nan))
        return plus_minus(values.mean(), values.std(), scale=self.scale, digits=self.digits)


POINTS = {"scale": 100, "digits": 1}

HEADS = {
    **{"encoder.label": "encoder", "name": "model", "base": "encoder", "first": "from", "second": "to"},
    **{"origin.name": "origin", "first.name": "to", "second.name": "and to", "about": "model"},
    **{"encoder.name": "encoder", "encoder.pairs": "bitext", "line": "adjusted", "how": "adjustment"},
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
    """A table of one frame: a line for each group of rows, numbers as mean ± standard deviation over it."""

    frame: str | Callable[[Measurements], pd.DataFrame]
    """The name of a frame, or what makes one."""
    title: str
    caption: str
    by: Mapping[str, str]
    """Columns and their heads; of those that are the same in all lines only ``keep`` are shown."""
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
    """Columns that keep lines apart unseen, as ids."""

    def tables(self, m: Measurements) -> list[Table]:
        """Return the table; none where nothing was measured."""
        rows = m.frame(self.frame) if isinstance(self.frame, str) else self.frame(m)
        rows = self.choose(rows) if len(rows) and self.choose else rows
        if rows.empty:
            return []
        rows = name_systems(rows, m.labels) if "method" in rows and "name" not in rows else rows
        by = [one for one in self.by if one in self.keep or rows[one].nunique(dropna=False) > 1]
        by = by or list(self.by)[:1]
        keys = list(dict.fromkeys([*by, *self.apart]))
        shown, values = self._turned(rows) if self.pivot else (rows, self.values)
        used = dict.fromkeys([*keys, *filter(None, [self.pivot]), *(one.column for one in values.values())])
        texts = []
        for key, own in shown[list(used)].groupby(keys, sort=False, dropna=False):
            most = own[self.pivot].value_counts().max() if self.pivot else len(own)
            texts.append([*map(_plain, key[: len(by)]), *(one.of(own) for one in values.values()), f"{most}"])
        head = [*(self.by[one] for one in by), *values, self.over]
        said = {"name": slug(self.name or str(self.frame)), "title": self.title, "caption": self.caption}
        return [written(said, len(by), pd.DataFrame(texts, columns=head), rows)]

    def _turned(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, Mapping[str, Number]]:
        """Give each value of ``pivot`` a column of its own."""
        (number,) = self.values.values()
        columns = {one: f"{self.pivot} {one}" for one in rows[self.pivot].drop_duplicates()}
        sides = {name: rows[number.column].where(rows[self.pivot] == one) for one, name in columns.items()}
        return rows.assign(**sides), {str(one): replace(number, column=columns[one]) for one in columns}


def cells(*texts: str) -> tuple[Cell, ...]:
    """Return plain cells."""
    return tuple(map(Cell, texts))


def written(said: Mapping[str, str], left: int, texts: pd.DataFrame, data: pd.DataFrame) -> Table:
    """Return texts as a table; ``said`` is name, title and caption, so many columns stand on the left."""
    return Table(
        **said,
        header=cells(*map(str, texts.columns)),
        align="l" * left + "r" * (len(texts.columns) - left),
        rows=tuple(cells(*row) for row in texts.itertuples(index=False, name=None)),
        data=data,
        folded=len(texts) > 12,
    )


def plain_table(name: str, title: str, rows: pd.DataFrame, *, shown: int = 200) -> Table:
    """Return rows nobody gave a form to, as they are; the page shows the first, the CSV has all."""
    more = f" The first {shown} of {len(rows)} rows; the CSV has all." if len(rows) > shown else ""
    said = {"name": name, "title": title, "caption": f"Rows as recorded.{more}"}
    return written(said, len(rows.columns), rows.head(shown).astype(object).map(_plain), rows)


def to_csv(frame: pd.DataFrame) -> str:
    """Write a frame as CSV, without the columns that say nothing; what is not there is an empty field."""
    said = frame.loc[:, [bool(frame[name].notna().any() and (frame[name] != "").any()) for name in frame]]
    return str(said.to_csv(index=False, lineterminator="\n"))


def to_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package; the best numbers are bold."""
    lines = [
        f"% {' '.join(table.title.split())}: needs \\usepackage{{booktabs}}",
        f"\\begin{{tabular}}{{{table.align}}}\n\\toprule",
        f"{_latex_row(table.header)}\n\\midrule",
        *map(_latex_row, table.rows),
        "\\bottomrule\n\\end{tabular}\n",
    ]
    return "\n".join(lines)


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints as it is."""
    return text.translate(_LATEX)


def _plain(value: object) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _latex_row(row: Sequence[Cell]) -> str:
    texts = [(escape_latex(" ".join(cell.text.split())), cell.mark) for cell in row]
    return " & ".join(f"\\textbf{{{text}}}" if mark == "best" else text for text, mark in texts) + r" \\"


_TEXT = "backslash asciitilde asciicircum quotedbl less greater bar"
_MATHS = "pm to Vert geq cdot alpha delta theta lambda rho Delta"
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"\\text{name}{{}}" for letter, name in zip('\\~^"<>|', _TEXT.split(), strict=True)},
        **{letter: f"$\\{name}$" for letter, name in zip("±→‖≥·αδθλρΔ", _MATHS.split(), strict=True)},
        **{"−": "$-$", "°": r"$^\circ$", "²": "$^2$", "₀": "$_0$", "–": "--", "—": "---", "…": r"\ldots{}"},
    }
)
