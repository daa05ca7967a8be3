"""An encoder that knows the language of its input: after the last layer, states are mapped onto the source's.

The maps stand beside the encoder in a file of their own; without it the folder is read as any other.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.core.records import writing
from isogloss.nn.language_map import LanguageMap

FILE = "language_maps.safetensors"


@dataclass(frozen=True)
class LanguageMaps:
    """The source language, whose states stay as they are, and the map of each other language."""

    source: str
    maps: Mapping[str, LanguageMap]

    def of(self, language: str) -> LanguageMap | None:
        """Return a language's map, None for the source; ConfigError when the language has none."""
        if language == self.source:
            return None
        if language not in self.maps:
            known = sorted({self.source, *self.maps})
            raise ConfigError(
                f"this encoder maps each language's states, and has no map for {language!r}."
                f"{did_you_mean(language, known)} Known: {', '.join(known)}. Adjust it with bitext of "
                f"{self.source} and {language} too."
            )
        return self.maps[language]


@contextmanager
def speaking(model: Any, maps: LanguageMaps, language: str) -> Iterator[None]:
    """Let an encoder, or a model with a head, map its last states as a language's for a while."""
    found = maps.of(language)
    if found is None:
        yield
        return
    encoder = model.base_model

    def mapped(module: Any, _: Any, output: Any) -> Any:
        output.last_hidden_state = found(output.last_hidden_state)
        if output.get("hidden_states") is not None:
            output.hidden_states = (*output.hidden_states[:-1], output.last_hidden_state)
        if output.get("pooler_output") is not None:  # Made of the last states too.
            output.pooler_output = module.pooler(output.last_hidden_state)
        return output

    handle = encoder.register_forward_hook(mapped)
    try:
        yield
    finally:
        handle.remove()


def write_language_maps(maps: LanguageMaps, folder: Path) -> None:
    """Write the maps beside an encoder."""
    from safetensors.torch import save_file

    parts = {
        f"{language}.{name}": getattr(one, name).contiguous()
        for language, one in maps.maps.items()
        for name in ("matrix", "shift")
    }
    temporary = folder / f".{FILE}.tmp"
    with writing(folder / FILE):
        save_file(parts, temporary, metadata={"source": maps.source})
        temporary.replace(folder / FILE)


def read_language_maps(folder: Path) -> LanguageMaps | None:
    """Read an encoder's maps; None when it has none, ModelError when the file is damaged."""
    from safetensors import SafetensorError, safe_open

    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            source = (file.metadata() or {})["source"]
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        languages = sorted({name.rpartition(".")[0] for name in parts})
        maps = {one: LanguageMap(parts[f"{one}.matrix"], parts[f"{one}.shift"]) for one in languages}
    except (SafetensorError, OSError, KeyError) as error:
        raise ModelError(
            f"{path}: these language maps are damaged ({type(error).__name__}: {error}). Adjust the encoder "
            f"again, or delete the file to use it without."
        ) from error
    return LanguageMaps(source, maps)
