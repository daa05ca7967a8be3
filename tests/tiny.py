"""A whole experiment in a few seconds: 12 runs on the built-in languages, with the shipped encoder."""

import re
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isogloss.store.store import PRECISION

TINY = """
title = "Tiny"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab", "qad"]
seeds = [0, 1]
examples = 16
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"
targets = ["qab"]

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "transfer-gap"
examples = 8

[[measure]]
name = "interpolation"
targets = ["qab"]
examples = 8
alphas = [0.0, 0.5, 1.0]

[scale.least]
"grid.seeds" = [0]
grid.examples = 4
"""

PAIRS = (
    TINY.partition('[[grid.method]]\nname = "bilingual"')[0]
    .replace('"wikiann"', '"pawsx"')
    .replace("seeds = [0, 1]", "seeds = [0]")
    .replace('targets = ["qab", "qad"]', 'targets = ["qab"]')
)
"""One model, of pairs."""

MIXING = """
title = "Mixing"
encoder = "shipped"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 32
dev_examples = 4
optimization = { epochs = 2, learning_rate = 3e-3, batch_size = 8 }

[[grid.method]]
name = "x-mixup"
layer = 2
schedule = false

[[measure]]
name = "scores"
inputs = "paired"
examples = 50

[[measure]]
name = "mixup-sweep"
inputs = "paired"
examples = 50
ratios = [0.0, 1.0]
layers = [1, 3]
"""
"""A model that mixes, trained just enough for it to matter how much is mixed."""

MODELS = 4
"""Source-only serves both targets, bilingual one. Two seeds."""

RUNS = MODELS + MODELS + 2 + 2
"""Models, their scores, a gap for each source-only model, a path for each seed."""


def tiny(folder: Path, text: str = TINY) -> Path:
    """Write the recipe into a folder."""
    path = folder / "tiny.toml"
    path.write_text(text, encoding="utf-8")
    return path


def as_precise_as(path: Path, folder: Path) -> Path:
    """Copy the measured precision of "auto" between folders of runs: on a busy machine measurements vary."""
    folder.mkdir(exist_ok=True)
    shutil.copy(path / PRECISION, folder)
    return folder


def dotted_changes(**changes: Any) -> Mapping[str, Any]:
    """Give changes with dots in their keys: ``grid__seeds=[0]`` is grid.seeds."""
    return {key.replace("__", "."): value for key, value in changes.items()}


def body() -> dict[str, Any]:
    """Give the recipe as plain data."""
    return tomllib.loads(TINY)


def select_kind(kind: type | str, runs: Iterable[Any]) -> list[Any]:
    """Pick the runs of a class, or the records of a kind."""
    return [run for run in runs if (run.kind == kind if isinstance(kind, str) else isinstance(run, kind))]


def lines(text: str) -> list[str]:
    """List the lines of a table, indented ones joined to the one before."""
    return re.sub(r"\n +", " ", text.strip()).splitlines()
