"""A model that was fine-tuned elsewhere, as it is: whatever looks at models looks at it, too."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from isogloss.core.errors import ModelError
from isogloss.encoders import fastest_attention, load_encoder_config, load_tokenizer
from isogloss.training.setting import Method, Reads, Setting, Trained


@dataclass(frozen=True, kw_only=True)
class Given(Method):
    """Train nothing: the model is given, with its head. It counts as trained on the grid's source."""

    name: ClassVar[str] = "given"
    uses: ClassVar[tuple[str, ...]] = ("source",)

    model: str = ""
    """Folder of the model, or its name on the hub (name@revision); {seed} stands for a seed of the grid."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:  # noqa: ARG002
        """Read nothing."""
        return Reads()

    def train(self, setting: Setting) -> Trained:
        """Load model and head; ModelError where the head is not one of the task with the corpus's labels."""
        model, other = (
            setting.task.head(setting.start, seed=seed, attention=fastest_attention()) for seed in (0, 1)
        )
        # What follows the seed is not from the folder.
        if not all(map(torch.equal, model.parameters(), other.parameters())):
            there = load_encoder_config(setting.start)
            labels = ", ".join(map(str, there.id2label.values()))
            raise ModelError(
                f"{setting.start}: this model has no head for task {setting.task.name} with the labels "
                f"{', '.join(setting.task.labels)}: its config.json says "
                f"{' '.join(there.architectures or ())} with {labels}. Give a model that was fine-tuned on "
                f"them; if its labels have no names, write them into config.json (id2label)."
            )
        return Trained(model, load_tokenizer(setting.start), rows=[])
