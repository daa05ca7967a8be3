"""Marks in reports: on the cells whose difference is more than chance, with a caption that says which."""

import csv

import pytest
from kept_runs import answers, build_kept, write_scores
from synthetic_runs import write_plan

from isogloss.oldreports import write_report
from isogloss.oldreports.compared_runs import Request, compare_runs
from isogloss.oldreports.findings import findings
from isogloss.oldreports.gather import gather
from isogloss.oldreports.marks import marks_of

SYSTEMS = {
    ("mini", "source-only"): 0.0,
    ("mini", "x-mixup"): 0.2,
    ("mini", "same"): 0.001,
    ("adjusted", "source-only"): 0.15,
}


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marks")
    build_kept(folder, SYSTEMS)
    write_report(folder)
    return folder


def rows(out, name):
    with (out / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_cells_are_marked_where_the_comparison_says_so(out):
    found, _ = compare_runs(Request(runs=[str(out)], folder=out, against="source-only"))
    significant = {(one.system.method, one.place.language) for one in found if one.is_significant}
    marked = {
        (row["method"], row["language"])
        for row in rows(out, "scores-xnli-nli-mini-en-test-accuracy")
        if row["marks"] == "*"
    }
    assert marked == significant
    assert {method for method, _ in marked} == {"x-mixup"}


def test_another_encoder_is_marked_against_the_first(out):
    table = rows(out, "scores-xnli-nli-adjusted-en-test-accuracy")
    assert {(row["method"], row["marks"]) for row in table} == {("source-only", "†")}


def test_captions_say_which_test_and_against_what(out):
    html = (out / "report.html").read_text(encoding="utf-8")
    how = "paired t-test on values averaged over seeds; Holm over languages"
    assert f"* p &lt; 0.05 against source-only ({how})." in html
    assert "† p &lt; 0.05 against the same method on mini (paired t-test" in html


def test_marks_stand_in_the_page_and_in_latex(out):
    latex = (out / "tables/scores-xnli-nli-mini-en-test-accuracy.tex").read_text(encoding="utf-8")
    line = next(line for line in latex.splitlines() if line.startswith("x-mixup"))
    assert line.count("*") == 3
    plain = next(line for line in latex.splitlines() if line.startswith("source-only"))
    assert "*" not in plain
    other = (out / "tables/scores-xnli-nli-adjusted-en-test-accuracy.tex").read_text(encoding="utf-8")
    assert other.count(r"$\dagger$") == 3


def test_every_test_is_in_a_table_of_its_own(out):
    found = rows(out, "significance")
    assert len(found) == 2 * 3 + 3
    assert {row["test"] for row in found} == {"paired t"}
    for row in found:
        assert float(row["low"]) <= float(row["difference"]) <= float(row["high"])
        assert float(row["p_value"]) <= float(row["p_holm"])
        assert row["significant"] == str(float(row["p_holm"]) < 0.05)
        assert float(row["smallest_seen"]) >= 0


def test_without_source_only_the_first_method_is_the_baseline(tmp_path):
    build_kept(tmp_path, {("mini", "b"): 0.0, ("mini", "a"): 0.2}, languages=("de",))
    gathered = gather(tmp_path)
    marks, notes = marks_of(gathered.runs, findings(gathered)[0].scores)
    assert notes == []
    assert marks.against == {"*": "b"}


def test_one_method_and_one_encoder_need_no_marks(tmp_path):
    build_kept(tmp_path, {("mini", "source-only"): 0.0}, languages=("de",))
    report = write_report(tmp_path)
    html = report.html.read_text(encoding="utf-8")
    assert "p &lt; 0.05" not in html
    assert "No marks" not in html


def test_what_could_not_be_compared_is_a_warning_of_the_report(tmp_path):
    names = build_kept(tmp_path, {("mini", "source-only"): 0.0}, seeds=(0,))
    names.append(write_scores(tmp_path, "less", list(answers(0, 0.1, ("de",), size=40)), method="x-mixup"))
    write_plan(tmp_path, names)
    report = write_report(tmp_path)
    assert any("not scored on the same examples" in text for text in report.warnings)


def test_the_same_records_give_the_same_report(out, tmp_path):
    before = {path: path.read_bytes() for path in sorted(out.rglob("*")) if path.suffix in (".csv", ".html")}
    write_report(out)
    assert {path: path.read_bytes() for path in before} == before
