"""Which subword belongs to which word: text arrives in words, encoders see subwords.

The map is the tokenizer's own, so it is right for WordPiece (##s), Unigram (▁) and bytes (Ġ) alike, and for
words with a space inside, as Vietnamese treebanks have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isogloss.core.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Encoding
    from transformers import PreTrainedTokenizerFast


PROBE = "a a"
"""Two words that every vocabulary has in some form."""


@dataclass(frozen=True, slots=True)
class SplitWords:
    """A sentence's subwords, without special ones, and for each the number of its word, counted from 0.

    Every word has at least one subword, and words are in order.
    """

    subwords: tuple[int, ...]
    words: tuple[int, ...]

    def first(self) -> list[int]:
        """Return for each word the place of its first subword."""
        return [
            place
            for place, (before, word) in enumerate(zip((-1, *self.words), self.words, strict=False))
            if before != word
        ]


def split_words(sentences: Sequence[Sequence[str]], tokenizer: "PreTrainedTokenizerFast") -> list[SplitWords]:
    """Split the words of sentences into subwords; a word the tokenizer drops becomes the unknown one.

    Each word is split as one that follows a space in running text.
    """
    full = [list(words) for words in sentences if words]
    parts = iter(_encodings(full, tokenizer))
    return [
        _complete(next(parts), len(words), tokenizer.unk_token_id) if words else SplitWords((), ())
        for words in sentences
    ]


def special_subwords(tokenizer: "PreTrainedTokenizerFast") -> tuple[int, int]:
    """Return the subwords that open and close a text; ModelError for a tokenizer without them."""
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    if first is None or last is None:
        raise ModelError(
            f"{tokenizer.name_or_path or 'tokenizer'}: this tokenizer has no subwords that open and close a "
            f"text. Set cls_token and sep_token in its tokenizer_config.json."
        )
    return first, last


def _encodings(sentences: list[list[str]], tokenizer: "PreTrainedTokenizerFast") -> Sequence["Encoding"]:
    if not sentences:
        return []
    if needs_spaces(tokenizer):
        sentences = [[word and f" {word}" for word in words] for words in sentences]
    encoded = tokenizer(
        sentences,
        is_split_into_words=True,
        add_special_tokens=False,
        truncation=False,
        padding=False,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    encodings: Sequence[Encoding] = encoded.encodings
    return encodings


def needs_spaces(tokenizer: "PreTrainedTokenizerFast") -> bool:
    """Tell whether a word given alone lacks the space that in running text belongs to it.

    So it is where bytes or ▁ are not put before a text (ModernBERT, mmBERT, RoBERTa): "Ġthe" became "the",
    the end of some other word.
    """
    backend = tokenizer.backend_tokenizer
    running = backend.encode(PROBE, add_special_tokens=False).ids
    alone = backend.encode(PROBE.split()[1:], is_pretokenized=True, add_special_tokens=False).ids
    return bool(running[-len(alone) :] != alone)


def _complete(encoding: "Encoding", count: int, unknown: int) -> SplitWords:
    """Give each of ``count`` words its subwords, and those that have none the unknown one."""
    subwords = encoding.ids
    words = [word for word in encoding.word_ids if word is not None]  # Only special subwords have None.
    if len(set(words)) == count:
        return SplitWords(tuple(subwords), tuple(words))
    dropped = set(range(count)) - set(words)
    pairs = [*zip(words, subwords, strict=True), *((word, unknown) for word in dropped)]
    pairs.sort(key=lambda pair: pair[0])  # Stable, so the subwords of one word keep their order.
    return SplitWords(tuple(subword for _, subword in pairs), tuple(word for word, _ in pairs))
