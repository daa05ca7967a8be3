"""What all runs that are made together have in common: store, data, precision, progress."""

from dataclasses import dataclass, replace

import torch

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Row
from isogloss.core.runs import Encoder, Optimization, Pretrained, TrainTranslator
from isogloss.data.result_files import Predictions
from isogloss.data.sources import Sources
from isogloss.experiments.store import Store

WORK = "work"
"""What only an unfinished run needs: checkpoints, tokenized text."""


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Where runs are made: the store, the data, someone to tell, and what all runs have in common."""

    store: Store
    sources: Sources
    on_progress: OnProgress = no_progress
    threads: int = 1
    """Threads of a run on the processor. Sums depend on it in their last bits, so it follows neither from
    the machine nor from how many runs are made side by side."""
    precision: str = "auto"
    """What "auto" comes to."""

    def encoder(self, encoder: Encoder | TrainTranslator) -> str:
        """Return the folder (or hub name) of an encoder, or of a translation model."""
        if isinstance(encoder, Pretrained):
            return self.sources.encoder(encoder)
        return str(self.store.model(encoder))

    def settled(self, precision: str) -> str:
        """Return the precision a run is made in."""
        return self.precision if precision == "auto" else precision

    def optimization(self, asked: Optimization) -> Optimization:
        """Return an optimization with its precision settled."""
        return replace(asked, precision=self.settled(asked.precision))


@dataclass(frozen=True)
class RunResult:
    """What making a run gave beside files."""

    rows: list[Row]
    warnings: tuple[str, ...] = ()
    predictions: tuple[Predictions, ...] = ()


def device() -> torch.device:
    """Return what runs are made on."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
