"""Decoders as encoders: with their mask, or with the mask lifted, and from files that hold a whole model.

BehnamGhader et al. (2024), "LLM2Vec: Large Language Models Are Secretly Powerful Text Encoders", Section 2.1:
without the mask each subword attends to those on both sides. It is lifted in config.json, so that what is
saved is read as it was trained.
"""

import json
import shutil
from pathlib import Path
from typing import Literal

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError
from isogloss.encoders import folders
from isogloss.encoders.families import FAMILIES
from isogloss.encoders.folders import from_pretrained, load_encoder_config, quiet
from isogloss.encoders.loading import model_folder

TextAttention = Literal["causal", "bidirectional"]
"""Whether a subword attends to those before it, or to those on both sides."""


def check_attention(source: str | Path, attention: TextAttention) -> None:
    """Raise ConfigError unless an encoder is a decoder, whose mask can be lifted."""
    name = load_encoder_config(source).model_type
    if not FAMILIES[name].is_decoder:
        able = [one.name for one in FAMILIES.values() if one.is_decoder]
        raise ConfigError(
            f"attention: {attention}: {source} is no decoder ({name}) and attends to both sides always. "
            f"Leave attention out, or take {' or '.join(able)}."
        )


def prepared(source: str | Path, attention: TextAttention | None, folder: Path) -> Path:
    """Make an ordinary folder of an encoder with this attention, unless it exists, and return it.

    Other files than config.json are links. A GGUF file, slow to read, is converted to safetensors.
    """
    if (folder / folders.CONFIG).exists() and folders.has_weights(folder):
        return folder
    place = model_folder(source)
    with atomic_folder(folder) as new:
        if folders.gguf_file(place):
            _convert(place, new)
        else:
            for path in place.iterdir():
                _link(path, new / path.name)
        config = new / folders.CONFIG
        body = json.loads(config.read_text(encoding="utf-8"))
        lifted = FAMILIES[body["model_type"]].lifted_where
        if attention is not None and lifted is not None:
            name, value = lifted
            body[name] = value if attention == "bidirectional" else not value
        config.unlink()
        config.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    return folder


def _convert(place: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"config": load_encoder_config(place), "dtype": "float32"}
    with quiet():
        from_pretrained(AutoModelForCausalLM, place, options).save_pretrained(folder)
        from_pretrained(AutoTokenizer, place, {}).save_pretrained(folder)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path.resolve())
    except OSError:  # As on Windows, where links take a privilege.
        shutil.copyfile(path, link)
