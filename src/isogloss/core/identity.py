"""Content ids: equal content gives an equal id, whatever the machine, the order of fields or the day.

The kind of every part goes into the hash, so two methods without fields have different ids, and so does
a part's ``version``: raise it when the part's results change and old records must not be reused. A part that
is not of the house has its package and version there, too (``plug_ins``).
"""

import json
import math
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

from isogloss.core.plug_ins import package_of
from isogloss.core.run_parts import is_nested

ID_LENGTH = 12
"""Hexadecimal digits of an id: 48 bits, a collision among a million runs is rarer than one in 500."""


def content(value: object) -> Any:
    """Return a value as plain JSON data, each dataclass with its kind and version."""
    if is_dataclass(value) and not isinstance(value, type):
        return _content_of_part(value)
    if isinstance(value, tuple | list):
        return [content(part) for part in value]
    if isinstance(value, dict):
        return {str(key): content(part) for key, part in value.items()}
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, str | int):
        return value
    raise TypeError(
        f"{type(value).__name__} has no place in a run: use numbers, texts, tuples and dataclasses."
    )


def _content_of_part(part: Any) -> dict[str, object]:
    kind = {"kind": getattr(type(part), "name", type(part).__name__)}
    version = getattr(type(part), "version", 1)
    about = {**kind, **({"version": version} if version != 1 else {})}
    about |= {"package": package} if (package := package_of(type(part).__module__)) else {}
    # A field that is None is not there, so a part can gain one and its runs keep their ids.
    there = [field for field in fields(part) if getattr(part, field.name) is not None]
    parts: dict[str, object] = {}
    for field in there:
        value = content(_as_declared(field.type, getattr(part, field.name)))
        if is_nested(field):  # Its fields stand among the others.
            parts |= {name: inside for name, inside in value.items() if name not in ("kind", "package")}
        else:
            parts[field.name] = value
    # Fields of which one is called like what says the kind stand beneath it, so that neither hides the other.
    return {**about, "fields": parts} if about.keys() & parts.keys() else {**about, **parts}


def _as_declared(kind: object, value: object) -> object:
    """Return a whole number in a field of fractions as a fraction: 0 and 0.0 are the same weight decay."""
    of_fractions = getattr(kind, "__origin__", kind) is float  # also with a range: Annotated[float, …]
    return float(value) if of_fractions and isinstance(value, int) else value


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number that a run can have. Use a finite one.")
    return value + 0.0  # -0.0 equals 0.0 and becomes it.


def identity(value: object) -> str:
    """Return the content id of a run or any part of one."""
    text = json.dumps(content(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:ID_LENGTH]
