"""States of both sides of parallel text: which layers, a block at a time, and their directions."""

from collections.abc import Iterator, Sequence

from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from isogloss.diagnostics.setting import LoadedEncoder
from isogloss.training.states import Pair, ParallelText, StateOptions, layers_once

PAIRS_PER_BLOCK = 1024
"""Pairs in memory together: enough to be batched by length with little padding."""

Sides = tuple[Float[Tensor, "layer item dim"], Float[Tensor, "layer item dim"]]


def parallel_states(
    loaded: LoadedEncoder,
    text: ParallelText,
    pairs: Sequence[Pair],
    languages: tuple[str, str],
    request: StateOptions,
) -> Iterator[Sides]:
    """Yield the states of the first and of the second sides, all layers from one pass over each.

    Memory does not grow with the text.
    """
    first, second = languages
    for start in range(0, len(pairs), PAIRS_PER_BLOCK):
        block = pairs[start : start + PAIRS_PER_BLOCK]
        yield (
            text.states(loaded, [pair.first for pair in block], first, request),
            text.states(loaded, [pair.second for pair in block], second, request),
        )


def directions(states: Float[Tensor, "item dim"], *, centred: bool) -> Float[Tensor, "item dim"]:
    """Return states normalised to length 1, after subtracting their mean if ``centred``."""
    return normalize(states - states.mean(dim=0) if centred else states, dim=1)


def layer_numbers(layers: Sequence[int], loaded: LoadedEncoder, where: str) -> list[int]:
    """Return layers counted from 0 (the embeddings); -1 is the last, and none named means all."""
    count: int = loaded[0].config.num_hidden_layers + 1
    return [layer % count for layer in layers_once(loaded[0], layers, where)] or list(range(count))
