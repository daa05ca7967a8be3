"""Compare the cost of meta-learning with joint training: time and memory of a step, as ratios from one run.

    python benchmarks/meta_learning.py                 # about three minutes
    python benchmarks/meta_learning.py --shape paper   # 8 x 512, 32,000 subwords: for a GPU; longer
    python benchmarks/meta_learning.py --quick         # does it work? Its numbers mean nothing.

Joint training is masked language modelling of the same encoder, with the same adapters for two languages, by
the same batches. Each way has a separate process. On a CPU, times are processor times on one thread, to
reduce the influence of other programs.
"""

import argparse
import json
import os
import statistics

os.environ["OMP_NUM_THREADS"] = "1"  # Before torch is imported, which reads it once.

import numpy as np
import torch

from isogloss.core.run_parts import Architecture, Modules
from isogloss.features.pretraining.starts import new_encoder
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss
from isogloss.tasks.masked_lm import TextStream
from isogloss.training.fit import fit
from isogloss.features.meta_learning.algorithm import Validation, meta_batches
from isogloss.features.meta_learning.algorithm import Learning, MetaLearningModel
from isogloss.core.run_parts import Updates
from isogloss.training.batching import BatchSampling
from material import SHAPES
from turns import run_in_turns, now, peak_above, resident

LANGUAGES = ("en", "sw")
SPECIAL = (0, 1, 2, 3, 4)
JOINT = "joint"
WAYS = (JOINT, "first-order", "finite-difference", "exact")
PRECISIONS = ("float32", "bfloat16")
STEPS = 3
WARM = 1
ROUNDS = 2


class Words:
    """A vocabulary of only numbers, for ``new_encoder``."""

    pad_token_id = 0
    cls_token_id = 2
    sep_token_id = 3

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shape", choices=SHAPES, default="small")
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    parser.add_argument("--subwords", type=int, default=4096, help="subwords of a batch")
    parser.add_argument("--quick", action="store_true", help="the smallest size, to see that it works")
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.way:
        print(
            json.dumps(
                measure_way(arguments.way, SHAPES[arguments.shape], arguments.precision, arguments.subwords)
            )
        )
        return
    shape, subwords = ("tiny", 512) if arguments.quick else (arguments.shape, arguments.subwords)
    if arguments.quick:
        rounds_by_way = {
            way: [measure_way(way, SHAPES[shape], arguments.precision, subwords)] for way in WAYS
        }
    else:
        options = ["--shape", shape, "--subwords", str(subwords), "--precision", arguments.precision]
        rounds_by_way = run_in_turns(__file__, WAYS, ROUNDS, options)
    print("\n".join(table(rounds_by_way, f"{shape}, batches of {subwords} subwords, {arguments.precision}")))


def table(rounds_by_way: dict[str, list[dict[str, float]]], text: str) -> list[str]:
    """Return the times and peaks, and their ratios to joint training."""
    seconds = {
        way: statistics.median(run["seconds"] for run in rounds) for way, rounds in rounds_by_way.items()
    }
    peak = {way: max(run["peak"] for run in rounds) for way, rounds in rounds_by_way.items()}
    lines = [f"{text}:", "", "| training | seconds a step | : joint | MiB above the model | : joint |"]
    lines.append("|---|---|---|---|---|")
    for way in rounds_by_way:
        times = seconds[way] / seconds[JOINT]
        larger = peak[way] / peak[JOINT]
        lines.append(f"| {way} | {seconds[way]:.3f} | {times:.2f} | {peak[way]:.0f} | {larger:.2f} |")
    return lines


def measure_way(way: str, shape: Architecture, precision: str, subwords: int) -> dict[str, float]:
    """Train for some steps after a warm-up step, and return seconds per step and peak memory."""
    torch.set_num_threads(1)
    sampling = BatchSampling(steps=WARM + STEPS, batch_subwords=subwords, block=128)
    updates = Updates(learning_rate=1e-4, precision=precision)
    model = new_encoder(shape, Words(shape.vocabulary), seed=0)
    add_modules(model, Modules(kind="adapter"), LANGUAGES, seed=0)
    batches = meta_batches(
        streams(shape.vocabulary),
        sampling,
        Masking(vocabulary=Vocabulary(shape.vocabulary, 2, 3, 0, 4, SPECIAL)),
        validation=Validation(share=0.05, batch_subwords=subwords),
        updates=updates,
        seed=0,
    )
    clock = Clock()
    if way == JOINT:
        fit(model, Timed(batches.train, clock), masked_lm_loss, updates=updates, seed=0)
    else:
        parameters = {language: language_parameters(model, language) for language in LANGUAGES}
        learning = Learning(own_rate=1e-4, inner_rate=1e-4, second_order=way)
        learner = MetaLearningModel(model, parameters, masked_lm_loss, learning=learning, updates=updates)
        fit(learner, Timed(batches, clock), lambda step, batch: step(batch), updates=updates, seed=0)
    return {"seconds": clock.seconds() / STEPS, "peak": clock.peak()}


class Clock:
    """Time and memory from the first step that counts on."""

    def __init__(self) -> None:
        self.before = resident()

    def start(self) -> None:
        self.begun = now()

    def seconds(self) -> float:
        return now() - self.begun

    def peak(self) -> float:
        """Return the maximum MiB in addition to the memory before training."""
        return peak_above(self.before)


class Timed:
    """Batches whose sampling starts the clock once caches are warm."""

    def __init__(self, batches: object, clock: Clock) -> None:
        self.batches = batches
        self.clock = clock

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, step: int) -> object:
        if step == WARM:
            self.clock.start()
        return self.batches[step]


def streams(vocabulary: int) -> dict[str, TextStream]:
    """Draw texts: speed does not depend on what they say."""
    rng = np.random.Generator(np.random.PCG64(0))
    texts = (rng.integers(len(SPECIAL), vocabulary, size=200_000, dtype=np.int32) for _ in LANGUAGES)
    return {
        language: TextStream(text, np.arange(0, len(text), 30))
        for language, text in zip(LANGUAGES, texts, strict=True)
    }


if __name__ == "__main__":
    main()
