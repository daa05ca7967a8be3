"""Batches of meta-learning: one of a language to train on, and one of each language to validate on.

All of it is training text: the part that is validated on is set apart from it (``text_apart``).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from isogloss.core.seeds import derive
from isogloss.tasks.masked_lm import Masking
from isogloss.tasks.text_stream import TextStream
from isogloss.training.meta_learner import MetaBatch
from isogloss.training.optimizer import Schedule, linear_rate
from isogloss.training.text_apart import set_apart
from isogloss.training.text_batches import Drawing, TextBatches


@dataclass(frozen=True, kw_only=True)
class MetaBatches:
    """Batch i, drawn from (seed, i) alone."""

    train: TextBatches
    validation: Mapping[str, TextBatches]
    """By language."""
    pace: Callable[[int], float]
    """From a step to the share of the highest rates."""

    def __len__(self) -> int:
        return len(self.train)

    def __getitem__(self, step: int) -> MetaBatch:
        train = self.train[step]
        return MetaBatch(
            language=str(train.language),
            train=train,
            validation=[batches[step] for batches in self.validation.values()],
            pace=self.pace(step),
        )


@dataclass(frozen=True, kw_only=True)
class Validation:
    """What is validated on."""

    share: float
    """Of each language's training text."""
    batch_subwords: int


def meta_batches(
    streams: Mapping[str, TextStream],
    drawing: Drawing,
    masking: Masking,
    *,
    validation: Validation,
    schedule: Schedule,
    seed: int,
) -> MetaBatches:
    """Set text apart, and draw from both parts; DataError for a language with too little text."""
    parts = {
        code: set_apart(stream, share=validation.share, length=drawing.block - 2, language=code)
        for code, stream in streams.items()
    }
    kept = {code: kept for code, (kept, _) in parts.items()}
    one = replace(drawing, batch_subwords=validation.batch_subwords)
    rate = linear_rate(replace(schedule, learning_rate=1.0), drawing.steps)
    return MetaBatches(
        train=TextBatches(drawing=drawing, streams=kept, masking=masking, seed=derive(seed, "text")),
        validation={
            code: TextBatches(
                drawing=one, streams={code: apart}, masking=masking, seed=derive(seed, "validation", code)
            )
            for code, (_, apart) in parts.items()
        },
        pace=rate,
    )
