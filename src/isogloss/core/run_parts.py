"""What fields of runs are made of: numbers with a range, named values, and values nested in others.

A nested value is one field of its owner in code, while in recipes and records its fields stand among those of
the owner: ``learning_rate = 1e-4`` in a method's table goes to the method's ``updates``.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Protocol, TypeVar, runtime_checkable

from pydantic import Field, model_validator

Whole = Annotated[int, Field(strict=True)]
"""A whole number; a truth value or a text is none."""

Count = Annotated[int, Field(strict=True, ge=0)]
"""A number of things, possibly none."""

Positive = Annotated[int, Field(strict=True, ge=1)]
"""A number of things, at least one."""

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
"""A part of a whole."""

Rate = Annotated[float, Field(strict=True, gt=0)]
"""A step's size."""

Weight = Annotated[float, Field(strict=True, ge=0)]
"""A factor that may be 0."""


NESTED = {"nested": True}
"""The metadata of a field that holds a nested value."""

Owner = TypeVar("Owner")


def is_nested(one: "dataclasses.Field[Any]") -> bool:
    """Return whether a dataclass's field holds a nested value."""
    return bool(one.metadata.get("nested"))


def keys_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of a dataclass's fields as recipes and records have them."""
    return tuple(
        name
        for one in fields(kind)
        for name in (keys_of(type(one.default)) if is_nested(one) else (one.name,))
    )


def with_fields(value: Owner, **changes: Any) -> Owner:
    """Return a value with some fields replaced, by the names that recipes and records have."""
    own: dict[str, Any] = dict(changes)
    for one in fields(value):  # type: ignore[arg-type]
        if is_nested(one):
            inside = {name: own.pop(name) for name in keys_of(type(one.default)) if name in own}
            if inside:
                own[one.name] = with_fields(own.get(one.name, getattr(value, one.name)), **inside)
    return replace(value, **own)  # type: ignore[type-var]


def values_of(value: object) -> dict[str, Any]:
    """Return the fields of a dataclass by the names that recipes and records have."""
    found: dict[str, Any] = {}
    for one in fields(value):  # type: ignore[arg-type]
        own = getattr(value, one.name)
        found |= values_of(own) if is_nested(one) else {one.name: own}
    return found


def nested_fields() -> Any:
    """Return the attribute of a class that lets pydantic read its nested values from its own table.

    What a table leaves out is the owner's default for it, not that of the nested class.
    """

    def nest(cls: type[Any], values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        found = dict(values)
        for one in fields(cls):
            if is_nested(one) and isinstance(found.get(one.name, {}), Mapping):
                names = keys_of(type(one.default))
                said = {name: found.pop(name) for name in names if name in found}
                default = {name: getattr(one.default, name) for name in names}
                found[one.name] = {**default, **found.get(one.name, {}), **said}
        return found

    return model_validator(mode="before")(classmethod(nest))  # type: ignore[arg-type]


@runtime_checkable
class Named(Protocol):
    """A frozen dataclass that stands in one of the tables (METHODS, DIAGNOSTICS …)."""

    @property
    def name(self) -> str:
        """Name in the table, in kebab-case."""
        ...
