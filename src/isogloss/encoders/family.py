"""What isogloss needs to know of a Hugging Face family: where things are in its encoder.

The question "where is the feed-forward of layer i?" is answered here once, for mixup, adapters, language
switches, freezing, pruning and similarity alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Part = Literal[
    "block",
    "attention",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """One layer of an encoder: the dotted names of its modules, seen from the model that was asked.

    Each of these modules runs exactly once in a forward pass, and returns a tensor or a tuple that begins
    with one.
    """

    layer: int
    """Counted from 1, as in the papers."""

    block: str
    """The whole layer."""

    attention: str
    """The attention sub-layer with its output projection, residual and norm."""

    query: str
    key: str
    value: str

    attention_output: str
    """The projection back to the model's width; an adapter after attention follows it."""

    attention_norm: str
    """The norm that closes the attention sub-layer; its input includes the residual."""

    feed_forward: tuple[str, ...]
    """The modules that make up the feed-forward sub-layer with its residual and norm, in order."""

    feed_forward_in: str
    """The projection to the inner width."""

    feed_forward_out: str
    """The projection back to the model's width; an adapter after the feed-forward follows it."""

    feed_forward_norm: str
    """The norm that closes the layer; its input includes the residual."""

    def module(self, model: nn.Module, part: Part) -> nn.Module:
        """Return the module of one part in the model the site was made for, or in a copy of it."""
        return model.get_submodule(getattr(self, part))

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

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        ...

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        ...

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run a masked-LM model's head on last-layer states [… dim]; returns [… vocabulary]."""
        ...

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, that the encoder has positions for."""
        ...
