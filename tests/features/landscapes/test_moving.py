"""The first figure in a browser: slider and line show the same α, and all moving parts equal the rows."""

import io
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from isogloss.core.languages import language_name
from isogloss.features.landscapes.point_records import path_sentence
from isogloss.reports.measurements import Measurements, read_measurements
from isogloss.reports.opening import write_opening
from isogloss.reports.page import Page, render, run_table
from moving_studies import ALPHAS, moving_study

pytestmark = pytest.mark.slow

Study = tuple[Measurements, Path]

OFF = 2
"""Pixels that the thumb may be off its line."""


def write_study(folder: Path, number: int, *grids: str) -> Study:
    """Write a study, and the opening of its page."""
    moving_study(folder, number, *grids)
    m = read_measurements(folder)
    page = Page(m=m, opening=write_opening(m), outcomes=[], sections=[], runs=run_table(m), raw={})
    (folder / "report.html").write_text(render(page), encoding="utf-8")
    return m, folder / "report.html"


@pytest.fixture(scope="module")
def crowded_study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return write_study(tmp_path_factory.mktemp("crowded"), 1, "crowded", "even")


def paths_of(m: Measurements) -> Any:
    rows = m.frame("interpolation")
    starts = rows["start"].map(m.models["method"])
    rows = rows[(rows["part"] == "all") & (starts == "source-only")]
    return rows.assign(alpha=rows["alpha"].round(6))


def points_of(m: Measurements) -> list[float]:
    return sorted(paths_of(m)["alpha"].unique())


def thumb_centre(shot: Image.Image, box: dict[str, float], colour: str) -> float:
    """Return the middle of the pixels of a colour in a box of a screenshot."""
    crop = np.asarray(shot.convert("RGB"), dtype=int)[
        int(box["y"]) : int(box["y"] + box["height"]) + 1,
        int(box["x"]) - 12 : int(box["x"] + box["width"]) + 12,
    ]
    parts = [int(part) for part in re.findall(r"\d+", colour)[:3]]
    columns = np.flatnonzero((np.abs(crop - parts).max(axis=2) < 40).any(axis=0))
    assert len(columns), "no thumb is drawn"
    return int(box["x"]) - 12 + (columns.min() + columns.max() + 1) / 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 768, 1280])
def test_the_thumb_is_under_the_line_at_every_measured_point(
    crowded_study: Study, open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    m, html = crowded_study
    with open_page(html, width=width, color_scheme=scheme) as view:
        check_thumbs(m, view)
        assert view.overflow() <= 0 and view.errors == []


def check_thumbs(m: Measurements, view: Any) -> None:
    """Assert that in each panel thumb, line, α and axis agree, while the first slider moves by keys."""
    page = view.page
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 2400})
    colour = page.evaluate("getComputedStyle(document.querySelector('.readout .target')).color")
    panels = page.locator(".path").all()
    panels[0].locator("input").press("Home")
    for alpha in points_of(m):
        shot = Image.open(io.BytesIO(page.screenshot()))
        for panel in panels:
            slider = panel.locator("input")
            assert float(slider.input_value()) == pytest.approx(alpha, abs=1e-5)
            assert float(panel.locator(".slider b").inner_text()) == pytest.approx(alpha, abs=1e-5)
            line = panel.locator(".now").bounding_box()["x"]
            assert thumb_centre(shot, slider.bounding_box(), colour) == pytest.approx(line, abs=OFF)
            grid = panel.locator(".grid").first.bounding_box()
            low, high = (float(slider.get_attribute(end)) for end in ("min", "max"))
            share = (alpha - low) / (high - low)
            assert line == pytest.approx(grid["x"] + share * grid["width"], abs=OFF)
        panels[0].locator("input").press("ArrowRight")
    assert float(panels[0].locator("input").input_value()) == pytest.approx(alpha, abs=1e-5), "the last"


@pytest.mark.nightly
def test_on_paper_the_line_stands_at_the_point_whose_scores_are_shown(
    crowded_study: Study, open_page: Callable[..., Any]
) -> None:
    m, html = crowded_study
    with open_page(html, width=680) as view:
        view.page.locator(".path input").first.press("End")
        view.page.emulate_media(media="print")
        assert not view.page.locator(".path input").first.is_visible()
        for panel in view.page.locator(".path").all():
            assert panel.locator(".slider p").inner_text() == "α = 1.5"
            grid = panel.locator(".grid").first.bounding_box()
            line = panel.locator(".now").bounding_box()
            assert line["x"] == pytest.approx(grid["x"] + grid["width"], abs=OFF)
            assert panel.locator(".readout b").all_inner_texts() == means_at(m, 1.5, names_in(panel))


def names_in(panel: Any) -> list[tuple[str, str]]:
    """Return the target of a panel, by name, with the language of each of its readouts."""
    target = panel.locator(".pair").inner_text().split(" → ")[1]
    names = panel.locator(".readout b").evaluate_all("all => all.map(one => one.dataset.name)")
    return [(target, name) for name in names]


def means_at(m: Measurements, alpha: float, names: list[tuple[str, str]]) -> list[str]:
    """Return the mean score over seeds of each language, or a dash where none was measured."""
    rows = paths_of(m)
    rows = rows[np.isclose(rows["alpha"], alpha, atol=1e-5)]
    named_rows = rows.assign(
        target=rows["target"].map(language_name), language=rows["language"].map(language_name)
    )
    means = named_rows.groupby(["target", "language"])["score"].mean()
    return [f"{100 * means[name]:.1f}" if name in means else "–" for name in names]


def check_scores(m: Measurements, page: Any, alpha: float) -> None:
    """Assert that numbers, the live region and sentences are those that were measured at α."""
    texts_by_name: dict[str, set[str]] = {}
    for panel in page.locator(".path").all():
        names = names_in(panel)
        texts = panel.locator(".readout b").all_inner_texts()
        assert texts == means_at(m, alpha, names)
        for (_, name), text in zip(names, texts, strict=True):
            texts_by_name.setdefault(name, set()).update({text} - {"–"})
    (announcement,) = page.locator("[aria-live], [role=status], output").all_text_contents()
    point, _, languages = announcement.partition(": ")
    assert float(point.removeprefix("α ")) == pytest.approx(alpha, abs=1e-5)
    assert len(languages.split(", ")) == len(texts_by_name)
    for text, (name, scores) in zip(languages.split(", "), texts_by_name.items(), strict=True):
        ends = list(dict.fromkeys([min(scores, key=float), max(scores, key=float)])) if scores else []
        assert text == f"{name} {' to '.join(ends) or 'not measured here'}", "each language once"
    check_sentences(m, page, alpha)


def check_sentences(m: Measurements, page: Any, alpha: float) -> None:
    all_answers = [
        [path_sentence(text) for text in m.answers(run)[target].values()]
        for (run, target), _ in m.frame("interpolation").groupby(["run", "target"], sort=False)
    ]
    sentences = [sentence for answers in all_answers for sentence in answers]
    for box in page.locator(".moving > .sentence").all():
        row = box.locator("ol:visible")
        assert row.count() == 1
        labels = row.locator("li:not(.alphas)").all_inner_texts()
        labels = [label.split() for label in labels]
        expected = []
        for sentence in sentences:
            recorded_tags = [tags for point, tags in sentence.predicted if abs(point - alpha) < 1e-5]
            triples = (
                zip(sentence.units, recorded_tags[0], sentence.gold, strict=True) if recorded_tags else []
            )
            words = [
                [unit, tag] if tag == right else [unit, tag, "(wrong)", "gold:", right]
                for unit, tag, right in triples
            ]
            expected.append(words or [["not", "measured", "here"]])
        assert labels in expected


@pytest.mark.nightly
def test_each_step_of_a_key_leads_to_the_next_point_with_its_scores(
    crowded_study: Study, open_page: Callable[..., Any]
) -> None:
    m, html = crowded_study
    with open_page(html) as view:
        slider = view.page.locator(".path input").last
        slider.focus()
        slider.press("Home")
        for alpha in points_of(m):
            check_scores(m, view.page, alpha)
            slider.press("ArrowUp")
        for alpha in reversed(points_of(m)):
            assert slider.get_attribute("aria-valuetext") == f"α {alpha:g}"
            slider.press("ArrowLeft")
        slider.press("End")
        check_scores(m, view.page, points_of(m)[-1])
        assert slider.evaluate("slider => slider.getAttribute('aria-label')").startswith("α of ")


@pytest.mark.nightly
@pytest.mark.parametrize(("number", "grids"), list(enumerate(itertools.product(ALPHAS, repeat=2))))
def test_every_pair_of_grids_moves_in_step(
    tmp_path: Path, open_page: Callable[..., Any], number: int, grids: tuple[str, ...]
) -> None:
    m, html = write_study(tmp_path, number, *grids)
    with open_page(html, width=(400, 768, 1280)[number % 3]) as view:
        check_thumbs(m, view)
        slider = view.page.locator(".path input").first
        slider.press("Home")
        for alpha in points_of(m):
            check_scores(m, view.page, alpha)
            slider.press("ArrowRight")
        assert view.errors == []


def locate_share(panel: Any, share: float) -> tuple[float, float]:
    """Return the place on the screen at a share of the axis of a panel."""
    grid = panel.locator(".grid").first.bounding_box()
    box = panel.locator(".between").bounding_box()
    return grid["x"] + share * grid["width"], box["y"] + box["height"] / 3


@pytest.mark.nightly
def test_the_line_is_dragged_by_mouse_and_finger(crowded_study: Study, open_page: Callable[..., Any]) -> None:
    m, html = crowded_study
    points = points_of(m)
    lowest_alpha = min(points_of(m))
    highest_alpha = max(points_of(m))

    def nearest(share: float) -> float:
        return min(
            points, key=lambda alpha: abs(lowest_alpha + share * (highest_alpha - lowest_alpha) - alpha)
        )

    with open_page(html) as view:
        page = view.page
        panel = view.page.locator(".path").last
        page.mouse.move(*locate_share(panel, 0.3))
        page.mouse.down()
        for share in (0.33, 0.52, 0.81, 0.98, 0.7):
            page.mouse.move(*locate_share(panel, share), steps=3)
            check_scores(m, page, nearest(share))
        page.mouse.up()
        page.mouse.move(*locate_share(panel, 0.1))
        check_scores(m, page, nearest(0.7))
        page.mouse.click(*locate_share(panel, 0.249))
        check_scores(m, page, nearest(0.249))
        thumb = panel.locator("input").bounding_box()
        page.mouse.click(thumb["x"] + thumb["width"] - 8, thumb["y"] + thumb["height"] / 2)
        check_scores(m, page, highest_alpha)
        assert view.errors == []
    with open_page(html, width=400, has_touch=True) as view:
        panel = view.page.locator(".path").first
        panel.scroll_into_view_if_needed()
        view.page.touchscreen.tap(*locate_share(panel, 0.6))
        check_scores(m, view.page, nearest(0.6))


@pytest.mark.nightly
def test_a_step_that_reaches_no_other_point_leads_to_the_next_one(
    crowded_study: Study, open_page: Callable[..., Any]
) -> None:
    m, html = crowded_study
    step = (
        "(slider, by) => { slider.value = Number(slider.value) + by;"
        " slider.dispatchEvent(new Event('input', { bubbles: true })) }"
    )
    with open_page(html) as view:
        slider = view.page.locator(".path input").first
        start = points_of(m).index(0.5)
        slider.press("End")
        while float(slider.input_value()) > 0.5:
            slider.press("ArrowLeft")
        slider.evaluate(step, 0.05)  # As screen readers step a slider: by a share of its length.
        check_scores(m, view.page, points_of(m)[start + 1])
        slider.evaluate(step, -0.001)
        check_scores(m, view.page, 0.5)


def test_the_first_figure_has_one_live_region_which_is_silent_at_first(
    crowded_study: Study, open_page: Callable[..., Any]
) -> None:
    with open_page(crowded_study[1]) as view:
        assert view.page.locator("[aria-live], [role=status], [role=alert], output").all_text_contents() == [
            ""
        ]
