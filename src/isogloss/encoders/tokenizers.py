"""Train a subword vocabulary on text: WordPiece for the BERT family, Unigram for XLM-R.

The result is the ordinary Hugging Face tokenizer of the family, so that it is the same once saved and
loaded. The same lines give the same vocabulary, in every process: both trainers of ``tokenizers`` number
or weigh their pieces in the order of a randomly seeded hash table, which is kept out here.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from isogloss.core.errors import ConfigError, StorageError, unknown_name
from isogloss.core.records import write_text

SMALLEST_COUNT = 2
"""A subword seen once teaches nothing about its uses."""

ROUNDS = 2
"""Times the probabilities of Unigram pieces are estimated anew; more change little."""

_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_XLM_R = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def train_tokenizer(lines: Iterable[str], *, family: str, size: int) -> Any:
    """Return a fast tokenizer of at most ``size`` subwords for an encoder family (bert, xlm-roberta).

    ConfigError when the characters of the lines alone are more. The lines are kept in memory meanwhile.
    """
    if family not in _TRAINERS:
        raise unknown_name("vocabulary", "encoder family", family, _TRAINERS)
    tokenizer = _TRAINERS[family](list(lines), size)
    if len(tokenizer) > size:
        raise ConfigError(
            f"vocabulary: {size} subwords are too few for the characters of this text, which with the "
            f"special ones take {len(tokenizer)}. Raise architecture.vocabulary, to several times that."
        )
    return tokenizer


def write_tokenizer(tokenizer: Any, path: Path) -> None:
    """Keep a trained tokenizer in one file, which is there whole or not at all."""
    write_text(path, tokenizer.backend_tokenizer.to_str())


def read_tokenizer(path: Path, *, family: str) -> Any:
    """Return the very tokenizer that was written; StorageError when the file is damaged."""
    try:
        vocabulary = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
        return _MAKERS[family](vocabulary)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: this tokenizer is damaged. Delete the folder and run again.") from error


def _word_piece(lines: Sequence[str], size: int) -> Any:
    """Merge frequent neighbours (as BERT's vocabulary was made), each character also as ##c."""
    from tokenizers import Tokenizer, models, trainers

    blank = _bert(None).backend_tokenizer
    # Ties between merges go to the smaller numbers, and the trainer would number ##c as its hash table likes.
    continuing = [f"##{letter}" for letter in _letters(lines) if _continues(blank, letter)]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*_BERT, *continuing],
        min_frequency=SMALLEST_COUNT,
        show_progress=False,
    )
    trained = Tokenizer(models.WordPiece(unk_token=_BERT[1]))
    trained.normalizer, trained.pre_tokenizer = blank.normalizer, blank.pre_tokenizer
    trained.train_from_iterator(lines, trainer)
    return _bert(trained.get_vocab())


def _bert(vocabulary: dict[str, int] | None) -> Any:
    from transformers import BertTokenizer

    return BertTokenizer(vocab=vocabulary, do_lower_case=False, strip_accents=False)


def _letters(lines: Iterable[str]) -> list[str]:
    return sorted(set(chain.from_iterable(map(set, lines))))


def _continues(tokenizer: Any, letter: str) -> bool:
    """Tell whether a character can stand inside a word: no space, punctuation or Chinese character can."""
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(f"a{letter}"))
    return [piece for piece, _ in pieces] == [f"a{letter}"]


def _unigram(lines: Sequence[str], size: int) -> Any:
    """Find pieces by merging frequent neighbours, then weigh them by how often the best splits use them.

    Kudo (2018), Section 3.2, with pieces from byte-pair encoding and each word's best split alone.
    """
    from tokenizers import Tokenizer, models, trainers

    merging = Tokenizer(models.BPE())
    merging.pre_tokenizer = _xlm_roberta(None).backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=max(0, size - len(_XLM_R)), min_frequency=SMALLEST_COUNT, show_progress=False
    )
    merging.train_from_iterator(lines, trainer)
    numbers: dict[str, int] = merging.get_vocab()
    pieces = sorted(numbers, key=numbers.__getitem__)
    words = Counter(chain.from_iterable(map(str.split, lines)))
    counts = _counts(merging, words, len(pieces))
    for _ in range(ROUNDS):
        tokenizer = _xlm_roberta(_weighed(pieces, counts))
        counts = _counts(tokenizer.backend_tokenizer, words, len(_XLM_R) + len(pieces))[len(_XLM_R) :]
    return _xlm_roberta(_weighed(pieces, counts))


def _xlm_roberta(vocabulary: Sequence[Sequence[str | float]] | None) -> Any:
    from transformers import XLMRobertaTokenizer

    pairs = None if vocabulary is None else [(piece, weight) for piece, weight in vocabulary]
    return XLMRobertaTokenizer(vocab=pairs)


def _counts(tokenizer: Any, words: Counter[str], size: int) -> np.ndarray:
    """Count how often each subword is used, in whole numbers, whose sums know no order."""
    encodings = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    counts = np.zeros(size, dtype=np.int64)
    for encoding, count in zip(encodings, words.values(), strict=True):
        np.add.at(counts, encoding.ids, count)
    return counts


def _weighed(pieces: Sequence[str], counts: np.ndarray) -> list[tuple[str, float]]:
    """Give each piece its log probability; one that no split uses is as if used once."""
    used = np.maximum(counts, 1)
    total = math.log(max(1, used.sum()))
    special = [(name, 0.0) for name in _XLM_R]
    return special + [(piece, math.log(count) - total) for piece, count in zip(pieces, used, strict=True)]


_TRAINERS = {"bert": _word_piece, "xlm-roberta": _unigram}
_MAKERS: dict[str, Callable[[Any], Any]] = {"bert": _bert, "xlm-roberta": _xlm_roberta}
