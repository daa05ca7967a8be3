"""Presets: fields that reproduce papers and their released code where both differ (presets.toml).

Each difference is a field that can be set separately. A preset fills the fields that a recipe does not set.
The table in docs/presets.md lists these values.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from isogloss.core.errors import ConfigError, check_named

Value = str | int | float | bool
Cases = Mapping[str, Value]
"""Values by corpus, or by the unit that a task labels. "" has the value of all others."""

Preset = Literal["paper", "released"]

PAPER: Preset = "paper"
RELEASED: Preset = "released"


@dataclass(frozen=True, kw_only=True)
class PresetDifference:
    """A field in which paper, released code and this package may differ."""

    parts: tuple[str, ...]
    """Names of the methods, losses, adjustments or pretraining methods that have the field."""
    field: str
    """Its name in recipes, as a field of the method or of its optimization."""
    paper: Value | Cases | None = None
    """Value that the paper prints. None: the paper prints no value, and the field keeps its default."""
    released: Value | Cases | None = None
    """Behaviour of the released code."""
    sources: str = ""
    """Places in paper and code."""


MODULES = "modules"
"""They have no preset: each table of them sets ``embedding`` itself."""


def _differences() -> Iterator[PresetDifference]:
    tables = tomllib.loads(Path(__file__).with_name("presets.toml").read_text(encoding="utf-8"))
    for parts, fields in tables.items():
        for field, values in fields.items():
            yield PresetDifference(parts=tuple(parts.split(", ")), field=field, **values)


DIFFERENCES = tuple(_differences())


def preset_fields(part: str, preset: str, *, corpus: str = "", unit: str = "") -> dict[str, Value]:
    """Return the fields that a preset fills in, for a part on a corpus whose task labels a ``unit``.

    ConfigError, with the nearest match, for an unknown preset, or for a part that has none.
    """
    check_named("preset", "preset", (PAPER, RELEASED), preset)
    rows = [row for row in DIFFERENCES if part in row.parts]
    if not rows:
        having = sorted({name for row in DIFFERENCES for name in row.parts} - {MODULES})
        raise ConfigError(f"preset: {part} has none. Remove it; these have: {', '.join(having)}.")
    choices = {row.field: row.paper if preset == PAPER else row.released for row in rows}
    values = {field: _case(value, corpus, unit) for field, value in choices.items()}
    return {field: value for field, value in values.items() if value is not None}


def _case(value: Value | Cases | None, corpus: str, unit: str) -> Value | None:
    if not isinstance(value, Mapping):
        return value
    return value.get(corpus, value.get(unit, value.get("")))
