"""Adapters of the library peft: small matrices or vectors are trained, the encoder stays as it is.

LoRA: Hu et al. (2022), "LoRA: Low-Rank Adaptation of Large Language Models", Section 4.1. DoRA: Liu et al.
(2024), "DoRA: Weight-Decomposed Low-Rank Adaptation", Section 4. IA3: Liu et al. (2022), "Few-Shot
Parameter-Efficient Fine-Tuning is Better and Cheaper than In-Context Learning", Section 3.3.

The head is trained wholly. Before the first step no output differs from the encoder's. Training over, the
adapters are merged: what is scored and loaded is an ordinary model with W + (alpha / rank) B A for W.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from isogloss.core.run_parts import Positive, Rate, Share
from isogloss.core.seeds import derive
from isogloss.encoders import family_of
from isogloss.encoders.added.differences import write_difference
from isogloss.encoders.added.peft_adapters import (
    WEIGHTS,
    ModuleChoice,
    adapter_weights,
    add_adapters,
    available_modules,
    check_peft,
    merge_adapters,
    module_names,
    write_adapters,
)
from isogloss.encoders.family import EncoderFamily, Model
from isogloss.training.memory import Shape
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared

if TYPE_CHECKING:
    from peft import PeftConfig

OTHERWISE: tuple[ModuleChoice, ...] = ("attention_output", "feed_forward_in", "feed_forward_out")
"""What LoRA goes into where queries and values have no modules of their own."""


@dataclass(frozen=True, kw_only=True)
class LoRA(Peft):
    """Add a product of two small matrices, B A, to each of some matrices of the encoder."""

    name: ClassVar[str] = "lora"
    decomposed: ClassVar[bool] = False
    """Whether the magnitude of each column is trained apart, as DoRA has it."""

    rank: Positive = 8
    """Columns of B and rows of A; 8 is the paper's for RoBERTa (Table 9)."""

    alpha: Rate = 8.0
    """B A counts alpha / rank times."""

    dropout: Share = 0.0
    """Dropout of what A reads."""

    modules: tuple[ModuleChoice, ...] | None = None
    """Modules of each layer that have one; the paper's query and value when left out, in families without
    these (deberta-v2, modernbert) attention_output, feed_forward_in and feed_forward_out."""

    def check(self, family: EncoderFamily) -> None:
        """Raise ConfigError for a family that it cannot be put into."""
        check_peft(family, self.modules, f"peft {self.name}")

    def trained(self, shape: Shape) -> int:
        """Return the parameters of A and B in all layers."""
        sides = {
            "feed_forward_in": shape.dim + (1 + shape.gated) * shape.feed_forward,
            "feed_forward_out": shape.feed_forward + shape.dim,
        }
        modules = self.modules or ("query", "value")
        return shape.layers * self.rank * sum(sides.get(name, 2 * shape.dim) for name in modules)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Put it into every layer."""
        from peft import LoraConfig

        chosen, warnings = _chosen(self, setting.model, ("query", "value"))
        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            use_dora=self.decomposed,
            target_modules=module_names(setting.model, chosen),
        )
        add_adapters(setting.model, config, seed=derive(setting.seed, "adapters"))
        return Prepared(warnings=warnings)

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Merge it."""
        return _finish(model, base)


@dataclass(frozen=True, kw_only=True)
class DoRA(LoRA):
    """LoRA on the direction of each column of weights, and a trained magnitude for each (Eq. 5)."""

    name: ClassVar[str] = "dora"
    decomposed: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class IA3(Peft):
    """Multiply keys, values and the inner states of the feed-forward by trained vectors."""

    name: ClassVar[str] = "ia3"

    modules: tuple[ModuleChoice, ...] | None = None
    """Modules of each layer whose output is multiplied (of feed_forward_out the input, as in the paper); key,
    value and feed_forward_out when left out, as far as the family has them."""

    def check(self, family: EncoderFamily) -> None:
        """Raise ConfigError for a family that it cannot be put into."""
        check_peft(family, self.modules, f"peft {self.name}")

    def trained(self, shape: Shape) -> int:
        """Return the parameters of all vectors."""
        return shape.layers * (2 * shape.dim + shape.feed_forward)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Put it into every layer."""
        from peft import IA3Config

        chosen, warnings = _chosen(self, setting.model, ("key", "value", "feed_forward_out"))
        inner = [name for name in chosen if name == "feed_forward_out"]
        config = IA3Config(
            target_modules=module_names(setting.model, chosen),
            feedforward_modules=module_names(setting.model, inner),
        )
        add_adapters(setting.model, config, seed=setting.seed)
        return Prepared(warnings=warnings)

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Merge it."""
        return _finish(model, base)


def _chosen(
    how: LoRA | IA3, model: Model, usual: tuple[ModuleChoice, ...]
) -> tuple[tuple[ModuleChoice, ...], tuple[str, ...]]:
    """Return the modules asked for, else the usual ones or what the family has instead, and warnings."""
    family = family_of(model)
    how.check(family)
    there = how.modules or available_modules(family, usual) or OTHERWISE
    if how.modules or there == usual:
        return there, ()
    return there, (
        f"{how.name}: {family.name} {family.lacks['projections']}, so {', '.join(there)} are adapted "
        f"instead of {', '.join(usual)}.",
    )


def _finish(model: Model, base: str) -> ExtraWriter:
    """Merge the adapters; return what writes them, as trained, into a model's folder."""
    weights, config = adapter_weights(model), merge_adapters(model)
    return partial(_write, weights, config, model, base)


def _write(weights: dict[str, Tensor], config: "PeftConfig", model: Model, base: str, folder: Path) -> None:
    found = write_difference(folder, base, form="peft", weights=WEIGHTS)
    write_adapters(folder, weights, config, model, found.base)
