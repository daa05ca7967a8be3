"""A recipe: the TOML file that says an experiment, read, checked and turned into frozen values.

Everything is checked here, before anything trains: unknown fields and names are refused with the nearest
match, wrong types and ranges with what was found.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError

from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.runs import Architecture

Table = dict[str, Any]
OneOrMany = str | tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PretrainTable:
    """[encoder.pretrain]: an encoder made from text."""

    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[str, ...]
    """Languages of the text; the first is the pivot of the bitext."""
    bitext: str = ""
    """Corpus of translations for translation LM."""
    architecture: Architecture = field(default_factory=Architecture)
    """The shape of the encoder."""
    method: Table = field(default_factory=lambda: {"name": "masked-language-modelling"})
    """How it is trained; ``name`` and the method's fields."""
    seed: int = 0
    """Seed of initial weights, order and masks."""


@dataclass(frozen=True, kw_only=True)
class EncoderTable:
    """[encoder]: made here, or there already."""

    pretrain: PretrainTable | None = None
    """Make it from text."""
    pretrained: str = ""
    """ "shipped", a folder, or a name on the Hugging Face hub."""


@dataclass(frozen=True, kw_only=True)
class GridTable:
    """[grid]: the product of all lists."""

    corpus: OneOrMany
    """Corpora with labels."""
    task: str = ""
    """Task; the corpus's own when left out."""
    source: OneOrMany
    """Source languages, one after the other; "en+ar" trains on both at once."""
    targets: tuple[str, ...]
    """Target languages."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds; each makes its own head, order and dropout."""
    method: tuple[Table, ...]
    """Methods: ``name``, their fields, and any field of the optimization that differs."""
    optimization: Table = field(default_factory=dict)
    """Fields of the optimization for all methods; a list makes one grid point for each value."""
    treebanks: dict[str, str] = field(default_factory=dict)
    """Treebank of a language where the corpus has several."""
    examples: int = 0
    """Training examples of each language; 0 for all."""
    dev_examples: int = 0
    """Development examples of each language used to choose the epoch; 0 for all."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole recipe."""

    title: str
    """What the experiment asks, in a sentence."""
    encoder: str | EncoderTable | tuple[str | EncoderTable, ...] = "shipped"
    """The encoder or encoders."""
    grid: GridTable | None = None
    """What is fine-tuned; without it only encoders are made (and measured)."""
    measure: tuple[Table, ...] = ()
    """Diagnostics: ``name``, their fields, and which runs they look at."""
    scale: dict[str, Table] = field(default_factory=dict)
    """Named changes to the recipe (--scale): dotted keys and their values."""


def read_recipe(
    text: str, *, where: str, changes: Mapping[str, Any] | None = None, scale: str = ""
) -> Recipe:
    """Parse and check a recipe; ConfigError says the file, the field, what was found and what is allowed."""
    try:
        body = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: this is no TOML ({error}). Mend the line and run again.") from error
    if scale:
        scales = body.get("scale", {})
        if scale not in scales:
            raise unknown_name(f"{where}: scale", "scale", scale, scales or ["(this recipe has none)"])
        changes = {**scales[scale], **(changes or {})}
    for key, value in (changes or {}).items():
        _set(body, key.split("."), value, where)
    recipe: Recipe = checked(Recipe, body, where)
    return recipe


def read_recipe_file(
    path: Path, *, changes: Mapping[str, Any] | None = None, scale: str = ""
) -> tuple[Recipe, str]:
    """Read a recipe from a file; return it with its text."""
    if not path.is_file():
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.toml")])
        raise ConfigError(
            f"{path}: there is no such recipe.{near} Give a TOML file or the name of a packaged one."
        )
    text = path.read_text(encoding="utf-8")
    return read_recipe(text, where=path.name, changes=changes, scale=scale), text


def parse_change(text: str) -> tuple[str, Any]:
    """Read one --set key=value; the value is TOML, or a plain word."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {text}: expected key=value, as in --set grid.seeds=[0,1].")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def checked(kind: type[Any], values: object, where: str) -> Any:
    """Build a frozen dataclass from plain data; every mistake is a ConfigError naming the field."""
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, kind, where)) from error


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    _forbid_unknown(kind)
    return TypeAdapter(kind)


def _forbid_unknown(kind: type[Any]) -> None:
    strict = ConfigDict(extra="forbid", allow_inf_nan=False)
    for part in (kind, PretrainTable, EncoderTable, GridTable, Architecture):
        if "__pydantic_config__" not in vars(part):
            setattr(part, "__pydantic_config__", strict)  # noqa: B010 (pydantic's name for it)


def _explain(error: ValidationError, kind: type[Any], where: str) -> str:
    # Of the alternatives of a union, the one that got furthest is the one that was meant.
    first = max(
        error.errors(include_url=False),
        key=lambda one: (len(one["loc"]), one["type"] not in {"missing", "missing_argument"}),
    )
    place = [str(part) for part in first["loc"] if not _is_alternative(str(part))]
    name = ".".join(place) or kind.__name__
    if first["type"] in {"unexpected_keyword_argument", "extra_forbidden"}:
        known = _fields_at(kind, first["loc"])
        near = did_you_mean(place[-1], known)
        return f"{where}: {name}: no such field.{near} Fields: {', '.join(sorted(known))}."
    if first["type"] in {"missing", "missing_argument"}:
        return f"{where}: {name}: this field is missing. Add it to the recipe."
    return f"{where}: {name}: found {first['input']!r}; {first['msg'][0].lower()}{first['msg'][1:]}."


def _is_alternative(part: str) -> bool:
    """Tell whether a part of a place names a type that was tried, not a field."""
    return part[:1].isupper() or part in {"str", "int", "float"} or part.startswith("tuple[")


def _fields_at(kind: type[Any], place: tuple[Any, ...]) -> list[str]:
    """Name the fields of the innermost table on the way to a place."""
    tables = {
        "encoder": EncoderTable,
        "pretrain": PretrainTable,
        "grid": GridTable,
        "architecture": Architecture,
    }
    inner = [tables[part] for part in place[:-1] if part in tables]
    return [field.name for field in fields(inner[-1] if inner else kind)]


def _set(body: Table, path: list[str], value: object, where: str) -> None:
    *outer, last = path
    for depth, part in enumerate(outer):
        body = body.setdefault(part, {})
        if not isinstance(body, dict):
            raise ConfigError(
                f"{where}: {'.'.join(path[: depth + 1])} is no table, so it has no {last!r} to set."
            )
    body[last] = value
