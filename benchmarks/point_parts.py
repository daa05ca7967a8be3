"""Measure the parts of the time of a point of a path: mixing, forward, decoding and scoring, for four tasks.

    python benchmarks/point_parts.py [--examples 200] [--points 5] [--out FILE]

The shipped encoder with random heads, on the built-in languages' dev data, encoded and batched once as for a
whole study. Times are of this process on one thread, the median of the points. The floor is the operations
of the real subwords' forward passes at the speed of one layer at best.
"""

import argparse
import json
import os
import statistics
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.

import torch

from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.sources import Sources
from isogloss.diagnostics.weight_space import moves_on_path, parameter_names, weights_of
from isogloss.features.landscapes.scored_points import visit_points
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.runs.estimates import training_operations
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from isogloss.training.memory import shape_of
from isogloss.training.precision import matrix_speeds

CORPORA = {"upos": "ud", "parsing": "ud", "ner": "wikiann", "nli": "xnli"}
PARTS = ("mixing", "forward", "decoding", "scoring")
ALPHAS = (0.0, 0.25, 0.5, 0.75, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--points", type=int, default=len(ALPHAS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    peak = matrix_speeds("cpu", clock=time.process_time)["float32"]
    rows = [measure_point(task, options.examples, ALPHAS[: options.points], peak) for task in CORPORA]
    print(f"| task | {' | '.join(f'{part}, ms' for part in PARTS)} | a point, ms | floor | score |")
    print(f"|{'---|' * (len(PARTS) + 4)}")
    for row in rows:
        cells = [f"{1000 * row[part]:.1f}" for part in PARTS] + [f"{1000 * row['point']:.1f}"]
        print(f"| {row['task']} | {' | '.join(cells)} | {row['floor']:.0%} | {row['scores'][-1]:.4f} |")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure_point(name: str, examples: int, alphas: tuple[float, ...], peak: float) -> dict[str, Any]:
    """Score points between two models of a task, and return the seconds of each part of a point."""
    task = TASKS[name]
    folder = str(files("isogloss") / "shipped")
    dev = list(Sources().examples(CORPORA[name], "qaa", "dev"))[:examples]
    optimization = with_fields(Optimization(), precision="float32")
    scorer = evaluation(task, dev, load_tokenizer(folder), optimization)
    models = [task.head(folder, seed=seed, attention=fastest_attention()) for seed in (0, 1)]
    names = parameter_names(models[0], "all")
    seconds = {part: [] for part in PARTS}
    scores = []
    ends = [[weight.clone() for weight in weights_of(model, names)] for model in models]
    clock = Clock(seconds)
    for _ in visit_points(models[0], names, alphas, clock.time_part("mixing", moves_on_path(*ends))):
        raw = clock.time_part("forward", scorer.scores)(models[0])
        answers = clock.time_part("decoding", task.decode)(scorer.examples, scorer.rows, raw)
        scores.append(clock.time_part("scoring", score)(task, scorer.gold, answers))
    medians = {part: statistics.median(times) for part, times in seconds.items()}
    subwords = sum(len(row.subwords) for row in scorer.rows)
    operations = training_operations(shape_of(models[0].config), subwords, subwords // len(scorer.rows)) / 3
    point = sum(medians.values())
    return {"task": name, **medians, "point": point, "floor": operations / peak / point, "scores": scores}


def score(task: Any, gold: Any, answers: Any) -> float:
    """Score as a path does, with what each example adds."""
    task.contributions(gold, answers)
    return float(task.score(gold, answers))


class Clock:
    """Collects the seconds of calls, by part."""

    def __init__(self, seconds: dict[str, list[float]]) -> None:
        self.seconds = seconds

    def time_part(self, part: str, work: Any) -> Any:
        def call(*arguments: Any) -> Any:
            start = time.process_time()
            result = work(*arguments)
            self.seconds[part].append(time.process_time() - start)
            return result

        return call


if __name__ == "__main__":
    main()
