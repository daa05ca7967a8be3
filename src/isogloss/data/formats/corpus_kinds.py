"""Kinds of labelled corpora: columns of parts, tasks, and the function from a row to an example."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from isogloss.core.registry import Registry
from isogloss.data.examples import Example
from isogloss.data.formats.formats import FORMATS, AnyOf, Columns, list_suffixes
from isogloss.data.formats.reading import CorpusRow, Predicts

UNKNOWN = ""
"""Label of an example without one."""


def list_fields(example: Example, _: Sequence[str]) -> dict[str, object]:
    """Return the texts and the label of an example by the names of its fields."""
    names = [field.name for field in fields(example)]
    return {name: getattr(example, name) for name in names if name in ("text", "first", "second", "label")}


@dataclass(frozen=True, kw_only=True)
class CorpusKind:
    """A kind of labelled corpus: its columns, its tasks, and the function from a row to an example."""

    example: type[Example]
    make: Callable[[CorpusRow], Example | None]
    """Function from a row to its example, or None for a skipped row."""
    columns: Columns
    """Default columns in formats in which parts are named."""
    tasks: Mapping[Predicts, str]
    """Task by kind of labels. The task of tagging depends on the labels."""
    more: tuple[str, ...] = ()
    """Optional parts, for which the description must name a column."""
    several: tuple[str, ...] = ()
    """Parts that may have several columns."""
    suffixes: Mapping[str, str] = field(default_factory=dict)
    """Format by suffix of the file, where it differs from other kinds."""
    parts: Callable[[Any, Sequence[str]], dict[str, object]] = list_fields
    """Function from an example and the labels to its parts as JSON values, each under its name."""


KINDS: Registry[CorpusKind] = Registry(
    {
        name: f"isogloss.data.formats.kinds:{name.upper()}"
        for name in ("tagging", "text", "pair", "bitext", "raw")
    },
    features="corpus-kinds",
)
"""Kinds of corpora by name."""


def list_columns(kind: str, name: str = "") -> dict[str, Columns]:
    """Return the default columns of a kind of corpus by format, of packages only for the format ``name``."""
    named_columns = KINDS[kind].columns
    names = [*FORMATS.places, *([name] if name in FORMATS else [])]
    forms = {name: FORMATS[name] for name in names}
    return {
        name: named_columns if form.is_named else form.columns[kind]
        for name, form in forms.items()
        if form.is_named or kind in form.columns
    }


def find_suffixes(kind: str) -> dict[str, str]:
    """Return the format of each suffix in a kind of corpus."""
    return {**list_suffixes(), **KINDS[kind].suffixes}


def parts_of(example: Example, labels: Sequence[str]) -> dict[str, object]:
    """Return the parts of an example as JSON values, for a reader that finds each part under its name."""
    kinds = (kind for kind in KINDS.values() if isinstance(example, kind.example))
    kind = next(kinds, None)
    return list_fields(example, labels) if kind is None else kind.parts(example, labels)


_IN_USE = {
    "words": ("words", "tokens"),
    "labels": ("labels", "ner_tags", "tags", "upos", "pos_tags"),
    "label": ("label", "labels"),
    "text": ("text", "sentence"),
    "first": ("first", "premise", "sentence1"),
    "second": ("second", "hypothesis", "sentence2"),
}
"""Names of parts in published datasets, ours first."""


def name_columns(*names: str) -> Columns:
    """Return the columns of parts in formats in which parts are named."""
    return {name: AnyOf(_IN_USE[name]) if name in _IN_USE else name for name in names}
