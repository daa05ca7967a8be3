"""The report of a folder of runs: every number, whatever is missing, nothing that is not text."""

import csv
import json
import os
import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from shutil import copytree

import pandas as pd
import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.progress import Progress
from isogloss.features.claims.four_papers import PAPERS
from isogloss.reports import page, report
from isogloss.reports.checks import Check
from isogloss.reports.drawing import Figure, Lines
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements
from isogloss.reports.report import Report, finished_report, write_report
from isogloss.reports.sections import Section, ShownSection
from isogloss.reports.tables import Number, Summary, plain_table
from isogloss.reports.verdicts import Claim
from made_up_runs import adjust, measure, model, scores, small_study, write, write_plan

pytestmark = pytest.mark.draws  # The study is drawn once, for the test that comes first.

EVIL = "<script>alert('$x$ & _y_')</script>"
VOID = {"meta", "img", "br", "link", "input", "source"}
SCORES = Summary(
    section="x",
    frame="scores",
    title="Scores",
    caption="In percent.",
    by=("name", "language"),
    values={"score": Number(column="score", scale=100, digits=1)},
    keep=("name", "language"),
)


EPOCHS = LineFigure(
    section="x",
    frame="epochs",
    name="epochs",
    title="Epochs",
    caption="Dev scores.",
    panels=("task",),
    lines=Lines(x="epoch", y="score", color="language"),
)
"""A line for each language over epochs."""

SECTIONS = (
    Section("scores", "Scores per language", "How each does.", (SCORES.show,)),
    Section("plane", "The plane", "Flat?"),
    Section("training", "Training curves", "Settled?", (EPOCHS.show,)),
    report.SECTIONS[-1],
)
CLAIMS = (
    Claim(
        id="1a",
        title=PAPERS["1"][1],
        subject=PAPERS["1"][0],
        where="Fig. 1",
        says="Targets are harder.",
        rule="Below 1.",
        needs=("scores",),
        test=lambda measurements: [
            Check(about="score", values=list(measurements.frame("scores")["score"]), below=1.0)
        ],
    ),
    Claim(
        id="4z",
        title=PAPERS["4"][1],
        subject=PAPERS["4"][0],
        where="Table 9",
        says="Gates differ.",
        rule="As said.",
        needs=("language-gates",),
        test=lambda measurements: [Check(about="never asked")],
    ),
)


class Balanced(HTMLParser):
    """Collects tags, links and alternative texts, and notes a tag that is closed out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.links: list[str] = []
        self.alts: list[str] = []
        self.ids: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        row = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self.open.append(tag)
        self.links += [row["href"]] if "href" in row else []
        self.alts += [row.get("alt", "")] if tag == "img" else []
        self.ids += [row["id"]] if "id" in row else []

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def parse_page(html: str) -> Balanced:
    result = Balanced()
    result.feed(html)
    return result


def text_of(path: Path) -> str:
    return (path / "report.html").read_text(encoding="utf-8")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files_of(path: Path) -> dict[Path, tuple[bytes, int]]:
    paths = [path for path in path.rglob("*") if path.is_file()]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(autouse=True)
def wire_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "SECTIONS", SECTIONS)
    monkeypatch.setattr(report, "all_claims", lambda: (CLAIMS, []))


@pytest.fixture
def small_study_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    small_study(folder)
    return folder


Reported = tuple[Path, Report]


@pytest.fixture(scope="module")
def reported_study(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """A folder with its report, and that report. Nothing may change them."""
    folder = tmp_path_factory.mktemp("reported") / "out"
    small_study(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "SECTIONS", SECTIONS)
        patch.setattr(report, "all_claims", lambda: (CLAIMS, []))
        return folder, write_report(folder)


@pytest.mark.slow
def test_the_page_opens_with_question_answer_one_table_and_the_verdicts(reported_study: Reported) -> None:
    folder, result = reported_study
    html = text_of(folder)
    parts = (
        "A study</p>",
        "<h1>POS tagging: models trained on labels in",
        '<b class="target">60.0 to 64.0\N{NO-BREAK SPACE}%</b> in <b class="target">Dunar</b>',
        "depending on the seed (artificial languages, test split).</h1>",
        "Models trained on labels in Ansa",
    )
    parts += (
        'class="paths"',
        "a gap of 29.0 points",
        "<table>",
        'id="claims"',
        'id="training"',
        'id="notes"',
    )
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert (
        "Trained on Ansa (qaa) alone, models score 91.0 percent on the source language and 62.0 on the targ"
        in html
    )
    assert "With target labels (bilingual) targets gain 20.0 points." in html
    assert html.count("62.0 ± 2.0") == 1, "the main table stands once"
    assert dict(result.summary)["runs"] == "15 of 15 finished"


@pytest.mark.nightly
@pytest.mark.slow
def test_what_takes_long_is_told_and_a_report_that_is_there_says_nothing(small_study_folder: Path) -> None:
    messages: list[Progress] = []
    figures = write_report(small_study_folder, messages.append).figures
    ends = [(message.what, message.total) for message in messages if message.done == message.total]
    assert [end for end, _ in ends] == ["records", "claims", "sections", "figures"]
    assert dict(ends)["records"] == 15
    assert dict(ends)["figures"] == len(figures) > 0
    messages.clear()
    write_report(small_study_folder, messages.append)
    assert messages == []


@pytest.mark.slow
def test_the_claims_that_are_asked_have_verdict_finding_and_rule(reported_study: Reported) -> None:
    folder, result = reported_study
    assert [(claim.claim.id, claim.verdict) for claim in result.claims] == [("1a", "supported")]
    html = text_of(folder)
    for part in ("supported</span>", "(1a) Targets are harder.", "Below 1.", "Fig. 1"):
        assert part in html
    assert "Gates differ." not in html
    (row,) = rows_of(folder / "tables" / "claims-transfer.csv")
    assert (row["claim"], row["verdict"], row["found"]) == ("1a", "supported", result.claims[0].found)
    assert dict(result.summary)["claims"] == "Of 1 claim, 1 supported."


@pytest.mark.slow
def test_sections_stand_in_reading_order_without_those_that_have_no_numbers(reported_study: Reported) -> None:
    folder, _ = reported_study
    ids = parse_page(text_of(folder)).ids
    assert ids == ["top", "main-table", "claims", "next", "training", "runs", "notes"]
    assert "The plane" not in text_of(folder)


@pytest.mark.slow
def test_the_page_is_well_formed_and_every_link_leads_somewhere(reported_study: Reported) -> None:
    folder, result = reported_study
    html = parse_page(text_of(folder))
    assert (html.wrong, html.open) == ([], [])
    assert all(len(alt) > 20 for alt in html.alts)
    assert len(html.alts) == len(result.figures) == 1
    for link in html.links:
        assert link[1:] in html.ids if link.startswith("#") else (folder / link).is_file(), link
    assert len(html.links) > 10


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_runs_one_script_that_it_names_by_its_hash(
    reported_study: Reported,
) -> None:
    folder, _ = reported_study
    html = text_of(folder)
    for tag in ("script", "style"):
        (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, flags=re.DOTALL)
        allowed_text = b64encode(sha256(content.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{allowed_text}'" in html
        assert html.count(f"<{tag}") == 1
    assert "default-src 'none'" in html
    assert not re.search(r'\son[a-z]+="|style="', html), "neither would be allowed"
    assert not re.search(r'(?:src|href)="(?:https?:|/|file:)', html)


@pytest.mark.slow
def test_every_figure_comes_as_pdf_with_its_numbers_beside_it_and_on_the_page(
    reported_study: Reported,
) -> None:
    folder, result = reported_study
    (figure,) = result.figures
    assert figure.read_bytes().startswith(b"%PDF")
    assert len(rows_of(folder / "tables" / "epochs.csv")) == 6
    assert "<summary>Data</summary>" in text_of(folder)


@pytest.mark.nightly
@pytest.mark.slow
def test_figures_for_a_paper_have_its_widths_and_typeface_in_three_formats(small_study_folder: Path) -> None:
    paths = report.draw_figures(small_study_folder, "acl")
    assert {path.name for path in paths} == {
        f"epochs-{width}.{form}" for width in ("column", "text") for form in ("pdf", "svg", "png")
    }
    assert all(path.is_file() and path.parent == small_study_folder / "figures" / "acl" for path in paths)
    inches = {
        path.stem: float(re.search(r'width="([\d.]+)pt"', path.read_text())[1]) / 72
        for path in paths
        if path.suffix == ".svg"
    }
    assert inches == pytest.approx({"epochs-column": 3.03, "epochs-text": 6.3})
    assert b"STIXGeneral" in (small_study_folder / "figures" / "acl" / "epochs-column.pdf").read_bytes()


def test_an_unknown_style_is_refused(small_study_folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"--style: .*'alc'.*'acl'"):
        report.draw_figures(small_study_folder, "alc")


def test_numbers_of_a_figure_leave_out_columns_in_which_all_are_alike() -> None:
    data = pd.DataFrame({"same": [1, 1], "differs": [1, 2], "list": [[1], [1]]})
    figure = Figure(name="f", title="", caption="", alt="", data=data, paint=lambda _: None)
    assert [cell.text for cell in page.numbers_of(figure).header] == ["differs"]


@pytest.mark.slow
def test_csv_files_hold_every_row_and_the_facts_of_every_model(reported_study: Reported) -> None:
    folder, _ = reported_study
    assert len(rows_of(folder / "tables" / "rows-interpolation.csv")) == 9
    assert len(rows_of(folder / "tables" / "rows-scores.csv")) == 12
    facts = rows_of(folder / "tables" / "facts.csv")
    assert sorted(row["method"] for row in facts) == ["", *["bilingual"] * 3, *["source-only"] * 3]


@pytest.mark.slow
def test_the_same_records_give_the_same_bytes(small_study_folder: Path) -> None:
    first_report = write_report(small_study_folder)
    paths = [first_report.html, *first_report.figures, *first_report.tables]
    contents_before = [path.read_bytes() for path in paths]
    (small_study_folder / "tables" / ".written").unlink()
    second = write_report(small_study_folder)
    assert [path.read_bytes() for path in paths] == contents_before
    assert (second.figures, second.tables, second.summary) == (
        first_report.figures,
        first_report.tables,
        first_report.summary,
    )
    assert not list(small_study_folder.rglob("*.tmp"))


@pytest.mark.nightly
@pytest.mark.slow
def test_where_nothing_changed_nothing_is_drawn_or_written(
    small_study_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_report = write_report(small_study_folder)
    contents_before = files_of(small_study_folder)
    monkeypatch.setattr(report, "read_measurements", lambda *_: pytest.fail("made again"))
    second = write_report(small_study_folder)
    assert files_of(small_study_folder) == contents_before
    assert second.summary == first_report.summary
    assert (second.figures, second.tables, second.warnings) == (
        first_report.figures,
        first_report.tables,
        first_report.warnings,
    )


def touch_record(folder: Path) -> None:
    path = min(folder.glob("*/record.json"))
    path.write_text(path.read_text() + " ")


CHANGES: dict[str, Callable[[Path], object]] = {
    "a record": touch_record,
    "a new failure": lambda folder: (min(folder.glob("*/record.json")).parent / "failed.json").write_text(
        "{}"
    ),
    "the plan": lambda folder: write_plan(
        folder, [path.parent.name for path in sorted(folder.glob("*/record.json"))]
    ),
    "the page": lambda folder: (folder / "report.html").write_text("mine"),
    "a table is gone": lambda folder: (folder / "tables" / "runs.csv").unlink(),
    "what is known": lambda folder: (folder / "tables" / ".written").write_text("[1]"),
}


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_where_anything_changed_the_report_is_made_again(
    small_study_folder: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(small_study_folder)
    result = []
    read = report.read_measurements
    monkeypatch.setattr(report, "read_measurements", lambda out, *_: result.append(out) or read(out))
    CHANGES[change](small_study_folder)
    write_report(small_study_folder)
    write_report(small_study_folder)
    assert result == [small_study_folder]
    assert "<title>A study" in text_of(small_study_folder)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_change_of_the_package_makes_the_report_again(
    small_study_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_report(small_study_folder)
    assert finished_report(small_study_folder)
    monkeypatch.setattr(report, "package_stamp", lambda: "another")
    assert finished_report(small_study_folder) is None


@pytest.mark.nightly
@pytest.mark.slow
def test_only_what_is_new_is_written(small_study_folder: Path) -> None:
    result = write_report(small_study_folder)
    contents_before = files_of(small_study_folder)
    plan = json.loads((small_study_folder / "plan.json").read_text())
    write_plan(small_study_folder, plan["runs"], command="isogloss run another.toml")
    write_report(small_study_folder)
    changed_names = {
        path.name
        for path, content in files_of(small_study_folder).items()
        if contents_before[path] != content
    }
    assert changed_names == {"plan.json", ".written", "report.html", "claims.json"}  # It names the recipes.
    assert len(result.tables) > 5


@pytest.mark.nightly
@pytest.mark.slow
def test_what_the_last_report_wrote_and_this_one_does_not_goes_and_nothing_else(
    small_study_folder: Path, tmp_path: Path
) -> None:
    report_before = write_report(small_study_folder)
    mine_path = small_study_folder / "tables" / "mine.csv"
    outside = tmp_path / "outside.csv"
    for path in (mine_path, outside):
        path.write_text("a")
    known_data = json.loads((small_study_folder / "tables" / ".written").read_text())
    known_data["files"] += [
        f"tables/../tables/{mine_path.name}",
        str(outside),
        "figures/..",
        f"../{outside.name}",
    ]
    (small_study_folder / "tables" / ".written").write_text(json.dumps(known_data))
    write_plan(
        small_study_folder, [min(path.parent.name for path in small_study_folder.glob("*/record.json"))]
    )
    report_after = write_report(small_study_folder)
    difference = {*report_before.figures, *report_before.tables} - {
        *report_after.figures,
        *report_after.tables,
    }
    assert difference
    assert not any(path.exists() for path in difference)
    assert all(path.exists() for path in (mine_path, outside, report_after.html, *report_after.tables))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_report_of_an_unfinished_plan_is_not_finished(small_study_folder: Path) -> None:
    plan = json.loads((small_study_folder / "plan.json").read_text())
    write_plan(small_study_folder, [*plan["runs"], "later"])
    assert dict(write_report(small_study_folder).summary)["runs"] == "15 of 16 finished"
    assert finished_report(small_study_folder) is None


@pytest.mark.slow
def test_torch_is_never_imported_and_the_rest_late(small_study_folder: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from isogloss.reports.report import write_report;"
        "assert not {'matplotlib', 'jinja2'} & set(sys.modules), 'imported before they are needed';"
        f"write_report(Path({str(small_study_folder)!r})); assert 'torch' not in sys.modules;"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False
    )
    assert (process.returncode, process.stderr) == (0, "")


@pytest.mark.nightly
@pytest.mark.slow
def test_a_first_report_on_a_slow_machine_says_nothing_of_fonts(
    small_study_folder: Path, tmp_path: Path
) -> None:
    """Matplotlib's message after some seconds of searching fonts would appear at once here."""
    program = (
        "import threading; from pathlib import Path; from isogloss.reports.report import write_report;"
        "Timer = threading.Timer; threading.Timer = lambda _, call: Timer(0, call);"
        f"write_report(Path({str(small_study_folder)!r}));"
        "import logging; assert logging.getLogger('matplotlib.font_manager').level == logging.NOTSET"
    )
    environment = {**os.environ, "MPLCONFIGDIR": str(tmp_path)}
    words = [sys.executable, "-c", program]
    process = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert (process.returncode, process.stderr) == (0, "")
    assert list(tmp_path.glob("fontlist-*"))


def evil_study(path: Path, evil: str) -> Report:
    encoder = {"kind": "pretrained", "source": evil, "data": "1"}
    item = model(encoder=encoder, task=evil, fields={"how": evil})
    names = [
        write(path, item, title=evil, warnings=[evil]),
        write(path, measure("scores", [item]), scores(item, {evil: 0.5, "qaa": 0.6}), title=evil),
        write(path, measure(evil, [item]), [{evil: evil}], title=evil),
        "e",
    ]
    (path / "e").mkdir()
    (path / "e" / "failed.json").write_text(json.dumps({"error": evil}))
    write_plan(path, names, title=evil, recipe=evil, command=evil, labels={"x": evil})
    return write_report(path)


def test_everything_from_data_is_escaped(tmp_path: Path) -> None:
    evil_study(tmp_path, EVIL)
    html = text_of(tmp_path)
    assert html.count("<script") == 1, "the page's own"
    assert html.count("&lt;script&gt;") > 10
    assert parse_page(html).wrong == []


def test_nothing_on_the_page_steers_a_terminal_or_turns_a_line(tmp_path: Path) -> None:
    evil_study(tmp_path, "a\x1b[31mred\x07 \u202eturned\u202c \u2066b\u2069")
    html = text_of(tmp_path)
    assert not {"\x1b", "\x07", *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"} & set(html)
    assert "<title>a[31mred turned b</title>" in html


@pytest.mark.slow
def test_failed_damaged_and_missing_runs_are_named_and_the_rest_is_reported(small_study_folder: Path) -> None:
    folders = sorted(path.parent for path in small_study_folder.glob("*/record.json"))
    (folders[0] / "record.json").unlink()
    (folders[0] / "failed.json").write_text(
        json.dumps({"error": f"DivergedError in {small_study_folder}/x at step 7"})
    )
    (folders[1] / "record.json").write_text('{"id": "x", "rows": [')
    (folders[2] / "record.json").unlink()
    result = write_report(small_study_folder)
    assert any(
        warning.startswith(f"Run {folders[0].name} failed: DivergedError") for warning in result.warnings
    )
    assert any(
        warning.startswith(f"Run {folders[1].name} ") and "record.json: " in warning and "21 bytes" in warning
        for warning in result.warnings
    )
    html = text_of(small_study_folder)
    for part in ("at step 7", "damaged record", "not run yet", "12 of 15 finished"):
        assert part in html
    assert str(small_study_folder) not in html


@pytest.mark.slow
def test_no_path_of_this_machine_is_on_the_page(small_study_folder: Path) -> None:
    plan = json.loads((small_study_folder / "plan.json").read_text())
    text = f"isogloss run /home/someone/recipes/pos.toml --out {small_study_folder}/x and/or https://example.org/a/b"
    write_plan(small_study_folder, plan["runs"], command=text)
    write_report(small_study_folder)
    assert "isogloss run …/pos.toml --out …/x and/or https://example.org/a/b" in text_of(small_study_folder)
    assert str(small_study_folder) not in text_of(small_study_folder)


def test_a_plan_without_any_record_still_gives_a_page(tmp_path: Path) -> None:
    write_plan(tmp_path, ["a", "b"], title="Nothing yet")
    outcome = write_report(tmp_path)
    assert (outcome.figures, outcome.claims) == ((), ())
    assert outcome.found == "These runs have 0 scores, none of a source-only model on its source and targets."
    assert "0 of 2 finished" in text_of(tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
def test_records_without_a_plan_are_reported(small_study_folder: Path) -> None:
    (small_study_folder / "plan.json").unlink()
    write_report(small_study_folder)
    assert "Runs without a plan" in text_of(small_study_folder)
    assert "62.0 ± 2.0" in text_of(small_study_folder)


def test_a_folder_without_runs_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plan\.json.*--out"):
        write_report(tmp_path)


@pytest.mark.nightly
@pytest.mark.slow
def test_an_unknown_diagnostic_is_a_plain_table(small_study_folder: Path) -> None:
    plan = json.loads((small_study_folder / "plan.json").read_text())
    name = write(small_study_folder, measure("new", [model()]), [{"layer": 3, "similarity": 0.8125}])
    write_plan(small_study_folder, [*plan["runs"], name])
    write_report(small_study_folder)
    assert "What else was measured?" in text_of(small_study_folder)
    assert "0.8125" in text_of(small_study_folder)
    assert rows_of(small_study_folder / "tables" / "other-new.csv") == [
        {"run": name, "layer": "3", "similarity": "0.8125"}
    ]


@pytest.mark.nightly
@pytest.mark.slow
def test_one_seed_shows_no_spread(tmp_path: Path) -> None:
    small_study(tmp_path, seeds=1)
    write_report(tmp_path)
    assert "60.0" in text_of(tmp_path)
    assert "60.0 ±" not in text_of(tmp_path)
    assert "nan" not in "".join(parse_page(text_of(tmp_path)).shown)


def test_the_answer_is_about_what_is_trained_on_the_source_alone(tmp_path: Path) -> None:
    adjusted_models = [model(seed=seed, encoder=adjust(size=300)) for seed in (0, 1)]
    plain_models = [model(seed=seed) for seed in (0, 1)]
    names = [
        write(tmp_path, measure("scores", [item]), scores(item, {"qaa": 0.9, "qad": target}))
        for target, models in ((0.7, adjusted_models), (0.5, plain_models))
        for item in models
    ]
    write_plan(tmp_path, names)
    result = write_report(tmp_path).found
    assert "50.0 on the targets, a gap of 40.0 points (accuracy on ud upos test, mean over 2 seeds)" in result
    assert "bilingual" not in result
    assert "targets gain 20.0 points." in result


@pytest.mark.slow
def test_the_answer_is_about_one_test_set_and_tells_who_read_target_labels(tmp_path: Path) -> None:
    models = {"source-only": (0.5, 0.1), "translate-train": (0.6, 0.2), "bilingual": (0.8, 0.9)}
    names = []
    for task, position in (("upos", 0), ("zzz", 1)):
        for method, targets in models.items():
            item = model(method, task=task, target=[] if method == "source-only" else ["qad"])
            measurement = measure("scores", [item], corpus="ud" if task == "upos" else "xnli")
            names.append(write(tmp_path, measurement, scores(item, {"qaa": 0.9, "qad": targets[position]})))
    write_plan(tmp_path, names)
    assert write_report(tmp_path).found == (
        "Trained on Ansa (qaa) alone, models score 90.0 percent on the source language and 50.0 on the "
        "targets, a gap of 40.0 points (accuracy on ud upos test, mean over 1 seed). Without target labels "
        "(translate-train) targets gain 10.0 points. With target labels (bilingual) targets gain 30.0 points."
    )


def test_no_gain_is_said_to_be_none(tmp_path: Path) -> None:
    item = model()
    other_model = model("bilingual", target=["qad"])
    names = [
        write(tmp_path, measure("scores", [owner]), scores(owner, {"qaa": 0.9, "qad": target}))
        for owner, target in ((item, 0.6), (other_model, 0.6))
    ]
    write_plan(tmp_path, names)
    assert write_report(tmp_path).found.endswith(
        "None of 1 other system with target labels scores higher there."
    )


def test_the_first_table_of_scores_is_not_repeated() -> None:
    first_table, second_table = (plain_table(name, "Scores", pd.DataFrame()) for name in ("a", "b"))
    left = page.without_tables(ShownSection(SECTIONS[0], [first_table, second_table], []), [first_table])
    assert [table.name for table in left.tables] == ["b"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transfer", "mixup", "adjustment", "interference"])
def test_a_real_study_makes_a_page_whose_files_have_names_of_their_own(
    study: Callable[[str], Measurements], name: str, tmp_path: Path
) -> None:
    measurements = study(name)
    folder = tmp_path / "runs"
    folder.mkdir()
    for run in measurements.runs:
        copytree(run.folder, folder / run.id)
    write_plan(
        folder,
        [run.id for run in measurements.runs],
        title=measurements.title,
        labels=dict(measurements.labels),
    )
    outcome = write_report(folder)
    assert outcome.found.startswith("Trained on Ansa (qaa) alone, models score")
    names = [path.name for path in (*outcome.tables, *outcome.figures)]
    assert len(names) == len(set(names)) > 5
    assert parse_page(text_of(folder)).wrong == []


def test_no_file_of_an_earlier_report_is_removed_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x.csv").touch()
    (tmp_path / "out" / "figures").mkdir(parents=True)
    (tmp_path / "out" / "figures" / "x.pdf").touch()
    (tmp_path / "out" / "tables").symlink_to(tmp_path / "mine")
    report._replace(tmp_path / "out", {}, ["tables/x.csv", "figures/x.pdf"])
    assert (tmp_path / "mine" / "x.csv").exists()
    assert not (tmp_path / "out" / "figures" / "x.pdf").exists()
