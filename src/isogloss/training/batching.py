"""Batches as a sequence: batch i depends only on (seed, i), so any step can be computed without earlier ones.

That makes resuming exact: a training that resumes at step 500 reads batch 500.

Languages of raw text and of translations are drawn in proportion to size^(1/T) (Devlin et al.'s multilingual
sampling; Wang 2020, Section 3.2). Perplexity is e to the mean cross entropy per hidden subword of held-out
text, always under the same masks. Only models with the same vocabulary can be compared by it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Replay
from isogloss.encoders.family import Model
from isogloss.tasks.masked_lm import MaskedBatch, Masking, TextStream, masked_lm_loss
from isogloss.training.distributed import is_sharded
from isogloss.training.precision import scoring

SORTED_TOGETHER = 50
"""Batches whose rows are sorted by length together. Padding is small and the order still random."""

Item = TypeVar("Item")
Made = TypeVar("Made", covariant=True)


@runtime_checkable
class Batches(Protocol[Made]):
    """Batches of a training, one for each step, which ``to`` moves to a device."""

    def __len__(self) -> int: ...

    def __getitem__(self, step: int, /) -> Made: ...


@runtime_checkable
class Movable(Protocol):
    """A batch that can be moved to a device."""

    def to(self, device: torch.device, /) -> "Movable":
        """Return the batch on a device."""
        ...


@runtime_checkable
class Divisible(Protocol):
    """A batch that can be computed in parts."""

    def parts(self, count: int) -> Sequence[tuple[Movable, float | None]]:
        """Split into at most ``count`` batches, each with its share of the loss. Shares sum to 1."""
        ...


@runtime_checkable
class Whole(Protocol):
    """A batch that each process computes in full. Processes share work only within its loss."""

    is_whole: bool


def is_whole(batch: object) -> bool:
    """Return whether each process computes a batch in full."""
    return isinstance(batch, Whole) and batch.is_whole


def parts_of(batch: object, count: int, user: str) -> Sequence[tuple[Movable, float | None]]:
    """Split a batch of ``user`` into at most ``count`` parts.

    Processes that hold shares of one model all need a part. For them, the last part is repeated, without a
    share, until there are ``count``. Raises ConfigError if the batch cannot be split.
    """
    if not isinstance(batch, Divisible):
        raise ConfigError(
            f"{user}: its batches cannot be split, as accumulation and several processes require. Remove "
            f"accumulation, and use one process."
        )
    parts = batch.parts(count)
    missing = count - len(parts) if is_sharded() else 0
    return [*parts, *[(parts[-1][0], None)] * missing]


@dataclass(frozen=True)
class BatchesByStep(Generic[Made]):
    """Batches computed by a function of the step."""

    steps: int
    make: Callable[[int], Made]

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, step: int) -> Made:
        return self.make(step)


@dataclass(frozen=True)
class Bucketed(Generic[Item, Made]):
    """Batches of rows of similar length from one group, with every row once an epoch.

    ``groups`` are the rows by language (or language pair), since a batch contains one language. ``length``
    returns a row's length, ``size`` is the number of rows in a batch, and ``make`` collates rows, given their
    language and the step.
    """

    groups: Mapping[str, Sequence[Item]]
    length: Callable[[Item], int]
    size: int
    epochs: int
    seed: int
    make: Callable[[list[Item], str, int], Made]
    _plan: dict[int, list[tuple[str, np.ndarray]]] = field(default_factory=dict)
    _lengths: dict[str, np.ndarray] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def steps_per_epoch(self) -> int:
        """Number of batches in one pass over all groups."""
        return sum(-(-len(group) // self.size) for group in self.groups.values())

    def __getitem__(self, step: int) -> Made:
        if not 0 <= step < len(self):
            raise IndexError(step)
        epoch, index = divmod(step, self.steps_per_epoch)
        if epoch not in self._plan:
            self._plan.clear()
            self._plan[epoch] = self._epoch(epoch)
        language, rows = self._plan[epoch][index]
        return self.make([self.groups[language][row] for row in rows], language, step)

    def _epoch(self, epoch: int) -> list[tuple[str, np.ndarray]]:
        rng = np.random.Generator(np.random.PCG64(derive(self.seed, "batches", epoch)))
        batches: list[tuple[str, np.ndarray]] = []
        for language, group in self.groups.items():
            order = rng.permutation(len(group))
            if language not in self._lengths:
                self._lengths[language] = np.array([self.length(row) for row in group], dtype=np.int64)
            lengths = self._lengths[language][order]
            for start in range(0, len(order), self.size * SORTED_TOGETHER):
                chunk = slice(start, start + self.size * SORTED_TOGETHER)
                sorted_rows = order[chunk][np.argsort(lengths[chunk], kind="stable")]
                batches += [
                    (language, sorted_rows[i : i + self.size]) for i in range(0, len(sorted_rows), self.size)
                ]
        return [batches[index] for index in rng.permutation(len(batches))]


CANDIDATES = 8
"""Translations drawn per translation used. A slice of similar lengths wastes little padding."""

Parallel = dict[str, np.ndarray]
"""One text in several languages, as subwords."""

Rows = list[list[np.ndarray]]
Languages = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class BatchSampling:
    """Number, size and language mix of sampled batches."""

    steps: int
    """Number of batches."""
    batch_subwords: int
    """Subwords of one batch, padding included."""
    block: int
    """Subwords of one row of text, special ones included."""
    temperature: float = 1.0
    """T in size^(1/T)."""
    mixed: bool = False
    """Whether the rows of a batch come from all languages instead of one."""
    translation: float = 0.0
    """Share of batches that consist of translations."""
    replay: Replay | None = None
    """Languages that are drawn with a separate share."""

    @property
    def rows(self) -> int:
        """Rows of a batch of text."""
        return max(1, self.batch_subwords // self.block)


@dataclass(frozen=True, kw_only=True)
class TextBatches:
    """Batches of text or translations with the languages of their rows, drawn only from (seed, step)."""

    sampling: BatchSampling
    streams: Mapping[str, TextStream]
    """Streams by language."""
    translations: Sequence[Parallel] = ()
    masking: Masking
    seed: int

    def __len__(self) -> int:
        return self.sampling.steps

    def __getitem__(self, step: int) -> MaskedBatch:
        seed = derive(self.seed, step)
        rng = np.random.Generator(np.random.PCG64(seed))
        parallel = bool(self.translations) and rng.random() < self.sampling.translation
        languages, rows = self._pairs(rng) if parallel else self._blocks(rng)
        return self.masking.batch(rows, seed=seed, languages=languages)

    def _blocks(self, rng: np.random.Generator) -> tuple[Languages, Rows]:
        sampling = self.sampling
        shares = language_shares(self.streams, sampling)
        choices = list(shares)
        draws = rng.choice(len(choices), size=sampling.rows if sampling.mixed else 1, p=list(shares.values()))
        languages = tuple(choices[draw] for draw in np.resize(draws, sampling.rows))
        streams = [self.streams[language] for language in languages]
        starts = [int(rng.integers(len(stream.starts))) for stream in streams]
        length = sampling.block - 2
        rows = [[stream.block(start, length)] for stream, start in zip(streams, starts, strict=True)]
        return languages if sampling.mixed else languages[:1], rows

    def _pairs(self, rng: np.random.Generator) -> tuple[Languages, Rows]:
        max_pairs = max(2, self.sampling.batch_subwords // 32)
        candidates = []
        for _ in range(CANDIDATES * max_pairs // 2):
            text = self.translations[int(rng.integers(len(self.translations)))]
            sides = [list(text)[index] for index in rng.choice(len(text), size=2, replace=False)]
            candidates.append(("+".join(sides), [text[side] for side in sides]))
        candidates.sort(key=lambda pair: sum(len(side) for side in pair[1]))
        start = int(rng.integers(len(candidates)))
        languages: list[str] = []
        rows: Rows = []
        widest = 0
        for language, pair in chain(candidates[start:], reversed(candidates[:start])):
            widest = max(widest, sum(len(side) for side in pair) + 3)
            if rows and (len(rows) + 1) * widest > self.sampling.batch_subwords:
                break
            languages.append(language)
            rows.append(pair)
        return tuple(languages), rows


def language_shares(streams: Mapping[str, TextStream], sampling: BatchSampling) -> dict[str, float]:
    """Return each language's share of the batches, by size^(1/T) and replay. Shares of 0 are omitted."""
    replay = sampling.replay or Replay(languages=(), share=0.0)
    shares: dict[str, float] = {}
    for is_replayed, share in ((False, 1 - replay.share), (True, replay.share)):
        languages = [language for language in streams if (language in replay.languages) == is_replayed]
        weights = np.array([len(streams[language]) for language in languages], dtype=np.float64) ** (
            1 / sampling.temperature
        )
        if share and languages:
            shares |= dict(zip(languages, share * (weights / weights.sum()), strict=True))
    return shares


def perplexity(model: Model, batches: Sequence[MaskedBatch], *, precision: str = "auto") -> float:
    """Return the perplexity of the hidden subwords of all batches, or infinity if it overflows."""
    total = hidden = 0.0
    with scoring(model, precision) as device:
        for batch in batches:
            total += float(masked_lm_loss(model, batch.to(device))) * len(batch.gold)
            hidden += len(batch.gold)
    mean = total / hidden
    return math.exp(mean) if mean < math.log(np.finfo(np.float64).max) else math.inf
