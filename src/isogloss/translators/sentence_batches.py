"""From texts to rows of subwords, in batches of similar length, and back to one line for each text."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from isogloss.core.errors import ConfigError
from isogloss.core.languages import language_name
from isogloss.data.label_projection import Translated
from isogloss.encoders.seq2seq import TranslationSubwords
from isogloss.training.batching import by_length
from isogloss.translators.pieces import in_pieces, joined
from isogloss.translators.setting import TranslateSetting

SHORTEST = 8
"""Subwords of the shortest piece that makes sense: what tells the language, the end, and a word or two."""

Generate = Callable[[list[list[int]]], list[list[int]]]
"""From a batch of rows to the rows a model writes."""


@dataclass(frozen=True, kw_only=True)
class SentenceBatches:
    """A loaded model and how texts are put before it."""

    subwords: TranslationSubwords
    generate: Generate
    target: str
    """Language that is written."""
    prompt: str
    """What stands before every piece."""
    sentences: bool
    """Whether every sentence is a piece of its own."""
    longest: int
    """Subwords of the longest piece."""
    batch_subwords: int

    def translate(self, texts: Sequence[str]) -> list[Translated]:
        """Translate texts piece by piece; a piece that comes twice is translated once."""
        cut = in_pieces(texts, self._lengths, longest=self.longest, sentences=self.sentences)
        pieces = list(dict.fromkeys(piece for found, _ in cut for piece in found))
        rows = [row[: self.longest] for row in self._rows(pieces)]
        written: dict[str, str] = {}
        for batch in by_length([len(row) for row in rows], self.batch_subwords):
            found = self.subwords.decode(self.generate([rows[place] for place in batch]))
            written |= zip((pieces[place] for place in batch), found, strict=True)
        return [
            Translated(joined([written[piece] for piece in found], self.target), cuts) for found, cuts in cut
        ]

    def _rows(self, pieces: Sequence[str]) -> list[list[int]]:
        return self.subwords.encode([self.prompt + piece for piece in pieces])

    def _lengths(self, pieces: Sequence[str]) -> list[int]:
        return [len(row) for row in self._rows(pieces)]


def prompt_for(prompt: str, setting: TranslateSetting) -> str:
    """Put the languages' English names in the places of ``{source}`` and ``{target}``."""
    names = {"{source}": language_name(setting.source), "{target}": language_name(setting.target)}
    for place, name in names.items():
        prompt = prompt.replace(place, name)
    return prompt


def refuse_too_small(where: str, numbers: Mapping[str, int]) -> None:
    """Raise ConfigError at a count that is not positive; a piece must hold more than its language and end."""
    least = {"longest": SHORTEST}
    for name, number in numbers.items():
        if number < least.get(name, 1):
            raise ConfigError(f"{where}: {name} is {number}; it must be {least.get(name, 1)} or more.")
