"""Training that changes only some parts of a model: the others are frozen, or all but the named ones.

After ``module-swap`` has shown which part carries a difference, this tests it in training: freeze the part,
or learn nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from isogloss.core.errors import ConfigError
from isogloss.encoders.family import Model, freeze, thaw, unfrozen_parameters
from isogloss.features.module_swap.part_names import ALL, EMBEDDINGS, ENCODER, HEAD, check_part_name
from isogloss.training.memory import Shape
from isogloss.training.setting import ExtraWriter, Peft, PeftSetting, Prepared


@dataclass(frozen=True, kw_only=True)
class PartFreezing(Peft):
    """Freeze named parts of the encoder, or train only named parts. The head is always trained.

    ``learned`` ("head",) trains nothing else: a probe of the encoder as it is.
    """

    name: ClassVar[str] = "part-freezing"

    frozen: tuple[str, ...] | None = None
    """Frozen parts, by their names in the measurement module-swap, such as "embeddings", "layers 1-2" or
    "attention". Default: embeddings, unless there is ``learned``."""

    learned: tuple[str, ...] | None = None
    """Parts that are trained, while all others are frozen. Default: all that are not frozen."""

    def __post_init__(self) -> None:
        """Refuse both lists, empty ones, and names that are of no part, or contain the head."""
        if self.frozen is not None and self.learned is not None:
            raise ConfigError(f"peft {self.name}: found frozen and learned. Name one of them.")
        for field, parts in (("frozen", self.frozen), ("learned", self.learned)):
            if parts == ():
                raise ConfigError(f"peft {self.name}: {field}: found an empty list. Name one part or more.")
            for part in parts or ():
                check_part_name(part, f"peft {self.name}: {field}")
                if part == ALL or (field == "frozen" and part == HEAD):
                    raise ConfigError(
                        f"peft {self.name}: {field}: found {part!r}; the head is always trained. Name "
                        f'parts such as "embeddings" or "layer 1", or learned = ["head"] for no other.'
                    )

    def trained(self, shape: Shape) -> int:
        """Return the encoder's parameters, without embeddings where they are frozen, as an upper bound."""
        if self.learned == (HEAD,) or ENCODER in (self.frozen or ()):
            return 0
        unions = {EMBEDDINGS, ENCODER}
        if self.learned is not None:
            has_embeddings = bool(unions & set(self.learned))
        else:
            has_embeddings = self.frozen is not None and not unions & set(self.frozen)
        return shape.parameters - (0 if has_embeddings else shape.vocabulary * shape.dim)

    def prepare(self, setting: PeftSetting) -> Prepared:
        """Freeze the parts. Raises ConfigError for a part that the model does not have."""
        from isogloss.features.module_swap.parts import ModelParts

        parts = ModelParts.of(setting.model)
        frozen = self.frozen or ((EMBEDDINGS,) if self.learned is None else ())
        names = {name for part in frozen for name in parts.select(part)}
        if self.learned is not None:
            learned = {name for part in (*self.learned, HEAD) for name in parts.select(part)}
            names = set(parts.parts) - learned
        freeze(weight for name, weight in setting.model.named_parameters() if name in names)
        return Prepared()

    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Thaw the model and return the writer of the trained weights."""
        from isogloss.encoders.added.sparse_deltas import write_sparse

        weights = {name: weight.detach().cpu().clone() for name, weight in unfrozen_parameters(model).items()}
        thaw(model)
        return partial(write_sparse, weights, base)
