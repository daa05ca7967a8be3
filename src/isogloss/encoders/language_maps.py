"""An encoder that knows the language of its input: after the last layer, states are mapped onto the source's.

The maps stand beside the encoder in a file of their own; without it the folder is read as any other. A model
that is loaded carries them, whatever head is put on it, until it is saved again; who uses it says which
language is read (``speaking.of_language``). Fine-tuning changes the encoder, and leaves its maps as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.core.languages import BOTH, language_of_text
from isogloss.core.records import writing
from isogloss.encoders.module_places import encoder_of
from isogloss.nn.language_map import LanguageMap

FILE = "language_maps.safetensors"
CARRIED = "language_maps"
"""Attribute of an encoder that has maps."""


@dataclass(frozen=True)
class LanguageMaps:
    """The source language, whose states stay as they are, and the map of each other language."""

    source: str
    maps: Mapping[str, LanguageMap]

    def of(self, language: str) -> LanguageMap | None:
        """Return a language's map, None for the source; ConfigError when the language has none.

        Of a pair such as en-sw, translated from en into sw, the last is the language of the text.
        """
        code = language_of_text(language)
        if code == self.source:
            return None
        if code not in self.maps:
            raise ConfigError(_lacking(self, code))
        return self.maps[code]


def _lacking(maps: LanguageMaps, code: str) -> str:
    """Say why a language cannot be read, and what to do."""
    each, known = "this encoder maps each language's states", sorted({maps.source, *maps.maps})
    if not code:
        what, then = ", and it is not said which language it reads.", "Name it (--language, or language=)."
    elif BOTH in code:
        what, then = f", and {code} is two languages in one input.", "Take an encoder without maps for them."
    else:
        what = f", and has no map for {code!r}.{did_you_mean(code, known)}"
        then = f"Adjust it with bitext of {maps.source} and {code} too."
    return f"{each}{what} Known: {', '.join(known)}. {then}"


def keep_language_maps(model: Any, maps: LanguageMaps) -> None:
    """Let a model carry maps, in its encoder."""
    setattr(encoder_of(model), CARRIED, maps)


def language_maps_of(model: Any) -> LanguageMaps | None:
    """Return the maps that a model carries; None for one without."""
    maps: LanguageMaps | None = getattr(encoder_of(model), CARRIED, None)
    return maps


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


def read_language_maps(folder: Path, width: int) -> LanguageMaps | None:
    """Read the maps of an encoder of some width; None when it has none.

    ModelError when the file is damaged, or belongs to another encoder.
    """
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
    for language, one in maps.items():
        if one.matrix.shape != (width, width) or one.shift.shape != (width,):
            raise ModelError(
                f"{path}: the map of {language} has the shape {tuple(one.matrix.shape)}, and the encoder is "
                f"{width} wide. Copy the encoder's own file there, or delete this one to use it without."
            )
    return LanguageMaps(source, maps)
