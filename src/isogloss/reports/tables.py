"""Tables as values: what a page shows, the same as LaTeX, and the numbers behind as CSV."""

import math
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems, plus_minus, slug


@dataclass(frozen=True, slots=True)
class TableCell:
    """A text, its highlight ("best", "source", a state, or none), and what it means, shown at the pointer."""

    text: str
    mark: str = ""
    note: str = ""
    dots: tuple[float, ...] = ()
    """A number for each unit, from 0 at the left end of the table's axis to 1 at its right end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table to read (``rows``) and the underlying numbers (``data``).

    ``align`` has one letter per column, l or r. A folded table is closed until a reader opens it.
    """

    name: str
    title: str
    caption: str
    header: tuple[TableCell, ...]
    align: str
    rows: tuple[tuple[TableCell, ...], ...]
    data: pd.DataFrame
    folded: bool = False
    notes: str = ""
    """Explanations of its marks and columns, shown among the notes at the end of the page."""


@dataclass(frozen=True, kw_only=True)
class Number:
    """A column of numbers: mean ± standard deviation of a frame's column over the rows of a line."""

    column: str
    scale: float = 1
    digits: int = 2

    def of(self, rows: pd.DataFrame) -> str:
        """Format the number. A dash without one."""
        values = pd.Series(rows[self.column].to_numpy(dtype=float, na_value=math.nan))
        return plus_minus(values.mean(), values.std(), scale=self.scale, digits=self.digits)


HEADS = {
    **{"encoder.label": "encoder", "name": "model", "base": "encoder", "first": "from", "second": "to"},
    **{"origin.name": "origin", "first.name": "to", "second.name": "and to", "about": "model"},
    **{"encoder.name": "encoder", "encoder.pairs": "bitext", "line": "adjusted", "how": "adjustment"},
}
"""Heads of columns that differ from their names."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A table of one frame: a line per group of rows, numbers as mean ± standard deviation over the group."""

    section: str
    """The section of the page that shows it (``sections``)."""
    frame: str | Callable[[Measurements], pd.DataFrame]
    """The name of a frame, or a function that returns one."""
    title: str
    caption: str
    by: tuple[str, ...]
    """Columns that identify a row. Constant columns are shown only if they are in ``keep``."""
    values: Mapping[str, Number]
    over: str = "seeds"
    """Head of the column that counts the rows of a line."""
    name: str = ""
    choose: Callable[[pd.DataFrame], pd.DataFrame] | None = None
    """Selects the rows and adds columns. Default: all rows."""
    keep: tuple[str, ...] = ()
    pivot: str = ""
    """A column whose values become columns of the table. ``values`` then has one entry."""
    group_by: tuple[str, ...] = ()
    """Further columns that separate lines without being shown, such as ids."""

    def show(self, measurements: Measurements) -> list[Table]:
        """Return the table. Empty if nothing was measured."""
        rows = measurements.frame(self.frame) if isinstance(self.frame, str) else self.frame(measurements)
        rows = self.choose(rows) if len(rows) and self.choose else rows
        if rows.empty:
            return []
        rows = (
            name_systems(rows, measurements.display_names)
            if "method" in rows and "name" not in rows
            else rows
        )
        columns = [
            column for column in self.by if column in self.keep or rows[column].nunique(dropna=False) > 1
        ]
        columns = columns or [self.by[0]]
        keys = list(dict.fromkeys([*columns, *self.group_by]))
        frame, values = self._pivot(rows) if self.pivot else (rows, self.values)
        values = {
            head: value_column
            for head, value_column in values.items()
            if frame[value_column.column].notna().any()
        }
        key_columns = dict.fromkeys(
            [
                *keys,
                *(name for name in [self.pivot] if name),
                *(value_column.column for value_column in values.values()),
            ]
        )
        texts = []
        for key, group in frame[list(key_columns)].groupby(keys, sort=False, dropna=False):
            most_values = group[self.pivot].value_counts().max() if self.pivot else len(group)
            texts.append(
                [
                    *map(_name_value, columns, key),
                    *(value_column.of(group) for value_column in values.values()),
                    f"{most_values}",
                ]
            )
        head = [*(HEADS.get(column, column) for column in columns), *values, self.over]
        words = {"name": slug(self.name or str(self.frame)), "title": self.title, "caption": self.caption}
        return [text_table(words, len(columns), pd.DataFrame(texts, columns=head), rows)]

    def _pivot(self, rows: pd.DataFrame) -> tuple[pd.DataFrame, Mapping[str, Number]]:
        """Return rows with a column for each value of ``pivot``."""
        (value_column,) = self.values.values()
        columns = {value: f"{self.pivot} {value}" for value in rows[self.pivot].drop_duplicates()}
        sides = {
            name: rows[value_column.column].where(rows[self.pivot] == value)
            for value, name in columns.items()
        }
        return rows.assign(**sides), {
            str(value): replace(value_column, column=columns[value]) for value in columns
        }


def summaries_of(path: Path, functions: Mapping[str, Mapping[str, Any]]) -> dict[str, Summary]:
    """Return the summaries of a table of these (TOML) by name, with the functions of some.

    Lists of columns are texts there, and values columns in percent (``f1 %``) or with digits (``score .3``).
    """
    summaries = {}
    for name, words in tomllib.loads(path.read_text(encoding="utf-8")).items():
        columns = {
            field: tuple(words[field].split()) for field in ("by", "keep", "group_by") if field in words
        }
        values = {head: _number(*text.split()) for head, text in words["values"].items()}
        calls = functions.get(name, {})
        fields = {"frame": name, **words, **columns, **calls, "name": name, "values": values}
        summaries[name] = Summary(**fields)
    return summaries


def _number(column: str, form: str) -> Number:
    if form == "%":
        return Number(column=column, scale=100, digits=1)
    return Number(column=column, digits=int(form.removeprefix(".")))


def cells(*texts: str) -> tuple[TableCell, ...]:
    """Return plain cells."""
    return tuple(TableCell(text) for text in texts)


def text_table(words: Mapping[str, str], left: int, texts: pd.DataFrame, data: pd.DataFrame) -> Table:
    """Return a table of texts. ``words`` are name, title and caption. ``left`` columns are left-aligned."""
    return Table(
        **words,
        header=cells(*(str(column) for column in texts.columns)),
        align="l" * left + "r" * (len(texts.columns) - left),
        rows=tuple(cells(*row) for row in texts.itertuples(index=False, name=None)),
        data=data,
        folded=len(texts) > 12,
    )


def plain_table(name: str, title: str, rows: pd.DataFrame, *, shown: int = 200) -> Table:
    """Return rows as recorded. The page shows the first rows, the CSV all."""
    more = f" The first {shown} of {len(rows)} rows; the CSV has all." if len(rows) > shown else ""
    words = {"name": name, "title": title, "caption": f"Rows as recorded.{more}"}
    return text_table(words, len(rows.columns), rows.head(shown).astype(object).map(_plain), rows)


def to_csv(frame: pd.DataFrame) -> str:
    """Return a frame as CSV without empty columns. Missing values are empty fields."""
    filled_columns = frame.loc[
        :, [bool(frame[name].notna().any() and (frame[name] != "").any()) for name in frame]
    ]
    return str(filled_columns.to_csv(index=False, lineterminator="\n"))


def to_latex(table: Table) -> str:
    """Return a table as LaTeX with the booktabs package. The best numbers are bold, and ± is aligned.

    Columns that are empty or the same in three lines or more are dropped, and a comment lists the latter.
    Long texts break into lines.
    """
    columns = list(zip(zip(table.header, *table.rows, strict=True), table.align, strict=True))
    columns_shown = [(cells, align) for cells, align in columns if _differs(cells)] or columns
    constant = [
        f"{cells[0].text} {cells[1].text}" for cells, _ in columns if not _differs(cells) and cells[1:]
    ]
    long_columns = sum(_longest(cells) > LONGEST for cells, _ in columns_shown)
    latex_columns = [
        _latex_column(cells, align, 0.8 / max(1, long_columns)) for cells, align in columns_shown
    ]
    head, *rows = [
        " & ".join(cells) + r" \\" for cells in zip(*(cells for _, cells in latex_columns), strict=True)
    ]
    title = "; ".join([table.title, *(text for text in constant if not text.endswith((" ", "–")))])
    lines = [
        f"% {' '.join(title.split())}: needs \\usepackage{{booktabs}}",
        f"\\begin{{tabular}}{{{''.join(align for align, _ in latex_columns)}}}\n\\toprule",
        f"{head}\n\\midrule",
        *rows,
        "\\bottomrule\n\\end{tabular}\n",
    ]
    return "\n".join(lines)


LONGEST = 40
"""Maximum letters of a cell on one line of a paper."""

PLUS_MINUS = " ± "


def _differs(column: Sequence[TableCell]) -> bool:
    texts = {cell.text for cell in column[1:]}
    return bool(texts - {"", "–"}) and (len(texts) > 1 or len(column) < 4)


def _longest(column: Sequence[TableCell]) -> int:
    return max(len(cell.text) for cell in column)


def _latex_column(column: Sequence[TableCell], align: str, share: float) -> tuple[str, list[str]]:
    """Return the alignment of a column and its cells. Deviations make it two columns, split at ±."""
    halves = [[_latex_cell(part, cell.mark) for part in cell.text.split(PLUS_MINUS)] for cell in column]
    if _longest(column) > LONGEST:
        align = f"p{{{share:.2f}\\linewidth}}"
    if max(len(parts) for parts in halves) < 2:
        return align, [texts[0] for texts in halves]
    cells = [texts if len(texts) == 2 else [f"\\multicolumn{{2}}{{c}}{{{texts[0]}}}"] for texts in halves]
    return r"r@{\,$\pm$\,}l", [" & ".join(texts) for texts in cells]


def _latex_cell(text: str, mark: str) -> str:
    latex_text = escape_latex(" ".join(text.split()))
    return f"\\textbf{{{latex_text}}}" if mark == "best" else latex_text


def escape_latex(text: str) -> str:
    """Return a text that LaTeX prints verbatim, Greek letters with their indices in mathematics."""
    return _INDEXED.sub(lambda match: f"${match[1]}_{match[2] or match[3]}$", text.translate(_LATEX))


LANGUAGES = {"source", "target", "language", "first", "second"}
"""Columns with codes of languages, which tables name."""


def _name_value(column: str, value: object) -> str:
    text = _plain(value)
    return "+".join(language_name(language) for language in text.split("+")) if column in LANGUAGES else text


def _plain(value: Any) -> str:
    if pd.isna(value):
        return ""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


_TEXT = "backslash asciitilde asciicircum quotedbl less greater bar"
_MATHS = "pm to Vert geq cdot star alpha delta theta lambda rho Delta"
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"\\text{name}{{}}" for letter, name in zip('\\~^"<>|', _TEXT.split(), strict=True)},
        **{letter: f"$\\{name}$" for letter, name in zip("±→‖≥·★αδθλρΔ", _MATHS.split(), strict=True)},
        **{letter: f"$_{index}$" for index, letter in enumerate("₀₁₂")},
        **{"−": "$-$", "°": r"$^\circ$", "²": "$^2$", "–": "--", "—": "---", "…": r"\ldots{}"},
    }
)
_INDEXED = re.compile(r"\$(\\[A-Za-z]+)\$(?:\\_([A-Za-z0-9])|\$_(\d)\$)")
"""A Greek letter and its index, each escaped by itself."""
