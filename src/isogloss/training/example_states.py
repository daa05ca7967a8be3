"""One vector an example: the mean of its subwords' states, read alone or beside its translation.

Beside its translation an example has the states that a model of X-Mixup computes for it at inference: the
translation stands in the source's half of the batch, and one layer mixes (``encoders.mixup``).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.data.examples import Example
from isogloss.encoders import family_of
from isogloss.encoders.mixup import Mixup, mixing
from isogloss.encoders.speaking import of_language
from isogloss.tasks import Task
from isogloss.tasks.batch import Batch, EncodedRow, collate
from isogloss.training.batching import by_length
from isogloss.training.evaluation import BUDGET, CALL
from isogloss.training.memory import give_back
from isogloss.training.precision import scoring


@dataclass(frozen=True, kw_only=True)
class StatesWanted:
    """Which states of texts are wanted."""

    layers: tuple[int, ...]
    """0 is the embeddings, -1 the last."""
    limit: int
    """Longest text in subwords; what is longer is cut."""
    precision: str = "auto"


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What examples are read beside."""

    rows: Sequence[EncodedRow]
    """The translation of each."""
    mixup: Mixup
    source: str
    """The language of the translations."""


def example_rows(
    task: Task, examples: Sequence[Example], loaded: tuple[Any, Any], limit: int
) -> list[EncodedRow]:
    """Encode examples as their task does, a row each: of a long one what fits, without labels."""
    model, tokenizer = loaded
    limit = min(limit, family_of(model).longest_text(model.config))
    found: dict[int, EncodedRow] = {}
    for row in task.encode(examples, tokenizer, limit=limit, overlap=0):
        bare = EncodedRow(example=row.example, subwords=row.subwords, segments=row.segments)
        found.setdefault(row.example, bare)
    return [found[number] for number in range(len(examples))]


def row_states(
    loaded: tuple[Any, Any],
    rows: Sequence[EncodedRow],
    language: str,
    wanted: StatesWanted,
    *,
    beside: Beside | None = None,
) -> Float[Tensor, "layer row dim"]:
    """Return the mean of each row's states in some layers, special subwords left out, on the CPU.

    A row of nothing else is all zeros.
    """
    model, tokenizer = loaded
    special = torch.tensor(sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id}))
    found: list[Tensor] = [torch.empty(0)] * len(rows)
    model.eval()
    with scoring(model, wanted.precision) as device:
        for numbers, batch in _batches(rows, beside, padding=tokenizer.pad_token_id):
            own = slice(-len(numbers), None)  # Of pairs the second half are the examples.
            states = _states(model, batch.to(device), language, wanted.layers, beside)[:, own]
            real = ~torch.isin(batch.subwords[own], special)
            if batch.mask is not None:
                real &= batch.mask[own].bool()
            pooled = _mean(states, real.to(device)).cpu()
            for number, vectors in zip(numbers, pooled.unbind(dim=1), strict=True):
                found[number] = vectors
    give_back()
    return torch.stack(found, dim=1)


def _batches(
    rows: Sequence[EncodedRow], beside: Beside | None, *, padding: int
) -> Iterator[tuple[list[int], Batch]]:
    """Give numbers of rows and their batch, after as many translations where there are any."""
    partners = () if beside is None else beside.rows
    lengths = [len(row.subwords) for row in rows]
    if partners:
        lengths = [max(own, len(row.subwords)) for own, row in zip(lengths, partners, strict=True)]
    budget, spare = (BUDGET // 2 if partners else BUDGET), (None if torch.cuda.is_available() else CALL)
    for numbers in by_length(lengths, budget, padding=spare):
        before = [partners[number] for number in numbers] if partners else []
        yield numbers, collate([*before, *(rows[number] for number in numbers)], padding=padding)


def _states(
    model: Any, batch: Batch, language: str, layers: Sequence[int], beside: Beside | None
) -> Float[Tensor, "layer batch subword dim"]:
    encoder: Any = model.base_model
    if beside is None:
        with of_language(model, language):
            found = encoder(**batch.inputs(), output_hidden_states=True).hidden_states
    else:
        beside.mixup.ratio.to(batch.subwords.device)
        half = len(batch.subwords) // 2
        languages = (beside.source,) * half + (language,) * half
        with of_language(model, languages), mixing(model, beside.mixup, batch.mask):
            found = encoder(**batch.inputs(), output_hidden_states=True).hidden_states
    return torch.stack([found[layer].float() for layer in layers])


def _mean(states: Float[Tensor, "layer row subword dim"], real: Tensor) -> Float[Tensor, "layer row dim"]:
    weights = real.to(states.dtype).unsqueeze(2)
    return (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
