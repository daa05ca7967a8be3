"""Tables survive LaTeX, CSV and file names."""

import csv
import io

from hypothesis import given
from hypothesis import strategies as st

from isogloss.oldreports.tables import Cell, Table, cells, escape_latex, plain_table, to_csv, to_latex
from isogloss.oldreports.words import joined, slug

FIELD = st.one_of(st.none(), st.integers(), st.booleans(), st.text("ab,\"'\nü;", max_size=6))


@given(st.lists(st.dictionaries(st.sampled_from("abc"), FIELD, min_size=1), min_size=1, max_size=6))
def test_csv_holds_every_row(rows):
    read = list(csv.DictReader(io.StringIO(to_csv(rows), newline="")))
    assert len(read) == len(rows)
    for row, found in zip(rows, read, strict=True):
        assert {name: "" if value is None else str(value) for name, value in row.items()} == {
            name: found[name] for name in row
        }


def test_csv_leaves_what_is_no_number_empty():
    assert to_csv([{"a": float("nan"), "b": 0.1}]) == "a,b\n,0.1\n"


def test_latex_escapes_what_latex_reads():
    assert escape_latex(r"50% of a_b & {c}\ $x$ ~ #1 ^") == (
        r"50\% of a\_b \& \{c\}\textbackslash{} \$x\$ \textasciitilde{} \#1 \textasciicircum{}"
    )


def test_latex_is_booktabs_with_bold_best():
    rows = ((Cell("a_b"), Cell("71.3 ± 0.4", "best")),)
    table = Table(
        name="t", title="T", caption="", header=cells("x", "y"), align="lr", rows=rows, data=[{"x": 1}]
    )
    text = to_latex(table)
    assert r"\begin{tabular}{lr}" in text
    assert r"a\_b & \textbf{71.3 $\pm$ 0.4} \\" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]


def test_a_long_plain_table_is_cut_on_the_page_only():
    table = plain_table("x", "x", [{"n": n} for n in range(300)])
    assert (len(table.rows), len(table.data), table.folded) == (200, 300, True)
    assert "The first 200 of 300 rows" in table.caption


@given(st.text(max_size=200))
def test_a_slug_is_a_safe_file_name(text):
    assert set(slug("x", text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(slug("x", text)) < 100


def test_names_that_differ_in_lost_letters_stay_apart():
    assert slug("中文") != slug("日本")
    assert slug("a", "upos") == "a-upos"


def test_lists_are_joined_in_words():
    assert [joined("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
