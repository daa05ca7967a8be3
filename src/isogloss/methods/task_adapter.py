"""MAD-X: an adapter of the task on the encoder, and on the adapter of the language where it has one.

Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer", Section
3.2. The adapters of languages are trained on text before (``modules`` of a pretraining, with ``trained =
"modules"``) and stay as they are; those of the task learn on the source language's and are then read on the
target language's.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from isogloss.core.run_parts import Positive
from isogloss.encoders.added.differences import write_difference
from isogloss.encoders.added.task_adapter import (
    TASK_FILE,
    adapted_parameters,
    add_task_adapter,
    write_task_adapter,
)
from isogloss.encoders.family import Model
from isogloss.nn.frozen import freeze, thaw
from isogloss.training.memory import Shape
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared


@dataclass(frozen=True, kw_only=True)
class TaskAdapter(Peft):
    """A bottleneck after each feed-forward, behind the language's; all else but the head is frozen."""

    name: ClassVar[str] = "adapter"

    reduction: Positive = 16
    """How many times narrower than the states the bottleneck is; 16 in the paper (48 of 768)."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of the bottlenecks."""
        return 2 * shape.layers * shape.dim * (shape.dim // self.reduction)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Put one into every layer; a model that was fine-tuned so is trained further in its own."""
        model = setting.model
        add_task_adapter(model, self.reduction, seed=setting.seed)
        alone = {id(one) for one in adapted_parameters(model).values()}
        freeze(one for one in model.parameters() if id(one) not in alone)
        return Prepared()

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Keep the adapters and the head."""
        thaw(model)
        return partial(_write, model, base)


def _write(model: Model, base: str, folder: Path) -> None:
    write_difference(folder, base, form="task-adapter", weights=TASK_FILE)
    write_task_adapter(model, folder, head=True)
