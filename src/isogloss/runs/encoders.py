"""What is known of an encoder before it is made or loaded: where it is, its languages, its positions."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from isogloss.core.errors import ConfigError, did_you_mean
from isogloss.core.paths import from_home, is_there
from isogloss.core.run_parts import values_of
from isogloss.encoders import (
    FAMILIES,
    has_masked_lm_head,
    has_text_head,
    load_encoder_config,
    load_model,
    load_tokenizer,
)
from isogloss.encoders.added.added_weights import read_language_maps, read_module_info
from isogloss.encoders.added.differences import whole_folder
from isogloss.encoders.added.language_modules import SHARED_ADAPTER, LanguageModules
from isogloss.encoders.families import is_causal
from isogloss.encoders.folders import (
    SHIPPED,
    check_tokenizer,
    check_weights,
    existing_folder,
    fingerprint,
    hub_commit,
    read_config,
    shipped_folder,
)
from isogloss.encoders.hub import HUB_NAME
from isogloss.runs.encoder_runs import Adjust, Encoder, Pretrain, Pretrained, first_of
from isogloss.training.states import check_layers


def pretrained(source: str) -> Pretrained:
    """Name an encoder that exists already, without the place where this machine keeps it.

    Its files are looked at (ModelError when one is missing or damaged) and their fingerprint taken. Of a
    name on the hub the config is looked at, and the commit taken.
    """
    folder = model_folder(source)
    if folder is None:
        found = on_hub(source)
        if found.revision:
            load_encoder_config(found.pinned)
        return found
    read_config(folder)
    check_tokenizer(folder)
    check_weights(folder, "AutoModel")
    return in_folder(folder, name=source if source == SHIPPED else "")


def in_folder(folder: Path, name: str = "") -> Pretrained:
    """Name a model by its files' fingerprint and its folder's name, or that of the run whose model it is."""
    own = folder.parent.name if folder.name == "model" else folder.name
    return Pretrained(source=name or own, data=fingerprint(folder))


def on_hub(source: str) -> Pretrained:
    """Name a model on the hub (``name`` or ``name@revision``) by its commit, if that can be looked up."""
    return Pretrained(source=source, revision=hub_commit(source))


def model_folder(source: str) -> Path | None:
    """Return the folder of an encoder, which may lie within a run's; None for a name on the hub.

    ModelError for a folder that is not.
    """
    if source == SHIPPED:
        return shipped_folder()
    folder = from_home(source)
    is_name = HUB_NAME.fullmatch(source) and not source.startswith(".")
    if is_there(folder) or not is_name or (folder.parent != Path() and folder.parent.is_dir()):
        found = existing_folder(folder).resolve()
        inside = found / "model"
        return inside if (inside / "config.json").is_file() else found
    return None


def places(sources: Iterable[str], model_named: Callable[[str], Pretrained] = pretrained) -> dict[str, str]:
    """Return where encoders, or what else ``model_named`` looks at, are on this machine, by fingerprint."""
    folders = {source: model_folder(source) for source in sources}
    return {model_named(source).data: str(folder) for source, folder in folders.items() if folder is not None}


class Facts(NamedTuple):
    """What is known of an encoder by its architecture or the files of its folder."""

    family: str
    dim: int
    """Width of its states."""
    positions: int
    """The longest text it has positions for."""
    layers: int
    masked_lm: bool = True
    """Whether it has a masked-LM head."""
    text_head: bool = True
    """Whether it has that, or a decoder's."""
    causal: bool = False
    """Whether it is a decoder whose mask is not lifted."""
    adapters: tuple[str, ...] = ()
    """Languages that the family's own adapters are for; none in most families."""
    modules: LanguageModules | None = None
    maps: tuple[str, ...] | None = None
    """Languages with maps, their source first."""


@lru_cache(maxsize=64)
def _read_facts(folder: str, _data: str) -> Facts:
    """Read the facts of a folder; the fingerprint is an argument so that changed files are read anew."""
    config, whole = load_encoder_config(folder), whole_folder(Path(folder))
    family = FAMILIES[config.model_type]
    maps = read_language_maps(whole, config.hidden_size)
    return Facts(
        family=family.name,
        dim=config.hidden_size,
        positions=family.longest_text(config),
        layers=config.num_hidden_layers,
        masked_lm=has_masked_lm_head(config),
        text_head=has_text_head(config),
        causal=is_causal(config),
        adapters=family.languages(config),
        modules=read_module_info(whole, config.hidden_size),
        maps=(maps.source, *maps.maps) if maps else None,
    )


def facts_of(encoder: Encoder, folders: Mapping[str, str]) -> Facts | None:
    """Return the facts of the encoder that one was made from; None where that is not on this machine yet."""
    first, folder = first_of(encoder), place_of(encoder, folders)
    if isinstance(first, Pretrain):
        shape = first.architecture
        return Facts(shape.family, shape.dim, shape.positions, shape.layers) if shape else None
    return _read_facts(folder, first.data) if folder else None


def place_of(encoder: Encoder, folders: Mapping[str, str]) -> str:
    """Return the folder of the encoder that one was made from; empty where it is not here."""
    first = first_of(encoder)
    return folders.get(first.data, "") if isinstance(first, Pretrained) else ""


def has_masked_lm(encoder: Encoder, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder has a masked-LM head; True for one that is not on this machine yet."""
    facts = facts_of(encoder, folders)
    return isinstance(encoder.original, Pretrain) or facts is None or facts.masked_lm


def predicts_text(encoder: Encoder, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder has the head of its pretraining; True for one that is not here yet."""
    facts = facts_of(encoder, folders)
    return isinstance(encoder.original, Pretrain) or facts is None or facts.text_head


def reads_causally(encoder: Encoder, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder is a decoder with its mask; False for one that is not here yet."""
    first, facts = first_of(encoder), facts_of(encoder, folders)
    said = first.attention if isinstance(first, Pretrained) else None
    return said == "causal" if said else facts is not None and facts.causal


def fetch(encoder: Pretrained) -> None:
    """Make sure that an encoder of the hub is whole on this machine, downloading what is missing."""
    load_tokenizer(encoder.pinned)
    load_model(encoder.pinned)


def reads(encoder: Encoder, code: str, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder reads a language."""
    each = (module_languages(encoder, folders), mapped_languages(encoder, folders))
    return all(known is None or code in known for known in each)


def check_read(encoder: Encoder, codes: Iterable[str], folders: Mapping[str, str], name: str) -> None:
    """Raise ConfigError for a language that an encoder, called ``name``, has no module or no map for."""
    modules, maps = module_languages(encoder, folders), mapped_languages(encoder, folders)
    for code in codes:
        if modules is not None and code not in modules:
            raise ConfigError(
                f"{name} has modules for each language, and none for {code!r}.{did_you_mean(code, modules)} "
                f"Known: {', '.join(sorted(modules))}. Pretrain it with {code} too, choose whose modules "
                "read what has none (modules.fallback), or name other languages (or encoders)."
            )
        if maps is not None and code not in maps:
            raise ConfigError(
                f"{name} maps each language's states, and has no map for {code!r}. "
                f"Known: {', '.join(sorted(maps))}. Adjust it with bitext of {code} too, or name other "
                "languages (or encoders)."
            )


def check_layers_read(part: object, encoder: Encoder, folders: Mapping[str, str]) -> None:
    """Raise ConfigError for a layer that a part reads and an encoder here lacks."""
    if facts := facts_of(encoder, folders):
        for name in ("layer", "layers"):
            read = values_of(part).get(name) or () if part else ()
            check_layers(facts.layers, read if isinstance(read, tuple) else (read,), name)


def mapped_languages(encoder: Encoder, folders: Mapping[str, str]) -> frozenset[str] | None:
    """Return the languages an encoder has maps for, and their source; None where it reads any."""
    if isinstance(encoder, Adjust):
        if not encoder.method.maps:
            return mapped_languages(encoder.encoder, folders)
        return frozenset(code for one in encoder.aligned for code in one.languages.split("-"))
    facts = facts_of(encoder, folders)
    return frozenset(facts.maps) if facts and facts.maps else None


def module_languages(encoder: Encoder, folders: Mapping[str, str]) -> frozenset[str] | None:
    """Return the languages an encoder has modules for; None where it reads any."""
    facts = facts_of(encoder, folders)
    if facts and facts.adapters:
        return frozenset(facts.adapters)
    about = modules_of(encoder, folders)
    any_language = about is None or about.modules.kind == SHARED_ADAPTER or about.modules.fallback
    return None if about is None or any_language else frozenset(about.languages)


def modules_of(encoder: Encoder, folders: Mapping[str, str]) -> LanguageModules | None:
    """Return which language modules an encoder has; None without any, or where it is not known yet."""
    first = encoder.original
    if isinstance(first, Pretrain):
        before = modules_of(first.start, folders) if first.start else None
        if first.modules is None:
            return before
        known = before.languages if before else ()
        return LanguageModules(first.modules, tuple(dict.fromkeys((*known, *first.languages))))
    facts = facts_of(encoder, folders)
    return facts.modules if facts else None
