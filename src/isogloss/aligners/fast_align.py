"""fast_align (Dyer, Chahuneau & Smith 2013): IBM model 2 with a preference for the diagonal."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from isogloss.aligners.diagonal_model import (
    EMSettings,
    Lexicon,
    Words,
    best_links,
    joint,
    learn_lexicons,
)
from isogloss.aligners.setting import AlignSetting
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Weight
from isogloss.data.formats.word_links import Aligned, Symmetrization, pair_words, symmetrized

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

    iterations: Positive = 5
    """Iterations of expectation maximisation; the last one's expectations are the links."""

    lowercase: bool = True
    """Whether words are lowercased."""

    tension: Weight = 4.0
    """Strength of the preference for the diagonal (lambda)."""

    prior: Weight = 0.01
    """Dirichlet prior of the lexicon (alpha); 0 for plain maximum likelihood."""

    none: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.08
    """Probability that a word has no counterpart (p0)."""

    def align(self, setting: AlignSetting) -> list[Aligned]:
        """Learn both lexicons from the pairs, and link the words of the pairs."""
        return [
            _aligned(forward, backward, self.symmetrization)
            for forward, backward in zip(*self.directions(setting), strict=True)
        ]

    def directions(self, setting: AlignSetting) -> tuple[list[Links], list[Links]]:
        """Learn both lexicons, and return each one's links of all pairs."""
        numbered = self._numbered(setting)
        lexicons = self._learned(numbered, setting)
        setting.on_progress(Progress(what="links", done=0, total=1))
        forward, backward = (
            self._directed(list(zip(*sides, strict=True)), lexicon)
            for sides, lexicon in zip((numbered, numbered[::-1]), lexicons, strict=True)
        )
        setting.on_progress(Progress(what="links", done=1, total=1))
        return forward, [{(i, j): score for (j, i), score in links.items()} for links in backward]

    def _numbered(self, setting: AlignSetting) -> Sentences:
        """Return the words of both sides as numbers, from 1."""
        shaped = str.lower if self.lowercase else str
        words: tuple[dict[str, int], dict[str, int]] = ({}, {})
        sides: Sentences = ([], [])
        for pair in setting.pairs:
            for numbers, side, numbers_of in zip(sides, pair_words(pair), words, strict=True):
                numbered = [numbers_of.setdefault(word, len(numbers_of) + 1) for word in map(shaped, side)]
                numbers.append(np.array(numbered, dtype=np.int64))
        return sides

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

    def _directed(self, pairs: Sequence[tuple[Words, Words]], lexicon: Lexicon) -> list[Links]:
        """Link each word of the second of two sentences to its most probable word of the first, if any."""
        full = [(first, second) for first, second in pairs if len(first) and len(second)]
        matrices = joint(lexicon, full, tension=self.tension, none=self.none)
        return [best_links(next(matrices)) if len(first) and len(second) else {} for first, second in pairs]


def _aligned(forward: Links, backward: Links, symmetrization: Symmetrization) -> Aligned:
    links = symmetrized(forward, backward, symmetrization)
    directions = [
        scored for name, scored in (("backward", forward), ("forward", backward)) if symmetrization != name
    ]
    scores = (sum(scored.get(link, 0.0) for scored in directions) / len(directions) for link in links)
    return Aligned(links=links, scores=tuple(scores))
