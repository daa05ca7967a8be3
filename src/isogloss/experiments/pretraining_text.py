"""The text of a pretraining: the lines that are trained on, and those held out to measure perplexity on.

Held out is the development split of a corpus that has one; of any other, one line in a hundred of its text,
which then is neither trained on nor part of what the vocabulary is made from.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from isogloss.core.errors import DataError
from isogloss.core.runs import Pretrain
from isogloss.core.seeds import derive
from isogloss.data.corpora import Split
from isogloss.data.shots import subsample
from isogloss.data.sources import Sources

ONE_IN = 100
"""Of a text without development split, one line in so many is held out."""


@dataclass(frozen=True)
class PretrainingText:
    """Lines by language; fewer where the run says so."""

    run: Pretrain
    sources: Sources
    holds_out: bool
    """Whether perplexity is measured; otherwise all training text is trained on."""

    def train(self, language: str) -> Iterator[str]:
        """Give the lines that are trained on."""
        lines = (line for corpus in self.run.text for line in self._of(corpus, language))
        most = dict(self.run.lines or ()).get(language)
        if most is None:
            return lines
        return iter(subsample(lines, most, seed=derive(self.run.seed, "lines", language)))

    def held_out(self, language: str) -> Iterator[str]:
        """Give the others, of all corpora; their number does not depend on how many are trained on."""
        for corpus in self.run.text:
            if has_dev(self.sources, corpus, language):
                yield from self._split(corpus, language, "dev")
            else:
                yield from _one_in(self._split(corpus, language, "train"), held_out=True)

    def _of(self, corpus: str, language: str) -> Iterator[str]:
        lines = self._split(corpus, language, "train")
        if self.holds_out and not has_dev(self.sources, corpus, language):
            return _one_in(lines, held_out=False)
        return lines

    def _split(self, corpus: str, language: str, split: Split) -> Iterator[str]:
        for line in self.sources.stream(corpus, language, split):
            yield line.text  # type: ignore[union-attr]


def has_dev(sources: Sources, corpus: str, language: str) -> bool:
    """Tell whether a corpus has a development split of a language."""
    try:
        sources.fingerprint(corpus, language, "dev")
    except DataError:
        return False
    return True


def _one_in(lines: Iterable[str], *, held_out: bool) -> Iterator[str]:
    """Give the first of each hundred lines, or all others."""
    return (line for number, line in enumerate(lines) if (number % ONE_IN == 0) == held_out)
