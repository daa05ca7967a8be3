"""Tables survive LaTeX and CSV, and a summary writes each line's mean and spread."""

import csv
import io
import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.reports.measurements import FACTS, Measurements
from isogloss.reports.tables import (
    Number,
    Summary,
    Table,
    TableCell,
    cells,
    escape_latex,
    plain_table,
    to_csv,
    to_latex,
)

TEXT = st.text("ab,\"'\nü;", min_size=1, max_size=6)
GAPS = {"source": 0.9, "target": 0.5}


@given(st.lists(st.fixed_dictionaries({"a": TEXT, "b": st.integers()}), min_size=1, max_size=6))
def test_csv_holds_every_row(rows: list[dict[str, object]]) -> None:
    read = list(csv.DictReader(io.StringIO(to_csv(pd.DataFrame(rows)), newline="")))
    assert read == [{name: str(value) for name, value in row.items()} for row in rows]


def test_csv_leaves_out_what_says_nothing_and_leaves_no_number_empty() -> None:
    frame = pd.DataFrame({"a": [math.nan, 1.5], "empty": ["", ""], "none": [None, None], "b": [0.1, 2]})
    assert to_csv(frame) == "a,b\n,0.1\n1.5,2.0\n"


def test_latex_escapes_what_latex_reads() -> None:
    assert escape_latex(r"50% of a_b & {c}\ $x$ ~ #1 ^") == (
        r"50\% of a\_b \& \{c\}\textbackslash{} \$x\$ \textasciitilde{} \#1 \textasciicircum{}"
    )
    assert escape_latex("‖δ₁‖ θ₀ English ★") == (r"$\Vert$$\delta_1$$\Vert$ $\theta_0$ English $\star$")
    assert escape_latex("‖δ_S‖, a_b") == r"$\Vert$$\delta_S$$\Vert$, a\_b"


def test_latex_is_booktabs_with_bold_best() -> None:
    table = Table(
        name="t",
        title="T\n%",
        caption="",
        header=cells("x", "y"),
        align="lr",
        rows=((TableCell("a_b"), TableCell("71.3 ± 0.4", "best")),),
        data=pd.DataFrame(),
    )
    text = to_latex(table)
    assert r"\begin{tabular}{lr@{\,$\pm$\,}l}" in text
    assert r"x & \multicolumn{2}{c}{y} \\" in text
    assert r"a\_b & \textbf{71.3} & \textbf{0.4} \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    assert text.startswith("% T %: needs")


def test_latex_leaves_out_empty_columns_and_breaks_long_texts() -> None:
    table = Table(
        name="t",
        title="T",
        caption="",
        header=cells("x", "nothing", "says"),
        align="lrl",
        rows=(cells("a", "–", "word " * 20), cells("b", "", "short")),
        data=pd.DataFrame(),
    )
    text = to_latex(table)
    assert r"\begin{tabular}{lp{0.80\linewidth}}" in text
    assert r"b & short \\" in text


def test_latex_says_what_is_the_same_in_all_lines_in_a_comment() -> None:
    words = {"name": "t", "title": "T", "caption": "", "data": pd.DataFrame()}
    rows = tuple(cells(text, "3", "x") for text in "abc")
    table = Table(**words, header=cells("of", "seeds", "y"), align="lrl", rows=rows)
    assert to_latex(table).startswith("% T; seeds 3; y x: needs")
    assert r"\begin{tabular}{l}" in to_latex(table)


def test_a_long_plain_table_is_cut_on_the_page_only() -> None:
    table = plain_table("x", "x", pd.DataFrame({"n": range(300)}))
    assert (len(table.rows), len(table.data), table.folded) == (200, 300, True)
    assert "The first 200 of 300 rows" in table.caption


def test_numbers_of_plain_rows_keep_their_digits_before_the_point() -> None:
    table = plain_table("x", "x", pd.DataFrame({"seconds": [0.123456, 98.7654, 12345.678, math.nan]}))
    assert [cell.text for (cell,) in table.rows] == ["0.1235", "98.77", "12346", ""]


def gaps(*rows: dict[str, object]) -> Measurements:
    fields = {**dict.fromkeys(FACTS, ""), "corpus": "ud", "encoder.run": "e"}
    return Measurements(runs=[], _frames={"transfer-gap": pd.DataFrame([{**fields, **row} for row in rows])})


SUMMARY = Summary(
    section="x",
    frame="transfer-gap",
    title="Gap",
    caption="",
    by=("corpus", "task", "method"),
    values={"gap": Number(column="gap", scale=100, digits=1)},
    keep=("method",),
)


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in (table.header, *table.rows)]


def test_a_summary_writes_mean_and_deviation_of_each_line_by_the_columns_that_differ() -> None:
    rows = [{"task": task, "method": "m", "gap": gap} for task, gap in (("a", 0.1), ("a", 0.3), ("b", 0.5))]
    (table,) = SUMMARY.show(gaps(*rows))
    assert texts(table) == [
        ["task", "method", "gap", "seeds"],
        ["a", "m", "20.0 ± 14.1", "2"],
        ["b", "m", "50.0", "1"],
    ]
    assert len(table.data) == 3


def test_a_summary_turns_a_column_into_columns() -> None:
    summary = Summary(**{**vars(SUMMARY), "pivot": "task", "by": ("method",)})
    rows = [{"task": task, "method": "m", "gap": gap} for task, gap in (("a", 0.1), ("b", 0.3))]
    (table,) = summary.show(gaps(*rows))
    assert texts(table) == [["method", "a", "b", "seeds"], ["m", "10.0", "30.0", "1"]]


def test_a_summary_without_rows_is_no_table() -> None:
    assert SUMMARY.show(Measurements(runs=[])) == []


@pytest.mark.parametrize(
    ("values", "name"),
    [([], "–"), ([None, math.nan], "–"), ([0.5, None], "50.0"), ([0.4, 0.6], "50.0 ± 14.1")],
)
def test_a_number_is_of_what_is_known(values: list[float | None], name: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype="Float64")})
    assert Number(column="x", scale=100, digits=1).of(frame) == name
    assert Number(column="x", scale=100, digits=1).of(frame.astype(object)) == name
