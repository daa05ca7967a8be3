"""Tokenizers of encoders: loaded from model folders, or trained on text.

A family's vocabulary is WordPiece, Unigram or byte-level BPE; a trained tokenizer is an ordinary Hugging Face
one. Training is deterministic in every process, although the trainers of ``tokenizers`` number and weigh
pieces in the order of a randomly seeded hash table.
"""

import base64
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isogloss.core.atomic_files import disk_error, reading_error, write_text
from isogloss.core.errors import ConfigError, ModelError, StorageError
from isogloss.core.processes import collector_paused
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.families import check_new, is_causal
from isogloss.encoders.folders import from_pretrained, load_encoder_config
from isogloss.encoders.subwords import pair_frame, set_causal, set_own_frame

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

SMALLEST_COUNT = 2
"""Fewest occurrences of a learned subword."""

ROUNDS = 2
"""Re-estimations of the Unigram probabilities. More change little."""

_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_XLM_R = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")

ModelJson = dict[str, Any]
"""The entry "model" of tokenizer.json: the vocabulary, and the merges of BPE."""

CHARACTER_MAP = "Precompiled"
"""The name in tokenizer.json of a normalizer given as a table of characters."""

STAND_INS = (
    ("cls_token", "bos_token"),
    ("sep_token", "eos_token"),
    ("cls_token", "eos_token"),
    ("pad_token", "eos_token"),
)
"""Special tokens that tokenizers of language models, such as mmBERT's or Qwen's, lack, with substitutes.

Without a token that opens a text, the end of the preceding text opens it, as in their pretraining.
"""

SEGMENTS = 2
"""Fewest segments of an encoder that makes use of segment ids of pairs."""


@collector_paused()
def load_tokenizer(source: str | Path, *, own_frame: bool = False) -> "PreTrainedTokenizerFast":
    """Load the tokenizer of a folder or hub name.

    Its model_max_length is at most the encoder's longest text. With ``own_frame`` texts are framed by the
    tokenizer's own template, and the first subword represents a word, as in heads trained by other programs.
    Otherwise all texts are opened and closed, and in a decoder the last subword represents a word. Raises
    ModelError for a tokenizer that cannot be used.
    """
    from transformers import AutoTokenizer

    folder = folders.find_folder(source, folders.TOKENIZER_FILES, folders.has_tokenizer)
    config = load_encoder_config(folder)
    folders.check_tokenizer(folder)
    tokenizer = from_pretrained(AutoTokenizer, folder, {})
    with folders.loading(folder, "AutoTokenizer"):
        restore_character_map(tokenizer, folder)
        tokenizer("a \u16a0", truncation=True)  # Fails for wrong types or a missing unknown subword.
    for name, substitute in STAND_INS:
        if getattr(tokenizer, name) is None and getattr(tokenizer, substitute) is not None:
            setattr(tokenizer, name, getattr(tokenizer, substitute))
    lacking = [name for name in ("pad", "cls", "sep") if getattr(tokenizer, f"{name}_token_id") is None]
    if lacking or not tokenizer.is_fast:
        advice = f"it has no {'_token, '.join(lacking)}_token" if lacking else "it has no tokenizer.json"
        raise ModelError(
            f"{folder}: this tokenizer cannot be used: {advice}. Save a complete fast tokenizer there."
        )
    if own_frame:
        set_own_frame(tokenizer)
    else:
        tokenizer = _add_frame(tokenizer)
    set_causal(tokenizer, causal=is_causal(config) and not own_frame)
    longest = FAMILIES[config.model_type].longest_text(config)
    tokenizer.model_max_length = min(tokenizer.model_max_length, longest)
    if getattr(config, "type_vocab_size", 0) < SEGMENTS:
        # A tokenizer taken over from BERT returns segments, on which this encoder may fail.
        names = [name for name in tokenizer.model_input_names if name != "token_type_ids"]
        tokenizer.model_input_names = names
        tokenizer.init_kwargs["model_input_names"] = names  # This one is saved.
    return tokenizer


def _add_frame(tokenizer: "PreTrainedTokenizerFast") -> "PreTrainedTokenizerFast":
    """Frame texts by the subwords that open and close them, if a tokenizer leaves pairs undivided.

    A decoder's opens a text at most, and marks no border between the two texts of a pair.
    """
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    frame = pair_frame(tokenizer)
    if frame.between and frame.closing:
        return tokenizer
    opening = tokenizer.cls_token
    closing = tokenizer.sep_token
    special = {name: tokenizer.convert_tokens_to_ids(name) for name in (opening, closing)}
    framing = processors.TemplateProcessing(
        single=[opening, "$A", closing],
        pair=[opening, "$A", closing, "$B", closing],
        special_tokens=list(special.items()),
    )
    tokenizer.backend_tokenizer.post_processor = framing
    if pair_frame(tokenizer).between:
        return tokenizer
    # The class of NLLB's tokenizer changes the frame of texts by language at each call.
    names = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
    generic = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer.backend_tokenizer,
        name_or_path=tokenizer.name_or_path,
        model_max_length=tokenizer.model_max_length,
        model_input_names=list(tokenizer.model_input_names),
        **{name: getattr(tokenizer, name) for name in names},
    )
    generic.backend_tokenizer.post_processor = framing
    return generic


def restore_character_map(tokenizer: "PreTrainedTokenizerFast", folder: Path) -> None:
    """Restore the character map in the files of a Unigram tokenizer, if transformers dropped it.

    transformers 5 drops SentencePiece's map (， → , and ｔｈｅ → the) in its DeBERTa tokenizer, whether it
    loads spm.model or a tokenizer.json with the map. Without it, a full-width comma is an unknown subword.
    """
    from tokenizers import models, normalizers

    backend = tokenizer.backend_tokenizer
    current = backend.normalizer
    has_map = current is not None and CHARACTER_MAP in current.__getstate__().decode()
    if isinstance(backend.model, models.Unigram) and not has_map and (content := _character_map(folder)):
        parts = [part for part in (normalizers.Precompiled(content), current) if part is not None]
        backend.normalizer = normalizers.Sequence(parts)


def _character_map(folder: Path) -> bytes | None:
    file = folder / "tokenizer.json"
    if not file.is_file():
        models = [folder / name for name in folders.SENTENCEPIECE if (folder / name).is_file()]
        return _sentencepiece_map(models[0]) if models else None
    normalizer = json.loads(file.read_text(encoding="utf-8"))["normalizer"] or {}
    parts = normalizer.get("normalizers", [normalizer])
    maps = [part["precompiled_charsmap"] for part in parts if part.get("type") == CHARACTER_MAP]
    return base64.b64decode(maps[0]) if maps else None


def _sentencepiece_map(model: Path) -> bytes:
    from sentencepiece import sentencepiece_model_pb2

    content = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    try:
        content.ParseFromString(model.read_bytes())
    except Exception as error:  # protobuf's own error; importing it here is not worth it.
        if failure := disk_error(error):
            raise reading_error(model, failure) from error
        raise ModelError(f"{model}: this tokenizer is damaged. Copy or download the file again.") from error
    return bytes(content.normalizer_spec.precompiled_charsmap)


def train_tokenizer(lines: Iterable[str], *, family: str, size: int) -> "PreTrainedTokenizerFast":
    """Train a fast tokenizer of at most ``size`` subwords for an encoder family.

    Raises ConfigError if the characters exceed ``size``. All lines stay in memory.
    """
    check_new(family, "vocabulary")
    train, make = _KINDS[FAMILIES[family].tokenizer]
    tokenizer = train(list(lines), size, make)
    check_size(len(tokenizer), size, "architecture.vocabulary")
    return tokenizer


def check_size(count: int, size: int, field: str, *, content: str = "with the special ones ") -> None:
    """Raise ConfigError, naming the field to raise, if ``count`` exceeds ``size`` subwords."""
    if count > size:
        raise ConfigError(
            f"vocabulary: {size} subwords are too few for the characters of this text, which {content}take "
            f"{count}. Raise {field}, to several times that."
        )


def write_tokenizer(tokenizer: "PreTrainedTokenizerFast", path: Path) -> None:
    """Write a trained tokenizer to one file, atomically."""
    write_text(path.parent, path.name, tokenizer.backend_tokenizer.to_str())


def read_tokenizer(path: Path, *, family: str) -> "PreTrainedTokenizerFast":
    """Read a tokenizer written by ``write_tokenizer``.

    Raises StorageError for a damaged file.
    """
    with reading(path) as content:
        _, make = _KINDS[FAMILIES[family].tokenizer]
        return make(content["model"])


@contextmanager
def reading(path: Path) -> Iterator[Mapping[str, Any]]:
    """Yield the content of a file written by ``write_tokenizer``.

    Raises StorageError for a damaged file.
    """
    try:
        yield json.loads(path.read_text(encoding="utf-8"))
    except Exception as error:  # tokenizers raises plain exceptions.
        if failure := disk_error(error):
            raise reading_error(path, failure) from error
        raise StorageError(f"{path}: this tokenizer is damaged. Delete the folder and run again.") from error


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


def unigram_pieces(
    lines: Sequence[str],
    size: int,
    special: Sequence[str],
    make: Callable[[ModelJson | None], "Tokenizer"],
) -> ModelJson:
    """Return a Unigram model of at most ``size`` subwords: special ones, then learned pieces."""
    from tokenizers import Tokenizer, models, trainers

    blank = make(None)
    merging = Tokenizer(models.BPE())
    merging.pre_tokenizer = blank.pre_tokenizer
    if blank.normalizer:
        merging.normalizer = blank.normalizer
    trainer = trainers.BpeTrainer(
        vocab_size=max(0, size - len(special)), min_frequency=SMALLEST_COUNT, show_progress=False
    )
    merging.train_from_iterator(lines, trainer)
    numbers: dict[str, int] = merging.get_vocab()
    pieces = sorted(numbers, key=numbers.__getitem__)
    words = Counter(word for line in lines for word in line.split())
    counts = _counts(merging, words, len(pieces))
    for _ in range(ROUNDS):
        tokenizer = make({"vocab": _with_log_probabilities(special, pieces, counts)})
        counts = _counts(tokenizer, words, len(special) + len(pieces))[len(special) :]
    return {"vocab": _with_log_probabilities(special, pieces, counts)}


def _xlm_roberta(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from transformers import XLMRobertaTokenizer

    return XLMRobertaTokenizer(vocab=_pairs(model))


def _deberta(model: ModelJson | None) -> "PreTrainedTokenizerFast":
    from transformers import DebertaV2Tokenizer

    return DebertaV2Tokenizer(vocab=_pairs(model) or [(name, 0.0) for name in _BERT])


def _pairs(model: ModelJson | None) -> list[tuple[str, float]] | None:
    return None if model is None else [(piece, weight) for piece, weight in model["vocab"]]


def _counts(tokenizer: "Tokenizer", words: Counter[str], size: int) -> np.ndarray:
    """Count the uses of each subword, as integers: their sums do not depend on the order."""
    encodings = tokenizer.encode_batch_fast(list(words), add_special_tokens=False)
    counts = np.zeros(size, dtype=np.int64)
    for encoding, count in zip(encodings, words.values(), strict=True):
        np.add.at(counts, encoding.ids, count)
    return counts


def _with_log_probabilities(
    special: Sequence[str], pieces: Sequence[str], counts: np.ndarray
) -> list[tuple[str, float]]:
    """Return each piece with its log probability, counting an unused piece as used once."""
    floor_counts = np.maximum(counts, 1)
    total = math.log(max(1, floor_counts.sum()))
    pieces_with_weights = [
        (piece, math.log(count) - total) for piece, count in zip(pieces, floor_counts, strict=True)
    ]
    return [(name, 0.0) for name in special] + pieces_with_weights


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
