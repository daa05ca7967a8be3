"""Bitext mining by margins: which rows of two sets of states translate each other?

Artetxe & Schwenk (2019), "Margin-based Parallel Corpus Mining with Multilingual Sentence Embeddings": a
pair's cosine is compared with the mean cosine of both sentences with their k nearest neighbours in the other
language (Eq. 2 and 3). Each sentence of either side proposes the best of its neighbours; the proposals are
taken from the best down, each sentence once ("max" of Section 3).
"""

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

COSINE_BLOCK = 4096
"""Sentences of each side in a block of cosines, which bounds memory (64 MiB)."""

MIN_MEAN_COSINE = 1e-6
"""A mean cosine that is lower counts as this much, so that a ratio keeps the sign of its cosine."""

Margin = Literal["ratio", "distance", "cosine"]


def _cosine_ratio(cosine: Tensor, mean: Tensor) -> Tensor:
    return cosine / mean.clamp(min=MIN_MEAN_COSINE)


def _cosine_only(cosine: Tensor, _: Tensor) -> Tensor:
    return cosine


MARGINS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "ratio": _cosine_ratio,
    "distance": torch.sub,
    "cosine": _cosine_only,
}
"""Margins of a cosine over the mean of the neighbours' (Section 3, where the last is called absolute)."""


def mine(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "other dim"], *, neighbours: int = 4, margin: str = "ratio"
) -> tuple[Int[Tensor, "pair 2"], Float[Tensor, " pair"]]:
    """Return pairs of rows of x and y, each row in one pair at most, and their scores, the highest first.

    Rows have length 1.
    """
    (cosines_x, nearest_x), (cosines_y, nearest_y) = nearest(x, y, neighbours)
    mean_x = cosines_x.mean(dim=1)
    mean_y = cosines_y.mean(dim=1)
    forward, choice_y = MARGINS[margin](cosines_x, (mean_x.unsqueeze(1) + mean_y[nearest_x]) / 2).max(dim=1)
    backward, choice_x = MARGINS[margin](cosines_y, (mean_y.unsqueeze(1) + mean_x[nearest_y]) / 2).max(dim=1)
    rows, columns = (torch.arange(len(side), device=x.device) for side in (x, y))
    candidates = torch.cat(
        (
            torch.stack((rows, nearest_x[rows, choice_y]), dim=1),
            torch.stack((nearest_y[columns, choice_x], columns), dim=1),
        )
    )
    scores, order = torch.cat((forward, backward)).double().sort(descending=True, stable=True)
    candidates = candidates[order].cpu()
    numbers = _each_once(candidates.tolist())
    return candidates[numbers], scores.cpu()[numbers]


def _each_once(candidates: Sequence[Sequence[int]]) -> list[int]:
    """Return the indices of the pairs whose sides are in no earlier pair."""
    rows: set[int] = set()
    columns: set[int] = set()
    indices = []
    for index, (row, column) in enumerate(candidates):
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            indices.append(index)
    return indices


Nearest = tuple[Float[Tensor, "_ _"], Int[Tensor, "_ _"]]
"""Cosines [sentence, neighbour], the highest first, and the neighbours' numbers."""


def nearest(
    x: Float[Tensor, "item dim"], y: Float[Tensor, "other dim"], neighbours: int
) -> tuple[Nearest, Nearest]:
    """Return the highest cosines of each row of x with the indices of rows of y, then the same for y in x.

    Cosines are computed in blocks, each once. With fewer rows than ``neighbours`` all are returned.
    """
    nearest_x, nearest_y = (
        (
            x.new_full((len(queries), min(neighbours, len(keys))), -torch.inf),
            torch.zeros((len(queries), min(neighbours, len(keys))), dtype=torch.long, device=x.device),
        )
        for queries, keys in ((x, y), (y, x))
    )
    for row in range(0, len(x), COSINE_BLOCK):
        for column in range(0, len(y), COSINE_BLOCK):
            cosines = x[row : row + COSINE_BLOCK] @ y[column : column + COSINE_BLOCK].T
            _update(nearest_x, cosines, row, column)
            _update(nearest_y, cosines.T.contiguous(), column, row)
    return nearest_x, nearest_y


def _update(highest: Nearest, cosines: Float[Tensor, "row column"], row: int, column: int) -> None:
    """Merge a block's cosines into the highest so far.

    The block's first row and column are given by their index.
    """
    values, numbers = (part[row : row + len(cosines)] for part in highest)
    block_values, indices = cosines.topk(min(values.shape[1], cosines.shape[1]), dim=1)
    highest_values, order = torch.cat((values, block_values), dim=1).topk(values.shape[1], dim=1)
    numbers.copy_(torch.cat((numbers, indices + column), dim=1).gather(1, order))
    values.copy_(highest_values)
