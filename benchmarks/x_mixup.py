"""Compare the cost of X-Mixup and translate-train on the same pairs: time and memory, as ratios of one run.

    python benchmarks/x_mixup.py                # about a minute
    python benchmarks/x_mixup.py --shape base   # multilingual BERT's shape; longer
    python benchmarks/x_mixup.py --quick        # does it work? Its numbers mean nothing.

Every way reads the same labelled pairs of texts and their translations, and updates as often, with as many
rows an update; the paper's layer for classification mixes, the first. "Only pairs" denotes X-Mixup without
mixing, schedule and consistency, which is translate-train with different batches. Each way has a separate
process. On a CPU, times are processor times on one thread, to reduce the influence of other programs.
"""

import argparse
import json
import os
import statistics
import tempfile
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
import torch

from isogloss.core.run_parts import Optimization
from isogloss.core.run_parts import with_fields
from isogloss.data.examples import SentencePair
from isogloss.methods.plain import TranslateTrain
from isogloss.features.x_mixup.method import XMixup
from isogloss.tasks import TASKS
from isogloss.training.setting import Setting
from material import SHAPES, make_material
from turns import run_in_turns, now, peak_above, resident

SIZES = {"small": (8, 1), "base": (2, 1)}
"""Updates and rounds."""
QUICK = (2, 1)
PAIRS = 16
"""Pairs of an update: 32 rows."""

PLAIN = "translate-train"
WAYS = {
    PLAIN: TranslateTrain(),
    "pairs alone": XMixup(ratio=0.0, mse=0.0, kl=0.0, schedule=False),
    "constant ratio": XMixup(learned_ratio=False),
    "x-mixup": XMixup(),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SIZES, default="small")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    updates, rounds = QUICK if arguments.quick else SIZES[arguments.shape]
    if arguments.way:
        print(json.dumps(measure_way(arguments.way, arguments.folder, updates, arguments.precision)))
        return
    with tempfile.TemporaryDirectory() as folder:
        shape = "tiny" if arguments.quick else arguments.shape
        make_material(Path(folder), SHAPES[shape], sentences=1)
        if arguments.quick:
            rounds_by_way = {
                way: [measure_way(way, Path(folder), updates, arguments.precision)] for way in WAYS
            }
        else:
            options = ["--folder", folder, "--shape", shape, "--precision", arguments.precision]
            rounds_by_way = run_in_turns(__file__, WAYS, rounds, options)
    print("\n".join(table(rounds_by_way, f"{shape}, {2 * PAIRS} rows an update, {arguments.precision}")))


def table(rounds_by_way: dict[str, list[dict[str, float]]], text: str) -> list[str]:
    """Return the times and peaks, and their ratios to translate-train."""
    seconds = {
        way: statistics.median(run["seconds"] for run in rounds) for way, rounds in rounds_by_way.items()
    }
    peak = {way: statistics.median(run["peak"] for run in rounds) for way, rounds in rounds_by_way.items()}
    lines = [f"{text}:", "", "| training | seconds an update | : plain | MiB above start | : plain | loss |"]
    lines.append("|---|---|---|---|---|---|")
    for way, rounds in rounds_by_way.items():
        times = seconds[way] / seconds[PLAIN]
        larger = peak[way] / peak[PLAIN]
        row = f"| {way} | {seconds[way]:.3f} | {times:.2f} | {peak[way]:.0f} | {larger:.2f} |"
        lines.append(f"{row} {rounds[0]['loss']:.2f} |")
    return lines


def measure_way(way: str, folder: Path, updates: int, precision: str) -> dict[str, float]:
    """Train once after a warm-up update, and return seconds per update, peak memory and mean loss."""
    torch.set_num_threads(1)
    train(way, folder, pairs(PAIRS), precision)
    examples = pairs(updates * PAIRS)
    memory = resident()
    start = now()
    loss = train(way, folder, examples, precision)
    return {"seconds": (now() - start) / updates, "peak": peak_above(memory), "loss": loss}


def train(way: str, folder: Path, examples: dict[str, list[SentencePair]], precision: str) -> float:
    """Train for one epoch with the method itself, loading and encoding included, and return the loss."""
    size = 2 * PAIRS if way == PLAIN else PAIRS
    with tempfile.TemporaryDirectory() as work:
        setting = Setting(
            task=TASKS["nli"],
            start=str(folder / "encoder"),
            train=examples.__getitem__,
            dev=lambda _: examples["en"][:1],
            source=("en",),
            target=("xx",),
            optimization=with_fields(
                Optimization(), epochs=1, batch_size=size, precision=precision, checkpoint_every=0
            ),
            folder=Path(work),
            seed=0,
        )
        method: Any = WAYS[way]
        return statistics.fmean(row["loss"] for row in method.train(setting).rows if "loss" in row)


def pairs(count: int) -> dict[str, list[SentencePair]]:
    """Draw pairs of texts, translations of about their length, and those translated back."""
    rng = np.random.Generator(np.random.PCG64(0))
    texts = [
        rng.integers(5000, size=n) for n in rng.lognormal(2.6, 0.5, 2 * count).round().clip(3, 50).astype(int)
    ]
    corpora: dict[str, list[SentencePair]] = {}
    for language in ("en", "en-xx", "en-xx-en"):
        texts_in_language = [translate_text(text, rng) if language != "en" else text for text in texts]
        words = [" ".join(f"w{index}" for index in text) for text in texts_in_language]
        corpora[language] = [
            SentencePair(
                id=str(n), first=words[2 * n], second=words[2 * n + 1], label=TASKS["nli"].labels[n % 3]
            )
            for n in range(count)
        ]
    return corpora


def translate_text(text: Any, rng: np.random.Generator) -> Any:
    """Draw other words, about as many."""
    return rng.integers(5000, size=max(2, round(len(text) * rng.normal(1.0, 0.15))))


if __name__ == "__main__":
    main()
