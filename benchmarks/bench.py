"""Compare the speed of isogloss with Hugging Face's Trainer, as ratios from one run on one thread.

    python benchmarks/bench.py                 # about six minutes
    python benchmarks/bench.py --shape base    # multilingual BERT's shape; longer
    python benchmarks/bench.py --quick         # does it work? Its numbers mean nothing.

Both sides see the same rows, in turns. Times are processor times, to reduce the influence of other programs.
Only ratios are compared.
"""

import argparse
import json
import os
import platform
import re
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from transformers.utils import logging

from isogloss.tasks.tagging import UPOS
from isogloss.training.precision import faster, matrix_speeds
from material import BATCH, SHAPES, Material, make_material, matrix_parameters
from path_speed import HEAD_MOVES, STATES_EACH_TIME, walks
from training_speed import contest, products_alone

RESULTS = Path(__file__).parent / "results"

SIZES = {"small": (24, 2, 192, 21), "base": (2, 1, 32, 5)}
"""Steps of an epoch, rounds, sentences and points of the path."""
QUICK = (1, 1, 4, 2)

PADDED = "Trainer, padded to 128"
DYNAMIC = "Trainer, dynamic padding"
GROUPED = "Trainer, grouped by length"
OURS = "isogloss, float32"
OURS_HALF = "isogloss, bfloat16"

TRAINING_GOALS = ((OURS, PADDED, 3.5), (OURS, DYNAMIC, 2.2), (OURS_HALF, GROUPED, 1.1))
"""Ours, theirs at equal precision, and the ratio of speeds we want."""
PATH_GOALS = ((PADDED, 10.0), (DYNAMIC, 6.0))
"""Theirs, and the ratio of times we want from ours in the precision that pays here."""
HEAD_GOAL = 5.0
"""Ratio of times that we want where only the head moves."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SIZES, default="small")
    parser.add_argument("--quick", action="store_true", help="the smallest sizes, to see that it works")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the JSON file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    shape, size = ("tiny", QUICK) if options.quick else (options.shape, SIZES[options.shape])
    results = measure(shape, size)
    print("\n".join(markdown(results)))
    path = (
        options.out
        / f"{results['date']}-{results['machine']}{'-base' if options.shape == 'base' else ''}.json"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"\nWritten: {path.name}", file=sys.stderr)


def measure(shape: str, size: tuple[int, int, int, int]) -> dict[str, Any]:
    steps, rounds, sentences, points = size
    with tempfile.TemporaryDirectory() as folder:
        material = make_material(Path(folder), SHAPES[shape], sentences=steps * BATCH)
        training = contest(material, rounds=rounds)
        paths = walks(Material(material.folder, material.sentences[:sentences]), points=points)
        matrices = matrix_parameters(UPOS.head(material.folder, seed=0))
        single_result = {
            name: products_alone(material, name, rounds=rounds) for name in ("float32", "bfloat16")
        }
    peaks = matrix_speeds("cpu", rounds=4 if size == QUICK else 400)
    our_name = OURS_HALF if faster(peaks) == "bfloat16" else OURS
    seconds = {path.name: path.seconds for path in paths}
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "versions": {name: version(name) for name in ("torch", "transformers", "isogloss")}
        | {"python": platform.python_version()},
        "shape": shape,
        "mean_length": material.subwords / len(material.rows),
        "matrix_parameters": matrices,
        "gflops_peak": {name: peak / 1e9 for name, peak in peaks.items()},
        "precision_chosen": faster(peaks),
        "share_of_products_alone": {name: 6 * matrices * single_result[name] / peaks[name] for name in peaks},
        "training": [
            {
                "name": contestant.name,
                "precision": contestant.precision,
                "subwords_per_second": contestant.speed,
                "rounds": contestant.speeds,
                "mean_loss": sum(contestant.losses) / len(contestant.losses),
                "share_of_peak": 6 * matrices * contestant.speed / peaks[contestant.precision],
            }
            for contestant in training.values()
        ],
        "path": [{**asdict(path), "scores": [round(score, 4) for score in path.scores]} for path in paths],
        "ratios": [
            *(
                _goal(f"{a} : {b}", training[a].speed / training[b].speed, goal)
                for a, b, goal in TRAINING_GOALS
            ),
            *(
                _goal(f"path, {our_name} : {b}", seconds[b] / seconds[our_name], goal)
                for b, goal in PATH_GOALS
            ),
            *(_goal(f"path, {OURS} : {b}", seconds[b] / seconds[OURS], None) for b, _ in PATH_GOALS),
            _goal(
                f"path, {HEAD_MOVES} : {STATES_EACH_TIME}",
                seconds[STATES_EACH_TIME] / seconds[HEAD_MOVES],
                HEAD_GOAL,
            ),
        ],
    }


def markdown(results: dict[str, Any]) -> list[str]:
    """Return the tables of a result."""
    peaks = ", ".join(f"{name} {peak:.0f}" for name, peak in results["gflops_peak"].items())
    lines = [
        f"{results['machine']}, one thread; {results['shape']} shape; "
        f"mean length {results['mean_length']:.1f} "
        f"subwords; GFLOP/s of one layer: {peaks}",
        "",
        "| training | precision | real subwords/s | share of peak | mean loss |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {row['name']} | {row['precision']} | {row['subwords_per_second']:.0f} "
        f"| {row['share_of_peak']:.0%} | {row['mean_loss']:.3f} |"
        for row in results["training"]
    ]
    lines += [
        f"| products alone | {name} | | {share:.0%} | |"
        for name, share in results["share_of_products_alone"].items()
    ]
    lines += ["", "| path | precision | seconds | points |", "|---|---|---|---|"]
    lines += [
        f"| {row['name']} | {row['precision']} | {row['seconds']:.1f} | {len(row['scores'])} |"
        for row in results["path"]
    ]
    lines += ["", "| ratio | measured | goal |", "|---|---|---|"]
    lines += [
        f"| {row['name']} | {row['measured']:.2f} | {row['goal'] or '–'} |" for row in results["ratios"]
    ]
    return lines


def _goal(name: str, value: float, goal: float | None) -> dict[str, Any]:
    return {"name": name, "measured": value, "goal": goal}


def _machine() -> str:
    """Name the processor, not the machine."""
    try:
        names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), flags=re.MULTILINE)
    except OSError:
        names = []
    name = names[0] if names else platform.processor() or platform.machine()
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


if __name__ == "__main__":
    main()
