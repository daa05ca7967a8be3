"""Tokenizers of encoders, loaded from model folders."""

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.atomic_files import disk_error, reading_error
from isogloss.core.errors import ModelError
from isogloss.core.processes import collector_paused
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.families import is_causal
from isogloss.encoders.folders import from_pretrained, load_encoder_config
from isogloss.encoders.subwords import pair_frame, set_causal, set_own_frame

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


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
