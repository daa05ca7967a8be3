"""LT-SFT: fine-tune once, keep where the weights changed most, start again and train those alone.

Ansell et al. (2022), "Composable Sparse Fine-Tuning for Cross-Lingual Transfer", Section 3.1: lottery-ticket
sparse fine-tuning. The first training moves all weights from θ⁰ to θ¹; the mask is where |θ¹ - θ⁰| is
largest, over all weights of the encoder together; the second starts from θ⁰ again, and moves those alone. The
head, with a pooler, is trained wholly in both, from the same beginning, and is no part of the mask.

With a share of 1 it is the plain training, to the bit. Both trainings have the same length here, the
method's. The paper adds a language's sparse delta to a task's (Section 3.2): that is not offered.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from pydantic import Field
from safetensors.torch import load_file, save
from torch import Tensor

from isogloss.core.interruption import stop_if_lost
from isogloss.core.records import write_bytes
from isogloss.encoders.added.differences import (
    add_masks,
    encoder_weights,
    remove_masks,
    sparse_weights,
    write_sparse,
)
from isogloss.encoders.family import Model
from isogloss.training.distributed import is_main_process, main_process_first
from isogloss.training.memory import AddedCost
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared

MASK = "mask.safetensors"


@dataclass(frozen=True, kw_only=True)
class LotteryTicket(Peft):
    """Train twice: all weights, then from the start again those alone that changed most (LT-SFT)."""

    name: ClassVar[str] = "lt-sft"

    share: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.08
    """Share of the encoder's weights, embeddings included, that is trained."""

    def cost(self) -> AddedCost:
        """Return the cost of the weights before the training, and of the mask, a byte each."""
        return AddedCost(copies=1.25)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Train all weights of another copy for the mask, or read the mask of a training that was begun."""
        path = setting.folder / MASK
        if not path.exists():
            changed = largest_changes(setting.model, setting.whole(), self.share)
            with main_process_first():
                if is_main_process():
                    _write_mask(path, changed)
                    stop_if_lost()  # Else another process may be training there.
                    shutil.rmtree(setting.folder / "whole", ignore_errors=True)
        masks = {name: one.to(torch.bool) for name, one in load_file(path).items()}
        add_masks(setting.model, masks)
        return Prepared(fixed=sum(int((~mask).sum()) for mask in masks.values()))

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Make the tensors ordinary ones."""
        masks = remove_masks(model)
        return partial(write_sparse, sparse_weights(model, masks), base)


def largest_changes(before: Model, after: Model, share: float) -> dict[str, Tensor]:
    """Return the masks, by name, of the share of an encoder's weights that changed most.

    Of equal changes at the border the first are taken, so that the number is exact.
    """
    start, end = encoder_weights(before), encoder_weights(after)
    changes = {name: (end[name].detach().cpu() - one.detach().cpu()).abs() for name, one in start.items()}
    every = torch.cat([one.flatten() for one in changes.values()])
    kept = torch.zeros(len(every), dtype=torch.bool)
    kept[every.argsort(descending=True, stable=True)[: max(1, round(share * len(every)))]] = True
    parts = torch.split(kept, [one.numel() for one in changes.values()])
    return {name: part.view(one.shape) for (name, one), part in zip(changes.items(), parts, strict=True)}


def _write_mask(path: Path, masks: Mapping[str, Tensor]) -> None:
    write_bytes(path, save({name: one.to(torch.uint8) for name, one in masks.items()}))
