"""Packages add aligners, translators, families, engines, tables and commands. A broken one harms none."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import isogloss
from isogloss.aligners import ALIGNERS
from isogloss.cli.lists import LISTS
from isogloss.core.errors import ConfigError
from isogloss.core.identity import content
from isogloss.encoders import FAMILIES
from isogloss.engine.engines import ENGINES, Execution
from isogloss.features.alignment.run import Align
from isogloss.planning.plan import plan_recipe
from isogloss.reports.measurements import read_measurements
from isogloss.reports.sections import make_added_parts
from isogloss.translators import TRANSLATORS
from says import says
from tiny import select_kind, tiny

CODE = '''
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from isogloss.encoders.families import BERT
from isogloss.plugins import Aligned, Aligner, AlignSetting, Engine, Work, pair_words, plain_table
from isogloss.plugins import Translated, TranslateSetting, Translator


@dataclass(frozen=True)
class InOrder(Aligner):
    """Link words by their place."""

    name: ClassVar[str] = "in-order"
    needs_encoder: ClassVar[bool] = False
    skip: int = 0

    def align(self, setting: AlignSetting) -> list[Aligned]:
        sides = [pair_words(pair) for pair in setting.pairs]
        counts = [min(map(len, pair)) for pair in sides]
        return [Aligned(links=tuple((word, word) for word in range(self.skip, count))) for count in counts]


@dataclass(frozen=True)
class Shout(Translator):
    """Write in capitals."""

    name: ClassVar[str] = "shout"
    needs_model: ClassVar[bool] = False
    knows_links: ClassVar[bool] = False

    def check(self, source: str, target: str) -> None:
        pass

    def translate(self, texts: Iterable[str], setting: TranslateSetting) -> Iterator[Translated]:
        for text in texts:
            yield Translated(text.upper())


ELECTRA = replace(BERT, name="electra")


def start(execution, context, runs, report):
    Work(context, runs, report).work()


HERE = Engine(about="in this very process", start=start)


class ScoreTable:
    frame = "scores"

    def show(self, m):
        return [plain_table("open-scores", "Scores, once more", m.frame("scores")[["language", "score"]])]


SCORES = ScoreTable()


def greet(words):
    print("greetings", *words)
    return 3
'''

POINTS = {
    "aligners": "in-order = open_extras:InOrder",
    "translators": "shout = open_extras:Shout",
    "families": "electra = open_extras:ELECTRA",
    "engines": "here = open_extras:HERE",
    "tables": "scores-again = open_extras:SCORES",
    "commands": "greet = open_extras:greet",
}


def write_package(folder: Path, name: str, module: str, language: str, points: dict[str, str]) -> None:
    options = folder / f"{name}-1.dist-info"
    options.mkdir(parents=True)
    (options / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    text = "\n".join(f"[isogloss.{group}]\n{point}\n" for group, point in points.items())
    (options / "entry_points.txt").write_text(text)
    (folder / f"{module}.py").write_text(language)


@pytest.fixture(autouse=True)
def site(tmp_path, monkeypatch):
    """A package that adds to each table, and another one that cannot be imported."""
    folder = tmp_path / "site"
    write_package(folder, "open_extras", "open_extras", CODE, POINTS)
    points = dict.fromkeys(POINTS, "broken = broken_extras:Thing")
    write_package(
        folder, "broken_extras", "broken_extras", 'raise ZeroDivisionError("no such thing")', points
    )
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name in ("open_extras", "broken_extras"):
        sys.modules.pop(name, None)


TABLES = {"aligners": ALIGNERS, "translators": TRANSLATORS, "families": FAMILIES, "engines": ENGINES}


@pytest.mark.parametrize("group", TABLES)
def test_names_of_packages_are_listed_without_an_import_and_looked_up_with_one(group):
    name = POINTS[group].partition(" ")[0]
    table = TABLES[group]
    assert list(table)[-2:] == ["broken", name] and name in table and len(table) == len(table.places) + 2
    assert "open_extras" not in sys.modules
    assert table[name] is not None
    with says(ConfigError, "broken_extras:Thing", "ZeroDivisionError", "no such thing"):
        table["broken"]
    with pytest.raises(KeyError):
        table["nothing"]


@pytest.mark.parametrize("kind", ["aligners", "encoders", "translators"])
def test_lists_show_what_packages_add_and_which_cannot_be_used(kind):
    rows = {row[0]: row[-1] for row in LISTS[kind](Path())[1]}
    name = POINTS["families" if kind == "encoders" else kind].partition(" ")[0]
    assert rows[name].endswith("[open_extras 1]")
    assert rows["broken"].startswith("cannot be used: plug-in broken_extras:Thing")


def test_a_plug_in_without_the_members_of_its_interface_is_refused(site):
    (site / "open_extras.py").write_text("class InOrder:\n    name = 'in-order'\n")
    with says(ConfigError, "in-order", "frozen dataclass"):
        ALIGNERS["in-order"]


def test_an_aligner_of_a_package_makes_the_bitext_of_a_recipe(tmp_path):
    text = """
title = "Own links"
encoder = "shipped"
align = { name = "in-order", skip = 1 }

[[adjust]]
name = "cross-lingual-adjustment"
bitext = "bitext"
pairs = ["qaa-qab"]
examples = 8
precision = "float32"
"""
    study = isogloss.run(tiny(tmp_path, text), out=tmp_path / "runs", jobs=1, report=False)
    assert not study.outcome.failed
    (align,) = select_kind(Align, plan_recipe(str(tmp_path / "tiny.toml"), out=tmp_path / "runs").runs)
    assert content(align.aligner)["package"]  # Another version, or other code, makes other runs.
    with says(ConfigError, "align", "skp", "skip"):
        isogloss.run(tiny(tmp_path, text.replace("skip", "skp")), out=tmp_path / "other", report=False)


def test_a_family_of_a_package_is_loaded_and_measured(tmp_path, bert_folder):
    from transformers import AutoTokenizer, ElectraConfig, ElectraModel

    tokenizer = AutoTokenizer.from_pretrained(bert_folder)
    sizes = {"hidden_size": 16, "embedding_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    model = ElectraModel(ElectraConfig(vocab_size=len(tokenizer), num_hidden_layers=2, **sizes)).eval()
    for part in (model, tokenizer):
        part.save_pretrained(tmp_path / "electra")
    loaded_encoder, own_encoder = isogloss.load_encoder(str(tmp_path / "electra"))
    texts = ["the slowly unhappening casual", "slowly the casual"]
    states = isogloss.states(loaded_encoder, own_encoder, texts)
    inputs = tokenizer(texts[0], return_tensors="pt")
    with torch.no_grad():
        hidden = model(**inputs, output_hidden_states=True).hidden_states[-1]
    torch.testing.assert_close(states.layer(2)[0], hidden[0, 1:-1].mean(dim=0))


@pytest.mark.slow
def test_an_engine_of_a_package_makes_the_runs(tmp_path):
    outcome = isogloss.run(
        tiny(tmp_path), out=tmp_path / "runs", engine="here", scale="least", report=False
    ).outcome
    assert outcome.made and not outcome.failed
    with says(ConfigError, "--engine", "'her'", "'here'"):
        Execution(engine="her")


@pytest.mark.slow
def test_tables_of_a_package_are_in_the_report_and_a_broken_one_is_a_note(site, tmp_path):
    isogloss.run(tiny(tmp_path), out=tmp_path / "runs", jobs=1, scale="least")
    page = (tmp_path / "runs" / "report.html").read_text(encoding="utf-8")
    assert "Scores, once more" in page and "ZeroDivisionError" in page
    assert (tmp_path / "runs" / "tables" / "open-scores.csv").exists()
    sys.modules.pop("open_extras")
    (site / "open_extras.py").write_text(CODE.replace('m.frame("scores")', 'm.frame("scores")["nothing"]'))
    added_parts = make_added_parts(read_measurements(tmp_path / "runs"))
    assert not added_parts.parts and any(
        "its tables failed (KeyError" in error for error in added_parts.errors
    )


def test_a_translator_of_a_package_translates_a_text(tmp_path, command):
    (tmp_path / "text.txt").write_text("ka lomi\n")
    words = ("translate", "--text", str(tmp_path / "text.txt"), "--from", "qaa", "--into", "qad")
    result = command(*words, "--translator", "shout", "--out", str(tmp_path / "out.txt"))
    assert result.status == 0, result.err
    assert (tmp_path / "out.txt").read_text() == "KA LOMI\n"


@pytest.mark.nightly
@pytest.mark.slow
def test_a_command_of_a_package_is_called_with_its_words_and_a_broken_one_fails_alone(site):
    def call(*words: str) -> "subprocess.CompletedProcess[str]":
        path = f"{site}:{':'.join(sys.path)}"
        environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": path, "HOME": str(site)}
        return subprocess.run(
            [sys.executable, "-m", "isogloss", *words],
            capture_output=True, text=True, env=environment, check=False,
        )  # fmt: skip

    result = call("greet", "--loud", "you")
    assert (result.returncode, result.stdout, result.stderr) == (3, "greetings --loud you\n", "")
    listed_result = call("--help")
    assert listed_result.returncode == 0 and "A command of the package open_extras 1" in listed_result.stdout
    broken_result = call("broken")
    assert (
        broken_result.returncode == 2
        and broken_result.stderr.count("\n") == 1
        and "broken_extras:Thing" in broken_result.stderr
    )
