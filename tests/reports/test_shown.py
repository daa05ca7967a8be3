"""A page equals its rows: figures, strips, positions, cells and alternative texts."""

import csv
import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from page_tree import Node, tree_of

from isogloss.core.languages import language_name
from isogloss.features.claims.checks import check_spreads
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.comparing.compared_runs import ComparisonRequest, compare_runs
from isogloss.features.landscapes.point_records import path_sentence
from isogloss.reports.checks import Check
from isogloss.reports.drawing import PAGE, Figure
from isogloss.reports.line_figures import MOST_ENDS
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.opening import write_opening
from isogloss.reports.page import Page, render, run_table
from isogloss.reports.sections import SECTIONS, show_section
from isogloss.reports.tables import to_csv, to_latex
from isogloss.reports.verdicts import Claim, ClaimOutcome, check_rows, judge
from moving_studies import ALPHAS, moving_study

STUDIES = ("transfer", "mixup", "adjustment", "interference")

GRIDS = [
    *((name,) for name in ALPHAS),
    ("even", "crowded"),
    ("crowded", "without the start", "without the end"),
]
"""Grids of the paths of one study, a pair of languages each."""

MADE_UP = [
    pytest.param((number, *grids), id="-".join(grids), marks=pytest.mark.slow)
    for number, grids in enumerate(GRIDS)
]

EVERY = [
    pytest.param((number, *grids), id=f"{number}-{'-'.join(grids)}", marks=pytest.mark.nightly)
    for number in range(100, 101)
    for grids in itertools.chain(*(itertools.product(ALPHAS, repeat=times) for times in (1, 2)))
]


Shown = tuple[Measurements, Node]
"""Measurements, and the page that shows them."""


@pytest.fixture
def made_up(request: pytest.FixtureRequest, tmp_path: Path) -> Shown:
    """Write a study, and render the opening of its page."""
    number, *grids = request.param
    moving_study(tmp_path, number, *grids)
    m = read_measurements(tmp_path)
    return m, page_with(m)


def page_with(m: Measurements, outcomes: Sequence[ClaimOutcome] = ()) -> Node:
    """Render the opening of a page, and claims."""
    page = Page(m=m, opening=write_opening(m), outcomes=outcomes, sections=[], runs=run_table(m), raw={})
    return tree_of(render(page))


def paths_of(m: Measurements) -> pd.DataFrame:
    """Return the measured points of paths from source-only models, of whole models, by names of languages."""
    rows = m.frame("interpolation")
    starts = rows["start"].map(m.models["method"])
    rows = rows[(rows["part"] == "all") & (starts == "source-only")]
    name_columns = {side: rows[side].map(language_name) for side in ("source", "target", "language")}
    return rows.assign(**name_columns, alpha=rows["alpha"].round(6))


def sides_of(page: Node, m: Measurements) -> Iterator[tuple[Node, Node, pd.DataFrame]]:
    """Yield each panel of the first figure, the readout of each side, and its measured points."""
    rows = paths_of(m)
    panels = list(page.all("div", "path"))
    assert len(panels) == len(rows.groupby(["source", "target"])) > 0
    for panel in panels:
        source, _, target = panel.one("span", "pair").text.partition(" → ")
        of_pair = rows[(rows["source"] == source) & (rows["target"] == target)]
        for name, points in of_pair.groupby("language"):
            yield panel, next(panel.all("b", **{"data-name": name})), points


def percent(score: float) -> str:
    return f"{100 * score:.1f}"


def check_first_figure(m: Measurements, page: Node) -> None:
    """Assert that the readouts, lines, dots and alternative texts of the first figure are the rows'."""
    sliders = list(page.all("input", type="range"))
    alphas = [float(alpha) for alpha in sliders[0]["data-alphas"].split()]
    measured_points = paths_of(m)
    assert alphas == pytest.approx(sorted(measured_points["alpha"].unique()), abs=1e-6)
    assert {slider["data-alphas"] for slider in sliders} == {sliders[0]["data-alphas"]}
    start = min(alphas, key=abs)
    for slider in sliders:
        ends = [slider.number(name) for name in ("min", "max", "value")]
        assert ends == [alphas[0], alphas[-1], start]
    for panel, readout, points in sides_of(page, m):
        means = points.groupby("alpha")["score"].mean()
        means_by_alpha = dict(zip(alphas, readout["data-means"].split(), strict=True))
        expected = dict.fromkeys(alphas, "–")
        expected |= {
            min(alphas, key=lambda point: abs(point - alpha)): percent(mean) for alpha, mean in means.items()
        }
        assert means_by_alpha == expected
        assert readout.text == expected[start]
        check_lines(panel, readout["data-name"], points, start)
        check_alternative_text(panel.one("svg")["aria-label"], readout["data-name"], means)


def check_lines(panel: Node, name: str, points: pd.DataFrame, start: float) -> None:
    """Assert that a side has a line through the points of each seed, and its dot where the figure stands."""
    svg = panel.one("svg")
    ticks = {
        float(tick.text): tick for tick in svg.all("text", "tick") if re.fullmatch(r"[\d.-]+", tick.text)
    }
    grid = {
        tick: line.number("y1") for tick, line in zip(percents(svg), svg.all("line", "grid"), strict=True)
    }
    assert ticks and grid
    (low, bottom) = min(grid.items())
    (high, top) = max(grid.items())
    slider = next(panel.all("input", type="range"))
    first_alpha = slider.number("min")
    last_alpha = slider.number("max")
    left, right = (next(svg.all("line", "grid")).number(end) for end in ("x1", "x2"))

    def place(alpha: float, score: float) -> tuple[float, float]:
        x = left + (alpha - first_alpha) / (last_alpha - first_alpha) * (right - left)
        return x, bottom + (100 * score - low) / (high - low) * (top - bottom)

    lines = list(svg.all("polyline", **{"data-name": name}))
    drawn_points = [
        [tuple(map(float, point.split(","))) for point in line["points"].split()] for line in lines
    ]
    expected = [
        [place(alpha, score) for alpha, score in curve.sort_values("alpha")[["alpha", "score"]].to_numpy()]
        for _, curve in points.groupby("seed")
    ]
    assert [len(line) for line in sorted(drawn_points)] == [len(line) for line in sorted(expected)]
    for line, points_of_line in zip(sorted(drawn_points), sorted(expected), strict=True):
        assert np.array(line) == pytest.approx(np.array(points_of_line), abs=0.16)
    for line, dot in zip(lines, dots_of(svg, lines), strict=True):
        line_alphas = list(map(float, line["data-alphas"].split()))
        assert line_alphas == pytest.approx(sorted(points["alpha"].unique()), abs=1e-6)
        if start in line_alphas:
            assert f"{dot['cx']},{dot['cy']}" == line["points"].split()[line_alphas.index(start)]
        else:
            assert "hidden" in dot.attributes


def percents(svg: Node) -> list[float]:
    """Return the scores at the lines of the grid, in their order."""
    return [float(text.text) for text in svg.all("text", "tick", **{"text-anchor": "end"})]


def dots_of(svg: Node, lines: Sequence[Node]) -> list[Node]:
    """Return the dot that follows each line."""
    elements = [child for child in svg.children if isinstance(child, Node)]
    return [elements[elements.index(line) + 1] for line in lines]


def check_alternative_text(text: str, name: str, means: "pd.Series[float]") -> None:
    """Assert that a text has only the scores at both models, if they were measured."""
    (of_side,) = re.findall(rf"{name} \([a-z]+\) ([^;]*?)[;.](?:\s|$)", text)
    ends = {alpha: mean for alpha, mean in means.items() if alpha in (0, 1)} or {
        alpha: means[alpha] for alpha in (means.index.min(), means.index.max())
    }
    stated_ends = re.findall(r"(–|[\d.]+) at α ([\d.-]+)", of_side)
    assert [(percent(mean), f"{alpha:g}") for alpha, mean in ends.items()] == list(stated_ends)


@pytest.mark.parametrize("made_up", [*MADE_UP, *EVERY], indirect=True)
def test_the_first_figure_shows_the_measured_points_and_no_other(made_up: Shown) -> None:
    check_first_figure(*made_up)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_first_figure_of_a_kept_study_shows_the_measured_points(
    study: Callable[[str], Measurements],
) -> None:
    check_first_figure(study("transfer"), page_with(study("transfer")))


@pytest.mark.parametrize("made_up", [*MADE_UP, *EVERY], indirect=True)
def test_a_sentence_has_at_each_point_the_recorded_labels(made_up: Shown) -> None:
    m, page = made_up
    alphas = [float(alpha) for alpha in next(page.all("input", type="range"))["data-alphas"].split()]
    boxes = list(page.all("div", "sentence"))
    named_answers = [
        (m.answers(run)[target], language_name(target))
        for (run, target), _ in m.frame("interpolation").groupby(["run", "target"], sort=False)
    ]
    sentences = [(path_sentence(text), name) for answers, name in named_answers for text in answers.values()]
    assert boxes
    for box in boxes:
        fitting = [
            sentence
            for sentence, name in sentences
            if name in box["aria-label"] and shown_at(box, alphas, sentence)
        ]
        assert fitting, f"no recorded sentence is shown in {box['aria-label']}"


def shown_at(box: Node, alphas: Sequence[float], sentence: object) -> bool:
    """Return whether a box has at each α a sentence's words and labels, and the gold label of wrong ones."""
    labels_by_alpha = {round(alpha, 6): list(labels) for alpha, labels in sentence.predicted}
    for alpha in alphas:
        (stretch,) = [
            stretch
            for stretch in box.all("ol")
            if stretch.number("data-first") <= alpha <= stretch.number("data-last")
        ]
        words = [item for item in stretch.all("li") if "alphas" not in item.classes]
        labels = next(
            (labels for point, labels in labels_by_alpha.items() if math.isclose(point, alpha, abs_tol=1e-5)),
            None,
        )
        if labels is None:
            if [word.text for word in words] != ["not measured here"]:
                return False
            continue
        if [word.one("span", "unit").text for word in words] != [
            " ".join(unit.split()) for unit in sentence.units
        ]:
            return False
        shown_labels = [word.one("span", "label") for word in words]
        if [label.text.removesuffix(" (wrong)") for label in shown_labels] != labels:
            return False
        for word, shown_label, label, gold in zip(words, shown_labels, labels, sentence.gold, strict=True):
            is_wrong = label != gold
            assert ("wrong" in shown_label.classes) == is_wrong
            assert shown_label.text.endswith(" (wrong)") == is_wrong, "colour alone does not say it"
            assert [cell.text for cell in word.all("span", "gold")] == [f"gold: {gold}"] * is_wrong
    return True


# Strips of claims.


def checked_at_random(number: int) -> list[Check]:
    """Return checks with drawn numbers and ranges, some without a measurement or a part in the verdict."""
    random = np.random.default_rng(number)
    checks: list[Check] = []
    for index in range(int(random.integers(1, 6))):
        kind = random.choice(["mean", "mean", "mean", "one", "ratio", "none"])
        title = f"check {index} of {number}"
        if kind == "none":
            checks.append(Check(about=f"{title}: not measured"))
        elif kind == "ratio":
            spreads = (
                random.uniform(0.5 - spread, 0.5 + spread, (6, 1))
                for spread in (random.choice([0.01, 0.4]), 0.02)
            )
            checks += check_spreads(title, *map(pd.DataFrame, spreads), min_ratio=2.0)
        else:
            size = 1 if kind == "one" else int(random.integers(3, 6))
            values = random.normal(random.choice([-0.2, -0.01, 0.0, 0.02, 0.3]), 0.05, size)
            bounds = [{"above": 0.0}, {"below": 0.0}, {"above": -0.01, "below": 0.01}, {"below": 0.03}]
            is_judged = not checks or bool(random.random() < 0.8)
            checks.append(
                Check(about=title, values=list(values), judged=is_judged, **bounds[random.integers(4)])
            )
    return checks if any(check.judged for check in checks) else checked_at_random(number + 1000)


def outcomes_at_random(numbers: Sequence[int]) -> list[ClaimOutcome]:
    claims = [
        Claim(
            id=f"x{number}",
            where="here",
            says=f"Claim {number}.",
            rule="As drawn.",
            needs=(),
            title="A study",
            test=lambda _, number=number: checked_at_random(number),
        )
        for number in numbers
    ]
    return judge(claims, Measurements(runs=[]))


def check_strips(page: Node, outcomes: Sequence[ClaimOutcome]) -> int:
    """Assert that each claim shows the check with its verdict, and return the number of strips."""
    rows = check_rows(outcomes)
    items = [item for box in page.all("ul", "verdicts") for item in box.children if isinstance(item, Node)]
    assert len(items) == len(outcomes)
    ratios = {check.about for outcome in outcomes for check in outcome.checks if check.ratio}
    strips = 0
    for item in items:
        badge = next(item.all("span", "badge")).text
        claim = re.match(r"\((\w+)\)", item.one("span", "says").text)[1]
        checks = rows[(rows["claim"] == claim) & rows["judged"]]
        of_verdict = checks[checks["verdict"] == {"mixed": "contradicted"}.get(badge, badge)]
        summary = item.one("summary")
        strip = list(summary.all("svg", "strip"))
        if of_verdict["mean"].isna().all():
            assert not strip, "what was not measured has no picture"
            continue
        (picture,) = strip
        strips += 1
        shown_numbers = summary.one("span", "numbers").text
        fitting = [
            row
            for row in of_verdict.to_dict("records")
            if write_check(row, digits_of(shown_numbers)) in shown_numbers
        ]
        assert fitting, f"{claim}: {shown_numbers} is no check with the verdict {badge}"
        of_picture = next(row for row in fitting if row["about"] in picture["aria-label"])
        check_picture(picture, of_picture, is_ratio=of_picture["about"] in ratios)
        if len(checks) > 1:
            lines = list(item.one("ul", "checks").all("li"))
            assert len(lines) == len(rows[rows["claim"] == claim])
            (decides,) = [line for line in lines if list(line.all("strong", "decides"))]
            assert any(row["about"] in decides.text for row in fitting)
    return strips


def digits_of(text: str) -> int:
    return len(re.match(r"−?\d+(?:\.(\d+))?", text)[1] or "")


def write_check(row: dict[str, float], digits: int) -> str:
    """Write the number of a check with its interval and range."""

    def number(name: str) -> str:
        return f"{row[name]:.{digits}f}".replace("-", "−")

    interval = f"[{number('low')}, {number('high')}]"
    if math.isnan(row["low"]) or math.isnan(row["high"]):
        interval = f"(one {row['unit']})" if row["units"] == 1 else "(no interval)"
    bounds = [word for word in ("above", "below") if not math.isnan(row[word])]
    allowed_range = (
        f"{bounds[0]} {number(bounds[0])}" if len(bounds) == 1 else " to ".join(map(number, bounds))
    )
    return f"{number('mean')} {interval}; allowed: {allowed_range}"


def check_picture(strip: Node, row: dict[str, float], *, is_ratio: bool) -> None:
    """Assert that a strip's dot, interval and range are proportional, on the scale that it names."""
    dot = strip.one("circle")
    interval = strip.one("line")
    box = strip.one("rect")
    left = box.number("x")
    right = box.number("x") + box.number("width")
    positions = {"mean": dot.number("cx"), "low": interval.number("x1"), "high": interval.number("x2")}
    positions |= {"above": left, "below": right}
    known_values = {name: row[name] for name in positions if not math.isnan(row[name])}
    if not {"low", "high"} <= set(known_values):
        known_values = {name: value for name, value in known_values.items() if name not in ("low", "high")}
    assert (left == 0) == math.isnan(row["above"]) and (right == 160) == math.isnan(row["below"])
    logarithmic = "log scale" in strip["aria-label"]
    scale = math.log if logarithmic else float
    assert logarithmic == (is_ratio and min(known_values.values()) > 0)
    low = min(known_values, key=known_values.get)
    high = max(known_values, key=known_values.get)
    span = scale(known_values[high]) - scale(known_values[low])
    for name, value in known_values.items():
        share = (scale(value) - scale(known_values[low])) / span if span else 0
        assert positions[name] == pytest.approx(
            positions[low] + share * (positions[high] - positions[low]), abs=0.2
        )
    assert min(positions.values()) >= 0 and max(positions.values()) <= 160


@pytest.mark.slow
def test_a_claim_shows_the_check_that_its_verdict_is_of() -> None:
    outcomes = outcomes_at_random(range(40))
    assert {outcome.verdict for outcome in outcomes} == {
        "supported",
        "undecided",
        "contradicted",
        "mixed",
        "not tested",
    }
    assert check_strips(page_with(Measurements(runs=[]), outcomes), outcomes) > 15


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_a_claim_of_a_kept_study_shows_the_check_that_its_verdict_is_of(
    name: str, study: Callable[[str], Measurements]
) -> None:
    outcomes = judge(CLAIMS, study(name))
    assert check_strips(page_with(study(name), outcomes), outcomes) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("first_number", range(0, 2000, 200))
def test_every_drawn_claim_shows_the_check_that_its_verdict_is_of(first_number: int) -> None:
    outcomes = outcomes_at_random(range(first_number, first_number + 200))
    check_strips(page_with(Measurements(runs=[]), outcomes), outcomes)


# Tables, and figures of kept studies.


@pytest.fixture(scope="module")
def study_output(study: Callable[[str], Measurements]) -> Callable[[str], list[object]]:
    """Return the tables and figures of a kept study, made once."""
    output_by_name: dict[str, list[object]] = {}

    def get_output(name: str) -> list[object]:
        if name not in output_by_name:
            sections = [show_section(section, study(name)) for section in SECTIONS]
            output_by_name[name] = [
                part for section in sections for part in (*section.tables, *section.figures)
            ]
        return output_by_name[name]

    return get_output


TESTS_HEAD = ["system", "baseline", "language", "system score", "baseline score", "difference"]
"""The first columns of the table of tests, after the columns of its test set."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transfer", "mixup"])
def test_the_table_of_tests_says_the_same_on_the_page_in_csv_latex_and_json(
    name: str, study_folder: Callable[[str], Path], study_output: Callable[[str], list[object]]
) -> None:
    (table,) = [part for part in study_output(name) if part.name == "significance"]
    head = [cell.text for cell in table.header]
    first_column = head.index("system")
    assert head[first_column : first_column + len(TESTS_HEAD)] == TESTS_HEAD
    rows = list(csv.DictReader(io.StringIO(to_csv(table.data))))
    names = ["system", "baseline", "language", "score", "baseline_score", "difference"]
    assert [column for column in rows[0] if column in names] == names
    heads = latex_heads(to_latex(table))  # Without columns that are the same in all lines.
    assert [text for text in TESTS_HEAD if text in heads] == [text for text in heads if text in TESTS_HEAD]
    assert {"system", "system score", "baseline score", "difference"} <= set(heads)
    assert len(table.rows) == len(rows) > 3
    for cells, row in zip(table.rows, rows, strict=True):
        line = dict(zip(head, (cell.text for cell in cells), strict=True))
        assert [line["system"], line["baseline"]] == [row["system"], row["baseline"]]
        assert line["system score"] == percent(float(row["score"]))
        assert line["baseline score"] == percent(float(row["baseline_score"]))
        assert line["difference"].split()[0] == f"{100 * float(row['difference']):+.1f}"
        assert float(row["score"]) - float(row["baseline_score"]) == pytest.approx(float(row["difference"]))
        of_p = [line[name] for name in head if name.startswith("p") and line[name] != "–"]
        assert {len(text.partition(".")[2]) for text in of_p} <= {3}, "the same digits in every cell"
    check_json(study_folder(name), rows)


def latex_heads(text: str) -> list[str]:
    """Return the heads of the columns of a table in LaTeX."""
    line = text.split("\\toprule\n")[1].partition("\\\\")[0]
    return [re.sub(r"\\multicolumn\{2\}\{c\}\{(.*)\}", r"\1", part.strip()) for part in line.split("&")]


def check_json(folder: Path, rows: Sequence[dict[str, str]]) -> None:
    """Assert that a comparison as JSON names and orders the same numbers as the table of tests."""
    baseline = rows[0]["baseline"]
    names = ["score", "baseline_score", "difference"]
    compared_rows = compare_runs([folder], [], ComparisonRequest(against=baseline)).rows
    by_key = {}
    for row in compared_rows:
        order = [key for key in row if key in ("method", "baseline_method", *names)]
        assert order == ["method", "baseline_method", *names]
        facts = ("corpus", "mixed", "task", "split", "measure", "language", "method", "baseline_method")
        by_key[tuple(row[fact] for fact in facts)] = [row[name] for name in names]
    facts = ("corpus", "mixed", "task", "split", "metric", "language", "system", "baseline")
    row_pairs = [
        (by_key[key], row) for row in rows if (key := tuple(row.get(fact, "") for fact in facts)) in by_key
    ]
    assert row_pairs
    for numbers, row in row_pairs:
        assert numbers == pytest.approx([float(row[name]) for name in names])


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_each_cell_of_a_table_of_scores_is_the_mean_of_its_rows(
    name: str, study: Callable[[str], Measurements], study_output: Callable[[str], list[object]]
) -> None:
    rows = study(name).frame("scores")
    cells = 0
    for table in study_output(name):
        if not table.name.startswith("scores-"):
            continue
        for number in table.data.to_dict("records"):
            if number["column"] not in set(rows["language"]):
                continue
            facts = ("encoder", "way", "inputs", "inputs.translator", "corpus", "treebank", "task", "split")
            of_cell = rows[rows["language"].eq(number["column"]) & rows["metric"].eq(number["metric"])]
            for fact in facts:
                of_cell = of_cell[of_cell[fact].eq(number[fact])]
            of_language = [
                not target or number["column"] in (*target.split("+"), *source.split("+"))
                for target, source in zip(of_cell["target"], of_cell["source"], strict=True)
            ]
            counted_rows = of_cell[of_language] if any(of_language) else of_cell
            units = "encoder.seed" if counted_rows["encoder.kind"].eq("pretrain").all() else "seed"
            mean = counted_rows.groupby(units)["score"].mean().mean()
            assert number["mean"] == pytest.approx(mean), (table.name, number["system"], number["column"])
            texts = {cell.text.split(" ±")[0].split()[0] for row in table.rows for cell in row if cell.text}
            assert percent(mean) in texts
            cells += 1
    assert cells > 3


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_the_numbers_of_an_alternative_text_are_those_of_the_figure(
    name: str, study_output: Callable[[str], list[object]]
) -> None:
    figures = [part for part in study_output(name) if isinstance(part, Figure)]
    assert figures
    for figure in figures:
        kind = next(kind for kind in NUMBERS_OF if figure.alt.startswith(kind))
        pattern, numbers_of = NUMBERS_OF[kind]
        names = "|".join(re.escape(label.replace(", ", " ")) for label, _ in drawn_lines(figure))
        shown_numbers = re.findall(pattern.replace("NAMES", names), figure.alt)
        expected = numbers_of(figure)
        assert shown_numbers and "e+" not in figure.alt, figure.alt
        assert sorted(shown_numbers) == sorted(expected) or (
            len(shown_numbers) == MOST_ENDS and set(shown_numbers) <= set(expected)
        ), figure.name


NUMBER = r"(−?\d+(?:\.\d+)?(?:e-\d+)?)"


def drawn_lines(figure: Figure) -> list[tuple[str, list[float]]]:
    """Return each drawn line that has a name, and its heights."""
    lines = [line for axes in figure.paint(PAGE).axes for line in axes.get_lines()]
    named_lines = [line for line in lines if not line.get_label().startswith("_")]
    return [(line.get_label(), list(line.get_ydata())) for line in named_lines]


def short(number: float) -> str:
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:.0f}"


def mean_at_models(figure: Figure) -> list[str]:
    """Return the mean of the drawn numbers at α 0 and 1, for each role, path and task."""
    data = figure.data[figure.data["alpha"].isin([0, 1])]
    columns = ["role", "path", *data.columns.intersection(["task"]), "alpha"]
    percent_of = 100 if "in percent" in figure.alt else 1
    means = percent_of * data.groupby(columns, sort=False)["mean"].mean()
    heights = [height for _, line in drawn_lines(figure) for height in line]
    assert min(heights) <= max(means) and max(heights) >= min(means), "not in the units of the picture"
    return [short(mean) for mean in means]


def mean_at_corners(figure: Figure) -> list[str]:
    data = figure.data
    corners = (data["alpha_first"] + data["alpha_second"] <= 1) & data["alpha_first"].isin([0, 1])
    return [percent(mean) for mean in data.loc[corners & data["alpha_second"].isin([0, 1]), "mean"]]


def spreads_of(figure: Figure) -> list[str]:
    return [percent(value) for value in figure.data.groupby(["system", "role"])["std"].mean()]


NUMBERS_OF: dict[str, tuple[str, Callable[[Figure], list[str]]]] = {
    "Line plots; the last point": (
        rf"(?:NAMES) {NUMBER}(?=, | and |\.$)",
        lambda figure: [short(heights[-1]) for _, heights in drawn_lines(figure)],
    ),
    "Line plot": (rf" {NUMBER} at α", mean_at_models),
    "Contour plots": (rf" {NUMBER} at the", mean_at_corners),
    "Dots: mean ratio": (
        NUMBER,
        lambda figure: [f"{figure.data['ratio'].mean():.2f}", f"{figure.data['angle'].mean():.0f}"],
    ),
    "Dot plot": (rf" {NUMBER}(?=;|\.$)", spreads_of),
    "Dots; percent": (
        rf" {NUMBER}(?=, | and |\.$)",
        lambda figure: [percent(share) for share in figure.data.groupby("panel")["between"].first()],
    ),
    "Histograms": (
        rf"AUC {NUMBER}",
        lambda figure: [f"{auc:.3f}" for auc in figure.data.drop_duplicates(["stage", "pair"])["auc"]],
    ),
}
"""By the beginning of an alternative text: how its numbers are found, and what they are."""
