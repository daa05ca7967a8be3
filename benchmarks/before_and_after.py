"""Compare two versions of isogloss, and peers, in one run: starts, predictions, paths and plans.

    git worktree add --detach ../earlier COMMIT
    python benchmarks/before_and_after.py ../earlier [--rounds 3] [--only NAME …] [--out FILE]

Each measure is a process with the sources of one version, or of a peer, in turns. Numbers are processor
seconds (the least of the rounds). ``docs/performance.md`` has the table.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predict_memory import SHIPPED, WORDS, base_encoder, random_model
from start import FIRST_BATCH

from isogloss.features.publishing.onnx import write_int8

HERE = Path(__file__).resolve().parents[1]
LINES = 4000
"""Sentences of a large file."""

LINES_OF_BASE = 500
"""Sentences of a file for a model of the size of BERT base."""

PIPELINE = """
import sys
from transformers import pipeline
label = pipeline("token-classification", sys.argv[1], batch_size=32)
print(len(list(label(open(sys.argv[2]).read().splitlines()))))
"""
"""A prediction by transformers alone."""

STUDY: dict[str, Any] = {
    "title": "Speed",
    "encoder": "shipped",
    "grid": {
        **{"corpus": "ud", "task": "upos", "source": "qaa", "targets": ["qab"], "seeds": [0]},
        **{"examples": 64, "dev_examples": 32},
        "optimization": {"epochs": 1, "batch_size": 16, "precision": "float32"},
        "method": [{"name": "source-only"}, {"name": "target-only"}],
    },
}
HEAD_PATH: dict[str, Any] = {
    **STUDY,
    "measure": [
        {
            **{"name": "interpolation", "between": ["source-only", "target-only"], "examples": 200},
            **{"part": "head", "alphas": [index / 20 for index in range(21)]},
        }
    ],
}
MEASURE_PATH = """
import json, sys, time, isogloss
study, path, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
isogloss.run(study, out=folder, jobs=1, report=False, threads=1, engine="serial")
began = time.process_time()
isogloss.run(path, out=folder, jobs=1, report=False, threads=1, engine="serial")
print(time.process_time() - began)
"""
"""A path along which only the head moves, between models that exist."""

MANY: dict[str, Any] = {
    **STUDY,
    "grid": {**STUDY["grid"], "seeds": list(range(2000))},
    "measure": [{"name": "scores"}],
}
PLAN = """
import json, sys, time
from isogloss.planning.plan import plan_recipe
recipe, folder = sys.argv[1:]
began = time.process_time()
plan = plan_recipe(recipe, out=folder, **({"on_progress": print} if len(sys.argv) and "on_progress" in
    __import__("inspect").signature(plan_recipe).parameters else {}))
plan.titles
seconds = time.process_time() - began
plan.write("plan")
print(seconds)
"""
"""The plan of many runs, in a folder where an earlier process planned them."""


@dataclass(frozen=True)
class Measure:
    """A measure of both versions, and of a peer if there is one."""

    unit: str
    of: Callable[[Path, Path], float]
    """From the sources of a version and a work folder to the number."""
    peer: Callable[[Path], float] | None = None
    peer_name: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("earlier", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=list(MEASURES), choices=list(MEASURES))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder)
        rows = [
            measure_turns(name, MEASURES[name], options.earlier.resolve(), folder, options.rounds)
            for name in options.only
        ]
    text = json.dumps(rows, indent=1)
    if options.out:
        options.out.write_text(f"{text}\n", encoding="utf-8")
    print(text)


def measure_turns(name: str, measure: Measure, earlier: Path, folder: Path, rounds: int) -> dict[str, object]:
    """Measure both versions and the peer in turns, and return the least number of each."""
    rounds_measured = [
        (
            measure.of(earlier, folder / f"earlier-{index}"),
            measure.of(HERE, folder / f"now-{index}"),
            measure.peer(folder) if measure.peer else None,
        )
        for index in range(rounds)
    ]
    earlier_cost, cost, cost_of_peer = (
        None if None in numbers else min(numbers) for numbers in zip(*rounds_measured, strict=True)
    )
    row = {"measure": name, "unit": measure.unit, "before": earlier_cost, "now": cost}
    row |= {"peer": measure.peer_name, "peer's": cost_of_peer} if measure.peer else {}
    print(json.dumps(row), file=sys.stderr, flush=True)
    return row


def write_inputs(folder: Path) -> None:
    """Write an exported model with its ONNX files, one sentence, and a large file."""
    (folder / "one.txt").write_text("Tuki mirne baboza .\n", encoding="utf-8")
    lines = [
        " ".join(WORDS[(index + k) % len(WORDS)] for k in range(3 + index % 17)) for index in range(LINES)
    ]
    (folder / "many.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "base.txt").write_text("\n".join(lines[:LINES_OF_BASE]) + "\n", encoding="utf-8")
    (folder / "many.toml").write_text(json_as_toml(MANY), encoding="utf-8")
    for name, encoder in (("model", SHIPPED), ("base", base_encoder(folder / "encoder"))):
        model = random_model(encoder)
        write_int8(model, model.export(folder / name, onnx=True))


def json_as_toml(recipe: Mapping[str, object]) -> str:
    """Return a recipe as TOML."""
    from isogloss.recipes.recipe_text import to_toml

    return to_toml(recipe)


def environment(tree: Path) -> dict[str, str]:
    paths = [tree / "src", tree / "tests"]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}


def seconds_of(tree: Path, words: Sequence[str]) -> float:
    """Return the processor seconds of a process."""
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *words],
        check=True,
        env=environment(tree),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime - usage_before.ru_utime - usage_before.ru_stime


def number_of(tree: Path, script: str, *arguments: object) -> float:
    """Return the number that a script prints last."""
    words = [sys.executable, "-c", script, *map(str, arguments)]
    result = subprocess.run(words, check=True, env=environment(tree), capture_output=True, text=True)
    return float(result.stdout.split()[-1])


def predict(file: str, *options: str, model: str = "model") -> Callable[[Path, Path], float]:
    """Measure a prediction. Options are those of the later version."""

    def measure(tree: Path, folder: Path) -> float:
        words = ["-m", "isogloss", "predict", str(folder.parent / model), str(folder.parent / file)]
        return seconds_of(tree, [*words, *(options if tree == HERE else ())])

    return measure


def predict_by_pipeline(file: str, model: str = "model") -> Callable[[Path], float]:
    """Measure a prediction by the pipeline of transformers."""
    return lambda folder: seconds_of(HERE, ["-c", PIPELINE, str(folder / model), str(folder / file)])


def plan_again(tree: Path, folder: Path) -> float:
    """Measure the plan of a process after an earlier one."""
    recipe = folder.parent / "many.toml"
    number_of(tree, PLAN, recipe, folder)
    return number_of(tree, PLAN, recipe, folder)


SECONDS = "processor seconds"
ONE, MANY_LINES = "one.txt", "many.txt"
MEASURES: Mapping[str, Measure] = {
    "import torch": Measure(SECONDS, lambda tree, _: seconds_of(tree, ["-c", "import torch"])),
    "one sentence predicted": Measure(
        SECONDS, predict(ONE), predict_by_pipeline(ONE), "pipeline of transformers"
    ),
    "one sentence predicted, int8": Measure(SECONDS, predict(ONE, "--int8")),
    f"{LINES:,} sentences predicted": Measure(
        SECONDS, predict(MANY_LINES), predict_by_pipeline(MANY_LINES), "pipeline of transformers"
    ),
    f"{LINES:,} sentences predicted, int8": Measure(SECONDS, predict(MANY_LINES, "--int8")),
    f"{LINES_OF_BASE} sentences predicted, base size": Measure(
        SECONDS,
        predict("base.txt", model="base"),
        predict_by_pipeline("base.txt", "base"),
        "pipeline of transformers",
    ),
    f"{LINES_OF_BASE} sentences predicted, base size, int8": Measure(
        SECONDS, predict("base.txt", "--int8", model="base")
    ),
    "21 points along which only the head moves": Measure(
        SECONDS,
        lambda tree, folder: number_of(tree, MEASURE_PATH, json.dumps(STUDY), json.dumps(HEAD_PATH), folder),
    ),
    "a training until its first batch": Measure(
        SECONDS, lambda tree, folder: seconds_of(tree, ["-c", FIRST_BATCH, str(folder / "start")])
    ),
    "8,000 runs planned by a second process": Measure(SECONDS, plan_again),
}


if __name__ == "__main__":
    main()
