"""Train a subword vocabulary on text: WordPiece, Unigram or bytes in pairs, as the family of encoders has it.

The result is the ordinary Hugging Face tokenizer of the family, so that it is the same once saved and
loaded. The same lines give the same vocabulary, in every process: both trainers of ``tokenizers`` number
or weigh their pieces in the order of a randomly seeded hash table, which is kept out here.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isogloss.core.errors import ConfigError, StorageError, unknown_name
from isogloss.core.records import write_text
from isogloss.encoders.families import FAMILIES

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SMALLEST_COUNT = 2
"""A subword seen once teaches nothing about its uses."""

ROUNDS = 2
"""Times the probabilities of Unigram pieces are estimated anew; more change little."""

_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_XLM_R = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

Model = Mapping[str, Any]
"""The part "model" of tokenizer.json: the vocabulary, and for bytes the merges."""


def train_tokenizer(lines: Iterable[str], *, family: str, size: int) -> "PreTrainedTokenizerFast":
    """Return a fast tokenizer of at most ``size`` subwords for an encoder family.

    ConfigError when the characters of the lines alone are more. The lines are kept in memory meanwhile.
    """
    if family not in FAMILIES:
        raise unknown_name("vocabulary", "encoder family", family, FAMILIES)
    train, make = _KINDS[FAMILIES[family].tokenizer]
    tokenizer = train(list(lines), size, make)
    if len(tokenizer) > size:
        raise ConfigError(
            f"vocabulary: {size} subwords are too few for the characters of this text, which with the "
            f"special ones take {len(tokenizer)}. Raise architecture.vocabulary, to several times that."
        )
    return tokenizer


def write_tokenizer(tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
    """Keep a trained tokenizer in one file, which is there whole or not at all."""
    write_text(path, tokenizer.backend_tokenizer.to_str())


def read_tokenizer(path: Path, *, family: str) -> "PreTrainedTokenizerFast":
    """Return the very tokenizer that was written; StorageError when the file is damaged."""
    try:
        _, make = _KINDS[FAMILIES[family].tokenizer]
        return make(json.loads(path.read_text(encoding="utf-8"))["model"])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: this tokenizer is damaged. Delete the folder and run again.") from error


def _word_piece(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    """Merge frequent neighbours (as BERT's vocabulary was made), each character also as ##c."""
    from tokenizers import Tokenizer, models, trainers

    blank = make(None).backend_tokenizer
    # Ties between merges go to the smaller numbers, and the trainer would number ##c as its hash table likes.
    continuing = [
        f"##{letter}" for letter in sorted(set(chain.from_iterable(lines))) if _continues(blank, letter)
    ]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*_BERT, *continuing],
        min_frequency=SMALLEST_COUNT,
        show_progress=False,
    )
    trained = Tokenizer(models.WordPiece(unk_token=_BERT[1]))
    trained.normalizer, trained.pre_tokenizer = blank.normalizer, blank.pre_tokenizer
    trained.train_from_iterator(lines, trainer)
    return make({"vocab": trained.get_vocab()})


def _bert(kind: str, model: Model | None) -> "PreTrainedTokenizerFast":
    import transformers

    vocabulary = None if model is None else model["vocab"]
    return getattr(transformers, kind)(vocab=vocabulary, do_lower_case=False, strip_accents=False)


def _continues(tokenizer: "Tokenizer", letter: str) -> bool:
    """Tell whether a character can stand inside a word: no space, punctuation or Chinese character can."""
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(f"a{letter}"))
    return [piece for piece, _ in pieces] == [f"a{letter}"]


def _unigram(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    """Find pieces by merging frequent neighbours, then weigh them by how often the best splits use them.

    Kudo (2018), Section 3.2, with pieces from byte-pair encoding and each word's best split alone.
    """
    blank = make(None)
    special: tuple[str, ...] = tuple(blank.convert_ids_to_tokens(range(len(blank))))
    return make(unigram_pieces(lines, size, special, make))


def unigram_pieces(lines: Sequence[str], size: int, special: Sequence[str], make: "Make") -> Model:
    """Return the special subwords, then at most as many pieces as make ``size`` subwords, each weighed."""
    from tokenizers import Tokenizer, models, trainers

    blank = make(None)
    merging = Tokenizer(models.BPE())
    merging.pre_tokenizer = blank.backend_tokenizer.pre_tokenizer
    if blank.backend_tokenizer.normalizer:
        merging.normalizer = blank.backend_tokenizer.normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=max(0, size - len(special)), min_frequency=SMALLEST_COUNT, show_progress=False
    )
    merging.train_from_iterator(lines, trainer)
    numbers: dict[str, int] = merging.get_vocab()
    pieces = sorted(numbers, key=numbers.__getitem__)
    words = Counter(chain.from_iterable(map(str.split, lines)))
    counts = _counts(merging, words, len(pieces))
    for _ in range(ROUNDS):
        tokenizer = make({"vocab": _weighed(special, pieces, counts)})
        counts = _counts(tokenizer.backend_tokenizer, words, len(special) + len(pieces))[len(special) :]
    return {"vocab": _weighed(special, pieces, counts)}


def _xlm_roberta(model: Model | None) -> "PreTrainedTokenizerFast":
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=_pairs(model))


def _deberta(model: Model | None) -> "PreTrainedTokenizerFast":
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(vocab=_pairs(model) or [(name, 0.0) for name in _BERT])


def _pairs(model: Model | None) -> list[tuple[str, float]] | None:
    return None if model is None else [(piece, weight) for piece, weight in model["vocab"]]


def _counts(tokenizer: "Tokenizer", words: Counter[str], size: int) -> np.ndarray:
    """Count how often each subword is used, in whole numbers, whose sums know no order."""
    encodings = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    counts = np.zeros(size, dtype=np.int64)
    for encoding, count in zip(encodings, words.values(), strict=True):
        np.add.at(counts, encoding.ids, count)
    return counts


def _weighed(special: Sequence[str], pieces: Sequence[str], counts: np.ndarray) -> list[tuple[str, float]]:
    """Give each piece its log probability; one that no split uses is as if used once."""
    used = np.maximum(counts, 1)
    total = math.log(max(1, used.sum()))
    weighed = [(piece, math.log(count) - total) for piece, count in zip(pieces, used, strict=True)]
    return [(name, 0.0) for name in special] + weighed


def _byte_pairs(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    """Merge frequent neighbours among bytes (Radford et al. 2019); a space belongs to the word after it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    blank = make(None)
    merging = Tokenizer(models.BPE())
    merging.pre_tokenizer = blank.backend_tokenizer.pre_tokenizer
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=blank.convert_ids_to_tokens(range(len(blank))),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=SMALLEST_COUNT,
        show_progress=False,
    )
    merging.train_from_iterator(lines, trainer)
    return make(json.loads(merging.to_str())["model"])


def _roberta(model: Model | None) -> "PreTrainedTokenizerFast":
    from transformers import RobertaTokenizer

    given = _only(_XLM_R) if model is None else model
    return RobertaTokenizer(vocab=given["vocab"], merges=_merges(given), add_prefix_space=True)


def _modernbert(model: Model | None) -> "PreTrainedTokenizerFast":
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    given = _only(_BERT) if model is None else model
    backend = Tokenizer(models.BPE(vocab=given["vocab"], merges=_merges(given)))
    # Every word is then split alike, be it the first of a text or a later one.
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    padding, unknown, first, last, mask = _BERT
    backend.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B {last}",
        special_tokens=[(name, given["vocab"][name]) for name in (first, last)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=padding,
        unk_token=unknown,
        cls_token=first,
        sep_token=last,
        mask_token=mask,
        model_input_names=["input_ids", "attention_mask"],
    )


def _only(special: Sequence[str]) -> Model:
    return {"vocab": {name: number for number, name in enumerate(special)}, "merges": []}


def _merges(model: Model) -> list[tuple[str, str]]:
    return [(first, second) for first, second in model["merges"]]


Make = Callable[[Model | None], "PreTrainedTokenizerFast"]
"""Make a family's tokenizer around a vocabulary; around its special subwords alone when there is none."""

_KINDS: dict[str, tuple[Callable[[Sequence[str], int, Make], "PreTrainedTokenizerFast"], Make]] = {
    "BertTokenizer": (_word_piece, partial(_bert, "BertTokenizer")),
    "DebertaV2Tokenizer": (_unigram, _deberta),
    "DistilBertTokenizer": (_word_piece, partial(_bert, "DistilBertTokenizer")),
    "PreTrainedTokenizerFast": (_byte_pairs, _modernbert),
    "RobertaTokenizer": (_byte_pairs, _roberta),
    "XLMRobertaTokenizer": (_unigram, _xlm_roberta),
}
"""By the class that a family names."""
