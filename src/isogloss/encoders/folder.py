"""A model folder, looked at before anything is loaded from it: what is missing or damaged, and what to do."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from isogloss.core.errors import ModelError, did_you_mean

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHARDS = "model.safetensors.index.json"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model", "spm.model")
"""Any one of these is enough to make a fast tokenizer."""

SENTENCEPIECE = ("sentencepiece.bpe.model", "spm.model")
"""Those of them that a package of their own reads."""


def existing_folder(path: Path) -> Path:
    """Return the path if it is a folder; ModelError with the nearest name beside it otherwise."""
    if path.is_dir():
        return path
    what = "this is a file, not a model folder" if path.exists() else "no such folder"
    beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    raise ModelError(
        f"{path}: {what}.{did_you_mean(path.name, beside)} Give a folder with {CONFIG} and {WEIGHTS}, "
        f"or a model's name on the Hugging Face hub."
    )


def read_config(folder: Path) -> dict[str, Any]:
    """Return config.json as it stands."""
    if not (folder / CONFIG).is_file():
        raise ModelError(
            f"{folder}: no {CONFIG}, so this is no model folder{_found(folder)}. Give a folder written by "
            f"isogloss or by save_pretrained of transformers."
        )
    return _read_json(folder / CONFIG)


def check_tokenizer(folder: Path) -> None:
    """Raise ModelError unless there is a tokenizer in the folder."""
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise ModelError(
            f"{folder}: no tokenizer ({', '.join(TOKENIZERS)}){_found(folder)}. Save the encoder's own "
            f"tokenizer there: AutoTokenizer.from_pretrained(NAME).save_pretrained({str(folder)!r})."
        )
    if not any((folder / name).is_file() for name in TOKENIZERS if name not in SENTENCEPIECE):
        _check_sentencepiece(next(folder / name for name in SENTENCEPIECE if (folder / name).is_file()))


def _check_sentencepiece(model: Path) -> None:
    try:
        import_module("sentencepiece.sentencepiece_model_pb2")
    except ImportError as error:
        raise ModelError(
            f"{model}: this tokenizer is read with the packages sentencepiece and protobuf, which are not "
            f"both installed. Install them (pip install sentencepiece protobuf), or save the tokenizer as "
            f"tokenizer.json where they are."
        ) from error


def check_weights(folder: Path, auto_class: str) -> None:
    """Raise ModelError unless the weights are there, all of them, as undamaged safetensors."""
    for path in weight_files(folder, auto_class):
        if not path.is_file():
            raise ModelError(f"{path}: this part of the weights is missing. Copy or download it again.")
        _check_safetensors(path)


def has_weights(folder: Path) -> bool:
    """Tell whether config and safetensors, all shards of them, are in the folder."""
    if not (folder / CONFIG).is_file():
        return False
    if (folder / WEIGHTS).is_file():
        return True
    return (folder / SHARDS).is_file() and all(path.is_file() for path in _shards(folder))


def has_tokenizer(folder: Path) -> bool:
    """Tell whether there are a config and a tokenizer in the folder."""
    return (folder / CONFIG).is_file() and any((folder / name).is_file() for name in TOKENIZERS)


def has_config(folder: Path) -> bool:
    """Tell whether there is a config in the folder."""
    return (folder / CONFIG).is_file()


def weight_files(folder: Path, auto_class: str) -> list[Path]:
    """Return the safetensors files of a folder; ModelError when there are none."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / SHARDS).is_file():
        return _shards(folder)
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    if pickles:
        raise ModelError(
            f"{folder}: the weights are only there as pickle ({pickles[0]}), which can run code when it is "
            f"read. Convert them, if you trust where they come from: from transformers import {auto_class}; "
            f"{auto_class}.from_pretrained({str(folder)!r}).save_pretrained({str(folder)!r})"
        )
    raise ModelError(
        f"{folder}: no {WEIGHTS}{_found(folder)}. Copy or download the folder again, with its weights."
    )


def _shards(folder: Path) -> list[Path]:
    index = _read_json(folder / SHARDS)
    return [folder / name for name in sorted(set(index.get("weight_map", {}).values()))]


def _check_safetensors(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt"):  # Reads the header and compares it with the file's length.
            pass
    except SafetensorError as error:
        raise ModelError(
            f"{path}: these weights are damaged ({error}). Copy or download the file again; if a run of "
            f"isogloss made it, delete the run's folder and run again."
        ) from error


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path}: this is no JSON ({error}). Copy or download the file again.") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: a JSON object is expected, not a list or a single value.")
    return content


def _found(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir())
    return f" (found: {', '.join(names[:6])}{' …' if len(names) > 6 else ''})" if names else " (it is empty)"
