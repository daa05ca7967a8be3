"""Runs and their parts as a JSON table in which each part occurs once, and back.

Reading the table is an order of magnitude faster than planning the runs. It imports classes, and so only
classes of isogloss and of installed plug-ins, whose instances are frozen dataclasses. It runs no other code.
"""

import json
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from importlib import import_module
from typing import Any

from isogloss.core.identity import CACHED, content_id, identity
from isogloss.core.plug_ins import PACKAGE, plugged_modules

PART = "part"
"""Key of a reference to a part, by its number in the table."""

_MODULE = re.compile(r"[A-Za-z]\w*(\.[A-Za-z]\w*)*")
"""Modules of classes. ``__main__`` is not among them, because importing it starts the command."""

_SCALARS = (str, int, float, bool, type(None))


class UnstorableError(ValueError):
    """A part cannot be written to a table, or not read from it here."""


@dataclass(frozen=True, kw_only=True)
class PartTable:
    """Parts of runs, each after the parts in its fields."""

    classes: list[str]
    """Classes of parts, as "module:name"."""
    parts: list[tuple[int, dict[str, Any]]]
    """For each part, the number of its class, and the fields that differ from their defaults. Values are
    scalars, lists (tuples), and references to earlier parts: {"part": 3}."""
    values: list[int]
    """Numbers of the parts that were packed, in their order."""
    ids: list[str]
    """Their ids."""


class _Packer:
    """Collects parts for a table."""

    def __init__(self) -> None:
        self.classes: dict[type[Any], int] = {}
        self.parts: list[tuple[int, dict[str, Any]]] = []
        self._numbers: dict[int, int] = {}
        """Numbers of parts by their address. The caller's runs keep them alive."""
        self._equal: dict[tuple[int, str], int] = {}
        """Numbers of parts by class and content."""

    def add(self, part: Any) -> int:
        """Return the number of a part, which is added with its parts if it is new."""
        number = self._numbers.get(id(part))
        if number is None:
            number = self._numbers[id(part)] = self._add_new(part)
        return number

    def _add_new(self, part: Any) -> int:
        kind: Any = type(part)
        number = self.classes.get(kind)
        if number is None:
            _check_storable(kind)
            number = self.classes[kind] = len(self.classes)
        values: dict[str, Any] = {}
        for name, default in _fields_of(kind):
            value = getattr(part, name)
            if value is default or (type(value) is type(default) and value == default and _is_plain(value)):
                continue
            values[name] = self._pack(value)
        key = (number, json.dumps(values, ensure_ascii=False))
        if key not in self._equal:
            self._equal[key] = len(self.parts)
            self.parts.append((number, values))
        return self._equal[key]

    def _pack(self, value: object) -> object:
        if type(value) in _SCALARS:
            return value
        if type(value) is tuple:
            return [self._pack(item) for item in value]
        return {PART: self.add(value)}


def pack_parts(values: Iterable[Any]) -> PartTable:
    """Return runs, or other parts, as a table.

    Raises UnstorableError for a part that only this process can read, such as a class of a script.
    """
    packer = _Packer()
    values = list(values)
    numbers = [packer.add(value) for value in values]
    return PartTable(
        classes=[_name_of(kind) for kind in packer.classes],
        parts=packer.parts,
        values=numbers,
        ids=[identity(value) for value in values],
    )


def unpack_parts(table: PartTable) -> list[Any]:
    """Return the parts that were packed in a table, with their ids.

    Ids are computed again when a run is made (``check_id``), because that takes as long as planning.
    Raises UnstorableError if the table is wrong, or a class does not exist here.
    """
    kinds = [_class_named(name) for name in table.classes]
    parts: list[Any] = []
    for number, values in table.parts:
        if not 0 <= number < len(kinds):
            raise UnstorableError(f"there is no class {number}")
        parts.append(_build_part(kinds[number], values, parts))
    if len(table.values) != len(table.ids) or not all(0 <= number < len(parts) for number in table.values):
        raise UnstorableError("its list of runs is incomplete")
    runs = [parts[number] for number in table.values]
    for run, key in zip(runs, table.ids, strict=True):
        vars(run)[CACHED] = key
    return runs


def _build_part(kind: Any, values: dict[str, Any], parts: Sequence[Any]) -> Any:
    if not values.keys() <= _names_of(kind):
        unknown = ", ".join(sorted(values.keys() - _names_of(kind)))
        raise UnstorableError(f"{_name_of(kind)} has no field {unknown[:80]}")
    try:
        return kind(**{name: _unpack(value, parts) for name, value in values.items()})
    except UnstorableError:
        raise
    except Exception as error:
        raise UnstorableError(f"{_name_of(kind)}: {error!s:.200}") from error


def _unpack(value: object, parts: Sequence[Any]) -> object:
    if type(value) in _SCALARS:
        return value
    if type(value) is list:
        return tuple([_unpack(item, parts) for item in value])
    if type(value) is dict and value.keys() == {PART} and type(value[PART]) is int:
        number = value[PART]
        if 0 <= number < len(parts):
            return parts[number]
    raise UnstorableError(f"a field has the value {str(value)[:80]}")


def check_id(run: Any) -> None:
    """Raise UnstorableError if the id of a run that was read from a table is not the id of its content."""
    key = content_id(run)
    if key != identity(run):
        raise UnstorableError(f"run {identity(run)} has the content of run {key}")


def _is_plain(value: object) -> bool:
    return type(value) in _SCALARS or value == ()


@cache
def _fields_of(kind: Any) -> Sequence[tuple[str, object]]:
    """Return the fields of a class with their defaults."""
    return [(field.name, field.default) for field in fields(kind)]


@cache
def _names_of(kind: Any) -> Set[str]:
    """Return the names of the fields of a class."""
    return {name for name, _ in _fields_of(kind)}


def _check_storable(kind: type[Any]) -> None:
    if not is_dataclass(kind) or not all(field.init for field in fields(kind)):
        raise UnstorableError(f"{kind.__module__}.{kind.__qualname__} is not a class of plain fields")
    if _class_named(_name_of(kind)) is not kind:
        raise UnstorableError(f"{_name_of(kind)} is a different class")


def _name_of(kind: type[Any]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@cache
def _class_named(name: str) -> type[Any]:
    """Import a class of isogloss or of an installed plug-in."""
    module, _, attribute = name.partition(":")
    top = module.partition(".")[0]
    if not _MODULE.fullmatch(module) or (top != PACKAGE and top not in plugged_modules()):
        raise UnstorableError(f"{name[:120]!r} is not a class of isogloss or of an installed plug-in")
    try:
        kind: Any = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UnstorableError(f"{name[:120]!r} cannot be imported here") from error
    if not (isinstance(kind, type) and is_dataclass(kind) and kind.__dataclass_params__.frozen):  # type: ignore[attr-defined]
        raise UnstorableError(f"{name[:120]!r} is not a frozen dataclass")
    return kind
