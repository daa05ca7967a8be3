"""The pages are what the code says they should be."""

import importlib.util
import inspect
import re
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import isogloss
from each import each
from isogloss.features.described_corpora.descriptions import Description
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.checking import build_checked
from isogloss.reports.verdicts import Verdict

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def load_script(path: Path):
    """Return a script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def generate():
    return load_script(DOCS / "generate.py")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_is_up_to_date(page, generate):
    text = page.read_text(encoding="utf-8")
    assert generate.render(text) == text, f"{page.name} is not what the code says: run make docs"


def test_every_made_part_is_on_a_page(generate):
    names = {
        name for page in PAGES for _, name, _ in generate.BLOCK.findall(page.read_text(encoding="utf-8"))
    }
    assert names == set(generate.BLOCKS)


def test_the_reference_of_each_function_has_arguments_result_errors_device_and_cost(generate):
    page = (DOCS / "reference" / "functions.md").read_text(encoding="utf-8")
    functions = generate.public_functions()
    assert {"cka", "path", "MixupLoss", "compare", "run"} <= functions.keys() and len(functions) > 30
    for name, function in functions.items():
        reference = generate.describe_function(name)
        assert f"### `{name}`\n" in page
        assert reference.summary.endswith(".") and reference.result.startswith(("`", "each call"))
        assert reference.errors and reference.device and reference.cost, name
        signature = inspect.signature(function)
        assert [argument for argument, *_ in reference.arguments] == list(signature.parameters), name
        for argument, kind, default, text in reference.arguments:
            assert text and kind.strip("`") and default, f"{name}: {argument}"


def test_every_field_of_a_recipe_is_explained(generate):
    pages = [DOCS / "recipe.md", *sorted((DOCS / "reference").glob("*.md"))]
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for line in each(line for line in text.splitlines() if line.startswith("| `")):
        assert line.rsplit("|", 2)[1].strip(), line


def test_a_page_made_twice_is_the_same(generate):
    text = "<!-- made: sizes -->\nold\n<!-- end -->\nkept"
    once = generate.render(text)
    assert "old" not in once and once.endswith("kept") and generate.render(once) == once


def on_pages(language: str) -> pytest.MarkDecorator:
    """Parametrize a test by the examples in a language, page by page."""
    fenced_pattern = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    texts = {page.name: fenced_pattern.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    fields = {f"{page}-{index}": text for page in texts for index, text in enumerate(texts[page])}
    return pytest.mark.parametrize("text", fields.values(), ids=list(fields))


@pytest.mark.slow
@on_pages("python")
def test_examples_on_pages_run(text):
    assert exec(text, {}) is None


@on_pages("toml")
def test_recipes_on_pages_are_accepted(text, tmp_path):
    if "\nkind = " in text and "\ntitle = " not in f"\n{text}":
        assert build_checked(Description, tomllib.loads(text)).files
    else:
        (tmp_path / "recipe.toml").write_text(text, encoding="utf-8")
        assert plan_recipe(str(tmp_path / "recipe.toml"), out=tmp_path / "runs").runs


def test_every_line_of_what_is_trusted_names_a_test_that_there_is():
    page = (DOCS / "trust.md").read_text(encoding="utf-8")
    matches = set(re.findall(r"`(test_\w+)`", page))
    tests = "\n".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py"))
    assert matches
    assert {name for name in matches if f"\ndef {name}(" not in tests} == set()
    checked_lines = page.partition("## What is checked")[2].partition("## ")[0].splitlines()
    rows = [line for line in checked_lines if line.startswith("| ")][1:]
    assert all("`test_" in line.rpartition(" | ")[2] for line in rows)


def test_the_site_documents_every_public_name():
    page = (DOCS / "api.rst").read_text(encoding="utf-8")
    documented_matches = re.findall(r"^\.\. auto(?:function|class|exception):: (\w+)$", page, re.MULTILINE)
    assert sorted(documented_matches) == sorted(set(isogloss.__all__) - {"__version__"})


def test_every_page_is_in_the_contents_of_the_site():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    pages = {page.relative_to(DOCS).as_posix() for page in [*DOCS.glob("*.md"), *DOCS.glob("reference/*.md")]}
    assert pages - {"index.md"} <= set(re.findall(r"\]\(([\w/]+\.md)", index))


VERDICT = re.compile("|".join(rf"\b{word}\b" for word in get_args(Verdict) if word != "mixed"))
"""Words of verdicts. "mixed" also describes inputs and models."""

CLAIM = re.compile(r"\b[1-4][a-m]\b")
RESULTS = [page for page in (DOCS / "results").rglob("*.md") if page.parent.name != "claims"]
GUIDES = [page for page in DOCS.glob("*.md") if page.name != "claims.md"]


def find_verdicts(text: str) -> list[str]:
    """Return the sentences and table rows outside generated blocks that have a word of a verdict."""
    output = re.sub(r"<!-- made: .*?<!-- end -->", "", text, flags=re.DOTALL)
    sentences = re.split(r"(?<=[.?!:;]) |\n\||\n\n", re.sub(r"\n(?![\n|])", " ", output))
    return [sentence for sentence in sentences if VERDICT.search(sentence)]


@pytest.mark.parametrize("page", RESULTS, ids=lambda page: page.parent.name)
def test_results_pages_state_numbers_instead_of_verdicts(page):
    assert find_verdicts(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_guides_state_no_verdict_of_a_claim(page):
    sentences = find_verdicts(page.read_text(encoding="utf-8"))
    assert [sentence for sentence in sentences if CLAIM.search(sentence)] == []


def test_verdicts_are_found_across_lines_and_in_tables():
    text = "Kept. Claim 4d differs\nfrom print here.\n\n| 1a | supported |\n| 2b | +0.1 |\n"
    assert [CLAIM.findall(sentence) for sentence in find_verdicts(text)] == [["4d"], ["1a"]]


WITH_PICTURES = [
    page
    for page in PAGES
    if page.parent.name != "decisions" and not page.read_text(encoding="utf-8").startswith("# Plan")
]
"""All pages but decisions and plans of studies."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


@pytest.mark.parametrize("page", WITH_PICTURES, ids=[str(page.relative_to(DOCS)) for page in WITH_PICTURES])
def test_every_page_has_a_picture_with_a_description(page):
    pictures = PICTURE.findall(page.read_text(encoding="utf-8"))
    assert pictures, f"{page.name} has no picture: draw one with docs/images/diagrams.py or draw.py"
    for alt, file in pictures:
        assert alt and (page.parent / file).is_file(), file


def test_diagrams_are_as_their_script_draws_them():
    diagrams = load_script(DOCS / "images" / "diagrams.py")
    for name, diagram in diagrams.DIAGRAMS.items():
        picture = (DOCS / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert picture == diagrams.draw(diagram), f"python docs/images/diagrams.py draws another {name}.svg"


def test_a_text_that_is_wider_than_its_box_is_refused():
    diagrams = load_script(DOCS / "images" / "diagrams.py")
    with pytest.raises(ValueError, match=r"'a text' needs 49 pixels; its box has 40"):
        diagrams.draw_box(diagrams.Box(0, 0, 40, "a text"))


def test_every_picture_is_on_a_page():
    text = "\n".join(page.read_text(encoding="utf-8") for page in [*PAGES, DOCS.parent / "README.md"])
    for path in each([*DOCS.glob("images/*.svg"), *DOCS.glob("images/*.png")]):
        assert path.name in text, path.name


def test_decisions_are_in_neither_search_nor_sidebar():
    conf = load_script(DOCS / "conf.py")
    for path in (DOCS / "decisions").glob("*.md"):
        source = [path.read_text(encoding="utf-8")]
        conf.prepare(None, f"decisions/{path.stem}", source)
        assert source[0].startswith("---\nnosearch: true\norphan: true\n---\n"), path.name
    assert "decisions" not in conf.contents((DOCS / "index.md").read_text(encoding="utf-8"))
