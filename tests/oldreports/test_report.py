"""The report of a folder of runs: every number, whatever is missing, nothing that is not text."""

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from synthetic_runs import (
    World,
    build,
    build_small,
    measure,
    path_rows,
    plane_rows,
    score_rows,
    write_plan,
    write_run,
)

from isogloss.core.errors import ConfigError
from isogloss.oldreports import write_report

EVIL = "<script>alert('$x$ & _y_')</script>"
VOID = {"meta", "img", "br", "link"}


class Balanced(HTMLParser):
    """Collects tags, links and alternative texts, and notes a tag that is closed out of order."""

    def __init__(self):
        super().__init__()
        self.open, self.wrong, self.links, self.alts, self.ids = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        self.links += [found["href"]] if "href" in found else []
        self.alts += [found.get("alt", "")] if tag == "img" else []
        self.ids += [found["id"]] if "id" in found else []

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def parsed(html):
    page = Balanced()
    page.feed(html)
    return page


def text_of(out):
    return (out / "report.html").read_text(encoding="utf-8")


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "out"
    names = build(out, World(targets=("de", "fr"), tasks=("upos",), encoders=("mini",), seeds=(0, 1, 2)))
    return out, names, write_report(out)


def test_the_page_holds_the_numbers(whole):
    out, _, report = whole
    html = text_of(out)
    assert report.html == out / "report.html"
    for number in ("94.0 ± 0.2", "60.0 ± 2.0", "85.0 ± 0.0", "21.0", "gap of 34.0 points", "34.0 ± 1.8"):
        assert number in html
    assert "largest fall 1.0 points (en–de, seed 0)" in html
    assert "English (en) ★" in html
    assert "mean over 3 seeds" in html
    assert "12.5" in html


def test_the_claims_are_those_of_the_world(whole):
    verdicts = {claim.letter: claim.verdict for claim in whole[2].claims}
    assert verdicts == {
        "a": "supported",
        "b": "supported",
        "c": "supported",
        "d": "supported",
        "e": "not tested",
    }
    assert ("runs", f"{len(whole[1])} of {len(whole[1])} finished") in whole[2].summary


def test_sections_stand_in_reading_order(whole):
    found = parsed(text_of(whole[0])).ids
    assert found == [
        *("claims", "scores", "paths", "plane", "deltas", "seeds", "transfer-gap", "retrieval", "training"),
        *("absent", "runs"),
    ]


def test_the_page_is_well_formed_and_every_link_leads_somewhere(whole):
    page = parsed(text_of(whole[0]))
    assert (page.wrong, page.open) == ([], [])
    assert all(len(alt) > 20 for alt in page.alts)
    assert len(page.alts) == len(whole[2].figures)
    for link in page.links:
        target = link.removeprefix("#") in page.ids if link.startswith("#") else (whole[0] / link).is_file()
        assert target, link


def test_the_page_needs_nothing_else(whole):
    html = text_of(whole[0])
    assert "<script" not in html
    assert not re.search(r'(?:src|href)="(?:https?:|/|file:)', html)
    assert str(whole[0]) not in html


def test_every_figure_comes_as_pdf_with_its_numbers(whole):
    out, _, report = whole
    names = {path.stem for path in report.figures}
    assert {"deltas", "seeds", "retrieval", "pretraining", "fine-tuning-1", "path-aggregate"} <= names
    for path in report.figures:
        assert path.read_bytes().startswith(b"%PDF")
        assert rows_of(out / "tables" / f"{path.stem}.csv")


def test_csv_files_hold_every_row(whole):
    out = whole[0]
    assert len(rows_of(out / "tables" / "rows-interpolation.csv")) == 6 * 2 * 21 * 2
    assert len(rows_of(out / "tables" / "rows-fine-tune.csv")) == 3 * (5 + 10)
    written = rows_of(out / "tables" / "rows-scores.csv")
    expected = [row for seed in (0, 1, 2) for row in score_rows(World(), "upos", "mini", seed)]
    assert [float(row["score"]) for row in written] == [row["score"] for row in expected]


def test_a_second_call_writes_the_same_bytes(whole):
    out, _, report = whole
    paths = [report.html, *report.figures, *report.tables]
    before = [path.read_bytes() for path in paths]
    assert write_report(out) == report
    assert [path.read_bytes() for path in paths] == before
    assert not list(out.rglob("*.tmp"))


def test_what_another_report_wrote_here_goes_and_nothing_else(out, tmp_path):
    before = write_report(out)
    mine, outside = out / "tables" / "mine.csv", tmp_path / "outside.csv"
    for path in (mine, outside):
        path.write_text("a")
    written = out / "tables" / ".written"
    written.write_text(written.read_text() + f"tables/../{mine.name}\n/{outside}\nfigures/..\n\n")
    write_plan(out, [min(path.parent.name for path in out.glob("*/record.json"))])
    after = write_report(out)
    gone = {*before.figures, *before.tables} - {*after.figures, *after.tables}
    assert gone
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in (mine, outside, after.html, *after.tables))


def test_torch_is_never_imported_and_the_rest_late(out):
    code = (
        "import sys; from pathlib import Path; from isogloss.oldreports import write_report;"
        "assert not {'matplotlib', 'jinja2', 'scipy'} & set(sys.modules), 'imported before they are needed';"
        f"write_report(Path({str(out)!r})); assert 'torch' not in sys.modules;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_from_data_is_escaped(tmp_path):
    evil = {"task": EVIL, "encoder": EVIL, "language": EVIL, "metric": EVIL, "method": EVIL}
    scores = [{**row, **evil} for seed in (0, 1) for row in score_rows(World(), "upos", "mini", seed)]
    plane = [{**row, "target": EVIL} for row in plane_rows(World(), ("upos", "mini", "de", 0))]
    names = [
        write_run(tmp_path, "a", measure("scores", scores, EVIL)),
        write_run(tmp_path, "b", measure("plane", plane, EVIL)),
        write_run(tmp_path, "c", measure(EVIL, [{EVIL: EVIL}], EVIL)),
        write_run(tmp_path, "d", {"kind": "fine-tune", "title": EVIL, "warnings": [EVIL]}),
        "e",
    ]
    (tmp_path / "e").mkdir()
    (tmp_path / "e" / "failed.json").write_text(json.dumps({"error": EVIL}))
    write_plan(tmp_path, names, title=EVIL, recipe=EVIL, command=EVIL)
    write_report(tmp_path)
    html = text_of(tmp_path)
    assert "<script" not in html
    assert html.count("&lt;script&gt;") > 20
    assert parsed(html).wrong == []


def test_a_failed_run_is_named_with_its_error_and_does_not_stop_the_report(out):
    (out / "delta0" / "record.json").unlink()
    (out / "delta0" / "failed.json").write_text(
        json.dumps({"error": "DivergedError: the loss is nan at step 7"})
    )
    report = write_report(out)
    assert "Run delta0 failed: DivergedError: the loss is nan at step 7" in report.warnings
    assert "the loss is nan at step 7" in text_of(out)
    assert "1 failed" in text_of(out)
    assert "(paper: about 55°), n = 2" in text_of(out)


def test_a_damaged_record_becomes_a_warning(out):
    (out / "delta0" / "record.json").write_text('{"id": "delta0", "rows": [')
    report = write_report(out)
    (warning,) = report.warnings
    assert warning.startswith("Run delta0 could not be read: delta0/record.json: this record is damaged")
    assert "Delete the file and run again" in text_of(out)
    assert str(out) not in text_of(out)


@pytest.mark.parametrize("change", [{"run": []}, {"rows": ["no table"]}, {"rows": [1]}])
def test_a_record_of_another_shape_is_damaged(out, change):
    body = json.loads((out / "delta0" / "record.json").read_text())
    (out / "delta0" / "record.json").write_text(json.dumps({**body, **change}))
    assert "damaged" in write_report(out).warnings[0]


def test_rows_with_a_missing_field_are_left_out_and_counted(out):
    body = json.loads((out / "delta0" / "record.json").read_text())
    body["rows"] = [{"ratio": 1.0}, {"ratio": 2.0}, *body["rows"]]
    (out / "delta0" / "record.json").write_text(json.dumps(body))
    assert write_report(out).warnings == ("deltas: 2 rows left out (no 'corpus').",)


def test_runs_not_made_yet_are_counted(out):
    plan = json.loads((out / "plan.json").read_text())
    (out / "plan.json").write_text(json.dumps({**plan, "runs": [*plan["runs"], "later"]}))
    assert "1 not run yet" in text_of_report(out)


def text_of_report(out):
    return write_report(out).html.read_text(encoding="utf-8")


def test_a_plan_without_any_record_still_gives_a_page(tmp_path):
    write_plan(tmp_path, ["a", "b"], title="Nothing yet")
    report = write_report(tmp_path)
    assert report.figures == ()
    assert {claim.verdict for claim in report.claims} == {"not tested"}
    assert "Of 2 runs, 2 not run yet" in text_of(tmp_path)
    assert "The finished runs hold no numbers for: Scores per language;" in text_of(tmp_path)


def test_records_without_a_plan_are_reported(out):
    (out / "plan.json").unlink()
    assert "Runs without a plan" in text_of_report(out)
    assert "94.0 ± 0.2" in text_of(out)


def test_a_folder_without_runs_says_what_to_name(tmp_path):
    with pytest.raises(ConfigError, match=r"neither plan\.json nor a finished run.*--out"):
        write_report(tmp_path)


def test_an_unknown_diagnostic_is_a_plain_table(out):
    plan = json.loads((out / "plan.json").read_text())
    name = write_run(out, "new", measure("new", [{"layer": 3, "similarity": 0.8125}]))
    (out / "plan.json").write_text(json.dumps({**plan, "runs": [*plan["runs"], name]}))
    html = text_of_report(out)
    assert "Other measurements" in html
    assert "0.8125" in html
    assert rows_of(out / "tables" / "other-new.csv") == [{"run": "new", "layer": "3", "similarity": "0.8125"}]


def test_machine_paths_stay_out_of_the_page(out):
    plan = json.loads((out / "plan.json").read_text())
    text = f"isogloss run /home/someone/recipes/pos.toml --out {out}/x and/or https://example.org/a/b"
    (out / "plan.json").write_text(json.dumps({**plan, "command": text}))
    html = text_of_report(out)
    assert "isogloss run …/pos.toml --out x and/or https://example.org/a/b" in html


def test_one_seed_shows_no_spread(tmp_path):
    build_small(tmp_path, World(seeds=(0,), targets=("de",)))
    html = text_of_report(tmp_path)
    assert "58.0" in html
    assert "58.0 ±" not in html
    assert "nan" not in re.sub(r'src="data:[^"]*"', "", html)


def test_constant_scores_draw_without_complaint(tmp_path, recwarn):
    flat = World(seeds=(0, 1), targets=("de",), low=0.5, high=0.5, level=0.5, dip=0.0, shift=0.0)
    names = build_small(tmp_path, flat)
    path = measure("interpolation", path_rows(flat, ("upos", "mini", "de", 0)))
    same = [{**row, "score": 0.5} for row in plane_rows(flat, ("upos", "mini", "de", 0))]
    names += [write_run(tmp_path, "path", path), write_run(tmp_path, "plane", measure("plane", same))]
    write_plan(tmp_path, names)
    write_report(tmp_path)
    assert [str(warning.message) for warning in recwarn] == []


def test_what_was_measured_beside_the_metric_has_tables_of_its_own(tmp_path):
    about = {"corpus": "squad", "task": "qa", "encoder": "e", "method": "source-only", "source": "en+de"}
    tail = {"split": "test", "metric": "f1", "baseline": 0.05, "examples": 9, "em": 0.25}
    rows = [
        {**about, "seed": 0, "language": code, "score": score, **tail}
        for code, score in (("en", 0.5), ("de", 0.4), ("ru", 0.3))
    ]
    write_plan(tmp_path, [write_run(tmp_path, "a", measure("scores", rows))])
    html = text_of_report(tmp_path)
    assert "squad qa, e: f1 on test" in html
    assert "squad qa, e: em on test" in html
    assert [row["mean"] for row in rows_of(next((tmp_path / "tables").glob("scores*-em*.csv")))] == [
        "0.25"
    ] * 3
    assert "a gap of 15.0 points" in " ".join(html.split())
