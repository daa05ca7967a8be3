"""A recipe: the TOML file that describes an experiment, read, checked and turned into frozen values.

Unknown fields and names are refused with the nearest match, wrong types and ranges with what was found.
"""

import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeGuard, TypeVar

from pydantic import AfterValidator, ConfigDict, TypeAdapter, ValidationError

from isogloss.core.errors import ConfigError, InputError, did_you_mean, unknown_name
from isogloss.core.languages import canonical_language
from isogloss.core.run_parts import (
    Architecture,
    Count,
    Modules,
    NewSubwords,
    Positive,
    Replay,
    TrainedPart,
    Whole,
    keys_of,
)
from isogloss.encoders.decoders import TextAttention
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
"""What was expected, by pydantic's error types."""

Table = dict[str, Any]
OneOrMany = str | tuple[str, ...]
Part = TypeVar("Part")
Language = Annotated[str, AfterValidator(canonical_language)]
"""A language, a pair or several joined by plus, as BCP 47 or FLORES write them: zh-Hant, eng_Latn."""


@dataclass(frozen=True, kw_only=True)
class PretrainTable:
    """[encoder.pretrain]: an encoder made from text."""

    start: str = ""
    """The encoder that is trained further: "shipped", a folder, a hub name (name@revision), or the label of
    another encoder of the recipe; a new one is made when left out."""
    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[Language, ...]
    """Languages of the text; the first is the pivot of the bitext."""
    bitext: str = ""
    """Corpus of translations for translation LM."""
    lines: dict[str, Positive] = field(default_factory=dict)
    """At most so many lines of a language, drawn at random from the seed (a low-resource copy of it); all of
    the languages left out."""
    architecture: Architecture | None = None
    """The shape of a new encoder, with defaults of its own; with ``start`` it is that of the start."""
    vocabulary: NewSubwords | None = None
    """Subwords that the start gains, learned from the text of ``languages``; none when left out."""
    replay: Replay | None = None
    """Text in languages that the start knows, mixed in so that it does not forget them."""
    modules: Modules | None = None
    """Modules each language has of its own; all is shared when left out. A start that has such modules gets
    those of the languages it lacks."""
    trained: TrainedPart | None = None
    """modules: those of the languages alone are trained, and all else stays as it is in the start; layers:
    all but the embeddings; all is trained when left out."""
    method: Table = field(default_factory=lambda: {"name": "masked-language-modelling"})
    """How it is trained: ``name`` and the method's fields."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of initial weights, order, masks, and the lines drawn; a list makes an encoder for each, and a
    model of the grid starts from the encoder of its own seed."""


@dataclass(frozen=True, kw_only=True)
class EncoderTable:
    """[encoder]: pretrained by the recipe, or existing."""

    pretrain: PretrainTable | None = None
    """Make it from text."""
    pretrained: str = ""
    """ "shipped", a folder, or a name on the Hugging Face hub (name@revision for a branch, tag or commit)."""
    attention: TextAttention | None = None
    """Of a decoder: causal (a subword attends to those before it) or bidirectional (the mask is lifted); as
    its config.json says when left out."""
    label: str = ""
    """Its name in methods and tables; "original" when left out."""


@dataclass(frozen=True, kw_only=True)
class AdjustTable:
    """The fields of an [[adjust]] table besides the method's own; each table makes one more encoder."""

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
    """Name of the new encoder in methods and tables; the method's name (and size) when left out."""
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
    peft: Table = field(default_factory=dict)
    """Which weights are trained: ``kind`` (lora, dora, ia3 …) and its fields; all when left out."""
    examples: Count = 0
    """Training examples of each language; 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language used to choose the epoch; 0 for all."""


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """The fields of a [[grid.method]] table besides the method's own and the optimization's."""

    name: str
    """The method."""
    label: str = ""
    """Its name in measurements; the method's name when left out."""
    sources: tuple[Language, ...] = ()
    """Those of the grid's sources it is trained from; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets it is trained for; all when left out."""
    start: str = ""
    """Label of the method whose model it starts from; the encoder when left out."""
    auxiliary: Table = field(default_factory=dict)
    """A loss added to the method's own: ``name`` and the loss's fields; none when left out."""
    peft: Table = field(default_factory=dict)
    """Which weights it trains, instead of what the grid says: { kind = "none" } is all of them."""
    encoders: tuple[str, ...] = ()
    """Labels of the encoders it starts from ("original" where an encoder has none); all when left out."""


@dataclass(frozen=True, kw_only=True)
class MeasureTable:
    """The fields of a [[measure]] table besides the diagnostic's own: which runs are measured."""

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
    """Those of the grid's tasks that are measured; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets that are measured; all when left out."""
    seeds: tuple[Whole, ...] = ()
    """Those of the grid's seeds that are measured; all when left out."""
    methods: tuple[str, ...] = ()
    """Those of the grid's methods, by label, that are measured; all when left out."""
    encoders: tuple[str, ...] = ()
    """Those of the recipe's encoders, by label, that are measured, or whose models are; all when left out."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A whole recipe."""

    title: str
    """What the experiment asks, in a sentence."""
    encoder: str | EncoderTable | tuple[str | EncoderTable, ...] = "shipped"
    """The encoder or encoders."""
    pretrain: Table = field(default_factory=dict)
    """Fields shared by the recipe's encoder.pretrain tables."""
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
    """Diagnostics: ``name``, their fields, and which runs they measure."""
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
        refuse_unknown(body["pretrain"], names(PretrainTable), "pretraining", f"{where}: pretrain")
    return checked(Recipe, _with_shared(body, where), where)


def plug_in(
    table: Table, kinds: Mapping[str, type[Part]], what: str, where: str, default: str = ""
) -> type[Part]:
    """Return the class a table names; ConfigError, with the nearest match, for an unknown name."""
    name = table.get("name", default or None)
    if not isinstance(name, str) or name not in kinds:
        raise unknown_name(where, what, str(name), kinds)
    return kinds[name]


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
            built: Part = _adapter(kind).validate_python(values)  # type: ignore[arg-type]
            return built
    except ValidationError as error:
        raise ConfigError(_explain(error, kind, where)) from error


@contextmanager
def located(where: str) -> Iterator[None]:
    """Prefix errors with the place in the recipe."""
    try:
        yield
    except InputError as error:
        raise type(error)(f"{where}: {error}") from error


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
def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    strict = ConfigDict(extra="forbid", allow_inf_nan=False)
    for part in (kind, PretrainTable, EncoderTable, GridTable, *_PARTS.values()):
        if "__pydantic_config__" not in vars(part):
            setattr(part, "__pydantic_config__", strict)  # noqa: B010 (pydantic's name for it)
    return TypeAdapter(kind)


def _explain(error: ValidationError, kind: type[Any], where: str) -> str:
    # Of the alternatives of a union, the one that got furthest is the one that was meant.
    first = max(
        error.errors(include_url=False),
        key=lambda one: (len(one["loc"]), one["type"] not in {"missing", "missing_argument"}),
    )
    place = [
        str(part)
        for part in first["loc"]
        if part not in {"training", "updates"} and not _is_alternative(str(part))
    ]
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
    """Return whether a part of a location names a type that was tried, not a field."""
    return part[:1].isupper() or part in {"str", "int", "float"} or part.startswith("tuple[")


def _fields_at(kind: type[Any], place: tuple[Any, ...]) -> list[str]:
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
    """Yield the dotted keys of a scale and their values, whether it was written flat or nested."""
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


def _with_shared(body: Table, where: str) -> Table:
    """Return a recipe's body with the fields of [pretrain] added to each encoder.pretrain table.

    Tables within (architecture, method, modules, lines) are merged field by field; what is no table is
    left to the recipe's own checks.
    """
    shared: Any = body.get("pretrain")
    encoder: Any = body.get("encoder")
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
    """Merge two tables, and the tables within; the first one's values win.

    With a start of its own a table has that one's architecture, and takes none from what is shared.
    """
    if own.get("start"):
        shared = {key: value for key, value in shared.items() if key != "architecture"}
    found = {**shared, **own}
    for key in own.keys() & shared.keys():
        if isinstance(own[key], dict) and isinstance(shared[key], dict):
            found[key] = _completed(own[key], shared[key])
    return found


def _is_pretrained_here(table: object) -> TypeGuard[Table]:
    return isinstance(table, dict) and isinstance(table.get("pretrain"), dict)
