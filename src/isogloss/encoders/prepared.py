"""Folders of existing encoders, prepared before they are loaded: masks of decoders, and GGUF files.

A decoder can be read with its mask lifted, so that each subword attends to both sides (BehnamGhader et al.
2024, "LLM2Vec: Large Language Models Are Secretly Powerful Text Encoders", Section 2.1). The mask is lifted
in config.json, so the encoder is read as it was trained.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import TextAttention
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.folders import from_pretrained, load_encoder_config, model_folder, quiet

if TYPE_CHECKING:
    pass


def check_attention(source: str | Path, attention: TextAttention) -> None:
    """Raise ConfigError for an encoder that is not a decoder, because it has no mask to lift."""
    name = load_encoder_config(source).model_type
    if not FAMILIES[name].is_decoder:
        decoders = [name for name in FAMILIES.places if FAMILIES[name].is_decoder]
        raise ConfigError(
            f"attention: {attention}: {source} is not a decoder ({name}) and always attends to both sides. "
            f"Remove attention, or use {' or '.join(decoders)}."
        )


def prepare_folder(source: str | Path, attention: TextAttention | None, folder: Path) -> Path:
    """Create an ordinary folder of an encoder with this attention, unless it exists, and return it.

    All files except for config.json are links. A GGUF file, which is slow to read, is converted to
    safetensors.
    """
    if (folder / folders.CONFIG).exists() and folders.has_weights(folder):
        return folder
    original = model_folder(source)
    with atomic_folder(folder.parent, folder.name) as new_folder:
        if folders.gguf_file(original):
            _convert(original, new_folder)
        else:
            for path in original.iterdir():
                _link(path, new_folder / path.name)
        config = new_folder / folders.CONFIG
        body = json.loads(config.read_text(encoding="utf-8"))
        lifted_where = FAMILIES[body["model_type"]].lifted_where
        if attention is not None and lifted_where is not None:
            name, value = lifted_where
            body[name] = value if attention == "bidirectional" else not value
        config.unlink()
        config.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    return folder


def _convert(original: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"config": load_encoder_config(original), "dtype": "float32"}
    with quiet():
        from_pretrained(AutoModelForCausalLM, original, options).save_pretrained(folder)
        from_pretrained(AutoTokenizer, original, {}).save_pretrained(folder)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path.resolve())
    except OSError:  # On Windows, links require a privilege.
        shutil.copyfile(path, link)
