"""Translate texts with a model, in chunks and batches.

A chunk of texts is stored atomically under a hash of its content and of the translator. So memory is bounded,
and stored chunks are not translated again after an interruption. The sentences of a chunk are translated in
batches of subword rows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.languages import language_name
from isogloss.core.shared_files import read_file
from isogloss.core.untrusted import convert_json, parse_json
from isogloss.data.projection.example_texts import Translated
from isogloss.features.translation.sentences import sentences_in
from isogloss.training.length_batches import by_length
from isogloss.translators.setting import TranslateSetting

if TYPE_CHECKING:
    from isogloss.features.translation.seq2seq_models import TranslationSubwords

TEXTS_PER_CHUNK = 1024
"""Texts of a chunk: enough for sorting by length to pay, few enough to be translated again."""

FIELD_MINIMA = {"beams": 1, "longest": 8, "batch_subwords": 1}
"""Smallest values of translators' fields. A piece needs a language code, its end, and a word or two."""

UNSPACED_LANGUAGES = ("cmn", "ja", "wuu", "yue", "zh")
"""Languages without a space between sentences."""

_BREAKS = (re.compile(r"[;:،؛;；：]\s*"), re.compile(r"[,、，]\s*"), re.compile(r"\s+"))
"""Places to cut a long sentence, in order of preference."""

MIN_CUT_MARGIN = 0.25
"""No cut is nearer to an end than this share of the text."""

Generate = Callable[[list[list[int]]], list[list[int]]]
"""From a batch of rows to the rows that a model writes."""

Lengths = Callable[[Sequence[str]], list[int]]
"""From texts to their lengths in subwords."""

TranslateChunk = Callable[[list[str]], list[Translated]]


def translate_in_chunks(
    texts: Iterable[str], setting: TranslateSetting, translator: object, load: Callable[[], TranslateChunk]
) -> Iterator[Translated]:
    """Yield a translation for each text, in order. Nothing is loaded if all are stored already."""
    models: list[TranslateChunk] = []
    remaining = iter(texts)
    count = 0
    key = f"{identity(translator)} {setting.source} {setting.target} {setting.model} {setting.precision}"
    setting.report(count)
    for chunk in iter(lambda: list(islice(remaining, TEXTS_PER_CHUNK)), []):
        content = sha256(json.dumps([key, *chunk]).encode()).hexdigest()
        name = f"chunk-{content[:32]}.jsonl"
        translations = _read_chunk(setting.folder, name, content, len(chunk))
        if translations is None:
            models = models or [load()]
            translations = models[0](chunk)
            with atomic_file(setting.folder, name) as file:
                file.write(f"{content}\n")
                for translation in translations:
                    file.write(f"{json.dumps([translation.text, translation.cuts], ensure_ascii=False)}\n")
        yield from translations
        count += len(chunk)
        setting.report(count)


def _read_chunk(folder: Path, name: str, content: str, count: int) -> list[Translated] | None:
    """Return a stored chunk. None if it is missing, damaged or belongs to other texts."""
    try:
        checksum, *lines = read_file(folder, name).decode().split("\n")[:-1]
        pairs = [convert_json(tuple[str, int], parse_json(line)) for line in lines]
    except (OSError, ValueError):
        return None
    if checksum != content or len(pairs) != count:
        return None
    return [Translated(text, cuts) for text, cuts in pairs]


@dataclass(frozen=True, kw_only=True)
class SentenceBatches:
    """A loaded model, and how texts are split and batched for it."""

    subwords: TranslationSubwords
    generate: Generate
    target: str
    """Language of the translations."""
    prompt: str
    """Text before every piece."""
    sentences: bool
    """Whether every sentence is a separate piece."""
    longest: int
    """Subwords of the longest piece."""
    batch_subwords: int

    def translate(self, texts: Sequence[str]) -> list[Translated]:
        """Translate texts piece by piece, each different piece once."""
        split = split_into_pieces(texts, self._lengths, longest=self.longest, sentences=self.sentences)
        pieces = list(dict.fromkeys(piece for text_pieces, _ in split for piece in text_pieces))
        rows = [row[: self.longest] for row in self._rows(pieces)]
        translations_of_pieces: dict[str, str] = {}
        for batch in by_length([len(row) for row in rows], self.batch_subwords):
            translations = self.subwords.decode(self.generate([rows[index] for index in batch]))
            translations_of_pieces |= zip((pieces[index] for index in batch), translations, strict=True)
        return [
            Translated(
                join_pieces([translations_of_pieces[piece] for piece in text_pieces], self.target), cuts
            )
            for text_pieces, cuts in split
        ]

    def _rows(self, pieces: Sequence[str]) -> list[list[int]]:
        return self.subwords.encode([self.prompt + piece for piece in pieces])

    def _lengths(self, pieces: Sequence[str]) -> list[int]:
        return [len(row) for row in self._rows(pieces)]


def split_into_pieces(
    texts: Sequence[str], lengths: Lengths, *, longest: int, sentences: bool
) -> list[tuple[list[str], int]]:
    """Return the pieces of each text, none longer than ``longest``, and the number of cuts.

    With ``sentences`` every sentence is a piece; these boundaries do not count as cuts. White space becomes
    single spaces.
    """
    lines = [" ".join(text.split()) for text in texts]
    parts = [sentences_in(line) for line in lines] if sentences else [[line] * bool(line) for line in lines]
    counts = iter(lengths([part for part_texts in parts for part in part_texts]))
    result = []
    for part_texts in parts:
        short_pieces = [
            [part] if next(counts) <= longest else _cut(part, lengths, longest) for part in part_texts
        ]
        pieces = [piece for cut in short_pieces for piece in cut]
        result.append((pieces, len(pieces) - len(part_texts)))
    return result


def join_pieces(pieces: Sequence[str], language: str) -> str:
    """Join the translations of a text's pieces as the language is written."""
    return ("" if language.partition("_")[0] in UNSPACED_LANGUAGES else " ").join(
        piece for piece in pieces if piece
    )


def _cut(text: str, lengths: Lengths, longest: int) -> Iterator[str]:
    """Halve a text until its parts are short enough, or a single character."""
    if len(text) == 1 or lengths([text])[0] <= longest:
        yield text
        return
    position = _cut_position(text)
    for part in (text[:position].strip(), text[position:].strip()):
        if part:
            yield from _cut(part, lengths, longest)


def _cut_position(text: str) -> int:
    midpoint = len(text) / 2
    earliest, latest = len(text) * MIN_CUT_MARGIN, len(text) * (1 - MIN_CUT_MARGIN)
    ends = [text.index(part) + len(part) for part in sentences_in(text)[:-1]]
    for positions in (ends, *([match.end() for match in kind.finditer(text)] for kind in _BREAKS)):
        inner = [position for position in positions if earliest <= position <= latest]
        if inner:
            return min(inner, key=lambda position: abs(position - midpoint))
    return len(text) // 2


def prompt_for(prompt: str, setting: TranslateSetting) -> str:
    """Replace ``{source}`` and ``{target}`` by the languages' English names."""
    names = {"{source}": language_name(setting.source), "{target}": language_name(setting.target)}
    for field, name in names.items():
        prompt = prompt.replace(field, name)
    return prompt


def refuse_too_small(translator: Any) -> None:
    """Raise ConfigError if a field of a translator is below its minimum."""
    for field, minimum in FIELD_MINIMA.items():
        value = getattr(translator, field)
        if value < minimum:
            raise ConfigError(f"{translator.name}: {field} is {value}; it must be {minimum} or more.")
