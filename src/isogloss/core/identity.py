"""Content ids and seeds: hashes that are equal on every machine and version of Python.

Equal content gives an equal id, whatever the order of its fields.

The kind of every part goes into the hash, so two methods without fields have different ids. A part's
``version`` also goes into it. Raise the version when the part's results change and old records must not be
reused. Where it depends on a field whether they change, the version is a property. The hash of a part from a
plug-in includes the plug-in's package and version (``plug_ins``).
"""

import json
import math
import re
from dataclasses import fields, is_dataclass
from functools import cache
from hashlib import blake2b, sha256
from typing import Any

from isogloss.core.plug_ins import package_of
from isogloss.core.run_parts import is_nested

ID_LENGTH = 12
"""Hexadecimal digits of an id: 48 bits, a collision among a million runs is rarer than one in 500."""

ID = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")
"""Pattern of a valid id, which prevents ids from naming other folders."""


CACHED = "_identity"
"""Under which name an id is kept with its part."""


def content(value: object) -> Any:
    """Return a value as plain JSON data, each dataclass with its kind and version."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, tuple | list):
        return [content(part) for part in value]
    if isinstance(value, dict):
        return {str(key): content(part) for key, part in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _content_of_part(value)
    raise TypeError(
        f"{type(value).__name__} cannot be part of a run: use numbers, texts, tuples and dataclasses."
    )


def _content_of_part(part: Any) -> dict[str, object]:
    kind: Any = type(part)
    header, form = _form(kind)
    version = getattr(part, "version", 1)
    if version != 1:
        header = {**header, "version": version}
    if package := package_of(kind.__module__):
        header = {**header, "package": package}
    parts: dict[str, object] = {}
    for name, is_fraction, is_inline in form:
        value = getattr(part, name)
        if value is None:  # It is not there, so a part can gain a field and its runs keep their ids.
            continue
        # A whole number in a field of fractions is one: 0 and 0.0 are the same weight decay.
        data = content(float(value) if is_fraction and isinstance(value, int) else value)
        if is_inline:  # Its fields are listed with the others.
            parts |= {key: inside for key, inside in data.items() if key not in ("kind", "package")}
        else:
            parts[name] = data
    # Fields of which one is called like what says the kind stand beneath it, so that neither hides the other.
    return {**header, "fields": parts} if header.keys() & parts.keys() else {**header, **parts}


@cache
def _form(kind: Any) -> tuple[dict[str, object], list[tuple[str, bool, bool]]]:
    """Return a dataclass's kind, and its fields: name, whether fractional, whether nested."""
    header: dict[str, object] = {"kind": getattr(kind, "name", kind.__name__)}
    return header, [(field.name, _is_fraction(field.type), is_nested(field)) for field in fields(kind)]


def _is_fraction(kind: object) -> bool:
    return getattr(kind, "__origin__", kind) is float  # also with a range: Annotated[float, …]


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"{value} cannot be part of a run. Use a finite number.")
    return value + 0.0  # -0.0 equals 0.0 and becomes it.


def identity(value: object) -> str:
    """Return the content id of a run or any part of it. Ids of frozen parts are computed once."""
    kind: Any = type(value)
    if not _is_frozen(kind):
        return content_id(value)
    attributes = vars(value)  # ``cached_property`` also stores values here, and ``replace`` drops them.
    if CACHED not in attributes:
        attributes[CACHED] = content_id(value)
    return str(attributes[CACHED])


def content_id(value: object) -> str:
    """Compute the id of a value from its content, also if ``identity`` has cached one."""
    text = _ENCODER.encode(value if isinstance(value, dict) else content(value))
    if _UNUSUAL.search(text):
        text = _ENCODER.encode(content(value))
    return sha256(text.encode()).hexdigest()[:ID_LENGTH]


_ENCODER = json.JSONEncoder(
    check_circular=False, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=content
)
"""Encodes values without converting them again, because records already contain plain data."""

_UNUSUAL = re.compile(r"-0\.0|NaN|Infinity")
"""Numbers that ``content`` changes or refuses."""


@cache
def _is_frozen(kind: Any) -> bool:
    """Return whether a class is a frozen dataclass whose instances have a dictionary."""
    if not is_dataclass(kind):
        return False
    dataclass: Any = kind
    return bool(dataclass.__dataclass_params__.frozen and dataclass.__dictoffset__)


def derive(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose, independent of the seeds of all other purposes."""
    text = "\x1f".join([str(seed), *(str(part) for part in purpose)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
