"""The documentation site: the pages of this folder and the public docstrings, by Sphinx (decision 0055).

make docs builds it into build/site, and fails on a warning.
"""

import re
from pathlib import Path
from typing import Any

from isogloss.core import VERSION

HERE = Path(__file__).parent
REPOSITORY = "https://github.com/isogloss/isogloss"

project = "isogloss"
author = "The isogloss authors"
release = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["**/__pycache__"]
html_theme = "furo"
html_title = "isogloss"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
html_copy_source = False
myst_enable_extensions = ["dollarmath", "attrs_inline"]
myst_heading_anchors = 4
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
nitpicky = False
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

SEARCHED = {
    "choosing": "! choose",
    "corpora": "! own data",
    "first_study": "! quickstart",
    "landscapes": "! path, ! seed",
    "machines": "! gpu",
    "presets": "! paper setting",
    "tasks": "! named entity",
    "tests": "! interval",
    "use": "! evaluate, ! evaluate model, ! evaluate hub model, ! explorer, ! csv file",
}
"""Users' search words, by the page with the answer. Words in titles rank higher than in headings."""

REPORT = re.compile(r"`build/site/(reports/\w+/index\.html)`")
"""Pages that finished.py writes into the site, which are no files when the site is built."""

LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)(#[^)]*)?\)")


def prepare(_: object, page: str, source: list[str]) -> None:
    """Add the contents to the first page, hide decisions, link reports and other files of the repository."""
    if not (HERE / f"{page}.md").exists():
        return
    if page.startswith("decisions/"):
        source[0] = f"---\nnosearch: true\norphan: true\n---\n{source[0]}"
    if page == "index":
        source[0] += contents(source[0])
    if page in SEARCHED:
        title, _, body = source[0].partition("\n")
        source[0] = f"{title}\n\n```{{index}} {SEARCHED[page]}\n```\n{body}"
    folder = (HERE / page).parent

    def target(link: re.Match[str]) -> str:
        path = (folder / link[2]).resolve()
        inside = path.is_relative_to(HERE) and path.is_file()
        if inside and path.suffix in {".md", ".rst", ".svg", ".png"}:
            return link[0]
        kind = "tree" if path.is_dir() else "blob"
        return f"]({REPOSITORY}/{kind}/main/{path.relative_to(HERE.parent).as_posix()}{link[3] or ''})"

    source[0] = LINK.sub(target, source[0])
    if page == "studies":
        source[0] = REPORT.sub(r'<a href="\1">the whole report</a>', source[0])


def contents(index: str) -> str:
    """Return the table of contents: the pages that each section of the index links."""
    trees = []
    for section in index.split("\n## ")[1:]:
        title, _, body = section.partition("\n")
        pages = [name for name in re.findall(r"\]\(([\w/]+)\.(?:md|rst)\)", body) if name != "index"]
        pages += ["results/**/README", "results/**/plan"] if "results/README" in pages else []
        if pages:
            lines = "\n".join(pages)
            trees.append(
                f"\n\n```{{toctree}}\n:hidden:\n:glob:\n:maxdepth: 1\n:caption: {title}\n\n{lines}\n```\n"
            )
    return "".join(trees)


LANDMARKS = {
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    '<div class="content-icon-container">': (
        '<div class="content-icon-container" role="region" aria-label="Page">'
    ),
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<th class="head"><p></p></th>': '<td class="head"></td>',
}
"""Elements of pages in which axe misses a level, a name, or that keys can scroll them."""


def name_landmarks(app: Any, error: Exception | None) -> None:
    """Give headings, landmarks and code blocks of all pages what axe misses in them."""
    for path in () if error else Path(app.outdir).rglob("*.html"):
        html = path.read_text(encoding="utf-8")
        names = html
        for bare_name, complete in LANDMARKS.items():
            names = names.replace(bare_name, complete)
        if names != html:
            path.write_text(names, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("source-read", prepare)
    app.connect("build-finished", name_landmarks)
