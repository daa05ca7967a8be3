"""The documentation site, built without a warning: in a browser at a desk, on a phone, dark, and printed."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from filelock import FileLock

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
QUESTIONS = {
    "add my own method": ("plug_ins",),
    "own method": ("plug_ins",),
    "custom method": ("plug_ins",),
    "new method": ("plug_ins",),
    "slurm": ("machines",),
    "evaluate": ("use",),
    "evaluate model": ("use",),
    "evaluate hub model": ("use",),
    "named entity": ("tasks",),
    "interval": ("tests", "glossary"),
    "significance test": ("tests",),
    "t-test": ("tests",),
    "compare two systems": ("tests",),
    "preset": ("presets",),
    "which preset": ("presets",),
    "paper setting": ("presets",),
    "install": ("install",),
    "quickstart": ("first_study",),
    "choose": ("choosing",),
    "own data": ("corpora",),
    "csv file": ("use", "corpora"),
    "resume": ("records", "machines"),
    "gpu": ("machines",),
    "path": ("landscapes",),
    "explorer": ("use",),
    "adapter": ("interference",),
    "lora": ("reference/grid",),
    "notebook": ("first_study",),
    "seed": ("landscapes", "glossary"),
}
"""Queries of users, and the pages that answer them."""

PAGES = ("index", "use", "landscapes", "api", "reference/methods", "gallery")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Build the site once for all processes that test. A warning is an error, as in ``make docs``."""
    path = tmp_path_factory.getbasetemp()
    folder = (path if worker_id == "master" else path.parent) / "site"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
            process = subprocess.run([*command, DOCS, folder], capture_output=True, text=True, check=False)
            assert (process.returncode, process.stderr) == (0, "")
    return folder


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine. Yield its address."""

    class Silent(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer the browser's request for an icon without content."""
            self.send_error(204) if self.path == "/favicon.ico" else super().do_GET()

        def log_message(self, *_: object) -> None:
            """Keep the output of the tests clean."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix("") for path in DOCS.rglob("*.md")}
    assert len(pages) > 50
    assert not [page for page in pages if not (site / f"{page}.html").is_file()]


@pytest.mark.nightly
@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_nothing_to_the_console_asks_for_nothing_outside_and_fits(
    site: Path, open_page: Callable[..., Any], page: str, width: int
) -> None:
    with open_page(site / f"{page}.html", width=width) as text:
        assert text.page.locator("h1").count() == 1
        assert text.errors == [] and text.overflow() <= 0
        assert [url for url in text.requests if not url.startswith(("file:", "data:"))] == []


@pytest.mark.nightly
def test_dark_differs_from_light_and_print_hides_the_contents(
    site: Path, open_page: Callable[..., Any]
) -> None:
    colours = []
    for scheme in ("light", "dark"):
        with open_page(site / "use.html", color_scheme=scheme) as page:
            colours.append(page.page.evaluate("getComputedStyle(document.body).backgroundColor"))
            page.page.emulate_media(media="print")
            assert not page.page.locator(".sidebar-drawer").is_visible()
    assert len(set(colours)) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier_on_pages(
    site: Path, open_page: Callable[..., Any], barriers: Callable[[Any], list[str]], scheme: str
) -> None:
    for page in ("studies", *PAGES):
        with open_page(site / f"{page}.html", color_scheme=scheme) as text:
            assert barriers(text.page) == [], page


@pytest.mark.nightly
def test_search_leads_to_a_page(site: Path, open_page: Callable[..., Any]) -> None:
    with open_page(site / "index.html") as page, serve_folder(site) as address:
        page.page.goto(address)  # Its excerpts are fetched, which pages of a disk may not do.
        page.page.fill("input.sidebar-search", "adjustment")
        page.page.keyboard.press("Enter")
        page.page.wait_for_selector("#search-results li a")
        links = page.page.locator("#search-results li a")
        assert links.count() > 3
        links.first.click()
        assert page.page.locator("h1").count() == 1 and "search.html" not in page.page.url
        assert page.errors == []


def found_pages(page: Any, address: str, question: str) -> list[str]:
    """Search the site and return the pages found, best first, each once."""
    page.goto(f"{address}search.html?q={question.replace(' ', '+')}")
    page.wait_for_selector("#search-results ul.search li a")
    page.wait_for_function(
        "!document.querySelector('#search-results h2').textContent.startsWith('Searching')"
    )
    links = page.locator("#search-results ul.search li > a").evaluate_all(
        "links => links.map(link => link.getAttribute('href'))"
    )
    return list(dict.fromkeys(link.partition(".html")[0] for link in links))


@pytest.mark.nightly
def test_each_question_is_answered_by_one_of_the_first_three_pages(
    site: Path, open_page: Callable[..., Any]
) -> None:
    with open_page(site / "index.html") as page, serve_folder(site) as address:
        fields = {question: found_pages(page.page, address, question) for question in QUESTIONS}
    assert not [page for pages in fields.values() for page in pages if page.startswith("decisions/")]
    missed_value = {q: fields[q][:3] for q in QUESTIONS if not set(QUESTIONS[q]) & set(fields[q][:3])}
    assert missed_value == {}
