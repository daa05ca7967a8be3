"""Models that differ in their optimization alone get names of their own, so that no table takes their mean.

A record names a model by its method's fields. A recipe may also train one method with several learning rates,
or batch sizes; only among the models of a folder can be seen which of these numbers tell two apart.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from isogloss.core.records import Record, Row

_SAME = ("kind", "checkpoint_every")
"""What stands beside the numbers of an optimization, and what changes no result."""

_AFTER = (" by ", " after ")
"""What follows a method's fields in its name: who translated, which model it went on from."""


def told_apart(records: Mapping[str, Record]) -> dict[str, Record]:
    """Return records by id, models and what measures them named by what tells them apart.

    Names that are unlike already stay as they are; a second call changes nothing.
    """
    names = dict(_names(record for record in records.values() if record.kind == "fine-tune"))
    return {one: _renamed(record, records, names) for one, record in records.items()}


def _names(models: Iterable[Record]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Give the ids of models whose names say too little, with the name and the one that says it."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for model in models:
        encoder = json.dumps(_seedless(model.run.get("encoder")), sort_keys=True)
        key = (_name(model), model.run.get("corpus"), model.run.get("task"), encoder)
        groups.setdefault(key, []).append(model)
    for group in groups.values():
        numbers = {model.id: dict(_numbers(model.run)) for model in group}
        fields = dict.fromkeys(field for found in numbers.values() for field in found)
        differ = [field for field in fields if len({found.get(field) for found in numbers.values()}) > 1]
        for model in group if differ else ():
            said = ", ".join(f"{field}={numbers[model.id].get(field)}" for field in differ)
            yield model.id, (_name(model), _with(_name(model), said))


def _numbers(run: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, str]]:
    """Give the optimization of a model, and of those it goes on from."""
    optimization, start = run.get("optimization"), run.get("start")
    if isinstance(optimization, Mapping):
        yield from (
            (where + field, str(value)) for field, value in optimization.items() if field not in _SAME
        )
    if isinstance(start, Mapping):
        yield from _numbers(start, f"{where}start ")


def _seedless(part: Any) -> Any:
    if isinstance(part, Mapping):
        return {name: _seedless(value) for name, value in part.items() if name != "seed"}
    return [_seedless(one) for one in part] if isinstance(part, list | tuple) else part


def _name(model: Record) -> str:
    return model.title.split(": ")[0]


def _with(name: str, more: str) -> str:
    """Add to the fields in brackets, or add brackets, before what follows a method's own name."""
    end = min((name.index(word) for word in _AFTER if word in name), default=len(name))
    own, rest = name[:end], name[end:]
    own = f"{own[:-1]}, {more})" if own.endswith(")") else f"{own} ({more})"
    return own + rest


def _renamed(record: Record, records: Mapping[str, Record], names: Mapping[str, tuple[str, str]]) -> Record:
    """Return a model, or a measurement of one, under its new name; others as they are."""
    found = {names[one] for one in _models(record, records) if one in names}
    if len(found) != 1:
        return record
    ((old, new),) = found
    return replace(
        record,
        title=record.title.replace(old, new, 1),
        rows=[_row(row, old, new) for row in record.rows],
    )


def _row(row: Row, old: str, new: str) -> Row:
    return {**row, "method": new} if row.get("method") == old else row


def _models(record: Record, records: Mapping[str, Record]) -> set[str]:
    """Return the model a record is of, or those a measurement looks at, through others where need be."""
    if record.kind != "measure":
        return {record.id}
    there = [records[one] for one in record.needs if one in records]
    return {model for one in there if one.kind in ("measure", "fine-tune") for model in _models(one, records)}
