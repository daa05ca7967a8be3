"""SentencePiece's own table of characters, as in ， → , and ｔｈｅ → the: kept where transformers 5 drops it.

Its tokenizer for DeBERTa is built without that table, both from spm.model and from a tokenizer.json that has
it. Without it a full-width comma is an unknown subword.
"""

import base64
import json
from pathlib import Path
from typing import Any

from isogloss.core.errors import ModelError
from isogloss.encoders.folder import SENTENCEPIECE

TABLE = "Precompiled"
"""What tokenizers calls a normalizer made of such a table."""


def restore_characters(tokenizer: Any, folder: Path) -> None:
    """Give a tokenizer the table of the files it was loaded from, if it has lost that."""
    from tokenizers import models, normalizers

    backend = tokenizer.backend_tokenizer
    if not isinstance(backend.model, models.Unigram) or _has_table(backend.normalizer):
        return
    table = _table(folder)
    if table:
        parts = [part for part in (normalizers.Precompiled(table), backend.normalizer) if part is not None]
        backend.normalizer = normalizers.Sequence(parts)


def _has_table(normalizer: Any) -> bool:
    return normalizer is not None and TABLE in normalizer.__getstate__().decode()


def _table(folder: Path) -> bytes | None:
    file = folder / "tokenizer.json"
    if not file.is_file():
        found = [folder / name for name in SENTENCEPIECE if (folder / name).is_file()]
        return _read_table(found[0]) if found else None
    normalizer = json.loads(file.read_text(encoding="utf-8"))["normalizer"] or {}
    parts = normalizer.get("normalizers", [normalizer])
    tables = [part["precompiled_charsmap"] for part in parts if part.get("type") == TABLE]
    return base64.b64decode(tables[0]) if tables else None


def _read_table(model: Path) -> bytes:
    from sentencepiece import sentencepiece_model_pb2

    read: Any = sentencepiece_model_pb2.ModelProto()  # type: ignore[attr-defined]
    try:
        read.ParseFromString(model.read_bytes())
    except Exception as error:  # The error is protobuf's, which has no reason to be imported here.
        raise ModelError(f"{model}: this tokenizer is damaged. Copy or download the file again.") from error
    table: bytes = read.normalizer_spec.precompiled_charsmap
    return table
