"""From a recipe to the runs it asks for: every product, every name and every file checked beforehand."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product

from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.runs import Encoder, FineTune, Optimization, Pretrain, Pretrained
from isogloss.data import CORPORA
from isogloss.data.corpora import Split
from isogloss.encoders import FAMILIES
from isogloss.experiments.encoders import fingerprint_of
from isogloss.experiments.recipe import EncoderTable, GridTable, PretrainTable, Recipe, Table, checked
from isogloss.experiments.sources import Sources, Treebanks, joined
from isogloss.methods import METHODS, PRETRAINING, Method
from isogloss.tasks import TASKS
from isogloss.training.precision import check_precision

NOT_METHODS = ("name", "label", "targets")
"""Fields of a method's table that are neither the method's nor the optimization's."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Models that differ in their method alone: one encoder, corpus, source, target, seed."""

    encoder: Encoder
    corpus: str
    task: str
    source: tuple[str, ...]
    target: str
    seed: int
    treebanks: Treebanks
    models: Mapping[str, FineTune] = field(default_factory=dict)
    """By the label of their method."""


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method of the grid with what it changes of the optimization."""

    label: str
    method: Method
    targets: tuple[str, ...]
    changes: Table


def encoders(recipe: Recipe, sources: Sources, where: str) -> list[Encoder]:
    """Build the recipe's encoders."""
    listed = recipe.encoder if isinstance(recipe.encoder, tuple) else (recipe.encoder,)
    return [_encoder(entry, sources, where) for entry in listed]


def cells(recipe: Recipe, built: list[Encoder], sources: Sources, where: str) -> list[Cell]:
    """Expand the grid: the product of encoders, corpora, sources, targets, optimizations and seeds."""
    grid = recipe.grid
    if grid is None:
        return []
    entries = [
        _entry(table, grid, f"{where}: grid.method[{place}]") for place, table in enumerate(grid.method)
    ]
    _check_labels(entries, where)
    treebanks = tuple(sorted(grid.treebanks.items()))
    found = []
    for encoder, corpus, source in product(built, _many(grid.corpus), _many(grid.source)):
        task = _task(grid, corpus, where)
        languages = tuple(check_language(code, f"{where}: grid.source") for code in source.split("+"))
        for target, changes, seed in product(grid.targets, _variants(grid.optimization), grid.seeds):
            if check_language(target, f"{where}: grid.targets") in languages:
                continue
            cell = Cell(
                encoder=encoder,
                corpus=corpus,
                task=task,
                source=languages,
                target=target,
                seed=seed,
                treebanks=treebanks,
            )
            models = {
                entry.label: _model(cell, entry, grid, {**changes, **entry.changes}, sources)
                for entry in entries
                if target in (entry.targets or grid.targets)
            }
            found.append(replace(cell, models=models))
    return found


def _encoder(entry: str | EncoderTable, sources: Sources, where: str) -> Encoder:
    if isinstance(entry, str):
        return Pretrained(source=entry, data=fingerprint_of(entry))
    if bool(entry.pretrain) == bool(entry.pretrained):
        raise ConfigError(
            f"{where}: encoder: give either pretrain (make one) or pretrained (a folder or name)."
        )
    if entry.pretrain is None:
        return Pretrained(source=entry.pretrained, data=fingerprint_of(entry.pretrained))
    return _pretrain(entry.pretrain, sources, where)


def _pretrain(table: PretrainTable, sources: Sources, where: str) -> Pretrain:
    here = f"{where}: encoder.pretrain"
    name = table.method.get("name", "masked-language-modelling")
    if name not in PRETRAINING:
        raise unknown_name(f"{here}.method", "pretraining method", str(name), PRETRAINING)
    if table.architecture.family not in FAMILIES:
        raise unknown_name(f"{here}.architecture", "encoder family", table.architecture.family, FAMILIES)
    if table.architecture.dim % table.architecture.heads:
        raise ConfigError(
            f"{here}.architecture: {table.architecture.heads} heads do not divide dim "
            f"{table.architecture.dim}. Choose dim as a multiple of heads."
        )
    values = {key: value for key, value in table.method.items() if key != "name"}
    method = checked(PRETRAINING[name], values, f"{here}.method")
    check_precision(method.precision, f"{here}.method")
    languages = [check_language(code, f"{here}.languages") for code in table.languages]
    files = [
        sources.fingerprint(corpus, code, "train")
        for corpus in table.text
        for code in _having(sources, corpus, languages)
    ]
    pairs = [f"{languages[0]}-{other}" for other in languages[1:]] if table.bitext else []
    files += [sources.fingerprint(table.bitext, pair, "train") for pair in pairs]
    return Pretrain(
        text=table.text,
        languages=table.languages,
        architecture=table.architecture,
        method=method,
        bitext=table.bitext,
        seed=table.seed,
        data=joined(files),
    )


def _having(sources: Sources, corpus: str, languages: list[str]) -> list[str]:
    """Check the corpus's name before its files."""
    sources.corpus(corpus)
    return languages


def _entry(table: Table, grid: GridTable, where: str) -> MethodEntry:
    name = table.get("name")
    if name not in METHODS:
        raise unknown_name(where, "method", str(name), METHODS)
    kind = METHODS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    shared = {one.name for one in fields(Optimization)}
    for key in table:
        if key not in own | shared | set(NOT_METHODS):
            known = sorted(own | shared | set(NOT_METHODS))
            raise ConfigError(
                f"{where}: {key}: no such field of {name}.{did_you_mean(key, known)} "
                f"Fields: {', '.join(known)}."
            )
    targets = tuple(table.get("targets", ()))
    for target in targets:
        if target not in grid.targets:
            near = did_you_mean(target, grid.targets)
            raise ConfigError(
                f"{where}: targets: {target!r} is not among grid.targets {list(grid.targets)}.{near}"
            )
    return MethodEntry(
        label=str(table.get("label", name)),
        method=checked(kind, {key: table[key] for key in own & set(table)}, where),
        targets=targets,
        changes={key: table[key] for key in shared & set(table)},
    )


def _check_labels(entries: list[MethodEntry], where: str) -> None:
    labels = [entry.label for entry in entries]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(
                f"{where}: grid.method: two methods are called {label!r}. Give one a label of its own."
            )


def _task(grid: GridTable, corpus: str, where: str) -> str:
    if corpus not in CORPORA:
        raise unknown_name(f"{where}: grid.corpus", "corpus", corpus, CORPORA)
    if grid.task and grid.task not in TASKS:
        raise unknown_name(f"{where}: grid.task", "task", grid.task, TASKS)
    there = [task for task in CORPORA[corpus].tasks if task in TASKS]
    if grid.task and grid.task not in there:
        raise ConfigError(
            f"{where}: grid.task: corpus {corpus!r} has no labels for {grid.task!r}, only for "
            f"{', '.join(there) or 'no task'}. Choose another corpus or task."
        )
    if not grid.task and len(there) != 1:
        raise ConfigError(
            f"{where}: grid.task: corpus {corpus!r} has labels for {', '.join(there) or 'no task'}. Name one."
        )
    return grid.task or there[0]


def _variants(table: Table) -> Iterator[Table]:
    """Give every combination of the values of list-valued fields."""
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for values in product(*lists.values()):
        yield dict(zip(lists, values, strict=True))


def _model(cell: Cell, entry: MethodEntry, grid: GridTable, changes: Table, sources: Sources) -> FineTune:
    sides = entry.method.sides
    optimization = checked(Optimization, changes, "grid.optimization")
    check_precision(optimization.precision, "grid.optimization.precision")
    source = cell.source if "source" in sides else ()
    target = (cell.target,) if "target" in sides else ()
    splits: tuple[Split, ...] = ("train", "dev")
    files = [
        sources.fingerprint(cell.corpus, language, split, treebanks=cell.treebanks)
        for language in (*source, *target)
        for split in splits
    ]
    return FineTune(
        encoder=cell.encoder,
        corpus=cell.corpus,
        task=cell.task,
        method=entry.method,
        source=source,
        target=target,
        optimization=optimization,
        treebanks=tuple(pair for pair in cell.treebanks if pair[0] in (*source, *target)),
        examples=grid.examples,
        dev_examples=grid.dev_examples,
        seed=cell.seed,
        data=joined(files),
    )


def _many(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
