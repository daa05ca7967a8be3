"""Measure the training speed of the papers' encoders: TFLOP/s by the plan's count, and memory.

    python benchmarks/paper_encoders.py             # on a GPU a minute
    python benchmarks/paper_encoders.py --capture   # updates as CUDA graphs
    python benchmarks/paper_encoders.py --quick     # does it work? Its numbers mean nothing.

Real loops (``fit``) in one process, on encoders of the papers' shapes with weights of random numbers.
``isogloss run RECIPE --dry-run`` counts operations for rows of 128 subwords, whatever the real lengths. "of
the plan" is the value for its ``--speed``, for rows of maximum length and for mean sentences of a treebank.
The first updates are not timed.
"""

import argparse
from dataclasses import dataclass
from time import perf_counter

import torch

from isogloss.core.run_parts import Architecture, Updates
from isogloss.runs.estimates import training_operations
from isogloss.tasks import TASKS
from isogloss.tasks.masked_lm import masked_lm_loss
from isogloss.training.fit import Callback, Callbacks, Note, fit
from isogloss.training.memory import (
    Load,
    Machine,
    measured_peak,
    restart_measurement,
    shape_of,
    training_memory,
)
from isogloss.training.precision import device
from material import SHAPES
from training_memory import LENGTH, draw_masked, new_model, draw_tagged

XLM_R = {"family": "xlm-roberta", "vocabulary": 250_002}
ENCODERS = {
    "mBERT": SHAPES["base"],
    "XLM-R base": Architecture(layers=12, dim=768, heads=12, feed_forward=3072, **XLM_R),
    "XLM-R large": Architecture(layers=24, dim=1024, heads=16, feed_forward=4096, **XLM_R),
}
SENTENCE = 36
"""Subwords of a treebank's mean sentence, special ones included."""

HEADER = (
    "| | rows | precision | ms an update | subwords/s | TFLOP/s | of the plan | peak, GB | estimate |\n"
    "|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True)
class Size:
    """Rows of a batch (fine-tuning's, and blocks of pretraining), and updates: timed, and before."""

    rows: int = 32
    blocks: int = 128
    updates: int = 40
    warm: int = 5


QUICK = Size(rows=4, blocks=4, updates=1, warm=1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    parser.add_argument("--capture", action="store_true", help="make updates of a shape CUDA graphs")
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "float32"])
    options = parser.parse_args()
    encoders = {"tiny": SHAPES["tiny"]} if options.quick else ENCODERS
    size = QUICK if options.quick else Size()
    where = torch.cuda.get_device_name() if device().type == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}\n")
    print(HEADER)
    for precision in options.precisions:
        updates = Updates(learning_rate=1e-5, precision=precision, capture=options.capture)
        for name, shape in encoders.items():
            for length in (LENGTH, SENTENCE):
                measurement = measure(shape, length, size, updates=updates)
                print(line(f"{name}, tagging", measurement), flush=True)
        paper = SHAPES["tiny" if options.quick else "paper"]
        measurement = measure(paper, LENGTH, size, updates=updates, pretrains=True)
        print(line("8 layers, masked LM", measurement), flush=True)


@dataclass(frozen=True)
class Measurement:
    """Speed and memory of a training."""

    rows: int
    length: int
    precision: str
    seconds: float
    """Seconds of an update."""
    operations: float
    """Floating-point operations of an update."""
    planned_operations: float
    """Floating-point operations of an update by the plan, which counts rows as long as ``LENGTH``."""
    peak: int
    """Peak of allocated memory in bytes. Replays of a CUDA graph allocate nothing, so with ``capture`` it is
    the peak of the updates before them."""
    estimate: int
    """Estimated peak in bytes."""

    @property
    def speed(self) -> float:
        """TFLOP/s."""
        return self.operations / self.seconds / 1e12

    @property
    def planned_speed(self) -> float:
        """TFLOP/s by the plan's count."""
        return self.planned_operations / self.seconds / 1e12


def measure(
    shape: Architecture, length: int, size: Size, *, updates: Updates, pretrains: bool = False
) -> Measurement:
    """Train for some updates, and return their speed and memory."""
    with torch.device(device()):  # Random weights are drawn where they are used: a GPU draws them faster.
        model = new_model(shape, pretrains=pretrains)
    rows = size.blocks if pretrains else size.rows
    batches = [
        draw_masked(shape, rows) if pretrains else draw_tagged(shape, rows, length)
        for _ in range(size.warm + size.updates)
    ]
    loss = masked_lm_loss if pretrains else TASKS["upos"].loss
    label_count = len(batches[0].gold) if pretrains else 0
    if updates.capture:
        rounding = {} if pretrains else {"padding": 1, "longest": LENGTH, "words": True}
        batches = [batch.rounded(**rounding) for batch in batches]
    times: list[float] = []

    def note_time(done: int) -> list[Note]:
        if done in (size.warm, len(batches)):
            wait_for_gpu()
            times.append(perf_counter())
        if done == size.warm and not updates.capture:
            restart_measurement()
        return []

    watch = Callbacks(periodic=(Callback(rows=note_time, every=size.warm),))
    restart_measurement()
    fit(model, batches, loss, updates=updates, seed=0, callbacks=watch)
    sizes = shape_of(model.config)
    share = label_count / (rows * length)
    operations, planned_operations = (
        training_operations(sizes, rows * subwords, subwords, predicted=share)
        for subwords in (length, LENGTH)
    )
    load = Load(rows=rows, length=length, predicted=label_count)
    machine = Machine(half=updates.precision == "bfloat16", gpu=torch.cuda.is_available())
    return Measurement(
        rows=rows,
        length=length,
        precision=updates.precision,
        seconds=(times[1] - times[0]) / size.updates,
        operations=operations,
        planned_operations=planned_operations,
        peak=measured_peak() or 0,
        estimate=training_memory(sizes, load, updates, machine, best_weights=False),
    )


def wait_for_gpu() -> None:
    """Wait until the GPU, if any, has computed everything."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def line(text: str, measurement: Measurement) -> str:
    """Return a measurement as a row of a table."""
    cells = [
        text,
        f"{measurement.rows} × {measurement.length}",
        measurement.precision,
        f"{measurement.seconds * 1e3:.1f}",
        f"{measurement.rows * measurement.length / measurement.seconds:,.0f}",
        f"{measurement.speed:.3g}",
        f"{measurement.planned_speed:.3g}",
        f"{measurement.peak / 1e9:.2f}",
        f"{measurement.estimate / 1e9:.2f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
