"""Reading recipes: TOML is parsed, checked, and turned into frozen values.

Unknown fields and names are refused with the nearest match, wrong types and ranges with what was found.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import Any, TypeGuard, TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError

from isogloss.core.errors import ConfigError, check_named, did_you_mean, located, unknown_name
from isogloss.core.plug_ins import Group, check_class, find_plug_in, plugged_names
from isogloss.core.run_parts import Architecture, Modules, NewSubwords, Replay, keys_of
from isogloss.recipes.recipe import EncoderTable, GridTable, PretrainTable, Recipe, Table
from isogloss.recipes.recipe_text import from_toml, merged
from isogloss.training.gradient_conflict import Conflict

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "literal_error": "{expected}",
    "tuple_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
"""What was expected, by pydantic's error types."""

_QUOTED = re.compile(r"'([^']+)'")
"""The names that an expectation lists."""

_NOT_OF_RECIPES = frozenset({"str", "int", "float", "training", "updates"})
"""Parts of pydantic's locations: types that were tried, and fields whose own fields stand in their place."""

Part = TypeVar("Part")


def read_recipe(
    text: str,
    *,
    where: str,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    prepare: Callable[[Table], Table] = dict,
) -> Recipe:
    """Parse and check a recipe; ConfigError says the file, the field, what was found and what is allowed.

    ``prepare`` may change its body before it is checked.
    """
    body = from_toml(text, where)
    if scale:
        scales = body.get("scale", {})
        known = scales if isinstance(scales, dict) else {}
        check_named(f"{where}: --scale", "scale", known or ["(this recipe has none)"], scale)
        for key, value in _flat(known[scale]):
            set_key(body, key.split("."), value, f"{where}: scale.{scale}")
    for key, value in (changes or {}).items():
        set_key(body, key.split("."), value, where)
    if isinstance(body.get("pretrain"), dict):
        refuse_unknown(body["pretrain"], names(PretrainTable), "pretraining", f"{where}: pretrain")
    return checked(Recipe, _with_shared(prepare(body), where), where)


Added = tuple[Group, type[object]]
"""The group of entry points that add to a table, and the protocol of what they add."""


def plug_in(
    table: Table,
    kinds: Mapping[str, type[Part]],
    what: str,
    where: str,
    *,
    default: str = "",
    added: Added | None = None,
) -> type[Part]:
    """Return the class a table names; ConfigError, with the nearest match, for an unknown name.

    ``added`` says whose plug-ins it may name besides.
    """
    name = table.get("name", default or None)
    if isinstance(name, str) and (found := named(name, kinds, where, added)):
        return found
    known = [*kinds, *(plugged_names(added[0]) if added else ())]
    if name is None:
        raise missing_name(f"{where}: name", known)
    raise unknown_name(where, what, str(name), known)


def missing_name(where: str, known: Collection[str]) -> ConfigError:
    """Build the error for a table that does not name what it describes."""
    return ConfigError(
        f"{where}: this field is missing. Add it to the recipe: one of {', '.join(sorted({*known}))}."
    )


def named(name: str, kinds: Mapping[str, type[Part]], where: str, added: Added | None) -> type[Part] | None:
    """Return the class of a name, of the house or of a plug-in, whose code is imported; None for none."""
    if name in kinds or added is None:
        return kinds.get(name)
    with located(where):
        found: type[Part] | None = find_plug_in(added[0], name, kinds)
        if found is not None:
            check_class(found, added[1], name)
    return found


def part_of(table: Table, kind: type[Part], where: str, only: Collection[str] | None = None) -> Part:
    """Build a frozen dataclass from its fields in a table that holds those of others too.

    ``only`` names the fields it may take from there; all of its own when left out.
    """
    own = names(kind) if only is None else only
    return checked(kind, {key: value for key, value in table.items() if key in own}, where)


def names(*kinds: type[object]) -> set[str]:
    """Return the names of the fields of dataclasses, as recipes have them."""
    return {name for kind in kinds for name in keys_of(kind)}


def checked(kind: type[Part], values: object, where: str) -> Part:
    """Build a frozen dataclass from plain data; every mistake is a ConfigError naming the field."""
    try:
        with located(where):
            built: Part = adapter(kind).validate_python(values)  # type: ignore[arg-type]
            return built
    except ValidationError as error:
        raise ConfigError(_explain(error, kind, where)) from error


def refuse_unknown(table: Table, known: Collection[str], what: str, where: str) -> None:
    """Raise ConfigError, with the nearest match, at an unknown field."""
    for key in table:
        if key not in known:
            raise ConfigError(
                f"{where}: {key}: {what} has no such field.{did_you_mean(key, known)} "
                f"Fields: {', '.join(sorted(known))}."
            )


def refuse_empty_or_twice(values: Collection[object], where: str) -> None:
    """Raise ConfigError at an empty list, or one with duplicates."""
    if not values:
        raise ConfigError(f"{where}: the list is empty. Name at least one.")
    listed = list(values)
    for value in listed:
        if listed.count(value) > 1:
            raise ConfigError(f"{where}: {value!r} is named twice. Name it once.")


_PARTS = {"architecture": Architecture, "modules": Modules, "replay": Replay, "vocabulary": NewSubwords}
"""The tables within [encoder.pretrain], besides that of the method."""


@cache
def adapter(kind: type[object]) -> TypeAdapter[Any]:
    """Return what checks and builds a frozen dataclass of recipes."""
    strict = ConfigDict(extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
    for part in (kind, PretrainTable, EncoderTable, GridTable, *_PARTS.values()):
        if "__pydantic_config__" not in vars(part):
            setattr(part, "__pydantic_config__", strict)  # noqa: B010 (pydantic's name for it)
    return TypeAdapter(kind)


def _explain(error: ValidationError, kind: type[object], where: str) -> str:
    # Of the alternatives of a union, the one that got furthest is the one that was meant.
    first = max(
        error.errors(include_url=False),
        key=lambda one: (len(one["loc"]), one["type"] not in {"missing", "missing_argument"}),
    )
    unknown = first["type"] in {"unexpected_keyword_argument", "extra_forbidden"}
    *outer, last = map(str, first["loc"] or ("",))
    place = [one for one in outer if _is_of_recipes(one)]
    # An unknown field may have the name of a type, or of what is no table in recipes.
    place += [last] if unknown or _is_of_recipes(last) else []
    name = ".".join(filter(None, place)) or kind.__name__
    if unknown:
        known = _fields_at(kind, first["loc"])
        within = [f"{table}.{last}" for table in known if last in _fields_at(kind, (*outer, table, last))]
        near = f" Did you mean {within[0]!r}?" if within else did_you_mean(last, known)
        return f"{where}: {name}: no such field.{near} Fields: {', '.join(sorted(known))}."
    if first["type"] in {"missing", "missing_argument"}:
        return f"{where}: {name}: this field is missing. Add it to the recipe."
    expected = _EXPECTED.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    near = did_you_mean(str(first["input"]), _QUOTED.findall(expected))
    return f"{where}: {name}: found {repr(first['input'])[:60]}; expected {expected}.{near} Correct it."


def _is_of_recipes(part: str) -> bool:
    """Return whether a part of a location is a field as recipes have it, not a type that was tried."""
    return not part[:1].isupper() and part not in _NOT_OF_RECIPES and not part.startswith("tuple[")


def _fields_at(kind: type[object], place: tuple[object, ...]) -> list[str]:
    """List the fields of the innermost table on the way to a location."""
    tables = {
        "encoder": EncoderTable,
        "pretrain": PretrainTable,
        "grid": GridTable,
        "conflict": Conflict,
        **_PARTS,
    }
    inner = [tables[part] for part in place[:-1] if part in tables]
    return list(keys_of(inner[-1] if inner else kind))


def _flat(table: object, before: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted keys of a scale and their values, whether it was written flat or nested.

    An empty table is a value, which empties one of the recipe.
    """
    if not isinstance(table, dict) or (before and not table):
        yield before, table
        return
    for key, value in table.items():
        yield from _flat(value, f"{before}.{key}" if before else key)


def set_key(body: Table, path: list[str], value: object, where: str) -> None:
    """Set a field of a recipe's body in place, tables on the way to it included."""
    inner: object = body
    for depth, part in enumerate(path):
        here = ".".join(path[:depth]) or "the recipe"
        if isinstance(inner, list) and not (part.isdecimal() and int(part) < len(inner)):
            raise ConfigError(
                f"{where}: {here} is a list of {len(inner)}, so it has no {part!r} to set. Count from 0."
            )
        if not isinstance(inner, dict | list):
            raise ConfigError(f"{where}: {here} is no table, so it has no {part!r} to set.")
        key: Any = int(part) if isinstance(inner, list) else part
        if depth == len(path) - 1:
            inner[key] = value
        else:
            inner = inner.setdefault(key, {}) if isinstance(inner, dict) else inner[key]


def _with_shared(body: Table, where: str) -> Table:
    """Return a recipe's body with the fields of [pretrain] added to each encoder.pretrain table.

    Tables within (architecture, method, modules, lines) are merged field by field; what is no table is
    left to the recipe's own checks.
    """
    shared: object = body.get("pretrain")
    encoder: object = body.get("encoder")
    if not shared or not isinstance(shared, dict):
        return body
    tables = encoder if isinstance(encoder, list) else [encoder]
    if not any(map(_is_pretrained_here, tables)):
        raise ConfigError(
            f"{where}: pretrain: it says what encoder.pretrain tables have in common, and there is none. "
            f"Write [encoder.pretrain] for one encoder, or [[encoder]] with pretrain for each of several."
        )
    filled = [
        {**one, "pretrain": _completed(one["pretrain"], shared)} if _is_pretrained_here(one) else one
        for one in tables
    ]
    return {**body, "encoder": filled if isinstance(encoder, list) else filled[0]}


def _completed(own: Table, shared: Table) -> Table:
    """Merge two tables; one with a start of its own has the architecture of that."""
    left_out = "architecture" if own.get("start") else ""
    return merged({key: value for key, value in shared.items() if key != left_out}, own)


def _is_pretrained_here(table: object) -> TypeGuard[Table]:
    return isinstance(table, dict) and isinstance(table.get("pretrain"), dict)
