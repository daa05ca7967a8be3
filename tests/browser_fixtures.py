"""A real browser for the pages: the machine's Chromium, driven by Playwright. Without one tests are skipped.

In CI that fails (``known_skips``, ``.ci/browser``).
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

WIDTHS = {"desk": 1280, "phone": 400}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Start Chromium once. It has no network but the page's own file."""
    driver = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    program = next((value for value in NAMES if _starts(value)), None)
    if program is None:
        pytest.skip("no Chromium on this machine: apt install chromium")
    options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with driver.sync_playwright() as playwright:
        start_time = playwright.chromium.launch(executable_path=shutil.which(program), args=options)
        yield start_time
        start_time.close()


def _starts(name: str) -> bool:
    """Return whether a program is there and more than a shim, as in ``.ci/browser``."""
    program = shutil.which(name)
    if program is None:
        return False
    return subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0


class Opened:
    """A page in the browser, with its console output and its requests."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.errors = list[str]()
        self.requests = list[str]()
        page.on("console", lambda message: self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: (self.errors.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: self.requests.append(request.url))

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def open_all(self) -> None:
        """Open everything that is folded."""
        self.page.evaluate("document.querySelectorAll('details').forEach(box => { box.open = true })")


Open = Callable[..., Any]


@pytest.fixture
def open_page(browser: Any) -> Open:
    """Open a file in a fresh context, such as a phone in dark mode."""

    @contextmanager
    def open_file(path: Path, *, width: int = WIDTHS["desk"], **context: Any) -> Iterator[Opened]:
        fresh_new_context = browser.new_context(viewport={"width": width, "height": 900}, **context)
        result = Opened(fresh_new_context.new_page())
        result.page.goto(path.as_uri())
        yield result
        fresh_new_context.close()

    return open_file


@pytest.fixture(scope="session")
def barriers() -> Callable[[Any], list[str]]:
    """Return a function that lists what axe finds on a page, with the first element of each kind."""
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed (extra dev)"
    )

    def found_on(page: Any) -> list[str]:
        response = axe.Axe().run(page).response
        assert response["passes"], "axe looked at nothing"
        return [
            f"{kind['id']} ({len(kind['nodes'])}): {kind['nodes'][0]['html']:.200}"
            for kind in response["violations"]
        ]

    return found_on
