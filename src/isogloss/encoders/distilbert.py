"""DistilBERT (Sanh et al. 2019): BERT's layers, half as many, without segments."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor, nn

from isogloss.core.runs import Architecture
from isogloss.encoders.family import Ability, Site, encoder_prefix
from isogloss.encoders.post_norm import post_norm_embeddings, post_norm_tag_scores

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class DistilBert:
    """DistilBERT: no segments, positions from 0, masked-LM head in four modules of the model."""

    name: ClassVar[str] = "distilbert"
    first_position: ClassVar[int] = 0
    lacks: ClassVar[Mapping[Ability, str]] = {}
    dropouts: ClassVar[tuple[str, ...]] = ("dropout", "attention_dropout")

    def sites(self, encoder: "PreTrainedModel") -> list[Site]:
        """List the layers from the first to the last."""
        prefix = encoder_prefix(encoder)
        layers = range(encoder.config.num_hidden_layers)
        return [_site(f"{prefix}transformer.layer.{index}", index + 1) for index in layers]

    def embeddings(self, encoder: "PreTrainedModel") -> nn.Module:
        """Return the module whose output enters the first layer."""
        return post_norm_embeddings(encoder)

    def masked_lm_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of DistilBertForMaskedLM on last-layer states [… dim]; returns [… vocabulary]."""
        inner = model.vocab_layer_norm(model.activation(model.vocab_transform(states)))
        scores: Tensor = model.vocab_projector(inner)
        return scores

    def tag_scores(self, model: "PreTrainedModel", states: Tensor) -> Tensor:
        """Run the head of DistilBertForTokenClassification on last-layer states; returns [… label]."""
        return post_norm_tag_scores(model, states)

    def longest_text(self, config: Any) -> int:
        """Return the most subwords, special ones included, that the encoder has positions for."""
        return int(config.max_position_embeddings)

    def shape(self, architecture: Architecture, *, padding: int) -> dict[str, Any]:
        """Say an architecture in the fields of DistilBertConfig."""
        del padding
        return {
            "dim": architecture.dim,
            "n_layers": architecture.layers,
            "n_heads": architecture.heads,
            "hidden_dim": architecture.feed_forward,
            "max_position_embeddings": architecture.positions,
        }


def _site(block: str, layer: int) -> Site:
    return Site(
        layer=layer,
        block=block,
        attention=(f"{block}.attention", f"{block}.sa_layer_norm"),
        query=f"{block}.attention.q_lin",
        key=f"{block}.attention.k_lin",
        value=f"{block}.attention.v_lin",
        attention_output=f"{block}.attention.out_lin",
        attention_norm=f"{block}.sa_layer_norm",
        attention_dropout=f"{block}.attention.dropout",
        feed_forward=(f"{block}.ffn", f"{block}.output_layer_norm"),
        feed_forward_in=f"{block}.ffn.lin1",
        feed_forward_out=f"{block}.ffn.lin2",
        feed_forward_norm=f"{block}.output_layer_norm",
    )
