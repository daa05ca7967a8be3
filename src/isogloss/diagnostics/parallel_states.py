"""Both sides of parallel text as sentence states, a block at a time: memory does not grow with the text."""

from collections.abc import Iterator, Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.data.examples import Translation
from isogloss.encoders.speaking import of_language
from isogloss.training.sentence_states import sentence_states

BLOCK = 1024
"""Translations in memory together: enough to be batched by length with little padding."""

Sides = tuple[Float[Tensor, "layer item dim"], Float[Tensor, "layer item dim"]]


def parallel_states(
    loaded: tuple[Any, Any],
    translations: Sequence[Translation],
    languages: tuple[str, str],
    *,
    layers: Sequence[int],
    limit: int,
    precision: str,
) -> Iterator[Sides]:
    """Give the states of the first and of the second sides, all layers from one pass over each."""
    model, tokenizer = loaded

    def states(texts: list[str], language: str) -> Tensor:
        with of_language(model, language):
            return sentence_states(model, tokenizer, texts, layers=layers, limit=limit, precision=precision)

    for start in range(0, len(translations), BLOCK):
        block = translations[start : start + BLOCK]
        first, second = languages
        yield states([one.first for one in block], first), states([one.second for one in block], second)


def layer_numbers(layers: Sequence[int], model: Any, where: str) -> list[int]:
    """Return layers counted from 0 (the embeddings); -1 is the last, and none named means all."""
    last: int = model.config.num_hidden_layers
    for layer in layers:
        if not -last - 1 <= layer <= last:
            raise ConfigError(
                f"{where}: no layer {layer}: this encoder has {last} layers: use 0 (the embeddings) to "
                f"{last}, or -1 (the last)."
            )
    return list(dict.fromkeys(layer % (last + 1) for layer in layers)) or list(range(last + 1))
