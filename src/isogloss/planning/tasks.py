"""Find the tasks that a grid's corpora have labels for: the tasks of its models, and additional tasks."""

from collections.abc import Callable, Sequence

from isogloss.core.errors import ConfigError, add_location, check_named
from isogloss.core.plug_ins import package_named
from isogloss.core.run_parts import Optimization
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.sources import Sources, Treebanks
from isogloss.recipes.recipe import GridTable, many
from isogloss.runs.fine_tune import LearnedTask
from isogloss.tasks import ALL_TASKS, OF_ANY_LABELS, TASKS, task_names


def treebanks_of(grid: GridTable, corpus: str, sources: Sources) -> Treebanks:
    """Return the treebanks a corpus is read from. Empty if only other corpora have treebanks."""
    treebanks = tuple(sorted(grid.treebanks.items()))
    takers = [name for name in many(grid.corpus) if treebanks and sources.has_treebanks(name)]
    return treebanks if corpus in takers or not takers else ()


def tasks_of(grid: GridTable, corpus: str, sources: Sources) -> tuple[str, ...]:
    """Return the requested tasks that a corpus has labels for. Default: its only task."""
    with add_location(".corpus"):
        available = [task for task in sources.corpus(corpus).tasks if task in task_names()]
    requests = many(grid.task)
    check_named(".task", "task", task_names(), *requests)
    if not available:
        fitting = [name for name, entry in CORPORA.items() if set(entry.tasks) & set(TASKS)]
        raise ConfigError(
            f".corpus: {corpus!r} has no labels that a task here can use. "
            f"Choose one of: {', '.join(fitting)}, or a described one (isogloss list corpora)."
        )
    choices = tuple(task for task in requests if task in available) if requests else tuple(available)
    if not choices:
        request_names = " or ".join(repr(request) for request in requests)
        raise ConfigError(
            f".task: corpus {corpus!r} has no labels for {request_names}, only "
            f"for {', '.join(available)}. Choose another corpus or task."
        )
    if not requests and len(available) > 1:
        raise ConfigError(
            f".task: corpus {corpus!r} has labels for {', '.join(available)}. Name one of them."
        )
    return choices


def labels_of(task: str, corpus: str, sources: Sources) -> tuple[str, ...] | None:
    """Return the labels of a corpus, or None for a task with fixed labels."""
    return sources.labels(corpus) if task in OF_ANY_LABELS else None


def package_of(task: str) -> str | None:
    """Return package and version of the plug-in that adds a task. None for a built-in task."""
    return None if task in ALL_TASKS else package_named("tasks", task)


def learned_tasks(
    names: Sequence[str], corpus: str, lengths: Callable[[str], Optimization], sources: Sources
) -> tuple[LearnedTask, ...]:
    """Return the additional tasks of a model, by names with or without a corpus.

    ``corpus`` is used for names without a corpus. ``lengths`` returns the optimization with a task's lengths.
    """
    tasks = []
    for task, _, task_corpus in (name.partition(":") for name in names):
        sources.needs(task_corpus or corpus, task)
        optimization = lengths(task)
        tasks.append(
            LearnedTask(
                task=task,
                corpus=task_corpus or corpus,
                labels=labels_of(task, task_corpus or corpus, sources),
                package=package_of(task),
                limit=optimization.limit,
                overlap=optimization.overlap,
            )
        )
    return tuple(tasks)
