"""The encoders a recipe works on: those that exist already, those it pretrains, and those it adjusts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from itertools import chain
from pathlib import Path

from isogloss.core.errors import ConfigError, DataError, did_you_mean, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.run_parts import Architecture, Modules, precision_of
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.encoders import FAMILIES, has_masked_lm_head, load_encoder_config, load_model, load_tokenizer
from isogloss.encoders.decoders import check_attention
from isogloss.encoders.families import check_new
from isogloss.encoders.folders import (
    HUB_NAME,
    check_tokenizer,
    check_weights,
    existing_folder,
    hub_commit,
    read_config,
)
from isogloss.encoders.language_context import read_language_maps, read_module_info
from isogloss.encoders.language_modules import SHARED_ADAPTER, check_modules
from isogloss.experiments.alignments import AlignmentRequest, alignments
from isogloss.experiments.encoder_runs import Adjust, Encoder, Pretrain, Pretrained
from isogloss.experiments.recipe import (
    AdjustTable,
    EncoderTable,
    GridTable,
    PretrainTable,
    Recipe,
    Table,
    checked,
    located,
    names,
    part_of,
    plug_in,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.methods import ADJUSTMENTS, PRETRAINING
from isogloss.training.precision import check_precision

SHIPPED = "shipped"


def pretrained(source: str) -> Pretrained:
    """Name an encoder that exists already, without the place where this machine keeps it.

    Its files are looked at (ModelError when one is missing or damaged) and their fingerprint taken. Of a
    name on the hub the config is looked at, and the commit taken.
    """
    folder = local_folder(source)
    if folder is None:
        found = on_hub(source)
        if found.revision:
            load_encoder_config(found.pinned)
        return found
    read_config(folder)
    check_tokenizer(folder)
    check_weights(folder, "AutoModel")
    # A run's model lies in a folder "model": the run's id says more.
    name = folder.parent.name if folder.name == "model" else folder.name
    return Pretrained(source=source if source == SHIPPED else name, data=fingerprint(folder))


def on_hub(source: str) -> Pretrained:
    """Name a model on the hub (``name`` or ``name@revision``) by its commit, if that can be looked up."""
    return Pretrained(source=source, revision=hub_commit(source))


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
    folders = {source: local_folder(source) for source in sources}
    return {pretrained(source).data: str(folder) for source, folder in folders.items() if folder is not None}


def most_subwords(encoder: Encoder, where: str) -> int | None:
    """Return the longest text an encoder has positions for; None when it is not known yet."""
    first = encoder.original
    if isinstance(first, Pretrain):
        return first.architecture.positions
    return _positions(where, first.data) if where else None


def place_of(encoder: Encoder, folders: Mapping[str, str]) -> str:
    """Return the folder of the encoder that one was made from; empty where it is not here."""
    first = encoder.original
    return folders.get(first.data, "") if isinstance(first, Pretrained) else ""


def has_masked_lm(encoder: Encoder, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder has a masked-LM head; True for one that is not on this machine yet."""
    where = place_of(encoder, folders)
    return not where or has_masked_lm_head(load_encoder_config(where))


def fetch(encoder: Pretrained) -> None:
    """Make sure that an encoder of the hub is whole on this machine, downloading what is missing."""
    load_tokenizer(encoder.pinned)
    load_model(encoder.pinned)


@lru_cache(maxsize=64)
def _positions(folder: str, _data: str) -> int:
    config = load_encoder_config(folder)
    return FAMILIES[config.model_type].longest_text(config)


def fingerprint(folder: Path) -> str:
    """Return a fingerprint of a model's files: other weights in the same folder are another model."""
    kinds = {".json", ".safetensors", ".model", ".txt", ".spm", ".gguf"}
    found = [path for path in sorted(folder.iterdir()) if path.suffix in kinds]
    digest = sha256()
    for path in found:
        digest.update(path.name.encode())
        digest.update(_digest(path, path.stat().st_size, path.stat().st_mtime_ns))
    return digest.hexdigest()[:16]


@lru_cache(maxsize=64)
def _digest(path: Path, _size: int, _changed: int) -> bytes:
    """Hash a file; size and modification time are arguments so that a changed file is hashed anew."""
    digest = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.digest()


def reads(encoder: Encoder, code: str, folders: Mapping[str, str]) -> bool:
    """Return whether an encoder reads a language."""
    each = (module_languages(encoder, folders), mapped_languages(encoder, folders))
    return all(known is None or code in known for known in each)


def check_read(encoder: Encoder, codes: Iterable[str], folders: Mapping[str, str], where: str) -> None:
    """Raise ConfigError, naming ``where``, for a language that an encoder has no module, or no map, for."""
    modules, maps = module_languages(encoder, folders), mapped_languages(encoder, folders)
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


def mapped_languages(encoder: Encoder, folders: Mapping[str, str]) -> frozenset[str] | None:
    """Return the languages an encoder has maps for, and their source; None where it reads any."""
    if isinstance(encoder, Adjust):
        if not encoder.method.maps:
            return mapped_languages(encoder.encoder, folders)
        return frozenset(code for one in encoder.aligned for code in one.languages.split("-"))
    where = place_of(encoder, folders)
    if not where:
        return None
    maps = read_language_maps(Path(where), load_encoder_config(where).hidden_size)
    return None if maps is None else frozenset((maps.source, *maps.maps))


def module_languages(encoder: Encoder, folders: Mapping[str, str]) -> frozenset[str] | None:
    """Return the languages an encoder has modules for; None where it reads any."""
    first = encoder.original
    if isinstance(first, Pretrain):
        return _with_own_modules(first.modules, first.languages)
    where = place_of(encoder, folders)
    about = read_module_info(Path(where), load_encoder_config(where).hidden_size) if where else None
    return None if about is None else _with_own_modules(about.how, about.languages)


def _with_own_modules(modules: Modules | None, languages: tuple[str, ...]) -> frozenset[str] | None:
    any_language = modules is None or modules.kind == SHARED_ADAPTER or modules.fallback
    return None if any_language else frozenset(languages)


ORIGINAL = "original"
"""What recipes call encoders that were not adjusted."""


def planned_encoders(recipe: Recipe, sources: Sources, where: str) -> dict[Encoder, str]:
    """Build the recipe's encoders, each with the label that methods choose it by."""
    entries = encoder_entries(recipe)
    originals = [_encoders(entry, sources, where) for entry in entries]
    refuse_empty_or_twice([one.label for some in originals for one in some], f"{where}: encoder")
    labelled = zip(originals, _labels(entries, where), strict=True)
    found: dict[Encoder, str] = {encoder: label for some, label in labelled for encoder in some}
    for place, table in enumerate(recipe.adjust):
        here = f"{where}: adjust[{place}]"
        adjusted, labels = _adjusted(table, found, recipe, sources, here), set(found.values())
        for encoder, label in adjusted.items():
            if encoder in found or label in labels:
                raise ConfigError(
                    f"{here}: {label!r} is there already. Change something, or give it a label of its own."
                )
        found |= adjusted
    return found


def _adjusted(
    table: Table, there: Mapping[Encoder, str], recipe: Recipe, sources: Sources, where: str
) -> dict[Encoder, str]:
    """Build the encoders of one [[adjust]] table: one for each encoder it starts from and each size."""
    kind = plug_in(table, ADJUSTMENTS, "way to adjust an encoder", where)
    refuse_unknown(table, names(kind, AdjustTable), f"adjustment {kind.name}", where)
    choice, method = part_of(table, AdjustTable, where), part_of(table, kind, where)
    check_precision(precision_of(method), f"{where}: precision")
    if choice.start not in there.values():
        raise unknown_name(f"{where}: start", "encoder of this recipe", choice.start, set(there.values()))
    sizes = choice.examples if isinstance(choice.examples, tuple) else (choice.examples,)
    refuse_empty_or_twice(sizes, f"{where}: examples")
    refuse_empty_or_twice(choice.pairs, f"{where}: pairs")
    found: dict[Encoder, str] = {}
    for encoder in [one for one, label in there.items() if label == choice.start]:
        if mapped_languages(encoder, sources.encoders) is not None:
            raise ConfigError(
                f"{where}: start: {choice.start!r} maps each language's states, and what changes it would "
                f"leave its maps behind. Start from the encoder without maps, and map last."
            )
        codes = chain.from_iterable(pair.split("-") for pair in choice.pairs)
        check_read(encoder, codes, sources.encoders, f"{where}: pairs: encoder {choice.start!r}")
        for size in sizes:
            request = AlignmentRequest(recipe.align, where)
            aligned = alignments(request, sources, encoder, choice.bitext, choice.pairs)
            label = choice.label or kind.name
            adjust = Adjust(
                encoder=encoder,
                method=method,
                aligned=tuple(replace(one, examples=size) for one in aligned),
                seed=choice.seed,
            )
            found[adjust] = f"{label} {size}" if len(sizes) > 1 else label
    return found


def _labels(entries: Sequence[str | EncoderTable], where: str) -> list[str]:
    """Return the labels of the encoders; those that are given must differ."""
    labels = [ORIGINAL if isinstance(entry, str) else entry.label or ORIGINAL for entry in entries]
    for place, entry in enumerate(entries):
        if not isinstance(entry, str) and entry.label and labels.count(entry.label) > 1:
            raise ConfigError(
                f"{where}: encoder[{place}]: {entry.label!r} is the label of another encoder too. Give each "
                f"its own."
            )
    return labels


def encoder_entries(recipe: Recipe) -> tuple[str | EncoderTable, ...]:
    """List the entries of a recipe's encoders."""
    return recipe.encoder if isinstance(recipe.encoder, tuple) else (recipe.encoder,)


def _encoders(entry: str | EncoderTable, sources: Sources, where: str) -> list[Encoder]:
    """Build the encoders of one entry: one for each seed."""
    if isinstance(entry, str):
        return [_pretrained(EncoderTable(pretrained=entry), where)]
    if bool(entry.pretrain) == bool(entry.pretrained):
        raise ConfigError(
            f"{where}: encoder: give either pretrain (make one) or pretrained (a folder or name)."
        )
    if entry.pretrain is None:
        return [_pretrained(entry, where)]
    if entry.attention:
        raise ConfigError(
            f"{where}: encoder: attention: what is pretrained attends to both sides. Leave attention out."
        )
    seeds = entry.pretrain.seed if isinstance(entry.pretrain.seed, tuple) else (entry.pretrain.seed,)
    refuse_empty_or_twice(seeds, f"{where}: encoder.pretrain.seed")
    made = _pretrain(entry.pretrain, sources, f"{where}: encoder.pretrain")
    return [replace(made, seed=seed) for seed in seeds]


def _pretrained(entry: EncoderTable, where: str) -> Pretrained:
    with located(f"{where}: encoder"):
        found = pretrained(entry.pretrained)
        if entry.attention:
            check_attention(local_folder(entry.pretrained) or found.pinned, entry.attention)
        return replace(found, attention=entry.attention)


def _pretrain(table: PretrainTable, sources: Sources, where: str) -> Pretrain:
    default = "masked-language-modelling"
    kind = plug_in(table.method, PRETRAINING, "pretraining method", f"{where}.method", default)
    values = {key: value for key, value in table.method.items() if key != "name"}
    method = checked(kind, values, f"{where}.method")
    check_precision(precision_of(method), f"{where}.method.precision")
    _check_architecture(table.architecture, method.block, where)
    with located(where):
        FAMILIES[table.architecture.family].shape(table.architecture, padding=0)
        method.check(table.architecture, table.modules, table.languages)
    refuse_empty_or_twice(table.text, f"{where}.text")
    refuse_empty_or_twice(table.languages, f"{where}.languages")
    for code in table.languages:
        check_language(code, f"{where}.languages")
    if table.modules is not None:
        with located(where):
            check_modules(table.modules, table.languages, dim=table.architecture.dim)
    if bool(table.bitext) != bool(method.translation):
        raise ConfigError(
            f"{where}: bitext ({table.bitext!r}) and method.translation ({method.translation}) belong "
            f"together. Give both or neither."
        )
    for code in table.lines:
        if code not in table.languages:
            raise unknown_name(f"{where}.lines", "language of this encoder", code, table.languages)
    return Pretrain(
        text=table.text,
        languages=table.languages,
        architecture=table.architecture,
        method=method,
        bitext=table.bitext,
        lines=tuple(sorted(table.lines.items())) or None,
        modules=table.modules,
        data=combined_fingerprint(
            _files_read(table, sources, where, held_out=method.evaluate_every is not None)
        ),
    )


def _files_read(table: PretrainTable, sources: Sources, where: str, *, held_out: bool) -> list[str]:
    """Return the fingerprints of all text and bitext that a pretraining reads, held-out text too if asked."""
    first, *others = table.languages
    wanted = [("text", corpus, "text", code) for corpus in table.text for code in table.languages]
    if table.bitext:
        wanted += [("bitext", table.bitext, "bitext", f"{first}-{other}") for other in others]
    files = [_fingerprint(sources, corpus, kind, code, f"{where}.{f}") for f, corpus, kind, code in wanted]
    if held_out:
        texts = [(corpus, code) for _, corpus, kind, code in wanted if kind == "text"]
        with_dev = [(corpus, code) for corpus, code in texts if has_dev(sources, corpus, code)]
        files += [sources.fingerprint(corpus, code, "dev") for corpus, code in with_dev]
    return files


def _fingerprint(sources: Sources, corpus: str, kind: str, language: str, where: str) -> str:
    """Return the fingerprint of a training split; the corpus must hold text, or bitext."""
    with located(where):
        sources.needs(corpus, kind)
        return sources.fingerprint(corpus, language, "train")


def _check_architecture(shape: Architecture, block: int, where: str) -> None:
    check_new(shape.family, f"{where}.architecture.family")
    if shape.dim % shape.heads:
        raise ConfigError(
            f"{where}.architecture: {shape.heads} heads do not divide dim {shape.dim}. "
            f"Choose dim as a multiple of heads."
        )
    if block > shape.positions:
        raise ConfigError(
            f"{where}.method.block: rows of {block} subwords do not fit into {shape.positions} positions. "
            f"Lower block or raise architecture.positions."
        )


def has_dev(sources: Sources, corpus: str, language: str) -> bool:
    """Return whether a corpus has a development split of a language."""
    try:
        sources.fingerprint(corpus, language, "dev")
    except DataError:
        return False
    return True


def seeds_for(grid: GridTable, encoder: Encoder, built: Mapping[Encoder, str], where: str) -> tuple[int, ...]:
    """Return the seeds an encoder is fine-tuned with: all, or its own where there is one encoder for each."""
    there = _pretraining_seeds(encoder, built)
    if len(there) < 2:
        return grid.seeds
    for seed in grid.seeds:
        if seed not in there:
            raise ConfigError(
                f"{where}: grid.seeds: {seed}: a model starts from the encoder of its own seed, and "
                f"{built[encoder]!r} is pretrained with {', '.join(map(str, sorted(there)))}. Name these."
            )
    first = encoder.original
    return tuple(seed for seed in grid.seeds if isinstance(first, Pretrain) and seed == first.seed)


def _pretraining_seeds(encoder: Encoder, built: Mapping[Encoder, str]) -> frozenset[int]:
    """Return the seeds of the encoders that differ from this one in the seed of their pretraining alone."""
    first = encoder.original
    if not isinstance(first, Pretrain):
        return frozenset()
    others = [other for other in (one.original for one in built) if isinstance(other, Pretrain)]
    return frozenset(other.seed for other in others if replace(other, seed=first.seed) == first)
