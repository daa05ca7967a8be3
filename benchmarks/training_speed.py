"""Fine-tuning: real subwords a second of process time, ours and Trainer's, in turns."""

from functools import partial
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from foreign import trainer
from isogloss.encoders.computation import fastest_attention
from isogloss.tasks.task import Task
from isogloss.tasks.batch import EncodedRow, collate
from isogloss.tasks.tagging import UPOS
from isogloss.training.batching import Bucketed
from isogloss.training.fit import fit
from isogloss.core.run_parts import Updates
from material import BATCH, Material


@dataclass
class Contestant:
    """A way to train, with its speed and mean loss in each round."""

    name: str
    precision: str
    prepare: Callable[[], Callable[[], float]]
    """Create a model, and return the function that trains it for one epoch and returns the mean loss."""
    speeds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)


def contest(material: Material, *, rounds: int) -> dict[str, Contestant]:
    """Let everyone train in turns, so that whatever else the machine does slows all alike."""
    for contestant in _contestants(Material(material.folder, material.sentences[:BATCH])):
        contestant.prepare()()  # One step of each warms caches and kernels up.
    contestants = _contestants(material)
    for _ in range(rounds):
        for contestant in contestants:
            train = contestant.prepare()
            start = time.process_time()
            contestant.losses.append(train())
            contestant.speeds.append(material.subwords / (time.process_time() - start))
    return {contestant.name: contestant for contestant in contestants}


def _contestants(material: Material) -> list[Contestant]:
    def theirs(make: Callable[[], Any]) -> Callable[[], Callable[[], float]]:
        def prepare() -> Callable[[], float]:
            result = make()
            return lambda: result.train().training_loss

        return prepare

    def fine_tuned(precision: str) -> Callable[[], Callable[[], float]]:
        return partial(ours, material, precision)

    return [
        Contestant("Trainer, padded to 128", "float32", theirs(partial(trainer, material, pad_to=128))),
        Contestant("isogloss, float32", "float32", fine_tuned("float32")),
        Contestant("Trainer, dynamic padding", "float32", theirs(partial(trainer, material))),
        Contestant("isogloss, bfloat16", "bfloat16", fine_tuned("bfloat16")),
        Contestant(
            "Trainer, grouped by length",
            "bfloat16",
            theirs(partial(trainer, material, is_grouped=True, bfloat16=True)),
        ),
    ]


def ours(
    material: Material, precision: str, *, task: Task = UPOS, rows: list[EncodedRow] | None = None
) -> Callable[[], float]:
    """Train as ``fine_tune`` does, without its evaluation. Some tasks need separate ``rows``."""
    model = task.head(material.folder, seed=0, attention=fastest_attention())
    updates = Updates(learning_rate=2e-5, precision=precision)

    def train() -> float:
        notes = fit(model, batches(material, rows), task.loss, updates=updates, seed=0)
        return statistics.fmean(float(row["loss"]) for row in notes)

    torch.manual_seed(0)
    return train


def batches(material: Material, rows: list[EncodedRow] | None = None) -> Bucketed:
    """Return the batches of one epoch."""
    return Bucketed(
        groups={"": rows or material.rows},
        length=lambda row: len(row.subwords),
        size=BATCH,
        epochs=1,
        seed=0,
        make=lambda choice, *_: collate(choice, padding=material.tokenizer.pad_token_id),
    )


def products_alone(material: Material, precision: str, *, rounds: int) -> float:
    """Return the real subwords a second of only an epoch's products of matrices, in batches of isogloss.

    The products are those in the layers and in attention, forwards and backwards, on existing matrices.
    Training with these products cannot be faster.
    """
    model = UPOS.head(material.folder, seed=0)
    dtype = getattr(torch, precision)
    config = model.config
    layers = [part.weight.detach().to(dtype) for part in model.modules() if isinstance(part, torch.nn.Linear)]
    seconds = 0.0
    for index in range(len(batches(material))):
        rows, length = batches(material)[index].subwords.shape
        heads = rows * config.num_attention_heads
        states = torch.ones(heads, length, config.hidden_size // config.num_attention_heads, dtype=dtype)
        weights = torch.ones(heads, length, length, dtype=dtype)
        sides = [[torch.ones(rows * length, size, dtype=dtype) for size in w.T.shape] for w in layers[:-1]]
        best_text = float("inf")
        for _ in range(rounds):
            start = time.process_time()
            for (inputs, gradients), weight in zip(sides, layers[:-1], strict=True):  # Without the head.
                torch.mm(inputs, weight.T), torch.mm(gradients, weight), torch.mm(gradients.T, inputs)
            for _ in range(config.num_hidden_layers):
                for matrix in (weights, weights, weights.mT, weights.mT):
                    torch.bmm(matrix, states)
                torch.bmm(states, states.mT), torch.bmm(states, states.mT)
            best_text = min(best_text, time.process_time() - start)
        seconds += best_text
    return material.subwords / seconds
