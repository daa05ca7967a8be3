"""Tokenizers trained on text: WordPiece, Unigram or byte-level BPE, as the family of the encoder has it."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.encoders import FAMILIES
from isogloss.encoders.families import check_new
from isogloss.encoders.learned_subwords import SMALLEST_COUNT, ModelJson, check_size, reading, unigram_pieces

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_XLM_R = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def train_tokenizer(lines: Iterable[str], *, family: str, size: int) -> "PreTrainedTokenizerFast":
    """Train a fast tokenizer of at most ``size`` subwords for an encoder family.

    Raises ConfigError if the characters exceed ``size``. All lines stay in memory.
    """
    check_new(family, "vocabulary")
    train, make = _KINDS[FAMILIES[family].tokenizer]
    tokenizer = train(list(lines), size, make)
    check_size(len(tokenizer), size, "architecture.vocabulary")
    return tokenizer


def read_tokenizer(path: Path, *, family: str) -> "PreTrainedTokenizerFast":
    """Read a tokenizer written by ``write_tokenizer``.

    Raises StorageError for a damaged file.
    """
    with reading(path) as content:
        _, make = _KINDS[FAMILIES[family].tokenizer]
        return make(content["model"])


def _word_piece(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    return make({"vocab": word_pieces(lines, size, make(None).backend_tokenizer)})


def word_pieces(lines: Sequence[str], size: int, blank: "Tokenizer") -> dict[str, int]:
    """Train WordPiece on words as ``blank`` finds them, with each character also as ##c."""
    from tokenizers import Tokenizer, models, trainers

    # Ties between merges go to smaller ids, and the trainer numbers ##c in hash order: fix their ids first.
    continuing = [
        f"##{letter}" for letter in sorted(set(chain.from_iterable(lines))) if _continues(blank, letter)
    ]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*_BERT, *continuing],
        min_frequency=SMALLEST_COUNT,
        show_progress=False,
    )
    tokenizer = Tokenizer(models.WordPiece(unk_token=_BERT[1]))
    tokenizer.normalizer = blank.normalizer
    tokenizer.pre_tokenizer = blank.pre_tokenizer
    tokenizer.train_from_iterator(lines, trainer)
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    return vocabulary


def _bert(kind: str, model: ModelJson | None) -> "PreTrainedTokenizerFast":
    import transformers

    vocabulary = None if model is None else model["vocab"]
    return getattr(transformers, kind)(vocab=vocabulary, do_lower_case=False, strip_accents=False)


def _continues(tokenizer: "Tokenizer", letter: str) -> bool:
    """Return whether a character can occur inside a word, unlike spaces, punctuation, Chinese characters."""
    pieces = tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(f"a{letter}"))
    return [piece for piece, _ in pieces] == [f"a{letter}"]


def _unigram(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    """Train Unigram (Kudo 2018, Section 3.2), with pieces from BPE and each word's best segmentation only."""
    blank = make(None)
    special: tuple[str, ...] = tuple(blank.convert_ids_to_tokens(range(len(blank))))
    return make(unigram_pieces(lines, size, special, lambda model: make(model).backend_tokenizer))


def _xlm_roberta(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=_pairs(model))


def _deberta(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(vocab=_pairs(model) or [(name, 0.0) for name in _BERT])


def _pairs(model: ModelJson | None) -> list[tuple[str, float]] | None:
    return None if model is None else [(piece, weight) for piece, weight in model["vocab"]]


def _byte_pairs(lines: Sequence[str], size: int, make: "Make") -> "PreTrainedTokenizerFast":
    """Train byte-level BPE (Radford et al. 2019); a space belongs to the following word."""
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


def _roberta(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from transformers import RobertaTokenizer

    model_json = _only(_XLM_R) if model is None else model
    return RobertaTokenizer(vocab=model_json["vocab"], merges=_merges(model_json), add_prefix_space=True)


def _modernbert(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    model_json = _only(_BERT) if model is None else model
    backend = Tokenizer(models.BPE(vocab=model_json["vocab"], merges=_merges(model_json)))
    # With a prefix space, the first word of a text is split like later ones.
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.decoder = decoders.ByteLevel()
    padding, unknown_token, opening, closing, mask = _BERT
    backend.post_processor = processors.TemplateProcessing(
        single=f"{opening} $A {closing}",
        pair=f"{opening} $A {closing} $B {closing}",
        special_tokens=[(name, model_json["vocab"][name]) for name in (opening, closing)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=padding,
        unk_token=unknown_token,
        cls_token=opening,
        sep_token=closing,
        mask_token=mask,
        model_input_names=["input_ids", "attention_mask"],
    )


def _only(special: Sequence[str]) -> ModelJson:
    return {"vocab": {name: index for index, name in enumerate(special)}, "merges": []}


def _merges(model: ModelJson) -> list[tuple[str, str]]:
    return [(left, right) for left, right in model["merges"]]


Make = Callable[[ModelJson | None], "PreTrainedTokenizerFast"]
"""Build a family's tokenizer from a model, or from only its special subwords if the model is None."""

_KINDS: dict[str, tuple[Callable[[Sequence[str], int, Make], "PreTrainedTokenizerFast"], Make]] = {
    "BertTokenizer": (_word_piece, partial(_bert, "BertTokenizer")),
    "DebertaV2Tokenizer": (_unigram, _deberta),
    "DistilBertTokenizer": (_word_piece, partial(_bert, "DistilBertTokenizer")),
    "PreTrainedTokenizerFast": (_byte_pairs, _modernbert),
    "RobertaTokenizer": (_byte_pairs, _roberta),
    "XLMRobertaTokenizer": (_unigram, _xlm_roberta),
}
"""Trainer and builder by ``EncoderFamily.tokenizer``."""
