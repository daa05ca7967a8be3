"""The lists of a recipe's grid, checked: corpora and their tasks, languages, seeds, treebanks."""

from collections.abc import Mapping
from dataclasses import replace

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.run_graph import original
from isogloss.core.runs import Encoder, Pretrain
from isogloss.data import CORPORA
from isogloss.data.sources import Sources, Treebanks
from isogloss.experiments.recipe import GridTable, OneOrMany, located, refuse_empty_or_twice
from isogloss.tasks import TASKS


def check_lists(grid: GridTable, where: str) -> None:
    """Refuse lists that are empty or name a thing twice, and what is no language code."""
    for name in ("corpus", "source", "targets", "seeds", "method"):
        value = getattr(grid, name)
        refuse_empty_or_twice(many(value), f"{where}.{name}")
    sources = [code for source in many(grid.source) for code in source.split("+")]
    targets = [code for target in grid.targets for code in target.split("+")]
    for code in sources:
        check_language(code, f"{where}.source")
    for code in targets:
        check_language(code, f"{where}.targets")
    if all(code in source.split("+") for source in many(grid.source) for code in targets):
        raise ConfigError(
            f"{where}.targets: {list(grid.targets)} holds only the source. Name another language."
        )
    for code in grid.treebanks:
        if code not in (*sources, *targets):
            raise unknown_name(f"{where}.treebanks", "language of this grid", code, [*sources, *targets])


def treebanks_of(grid: GridTable, corpus: str, sources: Sources) -> Treebanks:
    """Return the treebanks a corpus is read from; among several corpora, those that have treebanks."""
    chosen = tuple(sorted(grid.treebanks.items()))
    takes = [one for one in many(grid.corpus) if chosen and sources.has_treebanks(one)]
    return chosen if corpus in takes or not takes else ()


def tasks_of(grid: GridTable, corpus: str, sources: Sources, where: str) -> tuple[str, ...]:
    """Return the tasks a corpus is used for: those asked for that it has labels for, else its only one."""
    with located(f"{where}: grid.corpus"):
        there = [task for task in sources.corpus(corpus).tasks if task in TASKS]
    asked = many(grid.task)
    for task in asked:
        if task not in TASKS:
            raise unknown_name(f"{where}: grid.task", "task", task, TASKS)
    if not there:
        fitting = [name for name, one in CORPORA.items() if set(one.tasks) & set(TASKS)]
        raise ConfigError(
            f"{where}: grid.corpus: {corpus!r} has no labels that a task here can use. "
            f"Choose one of: {', '.join(fitting)}."
        )
    found = tuple(task for task in asked if task in there) if asked else tuple(there)
    if not found:
        raise ConfigError(
            f"{where}: grid.task: corpus {corpus!r} has no labels for {' or '.join(map(repr, asked))}, only "
            f"for {', '.join(there)}. Choose another corpus or task."
        )
    if not asked and len(there) > 1:
        raise ConfigError(
            f"{where}: grid.task: corpus {corpus!r} has labels for {', '.join(there)}. Name one of them."
        )
    return found


def check_tasks(grid: GridTable, used: set[str], where: str) -> None:
    """Refuse a task that no corpus of the grid has labels for."""
    for task in many(grid.task):
        if task not in used:
            raise ConfigError(
                f"{where}: grid.task: no corpus of this grid has labels for {task!r}. Add one, or drop it."
            )


def many(value: OneOrMany) -> tuple[str, ...]:
    """Return one or several as several."""
    return (value,) if isinstance(value, str) else tuple(value)


def seeds_for(grid: GridTable, encoder: Encoder, built: Mapping[Encoder, str], where: str) -> tuple[int, ...]:
    """Return the seeds an encoder is fine-tuned with: all, or its own where there is one encoder for each."""
    there = _seeds_of(encoder, built)
    if len(there) < 2:
        return grid.seeds
    for seed in grid.seeds:
        if seed not in there:
            raise ConfigError(
                f"{where}: grid.seeds: {seed}: a model starts from the encoder of its own seed, and "
                f"{built[encoder]!r} is pretrained with {', '.join(map(str, sorted(there)))}. Name these."
            )
    first = original(encoder)
    return tuple(seed for seed in grid.seeds if isinstance(first, Pretrain) and seed == first.seed)


def _seeds_of(encoder: Encoder, built: Mapping[Encoder, str]) -> frozenset[int]:
    """Return the seeds of the encoders that differ from this one in the seed of their pretraining alone."""
    first = original(encoder)
    if not isinstance(first, Pretrain):
        return frozenset()
    others = [other for other in map(original, built) if isinstance(other, Pretrain)]
    return frozenset(other.seed for other in others if replace(other, seed=first.seed) == first)
