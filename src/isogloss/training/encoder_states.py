"""An encoder's states for texts that are subwords already: batched by length, several layers in one pass."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.training.evaluation import in_batches
from isogloss.training.memory import give_back
from isogloss.training.precision import scoring

Take = Callable[[list[int], Float[Tensor, "layer batch subword dim"]], None]
"""What becomes of a batch: the numbers of its texts and their states; those of padding mean nothing."""


def encoder_states(
    model: Any,
    texts: Sequence[Sequence[int]],
    take: Take,
    *,
    layers: Sequence[int],
    padding: int,
    precision: str,
) -> None:
    """Hand the states of texts over, batch by batch, in float32 where the encoder is.

    Layer 0 is the embeddings, -1 the last. ``padding`` is the number of the subword that fills up a batch.
    """
    check_layers(model, layers)
    model.eval()
    encoder: Any = model.base_model
    with scoring(encoder, precision) as device:
        for numbers in in_batches([len(text) for text in texts]):
            longest = max(len(texts[number]) for number in numbers)
            ids = torch.full((len(numbers), longest), padding)
            real = torch.zeros_like(ids)
            for row, number in enumerate(numbers):
                ids[row, : len(texts[number])] = torch.tensor(texts[number])
                real[row, : len(texts[number])] = 1
            given = {"input_ids": ids.to(device), "attention_mask": real.to(device)}
            states = encoder(**given, output_hidden_states=True).hidden_states
            take(numbers, torch.stack([states[layer].float() for layer in layers]))
    give_back()


def check_layers(model: Any, layers: Sequence[int]) -> None:
    """Raise ConfigError for a layer that the encoder has not."""
    last = model.config.num_hidden_layers
    for layer in layers:
        if not -last - 1 <= layer <= last:
            raise ConfigError(
                f"no layer {layer}: this encoder has {last} layers: use 0 (the embeddings) to {last}, "
                f"or -1 (the last)."
            )
