"""Encoded sentence pairs with linked words: the items that are aligned, and those that are anchored.

An item (a word, a special subword, a sentence) is represented by the mean of some states, whose spans are
computed once, when pairs are read.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise, product
from typing import Literal, NamedTuple

import numpy as np

from isogloss.core.errors import DataError
from isogloss.core.records import Value
from isogloss.core.run_parts import ALIGNED_SUBWORDS, Positive, Whole
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.subwords import SplitWords, padding_of, split_words, text_frame

Word = Literal["average", "first", "last", "subwords", "aligned-subwords"]

Aligned = Literal["all", "words", "special", "opening", "sentences"]
WITH_SPECIAL = ("all", "special", "opening")
WITH_WORDS = ("all", "words")

Form = Literal["sum", "mean"]
"""sum: over items, as Eq. 1 is printed; mean: over items and dimensions, as in the released code."""

TOKENIZED_TOGETHER = 1000
"""Pairs tokenized in one call, enough to keep the tokenizer busy with little memory."""


@dataclass(frozen=True, kw_only=True)
class PairEncoding:
    """Encoding of sentence pairs: the aligned items, and the states that represent them."""

    pulled: Aligned = "all"
    """What is aligned: all (linked words, [CLS] and [SEP]), words, special ([CLS] and [SEP]), opening
    ([CLS]), or sentences (the means of both sentences). The first four are Table 7's."""

    word: Word = "average"
    """What represents a word: the average of its subwords, its first, its last, or subwords: each subword of
    a word is aligned with each of its translation's. Or aligned-subwords: the aligner links subwords in place
    of words (Table 6's subword alignment)."""

    drop_identical: bool = False
    """Whether to skip words with the same spelling in both languages, as in the released code."""

    longest: Positive = 64
    """Maximum number of words per sentence. Longer pairs are skipped."""

    layer: Whole = -1
    """Layer whose states are aligned; -1 is the last, 0 the embeddings. Those above it stay as they are."""

    @property
    def needs_links(self) -> bool:
        """Whether word links are read."""
        return self.pulled in WITH_WORDS


class EncodedPair(NamedTuple):
    """Subwords of both sides, and half-open spans of them."""

    source: np.ndarray
    target: np.ndarray
    anchored: np.ndarray
    """[item 2]: spans of the source whose states are anchored."""
    aligned: np.ndarray
    """[item 4]: spans of the source and of the target whose states are aligned."""
    texts: np.ndarray
    """[item 2]: numbers of the texts of these spans. Equal texts have equal numbers."""


PARTS = len(EncodedPair._fields)


@dataclass(frozen=True)
class AlignedBitext:
    """All sentence pairs that fit the encoder, in one array: 250,000 pairs take a few hundred MiB."""

    padding: int
    """Number of the padding subword."""
    values: "array[int]" = field(default_factory=lambda: array("i"))
    starts: "array[int]" = field(default_factory=lambda: array("q", (0,)))
    """Index of the first value of each part of each pair, and one past the last."""
    groups: dict[str, range] = field(default_factory=dict)
    """Rows of each pair of languages."""
    rows: list[dict[str, Value]] = field(default_factory=list)
    """One row per language pair with the numbers of pairs read and skipped."""

    def __len__(self) -> int:
        return (len(self.starts) - 1) // PARTS

    def __getitem__(self, row: int) -> EncodedPair:
        values = np.frombuffer(self.values, dtype=np.int32)
        bounds = self.starts[PARTS * row : PARTS * (row + 1) + 1]
        parts = EncodedPair(*(values[begin:end] for begin, end in pairwise(bounds)))
        return parts._replace(
            anchored=parts.anchored.reshape(-1, 2),
            aligned=parts.aligned.reshape(-1, 4),
            texts=parts.texts.reshape(-1, 2),
        )

    def append(self, parts: Sequence[Sequence[int]]) -> None:
        """Add a pair, given the flattened parts of an ``EncodedPair``."""
        for part in parts:
            self.values.extend(part)
            self.starts.append(len(self.values))

    def languages(self, row: int) -> tuple[str, str]:
        """Return the source and target language of a pair."""
        source, _, target = next(pair for pair, rows in self.groups.items() if row in rows).partition("-")
        return source, target

    def length(self, row: int) -> int:
        """Return the number of subwords of a pair's longer side."""
        source, target, end = self.starts[PARTS * row : PARTS * row + 3]
        return max(target - source, end - target)

    def warnings(self) -> tuple[str, ...]:
        """Return a warning for each language pair with skipped sentence pairs."""
        return tuple(
            f"{row['pair']}: skipped {row['left_out']} of {row['translations']} sentence pairs, which are "
            f"empty or too long (more words than longest, or more subwords than the encoder has positions)."
            for row in self.rows
            if row["left_out"]
        )


def read_bitext(
    bitext: Mapping[str, Sequence[Translation]], tokenizer: Tokenizer, encoding: PairEncoding
) -> AlignedBitext:
    """Encode the translations of every language pair, with the source language first.

    Pairs with an empty or too long side are skipped and counted. Raises DataError if a pair has no links, or
    links to words that do not exist.
    """
    pairs = AlignedBitext(padding_of(tokenizer))
    encoder = _PairEncoder(tokenizer, encoding, text_frame(tokenizer))
    for languages, translations in bitext.items():
        begin = len(pairs)
        aligned_items = 0
        for start in range(0, len(translations), TOKENIZED_TOGETHER):
            for parts in encoder.encode(translations[start : start + TOKENIZED_TOGETHER], languages):
                pairs.append(parts)
                aligned_items += len(parts[-1]) // 2
        pairs.groups[languages] = range(begin, len(pairs))
        pairs.rows.append(
            {
                "pair": languages,
                "translations": len(translations),
                "left_out": len(translations) - (len(pairs) - begin),
                "pulled": aligned_items,
            }
        )
    return pairs


Span = tuple[int, int]
Sides = tuple[tuple[str, ...], tuple[str, ...]]
Splits = tuple[SplitWords, SplitWords]


Match = tuple[Span, Span, tuple[str, str]]
"""Aligned spans of source and target, and their texts."""

Parts = list[list[int]]
"""The flattened parts of an ``EncodedPair``."""


@dataclass(frozen=True)
class _PairEncoder:
    """Encodes sentence pairs, and numbers texts in order of appearance."""

    tokenizer: Tokenizer
    encoding: PairEncoding
    frame: tuple[tuple[int, ...], tuple[int, ...]]
    """The subwords before and after a text."""
    numbers: dict[str, int] = field(default_factory=dict)

    def encode(self, pairs: Sequence[Translation], languages: str) -> list[Parts]:
        """Encode the pairs that fit the encoder."""
        sides = [pair_words(pair) for pair in pairs]
        splits = split_words([*chain.from_iterable(sides)], self.tokenizer)
        split_pairs = zip(splits[::2], splits[1::2], strict=True)
        parts_of_pairs = [
            self._pair(*inputs, languages) for inputs in zip(pairs, sides, split_pairs, strict=True)
        ]
        return [parts for parts in parts_of_pairs if parts]

    def _pair(self, pair: Translation, words: Sides, splits: Splits, languages: str) -> Parts | None:
        """Encode a pair, or return None if it does not fit."""
        opening, closing = self.frame
        source, target = ([*opening, *split.subwords, *closing] for split in splits)
        units = words
        if self.encoding.word == ALIGNED_SUBWORDS:
            units = (subword_texts(splits[0], self.tokenizer), subword_texts(splits[1], self.tokenizer))
        links = _checked_links(languages, pair, units)
        fits = max(len(source), len(target)) <= self.tokenizer.model_max_length
        if not (all(words) and fits and max(len(side) for side in words) <= self.encoding.longest):
            return None
        spans = [_spans(split, self.encoding.word, len(opening)) for split in splits]
        matches = [*self._words(links, units, spans), *self._special(len(source), len(target))]
        anchored_spans = [*chain.from_iterable(spans[0])]
        if self.encoding.pulled in WITH_SPECIAL:
            anchored_spans += self._ends(len(source))
        if self.encoding.pulled == "sentences":
            sides = [(len(opening), len(side) - len(closing)) for side in (source, target)]
            anchored_spans = sides[:1]
            matches = [(sides[0], sides[1], (pair.first, pair.second))]
        return [
            source,
            target,
            [*chain.from_iterable(anchored_spans)],
            [index for *match, _ in matches for span in match for index in span],
            [self.numbers.setdefault(text, len(self.numbers)) for *_, texts in matches for text in texts],
        ]

    def _words(
        self, links: Sequence[tuple[int, int]], words: Sides, spans: Sequence[list[list[Span]]]
    ) -> list[Match]:
        """Return the matches of linked words."""
        if not self.encoding.needs_links:
            return []
        return [
            (source, target, (words[0][i], words[1][j]))
            for i, j in links
            if not (self.encoding.drop_identical and words[0][i] == words[1][j])
            for source, target in product(spans[0][i], spans[1][j])
        ]

    def _special(self, source: int, target: int) -> list[Match]:
        """Return the matches of special subwords of two sides of these lengths, with placeholder texts."""
        if self.encoding.pulled not in WITH_SPECIAL:
            return []
        spans = zip(self._ends(source), self._ends(target), strict=True)
        ends: list[Match] = [
            (source_span, target_span, ("", "") if source_span == (0, 1) else (" ", " "))
            for source_span, target_span in spans
        ]
        return ends[:1] if self.encoding.pulled == "opening" else ends

    def _ends(self, length: int) -> list[Span]:
        """Return the spans of the first and last special subword that frame a side of this length."""
        opening, closing = self.frame
        start = [(0, 1)] if opening else []
        end = [(length - 1, length)] if closing else []
        return [*start, *end]


def _whole_word(begin: int, end: int) -> list[tuple[int, int]]:
    return [(begin, end)]


def _first_subword(begin: int, _: int) -> list[tuple[int, int]]:
    return [(begin, begin + 1)]


def _last_subword(_: int, end: int) -> list[tuple[int, int]]:
    return [(end - 1, end)]


def _each_subword(begin: int, end: int) -> list[tuple[int, int]]:
    return [(index, index + 1) for index in range(begin, end)]


def _spans(split: SplitWords, word: Word, opening: int) -> list[list[Span]]:
    """Return the spans of each linkable unit, a word or a subword, after the opening subwords."""
    end = opening + len(split.subwords)
    if word == ALIGNED_SUBWORDS:
        return [[(index, index + 1)] for index in range(opening, end)]
    begins = [opening + index for index in split.first()]
    word_spans: dict[Word, Callable[[int, int], list[Span]]] = {
        "average": _whole_word,
        "first": _first_subword,
        "last": _last_subword,
        "subwords": _each_subword,
    }
    return [word_spans[word](*bounds) for bounds in pairwise([*begins, end])]


def _checked_links(languages: str, pair: Translation, words: Sides) -> tuple[tuple[int, int], ...]:
    """Return a pair's links. Raises DataError without any, or for a link to a word that does not exist."""
    if pair.links is None:
        raise DataError(
            f"{languages}, translation {pair.id!r}: no word links. Align the bitext first (a run of kind "
            f"align), or use bitext with gold links."
        )
    sizes = [len(side) for side in words]
    wrong = [f"{i}-{j}" for i, j in pair.links if not (0 <= i < sizes[0] and 0 <= j < sizes[1])]
    if wrong:
        raise DataError(
            f"{languages}, translation {pair.id!r}: link {wrong[0]}, but there are {sizes[0]} and {sizes[1]} "
            f"words, counted from 0. Align this text again."
        )
    return tuple(pair.links)


def subword_texts(split: SplitWords, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return subwords as the tokenizer writes them."""
    return tuple(tokenizer.convert_ids_to_tokens(list(split.subwords)))
