"""Measure the parts of the time of a training step, by kind of operation, for several kinds of training.

    python benchmarks/step_parts.py [--shape small] [--precision float32] [--kinds tagging NLI] [--out FILE]

Every kind is trained by the method itself, without counting loading and encoding. Times are torch's count of
each operation on one thread, whose shares depend little on other programs.
"""

from functools import partial
import argparse
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import torch
from torch.profiler import ProfilerActivity, profile

import adjustment
import pretraining
import training_speed
import x_mixup
from isogloss.data.examples import Question
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.question_answering.task import QA
from material import BATCH, SHAPES, make_material

STEPS = 2
PASSAGE = 5
PASSAGE_SUBWORDS = 256
"""Sentences of a passage, and the subwords that are read of it, with the question's: a row of question
answering is the longest of all tasks'."""
OPERATIONS = {
    "matrices": ("addmm", "mm", "bmm", "matmul", "linear", "mkldnn", "baddbmm"),
    "softmax": ("softmax",),
    "GELU": ("gelu",),
    "norms": ("norm",),
    "optimizer": ("_fused_adamw", "foreach", "lerp", "addcmul", "addcdiv"),
    "dropout and masks": ("bernoulli", "dropout", "random", "mul", "div", "where", "mask"),
    "copies": ("copy", "cat", "clone", "contiguous"),
    "embeddings": ("embedding", "index", "gather", "scatter"),
}
"""Kinds of operations, by parts of their names. The first match counts."""
HEADS = (*OPERATIONS, "other")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"| training, {options.shape}, {options.precision} | step, ms | {' | '.join(HEADS)} |")
    print(f"|{'---|' * (len(HEADS) + 2)}")
    rows = {}
    for kind in options.kinds:
        with tempfile.TemporaryDirectory() as folder:
            rows[kind] = measure_parts(KINDS[kind](Path(folder), options.shape, options.precision))
        parts = " | ".join(f"{rows[kind][head]:.0%}" for head in HEADS)
        print(f"| {kind} | {rows[kind]['milliseconds']:.0f} | {parts} |", flush=True)
    if options.out:
        options.out.write_text(
            json.dumps({"shape": options.shape, "precision": options.precision, "kinds": rows}, indent=1)
            + "\n",
            encoding="utf-8",
        )


def measure_parts(train: Callable[[], object]) -> dict[str, float]:
    """Train twice, the second time with torch's profiler, and return shares of time by kind of operation."""
    train()
    with profile(activities=[ProfilerActivity.CPU]) as operations:
        train()
    seconds = Counter[str]()
    for event in operations.key_averages():
        seconds[kind_of(event.key.lower())] += event.self_cpu_time_total / 1e6
    total = seconds.total()
    return {"milliseconds": 1000 * total / STEPS} | {head: seconds[head] / total for head in HEADS}


def kind_of(operation: str) -> str:
    return next((kind for kind, parts in OPERATIONS.items() if any(p in operation for p in parts)), "other")


def tagging(folder: Path, shape: str, precision: str) -> Callable[[], object]:
    material = make_material(folder, SHAPES[shape], sentences=STEPS * BATCH)
    assert material.rows
    return training_speed.ours(material, precision)


def answering(folder: Path, shape: str, precision: str) -> Callable[[], object]:
    material = make_material(folder, SHAPES[shape], sentences=STEPS * BATCH * PASSAGE)
    words = [" ".join(sentence.words) for sentence in material.sentences]
    questions = [
        Question(
            id=str(index),
            passage=" ".join(words[index : index + PASSAGE]),
            question=words[index],
            answers=((0, words[index]),),
        )
        for index in range(0, len(words), PASSAGE)
    ]
    rows = QA.encode(questions, material.tokenizer, limit=PASSAGE_SUBWORDS)[: STEPS * BATCH]
    return training_speed.ours(material, precision, task=QA, rows=rows)


def mixing(way: str) -> Callable[[Path, str, str], Callable[[], object]]:
    """Train on pairs of texts and their translations, mixed or not."""

    def prepare_training(folder: Path, shape: str, precision: str) -> Callable[[], object]:
        make_material(folder, SHAPES[shape], sentences=1)
        examples = x_mixup.pairs(STEPS * x_mixup.PAIRS)
        return partial(x_mixup.train, way, folder, examples, precision)

    return prepare_training


def adjusting(folder: Path, shape: str, precision: str) -> Callable[[], object]:
    make_material(folder, SHAPES[shape], sentences=1)
    encoder = folder / "encoder"
    pairs = adjustment.sentence_pairs(STEPS * BATCH, load_tokenizer(encoder))
    return partial(adjustment.ours, encoder, pairs, precision)


def make_pretraining(folder: Path, shape: str, precision: str) -> Callable[[], object]:
    text = pretraining.text_of(folder, shape=SHAPES[shape], steps=STEPS, budget=1024)
    return pretraining.ours(text, SHAPES[shape], precision)


KINDS = {
    "tagging": tagging,
    "QA": answering,
    "NLI": mixing(x_mixup.PLAIN),
    "X-Mixup, NLI": mixing("x-mixup"),
    "adjustment": adjusting,
    "masked LM": make_pretraining,
}

if __name__ == "__main__":
    main()
