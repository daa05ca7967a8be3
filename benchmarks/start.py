"""Measure the cost of starting: processor seconds of whole processes, and as ratios to the import of torch.

    python benchmarks/start.py [--rounds 3] [--out FILE]

Times are the least of several rounds, in turns. The prediction is for one sentence by the shipped encoder
with a random head.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from predict_memory import random_model

from isogloss.features.publishing.onnx import write_int8

TORCH = "import torch"
PREDICTION = "import isogloss.runs.execute, transformers.models.bert.modeling_bert"
TRAINING = "import isogloss.engine.preloaded"
"""Imports of the process from which the workers of ``--jobs`` are forked: all that a training needs."""

FIRST_BATCH = """
import os, sys, isogloss

def stop(progress):
    if progress.what.startswith("fine-tuning"):
        os._exit(0)

optimization = {"epochs": 1, "batch_size": 8, "precision": "float32"}
grid = {"corpus": "wikiann", "source": "qaa", "targets": ["qab"], "seeds": [0], "optimization": optimization}
grid |= {"examples": 16, "dev_examples": 8, "method": [{"name": "source-only"}]}
recipe = {"title": "Start", "encoder": "shipped", "grid": grid}
isogloss.run(recipe, out=sys.argv[1], jobs=1, report=False, on_progress=stop)
sys.exit("no training began")
"""
"""A training of a recipe in a fresh process, until its first batch."""

ASKED_BY = {
    "torch": "all that computes",
    "transformers.models": "every model: the names of all models, read from their files",
    "torch._dynamo": "transformers' attention, by way of continuous batching",
    "torch.distributed.tensor": "transformers' loading of weights",
    "scipy.optimize": "transformers' losses for the detection of objects",
    "accelerate": "transformers' loading of weights, where it is installed",
    "pydantic.types": "isogloss",
}
"""Slow imports, each with the module that needs it."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sentence = Path(folder, "sentence.txt")
        sentence.write_text("Tuki mirne baboza .\n", encoding="utf-8")
        random = random_model()
        model = random.export(Path(folder) / "model", onnx=True)
        write_int8(random, model)
        predict = ["-m", "isogloss", "predict", str(model), str(sentence)]
        commands = {
            TORCH: ["-c", TORCH],
            "import transformers' BERT": ["-c", "import transformers.models.bert.modeling_bert"],
            "isogloss --help": ["-m", "isogloss", "--help"],
            "isogloss list methods": ["-m", "isogloss", "list", "methods"],
            "isogloss predict, a sentence": [*predict, "--no-onnx"],
            "the same with model.onnx": [*predict, "--onnx"],
            "the same with model.int8.onnx": [*predict, "--int8"],
            "a training process": ["-c", TRAINING],
            "isogloss.run until the first batch": ["-c", FIRST_BATCH, str(Path(folder, "runs"))],
        }
        rounds = [{name: cost(words) for name, words in commands.items()} for _ in range(options.rounds)]
    seconds_by_command = {name: min(costs[name] for costs in rounds) for name in commands}
    print("| process | processor seconds | : import torch |\n|---|---|---|")
    for name, seconds in seconds_by_command.items():
        print(f"| {name} | {seconds:.2f} | {seconds / seconds_by_command[TORCH]:.2f} |")
    if options.out:
        options.out.write_text(json.dumps(seconds_by_command, indent=1) + "\n", encoding="utf-8")
        command = [sys.executable, "-X", "importtime", "-c", PREDICTION]
        times = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        shares = json.dumps(import_shares(times), indent=1)
        options.out.with_name("imports.json").write_text(shares + "\n", encoding="utf-8")


def import_shares(report: str) -> list[dict[str, object]]:
    """Return the shares of imports in the total time, by the module that needs them.

    ``report`` is Python's report of import times.
    """
    lines = [line.removeprefix("import time:").split("|") for line in report.splitlines() if "|" in line]
    microseconds = {
        name.strip(): int(cumulative) for _, cumulative, name in lines if cumulative.strip().isdigit()
    }
    total = sum(int(single_line) for single_line, *_ in lines if single_line.strip().isdigit())
    return [
        {"import": name, "asked for by": key, "share": microseconds[name] / total}
        for name, key in ASKED_BY.items()
    ]


def cost(words: list[str]) -> float:
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage_after.ru_utime + usage_after.ru_stime - start.ru_utime - start.ru_stime


if __name__ == "__main__":
    main()
