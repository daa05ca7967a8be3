"""The encoders a recipe works on: those that exist already, those it pretrains, and those it adjusts."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from isogloss.core.errors import ConfigError, check_named, did_you_mean, located, unknown_name
from isogloss.core.run_parts import precision_of
from isogloss.data.sources import Sources
from isogloss.encoders.decoders import check_attention
from isogloss.methods import ADJUSTMENTS, Adjustment
from isogloss.planning.pretrain_plan import planned_pretraining
from isogloss.recipes.checking import names, part_of, plug_in, refuse_empty_or_twice, refuse_unknown
from isogloss.recipes.recipe import AdjustTable, EncoderTable, PretrainTable, Recipe, Table, many
from isogloss.runs.alignments import AlignmentRequest, alignments, links_subwords
from isogloss.runs.encoder_runs import Adjust, Encoder, Pretrain, Pretrained
from isogloss.runs.encoders import (
    check_layers_read,
    check_read,
    mapped_languages,
    model_folder,
    on_hub,
    pretrained,
)
from isogloss.training.precision import PRECISIONS

ORIGINAL = "original"
"""What recipes call encoders that were not adjusted."""


@dataclass(frozen=True, kw_only=True)
class _Part:
    """A part of a recipe that makes encoders: an entry of [encoder], or an [[adjust]] table."""

    where: str
    labels: frozenset[str]
    """Labels of what it makes."""
    start: str
    """Label, folder or name of what it starts from; empty where it needs nothing."""
    make: Callable[[Mapping[Encoder, str]], dict[Encoder, str]]
    """From encoders that there are, with their labels, to those it makes."""


def planned_encoders(recipe: Recipe, sources: Sources, where: str) -> dict[Encoder, str]:
    """Build the recipe's encoders, each with the label that methods choose it by.

    An encoder may start from any other of the recipe, wherever that stands.
    """
    entries, adjustments = _entries(recipe, sources, where), _adjustments(recipe, sources, where)
    labels = {label for part in entries for label in part.labels}
    for part in adjustments:
        _refuse_twice(part, part.labels & labels)
        labels |= part.labels
    for part in entries:
        _check_start_named(part, labels)
    made = _each_after_its_start([*entries, *adjustments])
    found = {encoder: label for some in made[: len(entries)] for encoder, label in some.items()}
    refuse_empty_or_twice([one.label for some in made[: len(entries)] for one in some], f"{where}: encoder")
    for part, some in zip(adjustments, made[len(entries) :], strict=True):
        _refuse_twice(part, [label for encoder, label in some.items() if encoder in found])
        found |= some
    return found


def _refuse_twice(part: _Part, labels: Collection[str]) -> None:
    """Raise ConfigError for labels, or encoders by label, that are there already."""
    for label in labels:
        raise ConfigError(
            f"{part.where}: {label!r} is there already. Change something, or give it a label of its own."
        )


def _check_start_named(part: _Part, labels: set[str]) -> None:
    """Raise ConfigError for a start that is nearly a label and that neither this machine nor the hub has."""
    if part.start in labels or not did_you_mean(part.start, labels):
        return
    where = f"{part.where}.start"
    with located(where):
        known = model_folder(part.start) or on_hub(part.start).revision
    if not known:
        raise unknown_name(where, "encoder of this recipe, folder or hub name", part.start, labels)


def _each_after_its_start(parts: Sequence[_Part]) -> list[dict[Encoder, str]]:
    """Return what each part makes, in their order."""
    made: dict[int, dict[Encoder, str]] = {}
    while waiting := [number for number in range(len(parts)) if number not in made]:
        to_come = frozenset[str]().union(*(parts[number].labels for number in waiting))
        ready = [number for number in waiting if parts[number].start not in to_come]
        if not ready:
            part = parts[waiting[0]]
            raise ConfigError(
                f"{part.where}: start: {part.start!r} is made from this encoder itself. Let one of them "
                f"start from an encoder that exists."
            )
        there = {encoder: label for some in made.values() for encoder, label in some.items()}
        made[ready[0]] = parts[ready[0]].make(there)
    return [made[number] for number in range(len(parts))]


def _entries(recipe: Recipe, sources: Sources, where: str) -> list[_Part]:
    entries: tuple[str | EncoderTable, ...] = many(recipe.encoder)

    def part(entry: str | EncoderTable, label: str) -> _Part:
        start = entry.pretrain.start if isinstance(entry, EncoderTable) and entry.pretrain else ""

        def make(there: Mapping[Encoder, str]) -> dict[Encoder, str]:
            return dict.fromkeys(_encoders(entry, there, recipe.align, sources, where), label)

        return _Part(where=f"{where}: encoder.pretrain", labels=frozenset({label}), start=start, make=make)

    return [part(entry, label) for entry, label in zip(entries, _labels(entries, where), strict=True)]


def _adjustments(recipe: Recipe, sources: Sources, where: str) -> list[_Part]:
    def part(table: Table, where: str) -> _Part:
        def make(there: Mapping[Encoder, str]) -> dict[Encoder, str]:
            return _adjusted(table, there, recipe, sources, where)

        start = str(table.get("start", ORIGINAL))
        return _Part(where=where, labels=_adjust_labels(table), start=start, make=make)

    return [part(table, f"{where}: adjust[{place}]") for place, table in enumerate(recipe.adjust)]


def _adjust_labels(table: Table) -> frozenset[str]:
    """Return the labels of the encoders of an [[adjust]] table, before it is checked."""
    sizes, label = table.get("examples"), str(table.get("label") or table.get("name"))
    several = sizes if isinstance(sizes, list) and len(sizes) > 1 else []
    return frozenset(f"{label} {size}" for size in several) or frozenset({label})


def _adjusted(
    table: Table, there: Mapping[Encoder, str], recipe: Recipe, sources: Sources, where: str
) -> dict[Encoder, str]:
    """Build the encoders of one [[adjust]] table: one for each encoder it starts from and each size."""
    kind = plug_in(table, ADJUSTMENTS, "way to adjust an encoder", where, added=("methods", Adjustment))
    refuse_unknown(table, names(kind, AdjustTable), f"adjustment {kind.name}", where)
    choice, method = part_of(table, AdjustTable, where), part_of(table, kind, where)
    check_named(f"{where}: precision", "precision", PRECISIONS, precision_of(method))
    check_named(f"{where}: start", "encoder of this recipe", there.values(), choice.start)
    sizes = many(choice.examples)
    refuse_empty_or_twice(sizes, f"{where}: examples")
    refuse_empty_or_twice(choice.pairs, f"{where}: pairs")
    if choice.sample and not any(sizes):
        raise ConfigError(
            f"{where}: sample: a sample has a size, and examples is 0: all translations. Give examples, or "
            f"leave sample out."
        )
    found: dict[Encoder, str] = {}
    for encoder, seeds in _starts(choice, there, where).items():
        if mapped_languages(encoder, sources.encoders) is not None:
            raise ConfigError(
                f"{where}: start: {choice.start!r} maps each language's states, and what changes it would "
                f"leave its maps behind. Start from the encoder without maps, and map last."
            )
        codes = chain.from_iterable(pair.split("-") for pair in choice.pairs)
        check_read(encoder, codes, sources.encoders, f"{where}: pairs: encoder {choice.start!r}")
        check_layers_read(method, encoder, sources.encoders, where)
        for size in sizes:
            request = AlignmentRequest(
                recipe.align,
                where,
                links=method.needs_links,
                subwords=links_subwords(method),
                examples=0 if choice.sample else size,
            )
            aligned = alignments(request, sources, encoder, choice.bitext, choice.pairs)
            label = choice.label or kind.name
            adjust = Adjust(
                encoder=encoder,
                method=method,
                aligned=aligned,
                sampled=size or None if choice.sample else None,
            )
            named = f"{label} {size}" if len(sizes) > 1 else label
            found |= {replace(adjust, seed=seed): named for seed in seeds}
    return found


def _starts(choice: AdjustTable, there: Mapping[Encoder, str], where: str) -> dict[Encoder, tuple[int, ...]]:
    """Return the encoders that are adjusted, each with the seeds of its adjustments.

    Several encoders under one label are adjusted with their own seeds, where there is a list of these.
    """
    seeds = many(choice.seed)
    refuse_empty_or_twice(seeds, f"{where}: seed")
    starts = [one for one, label in there.items() if label == choice.start]
    if len(seeds) == 1:
        return dict.fromkeys(starts, seeds)
    return {one: seeds_for(seeds, one, there, f"{where}: seed") for one in starts}


def _labels(entries: Sequence[str | EncoderTable], where: str) -> list[str]:
    """Return the labels of the encoders; those that are given must differ."""
    labels = _entry_labels(entries)
    for place, entry in enumerate(entries):
        if not isinstance(entry, str) and entry.label and labels.count(entry.label) > 1:
            raise ConfigError(
                f"{where}: encoder[{place}]: {entry.label!r} is the label of another encoder too. Give each "
                f"its own."
            )
    return labels


def _entry_labels(entries: Sequence[str | EncoderTable]) -> list[str]:
    return [ORIGINAL if isinstance(entry, str) else entry.label or ORIGINAL for entry in entries]


def encoder_sources(recipe: Recipe) -> list[str]:
    """List the encoders that exist already and that a recipe names."""
    made = chain.from_iterable(map(_adjust_labels, recipe.adjust))
    entries: tuple[str | EncoderTable, ...] = many(recipe.encoder)
    labels, found = {*made, *_entry_labels(entries)}, list[str]()
    for entry in entries:
        if isinstance(entry, str):
            found.append(entry)
        else:
            start = entry.pretrain.start if entry.pretrain else ""
            found += [entry.pretrained, *([] if start in labels else [start])]
    return list(filter(None, found))


def _encoders(
    entry: str | EncoderTable, there: Mapping[Encoder, str], align: Table, sources: Sources, where: str
) -> list[Encoder]:
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
            f"{where}: encoder: attention: it belongs to pretrained. Leave it out: what is trained further "
            f"attends as its start does."
        )
    table, where = entry.pretrain, f"{where}: encoder.pretrain"
    seeds = many(table.seed)
    refuse_empty_or_twice(seeds, f"{where}.seed")
    starts = {seed: _start(table, seed, there, where) for seed in seeds}
    made = {start: planned_pretraining(table, start, align, sources, where) for start in starts.values()}
    return [replace(made[start], seed=seed) for seed, start in starts.items()]


def _pretrained(entry: EncoderTable, where: str) -> Pretrained:
    with located(f"{where}: encoder"):
        found = pretrained(entry.pretrained)
        here = model_folder(entry.pretrained) or (found.pinned if found.revision else None)
        if entry.attention and here:
            check_attention(here, entry.attention)
        return replace(found, attention=entry.attention)


def _start(table: PretrainTable, seed: int, there: Mapping[Encoder, str], where: str) -> Encoder | None:
    """Return the encoder that is trained further: of several under one label, that of the same seed."""
    if not table.start:
        return None
    named = [encoder for encoder, label in there.items() if label == table.start]
    if len(named) > 1:
        seeds = {encoder: _own_seed(encoder, there)[0] for encoder in named}
        own = {one: encoder for encoder, one in seeds.items() if one is not None}
        if seed not in own or len(own) < len(named):
            raise ConfigError(
                f"{where}.start: {table.start!r} are {len(named)} encoders, and each is trained further with "
                f"its own seed; found seed {seed}. Give seed as a list of theirs "
                f"({', '.join(map(str, sorted(own))) or 'they have none'}), or a label to each encoder."
            )
        return own[seed]
    if named:
        return named[0]
    with located(f"{where}.start"):
        return pretrained(table.start)


def seeds_for(
    seeds: tuple[int, ...], encoder: Encoder, built: Mapping[Encoder, str], where: str
) -> tuple[int, ...]:
    """Return those seeds with which an encoder is trained on: all, or its own where each has an encoder."""
    own, there = _own_seed(encoder, built)
    if len(there) < 2:
        return seeds
    for seed in seeds:
        if seed not in there:
            raise ConfigError(
                f"{where}: {seed}: a training starts from the encoder of its own seed, and "
                f"{built[encoder]!r} is made with {', '.join(map(str, sorted(there)))}. Name these."
            )
    return tuple(seed for seed in seeds if seed == own)


def _own_seed(encoder: Encoder, built: Mapping[Encoder, str]) -> tuple[int | None, frozenset[int]]:
    """Return the seed an encoder was made with, and those of the encoders that differ in it alone."""
    first = encoder.original
    if isinstance(first, Pretrain):
        others = [other for other in (one.original for one in built) if isinstance(other, Pretrain)]
        ours = _seedless(first)
        there = frozenset(other.seed for other in others if _seedless(other) == ours)
        if len(there) > 1:
            return first.seed, there
    ours, label = _seedless(encoder), built[encoder]
    same = [
        _adjustment_seeds(one)
        for one, its_label in built.items()
        if its_label == label and _seedless(one) == ours
    ]
    for own, *there_too in zip(_adjustment_seeds(encoder), *same, strict=True):
        if len(set(there_too)) > 1:
            return own, frozenset(there_too)
    return (first.seed if isinstance(first, Pretrain) else None), frozenset()


def _adjustment_seeds(encoder: Encoder) -> tuple[int, ...]:
    """Return the seeds of the adjustments an encoder was made by, the last one's first."""
    return (encoder.seed, *_adjustment_seeds(encoder.encoder)) if isinstance(encoder, Adjust) else ()


def _seedless(encoder: Encoder | None) -> Encoder | None:
    """Return an encoder as it would be with the first seed of all, wherever it was made."""
    if isinstance(encoder, Pretrain):
        return replace(encoder, seed=0, start=_seedless(encoder.start))
    if isinstance(encoder, Adjust):
        return replace(encoder, seed=0, encoder=_seedless(encoder.encoder) or encoder.encoder)
    return encoder
