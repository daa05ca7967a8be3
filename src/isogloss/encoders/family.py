"""What isogloss needs to know of a Hugging Face family: where things are in its encoder.

The question "where is the feed-forward of layer i?" is answered here once, for mixup, adapters, language
switches, freezing, pruning and similarity alike.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.core.runs import Architecture

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Part = Literal[
    "block",
    "query",
    "key",
    "value",
    "attention_output",
    "attention_norm",
    "feed_forward_in",
    "feed_forward_out",
    "feed_forward_norm",
]
"""A single module of a layer."""

Region = Literal["block", "attention", "feed_forward"]
"""A part of a layer's parameters; attention and feed_forward together make up the block."""

Ability = Literal["post-norm", "projections", "new-positions", "attention-kinds"]
"""What a method may need of a family, and not every family has.

post-norm: attention and feed-forward end in their norm, after the residual (else they begin with it).
projections: queries, keys and values have a module each, and a site names it.
new-positions: positions can be given, and so be counted anew within a row.
attention-kinds: how attention is computed can be chosen (else it is explicit).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One layer of an encoder: the dotted names of its modules, seen from the model that was asked.

    Each of these modules, dropouts aside, runs exactly once in a forward pass, and returns a tensor or a
    tuple that begins with one.
    """

    layer: int
    """Counted from 1, as in the papers."""

    block: str
    """The whole layer."""

    attention: tuple[str, ...]
    """The modules that make up the attention sub-layer with its norm, in order."""

    query: str | None
    key: str | None
    value: str | None
    """The projections, in families with the ability of that name; None in the others."""

    attention_output: str
    """The projection of all heads back to the model's width; an adapter after attention follows it."""

    attention_norm: str
    """The norm that closes the attention sub-layer, its input including the residual; in a family without
    post-norm the one that opens it."""

    attention_dropout: str = ""
    """The dropout of the attention's weights (it need not run: fused attention only asks for its rate); no
    name in families without projections."""

    output_dropout: str = ""
    """The dropout between the attention's output and the residual; no name where nothing is dropped there."""

    feed_forward: tuple[str, ...]
    """The modules that make up the feed-forward sub-layer with its norm, in order."""

    feed_forward_in: str
    """The projection to the inner width, or to twice that where one half is a gate."""

    feed_forward_out: str
    """The projection back to the model's width; an adapter after the feed-forward follows it."""

    feed_forward_norm: str
    """The norm that closes the layer, its input including the residual; in a family without post-norm the
    one that opens the feed-forward."""

    def module(self, model: nn.Module, part: Part) -> nn.Module:
        """Return the module of one part in the model the site was made for, or in a copy of it.

        ModelError for a projection that is no module of its own.
        """
        name: str | None = getattr(self, part)
        if name is None:
            raise ModelError(f"layer {self.layer}: the {part} projection is no module of its own here.")
        return model.get_submodule(name)

    def parameters(self, model: nn.Module, region: Region) -> Iterator[tuple[str, nn.Parameter]]:
        """Give name and parameter of everything in a region of this layer."""
        where: str | tuple[str, ...] = getattr(self, region)
        for name in (where,) if isinstance(where, str) else where:
            yield from model.get_submodule(name).named_parameters(prefix=name)


class EncoderFamily(Protocol):
    """A Hugging Face family of encoders, one per file of this package.

    Every verb takes the encoder alone or a model with a head on it.
    """

    @property
    def name(self) -> str:
        """The family's ``model_type`` in config.json."""
        ...

    @property
    def first_position(self) -> int:
        """Position number of the first subword of a text."""
        ...

    @property
    def lacks(self) -> Mapping[Ability, str]:
        """What the family has not, with what it does instead; ask through ``table.require``."""
        ...

    @property
    def dropouts(self) -> tuple[str, ...]:
        """The fields of config.json that say how much the encoder drops while it trains."""
        ...

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        ...

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        ...

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run a masked-LM model's head on last-layer states [… dim]; returns [… vocabulary]."""
        ...

    def tag_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run a token classifier's head on last-layer states [… dim]; returns [… label]."""
        ...

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, that the encoder is made for."""
        ...

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the family's own fields of config.json; ConfigError when it has no such.

        ``padding`` is the subword texts are padded with. Vocabulary, special subwords and dropout are said
        elsewhere.
        """
        ...


def encoder_prefix(model: "PreTrainedModel") -> str:
    """Return what the names of the encoder's modules begin with: "bert." in a model, "" in an encoder."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."
