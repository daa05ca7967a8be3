"""Read corpora of labelled examples from a TOML file with a table for each."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpus import About, Layouts, every_split
from isogloss.data.formats.formats import AnyOf

_CHOICE = re.compile(r"\{((?:[^{},]|\{\w+\})*,(?:[^{}]|\{\w+\})*)\}")
"""``{train.tsv,dev-{language}.tsv}``."""


def read_corpora(path: Path) -> dict[str, LabelledCorpus]:
    """Return the corpora of a file by name."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: make_corpus(name, table) for name, table in tables.items()}


def make_corpus(name: str, table: dict[str, Any]) -> LabelledCorpus:
    """Make the corpus that a table describes."""
    fields: dict[str, Any] = {
        field: tuple(value) if isinstance(value, list) else value for field, value in table.items()
    }
    fields |= {field: _layouts(table[field]) for field in _LAYOUTS if field in table}
    if "columns" in table:
        columns = table["columns"].items()
        fields["columns"] = {
            part: AnyOf(tuple(name)) if isinstance(name, list) else name for part, name in columns
        }
    return LabelledCorpus(**{**fields, "name": name, "about": About(**table["about"])})


_LAYOUTS = ("layouts", "translations", "all_languages")


def _layouts(paths: Any) -> Layouts:
    """Return the layouts of each split from a table by split, or from layouts of every split."""
    layouts = paths if isinstance(paths, dict) else every_split(*paths)
    return {
        split: tuple(path for layout in split_layouts for path in _expand_choices(layout))
        for split, split_layouts in layouts.items()
    }


def _expand_choices(path: str) -> Iterator[str]:
    """Yield a path for each combination of choices, varying the last choice fastest."""
    choice = _CHOICE.search(path)
    if not choice:
        yield path
        return
    for part in choice[1].split(","):
        yield from _expand_choices(path[: choice.start()] + part + path[choice.end() :])
