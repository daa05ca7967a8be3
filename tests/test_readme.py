"""The README: its example runs, its recipe is accepted, its commands and links exist."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from each import each
from isogloss.cli.app import app
from isogloss.data.sources import Sources
from isogloss.planning.plan import plan_recipe
from isogloss.recipes.recipe_text import packaged_recipes

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(kind: str, text: str = README) -> list[str]:
    """Return the contents of fenced blocks of a kind. Each fence closes the one before it."""
    fenced_matches = re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [content for name, content in fenced_matches if re.fullmatch(kind, name)]


def commands(text: str) -> Iterator[list[str]]:
    """Give every line of a block, and every piece of code in a sentence, that begins with isogloss."""
    lines = [line for block in blocks("(?:sh|console)?", text) for line in block.splitlines()]
    for line in [*lines, *re.findall(r"(?<!`)`(isogloss [^`]+)`(?!`)", text)]:
        words = shlex.split(re.split(r"#| > ", line)[0].rstrip(" \\"))
        if words[:1] == ["isogloss"]:
            yield words[1:]


@pytest.mark.slow
def test_python_example_runs_on_a_small_quickstart(monkeypatch, tmp_path, capsys):
    text = re.sub(r"alphas = .*", "", packaged_recipes()["quickstart"].read_text(encoding="utf-8"))
    text = re.sub(r"examples = \d+", "examples = 9", text.replace('split = "test"', "examples = 9"))
    text = re.sub(r'(name = "(interpolation|plane)")', r"\1\nalphas = [0.0, 1.0]", text)
    (tmp_path / "quickstart").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    functions, example = blocks("python")
    exec(functions, {})
    matches = re.findall(r"^```\n(\[.*?)^```$", README, re.MULTILINE | re.DOTALL)
    assert matches == [capsys.readouterr().out]
    exec(example.replace('"quickstart"', '"./quickstart", jobs=1'), {})
    output = capsys.readouterr().out
    assert "source-only" in output and "bilingual" in output
    assert re.search(r"^\[\(('[A-Z]+',? ?){4}\)\]$", output, flags=re.MULTILINE)


def test_recipe_is_accepted_and_every_name_in_it_known(monkeypatch, tmp_path):
    monkeypatch.setattr(Sources, "fingerprint", lambda self, corpus, *_, **__: self.corpus(corpus).name)
    (text,) = blocks("toml")
    (tmp_path / "pos.toml").write_text(text, encoding="utf-8")
    runs = plan_recipe(str(tmp_path / "pos.toml"), out=tmp_path / "runs").runs
    # Three source-only models serve both targets; each target has its three bilingual models and paths.
    assert Counter(run.name for run in runs) == {"fine-tune": 3 + 6, "measure": 6}


def test_every_command_shown_exists():
    group = typer.main.get_command(app)
    names = {(page.name, *words) for page in PAGES for words in commands(page.read_text(encoding="utf-8"))}
    for page, *words in each(names):
        command = group
        remaining_words = words
        while hasattr(command, "commands") and remaining_words and not remaining_words[0].startswith("-"):
            name, *remaining_words = remaining_words
            assert name in command.commands, f"{page}: isogloss {' '.join(words)}"
            command = command.commands[name]
        # An option that does not exist raises an error.
        assert not remaining_words or command.make_context(command.name, remaining_words), (
            f"{page}: isogloss {' '.join(words)}"
        )


def test_readme_shows_commands():
    assert {words[0] for words in commands(README)} >= {"run", "report", "show", "list", "predict", "doctor"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_target_of_make_shown_exists(page):
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    )
    matches = set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert matches <= targets


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing
