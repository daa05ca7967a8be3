"""CKA beside scores: the join takes what belongs together, and the numbers are those of the metrics."""

import json
from dataclasses import replace

import pytest
from synthetic_runs import measure, write_plan, write_run

from isogloss.metrics.correlation import bootstrap_interval, spearman
from isogloss.oldreports import write_report
from isogloss.oldreports.likeness import correlation_table, likeness_correlations, likeness_tables
from isogloss.oldreports.rows import Likeness, MapPoint, Ratio, Score
from isogloss.oldreports.state_figures import likeness_figures, map_figures
from isogloss.oldreports.state_tables import map_table, ratio_table

CODES = ("de", "fr", "ru", "sw")
CKA = {"de": 0.8, "fr": 0.7, "ru": 0.75, "sw": 0.5}
SCORE = {"de": 0.78, "fr": 0.77, "ru": 0.7, "sw": 0.6}
ABOUT = {"corpus": "xnli", "task": "nli", "encoder": "mini", "source": "en"}


def alike(code, *, layer=4, shift=0.0, **about):
    found = CKA.get(code, 1.0) + shift
    kept = {"encoder": "mini", "first": "en", "sentences": 500, **about}
    return Likeness(second=code, layer=layer, cka=found, debiased=found - 0.01, **kept)


def score(code, *, seed=0, shift=0.0, **about):
    kept = {**ABOUT, "method": "source-only", "split": "test", "metric": "accuracy", **about}
    return Score(seed=seed, language=code, score=SCORE.get(code, 0.9) + shift, **kept)


MODEL = {**ABOUT, "method": "source-only"}
SCORES = [score(code, seed=seed, shift=seed / 50) for seed in (0, 1) for code in ("en", *CODES)]


def test_models_and_encoder_are_joined_by_language_and_averaged_over_seeds():
    rows = [alike(code, **MODEL, seed=seed, shift=seed / 10) for seed in (0, 1) for code in CODES]
    rows += [alike(code, shift=-0.3) for code in CODES]
    encoder, model = likeness_correlations(rows, SCORES)
    expected = spearman(list(CKA.values()), list(SCORE.values()))
    for found, states in ((encoder, "encoder"), (model, "model")):
        assert (found.states, found.method, found.layer, found.points) == (states, "source-only", 4, 4)
        assert found.rho == pytest.approx(expected.rho)
        assert found.p_value == pytest.approx(expected.p_value)
        assert (found.low, found.high) == bootstrap_interval(list(CKA.values()), list(SCORE.values()))


@pytest.mark.parametrize(
    "change", [{"encoder": "other"}, {"task": "paraphrase"}, {"method": "x-mixup"}, {"source": "ar"}]
)
def test_what_differs_is_not_joined(change):
    assert likeness_correlations([alike(code, **(MODEL | change), seed=0) for code in CODES], SCORES) == []


def test_models_may_be_measured_on_bitext_but_rather_on_what_was_scored():
    bitext = [alike(code, **(MODEL | {"corpus": "bitext"}), seed=0, shift=-i) for i, code in enumerate(CODES)]
    (found,) = likeness_correlations(bitext, SCORES)
    assert (found.states, found.points, found.rho) == ("model", 4, pytest.approx(1.0))
    (found,) = likeness_correlations([*bitext, *(alike(code, **MODEL, seed=0) for code in CODES)], SCORES)
    assert found.rho == pytest.approx(spearman(list(CKA.values()), list(SCORE.values())).rho)


def test_the_source_itself_and_other_languages_models_do_not_count():
    scores = [score(code, target="de") for code in CODES]
    rows = [alike(code, **MODEL, target="de", seed=0) for code in CODES]
    assert likeness_correlations(rows, scores) == []
    own = [score(code, target=code) for code in CODES]
    (found,) = likeness_correlations([alike(code, **MODEL, target=code, seed=0) for code in CODES], own)
    assert found.languages == "de fr ru sw"
    with_source = [*SCORES, score("en")], [alike(code, **MODEL, seed=0) for code in ("en", *CODES)]
    (found,) = likeness_correlations(with_source[1], with_source[0])
    assert found.points == 4


def test_two_languages_have_no_correlation():
    assert likeness_correlations([alike(code) for code in CODES[:2]], SCORES) == []


def test_layers_are_correlated_each_for_itself():
    rows = [
        alike(code, layer=layer, shift=0.4 * (layer == 0 and code == "sw"))
        for layer in (4, 0)
        for code in CODES
    ]
    zero, four = likeness_correlations(rows, SCORES)
    assert (zero.layer, four.layer) == (0, 4)
    assert zero.rho < four.rho


def test_tables_show_means_over_seeds_and_the_correlation():
    rows = [alike(code, **MODEL, seed=seed, shift=seed / 10) for seed in (0, 1) for code in CODES]
    (table,) = likeness_tables(rows)
    assert [cell.text for cell in table.rows[0]] == [
        *("xnli nli", "source-only", "4", "0.85 ± 0.07", "0.75 ± 0.07", "0.80 ± 0.07", "0.55 ± 0.07", "0.74")
    ]
    (shown,) = correlation_table(likeness_correlations(rows, SCORES))
    assert [cell.text for cell in shown.rows[0]][6:8] == ["4", "0.80"]


def test_a_missing_number_is_a_dash():
    rows = [alike("de"), replace(alike("fr"), cka=None)]
    assert [cell.text for cell in likeness_tables(rows)[0].rows[0]][3:] == ["0.80", "–", "–"]
    assert likeness_correlations(rows, SCORES) == []


def test_one_layer_is_no_line():
    assert likeness_figures([alike(code) for code in CODES]) == []


def test_lines_are_drawn_for_every_pair_with_the_encoder_beside():
    rows = [
        alike(code, layer=layer, **about)
        for code in CODES
        for layer in (0, 4)
        for about in ({}, {**MODEL, "seed": 0})
    ]
    (figure,) = likeness_figures(rows)
    assert "before fine-tuning 0.69; source-only 0.69" in figure.alt
    assert len(figure.data) == len(rows)
    assert figure.svg == likeness_figures(rows)[0].svg


def places(between=0.25, **about):
    kept = {"encoder": "mini", "layer": 4, "sentences": 50, **about}
    shares = {"explained_x": 0.5, "explained_y": 0.2, "between": between}
    for number, code in enumerate(("en", "de")):
        yield MapPoint(what="centroid", language=code, x=number, y=-number, **shares, **kept)
        for place in range(3):
            yield MapPoint(what="sentence", language=code, x=number + place / 5, y=place - 1.0, **kept)


def test_maps_are_drawn_before_and_after_for_the_first_seed():
    rows = [*places(), *places(0.05, **MODEL, seed=0), *places(0.15, **MODEL, seed=1)]
    (figure,) = map_figures(rows)
    assert "2 maps" in figure.alt
    assert "before fine-tuning 25.0 and source-only 5.0" in figure.alt
    assert {row["seed"] for row in figure.data} == {None, 0}
    (table,) = map_table(rows)
    assert [[cell.text for cell in row][3:6] for row in table.rows] == [
        ["(encoder)", "4", "25.0"],
        ["source-only", "4", "10.0 ± 7.1"],
    ]


def test_points_in_one_place_are_drawn(recwarn):
    rows = [replace(row, x=0.0, y=0.0) for row in places()]
    assert map_figures(rows)
    assert not list(recwarn)


def ratio(seed, mean, std=0.02, **changes):
    return Ratio(
        **{
            **MODEL,
            "method": "x-mixup",
            "language": "de",
            "split": "test",
            "examples": 9,
            "q05": 0.1,
            "median": mean,
        }
        | {"q95": 0.5, "seed": seed, "mean": mean, "std": std}
        | changes
    )


def test_ratios_are_averaged_over_seeds_by_language_and_corpus():
    (table,) = ratio_table([ratio(0, 0.2), ratio(1, 0.4), ratio(0, 0.1, std=None, corpus="noisy")])
    shown = [[cell.text for cell in row] for row in table.rows]
    assert shown[0][5:9] == ["German (de)", "test", "0.300 ± 0.141", "0.020 ± 0.000"]
    assert shown[1][7:9] == ["0.100", "–"]


def test_no_rows_are_no_tables():
    assert [likeness_tables([]), correlation_table([]), map_table([]), ratio_table([])] == [[]] * 4
    assert [likeness_figures([]), map_figures([])] == [[]] * 2


def test_the_report_has_their_sections(tmp_path):
    from dataclasses import asdict

    likeness = [alike(code, layer=layer, **MODEL, seed=0) for code in CODES for layer in (0, 4)]
    parts = {
        "scores": SCORES,
        "cka": likeness,
        "representation-map": places(),
        "mixup-ratio": [ratio(0, 0.2)],
    }
    names = [write_run(tmp_path, name, measure(name, map(asdict, rows))) for name, rows in parts.items()]
    write_plan(tmp_path, names)
    report = write_report(tmp_path)
    html = report.html.read_text(encoding="utf-8")
    assert report.warnings == ()
    for part in ('id="likeness"', 'id="maps"', 'id="mixup-ratio"', "Does CKA go with transfer?"):
        assert part in html
    assert json.loads((tmp_path / "plan.json").read_text())["runs"] == names
