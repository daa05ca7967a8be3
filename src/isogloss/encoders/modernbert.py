"""ModernBERT (Warner et al. 2024), and with it mmBERT: norms first, rotated positions, gated feed-forward."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from isogloss.core.errors import ConfigError
from isogloss.core.runs import Architecture
from isogloss.encoders.family import Ability, Site, encoder_prefix

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class ModernBert:
    """ModernBERT: no segments; the last hidden states are normed after the last layer.

    The first layer's attention norm does nothing: the embeddings are normed already. Two layers of three
    look no farther than ``local_attention``.
    """

    name: ClassVar[str] = "modernbert"
    first_position: ClassVar[int] = 0
    lacks: ClassVar[Mapping[Ability, str]] = {
        "post-norm": "normalises before attention and feed-forward",
        "projections": "makes queries, keys and values with one matrix",
    }
    dropouts: ClassVar[tuple[str, ...]] = (
        "embedding_dropout",
        "attention_dropout",
        "mlp_dropout",
        "classifier_dropout",
    )

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        prefix = encoder_prefix(encoder)
        layers = range(encoder.config.num_hidden_layers)
        return [_site(f"{prefix}layers.{index}", index + 1) for index in layers]

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        embeddings: nn.Module = encoder.get_submodule(f"{encoder_prefix(encoder)}embeddings")
        return embeddings

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of ModernBertForMaskedLM on last-layer states [… dim]; returns [… vocabulary]."""
        scores: Tensor = model.decoder(model.head(states))
        return scores

    def tag_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of ModernBertForTokenClassification on last-layer states; returns [… label]."""
        scores: Tensor = model.classifier(model.drop(model.head(states)))
        return scores

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, of a text as in pretraining."""
        return int(config.max_position_embeddings)

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the fields of ModernBertConfig; ConfigError when heads are odd."""
        del padding
        if architecture.dim // architecture.heads % 2:
            raise ConfigError(
                f"architecture: {architecture.heads} heads on a width (dim) of {architecture.dim} are "
                f"{architecture.dim // architecture.heads} wide, and modernbert rotates pairs of numbers. "
                f"Take heads of 64, that is heads = dim / 64."
            )
        return {
            "hidden_size": architecture.dim,
            "num_hidden_layers": architecture.layers,
            "num_attention_heads": architecture.heads,
            "intermediate_size": architecture.feed_forward,
            "max_position_embeddings": architecture.positions,
        }


def _site(block: str, layer: int) -> Site:
    return Site(
        layer=layer,
        block=block,
        attention=(f"{block}.attn_norm", f"{block}.attn"),
        query=None,
        key=None,
        value=None,
        attention_output=f"{block}.attn.Wo",
        attention_norm=f"{block}.attn_norm",
        feed_forward=(f"{block}.mlp_norm", f"{block}.mlp"),
        feed_forward_in=f"{block}.mlp.Wi",
        feed_forward_out=f"{block}.mlp.Wo",
        feed_forward_norm=f"{block}.mlp_norm",
    )
