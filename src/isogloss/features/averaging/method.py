"""The method that combines weights of several models. ``weight_arithmetic`` has the equations.

It takes means, points of paths, and sums of task and language vectors, also by TIES and DARE, with one weight
for all layers or others for the lowest and highest.
"""

from dataclasses import dataclass
from math import fsum
from typing import Annotated, ClassVar

from pydantic import Field

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Count, Share
from isogloss.encoders.family import Config, check_outer_layers
from isogloss.tasks.task import Task
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

    outer_weights: tuple[float, ...] | None = None
    """Weight of each model of ``of`` in the lowest and highest layers, where ``weights`` do not apply (layer
    swapping, Bandarkar et al. 2025). With weights [1.0, 0.0] and outer_weights [0.0, 1.0] of a model and a
    language vector, the middle layers are the model's and the outer ones the language vector's. Default:
    ``weights`` in all layers."""

    lowest: Count | None = None
    """Number of lowest layers with ``outer_weights``. With 1 or more, the embeddings have them as well."""

    highest: Count | None = None
    """Number of highest layers with ``outer_weights``. With 1 or more, what follows the last layer within the
    encoder has them as well, such as a norm. The head has ``weights``."""

    transition: Count | None = None
    """Number of layers next to the lowest and next to the highest ones with the mean of ``weights`` and
    ``outer_weights``. Default: 0."""

    near: tuple[str, ...] | None = None
    """Pairs such as "qad-qab": in the averaged model, the modules of the first language, a target, are mixed
    with those of the second, a related language (language arithmetic, Klimaszewski et al. 2025). Default:
    none are mixed."""

    near_share: Share | None = None
    """λ, the weight of a language's own modules in the mix of ``near``. Default: 0.5."""

    def __post_init__(self) -> None:
        """Refuse weights below 0 where signs are elected by them, and fields that have no effect."""
        if self.near_share is not None and not self.near:
            raise ConfigError(
                f"{self.name}: near_share: found {self.near_share:g} without near. Add near, or remove "
                f"near_share."
            )
        for pair in self.near or ():
            if len(set(pair.split("-"))) != 2:
                raise ConfigError(
                    f"{self.name}: near: found {pair!r}; expected a language and a related one, as in "
                    f"qad-qab."
                )
        if self.transition and self.outer_weights is None:
            raise ConfigError(
                f"{self.name}: transition: found {self.transition} without outer_weights. Add outer_weights, "
                f"or remove transition."
            )
        if (self.outer_weights is None) == bool(self.lowest or self.highest):
            weights = "none" if self.outer_weights is None else list(self.outer_weights)
            raise ConfigError(
                f"{self.name}: outer_weights: found {weights} with lowest = {self.lowest or 0} and highest = "
                f"{self.highest or 0}. Give outer_weights and the number of lowest or highest layers "
                f"together, or remove all three."
            )
        if self.scale is not None and self.density is None:
            raise ConfigError(
                f"{self.name}: scale: found {self.scale:g} without density; scale is λ of TIES. Add density, "
                f"or multiply the weights by it."
            )
        weights = [*(self.weights or ()), *(self.outer_weights or ())]
        if self.density and any(weight < 0 for weight in weights):
            raise ConfigError(
                f"{self.name}: weights: {weights} has numbers below 0; with density each "
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
        sums = [fsum(weights) for weights in (self.weights_of(count), self.outer_weights) if weights]
        return self.is_sparse or any(abs(1 - total) > WEIGHT_TOLERANCE for total in sums)

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError if no layer is left between the lowest and the highest."""
        if encoder is not None:
            outer = (self.lowest or 0, self.highest or 0)
            check_outer_layers(self.name, encoder.num_hidden_layers, *outer, self.transition or 0)

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read the source's dev sets, which select nothing, to show the loss by averaging."""
        return Reads(dev=source or target)

    def train(self, setting: Setting) -> Trained:
        """Read one model after the other, score each on dev data, and combine all tensor by tensor."""
        from isogloss.encoders.added.added_weights import mix_modules
        from isogloss.features.averaging.weight_arithmetic import OuterWeights, Trimming, average_models

        weights = self.weights_of(len(setting.parts))
        outer = None
        if self.outer_weights:
            outer = OuterWeights(
                self.outer_weights, self.lowest or 0, self.highest or 0, self.transition or 0
            )
        trained = average_models(
            setting,
            self.reads(setting.source, setting.target).dev,
            weights,
            Trimming(density=self.density, dropped=self.dropped, scale=self.scale),
            with_origin=self.needs_origin(len(weights)),
            outer=outer,
        )
        for pair in self.near or ():
            language, near = pair.split("-")
            share = 0.5 if self.near_share is None else self.near_share
            mix_modules(trained.model, language, near, share)
        return trained
