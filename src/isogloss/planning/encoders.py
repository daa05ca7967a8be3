"""Plan the encoders of a recipe: existing ones, pretrained ones and adjusted ones."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from typing import Protocol, cast

from isogloss.core.errors import ConfigError, add_location, did_you_mean, unknown_name
from isogloss.core.identity import identity
from isogloss.data.sources import Sources
from isogloss.encoders.prepared import check_attention
from isogloss.planning.recipe_tables import find_planner
from isogloss.recipes.checking import refuse_empty_or_twice
from isogloss.recipes.recipe import EncoderTable, PretrainTable, Recipe, Table, many
from isogloss.runs.pretrained import Pretrained, identify_encoder, model_folder, on_hub
from isogloss.runs.run import Encoder, Run

ORIGINAL = "original"
"""Label of encoders that were not adjusted."""


class PlanAdjustment(Protocol):
    """The planner of [[adjust]]."""

    def __call__(
        self, table: Table, existing: Mapping[Encoder, str], recipe: Recipe, sources: Sources
    ) -> dict[Encoder, str]:
        """Build the encoders of one table: one for each encoder it starts from, each size and each seed.

        ``existing`` are the encoders it may start from, with their labels.
        """


class PlanPretraining(Protocol):
    """The planner of [encoder.pretrain]."""

    def __call__(
        self, table: PretrainTable, starts: Mapping[int, Encoder | None], align: Table, sources: Sources
    ) -> Sequence[Encoder]:
        """Build an encoder for each seed. It is new, or trained further from the start of the seed.

        ``align`` is the recipe's [align] table. Raises ConfigError for what cannot be trained.
        """


@dataclass(frozen=True, kw_only=True)
class _EncoderTable:
    """A part of a recipe that makes encoders: an entry of [encoder], or an [[adjust]] table."""

    table: str
    """Its table in the recipe, for messages."""
    labels: frozenset[str]
    """Labels of the encoders it makes."""
    start: str
    """Label, folder or name of the encoder it starts from, or empty if it needs none."""
    make: Callable[[Mapping[Encoder, str]], dict[Encoder, str]]
    """Builds the new encoders from the existing ones. Both are mappings from encoders to labels."""


def planned_encoders(recipe: Recipe, sources: Sources) -> dict[Encoder, str]:
    """Build the recipe's encoders, each with the label that methods choose it by.

    An encoder may start from any other of the recipe, in any order.
    """
    entries = _entries(recipe, sources)
    adjustments = _adjustments(recipe, sources)
    labels = {label for part in entries for label in part.labels}
    for part in adjustments:
        _refuse_twice(part, part.labels & labels)
        labels |= part.labels
    for part in entries:
        _check_start_named(part, labels)
    built_parts = _build_in_order([*entries, *adjustments])
    entry_labels = built_parts[: len(entries)]
    adjustment_labels = built_parts[len(entries) :]
    encoders = {
        encoder: label for encoder_labels in entry_labels for encoder, label in encoder_labels.items()
    }
    refuse_empty_or_twice(
        [encoder.label for encoder_labels in entry_labels for encoder in encoder_labels], "encoder"
    )
    for part, encoder_labels in zip(adjustments, adjustment_labels, strict=True):
        _refuse_twice(part, [label for encoder, label in encoder_labels.items() if encoder in encoders])
        encoders |= encoder_labels
    return encoders


def _refuse_twice(part: _EncoderTable, labels: Collection[str]) -> None:
    for label in labels:
        with add_location(part.table):
            raise ConfigError(f"{label!r} is there already. Change something, or give it a label of its own.")


def _check_start_named(part: _EncoderTable, labels: set[str]) -> None:
    """Raise ConfigError for a start that is nearly a label and neither on this machine nor on the hub."""
    if part.start in labels or not did_you_mean(part.start, labels):
        return
    with add_location(part.table), add_location(".start"):
        if not (model_folder(part.start) or on_hub(part.start).revision):
            raise unknown_name("", "encoder of this recipe, folder or hub name", part.start, labels)


def _build_in_order(parts: Sequence[_EncoderTable]) -> list[dict[Encoder, str]]:
    """Build the encoders of each part and return them in the order of the parts.

    Each part is built after the part it starts from.
    """
    starts = [
        {part_index for part_index, maker in enumerate(parts) if part.start in maker.labels} for part in parts
    ]
    built: dict[int, dict[Encoder, str]] = {}
    try:
        for index in dependencies_first(dict(enumerate(starts))):
            existing = {encoder: label for labels in built.values() for encoder, label in labels.items()}
            built[index] = parts[index].make(existing)
    except CycleError as error:
        part = parts[min(error.args[1])]
        with add_location(part.table):
            raise ConfigError(
                f"start: {part.start!r} is made from this encoder itself. Let one of them start from an "
                f"encoder that exists."
            ) from None
    return [built[index] for index in range(len(parts))]


def dependencies_first(dependencies: Mapping[int, Collection[int]]) -> Iterator[int]:
    """Yield every index after those it depends on, always the lowest that is ready.

    Raises CycleError if indices depend on each other.
    """
    sorter = TopologicalSorter(dependencies)
    sorter.prepare()
    ready_indices = sorted(sorter.get_ready())
    while ready_indices:
        yield (index := ready_indices.pop(0))
        sorter.done(index)
        ready_indices = sorted((*ready_indices, *sorter.get_ready()))


def _entries(recipe: Recipe, sources: Sources) -> list[_EncoderTable]:
    entries: tuple[str | EncoderTable, ...] = many(recipe.encoder)

    def part(index: int, entry: str | EncoderTable, label: str) -> _EncoderTable:
        name = f"encoder[{index}]" if len(entries) > 1 else "encoder"
        start = entry.pretrain.start if isinstance(entry, EncoderTable) and entry.pretrain else ""

        def make(existing: Mapping[Encoder, str]) -> dict[Encoder, str]:
            with add_location(name):
                return dict.fromkeys(_encoders(entry, existing, recipe.align, sources), label)

        return _EncoderTable(table=f"{name}.pretrain", labels=frozenset({label}), start=start, make=make)

    labels = _labels(entries)
    return [
        part(index, entry, label) for index, (entry, label) in enumerate(zip(entries, labels, strict=True))
    ]


def _adjustments(recipe: Recipe, sources: Sources) -> list[_EncoderTable]:
    def part(index: int, table: Table) -> _EncoderTable:
        name = f"adjust[{index}]"

        def make(existing: Mapping[Encoder, str]) -> dict[Encoder, str]:
            with add_location(name):
                plan = cast(PlanAdjustment, find_planner("adjust"))
                return plan(table, existing, recipe, sources)

        start = str(table.get("start", ORIGINAL))
        return _EncoderTable(table=name, labels=_adjust_labels(table), start=start, make=make)

    return [part(index, table) for index, table in enumerate(recipe.adjust)]


def _adjust_labels(table: Table) -> frozenset[str]:
    sizes = table.get("examples")
    label = str(table.get("label") or table.get("name"))
    several = sizes if isinstance(sizes, list) and len(sizes) > 1 else []
    return frozenset(f"{label} {size}" for size in several) or frozenset({label})


def _labels(entries: Sequence[str | EncoderTable]) -> list[str]:
    """Return the labels of the encoders.

    Raises ConfigError if two encoders have the same label in the recipe.
    """
    labels = _entry_labels(entries)
    for index, entry in enumerate(entries):
        if not isinstance(entry, str) and entry.label and labels.count(entry.label) > 1:
            raise ConfigError(
                f"encoder[{index}]: {entry.label!r} is the label of another encoder too. Give each its own."
            )
    return labels


def _entry_labels(entries: Sequence[str | EncoderTable]) -> list[str]:
    return [ORIGINAL if isinstance(entry, str) else entry.label or ORIGINAL for entry in entries]


def encoder_sources(recipe: Recipe) -> list[str]:
    """List the existing encoders that a recipe names."""
    adjusted_labels = chain.from_iterable(_adjust_labels(table) for table in recipe.adjust)
    entries: tuple[str | EncoderTable, ...] = many(recipe.encoder)
    labels = {*adjusted_labels, *_entry_labels(entries)}
    sources = list[str]()
    for entry in entries:
        if isinstance(entry, str):
            sources.append(entry)
        else:
            start = entry.pretrain.start if entry.pretrain else ""
            sources += [entry.pretrained, *([] if start in labels else [start])]
    return [source for source in sources if source]


def _encoders(
    entry: str | EncoderTable, existing: Mapping[Encoder, str], align: Table, sources: Sources
) -> list[Encoder]:
    """Build the encoders of one entry: one for each seed."""
    if isinstance(entry, str):
        return [_existing_encoder(EncoderTable(pretrained=entry))]
    if bool(entry.pretrain) == bool(entry.pretrained):
        raise ConfigError("give either pretrain (make one) or pretrained (a folder or name).")
    if entry.pretrain is None:
        return [_existing_encoder(entry)]
    if entry.attention:
        raise ConfigError(
            "attention: it belongs to pretrained. Remove it: what is trained further "
            "attends as its start does."
        )
    table = entry.pretrain
    seeds = many(entry.pretrain.seed)
    with add_location(".pretrain"):
        refuse_empty_or_twice(seeds, ".seed")
        with add_location(".start"):
            starts = {seed: _start(table, seed, existing) for seed in seeds}
        plan = cast(PlanPretraining, find_planner("pretrain"))
        return list(plan(table, starts, align, sources))


def _existing_encoder(entry: EncoderTable) -> Pretrained:
    encoder = identify_encoder(entry.pretrained)
    path = model_folder(entry.pretrained) or (encoder.pinned if encoder.revision else None)
    if entry.attention and path:
        check_attention(path, entry.attention)
    return replace(encoder, attention=entry.attention)


def _start(table: PretrainTable, seed: int, existing: Mapping[Encoder, str]) -> Encoder | None:
    """Return the encoder that is trained further.

    Among several encoders with its label, choose the one with this seed.
    """
    if not table.start:
        return None
    starts = [encoder for encoder, label in existing.items() if label == table.start]
    if len(starts) > 1:
        seeds = {encoder: _seed_among(encoder, existing)[0] for encoder in starts}
        seed_starts = {start_seed: encoder for encoder, start_seed in seeds.items() if start_seed is not None}
        if seed not in seed_starts or len(seed_starts) < len(starts):
            raise ConfigError(
                f"{table.start!r} are {len(starts)} encoders, and each continues with its own seed, but seed "
                f"is {seed}. Give seed as a list of their seeds "
                f"({', '.join(str(key) for key in sorted(seed_starts)) or 'they have none'}), or a label to "
                f"each encoder."
            )
        return seed_starts[seed]
    return starts[0] if starts else identify_encoder(table.start)


def seeds_for(seeds: tuple[int, ...], encoder: Encoder, built: Mapping[Encoder, str]) -> tuple[int, ...]:
    """Return the seeds for training on an encoder: all, or its seed if each seed has a separate encoder."""
    encoder_seed, all_seeds = _seed_among(encoder, built)
    if len(all_seeds) < 2:
        return seeds
    for seed in seeds:
        if seed not in all_seeds:
            seed_names = ", ".join(str(existing_seed) for existing_seed in sorted(all_seeds))
            raise ConfigError(
                f"{seed}: a training starts from the encoder of its own seed, and "
                f"{built[encoder]!r} is made with {seed_names}. Name these."
            )
    return tuple(seed for seed in seeds if seed == encoder_seed)


def _seed_among(encoder: Encoder, built: Mapping[Encoder, str]) -> tuple[int | None, frozenset[int]]:
    """Return the seed of an encoder, and the seeds of the encoders that differ only in the seed."""
    pretraining_seed = encoder.pretraining_seed
    seedless_original = encoder.original.seedless()
    if pretraining_seed is not None:
        originals = (encoder_built.original for encoder_built in built)
        seeds = {
            encoder_built.pretraining_seed
            for encoder_built in originals
            if encoder_built.seedless() == seedless_original
        }
        if len(seeds) > 1:
            return pretraining_seed, frozenset(seed for seed in seeds if seed is not None)
    label = built[encoder]
    seedless = encoder.seedless()
    seed_lists = [
        encoder_built.seeds
        for encoder_built, other_label in built.items()
        if other_label == label and encoder_built.seedless() == seedless
    ]
    for adjustment_seed, *other_seeds in zip(encoder.seeds, *seed_lists, strict=True):
        if len(set(other_seeds)) > 1:
            return adjustment_seed, frozenset(other_seeds)
    return pretraining_seed, frozenset()


def list_unreplicated(runs: Iterable[Run]) -> list[str]:
    """Warn that the effect of chance is unknown, if compared encoders have one pretraining seed each."""
    encoders = [run for run in runs if isinstance(run, Encoder) and not run.exists and run.base is None]
    kinds = {identity(encoder.seedless()) for encoder in encoders}
    if len(encoders) < 2 or len(kinds) < len(encoders):
        return []
    return [
        f"{len(encoders)} encoders are pretrained with one seed each: that decides nothing about the ways to "
        "pretrain, since every claim that compares encoders stays undecided. Three seeds or more decide: "
        "--set pretrain.seed=[0,1,2]."
    ]
