"""Encoders that exist already (the shipped one, a folder, a hub name), and which languages one reads."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from isogloss.core.errors import ConfigError, did_you_mean
from isogloss.core.run_graph import original, run_id
from isogloss.core.runs import Adjust, Encoder, Modules, Pretrain, Pretrained
from isogloss.encoders import FAMILIES, has_masked_lm_head, load_encoder_config, load_model, load_tokenizer
from isogloss.encoders.folders import (
    check_tokenizer,
    check_weights,
    existing_folder,
    read_config,
)
from isogloss.encoders.language_context import read_language_maps, read_module_info
from isogloss.encoders.language_modules import SHARED_ADAPTER

SHIPPED = "shipped"
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def pretrained(source: str) -> Pretrained:
    """Name an encoder that exists already, without the place where this machine keeps it.

    Its files are looked at (ModelError when one is missing or damaged) and their fingerprint taken. A name
    on the hub is its own fingerprint: its files are not here yet.
    """
    folder = local_folder(source)
    if folder is None:
        return Pretrained(source=source)
    read_config(folder)
    check_tokenizer(folder)
    check_weights(folder, "AutoModel")
    # A run's model lies in a folder "model": the run's id says more.
    name = folder.parent.name if folder.name == "model" else folder.name
    return Pretrained(source=source if source == SHIPPED else name, data=fingerprint(folder))


def local_folder(source: str) -> Path | None:
    """Return the folder of an encoder; None for a name on the hub, ModelError for a folder that is not."""
    if source == SHIPPED:
        return Path(str(files("isogloss") / "shipped"))
    folder = Path(source).expanduser()
    is_name = HUB_NAME.fullmatch(source) and not source.startswith(".")
    if folder.exists() or not is_name or (folder.parent != Path() and folder.parent.is_dir()):
        return existing_folder(folder).resolve()
    return None


def places(sources: Iterable[str]) -> dict[str, str]:
    """Return where encoders are on this machine, by fingerprint."""
    folders = [(pretrained(source).data, local_folder(source)) for source in sources]
    return {data: str(folder) for data, folder in folders if folder is not None}


def most_subwords(encoder: Encoder, where: str) -> int | None:
    """Return the longest text an encoder has positions for; None when it is not known yet."""
    if isinstance(encoder, Pretrain):
        return encoder.architecture.positions
    if isinstance(encoder, Adjust):
        return most_subwords(encoder.encoder, where)
    return _positions(where, encoder.data) if where else None


def place_of(encoder: Encoder, here: Mapping[str, str]) -> str:
    """Return the folder of the encoder that one was made from; empty where it is not here."""
    first = original(encoder)
    return here.get(first.data, "") if isinstance(first, Pretrained) else ""


def has_masked_lm(encoder: Encoder, here: Mapping[str, str]) -> bool:
    """Tell whether an encoder has a masked-LM head; of one that is not on this machine yet, hope so."""
    where = place_of(encoder, here)
    return not where or has_masked_lm_head(load_encoder_config(where))


def fetch(source: str) -> None:
    """Make sure that an encoder of the hub is whole on this machine, downloading what is missing."""
    if local_folder(source) is None:
        load_tokenizer(source)
        load_model(source)


def encoder_label(encoder: Encoder) -> str:
    """Name an encoder in tables: its folder's or hub name, or how it was pretrained."""
    if isinstance(encoder, Pretrain):
        shape = encoder.architecture
        languages = "+".join(encoder.languages)
        own = f", {encoder.modules.kind} modules" if encoder.modules else ""
        return f"{shape.family} {shape.layers}x{shape.dim} on {languages}{own} ({run_id(encoder)[:6]})"
    if isinstance(encoder, Adjust):
        pairs = "+".join(one.languages for one in encoder.aligned)
        size = f"{encoder.aligned[0].examples} " if encoder.aligned[0].examples else ""
        what = f"{encoder.method.name} on {size}{pairs}"
        return f"{encoder_label(encoder.encoder)}, {what} ({run_id(encoder)[:6]})"
    return Path(encoder.source).name or encoder.source


@lru_cache(maxsize=64)
def _positions(folder: str, _data: str) -> int:
    config = load_encoder_config(folder)
    return FAMILIES[config.model_type].longest_text(config)


def fingerprint(folder: Path) -> str:
    """Return a fingerprint of a model's files: other weights in the same folder are another model."""
    kinds = {".json", ".safetensors", ".model", ".txt", ".spm"}
    found = [path for path in sorted(folder.iterdir()) if path.suffix in kinds]
    digest = sha256()
    for path in found:
        digest.update(path.name.encode())
        digest.update(_digest(path, path.stat().st_size, path.stat().st_mtime_ns))
    return digest.hexdigest()[:16]


@lru_cache(maxsize=64)
def _digest(path: Path, _size: int, _changed: int) -> bytes:
    """Hash a file; size and time of change are there so that a changed file is hashed anew."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


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
    about = read_module_info(Path(where), load_encoder_config(where).hidden_size) if where else None
    return None if about is None else _told_apart(about.how, about.languages)


def _told_apart(modules: Modules | None, languages: tuple[str, ...]) -> frozenset[str] | None:
    any_language = modules is None or modules.kind == SHARED_ADAPTER or modules.fallback
    return None if any_language else frozenset(languages)
