"""The page of a report in a real browser: at a desk, on a phone, dark, printed, and without its script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isogloss.reports import write_report
from reports.made_up_runs import changing_sentence, keep_sentences, small_study, write_plan

pytestmark = pytest.mark.slow

EVIL = "<script>alert('read')</script><img src=http://example.org/x onerror=alert(1)>"

WIDTHS, SCHEMES = (1280, 400), ("light", "dark")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page")
    names = small_study(out)
    sentence = changing_sentence(*["tuki", "mirne", "baboza", "vuso"], EVIL)
    keep_sentences(out, names[4], [sentence])
    right = [[alpha, sentence["gold"]] for alpha in (0.0, 0.5, 1.0)]
    keep_sentences(out, names[9], [{**sentence, "predicted": right}])  # Of the second seed.
    return write_report(out).html


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_says_nothing_to_the_console_asks_for_nothing_and_fits(
    page: Path, open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    with open_page(page, width=width, color_scheme=scheme) as shown:
        closed = shown.overflow()
        shown.open_all()
        assert (closed, shown.overflow()) == (0, 0)
        assert shown.page.locator("h1").inner_text().startswith("POS tagging: models trained")
        assert all(url.startswith("data:") for url in shown.requests[1:])
        assert shown.requests[0] == page.as_uri()
        assert shown.errors == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_barrier_on_a_report(
    page: Path, open_page: Callable[..., Any], barriers: Callable[[Any], list[str]], scheme: str
) -> None:
    with open_page(page, color_scheme=scheme) as shown:
        assert barriers(shown.page) == []
        shown.open_all()
        assert barriers(shown.page) == []


def test_axe_sees_a_barrier(
    page: Path, open_page: Callable[..., Any], barriers: Callable[[Any], list[str]]
) -> None:
    with open_page(page) as shown:
        shown.page.evaluate("document.querySelector('h1').innerHTML = '<img src=data:,>'")
        assert [text for text in barriers(shown.page) if text.startswith("image-alt")]


def test_dark_and_light_are_readable(page: Path, open_page: Callable[..., Any]) -> None:
    colours = []
    for scheme in SCHEMES:
        with open_page(page, color_scheme=scheme) as shown:
            style = (
                "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
            )
            colours.append([contrast_part(colour) for colour in shown.page.evaluate(style)])
    ratios = [(max(pair) + 0.05) / (min(pair) + 0.05) for pair in colours]
    assert min(ratios) > 7, "what WCAG calls AAA"
    assert (colours[0][0] < colours[0][1]) != (colours[1][0] < colours[1][1])


def contrast_part(colour: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)"."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_sentence_moves_and_its_words_are_text(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as shown:
        rows = shown.page.locator(".moving > .sentence ol:visible")
        assert rows.locator(".unit").nth(4).inner_text() == EVIL
        assert (rows.count(), rows.locator(".wrong").text_content()) == (1, "VERB (wrong)")
        assert rows.locator(".gold").text_content() == "gold: NOUN"
        shown.page.locator(".path input").first.press("End")
        assert (rows.count(), rows.locator(".wrong").count()) == (1, 0)
        assert rows.locator(".alphas").inner_text() == "α 0.5 to 1"
        shown.page.emulate_media(media="print")
        assert rows.count() == 2, "on paper all that lie between the models"
        assert shown.errors == []
    with open_page(page, java_script_enabled=False) as shown:
        assert shown.page.locator(".moving > .sentence ol:visible").count() == 2


def test_seeds_next_to_each_other_move_with_the_slider(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as shown:
        tables = shown.page.locator(".compared table:visible")
        heads = tables.locator("thead th").all_inner_texts()
        assert (tables.count(), heads) == (1, ["unit", "gold", "seed 0", "seed 1"])
        assert tables.locator(".wrong").all_inner_texts() == ["VERB ✗"]
        assert tables.locator(".differs").count() == 1
        shown.page.locator(".path input").first.press("End")
        assert (tables.count(), tables.locator(".wrong, .differs").count()) == (1, 0)
        assert shown.errors == []


def test_a_link_opens_the_folded_part_that_it_leads_to(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as shown:
        assert not shown.page.locator("#paths img").first.is_visible()
        shown.page.locator("nav a[href='#paths']").click()
        assert shown.page.locator("#paths img").first.is_visible()


def test_without_its_script_a_page_has_answer_figure_and_tables(
    page: Path, open_page: Callable[..., Any]
) -> None:
    with open_page(page, java_script_enabled=False) as shown:
        assert shown.page.locator("h1").is_visible()
        assert shown.page.locator(".path svg").first.is_visible()
        assert shown.page.locator("#main-table table").is_visible()
        assert not shown.page.locator(".path input").first.is_visible(), "it would not move"
        shown.page.locator("details.part:has(#paths) > summary").click()
        assert shown.page.locator("#paths img").first.is_visible()


def test_on_paper_nothing_is_wider_than_the_paper_and_all_is_open(
    page: Path, open_page: Callable[..., Any]
) -> None:
    with open_page(page, width=680) as shown:  # A4 less its margins, at 96 dots an inch.
        shown.page.emulate_media(media="print")
        wide = "[...document.querySelectorAll('table, figure, pre')].map(part => part.scrollWidth)"
        assert shown.overflow() == 0
        assert max(shown.page.evaluate(wide)) <= 680
        assert shown.page.locator("nav").is_hidden()
        assert shown.page.locator("#paths img").first.is_visible()
        assert shown.page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.nightly
def test_a_script_in_the_data_is_shown_as_text(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    names = small_study(tmp_path, seeds=1)
    write_plan(tmp_path, names, title=EVIL, recipe=EVIL, command=EVIL)
    html = write_report(tmp_path).html
    with open_page(html) as shown:
        shown.open_all()
        assert EVIL in shown.page.locator("#runs pre").first.inner_text()
        assert shown.page.locator("script").count() == 1
        assert shown.page.locator("img[src^=http]").count() == 0
        assert len([url for url in shown.requests if not url.startswith("data:")]) == 1
        assert shown.errors == []
