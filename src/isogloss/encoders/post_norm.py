"""The post-norm layer of the original Transformer, as BERT, RoBERTa and XLM-R lay it out in their modules.

Each sub-layer ends in dropout, residual and norm (Vaswani et al. 2017, Section 3.1).
"""

from typing import TYPE_CHECKING

from torch import nn

from isogloss.encoders.family import Site

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
        attention=f"{block}.attention",
        query=f"{block}.attention.self.query",
        key=f"{block}.attention.self.key",
        value=f"{block}.attention.self.value",
        attention_output=f"{block}.attention.output.dense",
        attention_norm=f"{block}.attention.output.LayerNorm",
        feed_forward=(f"{block}.intermediate", f"{block}.output"),
        feed_forward_in=f"{block}.intermediate.dense",
        feed_forward_out=f"{block}.output.dense",
        feed_forward_norm=f"{block}.output.LayerNorm",
    )


def post_norm_embeddings(model: "PreTrainedModel") -> nn.Module:
    """Return the embeddings: words, positions and segments, summed, normed and dropped out."""
    embeddings: nn.Module = model.get_submodule(f"{encoder_prefix(model)}embeddings")
    return embeddings


def encoder_prefix(model: "PreTrainedModel") -> str:
    """Return what the names of the encoder's modules begin with: "bert." in a model, "" in an encoder."""
    return "" if model.base_model is model else f"{model.base_model_prefix}."
