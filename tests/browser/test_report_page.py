"""The page of a report in a real browser: at a desk, on a phone, dark, printed, and without its script."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isogloss.reports.report import write_report
from made_up_runs import changing_sentence, keep_sentences, small_study, write_plan

pytestmark = pytest.mark.slow

EVIL = "<script>alert('read')</script><img src=http://example.org/x onerror=alert(1)>"

WIDTHS = (1280, 400)
SCHEMES = ("light", "dark")


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    names = small_study(folder)
    sentence = changing_sentence(*["tuki", "mirne", "baboza", "vuso"], EVIL)
    keep_sentences(folder, names[4], [sentence])
    right = [[alpha, sentence["gold"]] for alpha in (0.0, 0.5, 1.0)]
    keep_sentences(folder, names[9], [{**sentence, "predicted": right}])  # The second seed.
    return write_report(folder).html


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_a_page_says_nothing_to_the_console_asks_for_nothing_and_fits(
    page: Path, open_page: Callable[..., Any], width: int, scheme: str
) -> None:
    with open_page(page, width=width, color_scheme=scheme) as text:
        closed_overflow = text.overflow()
        text.open_all()
        assert (closed_overflow, text.overflow()) == (0, 0)
        assert text.page.locator("h1").inner_text().startswith("POS tagging: models trained")
        assert all(url.startswith("data:") for url in text.requests[1:])
        assert text.requests[0] == page.as_uri()
        assert text.errors == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_no_barrier_on_a_report(
    page: Path, open_page: Callable[..., Any], barriers: Callable[[Any], list[str]], scheme: str
) -> None:
    with open_page(page, color_scheme=scheme) as text:
        assert barriers(text.page) == []
        text.open_all()
        assert barriers(text.page) == []


def test_axe_sees_a_barrier(
    page: Path, open_page: Callable[..., Any], barriers: Callable[[Any], list[str]]
) -> None:
    with open_page(page) as text:
        text.page.evaluate("document.querySelector('h1').innerHTML = '<img src=data:,>'")
        assert [text for text in barriers(text.page) if text.startswith("image-alt")]


def test_dark_and_light_are_readable(page: Path, open_page: Callable[..., Any]) -> None:
    colours = []
    for scheme in SCHEMES:
        with open_page(page, color_scheme=scheme) as text:
            style = (
                "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
            )
            colours.append([contrast_part(colour) for colour in text.page.evaluate(style)])
    ratios = [(max(pair) + 0.05) / (min(pair) + 0.05) for pair in colours]
    assert min(ratios) > 7, "what WCAG calls AAA"
    (text_colour, background), (dark_text_colour, dark_background) = colours
    assert (text_colour < background) != (dark_text_colour < dark_background)


def contrast_part(colour: str) -> float:
    """Return the relative luminance of "rgb(r, g, b)"."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_a_sentence_moves_and_its_words_are_text(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as text:
        rows = text.page.locator(".moving > .sentence ol:visible")
        assert rows.locator(".unit").nth(4).inner_text() == EVIL
        assert (rows.count(), rows.locator(".wrong").text_content()) == (1, "VERB (wrong)")
        assert rows.locator(".gold").text_content() == "gold: NOUN"
        text.page.locator(".path input").first.press("End")
        assert (rows.count(), rows.locator(".wrong").count()) == (1, 0)
        assert rows.locator(".alphas").inner_text() == "α 0.5 to 1"
        text.page.emulate_media(media="print")
        assert rows.count() == 2, "on paper all that lie between the models"
        assert text.errors == []
    with open_page(page, java_script_enabled=False) as text:
        assert text.page.locator(".moving > .sentence ol:visible").count() == 2


def test_seeds_next_to_each_other_move_with_the_slider(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as text:
        tables = text.page.locator(".compared table:visible")
        heads = tables.locator("thead th").all_inner_texts()
        assert (tables.count(), heads) == (1, ["unit", "gold", "seed 0", "seed 1"])
        assert tables.locator(".wrong").all_inner_texts() == ["VERB ✗"]
        assert tables.locator(".differs").count() == 1
        text.page.locator(".path input").first.press("End")
        assert (tables.count(), tables.locator(".wrong, .differs").count()) == (1, 0)
        assert text.errors == []


def test_a_link_opens_the_folded_part_that_it_leads_to(page: Path, open_page: Callable[..., Any]) -> None:
    with open_page(page) as text:
        assert not text.page.locator("#paths img").first.is_visible()
        text.page.locator("nav a[href='#paths']").click()
        assert text.page.locator("#paths img").first.is_visible()


def test_without_its_script_a_page_has_answer_figure_and_tables(
    page: Path, open_page: Callable[..., Any]
) -> None:
    with open_page(page, java_script_enabled=False) as text:
        assert text.page.locator("h1").is_visible()
        assert text.page.locator(".path svg").first.is_visible()
        assert text.page.locator("#main-table table").is_visible()
        assert not text.page.locator(".path input").first.is_visible(), "it would not move"
        text.page.locator("details.part:has(#paths) > summary").click()
        assert text.page.locator("#paths img").first.is_visible()


def test_on_paper_nothing_is_wider_than_the_paper_and_all_is_open(
    page: Path, open_page: Callable[..., Any]
) -> None:
    with open_page(page, width=680) as text:  # A4 less its margins, at 96 dots an inch.
        text.page.emulate_media(media="print")
        wide = "[...document.querySelectorAll('table, figure, pre')].map(part => part.scrollWidth)"
        assert text.overflow() == 0
        assert max(text.page.evaluate(wide)) <= 680
        assert text.page.locator("nav").is_hidden()
        assert text.page.locator("#paths img").first.is_visible()
        assert text.page.pdf(format="A4").startswith(b"%PDF")


@pytest.mark.nightly
def test_a_script_in_the_data_is_shown_as_text(tmp_path: Path, open_page: Callable[..., Any]) -> None:
    names = small_study(tmp_path, seeds=1)
    write_plan(tmp_path, names, title=EVIL, recipe=EVIL, command=EVIL)
    html = write_report(tmp_path).html
    with open_page(html) as text:
        text.open_all()
        assert EVIL in text.page.locator("#runs pre").first.inner_text()
        assert text.page.locator("script").count() == 1
        assert text.page.locator("img[src^=http]").count() == 0
        assert len([url for url in text.requests if not url.startswith("data:")]) == 1
        assert text.errors == []
