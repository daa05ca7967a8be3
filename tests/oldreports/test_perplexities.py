"""Curves and table of perplexity, and encoders under the names the recipe gives them."""

import pytest
from synthetic_runs import World, measure, score_rows, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.gather import gather
from isogloss.oldreports.perplexities import perplexity_figure, perplexity_table

LONG = "bert 4x256 on en+fr (0a1b2c)"


def rows(scores):
    """Losses, and the perplexity of each language by epoch."""
    yield {"step": 20, "loss": 5.0, "rate": 1e-3}
    for language, values in scores.items():
        for epoch, score in enumerate(values, start=1):
            about = {"step": 100 * epoch, "epoch": epoch, "language": language}
            yield {**about, "split": "dev", "metric": "perplexity", "score": score}


@pytest.fixture
def out(tmp_path):
    names = [
        write_run(
            tmp_path, name, {"kind": "pretrain", "title": f"encoder {label}", "rows": list(rows(scores))}
        )
        for name, label, scores in (
            ("aa", LONG, {"en": [90.0, 40.0, 30.0], "fr": [2000.0, 55.0, 60.0]}),
            ("bb", "bert 4x256 on en (3d4e5f)", {"en": [80.0, 35.0, 25.5]}),
        )
    ]
    scored = [{**row, "encoder": LONG} for row in score_rows(World(), "upos", "mini", 0)]
    names.append(write_run(tmp_path, "cc", measure("scores", scored)))
    write_plan(tmp_path, names, labels={LONG: "joint", "bert 4x256 on en (3d4e5f)": "mono-en"})
    return tmp_path


def test_the_table_has_the_last_and_the_lowest_perplexity(out):
    (table,) = perplexity_table(gather(out).finished("pretrain"))
    shown = [[cell.text for cell in row] for row in table.rows]
    assert shown == [
        ["English (en)", "joint", "30.00", "3", "30.00", "3"],
        ["English (en)", "mono-en", "25.50", "3", "25.50", "3"],
        ["French (fr)", "joint", "60.00", "3", "55.00", "2"],
    ]


def test_the_figure_has_a_line_for_each_encoder_and_language(out):
    (figure,) = perplexity_figure(gather(out).finished("pretrain"))
    assert len(figure.data) == 9
    assert {row["encoder"] for row in figure.data} == {"joint", "mono-en"}
    assert "(en) 30.0 for joint, French (fr) 60.0 for joint and English (en) 25.5 for mono-en" in figure.alt
    assert "only encoders with one vocabulary can be compared" in figure.caption


def test_without_held_out_text_there_is_nothing_to_show(tmp_path):
    write_plan(tmp_path, [write_run(tmp_path, "aa", {"kind": "pretrain", "rows": list(rows({}))})])
    runs = gather(tmp_path).finished("pretrain")
    assert perplexity_figure(runs) == perplexity_table(runs) == []


def test_a_report_calls_encoders_as_the_recipe_does_and_leaves_no_row_out(out):
    report = write_report(out)
    page = report.html.read_text(encoding="utf-8")
    assert LONG not in page
    assert "joint" in page and "mono-en" in page
    assert not report.warnings
    assert {"perplexity.pdf"} <= {path.name for path in report.figures}
    assert {"perplexity-by-language.csv"} <= {path.name for path in report.tables}
    scores = (out / "tables" / "rows-scores.csv").read_text(encoding="utf-8")
    assert ",joint," in scores


def test_lines_beyond_the_palette_differ_in_style():
    from isogloss.oldreports.drawing import PALETTE, colours, line_styles

    names = [f"encoder {number}" for number in range(len(PALETTE) + 1)]
    looks = list(zip(colours(names).values(), line_styles(names).values(), strict=True))
    assert looks[0][0] == looks[-1][0] and len(set(looks)) == len(names)
