"""Attention that computes its weights explicitly, registered with transformers: on a CPU the fastest."""

import torch
from torch import Tensor, nn

from isogloss.nn.dropout import drop

EXPLICIT = "isogloss-explicit"
"""Name under which our attention is registered with transformers."""


def fastest_attention() -> str:
    """Return the name of the fastest attention on this machine: fused on a GPU, explicit on a CPU."""
    return "sdpa" if torch.cuda.is_available() else offer_explicit_attention()


def offer_explicit_attention() -> str:
    """Register explicit attention with fast dropout in transformers, and return its name.

    On a CPU the backward passes of fused attention, and of dropout in eager attention, are slow. Without
    dropout this equals transformers' eager attention to the bit.
    """
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(EXPLICIT, explicit_attention)
    AttentionMaskInterface.register(EXPLICIT, eager_mask)
    return EXPLICIT


def explicit_attention(  # noqa: PLR0913, PLR0917 (transformers' signature)
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: object,
) -> tuple[Tensor, Tensor]:
    """Return states [batch subword head dim] and weights [batch head subword subword].

    Queries, keys and values are [batch head subword dim]; the mask is added to the raw weights. Each head of
    keys and values may serve several of queries.
    """
    if (each := query.size(1) // key.size(1)) > 1:
        key, value = (states.repeat_interleave(each, dim=1) for states in (key, value))
    weights = torch.matmul(query, key.transpose(2, 3)) * (scaling or query.size(-1) ** -0.5)
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = torch.softmax(weights, dim=-1)
    if module.training:
        weights = drop(weights, dropout)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights
