"""A recipe: the TOML file that says an experiment, read, checked and turned into frozen values.

Everything is checked here, before anything trains: unknown fields and names are refused with the nearest
match, wrong types and ranges with what was found.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from isogloss.core.errors import ConfigError, InputError, did_you_mean, unknown_name
from isogloss.core.languages import canonical_language
from isogloss.core.runs import Architecture, Count, Modules, Positive, Whole
from isogloss.experiments.shared_fields import with_shared
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
    "tuple_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}
"""What pydantic expects, by its names for what is wrong."""

Table = dict[str, Any]
OneOrMany = str | tuple[str, ...]
Language = Annotated[str, AfterValidator(canonical_language)]
"""A language, a pair or several joined by plus, as BCP 47 or FLORES write them: zh-Hant, eng_Latn."""


@dataclass(frozen=True, kw_only=True)
class PretrainTable:
    """[encoder.pretrain]: an encoder made from text."""

    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[Language, ...]
    """Languages of the text; the first is the pivot of the bitext."""
    bitext: str = ""
    """Corpus of translations for translation LM."""
    lines: dict[str, Positive] = field(default_factory=dict)
    """At most so many lines of a language, drawn at random from the seed (a low-resource copy of it); all of
    the languages left out."""
    architecture: Architecture = field(default_factory=Architecture)
    """The shape of the encoder."""
    modules: Modules | None = None
    """What each language has for itself; without, all is shared."""
    method: Table = field(default_factory=lambda: {"name": "masked-language-modelling"})
    """How it is trained; ``name`` and the method's fields."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of initial weights, order, masks, and the lines drawn; a list makes an encoder for each, and a
    model of the grid starts from the encoder of its own seed."""


@dataclass(frozen=True, kw_only=True)
class EncoderTable:
    """[encoder]: made here, or there already."""

    pretrain: PretrainTable | None = None
    """Make it from text."""
    pretrained: str = ""
    """ "shipped", a folder, or a name on the Hugging Face hub."""
    label: str = ""
    """What methods and tables call it; "original" when left out."""


@dataclass(frozen=True, kw_only=True)
class AdjustTable:
    """What an [[adjust]] table may say beside the method's own fields: each makes one more encoder."""

    name: str
    """How the encoder is adjusted."""
    bitext: str
    """Corpus of translations ("bitext:bible")."""
    pairs: tuple[Language, ...]
    """Pairs of languages, the source first: "en-es"."""
    examples: Count | tuple[Count, ...] = 0
    """Translations of each pair, the first ones; 0 for all; a list makes one encoder for each size."""
    start: str = "original"
    """Label of the encoder it starts from."""
    label: str = ""
    """What methods and tables call the new encoder; the name (and size) when left out."""
    seed: Whole = 0
    """Seed of the order and of dropout."""


@dataclass(frozen=True, kw_only=True)
class GridTable:
    """[grid]: the product of all lists."""

    corpus: OneOrMany
    """Corpora with labels."""
    task: OneOrMany = ()
    """Tasks, each on the corpora that have labels for it; a corpus's own when left out."""
    source: Language | tuple[Language, ...]
    """Source languages, one after the other; "en+ar" trains on both at once."""
    targets: tuple[Language, ...]
    """Target languages, one after the other; "de+fr" trains for both at once."""
    seeds: tuple[Whole, ...] = (0, 1, 2)
    """Seeds; each makes its own head, order and dropout."""
    method: tuple[Table, ...]
    """Methods: ``name``, their fields, and any field of the optimization that differs."""
    optimization: Table = field(default_factory=dict)
    """Fields of the optimization for all methods; a list makes one grid point for each value."""
    treebanks: dict[Language, str] = field(default_factory=dict)
    """Treebank of a language where a corpus has several."""
    examples: Count = 0
    """Training examples of each language; 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language used to choose the epoch; 0 for all."""


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """What a [[grid.method]] table may say beside the method's own fields and the optimization's."""

    name: str
    """The method."""
    label: str = ""
    """What measurements call it; its name when left out."""
    sources: tuple[Language, ...] = ()
    """Those of the grid's sources it is trained from; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets it is trained for; all when left out."""
    start: str = ""
    """Label of the method whose model it goes on from; it starts from the encoder when left out."""
    encoders: tuple[str, ...] = ()
    """Labels of the encoders it starts from ("original" where an encoder has none); all when left out."""


@dataclass(frozen=True, kw_only=True)
class MeasureTable:
    """What a [[measure]] table may say beside the diagnostic's own fields: which runs it looks at."""

    name: str
    """The diagnostic."""
    split: str = "dev"
    """Split it reads."""
    examples: Count = 0
    """Examples of each language; 0 for all."""
    corpus: str = ""
    """Corpus they are looked at on: bitext for encoders (for cka and representation-map a parallel test set
    too); for models, another one of their task than the grid's ("mlqa:de" has German questions)."""
    languages: tuple[Language, ...] = ()
    """Languages looked at (for encoders the first with each other); the recipe's when left out."""
    treebanks: str | dict[Language, str] = field(default_factory=dict)
    """Treebank of all languages, or of each, where the corpus has several; the grid's when left out."""
    inputs: str = ""
    """How target inputs come: as they are (""), "translated" into the source (translate-test), "paired"
    with their translations (models of x-mixup alone), or with a part in the source language: "mixed" (one
    text of a pair, at random), "mixed-first", "mixed-second", "mixed-question", "mixed-passage"."""
    tasks: tuple[str, ...] = ()
    """Those of the grid's tasks it looks at; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets it looks at; all when left out."""
    seeds: tuple[Whole, ...] = ()
    """Those of the grid's seeds it looks at; all when left out."""
    methods: tuple[str, ...] = ()
    """Those of the grid's methods, by label, it looks at; all when left out."""
    encoders: tuple[str, ...] = ()
    """Those of the recipe's encoders, by label, it looks at, or at whose models; all when left out."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole recipe."""

    title: str
    """What the experiment asks, in a sentence."""
    encoder: str | EncoderTable | tuple[str | EncoderTable, ...] = "shipped"
    """The encoder or encoders."""
    pretrain: Table = field(default_factory=dict)
    """What the recipe's encoder.pretrain tables have in common: each has its own fields and these."""
    align: Table = field(default_factory=dict)
    """How the words of bitext are aligned: ``name`` (fast-align when left out) and the aligner's fields."""
    translate: Table = field(default_factory=dict)
    """How examples are translated: ``name`` (a translator), its fields, its model; without this table
    translations are read from the corpora's own files."""
    adjust: tuple[Table, ...] = ()
    """Encoders that are adjusted: ``name``, the method's fields, and the bitext."""
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
    except RecursionError as error:
        raise ConfigError(
            f"{where}: its lists or tables stand in one another too deeply to be read. Write it flatter."
        ) from error
    if scale:
        scales = body.get("scale", {})
        if not isinstance(scales, dict) or scale not in scales:
            raise unknown_name(f"{where}: --scale", "scale", scale, scales or ["(this recipe has none)"])
        for key, value in _flat(scales[scale]):
            _set(body, key.split("."), value, f"{where}: scale.{scale}")
    for key, value in (changes or {}).items():
        _set(body, key.split("."), value, where)
    if isinstance(body.get("pretrain"), dict):
        known = {one.name for one in fields(PretrainTable)}
        refuse_unknown(body["pretrain"], known, "pretraining", f"{where}: pretrain")
    recipe: Recipe = checked(Recipe, with_shared(body, where), where)
    return recipe


def checked(kind: type[Any], values: object, where: str) -> Any:
    """Build a frozen dataclass from plain data; every mistake is a ConfigError naming the field."""
    try:
        with located(where):
            return _adapter(kind).validate_python(values)
    except ValidationError as error:
        raise ConfigError(_explain(error, kind, where)) from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Put the place in the recipe before the message of whatever is found wrong inside."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


def refuse_unknown(table: Table, known: Collection[str], what: str, where: str) -> None:
    """Raise ConfigError, with the nearest match, at a field that nobody reads."""
    for key in table:
        if key not in known:
            raise ConfigError(
                f"{where}: {key}: {what} has no such field.{did_you_mean(key, known)} "
                f"Fields: {', '.join(sorted(known))}."
            )


def refuse_empty_or_twice(values: Collection[object], where: str) -> None:
    """Raise ConfigError at a list with nothing in it, or with one thing twice."""
    if not values:
        raise ConfigError(f"{where}: the list is empty. Name at least one.")
    listed = list(values)
    for value in listed:
        if listed.count(value) > 1:
            raise ConfigError(f"{where}: {value!r} is named twice. Name it once.")


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
    expected = _EXPECTED.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    return f"{where}: {name}: found {repr(first['input'])[:60]}; expected {expected}. Correct the recipe."


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
        "conflict": Conflict,
    }
    inner = [tables[part] for part in place[:-1] if part in tables]
    return [field.name for field in fields(inner[-1] if inner else kind)]


def _flat(table: object, before: str = "") -> Iterator[tuple[str, object]]:
    """Give the dotted keys of a scale and their values, whether it was written flat or nested."""
    if not isinstance(table, dict):
        yield before, table
        return
    for key, value in table.items():
        yield from _flat(value, f"{before}.{key}" if before else key)


def _set(body: Table, path: list[str], value: object, where: str) -> None:
    inner: Any = body
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
