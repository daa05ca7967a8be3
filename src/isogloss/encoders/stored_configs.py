"""Configurations as config.json states them, so that a plan needs no transformers.

transformers takes seconds to import, and for most folders it returns what the file says. It is loaded only
for what the file does not say, or says in a way that transformers may refuse.
"""

from collections.abc import Mapping
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from isogloss.encoders.families import family_named
from isogloss.encoders.folders import CONFIG, gguf_file, load_encoder_config, quiet, read_config

if TYPE_CHECKING:
    from isogloss.encoders.family import Config

COUNTS = ("hidden_size", "max_position_embeddings", "num_attention_heads", "num_hidden_layers", "vocab_size")
FLAGS = ("is_causal", "tie_word_embeddings", "use_bidirectional_attention")
NAMES = ("architectures", "languages")
"""The fields that are read from the file itself: numbers of things, truth values, lists of names."""

RENAMED_BY = ("dim", "d_model", "encoder_layers", "n_layers", "num_layers", "text_config")
"""Fields of families whose configurations have further names for a field. transformers resolves these."""


def read_stored_config(folder: Path) -> "Config":
    """Return the configuration of an encoder's folder, read without transformers as far as possible.

    Raises ModelError for unsupported architectures and damaged files.
    """
    fields = read_config(folder)
    family_named(str(fields.get("model_type", "")), str(folder / CONFIG))
    if gguf_file(folder) or not _is_plain(fields):
        return load_encoder_config(folder)
    return cast("Config", StoredConfig(folder, fields))


class StoredConfig:
    """The fields of a config.json, and the defaults of transformers' configuration for missing fields."""

    def __init__(self, folder: Path, fields: Mapping[str, Any]) -> None:
        self._folder = folder
        self.model_type: str = fields["model_type"]
        for name in (*COUNTS, *FLAGS, *NAMES):
            if name in fields:
                setattr(self, name, fields[name])

    @cached_property
    def _complete(self) -> "Config":
        return load_encoder_config(self._folder)

    def __getattr__(self, name: str) -> Any:
        """Return a field that the file leaves out, or that is not read from it."""
        if name.startswith("__"):  # copy and pickle look for methods on objects without attributes.
            raise AttributeError(name)
        return getattr(self._complete, name)


def _is_plain(fields: Mapping[str, Any]) -> bool:
    """Return whether transformers would take the fields as they are."""
    counts = [fields[name] for name in COUNTS if name in fields]
    flags = [fields[name] for name in FLAGS if name in fields]
    names = [fields[name] for name in NAMES if name in fields]
    labels = fields.get("id2label", {})
    return (
        not any(name in fields for name in RENAMED_BY)
        and all(type(count) is int and count > 0 for count in counts)
        and all(type(flag) is bool for flag in flags)
        and all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in names)
        and isinstance(labels, dict)
        and sorted(labels) == sorted(str(value) for value in range(len(labels)))
    )


def count_parameters(config: "Config") -> int:
    """Count the parameters of an encoder, with its pretraining head if any, without allocating them."""
    import torch
    import transformers

    family = family_named(config.model_type, "memory")
    with torch.device("meta"), quiet():
        if family.encoder_class != "AutoModel":  # Halves of translation models have their own classes.
            model = attrgetter(family.encoder_class)(transformers)(config)
        elif family.is_decoder:
            model = transformers.AutoModelForCausalLM.from_config(config)
        else:
            model = transformers.AutoModelForMaskedLM.from_config(config)
    return sum(weight.numel() for weight in model.parameters())
