"""Sentence pairs with linked words as an encoder reads them: what is aligned, what is anchored.

A word's state is made of its subwords' states; where those lie is worked out once, when pairs are encoded.
Everything is kept in a few long arrays: 250,000 pairs take some hundred MiB.
"""

from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from typing import Literal

import numpy as np

from isogloss.core.errors import DataError
from isogloss.core.records import Value
from isogloss.data.examples import Translation
from isogloss.data.formats.word_links import pair_words
from isogloss.encoders.annotations import Tokenizer
from isogloss.encoders.subwords import SplitWords, special_subwords, split_words

Word = Literal["average", "first", "last", "subwords", "aligned-subwords"]
"""What represents a word: the average of its subwords, one of them, or each for itself; or no word is
represented, as links are of subwords."""

ALIGNED_SUBWORDS: Word = "aligned-subwords"

Aligned = Literal["all", "words", "special", "opening", "sentences"]
"""What is aligned: linked words with both special subwords, either alone, [CLS] alone, or the means
of whole sentences."""

AT_ONCE = 1000
"""Pairs tokenized in one call: enough to keep the tokenizer busy, little memory."""

Span = tuple[int, int]
"""The places in a sentence, from the first to before the last, whose states are averaged."""

WITH_SPECIAL = ("all", "special", "opening")
WITH_WORDS = ("all", "words")


@dataclass(frozen=True, kw_only=True)
class PairEncoding:
    """How sentence pairs are read."""

    word: Word = "average"
    aligned: Aligned = "all"
    drop_identical: bool = False
    longest: int = 64
    """Words of the longest sentence."""
    layer: int = -1
    """Layer whose states are read: 0 is the embeddings, -1 the last."""


@dataclass(frozen=True, slots=True)
class AlignedRow:
    """A sentence pair: the subwords of both sides, and places in them."""

    number: int
    source: np.ndarray
    target: np.ndarray
    anchored: np.ndarray
    """[item 2]: places in the source whose states stay near where they were."""
    aligned: np.ndarray
    """[item 4]: places in the source and in the target whose states come together."""
    kinds: np.ndarray
    """[item 2]: numbers of the texts at these places; equal texts have equal numbers."""
    languages: tuple[str, str]
    """That of the source and that of the target."""


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths in one long array."""

    values: "array[int]" = field(default_factory=lambda: array("i"))
    starts: "array[int]" = field(default_factory=lambda: array("q", (0,)))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return np.frombuffer(self.values, dtype=np.int32)[self.starts[row] : self.starts[row + 1]]

    def size(self, row: int) -> int:
        """Return how long a row is."""
        return self.starts[row + 1] - self.starts[row]

    def append(self, row: Sequence[int]) -> None:
        """Add a row."""
        self.values.extend(row)
        self.starts.append(len(self.values))


@dataclass(frozen=True)
class AlignedPairs:
    """All sentence pairs, encoded; row i is built on access."""

    layer: int
    """Layer whose states are read."""
    padding: int
    """The subword sentences are padded with."""
    source: Ragged = field(default_factory=Ragged)
    target: Ragged = field(default_factory=Ragged)
    anchored: Ragged = field(default_factory=Ragged)
    aligned: Ragged = field(default_factory=Ragged)
    kinds: Ragged = field(default_factory=Ragged)
    groups: dict[str, range] = field(default_factory=dict)
    """Rows of each pair of languages."""
    rows: list[dict[str, Value]] = field(default_factory=list)
    """A row for each pair of languages: pairs read and left out."""

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, number: int) -> AlignedRow:
        parts = (self.source, self.target, self.anchored, self.aligned, self.kinds)
        source, target, anchored, aligned, kinds = (part[number] for part in parts)
        return AlignedRow(
            number=number,
            source=source,
            target=target,
            anchored=anchored.reshape(-1, 2),
            aligned=aligned.reshape(-1, 4),
            kinds=kinds.reshape(-1, 2),
            languages=self.languages(number),
        )

    def languages(self, number: int) -> tuple[str, str]:
        """Return the languages of a pair's two sides."""
        first, _, second = next(pair for pair, rows in self.groups.items() if number in rows).partition("-")
        return first, second

    def length(self, number: int) -> int:
        """Return the subwords of a pair's longer side."""
        return max(self.source.size(number), self.target.size(number))

    def anchored_counts(self) -> np.ndarray:
        """Return for each row how many states are anchored."""
        return np.diff(np.frombuffer(self.anchored.starts, dtype=np.int64)) // 2

    def warnings(self) -> tuple[str, ...]:
        """Warn of pairs that were left out."""
        return tuple(
            f"{row['pair']}: {row['left_out']} of {row['translations']} sentence pairs were left out: "
            f"empty, or too long (more words than longest, or more subwords than the encoder has positions)."
            for row in self.rows
            if row["left_out"]
        )


def encode_pairs(
    bitext: Mapping[str, Sequence[Translation]], tokenizer: Tokenizer, how: PairEncoding
) -> AlignedPairs:
    """Encode the translations of every pair of languages; the source language is the first.

    Pairs with an empty side or one that is too long are left out and counted. DataError when a pair has no
    links, or links to words that are not there.
    """
    encode = _Encoder(how, tokenizer)
    pairs = encode.pairs
    for languages, translations in bitext.items():
        first, links = len(pairs), len(pairs.aligned.values)
        for start in range(0, len(translations), AT_ONCE):
            some = translations[start : start + AT_ONCE]
            words = [pair_words(one) for one in some]
            splits = iter(split_words(list(chain.from_iterable(words)), tokenizer))
            for one, sides in zip(some, words, strict=True):
                encode.add(languages, one, sides, (next(splits), next(splits)))
        pairs.groups[languages] = range(first, len(pairs))
        pairs.rows.append(
            {
                "pair": languages,
                "translations": len(translations),
                "left_out": len(translations) - (len(pairs) - first),
                "pulled": (len(pairs.aligned.values) - links) // 4,
            }
        )
    return pairs


def in_subwords(pairs: Sequence[Translation], tokenizer: Tokenizer) -> list[Translation]:
    """Return sentence pairs whose words are their subwords, so that these are linked; links are left out."""
    found = []
    for start in range(0, len(pairs), AT_ONCE):
        some = pairs[start : start + AT_ONCE]
        splits = iter(split_words([side for pair in some for side in pair_words(pair)], tokenizer))
        for pair in some:
            sides = (_texts(next(splits), tokenizer), _texts(next(splits), tokenizer))
            found.append(replace(pair, words=sides, links=None, possible=()))
    return found


def _texts(split: SplitWords, tokenizer: Tokenizer) -> tuple[str, ...]:
    """Return subwords as the tokenizer writes them."""
    return tuple(tokenizer.convert_ids_to_tokens(list(split.subwords)))


Match = tuple[tuple[int, ...], tuple[str, str]]
"""A span in either side, four numbers, and the texts there."""

Sides = tuple[tuple[str, ...], tuple[str, ...]]
Splits = tuple[SplitWords, SplitWords]


class _Encoder:
    """Turns translations into rows, one after the other."""

    def __init__(self, how: PairEncoding, tokenizer: Tokenizer) -> None:
        self.how, self.special, self.tokenizer = how, special_subwords(tokenizer), tokenizer
        self.limit = tokenizer.model_max_length
        self.pairs = AlignedPairs(how.layer, tokenizer.pad_token_id)
        self.known: dict[str, int] = {}

    def add(self, languages: str, one: Translation, words: Sides, splits: Splits) -> None:
        """Add a translation, unless it is left out."""
        linked = words
        if self.how.word == ALIGNED_SUBWORDS:
            linked = (_texts(splits[0], self.tokenizer), _texts(splits[1], self.tokenizer))
        _check_links(languages, one, linked)
        lengths = [len(split.subwords) + len(self.special) for split in splits]
        fits = max(lengths) <= self.limit and max(map(len, words)) <= self.how.longest
        if not (all(words) and fits):
            return
        opening, closing = self.special
        for side, split in zip((self.pairs.source, self.pairs.target), splits, strict=True):
            side.append((opening, *split.subwords, closing))
        places = [_places(split, self.how.word) for split in splits]
        self.pairs.anchored.append([*chain.from_iterable(self._held(places[0], lengths[0]))])
        matches = [*self._matches(one, linked, places), *self._special(lengths)]
        if self.how.aligned == "sentences":
            matches = [((*_whole(lengths[0]), *_whole(lengths[1])), (one.first, one.second))]
        self.pairs.aligned.append([*chain.from_iterable(span for span, _ in matches)])
        self.pairs.kinds.append([self._kind(text) for _, texts in matches for text in texts])

    def _held(self, words: list[list[Span]], length: int) -> list[Span]:
        if self.how.aligned == "sentences":
            return [_whole(length)]
        special = [(0, 1), (length - 1, length)] if self.how.aligned in WITH_SPECIAL else []
        return [*chain.from_iterable(words), *special]

    def _matches(self, one: Translation, words: Sides, places: list[list[list[Span]]]) -> list[Match]:
        if self.how.aligned not in WITH_WORDS:
            return []
        return [
            ((*source, *target), (words[0][i], words[1][j]))
            for i, j in one.links or ()
            if not (self.how.drop_identical and words[0][i] == words[1][j])
            for source, target in product(places[0][i], places[1][j])
        ]

    def _special(self, lengths: list[int]) -> list[Match]:
        if self.how.aligned not in WITH_SPECIAL:
            return []
        source, target = lengths
        ends: list[Match] = [((0, 1, 0, 1), ("", "")), ((source - 1, source, target - 1, target), (" ", " "))]
        return ends[:1] if self.how.aligned == "opening" else ends

    def _kind(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


def _places(split: SplitWords, word: Word) -> list[list[Span]]:
    """Return the spans that represent what is linked, each word or each subword, after the opening one."""
    if word == ALIGNED_SUBWORDS:
        return [[(place, place + 1)] for place in range(1, len(split.subwords) + 1)]
    begins = [place + 1 for place in split.first()]
    ends = [*begins[1:], len(split.subwords) + 1]
    each: dict[Word, Callable[[int, int], list[Span]]] = {
        "average": lambda begin, end: [(begin, end)],
        "first": lambda begin, _: [(begin, begin + 1)],
        "last": lambda _, end: [(end - 1, end)],
        "subwords": lambda begin, end: [(place, place + 1) for place in range(begin, end)],
    }
    return [each[word](begin, end) for begin, end in zip(begins, ends, strict=True)]


def _whole(length: int) -> Span:
    """Return the span of all subwords but the special ones."""
    return 1, length - 1


def _check_links(languages: str, one: Translation, words: Sides) -> None:
    if one.links is None:
        raise DataError(
            f"{languages}, translation {one.id!r}: its words are not linked. Align the bitext first (a run "
            f"of kind align), or read bitext with gold links."
        )
    sizes = [len(side) for side in words]
    wrong = [f"{i}-{j}" for i, j in one.links if not (0 <= i < sizes[0] and 0 <= j < sizes[1])]
    if wrong:
        raise DataError(
            f"{languages}, translation {one.id!r}: link {wrong[0]}, but there are {sizes[0]} and {sizes[1]} "
            f"words, counted from 0. Align this very text again."
        )
