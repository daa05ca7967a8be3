"""Which languages an encoder reads, told before it is made or loaded: by its modules, and by its maps."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from isogloss.core.errors import ConfigError, did_you_mean
from isogloss.core.runs import Adjust, Encoder, Modules, Pretrain
from isogloss.encoders import load_encoder_config
from isogloss.encoders.language_files import read_about, read_language_maps
from isogloss.encoders.language_modules import SHARED_ADAPTER
from isogloss.experiments.encoders import place_of

Here = Mapping[str, str]
"""Folders of encoders that exist already, by fingerprint."""


def reads(encoder: Encoder, code: str, here: Here) -> bool:
    """Tell whether an encoder reads a language."""
    each = (module_languages(encoder, here), mapped_languages(encoder, here))
    return all(known is None or code in known for known in each)


def check_read(encoder: Encoder, codes: Iterable[str], here: Here, where: str) -> None:
    """Raise ConfigError, naming ``where``, for a language that an encoder has no module, or no map, for."""
    modules, maps = module_languages(encoder, here), mapped_languages(encoder, here)
    for code in codes:
        if modules is not None and code not in modules:
            raise ConfigError(
                f"{where} has modules for each language, and none for {code!r}.{did_you_mean(code, modules)} "
                f"Known: {', '.join(sorted(modules))}. Pretrain it with {code} too, choose whose modules "
                f"read what has none (modules.fallback), or name other languages (or encoders)."
            )
        if maps is not None and code not in maps:
            raise ConfigError(
                f"{where} maps each language's states, and has no map for {code!r}. "
                f"Known: {', '.join(sorted(maps))}. Adjust it with bitext of {code} too, or name other "
                f"languages (or encoders)."
            )


def mapped_languages(encoder: Encoder, here: Here) -> frozenset[str] | None:
    """Return the languages an encoder has maps for, and their source; None where it reads any."""
    if isinstance(encoder, Adjust):
        if not getattr(encoder.method, "maps", False):
            return mapped_languages(encoder.encoder, here)
        return frozenset(code for one in encoder.aligned for code in one.languages.split("-"))
    where = place_of(encoder, here)
    if not where:
        return None
    maps = read_language_maps(Path(where), load_encoder_config(where).hidden_size)
    return None if maps is None else frozenset((maps.source, *maps.maps))


def module_languages(encoder: Encoder, here: Here) -> frozenset[str] | None:
    """Return the languages an encoder has modules for; None where it reads any."""
    if isinstance(encoder, Adjust):
        return module_languages(encoder.encoder, here)
    if isinstance(encoder, Pretrain):
        return _told_apart(encoder.modules, encoder.languages)
    where = place_of(encoder, here)
    about = read_about(Path(where), load_encoder_config(where).hidden_size) if where else None
    return None if about is None else _told_apart(about.how, about.languages)


def _told_apart(modules: Modules | None, languages: tuple[str, ...]) -> frozenset[str] | None:
    any_language = modules is None or modules.kind == SHARED_ADAPTER or modules.fallback
    return None if any_language else frozenset(languages)
