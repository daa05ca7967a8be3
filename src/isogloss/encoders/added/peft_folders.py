"""Folders of the library peft, read as models together with their base, configuration and tokenizer.

Such a folder has adapters and perhaps a head, and names the model that they belong to. What it lacks is added
in a folder of the cache, which is a difference from the base, as in a run (``differences``).
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isogloss.core.atomic_files import atomic_folder, writing
from isogloss.core.cache_folders import in_cache
from isogloss.core.errors import ModelError
from isogloss.core.untrusted import from_home
from isogloss.encoders import folders
from isogloss.encoders.added.differences import write_difference
from isogloss.encoders.family import Config
from isogloss.encoders.hub import HUB_NAME, pinned_name

WEIGHTS = "adapter_model.safetensors"

CONFIG = "adapter_config.json"

MERGED_TYPES = (
    "ADALORA", "ADAMSS", "BEFT", "BOFT", "C3A", "DEFT", "DELORA", "FOURIERFT", "GLORA", "GRALORA", "HIRA",
    "HRA", "IA3", "LN_TUNING", "LOHA", "LOKR", "LORA", "MISS", "OFT", "OSF", "PEANUT", "PSOFT", "PVERA",
    "RANDLORA", "ROAD", "SHIRA", "SUPERTUNING", "TINYLORA", "TRAINABLE_TOKENS", "VERA", "WAVEFT",
)  # fmt: skip
"""The methods of peft that are read: those that it merges into the weights with the same outputs."""

PREFIX = "base_model.model."
"""Before the names of all weights in a peft folder."""

LAST_LAYER = re.compile(rf"^{re.escape(PREFIX)}(classifier|score|qa_outputs)(\.out_proj)?\.weight$")
"""The names of a head's last layer, whose rows are labels, where it was saved."""


def complete_folder(folder: Path) -> Path:
    """Return a folder of a model, completed in the cache if it has only adapters of peft.

    Raises ModelError for adapters whose base is missing, and for adapters of AdapterHub, which must be
    attached to an encoder first.
    """
    model_files = (folders.DIFFERENCE, folders.WEIGHTS, folders.SHARDS)
    if not (folder / CONFIG).is_file() or any((folder / name).is_file() for name in model_files):
        return folder
    body = folders.read_json(folder / CONFIG)
    if "peft_type" not in body:
        raise ModelError(
            f"{folder}: these are adapters of AdapterHub (the library adapters), without their encoder. "
            f"Attach them to it: isogloss attach ENCODER FOLDER --language CODE={folder} (of a task: --task)."
        )
    check_type(folder, body)
    if not (folder / WEIGHTS).is_file():
        raise ModelError(f"{folder}: adapters of peft without {WEIGHTS}. Save them as safetensors.")
    base = _base(folder, body)
    is_folder = Path(base).is_dir()
    version = folders.fingerprint(Path(base)) if is_folder else base.rpartition("@")[2]

    def write(cache: Path) -> Path:
        model = cache / "peft" / f"{folders.fingerprint(folder)}-{version}" / folder.resolve().name
        if not model.is_dir():
            with atomic_folder(model.parent, model.name) as target, writing(model):
                _complete(target, folder, base, body)
        return model

    return in_cache(write)


def check_type(folder: Path, body: Mapping[str, Any]) -> None:
    """Raise ModelError unless the adapters of a peft folder are of a method that can be merged."""
    if (kind := body.get("peft_type")) not in MERGED_TYPES:
        raise ModelError(
            f"{folder}: adapters of peft of the type {kind!s:.40} are not read. Methods that can be merged "
            f"into the weights are: {', '.join(MERGED_TYPES)}."
        )


def _base(folder: Path, body: dict[str, Any]) -> str:
    """Return the folder of the base, or its name on the hub with the commit."""
    name = str(body.get("base_model_name_or_path"))
    revision = body.get("revision")
    path = from_home(name)
    if path.is_dir():
        return str(path.resolve())
    if not HUB_NAME.fullmatch(name):
        raise ModelError(
            f"{folder / CONFIG}: the base of these adapters, {name!r}, is no folder of this machine, nor a "
            f"name on the Hugging Face hub. Write one of these there (base_model_name_or_path)."
        )
    hub_name = pinned_name(name, revision or folders.hub_commit(name))
    folders.find_folder(hub_name, folders.MODEL_FILES, folders.has_weights)
    return hub_name


def _complete(target: Path, folder: Path, base: str, body: Mapping[str, Any]) -> None:
    """Write the adapters with configuration, tokenizer and the description of their base."""
    base_model = folders.find_folder(base, folders.MODEL_FILES, folders.has_weights)
    names = [path for path in folder.iterdir() if path.name in folders.TOKENIZERS]
    for path in (names and folder.iterdir()) or base_model.iterdir():
        if path.suffix in (".json", ".txt", ".model") and path.name != folders.SHARDS:
            shutil.copyfile(path, target / path.name)
    has_config = (folder / folders.CONFIG).is_file()
    for name in (CONFIG, WEIGHTS, *([folders.CONFIG] if has_config else [])):
        shutil.copyfile(folder / name, target / name)
    if not has_config:
        config = folders.load_encoder_config(base_model)
        _describe_head(config, folder, body)
        config.save_pretrained(target)
    write_difference(target, base, form="peft", weights=WEIGHTS)


def _describe_head(config: Config, folder: Path, body: Mapping[str, Any]) -> None:
    """Set class and number of labels of the head that the adapters were trained with."""
    from transformers.models.auto import modeling_auto

    from isogloss.encoders.added.added_weights import read_weights

    classes = {
        "TOKEN_CLS": modeling_auto.MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES,
        "SEQ_CLS": modeling_auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
        "QUESTION_ANS": modeling_auto.MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES,
    }
    mapping = body.get("auto_mapping")  # There, where no task is named.
    default_kind = str(mapping.get("base_model_class", "")) if isinstance(mapping, dict) else ""
    kind = classes.get(str(body.get("task_type")), {}).get(config.model_type, default_kind)
    if "For" not in kind:
        return
    config.architectures = [kind]
    rows = [len(weight) for name, weight in read_weights(folder / WEIGHTS).items() if LAST_LAYER.search(name)]
    if rows:
        config.id2label = {index: f"LABEL_{index}" for index in range(min(rows))}
