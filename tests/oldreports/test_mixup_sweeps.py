"""Sweeps are shown as means over seeds, what was trained is marked, the best ratio is that of the mean."""

from dataclasses import asdict

from synthetic_runs import measure, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.mixup_sweeps import sweep_figures, sweep_tables
from isogloss.oldreports.rows import SweepPoint

ABOUT = {"corpus": "xnli paired", "task": "nli", "encoder": "mini", "method": "x-mixup", "source": "en"}


def point(ratio, score, *, seed=0, layer=1, language="de", **about):
    return SweepPoint(
        **{**ABOUT, "split": "test", "metric": "accuracy", "trained": (layer, ratio) == (1, 0.5), **about},
        seed=seed,
        layer=layer,
        language=language,
        ratio=ratio,
        score=score,
        mean=ratio / 2,
    )


ROWS = [
    point(ratio, 0.6 + shift + seed / 50, seed=seed, layer=layer)
    for seed in (0, 1)
    for layer in (1, 3)
    for ratio, shift in ((0.5, 0.05), (1.0, 0.1 / layer), (0.0, 0.0))
]


def test_a_table_has_the_ends_of_each_layer():
    (table,) = sweep_tables(ROWS)
    shown = [[cell.text for cell in row] for row in table.rows]
    assert [cell.text for cell in table.header][7:] == [
        *("layer", "unmixed", "as trained", "best", "at λ₀", "seeds")
    ]
    assert shown[0][3:] == [
        *("x-mixup", "en", "German (de)", "test", "1"),
        *("61.0 ± 1.4", "66.0 ± 1.4", "71.0 ± 1.4", "1", "2"),
    ]
    assert shown[1][7:] == ["3", "61.0 ± 1.4", "–", "66.0 ± 1.4", "0.5", "2"]
    assert len(table.data) == len(ROWS)


def test_of_equally_good_ratios_the_smallest_counts():
    (table,) = sweep_tables([point(ratio, 0.5) for ratio in (1.0, 0.5, 0.25)])
    assert [cell.text for cell in table.rows[0]][8:] == ["–", "50.0", "50.0", "0.25", "1"]


def test_a_line_for_each_layer_and_a_panel_for_each_method_and_language():
    more = [point(ratio, 0.7, language="fr", method="x-mixup (kl=0)") for ratio in (0.0, 0.5)]
    (figure,) = sweep_figures([*ROWS, *more])
    assert "2 panels" in figure.alt
    assert "x-mixup de, layer 1: 61.0 to 71.0; x-mixup de, layer 3: 61.0 to 66.0" in figure.alt
    assert len(figure.data) == len(ROWS) + 2
    assert figure.svg == sweep_figures([*ROWS, *more])[0].svg


def test_one_ratio_is_no_line_and_no_rows_are_nothing():
    assert sweep_figures([point(0.5, 0.6)]) == []
    assert len(sweep_tables([point(0.5, 0.6)])) == 1
    assert sweep_figures([]) == sweep_tables([]) == []


def test_the_report_has_their_section(tmp_path):
    names = [write_run(tmp_path, "sweep", measure("mixup-sweep", map(asdict, ROWS)))]
    write_plan(tmp_path, names)
    report = write_report(tmp_path)
    assert report.warnings == ()
    html = report.html.read_text(encoding="utf-8")
    assert 'id="mixup-sweep"' in html
    assert "Mixing more, less, or elsewhere at inference" in html
    assert (tmp_path / "tables" / "mixup-sweep.tex").read_text().count(r"$\lambda$") == 1
