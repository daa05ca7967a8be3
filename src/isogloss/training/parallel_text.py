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
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.speaking import of_language
from isogloss.tasks import Task
from isogloss.training.example_states import Beside, StatesWanted, example_rows, row_states
from isogloss.training.sentence_states import sentence_states


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
        with of_language(model, language):
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
        rows, there = encode(examples=texts), self._beside(language)
        paired = [number for number, text in enumerate(texts) if text.id in there]
        alone = [number for number, text in enumerate(texts) if text.id not in there]
        if not paired or self.mixup is None:
            return row_states(loaded, rows, language, wanted)
        beside = Beside(
            rows=encode(examples=[there[texts[number].id] for number in paired]),
            mixup=self.mixup,
            source=self.source,
        )
        mixed = row_states(loaded, [rows[one] for one in paired], language, wanted, beside=beside)
        if not alone:
            return mixed
        rest = row_states(loaded, [rows[one] for one in alone], language, wanted)
        return torch.cat([mixed, rest], dim=1)[:, torch.tensor([*paired, *alone]).argsort()]

    def _beside(self, language: str) -> dict[str, Example]:
        """Return by id the translations that examples are read beside; none where nothing would be mixed."""
        if self.mixup is None or self.mixup.largest == 0 or self.translations is None:
            return {}
        return {one.id: one for one in self.translations(language)}

    def _warn_of_unmixed(self, language: str, ids: set[str]) -> None:
        there = self._beside(language)
        if there and (alone := len(ids - there.keys())):
            self.warn(
                f"{self.name} {language}: {alone} of {len(ids)} examples have no translation into "
                f"{self.source}; they are read alone, unmixed."
            )
