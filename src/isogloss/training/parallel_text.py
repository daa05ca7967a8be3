"""Texts that are parallel in several languages, and their states.

Sentences and examples in two languages are compared by the mean of their subwords' states. Examples are
matched by id.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.core.arguments import do_nothing
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
from isogloss.training.sides import scoring_partners, translation_rows, without_labels
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
        """Return the texts that both languages have, in the order of the first language."""
        ...

    def states(
        self,
        model_and_tokenizer: tuple[Model, Tokenizer],
        texts: Sequence[object],
        language: str,
        options: StateOptions,
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector per text, the mean of its subwords' states."""
        ...


@dataclass(frozen=True)
class BitextSentences:
    """Translations, whose keys are the first texts."""

    read: Callable[[str], list[Translation]]
    """From a pair such as en-fr to its translations."""

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Return the translations of a language pair."""
        return [Pair(pair.first, pair.first, pair.second) for pair in self.read(f"{first}-{second}")]

    def states(
        self,
        model_and_tokenizer: tuple[Model, Tokenizer],
        texts: Sequence[Any],
        language: str,
        options: StateOptions,
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector per sentence."""
        return compute_language_states(model_and_tokenizer, texts, language, options)


@dataclass(frozen=True, kw_only=True)
class ParallelExamples:
    """Labelled examples that are the same in every language, under the same ids."""

    task: Task
    """The task that encodes them."""
    read: Callable[[str], list[Example]]
    """From a language to its examples."""
    name: str
    """Their name in messages."""
    translations: Callable[[str], list[Example]] | None = None
    """From a language to the translations with which its examples are read. None reads examples without
    translations."""
    mixup: Mixup | None = None
    """The mixup of examples with their translations."""
    source: str = ""
    """The language of the translations."""
    warn: Callable[[str], None] = do_nothing

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Match examples by id. Raises DataError if no id is shared, or too many labels differ."""
        names = (f"{self.name} {first}", f"{self.name} {second}")
        pairs = match_by_id(self.read(first), self.read(second), names=names, partial=True)
        for language in (first, second):
            self._warn_of_unmixed(language, {example.id for example, _ in pairs})
        return [Pair(example.id, example, partner) for example, partner in pairs]

    def states(
        self,
        model_and_tokenizer: tuple[Model, Tokenizer],
        texts: Sequence[Any],
        language: str,
        options: StateOptions,
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector per example, mixed with its translation if it has one.

        Raises ConfigError for pooling, which applies to sentences only.
        """
        if options.pooling is not None:
            raise ConfigError(
                f'{self.name}: pooling = "model" applies to sentences, not to examples of a task. Remove '
                f"pooling, or measure on bitext."
            )
        encode = partial(
            example_rows, self.task, model_and_tokenizer=model_and_tokenizer, limit=options.limit
        )
        rows = encode(examples=texts)
        translations = self._translations(language)
        batches = scored_batches(
            rows,
            scoring_partners(rows, translation_rows(texts, list(translations.values()), encode)),
            padding=model_and_tokenizer[1].pad_token_id,
            languages=(self.source, language),
        )
        return row_states(model_and_tokenizer, batches, options, self.mixup or Mixup(layer=1, ratio=0.0))

    def _translations(self, language: str) -> dict[str, Example]:
        """Return, by id, the translations that examples are mixed with. Empty without mixing."""
        if self.mixup is None or self.mixup.ratio == 0 or self.translations is None:
            return {}
        return {translation.id: translation for translation in self.translations(language)}

    def _warn_of_unmixed(self, language: str, ids: set[str]) -> None:
        translations = self._translations(language)
        if translations and (count := len(ids - translations.keys())):
            self.warn(
                f"{self.name} {language}: {count} of {len(ids)} examples have no translation into "
                f"{self.source} and are read unmixed."
            )


def example_rows(
    task: Task, examples: Sequence[Example], model_and_tokenizer: tuple[Model, Tokenizer], limit: int
) -> list[EncodedRow]:
    """Encode examples as their task does, without labels, in one row each.

    Long examples are represented by their first window.
    """
    model, tokenizer = model_and_tokenizer
    limit = min(limit, family_of(model).longest_text(model.config))
    rows: dict[int, EncodedRow] = {}
    for row in task.encode(examples, tokenizer, limit=limit, overlap=0):
        rows.setdefault(row.example, without_labels(row))
    return [rows[index] for index in range(len(examples))]


def row_states(
    model_and_tokenizer: tuple[Model, Tokenizer],
    batches: Sequence[ScoredBatch],
    options: StateOptions,
    mixup: Mixup,
) -> Float[Tensor, "layer row dim"]:
    """Return the mean of each row's states in some layers, without special subwords, on the CPU.

    A row with only special subwords is all zeros. The row of a multiple-choice example is the mean over the
    context with each option in turn. A row with a translation has its states in an X-Mixup model at
    inference: the translation is in the source half of the batch, and one layer mixes (``encoders.mixup``).
    Raises ModelError if states are not finite.
    """
    model, tokenizer = model_and_tokenizer
    special = torch.tensor(sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id}))
    row_vectors: dict[int, Tensor] = {}
    model.eval()
    with scoring(model, options.precision) as device:
        mixup.ratio_module.to(device)
        for batch in batches:
            sides = batch.sides.to(device)
            counts = sides.target.rows_of_items
            target = slice(len(sides.source.subwords), None)
            is_text = ~torch.isin(batch.sides.joined.subwords[target], special)
            if batch.sides.joined.mask is not None:
                is_text &= batch.sides.joined.mask[target].bool()
            with sides.mixing(model, mixup):
                states = forward(model.base_model, sides.joined, output_hidden_states=True).hidden_states
            target_states = torch.stack([states[layer].float() for layer in options.layers])[:, target]
            vectors = _average_subwords(target_states, is_text.to(device), counts).cpu()
            row_vectors |= dict(zip(batch.numbers, vectors.unbind(dim=1), strict=True))
    release_memory()
    return check_finite(torch.stack([row_vectors[row] for row in range(len(row_vectors))], dim=1))


def _average_subwords(
    states: Float[Tensor, "layer row subword dim"], is_text: Tensor, counts: Sequence[int]
) -> Float[Tensor, "layer item dim"]:
    """Return the mean over the real subwords of each item, whose numbers of rows are ``counts``."""
    weights = is_text.to(states.dtype).unsqueeze(2)
    sums = (states * weights).sum(dim=2)
    sizes = weights.sum(dim=1)
    if sum(counts) > len(counts):
        item = torch.repeat_interleave(torch.tensor(counts)).to(states.device)
        sums = sums.new_zeros(len(sums), len(counts), sums.size(2)).index_add(1, item, sums)
        sizes = sizes.new_zeros(len(counts), 1).index_add(0, item, sizes)
    return sums / sizes.clamp(min=1)
