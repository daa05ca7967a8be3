"""Inputs of parsers: words, whose heads and relations are written."""

from collections.abc import Iterable, Sequence
from typing import Any

from isogloss.data.formats.conllu import HEAD, RELATION, with_columns, with_tree
from isogloss.metrics.labels import Tree
from isogloss.tasks.task import Task
from isogloss.using.formats import InputForm
from isogloss.using.words import Labels, form_of_words


def _list_arcs(tree: Tree) -> tuple[Sequence[int], Sequence[str]]:
    return tree.heads, tree.relations


def _fill_arcs(lines: Sequence[str], tree: Tree) -> Iterable[str]:
    return with_columns(lines, {HEAD: [str(head) for head in tree.heads], RELATION: tree.relations})


def _add_tree(example: Any, tree: Tree) -> Any:
    return with_tree(example, tree.heads, tree.relations)


TREES = Labels(names=("heads", "relations"), lists=_list_arcs, fill=_fill_arcs, answered=_add_tree)
"""Trees in their own columns. An enhanced graph stays unchanged."""


def find_form(_: Task) -> InputForm:
    """Return the form of inputs whose words get a tree."""
    return form_of_words(TREES)
