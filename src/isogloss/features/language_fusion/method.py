"""FLARE: LoRA on translations, whose bottleneck also reads the states of the source. ``fusion`` has it.

Borchert et al. (ACL 2025). As in the authors' code, source rows run through the frozen start without
adapters, only labels of translations are learned, and the head is trained. Their start has learned the task
in the source: give ``start = "source-only"``. At test time the adapters read the target alone, where they are
merged, or together with translations into the source (the measurement ``language-fusion``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, cast

from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, ModelError, one_line
from isogloss.core.untrusted import parse_json, read_regular
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks.task import ScoredTask, Task
from isogloss.training.setting import Method, Reads, Setting, Trained, language_pairs

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.training.fine_tuning import Examples, Training
    from isogloss.training.sides import Sides

SETTINGS = "language_fusion.json"
"""File of a model's fusion in its folder."""


@dataclass(frozen=True, kw_only=True)
class Flare(Method):
    """Train LoRA on translations, fused in each adapter with the states of the source examples.

    It needs ``peft = { kind = "lora" }``, and a start that has learned the task.
    """

    name: ClassVar[str] = "flare"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    peft_kinds: ClassVar[tuple[str, ...]] = ("lora",)

    fusion: Literal["add", "multiply", "add-relu", "attention", "none"] = "add-relu"
    """f: the states of source and target at one position are added, multiplied, or added without their
    negative numbers, as in the released script; attention reads all positions of the source. none is LoRA on
    the translations."""

    labels: Literal["projected"] | None = None
    """Labels of translated words in tagging. projected: the tags of the words they are linked to. Default:
    the predictions of a source-only model."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source and its translations. No target labels are read, not even to choose the epoch."""
        return Reads(
            train=(*source, *language_pairs(source, target)),
            dev=source,
            teacher=() if self.labels else ("word",),
            sides=2 if target else 1,
        )

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task whose loss does not follow from its scores."""
        if not isinstance(task, ScoredTask):
            raise ConfigError(
                f"{self.name}: task {task.name!r} has no loss of scores, which is computed on one side of a "
                f"pair. Take translate-train, or a task with labels of texts, words, options or spans."
            )

    def train(self, setting: Setting) -> Trained:
        """Train on pairs. The source's dev set, read without fusion, chooses the epoch."""
        from isogloss.training.fine_tuning import fine_tune
        from isogloss.training.pairs import with_labels

        self.check(setting.task, None)
        self.check_peft(setting.peft)
        splits = self.reads(setting.source, setting.target)
        if not setting.target:
            return fine_tune(setting, splits)
        return fine_tune(with_labels(setting, splits), splits, prepare=self._prepare)

    def _prepare(self, setting: Setting, _: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        from isogloss.training.fine_tuning import Training
        from isogloss.training.pairs import paired_batches

        needs_teacher = self.reads((), ()).needs_teacher(setting.task)
        batches, warnings = paired_batches(setting, tokenizer, train, pseudo_labels=needs_teacher)
        return Training(
            batches=batches,
            loss=partial(self.loss, cast("ScoredTask", setting.task)),
            warnings=warnings,
            extra_writers=(partial(save_fusion, self.fusion),),
        )

    def loss(self, task: ScoredTask, model: Model, batch: Sides) -> Tensor:
        """Return the task's loss on translations, whose adapters read the source as well."""
        from isogloss.features.language_fusion.fusion import fused_adapters

        pairs = batch.source.items
        if self.fusion == "none":
            target = task.scores(model, batch.joined.chosen(range(pairs, 2 * pairs)))
        else:
            with fused_adapters(model, self.fusion, batch.joined.mask):
                _, target = batch.split(task.scores(model, batch.joined))
        loss = task.loss_of(target, batch.target)
        return loss if batch.shares.target == 1 else loss * batch.shares.target


def save_fusion(fusion: str, folder: Path) -> None:
    """Write a model's fusion into its folder."""
    write_text(folder, SETTINGS, json.dumps({"fusion": fusion}) + "\n")


def load_fusion(folder: Path) -> str | None:
    """Return the fusion of a model by its folder, or None for a model of a different method.

    Raises ModelError for a damaged file.
    """
    if not (folder / SETTINGS).is_file():
        return None
    try:
        fusion = parse_json(read_regular(folder / SETTINGS))["fusion"]
    except (ValueError, LookupError, TypeError) as error:
        raise ModelError(
            f"{folder}: {SETTINGS} there is damaged ({one_line(error)}). Copy the folder again, or delete it "
            f"and run again."
        ) from error
    return str(fusion)
