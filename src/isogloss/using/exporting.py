"""Exporting a model: a folder that transformers loads without isogloss, with a card that says what it is."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from isogloss.core.errors import StorageError
from isogloss.core.records import RECORD, writing
from isogloss.core.whole_files import whole_folder
from isogloss.encoders import save_model
from isogloss.encoders.mixup import save_mixup
from isogloss.encoders.subwords import needs_spaces
from isogloss.using.card import card
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.origin import CONFIG, ENTRY, entry_of, exported_entry

TOKENIZER_CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"
AS_IT_IS = "PreTrainedTokenizerFast"
"""The class that takes tokenizer.json as it is: others make theirs anew and lose tables of characters."""

LEFT_BEHIND = ("is_local", "local_files_only")
"""What transformers notes of how a tokenizer was loaded here; elsewhere it is wrong."""


def export(model: FineTuned, folder: Path, *, onnx: bool = False, force: bool = False) -> Path:
    """Write the model to a folder, which is there whole or not at all, and return it.

    StorageError where the folder holds anything but an earlier export, unless ``force`` lets it be replaced.
    """
    folder = folder.expanduser().resolve()
    check_free(folder, force=force)
    if onnx:
        from isogloss.using.onnx_file import check_possible, write_onnx

        check_possible(model)
    with whole_folder(folder) as place:
        extras = () if model.mixup is None else (partial(save_mixup, model.mixup),)
        save_model(model.network, model.tokenizer, place / "model", extras=extras)
        with writing(folder):
            usual = (place / "model" / CONFIG).stat().st_mode
            for path in sorted((place / "model").iterdir()):
                path.chmod(usual)  # Weights are written for one user's eyes.
                path.rename(place / path.name)
            (place / "model").rmdir()
            _complete(place, model)
            (place / "README.md").write_text(card(model, onnx=onnx), encoding="utf-8")
        if onnx:
            write_onnx(model, place / "model.onnx")
    return folder


def check_free(folder: Path, *, force: bool) -> None:
    """Raise StorageError unless a folder is free to be written, or may be replaced."""
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder}: this is a file; an export needs a folder. Choose another.")
    if not folder.exists() or not any(folder.iterdir()) or exported_entry(folder) is not None:
        return
    if _is_more(folder):
        raise StorageError(
            f"{folder}: runs, your home or the current folder are here; not even --force replaces them. "
            f"Choose another folder."
        )
    if not force:
        names = ", ".join(sorted(path.name for path in folder.iterdir())[:4])
        raise StorageError(
            f"{folder}: this folder is no earlier export and not empty ({names} …). Choose another, or "
            f"replace all that is in it with --force."
        )


def _is_more(folder: Path) -> bool:
    """Tell whether a folder holds what no export may ever replace."""
    here = any(folder == path or folder in path.parents for path in (Path.cwd(), Path.home()))
    return here or (folder / RECORD).exists() or any(folder.glob(f"*/{RECORD}"))


def _complete(place: Path, model: FineTuned) -> None:
    """Say in the config where the model comes from, and in the tokenizer how long its inputs are."""
    _change(place / CONFIG, {ENTRY: entry_of(model.origin)})
    changes = {
        "model_max_length": model.longest,
        "model_input_names": list(model.tokenizer.model_input_names),
        "tokenizer_class": AS_IT_IS,
    }
    _change(place / TOKENIZER_CONFIG, changes, without=LEFT_BEHIND)
    # What the last call cut or padded to is no part of the tokenizer.
    _change(place / TOKENIZER, {"truncation": None, "padding": None})
    if model.kind.pipeline == "token-classification" and needs_spaces(model.tokenizer):
        _add_spaces(place / TOKENIZER)


def _add_spaces(path: Path) -> None:
    """Let a tokenizer put before each word the space that isogloss puts there: pipelines put none."""
    normalizer = json.loads(path.read_text(encoding="utf-8"))["normalizer"]
    parts = [{"type": "Prepend", "prepend": " "}, *([normalizer] if normalizer else [])]
    _change(path, {"normalizer": {"type": "Sequence", "normalizers": parts}})


def _change(path: Path, values: Mapping[str, Any], without: tuple[str, ...] = ()) -> None:
    body = json.loads(path.read_text(encoding="utf-8"))
    body = {name: value for name, value in {**body, **values}.items() if name not in without}
    path.write_text(json.dumps(body, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
