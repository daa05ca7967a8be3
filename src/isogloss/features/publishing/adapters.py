"""Adapters without their model, written for the libraries peft and adapters, and attached to an encoder."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.atomic_files import write_bytes
from isogloss.core.errors import ConfigError
from isogloss.core.untrusted import parse_json, read_regular
from isogloss.encoders.added.differences import base_folder, difference_of
from isogloss.encoders.added.peft_folders import CONFIG, WEIGHTS
from isogloss.encoders.family import Model
from isogloss.encoders.folders import CONFIG as MODEL_CONFIG
from isogloss.encoders.folders import SHIPPED
from isogloss.encoders.hub import is_hub_name
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.publishing.adapterhub import (
    HubAdapter,
    check_writable,
    read_hub_adapter,
    with_hub_adapters,
    write_hub_adapters,
)
from isogloss.runs.pretrained import model_folder

PEFT, ADAPTERS = "peft", "adapter-transformers"
"""Names of the two libraries on the hub."""


@dataclass(frozen=True)
class AdapterExport:
    """Adapters that were written without their model."""

    library: str
    """Its library on the hub: peft or adapter-transformers."""
    base: str
    """The model that they belong to: a folder, or a hub name with its commit."""
    folders: Sequence[str] = ()
    """Folders of the library adapters: one for each language, and one for the task."""

    @property
    def is_local(self) -> bool:
        """Whether their base is a folder, whose path means nothing on another machine."""
        return not is_hub_name(self.base)

    @property
    def base_code(self) -> str:
        """The base as arguments of ``from_pretrained``."""
        name, _, revision = self.base.partition("@")
        revision_argument = f', revision="{revision}"' if revision else ""
        return '"ENCODER"' if self.is_local else f'"{name}"{revision_argument}'

    def base_text(self, encoder: str) -> str:
        """Return the base for a card, given the description of the encoder that the model began with."""
        if not self.is_local:
            return self.base
        name = "the one that comes with isogloss" if encoder == SHIPPED else f"a local encoder ({encoder})"
        return f"{name}. Put its folder in place of ENCODER"


def write_adapters(model: Model, target: Path, folder: Path, base: str = "") -> AdapterExport:
    """Write the adapters of the model in a folder of weights into a new one.

    ConfigError for a model without adapters, or with modules that the libraries lack. They belong to
    ``base``, or what their folder is a difference from, or to the encoder in it.
    """
    difference = difference_of(folder)
    if not base:
        base = difference.base if difference else str(folder.resolve())
    if difference is not None and not is_hub_name(difference.base):
        base = str(base_folder(folder, difference))
    if difference is None or difference.format != PEFT:
        check_writable(model)
        return AdapterExport(ADAPTERS, base, write_hub_adapters(model, target, base))
    config = parse_json(read_regular(folder / CONFIG))
    config["base_model_name_or_path"] = base.partition("@")[0]
    (target / CONFIG).write_text(json.dumps(config, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    for name in (WEIGHTS, MODEL_CONFIG):  # The latter has the names of labels.
        write_bytes(target, name, read_regular(folder / name))
    return AdapterExport(PEFT, base)


def attach(
    encoder: str,
    folder: Path,
    languages: Mapping[str, Path],
    *,
    task: Path | None = None,
    leave_out: Sequence[int] = (),
    pickle: bool = False,
) -> Path:
    """Write an encoder with adapters of AdapterHub for languages and a task, as a model of isogloss.

    ``encoder`` is the model they were trained on: a folder, or a name on the hub. ``leave_out`` are layers
    without adapters of languages. ``pickle`` allows pickles, of which only weights are read. ConfigError
    without adapters and where they differ in kind, ModelError for adapters of a different encoder.
    """
    if not languages and task is None:
        raise ConfigError("attach: no adapters are given. Give those of languages, of a task, or both.")
    adapters: dict[str, HubAdapter] = {
        language: read_hub_adapter(path, pickle=pickle) for language, path in languages.items()
    }
    task_adapter = read_hub_adapter(task, pickle=pickle) if task else None
    source = str(model_folder(encoder) or encoder)
    model = with_hub_adapters(source, adapters, task_adapter, leave_out)
    save_model(model, load_tokenizer(source), folder)
    return folder
