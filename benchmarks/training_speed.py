"""Fine-tuning: real subwords a second of process time, ours and Trainer's, in turns."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from foreign import trainer
from isogloss.encoders import fastest_attention
from isogloss.tasks.batch import collate
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
    """Make a fresh model; return what trains it for one epoch and gives the mean loss."""
    speeds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)

    @property
    def speed(self) -> float:
        return statistics.median(self.speeds)


def contest(material: Material, *, rounds: int) -> dict[str, Contestant]:
    """Let everyone train in turns, so that whatever else the machine does slows all alike."""
    for one in _contestants(Material(material.folder, material.sentences[:BATCH])):
        one.prepare()()  # One step of each warms caches and kernels up.
    contestants = _contestants(material)
    for _ in range(rounds):
        for one in contestants:
            train = one.prepare()
            start = time.process_time()
            one.losses.append(train())
            one.speeds.append(material.subwords / (time.process_time() - start))
    return {one.name: one for one in contestants}


def _contestants(material: Material) -> list[Contestant]:
    def theirs(**how: object) -> Callable[[], Callable[[], float]]:
        def prepare() -> Callable[[], float]:
            made = trainer(material, **how)
            return lambda: made.train().training_loss

        return prepare

    def ours(precision: str) -> Callable[[], Callable[[], float]]:
        return lambda: _ours(material, precision)

    return [
        Contestant("Trainer, padded to 128", "float32", theirs(pad_to=128)),
        Contestant("isogloss, float32", "float32", ours("float32")),
        Contestant("Trainer, dynamic padding", "float32", theirs()),
        Contestant("isogloss, bfloat16", "bfloat16", ours("bfloat16")),
        Contestant("Trainer, grouped by length", "bfloat16", theirs(grouped=True, bfloat16=True)),
    ]


def _ours(material: Material, precision: str) -> Callable[[], float]:
    """Train as ``fine_tune`` does, without its evaluation."""
    model = UPOS.head(material.folder, seed=0, attention=fastest_attention())
    batches: Bucketed = Bucketed(
        groups={"": material.rows},
        length=lambda row: len(row.subwords),
        size=BATCH,
        epochs=1,
        seed=0,
        make=lambda rows, *_: collate(rows, padding=material.tokenizer.pad_token_id),
    )
    updates = Updates(learning_rate=2e-5, precision=precision)

    def train() -> float:
        rows = fit(model, batches, UPOS.loss, updates=updates, seed=0)
        return statistics.fmean(float(row["loss"]) for row in rows)

    torch.manual_seed(0)
    return train
