"""Explicit attention with quick dropout, offered to transformers under a name of its own.

On a CPU the backward pass of fused attention is the slow part, and after explicit attention the dropout of
its weights. Without dropout this equals transformers' eager attention to the bit.
"""

from typing import Any

import torch
from torch import Tensor

from isogloss.nn.dropout import drop

NAME = "isogloss-explicit"


def offer_explicit_attention() -> str:
    """Tell transformers of the attention, and return the name a model asks for it by."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import eager_mask

    AttentionInterface.register(NAME, explicit_attention)
    AttentionMaskInterface.register(NAME, eager_mask)
    return NAME


def fastest_attention() -> str:
    """Name the attention that is fastest here: fused on a GPU, explicit on a CPU, in scoring too."""
    return "sdpa" if torch.cuda.is_available() else offer_explicit_attention()


def explicit_attention(  # noqa: PLR0913, PLR0917 (transformers' signature)
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Return states [batch subword head dim] and weights [batch head subword subword].

    Queries, keys and values are [batch head subword dim]; the mask is added to the raw weights.
    """
    weights = torch.matmul(query, key.transpose(2, 3)) * (scaling or query.size(-1) ** -0.5)
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = torch.softmax(weights, dim=-1)
    if module.training:
        weights = drop(weights, dropout)
    return torch.matmul(weights, value).transpose(1, 2).contiguous(), weights
