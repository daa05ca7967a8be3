"""States of parallel text, for diagnostics of encoders that compare languages."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from jaxtyping import Float
from torch import Tensor

from isogloss.diagnostics.setting import LoadedEncoder, MeasureSetting
from isogloss.training.parallel_text import Pair, ParallelText
from isogloss.training.states import StateOptions

PAIRS_PER_BLOCK = 1024
"""Pairs in memory together: enough to be batched by length with little padding."""


Sides = tuple[Float[Tensor, "layer item dim"], Float[Tensor, "layer item dim"]]


AnyRow = TypeVar("AnyRow")


def rows_of_pairs(setting: MeasureSetting, rows: Callable[..., Iterable[AnyRow]]) -> list[AnyRow]:
    """Return the rows of an encoder about each pair of the first language with a further one.

    ``rows`` is called with the encoder and its tokenizer, parallel text, the two languages, ``model`` and
    ``precision``.
    """
    subject, (pivot, *partners) = setting.subjects[0], setting.languages
    encoder = setting.encoder(subject)
    return [
        row
        for partner in partners
        for row in rows(
            encoder, setting.parallel, (pivot, partner), model=subject.id, precision=setting.precision
        )
    ]


def parallel_states(
    encoder: LoadedEncoder,
    text: ParallelText,
    pairs: Sequence[Pair],
    languages: tuple[str, str],
    request: StateOptions,
) -> Iterator[Sides]:
    """Yield the states of the first and of the second sides, all layers from one pass over each.

    Memory does not grow with the text.
    """
    first_language, second_language = languages
    for start in range(0, len(pairs), PAIRS_PER_BLOCK):
        block = pairs[start : start + PAIRS_PER_BLOCK]
        yield (
            text.states(encoder, [pair.first for pair in block], first_language, request),
            text.states(encoder, [pair.second for pair in block], second_language, request),
        )
