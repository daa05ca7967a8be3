"""The text of a recipe, read from a file or the package, or written from values of Python.

It includes the recipe that it extends. Plans, reports and ids of runs depend only on the merged text. This
module is cheap to import.
"""

import csv
import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib.resources import files
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from isogloss.core.errors import ConfigError, add_location, did_you_mean_file, unknown_name
from isogloss.core.records import Published, Value
from isogloss.core.untrusted import is_there, read_regular

if TYPE_CHECKING:
    from isogloss.recipes.recipe import Recipe

Source: TypeAlias = "str | Path | Mapping[str, object] | Recipe"
"""A TOML file, the name of a packaged recipe, its tables as dicts, or a ``Recipe``."""

EXTENDS = "extends"

PUBLISHED = "published"

PUBLISHED_COLUMNS = tuple(field.name for field in fields(Published))

REQUIRED_COLUMNS = ("scale", "system", "measure")
"""Columns of published numbers that no row may leave empty."""

KEY_COLUMNS = ("scale", "system", "inputs", "encoder", "language", "measure")
"""Columns that identify a published number."""

PAPERS = "papers/"
"""Prefix of the names of recipes of the papers' tables and figures, and their folder in the package."""

IN_PYTHON = "recipe"
"""The name, in messages, of a recipe that is not a file."""

QUICKSTART = "runs/quickstart"
"""The folder of the packaged recipe quickstart, and the default folder of runs that are named by ids."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def recipe_text(recipe: Source) -> tuple[str, str]:
    """Return the text of a recipe, with what it extends, and its name in messages."""
    if not isinstance(recipe, str | Path):
        return _extend(to_toml(as_table(recipe)), Path(), (IN_PYTHON,)), IN_PYTHON
    text, name, folder = _read(str(recipe))
    return _extend(text, folder, (name,)), name if name.startswith(PAPERS) else Path(recipe).name


def packaged_recipes() -> Mapping[str, Path]:
    """Return the files of the recipes that come with the package, by name: quickstart, papers/…/table-1."""
    return _recipes_in(Path(str(files("isogloss"))))


@cache
def _recipes_in(package: Path) -> Mapping[str, Path]:
    recipes = {path.stem: path for path in package.glob("recipes/packaged/*.toml")}
    paper_recipes = package.glob(f"{PAPERS}*/*.toml")
    recipes |= {path.relative_to(package).with_suffix("").as_posix(): path for path in paper_recipes}
    return dict(sorted(recipes.items()))


def folder_for(recipe: Source) -> Path:
    """Return the folder for a recipe's runs where none is named: one named after the recipe."""
    if not isinstance(recipe, str | Path):
        raise ConfigError("run: a recipe in Python has no file to name a folder after. Give out=FOLDER.")
    if str(recipe).startswith(PAPERS) and str(recipe) in packaged_recipes():
        return Path("runs", PAPERS, str(recipe).removeprefix(PAPERS).replace("/", "-"))
    return Path("runs") / Path(recipe).stem


def _read(name: str) -> tuple[str, str, Path]:
    """Return a recipe's text, its name or resolved path, and the folder that paths in it are relative to."""
    recipes = packaged_recipes()
    if name in recipes:
        return recipes[name].read_text(encoding="utf-8"), name, Path()
    is_name = len(Path(name).parts) == 1 or name.startswith(PAPERS)
    if Path(name).suffix or is_there(Path(name)) or not is_name:
        return _file_text(Path(name)), str(Path(name).resolve()), Path(name).parent
    raise unknown_name("run", "recipe", name, _near(name, recipes))


def _near(name: str, recipes: Mapping[str, Path]) -> list[str]:
    """List packaged recipes to suggest for a name: the recipes of its paper, or of all papers."""
    paper = [recipe for recipe in recipes if recipe.rpartition("/")[0] == name.rpartition("/")[0]]
    return paper or [recipe for recipe in recipes if recipe.startswith(PAPERS)]


def _extend(text: str, folder: Path, chain: tuple[str, ...]) -> str:
    """Merge a recipe with the one it extends. Raises ConfigError if recipes extend each other."""
    try:
        body = from_toml(text)
    except ConfigError:
        return text  # Its reader raises the error.
    if EXTENDS not in body:
        return text
    base = body.pop(EXTENDS)
    with add_location(f"{Path(chain[-1]).name}: {EXTENDS}"):
        if not isinstance(base, str):
            raise ConfigError(f"found {base!r:.60}; expected the file or name of one recipe.")
        base_text, name, base_folder = _read(str(folder / base) if (folder / base).is_file() else base)
        if name in chain:
            cycle = " → ".join(Path(recipe).name for recipe in (*chain, name))
            raise ConfigError(f"{cycle} leads back to itself. Let one of them extend nothing.")
    with add_location(Path(name).name):
        base_body = from_toml(_extend(base_text, base_folder, (*chain, name)))
    numbers = base_body.get(PUBLISHED)
    if isinstance(numbers, str) and numbers and not _is_packaged(numbers, base_folder):
        path = Path(name).parent if name.startswith(PAPERS) else Path(os.path.relpath(base_folder, folder))
        base_body[PUBLISHED] = (path / numbers).as_posix()
    return to_toml(merge_tables(base_body, body))


def published_file(recipe: Source, name: str) -> Path:
    """Return the file of published numbers that a recipe names: in its folder, or in the package."""
    folder = recipe_folder(recipe)
    return (Path(str(files("isogloss"))) if _is_packaged(name, folder) else folder) / name


def read_published(path: Path) -> list[dict[str, Value]]:
    """Return the rows of a CSV file of published numbers. Raises ConfigError with the file and the line."""
    try:
        text = read_regular(path).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"published: {path.name}: cannot be read ({error}). Put the file into the recipe's folder, or "
            f"leave the field out."
        ) from error
    reader, rows = csv.reader(StringIO(text), strict=True), list[dict[str, Value]]()
    try:
        header = next(reader, [])
        if tuple(header) != PUBLISHED_COLUMNS:
            raise ConfigError(
                f"{path.name}:1: found the columns {','.join(header)}; expected "
                f"{','.join(PUBLISHED_COLUMNS)}."
            )
        for cells in (line for line in reader if line):
            with add_location(f"{path.name}:{reader.line_num}"):
                rows.append(_published_row(cells))
    except csv.Error as error:
        raise ConfigError(f"{path.name}:{reader.line_num}: invalid CSV ({error}). Fix this line.") from error
    keys = [tuple(str(row[name]) for name in KEY_COLUMNS) for row in rows]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(f"{path.name}: {', '.join(key)}: this number occurs twice. Write it once.")
    return rows


def _published_row(cells: list[str]) -> dict[str, Value]:
    if len(cells) != len(PUBLISHED_COLUMNS):
        expected = f"{len(PUBLISHED_COLUMNS)}: {','.join(PUBLISHED_COLUMNS)}"
        raise ConfigError(f"found {len(cells)} cells; expected {expected}.")
    row = dict(zip(PUBLISHED_COLUMNS, (cell.strip() for cell in cells), strict=True))
    for name in REQUIRED_COLUMNS:
        if not row[name]:
            raise ConfigError(f"{name}: this cell is empty; every row needs it.")
    try:
        value = float(row["value"])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ConfigError(f"value: found {row['value']!r:.40}; expected a number such as 0.814.")
    return {**row, "value": value}


def _is_packaged(name: str, folder: Path) -> bool:
    """Return whether published numbers are a file of the package, and the recipe's folder has none."""
    return name.startswith(PAPERS) and not (folder / name).is_file()


def recipe_folder(recipe: Source) -> Path:
    """Return the folder of a recipe's file. For a recipe in Python, return the working directory."""
    if not isinstance(recipe, str | Path):
        return Path()
    return Path(packaged_recipes().get(str(recipe), recipe)).parent


def merge_tables(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables.

    Inner tables are merged field by field. Other values, lists included, are replaced.
    """
    table = {**base, **changes}
    for key in base.keys() & changes.keys():
        if isinstance(base[key], Mapping) and isinstance(changes[key], Mapping):
            table[key] = merge_tables(base[key], changes[key])
    return table


def as_table(value: object) -> Any:
    """Convert tables and values of Python to TOML's. A method or the like becomes a table with its name.

    None and defaults are omitted. A class of a different package is named by its module.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {**_name_part(type(value)), **{name: as_table(part) for name, part in _set_fields(value)}}
    if isinstance(value, Mapping):
        return {str(key): as_table(part) for key, part in value.items() if part is not None}
    if isinstance(value, list | tuple):
        return [as_table(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def _name_part(kind: type[object]) -> dict[str, str]:
    name = getattr(kind, "name", None)
    if not isinstance(name, str):
        return {}
    ours = kind.__module__.startswith("isogloss.")
    return {"name": name if ours else f"{kind.__module__}:{kind.__qualname__}"}


def _set_fields(value: Any) -> Iterator[tuple[str, object]]:
    """Yield the fields of a dataclass, and of nested values, that differ from their defaults."""
    for field in fields(value):
        part = getattr(value, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.metadata.get("nested"):
            yield from _set_fields(part)
        elif part is not None and part != default:
            yield field.name, part


MAX_TOML = 4 << 20
"""Characters of a recipe or description."""

MAX_KEY_PARTS = 50
"""Maximum number of parts of a key. Time and memory of Python's parser grow with their square."""

_PART = r"""(?>(?<![\w-])[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_LONG_KEY = re.compile(rf"{_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{{MAX_KEY_PARTS},}}")


def from_toml(text: str) -> dict[str, Any]:
    """Return the tables of TOML. Raises ConfigError for a text that is not TOML or is far too large."""
    if len(text) > MAX_TOML:
        raise ConfigError(f"{len(text):,} characters; expected at most {MAX_TOML:,}. Give a shorter file.")
    if match := _LONG_KEY.search(text):
        line = text.count("\n", 0, match.start()) + 1
        raise ConfigError(
            f"line {line}: the key {match.group()[:40]} … has more than {MAX_KEY_PARTS} parts. Shorten it."
        )
    try:
        return tomllib.loads(text)
    except ValueError as error:  # A number of thousands of digits also raises it.
        raise ConfigError(f"invalid TOML ({error}). Fix this line and run again.") from error
    except RecursionError as error:
        raise ConfigError("its lists or tables are nested too deeply. Flatten them.") from error


def to_toml(body: Mapping[str, object]) -> str:
    """Return tables as TOML, which reads back as the same tables.

    Raises ConfigError for values that TOML lacks.
    """
    return "\n".join(_lines(body, ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield a table's values, then its tables, then its lists of tables, with their headers."""
    inside = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lists = {key: value for key, value in table.items() if _is_list_of_tables(value)}
    for key in table:
        if key not in inside and key not in lists:
            yield f"{_key(key)} = {_value(table[key], '.'.join((*path, key)))}"
    for key, value in inside.items():
        yield from ("", f"[{'.'.join(map(_key, (*path, key)))}]", *_lines(value, (*path, key)))
    for key, values in lists.items():
        for value in values:
            yield from ("", f"[[{'.'.join(map(_key, (*path, key)))}]]", *_lines(value, (*path, key)))


def _is_list_of_tables(value: object) -> bool:
    return (
        isinstance(value, list | tuple) and bool(value) and all(isinstance(part, Mapping) for part in value)
    )


def _value(value: object, field: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_value(part, field) for part in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(part, field)}' for key, part in value.items())} }}"
    raise ConfigError(
        f"{IN_PYTHON}: {field}: found {value!r:.60}; expected a text, a number, true or false, a list or a "
        f"table. Correct it."
    )


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _file_text(path: Path) -> str:
    if path.is_dir():
        inside = sorted(entry.name for entry in path.glob("*.toml"))
        raise ConfigError(
            f"{path}: this is a folder, not a recipe. Give a TOML file"
            f"{', such as one of those in it: ' + ', '.join(inside[:6]) if inside else ''}."
        )
    try:
        return read_regular(path).decode()
    except FileNotFoundError:
        suggestion = did_you_mean_file(path.name, [entry.name for entry in path.parent.glob("*.toml")])
        raise ConfigError(
            f"{path}: no such recipe.{suggestion} Give a TOML file or the name of a packaged one."
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start + 1} is not UTF-8, so this is no recipe. Give a TOML file."
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check its permissions.") from error
