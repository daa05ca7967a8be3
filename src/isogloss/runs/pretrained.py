"""Existing models, identified by the fingerprint of their files or by their commit on the hub."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from isogloss.core.errors import ModelError
from isogloss.core.run_parts import TextAttention
from isogloss.core.untrusted import from_home, is_there
from isogloss.encoders.added.module_settings import LanguageModules
from isogloss.encoders.folders import (
    SHIPPED,
    check_tokenizer,
    check_weights,
    existing_folder,
    fingerprint,
    gguf_file,
    hub_commit,
    load_encoder_config,
    read_config,
    shipped_folder,
)
from isogloss.encoders.hub import HUB_NAME, pinned_name
from isogloss.runs.estimates import ASSUMED_SHAPES, Facts, Folders, folder_shape, read_facts
from isogloss.runs.run import Encoder, RunContext
from isogloss.training.memory import Shape


@dataclass(frozen=True, kw_only=True)
class Pretrained(Encoder):
    """An existing encoder: the shipped one, a folder, or a name on the Hugging Face hub."""

    name: ClassVar[str] = "pretrained"
    source: str
    """shipped, a folder, or a hub name."""
    data: str = ""
    """Fingerprint of its files. Different weights in the same folder are a different encoder."""
    revision: str | None = None
    """Commit of a hub name. None for a folder, and if the commit could not be found."""
    attention: TextAttention | None = None
    """Attention of a decoder: with or without its causal mask. None: as its config.json specifies."""
    exists: ClassVar[bool] = True

    @property
    def pinned(self) -> str:
        """The name to load it by if no folder on this machine has it: a hub name with its commit."""
        return pinned_name(self.source, self.revision)

    @property
    def reference(self) -> str:  # noqa: D102
        return self.pinned

    @property
    def base(self) -> None:
        """The encoder it was trained from, which is unknown."""

    @property
    def label(self) -> str:
        """Name in tables: the name of its folder or repository."""
        name = Path(self.source).name or self.source
        return f"{name}, {self.attention}" if self.attention else name

    @property
    def unresolved(self) -> str:  # noqa: D102
        return "" if self.data or self.revision else self.source

    @property
    def download(self) -> Mapping[str, Callable[[str], object]]:  # noqa: D102
        return {} if self.data else {self.pinned: _load}

    def seedless(self) -> "Pretrained":  # noqa: D102
        return self

    def weights(self, context: RunContext) -> str:
        """Return its folder or hub name.

        If it is a GGUF file or the recipe sets its attention, a folder is prepared.
        """
        from isogloss.encoders.prepared import prepare_folder

        path = context.sources.encoders.get(self.data, self.pinned)
        if self.attention or (self.data and gguf_file(Path(path))):
            return str(prepare_folder(path, self.attention, context.store.model(self)))
        return path

    def folder(self, folders: Folders) -> str:  # noqa: D102
        return folders.get(self.data, "")

    def facts(self, folders: Folders) -> Facts | None:  # noqa: D102
        folder = self.folder(folders)
        return read_facts(folder, self.data) if folder else None

    def shape(self, folders: Folders) -> Shape | None:  # noqa: D102
        path = self.folder(folders) or (self.pinned if self.revision else "")
        try:
            return folder_shape(path) if path else ASSUMED_SHAPES.get(self.source.partition("@")[0])
        except ModelError:
            return None

    def reads_causally(self, folders: Folders) -> bool:  # noqa: D102
        facts = self.facts(folders)
        return self.attention == "causal" if self.attention else facts is not None and facts.causal

    def language_modules(self, folders: Folders) -> LanguageModules | None:  # noqa: D102
        facts = self.facts(folders)
        return facts.modules if facts else None

    def mapped_languages(self, folders: Folders) -> frozenset[str] | None:  # noqa: D102
        facts = self.facts(folders)
        return frozenset(facts.maps) if facts and facts.maps else None


def identify_encoder(source: str) -> Pretrained:
    """Identify an existing encoder, independently of its path on this machine.

    The identity is the fingerprint of its files or, for a name on the hub, its commit. Raises ModelError if a
    file is missing or damaged.
    """
    folder = model_folder(source)
    if folder is None:
        encoder = on_hub(source)
        if encoder.revision:
            load_encoder_config(encoder.pinned)
        return encoder
    read_config(folder)
    check_tokenizer(folder)
    check_weights(folder, "AutoModel")
    return identify_folder(folder, name=source if source == SHIPPED else "")


def identify_folder(folder: Path, name: str = "") -> Pretrained:
    """Identify a model by its files' fingerprint and the name of its folder or run."""
    folder_name = folder.parent.name if folder.name == "model" else folder.name
    return Pretrained(source=name or folder_name, data=fingerprint(folder))


def on_hub(source: str) -> Pretrained:
    """Identify a model on the hub (``name`` or ``name@revision``) by its commit, if that can be found."""
    return Pretrained(source=source, revision=hub_commit(source))


def model_folder(source: str) -> Path | None:
    """Return the folder of an encoder, or of the model in a run's folder. None for a name on the hub.

    Raises ModelError for a folder that does not exist.
    """
    if source == SHIPPED:
        return shipped_folder()
    folder = from_home(source)
    is_name = HUB_NAME.fullmatch(source) and not source.startswith(".")
    if is_there(folder) or not is_name or (folder.parent != Path() and folder.parent.is_dir()):
        folder = existing_folder(folder).resolve()
        from isogloss.encoders.added.peft_folders import complete_folder

        inside = folder / "model"
        return inside if (inside / "config.json").is_file() else complete_folder(folder)
    return None


def model_folders(
    sources: Iterable[str], model_named: Callable[[str], Pretrained] = identify_encoder
) -> dict[str, str]:
    """Return the folders of encoders, or of the models ``model_named`` names, by fingerprint."""
    folders = {source: model_folder(source) for source in sources}
    return {model_named(source).data: str(folder) for source, folder in folders.items() if folder is not None}


def _load(name: str) -> None:
    from isogloss.encoders.loading import load_model
    from isogloss.encoders.tokenizers import load_tokenizer

    load_tokenizer(name)
    load_model(name)
