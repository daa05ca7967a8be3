"""One vector a sentence: the mean of its subwords' states."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.encoders import family_of
from isogloss.training.encoder_states import encoder_states


def sentence_states(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    *,
    layers: Sequence[int] = (-1,),
    limit: int = 128,
    precision: str = "auto",
) -> Float[Tensor, "layer sentence dim"]:
    """Return the mean of each text's states in some layers, special subwords left out, on the CPU.

    Layer 0 is the embeddings, -1 the last. A text is cut after ``limit`` subwords, or where the encoder has
    no more positions; one without subwords is all zeros.
    """
    limit = min(limit, family_of(model).longest_text(model.config))
    ids = tokenizer(list(texts), truncation=True, max_length=limit, return_special_tokens_mask=True)
    words = [[1 - special for special in mask] for mask in ids["special_tokens_mask"]]
    found: list[Tensor] = [torch.empty(0)] * len(texts)

    def pool(numbers: list[int], states: Float[Tensor, "layer batch subword dim"]) -> None:
        real = torch.zeros(states.shape[1:3])
        for row, number in enumerate(numbers):
            real[row, : len(words[number])] = torch.tensor(words[number], dtype=real.dtype)
        weights = real.to(states.device).unsqueeze(2)
        pooled = (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
        for number, vectors in zip(numbers, pooled.cpu().unbind(dim=1), strict=True):
            found[number] = vectors

    encoder_states(
        model,
        ids["input_ids"],
        pool,
        layers=layers,
        padding=tokenizer.pad_token_id,
        precision=precision,
    )
    return torch.stack(found, dim=1)
