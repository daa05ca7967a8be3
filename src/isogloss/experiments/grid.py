"""From a recipe to the runs it asks for: every product, every name and every file checked beforehand."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.runs import Align, Encoder, FineTune, Optimization, Translate
from isogloss.data.corpora import Split, is_translation
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.encoders import load_encoder_config
from isogloss.experiments.alignments import Asked, alignments
from isogloss.experiments.encoders import check_read, encoder_label, most_subwords, place_of
from isogloss.experiments.grid_lists import check_lists, check_tasks, many, seeds_for, tasks_of, treebanks_of
from isogloss.experiments.recipe import (
    GridTable,
    MethodTable,
    Recipe,
    Table,
    checked,
    located,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.experiments.translations import TranslatedBy, Wanted, check_labels
from isogloss.methods import METHODS, Method, Mixing, UsesTeacher
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.training.precision import check_precision
from isogloss.training.setting import Reads

SPECIAL = 2
"""Subwords of every row that no window may overlap: the one that opens it and the one that closes it."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Models that differ in their method alone: one encoder, corpus, source, target, seed."""

    encoder: Encoder
    corpus: str
    task: str
    source: tuple[str, ...]
    target: str
    """As the grid names it: one language, or several joined by +."""
    seed: int
    treebanks: Treebanks
    examples: int
    dev_examples: int
    where: str = ""
    """The place in the recipe that asks for it, for messages."""
    models: Mapping[str, FineTune] = field(default_factory=dict)
    """By the label of their method."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages that are no source."""
        return tuple(code for code in self.target.split("+") if code not in self.source)

    def fingerprint(self, sources: Sources, code: str, split: Split) -> str:
        """Return a fingerprint of the files of a split; errors say that the grid asked for it."""
        with located(f"{self.where}: grid"):
            return sources.fingerprint(self.corpus, code, split, treebanks=self.treebanks)


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method of the grid with what it changes of the optimization."""

    choice: MethodTable
    label: str
    method: Method
    changes: Table
    where: str
    by: TranslatedBy | None = None
    """Who translates what it reads in translation; None where that is read from files."""


def cells(
    recipe: Recipe,
    built: Mapping[Encoder, str],
    sources: Sources,
    where: str,
    *,
    by: Sequence[TranslatedBy] = (),
) -> list[Cell]:
    """Expand the grid: the product of encoders, corpora, sources, targets, optimizations and seeds.

    Methods that read translations are there once for each translator of the recipe.
    """
    grid = recipe.grid
    if grid is None:
        return []
    check_lists(grid, f"{where}: grid")
    entries = [
        one
        for place, table in enumerate(grid.method)
        for one in _translated(_entry(table, grid, f"{where}: grid.method[{place}]"), by)
    ]
    refuse_empty_or_twice([entry.label for entry in entries], f"{where}: grid.method")
    found = []
    for cell, changes in _points(grid, built, sources, where):
        models: dict[str, FineTune] = {}
        for entry in _starts_first(entries):
            if _takes(entry, cell, grid, built):
                named = f"{entry.where}: encoder {built[cell.encoder]!r}"
                check_read(cell.encoder, (*cell.source, *cell.targets), sources.encoders, named)
                start = _start(cell, entry, models)
                asked = {**changes, **entry.changes}
                model = _model(cell, entry, recipe, asked, sources)
                teacher = _teacher(cell, entry, recipe, changes, sources)
                models[entry.label] = replace(model, start=start, teacher=teacher)
        # In the order of the recipe, whichever goes on from whichever.
        found.append(replace(cell, models={e.label: models[e.label] for e in entries if e.label in models}))
    return found


def _takes(entry: MethodEntry, cell: Cell, grid: GridTable, built: Mapping[Encoder, str]) -> bool:
    """Tell whether a method is trained in a cell: from its source, for its target, on its encoder."""
    choice = entry.choice
    for label in choice.encoders:
        if label not in built.values():
            raise unknown_name(f"{entry.where}: encoders", "encoder of this recipe", label, {*built.values()})
    of_encoder = not choice.encoders or built[cell.encoder] in choice.encoders
    of_source = not choice.sources or "+".join(cell.source) in choice.sources
    return of_encoder and of_source and cell.target in (choice.targets or grid.targets)


def _starts_first(entries: list[MethodEntry]) -> list[MethodEntry]:
    """Order methods so that each comes after the one it goes on from."""
    labels, ordered = [entry.label for entry in entries], list[MethodEntry]()
    waiting = list(entries)
    while waiting:
        done = {entry.label for entry in ordered}
        ready = [entry for entry in waiting if not entry.choice.start or entry.choice.start in done]
        if not ready:
            entry = next((e for e in waiting if e.choice.start not in labels), waiting[0])
            where = f"{entry.where}: start"
            if entry.choice.start in labels:
                raise ConfigError(
                    f"{where}: {entry.label!r} goes on from {entry.choice.start!r}, and that from it again. "
                    f"Let one of them start from the encoder."
                )
            others = [label for label in labels if label != entry.label]
            raise unknown_name(where, "method of this grid", entry.choice.start, others)
        ordered += ready
        waiting = [entry for entry in waiting if entry not in ready]
    return ordered


def _start(cell: Cell, entry: MethodEntry, models: Mapping[str, FineTune]) -> FineTune | None:
    if not entry.choice.start:
        if entry.method.needs_start:
            raise ConfigError(
                f"{entry.where}: {entry.method.name} goes on from the model of another method. Name one of "
                f'this grid, as in start = "source-only".'
            )
        return None
    if entry.choice.start not in models:
        raise ConfigError(
            f"{entry.where}: start: {entry.choice.start!r} is not trained for target {cell.target!r}. "
            f"Add it to that method's targets, or take it out of these."
        )
    return models[entry.choice.start]


def _points(
    grid: GridTable, built: Mapping[Encoder, str], sources: Sources, where: str
) -> Iterator[tuple[Cell, Table]]:
    """Give every point of the grid but its methods, with what it changes of the optimization."""
    variants = list(_variants(grid.optimization, f"{where}: grid.optimization"))
    asked = [
        (corpus, task) for corpus in many(grid.corpus) for task in tasks_of(grid, corpus, sources, where)
    ]
    check_tasks(grid, {task for _, task in asked}, where)
    for encoder, (corpus, task), source in product(built, asked, many(grid.source)):
        languages = tuple(source.split("+"))
        seeds = seeds_for(grid, encoder, built, where)
        for target, changes, seed in product(grid.targets, variants, seeds):
            cell = Cell(
                encoder=encoder,
                corpus=corpus,
                task=task,
                source=languages,
                target=target,
                seed=seed,
                treebanks=treebanks_of(grid, corpus, sources),
                examples=grid.examples,
                dev_examples=grid.dev_examples,
                where=where,
            )
            if cell.targets:
                yield cell, changes


def _entry(table: Table, grid: GridTable, where: str) -> MethodEntry:
    name = table.get("name")
    if name not in METHODS:
        raise unknown_name(where, "method", str(name), METHODS)
    kind: type[Method] = METHODS[name]
    own, shared, about = (
        {one.name for one in fields(part)}  # type: ignore[arg-type]
        for part in (kind, Optimization, MethodTable)
    )
    refuse_unknown(table, own | shared | about, f"method {name}", where)
    choice: MethodTable = checked(MethodTable, {key: table[key] for key in about & set(table)}, where)
    for target in choice.targets:
        if target not in grid.targets:
            raise unknown_name(f"{where}: targets", "target of this grid", target, grid.targets)
    for source in choice.sources:
        if source not in many(grid.source):
            raise unknown_name(f"{where}: sources", "source of this grid", source, many(grid.source))
    return MethodEntry(
        choice=choice,
        label=choice.label or name,
        method=checked(kind, {key: table[key] for key in own & set(table)}, where),
        changes={key: table[key] for key in shared & set(table)},
        where=where,
    )


def _translated(entry: MethodEntry, by: Sequence[TranslatedBy]) -> list[MethodEntry]:
    """Give a method once for each translator, if it reads translations."""
    reads = entry.method.reads(("en",), ("sw",))
    if not by or not any(map(is_translation, (*reads.train, *reads.dev))):
        return [entry]
    return [
        replace(entry, by=one, label=f"{entry.label} ({one.label})" if one.label else entry.label)
        for one in by
    ]


def _variants(table: Table, where: str) -> Iterator[Table]:
    """Give every combination of the values of list-valued fields."""
    refuse_unknown(table, [one.name for one in fields(Optimization)], "the optimization", where)
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, values in lists.items():
        refuse_empty_or_twice(values, f"{where}.{key}")
    for combination in product(*lists.values()):
        changes = dict(zip(lists, combination, strict=True))
        check_precision(checked(Optimization, changes, where).precision, f"{where}.precision")
        yield changes


def _model(cell: Cell, entry: MethodEntry, recipe: Recipe, changes: Table, sources: Sources) -> FineTune:
    sides = entry.method.uses
    source = cell.source if "source" in sides else ()
    target = cell.targets if "target" in sides else ()
    languages = (*source, *target)
    reads = entry.method.reads(source, target)
    wanted: list[tuple[Split, str]] = [("train", code) for code in reads.train]
    wanted += [("dev", code) for code in reads.dev]
    made = _made(cell, entry, wanted, sources)
    from_files = [one for one in wanted if one not in {(run.split, run.languages) for run in made}]
    return FineTune(
        encoder=cell.encoder,
        corpus=cell.corpus,
        task=cell.task,
        method=entry.method,
        source=source,
        target=target,
        optimization=_optimization(changes, cell, entry, sources),
        aligned=_aligned(reads, cell, recipe, entry.where, sources),
        translated=made or None,
        treebanks=tuple(pair for pair in cell.treebanks if pair[0] in languages),
        examples=cell.examples,
        dev_examples=cell.dev_examples,
        seed=cell.seed,
        data=combined_fingerprint([cell.fingerprint(sources, code, split) for split, code in from_files]),
    )


def _made(
    cell: Cell, entry: MethodEntry, wanted: Sequence[tuple[Split, str]], sources: Sources
) -> tuple[Translate, ...]:
    """Return the translations a model reads that are made; none where they are read from files."""
    if entry.by is None:
        return ()
    check_labels(cell.task, entry.method, entry.where)
    return tuple(
        entry.by.run(
            Wanted(
                corpus=cell.corpus,
                languages=code,
                split=split,
                examples=cell.examples if split == "train" else cell.dev_examples,
                treebanks=cell.treebanks,
                encoder=cell.encoder,
                where=entry.where,
            ),
            sources,
        )
        for split, code in wanted
        if is_translation(code)
    )


def _teacher(
    cell: Cell, entry: MethodEntry, recipe: Recipe, changes: Table, sources: Sources
) -> FineTune | None:
    """Return the source-only model that labels translations, where a method needs one.

    It is that of the grid's optimization, whatever the method changes: so all methods have one teacher.
    """
    if isinstance(entry.method, Mixing):
        _check_mixing(entry.method, cell, entry.where, sources)
    if not isinstance(entry.method, UsesTeacher) or not entry.method.needs_teacher(cell.task):
        return None
    return _model(cell, replace(entry, method=SourceOnly(), by=None), recipe, changes, sources)


def _check_mixing(method: Mixing, cell: Cell, where: str, sources: Sources) -> None:
    """Refuse what cannot be mixed, as far as the encoder is known before it is made."""
    if place := place_of(cell.encoder, sources.encoders):
        with located(where):
            method.check(cell.task, load_encoder_config(place))


def _aligned(
    reads: Reads, cell: Cell, recipe: Recipe, where: str, sources: Sources
) -> tuple[Align, ...] | None:
    """Return the word alignments a method trains on; None for one that reads no bitext."""
    if not reads.bitext:
        return None
    return alignments(Asked(recipe.align, where), sources, cell.encoder, reads.bitext, reads.pairs)


def _optimization(changes: Table, cell: Cell, entry: MethodEntry, sources: Sources) -> Optimization:
    """Check a model's optimization, also against what its encoder has positions for."""
    most = most_subwords(cell.encoder, place_of(cell.encoder, sources.encoders))
    found = _lengths(changes, cell, most, entry.where)
    check_precision(found.precision, f"{entry.where}: precision")
    if found.overlap >= found.limit - SPECIAL:
        raise ConfigError(
            f"{entry.where}: overlap: windows of {found.limit} subwords cannot overlap by {found.overlap}. "
            f"Choose overlap at most {max(0, found.limit - SPECIAL - 1)}, or raise limit."
        )
    if most is not None and found.limit > most:
        raise ConfigError(
            f"{entry.where}: limit: rows of {found.limit} subwords do not fit into the {most} positions of "
            f"encoder {encoder_label(cell.encoder)!r}. Lower limit (in grid.optimization) to {most} or less."
        )
    return found


def _lengths(changes: Table, cell: Cell, most: int | None, where: str) -> Optimization:
    """Check an optimization; lengths it does not say are the task's, as far as they fit."""
    task = TASKS[cell.task]
    limit = task.limit if most is None else min(task.limit, most)
    found: Optimization = checked(Optimization, {"limit": limit, **changes}, where)
    overlap = min(task.overlap, task.overlap * found.limit // task.limit)
    return found if "overlap" in changes else replace(found, overlap=overlap)
