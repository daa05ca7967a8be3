"""Parse recipes: TOML is checked and turned into frozen values.

Errors at unknown fields and names suggest the nearest match; those at wrong types and ranges quote the value.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeGuard, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from isogloss.core.arguments import describe_mismatch
from isogloss.core.errors import ConfigError, add_location, check_named, did_you_mean, unknown_name
from isogloss.core.plug_ins import Group, check_class, find_plug_in, plugged_names
from isogloss.core.processes import collector_paused
from isogloss.core.registry import Registry
from isogloss.core.run_parts import (
    Architecture,
    Conflict,
    Modules,
    Named,
    NewSubwords,
    Replay,
    keys_of,
)
from isogloss.recipes.recipe import EncoderTable, GridTable, PretrainTable, Recipe, Table
from isogloss.recipes.recipe_text import from_toml, merge_tables

PRESET = "preset"
"""Field of a table that sets other fields as in a paper or its code."""

_NOT_OF_RECIPES = frozenset({"str", "int", "float", "training", "updates"})
"""Parts of pydantic's locations that are not fields of recipes: types of a union, and flattened fields."""

Part = TypeVar("Part")
PlugIn = TypeVar("PlugIn", bound=Named)


def read_recipe(
    text: str,
    *,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    prepare: Callable[[Table], Table] = dict,
) -> Recipe:
    """Parse and check a recipe. Raises ConfigError with the field, its value and what is allowed.

    ``prepare`` may change its body before it is checked.
    """
    body = from_toml(text)
    if scale:
        scales = body.get("scale", {})
        available = scales if isinstance(scales, dict) else {}
        check_named("--scale", "scale", available or ["(this recipe has none)"], scale)
        with add_location(f"scale.{scale}"):
            for key, value in _flat(available[scale]):
                set_key(body, key.split("."), value)
    for key, value in (changes or {}).items():
        set_key(body, key.split("."), value)
    if isinstance(body.get("pretrain"), dict):
        with add_location("pretrain"):
            refuse_unknown(body["pretrain"], names(PretrainTable), "pretraining")
    return build_checked(Recipe, _with_shared(prepare(body)))


@dataclass(frozen=True)
class Kinds(Generic[PlugIn]):
    """Classes by name. A table of a recipe names one of them and sets its fields."""

    what: str
    """Their noun in messages."""
    classes: Mapping[str, type[PlugIn]]
    group: Group | None = None
    """The group of entry points with plug-ins that a table may also name."""
    protocol: type[object] = object
    """The interface of plug-ins."""
    default: str = ""
    """The name where a table has none."""
    key: str = "name"
    """The field that names the class."""
    noun: str = ""
    """The noun in messages about fields. Default: ``what``."""
    others: tuple[str, ...] = ()
    """Further names in messages, which need no class."""

    def read(self, table: Table, *further_kinds: type[object]) -> PlugIn:
        """Build the value that a table names. Fields of the dataclasses ``others`` are also allowed."""
        kind = self.choose(table, *further_kinds)
        return part_of(self.fill_from_preset(table), kind)

    def choose(self, table: Table, *further_kinds: type[object]) -> type[PlugIn]:
        """Return the class that a table names.

        Raises ConfigError for a field that neither it nor ``others`` has.
        """
        kind = self.find_class(table)
        known_fields = {self.key, PRESET} | names(kind, *further_kinds)
        refuse_unknown(table, known_fields, f"{self.noun or self.what} {self._name(table)}")
        return kind

    def fill_from_preset(self, table: Table) -> Table:
        """Add the fields to a table that its preset sets and the table does not."""
        if PRESET not in table:
            return table
        from isogloss.methods.presets import preset_fields  # The methods import torch.

        kind = self.find_class(table)
        preset = preset_fields(str(self._name(table)), str(table[PRESET]))
        return {**{name: value for name, value in preset.items() if name in names(kind)}, **table}

    def find_class(self, table: Table) -> type[PlugIn]:
        """Return the class that a table names.

        Raises ConfigError with the nearest match for an unknown name.
        """
        name = self._name(table)
        if isinstance(name, str) and (kind := self._find(name)):
            return kind
        available = {*self.others, *self.classes, *(plugged_names(self.group) if self.group else ())}
        if name is None:
            raise ConfigError(
                f"{self.key}: this field is missing. Add it to the recipe: one of "
                f"{', '.join(sorted(available))}."
            )
        raise unknown_name("" if self.key == "name" else self.key, self.what, str(name), available)

    def _name(self, table: Table) -> object:
        return table.get(self.key, self.default or None)

    def _find(self, name: str) -> type[PlugIn] | None:
        if name in self.classes or self.group is None:
            return self.classes.get(name)
        built_in = self.classes.places if isinstance(self.classes, Registry) else self.classes
        kind: type[PlugIn] | None = find_plug_in(self.group, name, built_in)
        if kind is not None:
            check_class(kind, self.protocol, name)
        return kind


def part_of(table: Table, kind: type[Part], only: Collection[str] | None = None) -> Part:
    """Build a frozen dataclass from the fields of a table that it has. ``only`` limits the fields."""
    keys = names(kind) if only is None else only
    return build_checked(kind, {key: value for key, value in table.items() if key in keys})


def names(*kinds: type[object]) -> set[str]:
    """Return the names of the fields of dataclasses, as recipes have them."""
    return {name for kind in kinds for name in keys_of(kind)}


def build_checked(kind: type[Part], values: object) -> Part:
    """Build a frozen dataclass from plain data. Raises ConfigError with the invalid field."""
    try:
        built: Part = adapter(kind).validate_python(values)  # type: ignore[arg-type]
    except ValidationError as error:
        raise ConfigError(_explain(error, kind)) from error
    return built


def refuse_unknown(table: Table, known_fields: Collection[str], owner: str) -> None:
    """Raise ConfigError, with the nearest match, at an unknown field."""
    for key in table:
        if key not in known_fields:
            raise ConfigError(
                f"{key}: {owner} has no such field.{did_you_mean(key, known_fields)} "
                f"Fields: {', '.join(sorted(known_fields))}."
            )


def refuse_empty_or_twice(values: Collection[object], field: str) -> None:
    """Raise ConfigError at an empty list, or one with duplicates."""
    if not values:
        raise ConfigError(f"{field}: the list is empty. Name at least one.")
    items = list(values)
    with suppress(TypeError):  # Tables have no hash, and there may be many seeds.
        if len(set(items)) == len(items):
            return
    for value in items:
        if items.count(value) > 1:
            raise ConfigError(f"{field}: {value!r} is named twice. Name it once.")


_PARTS = {"architecture": Architecture, "modules": Modules, "replay": Replay, "vocabulary": NewSubwords}
"""The tables within [encoder.pretrain], except the method's table."""


@cache
@collector_paused()
def adapter(kind: type[object]) -> TypeAdapter[Any]:
    """Return pydantic's adapter, which checks and builds a frozen dataclass of recipes."""
    strict = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
    for part in (kind, PretrainTable, EncoderTable, GridTable, *_PARTS.values()):
        if "__pydantic_config__" not in vars(part):
            setattr(part, "__pydantic_config__", strict)  # noqa: B010 (pydantic's name for it)
    return TypeAdapter(kind)


def _explain(error: ValidationError, kind: type[object]) -> str:
    # In a union, the alternative that got furthest is the one that was meant.
    details = max(
        error.errors(include_url=False),
        key=lambda candidate: (
            len(candidate["loc"]),
            candidate["type"] not in {"missing", "missing_argument"},
        ),
    )
    is_unknown = details["type"] in {"unexpected_keyword_argument", "extra_forbidden"}
    *outer, field = map(str, details["loc"] or ("",))
    keys = [part for part in outer if _is_of_recipes(part)]
    # An unknown field may have the name of a type or of a flattened field.
    keys += [field] if is_unknown or _is_of_recipes(field) else []
    name = _join_fields(keys) or kind.__name__
    if is_unknown:
        known_fields = _fields_at(kind, details["loc"])
        places = [
            f"{table}.{field}" for table in known_fields if field in _fields_at(kind, (*outer, table, field))
        ]
        suggestion = f" Did you mean {places[0]!r}?" if places else did_you_mean(field, known_fields)
        return f"{name}: no such field.{suggestion} Fields: {', '.join(sorted(known_fields))}."
    if details["type"] in {"missing", "missing_argument"}:
        return f"{name}: this field is missing. Add it to the recipe."
    return f"{name}: {describe_mismatch(details)} Correct it."


def _join_fields(keys: Iterable[str]) -> str:
    """Join fields and positions in lists, as in ``encoder[1].attention``."""
    return "".join(f"[{key}]" if key.isdecimal() else f".{key}" for key in keys if key).removeprefix(".")


def _is_of_recipes(part: str) -> bool:
    """Return whether a part of pydantic's location is a field in recipes, not a type of a union."""
    return not part[:1].isupper() and part not in _NOT_OF_RECIPES and not part.startswith("tuple[")


def _fields_at(kind: type[object], location: tuple[object, ...]) -> list[str]:
    """List the fields of the innermost table on the path to a location."""
    tables = {
        "encoder": EncoderTable,
        "pretrain": PretrainTable,
        "grid": GridTable,
        "conflict": Conflict,
        **_PARTS,
    }
    inner = [tables[part] for part in location[:-1] if part in tables]
    return list(keys_of(inner[-1] if inner else kind))


def _flat(table: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted keys of a scale, written flat or nested, and their values.

    An empty table is a value: it replaces a table of the recipe.
    """
    if not isinstance(table, dict) or (prefix and not table):
        yield prefix, table
        return
    for key, value in table.items():
        yield from _flat(value, f"{prefix}.{key}" if prefix else key)


def set_key(body: Table, path: list[str], value: object) -> None:
    """Set a field of a recipe's body in place, adding tables on the path to it."""
    inner: object = body
    for depth, part in enumerate(path):
        location = ".".join(path[:depth]) or "the recipe"
        if isinstance(inner, list) and not (part.isdecimal() and int(part) < len(inner)):
            raise ConfigError(
                f"{location} is a list of {len(inner)}, so it has no {part!r} to set. Count from 0."
            )
        if not isinstance(inner, dict | list):
            raise ConfigError(f"{location} is no table, so it has no {part!r} to set.")
        key: Any = int(part) if isinstance(inner, list) else part
        if depth == len(path) - 1:
            inner[key] = value
        else:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]


def _with_shared(body: Table) -> Table:
    """Return a recipe's body with the fields of [pretrain] added to each encoder.pretrain table.

    Tables within (architecture, method, modules, lines) are merged field by field; anything but a table is
    left to the checks of the recipe.
    """
    shared: object = body.get("pretrain")
    encoder: object = body.get("encoder")
    if not shared or not isinstance(shared, dict):
        return body
    tables = encoder if isinstance(encoder, list) else [encoder]
    if not any(_is_pretrained_here(item) for item in tables):
        raise ConfigError(
            "pretrain: its fields are shared by encoder.pretrain tables, and the recipe has none. "
            "Write [encoder.pretrain] for one encoder, or [[encoder]] with pretrain for each of several."
        )
    completed_tables = [
        {**table, "pretrain": _complete_pretrain(table["pretrain"], shared)}
        if _is_pretrained_here(table)
        else table
        for table in tables
    ]
    return {**body, "encoder": completed_tables if isinstance(encoder, list) else completed_tables[0]}


def _complete_pretrain(pretrain: Table, shared: Table) -> Table:
    """Add shared fields to a table. If it has a start, its architecture is the architecture of the start."""
    left_out = "architecture" if pretrain.get("start") else ""
    return merge_tables({key: value for key, value in shared.items() if key != left_out}, pretrain)


def _is_pretrained_here(table: object) -> TypeGuard[Table]:
    return isinstance(table, dict) and isinstance(table.get("pretrain"), dict)
