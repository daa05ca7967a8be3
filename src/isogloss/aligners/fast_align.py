"""fast_align (Dyer, Chahuneau & Smith 2013): IBM model 2 with a preference for the diagonal.

The lexicons of both directions are stored, so that new sentences can be aligned.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isogloss.aligners.diagonal_model import (
    EMSettings,
    Lexicon,
    Words,
    best_links,
    joint,
    learn_lexicons,
)
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import DataError
from isogloss.core.presence import make_folder
from isogloss.core.progress import Progress
from isogloss.core.records import writing
from isogloss.data.examples import Translation
from isogloss.data.word_links import Aligned, Symmetrization, pair_words, symmetrized

LEXICONS = "fast-align.npz"
WORDS = "fast-align.json"

EMPTY = Lexicon(np.empty(0, np.int64), np.empty(0, np.float32))

Sentences = tuple[list[Words], list[Words]]
Links = dict[tuple[int, int], float]


@dataclass(frozen=True, kw_only=True)
class FastAlign:
    """Align by how often words co-occur and how near the diagonal they are."""

    name: ClassVar[str] = "fast-align"
    needs_encoder: ClassVar[bool] = False
    version: ClassVar[int] = 3

    symmetrization: Symmetrization = "intersection"
    """How both directions become one: intersection (one-to-one), union, grow-diag, grow-diag-final-and, or
    forward or backward alone."""

    iterations: int = 5
    """Iterations of expectation maximisation; the last one's expectations are the links."""

    lowercase: bool = True
    """Whether words are lowercased."""

    tension: float = 4.0
    """Strength of the preference for the diagonal (lambda)."""

    prior: float = 0.01
    """Dirichlet prior of the lexicon (alpha); 0 for plain maximum likelihood."""

    none: float = 0.08
    """Probability that a word has no counterpart (p0)."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Learn both lexicons from the pairs, store them, and link the words of the pairs."""
        make_folder(setting.folder)
        words: tuple[dict[str, int], dict[str, int]] = ({}, {})
        numbered = self._numbered(setting.pairs, words, learn=True)
        lexicons = self._learned(numbered, setting)
        _save(setting.folder, words, lexicons)
        return self._linked(numbered, lexicons, setting)

    def align_new(self, setting: AlignSetting) -> list[Aligned]:
        """Link the words of new pairs with the lexicons in the setting's folder."""
        words, lexicons = _load(setting.folder)
        return self._linked(self._numbered(setting.pairs, words, learn=False), lexicons, setting)

    def _numbered(
        self, pairs: Iterable[Translation], words: tuple[dict[str, int], dict[str, int]], *, learn: bool
    ) -> Sentences:
        """Return the words of both sides as numbers; new ones are negative unless ``learn``."""
        first: list[Words] = []
        second: list[Words] = []
        for pair in pairs:
            for numbers, side, known in zip((first, second), pair_words(pair), words, strict=True):
                shaped = [word.lower() for word in side] if self.lowercase else side
                numbers.append(_numbers(shaped, known, learn=learn))
        return first, second

    def _learned(self, numbered: Sentences, setting: AlignSetting) -> tuple[Lexicon, Lexicon]:
        rounds, remark = max(0, self.iterations - 1), f"{len(setting.pairs)} pairs"

        def on_progress(done: int) -> None:
            setting.on_progress(Progress(what="lexicon", done=done, total=2 * rounds, remark=remark))

        on_progress(0)
        pairs = [pair for pair in zip(*numbered, strict=True) if len(pair[0]) and len(pair[1])]
        if not pairs:
            return EMPTY, EMPTY
        training = EMSettings(rounds=rounds, tension=self.tension, prior=self.prior, none=self.none)
        return learn_lexicons(pairs, training, on_progress)

    def _linked(
        self, numbered: Sentences, lexicons: tuple[Lexicon, Lexicon], setting: AlignSetting
    ) -> list[Aligned]:
        setting.on_progress(Progress(what="links", done=0, total=1))
        forward, backward = (
            self._directed(list(zip(*sides, strict=True)), lexicon)
            for sides, lexicon in zip((numbered, numbered[::-1]), lexicons, strict=True)
        )
        made = [
            _aligned(one, {(i, j): score for (j, i), score in other.items()}, self.symmetrization)
            for one, other in zip(forward, backward, strict=True)
        ]
        setting.on_progress(Progress(what="links", done=1, total=1))
        return made

    def _directed(self, pairs: Sequence[tuple[Words, Words]], lexicon: Lexicon) -> list[Links]:
        """Link each word of the second of two sentences to its most probable word of the first, if any."""
        full = [(given, made) for given, made in pairs if len(given) and len(made)]
        matrices = joint(lexicon, full, tension=self.tension, none=self.none)
        return [best_links(next(matrices)) if len(given) and len(made) else {} for given, made in pairs]


def _numbers(words: Sequence[str], known: dict[str, int], *, learn: bool) -> Words:
    if learn:
        return np.array([known.setdefault(word, len(known) + 1) for word in words], dtype=np.int64)
    return np.array([known.get(word, -1) for word in words], dtype=np.int64)


def _aligned(forward: Links, backward: Links, how: Symmetrization) -> Aligned:
    links = symmetrized(forward, backward, how)
    directions = [one for name, one in (("backward", forward), ("forward", backward)) if how != name]
    scores = (sum(one.get(link, 0.0) for one in directions) / len(directions) for link in links)
    return Aligned(links=links, scores=tuple(scores))


def _save(folder: Path, words: tuple[dict[str, int], dict[str, int]], lexicons: Sequence[Lexicon]) -> None:
    arrays: dict[str, NDArray[np.generic]] = {}
    for name, lexicon in zip(("forward", "backward"), lexicons, strict=True):
        arrays |= {f"{name}_keys": lexicon.keys, f"{name}_probabilities": lexicon.probabilities}
    with writing(folder / LEXICONS):
        np.savez(folder / LEXICONS, **arrays)  # type: ignore[arg-type]
        text = json.dumps([list(side) for side in words], ensure_ascii=False)
        (folder / WORDS).write_text(text, encoding="utf-8")


def _load(folder: Path) -> tuple[tuple[dict[str, int], dict[str, int]], tuple[Lexicon, Lexicon]]:
    with suppress(OSError, ValueError, KeyError):
        sides = json.loads((folder / WORDS).read_text(encoding="utf-8"))
        first, second = ({word: number for number, word in enumerate(side, 1)} for side in sides)
        with np.load(folder / LEXICONS) as arrays:
            forward, backward = (
                Lexicon(arrays[f"{name}_keys"], arrays[f"{name}_probabilities"])
                for name in ("forward", "backward")
            )
        return (first, second), (forward, backward)
    raise DataError(
        f"{folder}: no whole alignment model is here ({LEXICONS} and {WORDS}). Give the folder of a bitext "
        f"that fast-align aligned, or align it again."
    )
