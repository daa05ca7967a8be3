"""Parameter-efficient fine-tuning: only few weights are trained or changed.

LoRA: Hu et al. (2022), "LoRA: Low-Rank Adaptation of Large Language Models", Section 4.1. DoRA: Liu et al.
(2024), "DoRA: Weight-Decomposed Low-Rank Adaptation", Section 4. IA3: Liu et al. (2022), "Few-Shot
Parameter-Efficient Fine-Tuning is Better and Cheaper than In-Context Learning", Section 3.3. The library peft
implements all three. Before the first step all outputs equal the encoder's. After the last step the adapters
are merged: an ordinary model is scored and saved, with W + (alpha / rank) B A for W.

LT-SFT: Ansell et al. (2022), "Composable Sparse Fine-Tuning for Cross-Lingual Transfer", Section 3.1. The
first training moves all weights from θ⁰ to θ¹; the mask is where |θ¹ - θ⁰| is largest, over all weights of
the encoder together; the second restarts from θ⁰ and updates only the masked weights. The head and the pooler
are not masked, and start equally in both trainings. With a share of 1 the result equals the plain training
bit for bit. Both trainings have the method's length. Adding a language's sparse delta to a task's (Section
3.2) is not supported.

MAD-X: Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer",
Section 3.2. The adapters of languages were trained on text (``modules`` of a pretraining, with ``trained =
"modules"``) and are frozen; task adapters are trained on the source language's adapter and evaluated on the
target language's.

Layer freezing: Wu & Dredze (2019), "Beto, Bentz, Becas: The Surprising Cross-Lingual Effectiveness of BERT":
frozen lower layers of multilingual BERT help zero-shot transfer in several tasks. Embeddings of a quarter
million subwords are most of a small multilingual encoder, and labels in one language update only the rows of
its words.

The head is always trained in full.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol

from pydantic import Field

from isogloss.core.atomic_files import write_bytes
from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.processes import stop_if_lost
from isogloss.core.run_parts import Count, Positive, Rate, Share
from isogloss.core.shared_files import is_file, remove
from isogloss.encoders.added.differences import write_difference
from isogloss.encoders.added.peft_folders import WEIGHTS
from isogloss.encoders.families import family_of
from isogloss.encoders.family import EncoderFamily, Model, freeze, thaw, unfrozen_parameters
from isogloss.features.peft.adapted_modules import WITHOUT_PROJECTIONS, ModuleChoice
from isogloss.training.memory import AddedCost, Shape
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared

if TYPE_CHECKING:
    from peft import PeftConfig
    from torch import Tensor


class _Adapters(Peft, Protocol):
    """Adapters of the library peft."""

    has_factors: ClassVar[bool] = True

    @property
    def modules(self) -> tuple[ModuleChoice, ...] | None:
        """Modules of each layer that are adapted. Default: the paper's."""

    def check(self, family: EncoderFamily) -> None:
        """Raise ConfigError for a family that it does not support."""
        from isogloss.features.peft.adapted_modules import check_peft

        check_peft(family, self.modules, f"peft {self.name}")

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Merge the adapters and return the writer of the trained ones."""
        from isogloss.features.peft.peft_adapters import adapter_weights, merge_adapters

        weights, config = adapter_weights(model), merge_adapters(model)
        return partial(_write_adapters, weights, config, model, base)

    def _choose_modules(
        self, model: Model, usual: tuple[ModuleChoice, ...]
    ) -> tuple[tuple[ModuleChoice, ...], tuple[str, ...]]:
        """Return the modules to adapt, by default the usual ones or the family's, and warnings."""
        from isogloss.features.peft.adapted_modules import available_modules

        family = family_of(model)
        self.check(family)
        modules = self.modules or available_modules(family, usual) or WITHOUT_PROJECTIONS
        if self.modules or modules == usual:
            return modules, ()
        return modules, (
            f"{self.name}: {family.name} {family.lacks['projections']}, so {', '.join(modules)} are adapted "
            f"instead of {', '.join(usual)}.",
        )


@dataclass(frozen=True, kw_only=True)
class LoRA(_Adapters):
    """Add a product of two small matrices, B A, to each of some matrices of the encoder."""

    name: ClassVar[str] = "lora"
    decomposed: ClassVar[bool] = False
    """Whether the magnitude of each column is trained separately (DoRA)."""

    rank: Positive = 8
    """Columns of B and rows of A. 8 is the paper's for RoBERTa (Table 9)."""

    alpha: Rate = 8.0
    """B A is scaled by alpha / rank."""

    dropout: Share = 0.0
    """Dropout of the inputs of A."""

    modules: tuple[ModuleChoice, ...] | None = None
    """Modules of each layer that have LoRA weights. Default: query and value, as in the paper. Families
    without these (deberta-v2, modernbert) use attention_output, feed_forward_in and feed_forward_out."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of A and B in all layers."""
        sides = {
            "feed_forward_in": shape.dim + (1 + shape.gated) * shape.feed_forward,
            "feed_forward_out": shape.feed_forward + shape.dim,
        }
        modules = self.modules or ("query", "value")
        return shape.layers * self.rank * sum(sides.get(name, 2 * shape.dim) for name in modules)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Add it to all layers."""
        from peft import LoraConfig

        from isogloss.features.peft.peft_adapters import add_adapters, module_names

        modules, warnings = self._choose_modules(setting.model, ("query", "value"))
        config = LoraConfig(
            r=self.rank,
            lora_alpha=self.alpha,
            lora_dropout=self.dropout,
            use_dora=self.decomposed,
            target_modules=module_names(setting.model, modules),
        )
        add_adapters(setting.model, config, seed=derive(setting.seed, "adapters"))
        return Prepared(warnings=warnings)


@dataclass(frozen=True, kw_only=True)
class DoRA(LoRA):
    """LoRA on the direction of each column of weights, and a trained magnitude for each (Eq. 5)."""

    name: ClassVar[str] = "dora"
    decomposed: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class IA3(_Adapters):
    """Multiply keys, values and the inner states of the feed-forward by trained vectors."""

    name: ClassVar[str] = "ia3"

    modules: tuple[ModuleChoice, ...] | None = None
    """Modules of each layer whose output is scaled (the input for feed_forward_out, as in the paper).
    Default: key, value and feed_forward_out, if the family has them."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of all vectors."""
        return shape.layers * (2 * shape.dim + shape.feed_forward)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Add it to all layers."""
        from peft import IA3Config

        from isogloss.features.peft.peft_adapters import add_adapters, module_names

        modules, warnings = self._choose_modules(setting.model, ("key", "value", "feed_forward_out"))
        inner = [name for name in modules if name == "feed_forward_out"]
        config = IA3Config(
            target_modules=module_names(setting.model, modules),
            feedforward_modules=module_names(setting.model, inner),
        )
        add_adapters(setting.model, config, seed=setting.seed)
        return Prepared(warnings=warnings)


def _write_adapters(
    weights: dict[str, Tensor], config: "PeftConfig", model: Model, base: str, folder: Path
) -> None:
    from isogloss.features.peft.peft_adapters import write_adapters

    difference = write_difference(folder, base, form="peft", weights=WEIGHTS)
    write_adapters(folder, weights, config, model, difference.base)


MASK = "mask.safetensors"


@dataclass(frozen=True, kw_only=True)
class LotteryTicket(Peft):
    """Train twice: all weights, then from the start again only those that changed most (LT-SFT)."""

    name: ClassVar[str] = "lt-sft"

    share: Annotated[float, Field(strict=True, gt=0, le=1)] = 0.08
    """Share of the encoder's weights, embeddings included, that is trained."""

    def cost(self) -> AddedCost:
        """Return the cost of the weights before the training, and of the mask, a byte each."""
        return AddedCost(copies=1.25)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Train all weights of a copy for the mask, or read the mask of an interrupted run."""
        import torch
        from safetensors.torch import load_file, save

        from isogloss.encoders.added.sparse_deltas import add_masks
        from isogloss.training.distributed import is_main_process, main_process_first

        path = setting.folder / MASK
        if not is_file(setting.folder, MASK):
            largest = largest_changes(setting.model, setting.train_all(), self.share)
            with main_process_first():
                if is_main_process():
                    masks = {name: mask.to(torch.uint8) for name, mask in largest.items()}
                    write_bytes(setting.folder, MASK, save(masks))
                    stop_if_lost()  # Else another process may be training there.
                    remove(setting.folder, "whole")
        masks = {name: mask.to(torch.bool) for name, mask in load_file(path).items()}
        add_masks(setting.model, masks)
        return Prepared(fixed=sum(int((~mask).sum()) for mask in masks.values()))

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Make the masked tensors ordinary ones."""
        from isogloss.encoders.added.sparse_deltas import remove_masks, sparse_weights, write_sparse

        return partial(write_sparse, sparse_weights(model, remove_masks(model)), base)


def largest_changes(start: Model, end: Model, share: float) -> dict[str, Tensor]:
    """Return the masks, by name, of the share of an encoder's weights that changed most.

    Ties at the threshold are broken by position, so that the number is exact.
    """
    import torch

    from isogloss.encoders.added.sparse_deltas import encoder_weights

    end_weights = encoder_weights(end)
    changes = {
        name: (end_weights[name].detach().cpu() - weight.detach().cpu()).abs()
        for name, weight in encoder_weights(start).items()
    }
    sizes = torch.cat([change.flatten() for change in changes.values()])
    mask = torch.zeros(len(sizes), dtype=torch.bool)
    mask[sizes.argsort(descending=True, stable=True)[: max(1, round(share * len(sizes)))]] = True
    parts = torch.split(mask, [change.numel() for change in changes.values()])
    return {name: part.view(changes[name].shape) for name, part in zip(changes, parts, strict=True)}


@dataclass(frozen=True, kw_only=True)
class TaskAdapter(Peft):
    """Train a bottleneck after each feed-forward layer, behind the language adapter.

    Only the bottlenecks and the head are trained.
    """

    name: ClassVar[str] = "adapter"

    reduction: Positive = 16
    """Ratio of the states' width to the bottleneck's. 16 in the paper (48 of 768)."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of the bottlenecks."""
        return 2 * shape.layers * shape.dim * (shape.dim // self.reduction)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Add an adapter to each layer. A model that has task adapters is trained further in these."""
        from isogloss.encoders.added.task_adapters import adapted_parameters, add_task_adapter

        model = setting.model
        add_task_adapter(model, self.reduction, seed=setting.seed)
        adapter_ids = {id(weight) for weight in adapted_parameters(model).values()}
        freeze(weight for weight in model.parameters() if id(weight) not in adapter_ids)
        return Prepared()

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Thaw the model and write the adapters and the head."""
        thaw(model)
        return partial(_write_task_adapter, model, base)


def _write_task_adapter(model: Model, base: str, folder: Path) -> None:
    from isogloss.encoders.added.task_adapters import TASK_FILE, write_task_adapter

    write_difference(folder, base, form="task-adapter", weights=TASK_FILE)
    write_task_adapter(model, folder, head=True)


@dataclass(frozen=True, kw_only=True)
class LayerFreezing(Peft):
    """Freeze the embeddings and the lowest layers, and train the other layers in full."""

    name: ClassVar[str] = "layer-freezing"

    layers: Count = 0
    """Number of the lowest layers that are frozen. 0 freezes only the embeddings."""

    def trained(self, shape: Shape) -> int:
        """Return the parameters of the layers that are not frozen."""
        inside = shape.parameters - shape.vocabulary * shape.dim
        return inside * max(0, shape.layers - self.layers) // shape.layers

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Freeze all weights below the first trained layer. Raises ConfigError for too many layers."""
        from isogloss.encoders.added.sparse_deltas import encoder_weights

        blocks = [site.block for site in family_of(setting.model).sites(setting.model)]
        if self.layers > len(blocks):
            raise ConfigError(
                f"peft {self.name}: layers: found {self.layers}; this encoder has {len(blocks)}. Freeze at "
                f"most so many."
            )
        prefixes = [f"{block}." for block in blocks]
        lower, upper = tuple(prefixes[: self.layers]), tuple(prefixes[self.layers :])
        weights = encoder_weights(setting.model)
        first_index = next(n for n, name in enumerate(weights) if name.startswith(prefixes[0]))
        for n, (name, weight) in enumerate(weights.items()):
            host = _host_module(name)  # Language modules may be in layers and at the embeddings.
            if n < first_index or name.startswith(lower) or (host != name and not host.startswith(upper)):
                freeze([weight])
        return Prepared()

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Thaw the model and write the trained weights."""
        from isogloss.encoders.added.sparse_deltas import write_sparse

        weights = {name: weight.detach().cpu().clone() for name, weight in unfrozen_parameters(model).items()}
        thaw(model)
        return partial(write_sparse, weights, base)


def _host_module(name: str) -> str:
    """Name an added weight after the encoder module that it replaces or follows."""
    from isogloss.encoders.added.language_modules import TREE

    prefix, added, inside = name.partition(f"{TREE}.")
    return prefix + inside.partition(".")[2] if added else name
