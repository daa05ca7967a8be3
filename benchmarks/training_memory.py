"""Train models of several shapes for a few steps, and compare the estimated and measured peak of memory.

    python benchmarks/training_memory.py [--shapes small base] [--out FILE]

Each training is a separate process, with one thread and random weights: real loops (``fit``), all rows as
long as the limit. Measured is the largest resident size of the process, on a GPU what torch allocated at
most. The ratio is estimate / measured, of the whole process (with what this one took before it made a model)
and of what the training adds.
"""

import argparse
import json
import resource
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import torch
from torch import nn
from transformers import AutoModelForMaskedLM, AutoModelForTokenClassification

from isogloss.core.run_parts import Architecture, Updates
from isogloss.encoders import FAMILIES
from isogloss.encoders.computation import fastest_attention
from isogloss.features.pretraining.starts import set_dropout
from isogloss.features.pretraining.starts import config_of
from isogloss.tasks import TASKS
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.tasks.masked_lm import MaskedBatch, masked_lm_loss
from isogloss.training.fit import Callbacks, fit
from isogloss.training.memory import Load, Machine, measured_peak, shape_of, training_memory

SHAPES = {
    "tiny": Architecture(layers=4, dim=256, heads=4, feed_forward=1024, vocabulary=12000),
    "small": Architecture(layers=6, dim=512, heads=8, feed_forward=2048, vocabulary=30000),
    "base": Architecture(layers=12, dim=768, heads=12, feed_forward=3072, vocabulary=30000),
    "xlm-r": Architecture(
        family="xlm-roberta", layers=12, dim=768, heads=12, feed_forward=3072, vocabulary=250_000
    ),
}
HOW = {
    "plain": Updates(),
    "checkpointing": Updates(gradient_checkpointing=True),
    "accumulation 4": Updates(accumulation=4),
    "both": Updates(accumulation=4, gradient_checkpointing=True),
    "8-bit": Updates(optimizer_states="8-bit"),  # With bitsandbytes.
}
STEPS = 3
LENGTH = 128


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--shapes", nargs="+", default=["tiny", "small", "base"], choices=SHAPES)
    parser.add_argument("--families", nargs="+", default=[])
    parser.add_argument("--kinds", nargs="+", default=["fine-tune", "pretrain"])
    parser.add_argument("--how", nargs="+", default=list(HOW)[:4], choices=HOW)
    parser.add_argument("--precisions", nargs="+", default=["float32"])
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure_training(*json.loads(options.one))))
        return
    print("| kind | shape | rows | how | precision | measured | estimate | ratio | of what it adds |")
    print("|---|---|---|---|---|---|---|---|---|")
    cases = product(options.kinds, options.shapes, options.families or [""], options.how, options.precisions)
    rows = []
    for kind, shape, family, way, precision in cases:
        case = [kind, shape, family, way, precision, options.rows]
        command = [sys.executable, __file__, "--one", json.dumps(case)]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        if process.returncode:
            sys.exit(process.stderr)
        rows.append(json.loads(process.stdout.splitlines()[-1]))
        print(line(rows[-1]), flush=True)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def line(row: dict) -> str:
    """Return a measurement as a row of a table."""
    added_bytes = row["estimate"] - row["program"]
    estimate = row["before"] + added_bytes
    measured_bytes = row["measured"]
    sizes = [f"{size / 1e6:,.0f} MB" for size in (measured_bytes, estimate)]
    ratios = [f"{estimate / measured_bytes:.2f}", f"{added_bytes / (measured_bytes - row['before']):.2f}"]
    return f"| {' | '.join([*map(str, row['asked']), *sizes, *ratios])} |"


def measure_training(kind: str, name: str, family: str, way: str, precision: str, rows: int) -> dict:
    """Train in this process, and return the sizes in bytes."""
    torch.set_num_threads(1)
    shape = replace(SHAPES[name], family=family or SHAPES[name].family)
    pretrains = kind == "pretrain"
    updates = replace(HOW[way], precision=precision)
    new_model(replace(shape, layers=1, dim=64, heads=1, feed_forward=64, vocabulary=10), pretrains=pretrains)
    memory = resident()
    gpu_is_available = torch.cuda.is_available()
    model = new_model(shape, pretrains=pretrains)
    make, loss = (draw_masked, masked_lm_loss) if pretrains else (draw_tagged, TASKS["upos"].loss)
    callbacks = (
        Callbacks() if pretrains else Callbacks(evaluate=lambda step: [{"score": step}], evaluate_at=(1, 2))
    )
    batches = [make(shape, rows) for _ in range(STEPS)]
    fit(model, batches, loss, updates=updates, seed=0, callbacks=callbacks)
    machine = Machine(half=precision == "bfloat16", gpu=gpu_is_available)
    label_count = len(batches[0].gold) if pretrains else 0
    load = Load(rows=rows, length=LENGTH, predicted=label_count)
    estimate = training_memory(shape_of(model.config), load, updates, machine, best_weights=not pretrains)
    return {
        "asked": [kind, " ".join(value for value in (name, family) if value), rows, way, precision],
        "measured": measured_peak(),  # Not from getrusage, which begins with the parent's peak.
        "estimate": estimate,
        "program": machine.program,
        "before": 0 if gpu_is_available else memory,
    }


def resident() -> int:
    """Return the resident size of this process in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()


def new_model(shape: Architecture, *, pretrains: bool, dropout: bool = True) -> nn.Module:
    """Make a model of random weights. Without ``dropout``, and for pretraining, it has none."""
    config = config_of(shape)
    if pretrains or not dropout:
        set_dropout(config, 0.0)
    config.num_labels = len(TASKS["upos"].labels)
    attention = "eager" if "attention-kinds" in FAMILIES[shape.family].lacks else fastest_attention()
    kind = AutoModelForMaskedLM if pretrains else AutoModelForTokenClassification
    return kind.from_config(config, attn_implementation=attention)


def draw_tagged(shape: Architecture, rows: int, length: int = LENGTH) -> Batch:
    """Draw rows in which every second subword begins a word."""
    places = tuple(range(1, length - 1, 2))
    subwords = torch.randint(5, shape.vocabulary, (rows, length)).tolist()
    return collate(
        [
            EncodedRow(example=index, subwords=row, positions=places, words=places, gold=(0,) * len(places))
            for index, row in enumerate(subwords)
        ],
        padding=1,
    )


def draw_masked(shape: Architecture, rows: int) -> MaskedBatch:
    """Draw rows in which about 15 % of the subwords are predicted."""
    subwords = torch.randint(5, shape.vocabulary, (rows, LENGTH))
    places = torch.arange(0, rows * LENGTH, 7)
    gold = subwords.flatten()[places]
    return MaskedBatch(subwords=subwords, mask=None, positions=None, masked=places, gold=gold)


if __name__ == "__main__":
    main()
