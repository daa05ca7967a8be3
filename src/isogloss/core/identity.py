"""Content ids: equal content gives an equal id, whatever the machine, the order of fields or the day.

The kind of every part goes into the hash, so two methods without fields have different ids, and so does
a part's ``version``: raise it when the part's results change and old records must not be reused.
"""

import json
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

ID_LENGTH = 12
"""Hexadecimal digits of an id: 48 bits, a collision among a million runs is rarer than one in 500."""


def content(value: object) -> Any:
    """Return a value as plain JSON data, each dataclass with its kind and version."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: content(getattr(value, field.name)) for field in fields(value)}
        kind = {"kind": getattr(type(value), "name", type(value).__name__)}
        version = getattr(type(value), "version", 1)
        return {**kind, **({"version": version} if version != 1 else {}), **parts}
    if isinstance(value, tuple | list):
        return [content(part) for part in value]
    if isinstance(value, dict):
        return {str(key): content(part) for key, part in sorted(value.items())}
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(
        f"{type(value).__name__} has no place in a run: use numbers, texts, tuples and dataclasses."
    )


def identity(value: object) -> str:
    """Return the content id of a run or any part of one."""
    text = json.dumps(content(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()[:ID_LENGTH]
