"""Text that says the same in several languages, as encoders read it: bitext, and parallel labelled test sets.

X-Mixup, Tables 2 and 7 and Figs 1 and 4, looks at the pairs of XNLI and PAWS-X and at sentences with tags,
which are the same examples in every language; bitext has plain sentences, and no more than two languages
need to share them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from isogloss.data.examples import Example, Translation
from isogloss.data.parallel_examples import matched
from isogloss.encoders import family_of
from isogloss.encoders.language_context import active_language
from isogloss.encoders.mixup import Mixup
from isogloss.tasks import Task
from isogloss.tasks.batch import EncodedRow, forward
from isogloss.training.evaluation import ScoredBatch, mixing_translations, scored_batches
from isogloss.training.precision import release_memory, scoring
from isogloss.training.states import sentence_states


@dataclass(frozen=True, kw_only=True)
class StatesWanted:
    """Which states of texts are wanted."""

    layers: tuple[int, ...]
    """0 is the embeddings, -1 the last."""
    limit: int
    """Longest text in subwords; what is longer is cut."""
    precision: str = "auto"


@dataclass(frozen=True, slots=True)
class Pair:
    """One text in two languages."""

    key: str
    """What says that it is the same one in other pairs too."""
    first: Any
    second: Any


@runtime_checkable
class ParallelText(Protocol):
    """Texts of several languages."""

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Return what is there in both languages, in the first one's order."""
        ...

    def states(
        self, loaded: tuple[Any, Any], texts: Sequence[Any], language: str, wanted: StatesWanted
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
        return [Pair(one.first, one.first, one.second) for one in self.read(f"{first}-{second}")]

    def states(
        self, loaded: tuple[Any, Any], texts: Sequence[Any], language: str, wanted: StatesWanted
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector a sentence."""
        model, tokenizer = loaded
        how: dict[str, Any] = {"limit": wanted.limit, "precision": wanted.precision}
        with active_language(model, language):
            return sentence_states(model, tokenizer, texts, layers=wanted.layers, **how)


@dataclass(frozen=True, kw_only=True)
class ParallelExamples:
    """Labelled examples that are the same in every language, under the same ids."""

    task: Task
    """Encodes them."""
    read: Callable[[str], list[Example]]
    """From a language."""
    name: str
    """What messages call them."""
    translations: Callable[[str], list[Example]] | None = None
    """From a language to its examples' translations that they are read beside; none for the source's, whose
    examples are read alone."""
    mixup: Mixup | None = None
    """How what is read beside a translation is mixed."""
    source: str = ""
    """The language of the translations."""
    warn: Callable[[str], None] = lambda _: None

    def pairs(self, first: str, second: str) -> list[Pair]:
        """Match examples by id; DataError where there are none in common, or labels say they differ."""
        names = (f"{self.name} {first}", f"{self.name} {second}")
        both = matched(self.read(first), self.read(second), names=names, partial=True)
        for language in (first, second):
            self._warn_of_unmixed(language, {one.id for one, _ in both})
        return [Pair(one.id, one, other) for one, other in both]

    def states(
        self, loaded: tuple[Any, Any], texts: Sequence[Any], language: str, wanted: StatesWanted
    ) -> Float[Tensor, "layer text dim"]:
        """Return one vector an example, read beside its translation where it has one to be mixed with."""
        encode = partial(example_rows, self.task, loaded=loaded, limit=wanted.limit)
        rows, there = encode(examples=texts), self._translations(language)
        paired = [number for number, text in enumerate(texts) if text.id in there]
        translated = encode(examples=[there[texts[number].id] for number in paired])
        batches = scored_batches(
            rows,
            dict(zip(paired, translated, strict=True)),
            padding=loaded[1].pad_token_id,
            languages=(self.source, language),
        )
        return row_states(loaded, batches, wanted, self.mixup or Mixup(layer=1, largest=0.0))

    def _translations(self, language: str) -> dict[str, Example]:
        """Return by id the translations that examples are read beside; none where nothing would be mixed."""
        if self.mixup is None or self.mixup.largest == 0 or self.translations is None:
            return {}
        return {one.id: one for one in self.translations(language)}

    def _warn_of_unmixed(self, language: str, ids: set[str]) -> None:
        there = self._translations(language)
        if there and (alone := len(ids - there.keys())):
            self.warn(
                f"{self.name} {language}: {alone} of {len(ids)} examples have no translation into "
                f"{self.source}; they are read alone, unmixed."
            )


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
    loaded: tuple[Any, Any], batches: Sequence[ScoredBatch], wanted: StatesWanted, mixup: Mixup
) -> Float[Tensor, "layer row dim"]:
    """Return the mean of each row's states in some layers, special subwords left out, on the CPU.

    A row of nothing else is all zeros. Beside its translation a row has the states that a model of X-Mixup
    computes for it at inference: the translation stands in the source's half of the batch, and one layer
    mixes (``encoders.mixup``).
    """
    model, tokenizer = loaded
    special = torch.tensor(sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id}))
    found: dict[int, Tensor] = {}
    model.eval()
    with scoring(model, wanted.precision) as device:
        for each in batches:
            own = slice(-len(each.numbers), None)  # Of pairs the second half are the examples.
            real = ~torch.isin(each.batch.subwords[own], special)
            if each.batch.mask is not None:
                real &= each.batch.mask[own].bool()
            batch = each.batch.to(device)
            with mixing_translations(model, mixup, each, batch):
                states = forward(model.base_model, batch, output_hidden_states=True).hidden_states
            chosen = torch.stack([states[layer].float() for layer in wanted.layers])[:, own]
            pooled = _mean(chosen, real.to(device)).cpu()
            found |= dict(zip(each.numbers, pooled.unbind(dim=1), strict=True))
    release_memory()
    return torch.stack([found[number] for number in range(len(found))], dim=1)


def _mean(states: Float[Tensor, "layer row subword dim"], real: Tensor) -> Float[Tensor, "layer row dim"]:
    weights = real.to(states.dtype).unsqueeze(2)
    return (states * weights).sum(dim=2) / weights.sum(dim=1).clamp(min=1)
