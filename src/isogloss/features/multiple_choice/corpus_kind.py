"""Corpora of contexts with options."""

from collections.abc import Sequence

from isogloss.data.examples import Choice
from isogloss.data.files import some
from isogloss.data.formats.corpus_kinds import CorpusKind, name_columns
from isogloss.data.formats.label_cells import read_cell_text
from isogloss.data.formats.reading import CorpusRow

MORE = ("question", "prompt")
"""Optional parts."""


def _choice(record: CorpusRow) -> Choice | None:
    if record.is_skipped():
        return None
    options = _options(record)
    more = [part for part in MORE if part in record.reading.table.columns]
    texts = {part: record.text(part) for part in ("context", *more)}
    if record.is_unlabelled:
        return Choice(id=record.id, options=options, label=None, **texts)
    label = read_cell_text(record.part("label"))
    names = (record.reading.labels or [str(index) for index in range(len(options))])[: len(options)]
    if label not in names:
        raise record.broken(
            f"label {label!r} for {len(options)} options",
            f"one of {some(names)}",
            "Correct it, or the labels of the description",
        )
    return Choice(id=record.id, options=options, label=names.index(label), **texts)


def _options(record: CorpusRow) -> tuple[str, ...]:
    """Return the options of a row: a list in one cell, or a cell for each.

    Empty options at the end are dropped.
    """
    options = record.part("options")
    if isinstance(options, tuple) and len(options) == 1:
        options = options[0]
    if not isinstance(options, list | tuple):
        problem = f"options {str(options)[:60]!r}"
        raise record.broken(problem, "a list of texts, or a column for each", "Name their columns")
    while options and options[-1] in ("", None):
        options = options[:-1]
    if len(options) < 2:
        raise record.broken(f"{len(options)} options", "two or more", "Remove the row")
    return tuple(record.checked_text("an option", option) for option in options)


def _list_parts(choice: Choice, labels: Sequence[str]) -> dict[str, object]:
    texts = {"context": choice.context, "question": choice.question, "prompt": choice.prompt}
    label = labels[choice.label] if labels and choice.label is not None else choice.label
    parts = {**texts, "options": choice.options, "label": label}
    return {name: value for name, value in parts.items() if value != ""}


CHOICE = CorpusKind(
    example=Choice,
    make=_choice,
    columns=name_columns("context", "options", "label"),
    tasks={"label": "multiple-choice"},
    more=MORE,
    several=("context", "options"),
    parts=_list_parts,
)
