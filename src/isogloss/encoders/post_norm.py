"""The post-norm layer of the original Transformer, as BERT laid it out in its modules; others took it over.

Each sub-layer ends in dropout, residual and norm (Vaswani et al. 2017, Section 3.1).
"""

from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from isogloss.core.runs import Architecture
from isogloss.encoders.family import Site, encoder_prefix

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def post_norm_sites(model: "PreTrainedModel") -> list[Site]:
    """List the layers of an encoder, or of the encoder inside a model, from the first to the last."""
    prefix = encoder_prefix(model)
    layers = range(model.config.num_hidden_layers)
    return [post_norm_site(f"{prefix}encoder.layer.{index}", index + 1) for index in layers]


def post_norm_site(block: str, layer: int) -> Site:
    """Name the modules of one layer."""
    return Site(
        layer=layer,
        block=block,
        attention=(f"{block}.attention",),
        query=f"{block}.attention.self.query",
        key=f"{block}.attention.self.key",
        value=f"{block}.attention.self.value",
        attention_output=f"{block}.attention.output.dense",
        attention_norm=f"{block}.attention.output.LayerNorm",
        attention_dropout=f"{block}.attention.self.dropout",
        output_dropout=f"{block}.attention.output.dropout",
        feed_forward=(f"{block}.intermediate", f"{block}.output"),
        feed_forward_in=f"{block}.intermediate.dense",
        feed_forward_out=f"{block}.output.dense",
        feed_forward_norm=f"{block}.output.LayerNorm",
    )


def post_norm_shape(architecture: Architecture) -> dict[str, Any]:
    """Say an architecture in BERT's fields of config.json; what differs from family to family is missing."""
    return {
        "hidden_size": architecture.dim,
        "num_hidden_layers": architecture.layers,
        "num_attention_heads": architecture.heads,
        "intermediate_size": architecture.feed_forward,
        "max_position_embeddings": architecture.positions,
    }


def post_norm_tag_scores(model: "PreTrainedModel", states: Tensor) -> Tensor:
    """Run the head of BertForTokenClassification and its like: dropout and a linear layer."""
    scores: Tensor = model.classifier(model.dropout(states))
    return scores


def post_norm_embeddings(model: "PreTrainedModel") -> nn.Module:
    """Return the embeddings: words, positions and segments, summed, normed and dropped out."""
    embeddings: nn.Module = model.get_submodule(f"{encoder_prefix(model)}embeddings")
    return embeddings


POST_NORM_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")
"""BERT's fields of config.json."""
