"""Texts that are parallel in several languages, and their states.

Sentences and examples of one text in two languages are compared by the mean of their subwords' states;
examples are matched by id.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.errors import ConfigError
from isogloss.data.examples import Example, Translation
from isogloss.data.projection.parallel_examples import match_by_id
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.mixup import Mixup
from isogloss.tasks.batch import EncodedRow, forward
from isogloss.tasks.task import Task
from isogloss.training.evaluation import ScoredBatch, scored_batches
from isogloss.training.precision import release_memory, scoring
from isogloss.training.sides import scoring_partners, translation_rows, unlabelled
from isogloss.training.states import StateOptions, check_finite, compute_language_states


@dataclass(frozen=True, slots=True)
class Pair:
    """One text in two languages."""

    key: str
    """Identifies the text across pairs."""
    first: object
    second: object


@runtime_checkable
class ParallelText(Protocol):
    """Texts of several languages."""

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Return the texts that both languages have, in the first one's order."""
        ...

    def states(
        self, loaded: tuple[Model, Tokenizer], texts: Sequence[object], language: str, options: StateOptions
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector for each text: the mean of its subwords' states."""
        ...


@dataclass(frozen=True)
class BitextSentences:
    """Translations; their keys are the first texts."""

    read: Callable[[str], list[Translation]]
    """From a pair such as en-fr."""

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Return the translations of a pair of languages."""
        return [Pair(pair.first, pair.first, pair.second) for pair in self.read(f"{first}-{second}")]

    def states(
        self, loaded: tuple[Model, Tokenizer], texts: Sequence[Any], language: str, options: StateOptions
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector a sentence."""
        return compute_language_states(loaded, texts, language, options)


@dataclass(frozen=True, kw_only=True)
class ParallelExamples:
    """Labelled examples that are the same in every language, under the same ids."""

    task: Task
    """Encodes them."""
    read: Callable[[str], list[Example]]
    """From a language."""
    name: str
    """Their name in messages."""
    translations: Callable[[str], list[Example]] | None = None
    """From a language to the translations of its examples that they are read with; None if they are read
    alone."""
    mixup: Mixup | None = None
    """The mixup of examples with their translations."""
    source: str = ""
    """The language of the translations."""
    warn: Callable[[str], None] = lambda _: None

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Match examples by id; DataError where none are in common, or labels differ."""
        names = (f"{self.name} {first}", f"{self.name} {second}")
        pairs = match_by_id(self.read(first), self.read(second), names=names, partial=True)
        for language in (first, second):
            self._warn_of_unmixed(language, {example.id for example, _ in pairs})
        return [Pair(example.id, example, other) for example, other in pairs]

    def states(
        self, loaded: tuple[Model, Tokenizer], texts: Sequence[Any], language: str, options: StateOptions
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector an example, mixed with its translation where it has one."""
        if options.pooling is not None:
            raise ConfigError(
                f'{self.name}: pooling = "model" is of sentences, and these are examples of a task. Leave '
                f"pooling out, or measure on bitext."
            )
        encode = partial(example_rows, self.task, loaded=loaded, limit=options.limit)
        rows = encode(examples=texts)
        translations = self._translations(language)
        batches = scored_batches(
            rows,
            scoring_partners(rows, translation_rows(texts, list(translations.values()), encode)),
            padding=loaded[1].pad_token_id,
            languages=(self.source, language),
        )
        return row_states(loaded, batches, options, self.mixup or Mixup(layer=1, ratio=0.0))

    def _translations(self, language: str) -> dict[str, Example]:
        """Return by id the translations that examples are mixed with; none where nothing is mixed."""
        if self.mixup is None or self.mixup.ratio == 0 or self.translations is None:
            return {}
        return {translation.id: translation for translation in self.translations(language)}

    def _warn_of_unmixed(self, language: str, ids: set[str]) -> None:
        translations = self._translations(language)
        if translations and (alone := len(ids - translations.keys())):
            self.warn(
                f"{self.name} {language}: {alone} of {len(ids)} examples have no translation into "
                f"{self.source}; they are read alone, unmixed."
            )


def example_rows(
    task: Task, examples: Sequence[Example], loaded: tuple[Model, Tokenizer], limit: int
) -> list[EncodedRow]:
    """Encode examples as their task does, without labels, one row each: the first window of a long one."""
    model, tokenizer = loaded
    limit = min(limit, family_of(model).longest_text(model.config))
    by_example: dict[int, EncodedRow] = {}
    for row in task.encode(examples, tokenizer, limit=limit, overlap=0):
        by_example.setdefault(row.example, unlabelled(row))
    return [by_example[number] for number in range(len(examples))]


def row_states(
    loaded: tuple[Model, Tokenizer], batches: Sequence[ScoredBatch], options: StateOptions, mixup: Mixup
) -> Float[Tensor, "layer row dim"]:
    """Return the mean of each row's states in some layers, special subwords left out, on the CPU.

    A row of special subwords alone is all zeros; that of a choice is the context with each option in turn. A
    row with a translation has its states in a model of X-Mixup at inference: the translation is in the
    source's half of the batch, and one layer mixes (``encoders.mixup``). ModelError where states are not
    finite.
    """
    model, tokenizer = loaded
    special = torch.tensor(sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id}))
    by_row: dict[int, Tensor] = {}
    model.eval()
    with scoring(model, options.precision) as device:
        mixup.ratio_module.to(device)
        for batch in batches:
            sides = batch.sides.to(device)
            counts = sides.target.rows_of_items
            target = slice(len(sides.source.subwords), None)
            real = ~torch.isin(batch.sides.joined.subwords[target], special)
            if batch.sides.joined.mask is not None:
                real &= batch.sides.joined.mask[target].bool()
            with sides.mixing(model, mixup):
                states = forward(model.base_model, sides.joined, output_hidden_states=True).hidden_states
            chosen = torch.stack([states[layer].float() for layer in options.layers])[:, target]
            pooled = _average_subwords(chosen, real.to(device), counts).cpu()
            by_row |= dict(zip(batch.numbers, pooled.unbind(dim=1), strict=True))
    release_memory()
    return check_finite(torch.stack([by_row[number] for number in range(len(by_row))], dim=1))


def _average_subwords(
    states: Float[Tensor, "layer row subword dim"], real: Tensor, counts: Sequence[int]
) -> Float[Tensor, "layer item dim"]:
    """Return the mean over the real subwords of each item, of so many rows."""
    weights = real.to(states.dtype).unsqueeze(2)
    sums = (states * weights).sum(dim=2)
    sizes = weights.sum(dim=1)
    if sum(counts) > len(counts):
        item = torch.repeat_interleave(torch.tensor(counts)).to(states.device)
        sums = sums.new_zeros(len(sums), len(counts), sums.size(2)).index_add(1, item, sums)
        sizes = sizes.new_zeros(len(counts), 1).index_add(0, item, sizes)
    return sums / sizes.clamp(min=1)
