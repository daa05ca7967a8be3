"""A small model with dropout, and batches that follow from (seed, step), to train in milliseconds."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from isogloss.core.run_parts import Updates

UPDATES = Updates(learning_rate=0.05, precision="float32")


def no_time():
    """A clock that stands still: checkpoints take no time, so that all that are due are written."""
    return 0.0


@dataclass(frozen=True)
class Points:
    x: Tensor
    y: Tensor

    def to(self, device):
        return Points(self.x.to(device), self.y.to(device))

    def parts(self, count):
        """Cut unevenly, so that shares matter."""
        ends = [0, *sorted({max(1, len(self.y) // 2**index) for index in range(count)})]
        cut = [Points(self.x[a:b], self.y[a:b]) for a, b in pairwise(ends)]
        return [(part, len(part.y) / len(self.y)) for part in cut]


@dataclass
class Drawn:
    """Batch i is drawn from i. Asking for batch ``stop`` ends the process as a crash would."""

    steps: int = 12
    stop: int = -1

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        if step == self.stop:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(8, 6, generator=generator)
        return Points(x, (x.sum(dim=1) > 0).long())


def toy(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 16), nn.LayerNorm(16), nn.Dropout(0.3), nn.ReLU(), nn.Linear(16, 2))


def loss(model, points):
    return nn.functional.cross_entropy(model(points.x).float(), points.y)


def accuracy(model):
    """Score on points no batch has. Asking for it draws random numbers, which must not matter."""
    torch.rand(3)
    points = Drawn(10**6)[999]
    with torch.inference_mode():
        return float((model(points.x).argmax(dim=1) == points.y).float().mean())
