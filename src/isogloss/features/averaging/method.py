"""The method that combines weights of several models. ``weight_arithmetic`` has the equations.

It takes means, points of paths, and sums of task and language vectors, also by TIES and DARE.
"""

from dataclasses import dataclass
from math import fsum
from typing import Annotated, ClassVar

from pydantic import Field

from isogloss.core.errors import ConfigError
from isogloss.training.setting import WEIGHT_TOLERANCE, Method, Reads, Setting, Trained, WeightsFrom


@dataclass(frozen=True, kw_only=True)
class Average(Method):
    """Train nothing: the weights are a mean of other models', or a sum of task and language vectors."""

    name: ClassVar[str] = "average"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")
    weights_from: ClassVar[WeightsFrom] = "parts"

    weights: tuple[float, ...] | None = None
    """Weight of each model of ``of``. The pretrained encoder gets 1 minus their sum: [0.5] is halfway from
    the encoder to a model, [1.0, 1.0] the sum of two task vectors. Default: equal weights that sum to 1."""

    density: Annotated[float, Field(strict=True, gt=0, le=1)] | None = None
    """TIES: share of each vector's changes that is kept, largest first (0.2 in the paper). Among the kept
    changes the sign with more weight wins. Default: a plain sum."""

    dropped: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.0
    """DARE: share of each vector's changes that is dropped at random, by the seed."""

    scale: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """TIES: λ, by which the merged vector is multiplied (1 in mergekit and peft). Default: the sum of the
    weights."""

    def __post_init__(self) -> None:
        """Refuse weights below 0 where signs are elected by them, and a scale that nothing reads."""
        if self.scale is not None and self.density is None:
            raise ConfigError(
                f"{self.name}: scale: found {self.scale:g} without density; scale is λ of TIES. Add density, "
                f"or multiply the weights by it."
            )
        if self.density and any(weight < 0 for weight in self.weights or ()):
            raise ConfigError(
                f"{self.name}: weights: {list(self.weights or ())} has numbers below 0; with density each "
                f"weight votes for a sign. Give weights above 0, or remove density."
            )

    @property
    def version(self) -> int:
        """Return 2 for TIES: in the first version all changes as large as the smallest kept one were kept."""
        return 1 if self.density is None else 2

    @property
    def is_sparse(self) -> bool:
        """Whether a part of each vector is dropped."""
        return self.density is not None or self.dropped > 0

    def weights_of(self, count: int) -> tuple[float, ...]:
        """Return the weights of ``parts`` models."""
        return self.weights or (1 / count,) * count

    def needs_origin(self, count: int) -> bool:
        """Return whether the pretrained encoder has a part in it."""
        return self.is_sparse or abs(1 - fsum(self.weights_of(count))) > WEIGHT_TOLERANCE

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source's dev sets, which select nothing, to show the loss by averaging."""
        return Reads(dev=source or target)

    def train(self, setting: Setting) -> Trained:
        """Read one model after the other, score each on dev data, and combine all tensor by tensor."""
        from isogloss.features.averaging.weight_arithmetic import Trimming, average_models

        weights = self.weights_of(len(setting.parts))
        return average_models(
            setting,
            self.reads(setting.source, setting.target).dev,
            weights,
            Trimming(density=self.density, dropped=self.dropped, scale=self.scale),
            with_origin=self.needs_origin(len(weights)),
        )
