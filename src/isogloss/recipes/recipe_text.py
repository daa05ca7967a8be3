"""The text of a recipe: of a file or a packaged one, with what it extends, or written from Python's values.

What a recipe extends is there in its text: a plan, a report and the ids of runs know the result alone. Cheap
to import.
"""

import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from isogloss.core.errors import ConfigError, did_you_mean, located, unknown_name
from isogloss.core.paths import is_there

if TYPE_CHECKING:
    from isogloss.recipes.recipe import Recipe

Source: TypeAlias = "str | Path | Mapping[str, object] | Recipe"
"""A TOML file, the name of a packaged recipe, its tables as Python has them, or a ``Recipe``."""

EXTENDS = "extends"

PUBLISHED = "published"

PAPERS = "papers/"
"""How the names of recipes of the papers' tables and figures begin, and the folder they are in."""

IN_PYTHON = "recipe"
"""The name, in messages, of a recipe that is no file."""

QUICKSTART = "runs/quickstart"
"""The folder of the packaged recipe quickstart, and the default folder of runs that are named by ids."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def recipe_text(recipe: Source) -> tuple[str, str]:
    """Return the text of a recipe, with what it extends, and its name in messages."""
    if not isinstance(recipe, str | Path):
        return _extended(to_toml(as_table(recipe)), Path(), (IN_PYTHON,)), IN_PYTHON
    text, where, folder = _found(str(recipe))
    return _extended(text, folder, (where,)), where if where.startswith(PAPERS) else Path(recipe).name


def packaged_recipes() -> Mapping[str, Path]:
    """Return the files of the recipes that come with the package, by name: quickstart, papers/…/table-1."""
    return _recipes_in(Path(str(files("isogloss"))))


@cache
def _recipes_in(package: Path) -> Mapping[str, Path]:
    found = {path.stem: path for path in package.glob("recipes/packaged/*.toml")}
    of_papers = package.glob(f"{PAPERS}*/*.toml")
    found |= {path.relative_to(package).with_suffix("").as_posix(): path for path in of_papers}
    return dict(sorted(found.items()))


def folder_for(recipe: Source) -> Path:
    """Return the folder for a recipe's runs where none is named: one named after the recipe."""
    if not isinstance(recipe, str | Path):
        raise ConfigError("run: a recipe in Python has no file to name a folder after. Give out=FOLDER.")
    if str(recipe).startswith(PAPERS) and str(recipe) in packaged_recipes():
        return Path("runs", PAPERS, str(recipe).removeprefix(PAPERS).replace("/", "-"))
    return Path("runs") / Path(recipe).stem


def _found(name: str) -> tuple[str, str, Path]:
    """Return a recipe's text, what it is known by, and the folder that paths in it start from."""
    packaged = packaged_recipes()
    if name in packaged:
        return packaged[name].read_text(encoding="utf-8"), name, Path()
    is_name = len(Path(name).parts) == 1 or name.startswith(PAPERS)
    if Path(name).suffix or is_there(Path(name)) or not is_name:
        return _file_text(Path(name)), str(Path(name).resolve()), Path(name).parent
    raise unknown_name("run", "recipe", name, _near(name, packaged))


def _near(name: str, packaged: Mapping[str, Path]) -> list[str]:
    """List the packaged recipes a name may have meant: those of its paper, of all papers, or the others."""
    paper = [one for one in packaged if one.rpartition("/")[0] == name.rpartition("/")[0]]
    return paper or [one for one in packaged if one.startswith(PAPERS)]


def _extended(text: str, folder: Path, chain: tuple[str, ...]) -> str:
    """Return a recipe with the tables of the one it extends; ConfigError where that leads back to it."""
    try:
        body = from_toml(text)
    except ConfigError:
        return text  # Whoever reads it says what is wrong, and where.
    if EXTENDS not in body:
        return text
    base, where = body.pop(EXTENDS), Path(chain[-1]).name
    if not isinstance(base, str):
        raise ConfigError(f"{where}: {EXTENDS}: found {base!r:.60}; expected the file or name of one recipe.")
    beside = str(folder / base) if (folder / base).is_file() else base
    with located(f"{where}: {EXTENDS}"):
        other, known_by, its_folder = _found(beside)
    if known_by in chain:
        way = " → ".join(Path(one).name for one in (*chain, known_by))
        raise ConfigError(f"{where}: {EXTENDS}: {way} leads back to itself. Let one of them extend nothing.")
    with located(Path(known_by).name):
        first = from_toml(_extended(other, its_folder, (*chain, known_by)))
    numbers = first.get(PUBLISHED)
    if isinstance(numbers, str) and numbers and not _is_packaged(numbers, its_folder):
        of_paper = known_by.startswith(PAPERS)
        beside_it = Path(known_by).parent if of_paper else Path(os.path.relpath(its_folder, folder))
        first[PUBLISHED] = (beside_it / numbers).as_posix()
    return to_toml(merged(first, body))


def published_file(recipe: Source, name: str) -> Path:
    """Return the file of published numbers that a recipe names: beside it, or of a packaged recipe."""
    folder = recipe_folder(recipe)
    return (Path(str(files("isogloss"))) if _is_packaged(name, folder) else folder) / name


def _is_packaged(name: str, folder: Path) -> bool:
    """Tell whether published numbers are a file of the package; what is beside a recipe goes first."""
    return name.startswith(PAPERS) and not (folder / name).is_file()


def recipe_folder(recipe: Source) -> Path:
    """Return the folder of a recipe's file; of one in Python, the folder that Python is in."""
    if not isinstance(recipe, str | Path):
        return Path()
    return Path(packaged_recipes().get(str(recipe), recipe)).parent


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return two tables as one: tables within field by field; anything else, lists too, is the own one's."""
    found = {**base, **own}
    for key in base.keys() & own.keys():
        below, above = base[key], own[key]
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            found[key] = merged(below, above)
    return found


def as_table(value: object) -> Any:
    """Return tables and values of Python as TOML has them; a method or the like is a table with its name.

    What is None, or what its class says anyway, is left out; a class that is not of the house is named by its
    module.
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {**_named(type(value)), **{name: as_table(one) for name, one in _told(value)}}
    if isinstance(value, Mapping):
        return {str(key): as_table(one) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [as_table(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _named(kind: type[object]) -> dict[str, str]:
    name = getattr(kind, "name", None)
    if not isinstance(name, str):
        return {}
    ours = kind.__module__.startswith("isogloss.")
    return {"name": name if ours else f"{kind.__module__}:{kind.__qualname__}"}


def _told(value: Any) -> Iterator[tuple[str, object]]:
    for one in fields(value):
        own = getattr(value, one.name)
        default = one.default_factory() if one.default_factory is not MISSING else one.default
        if one.metadata.get("nested"):
            yield from _told(own)
        elif own is not None and own != default:
            yield one.name, own


def from_toml(text: str) -> dict[str, Any]:
    """Return the tables of TOML; ConfigError for a text that is not TOML."""
    try:
        return tomllib.loads(text)
    except ValueError as error:  # Also that of a number of thousands of digits.
        raise ConfigError(f"this is no TOML ({error}). Mend the line and run again.") from error
    except RecursionError as error:
        raise ConfigError(
            "its lists or tables stand in one another too deeply to be read. Write it flatter."
        ) from error


def to_toml(body: Mapping[str, object]) -> str:
    """Return tables as TOML, which reads back as the same tables; ConfigError for what TOML cannot say."""
    return "\n".join(_lines(body, ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Yield a table's values, then its tables, then its lists of tables, each under its head."""
    inside = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    lists = {key: value for key, value in table.items() if _of_tables(value)}
    for key in table:
        if key not in inside and key not in lists:
            yield f"{_key(key)} = {_value(table[key], '.'.join((*path, key)))}"
    for key, value in inside.items():
        yield from ("", f"[{'.'.join(map(_key, (*path, key)))}]", *_lines(value, (*path, key)))
    for key, values in lists.items():
        for value in values:
            yield from ("", f"[[{'.'.join(map(_key, (*path, key)))}]]", *_lines(value, (*path, key)))


def _of_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(one, Mapping) for one in value)


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
        return f"[{', '.join(_value(one, field) for one in value)}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(one, field)}' for key, one in value.items())} }}"
    raise ConfigError(
        f"{IN_PYTHON}: {field}: found {value!r:.60}; expected a text, a number, true or false, a list or a "
        f"table. Correct it."
    )


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)


def _file_text(path: Path) -> str:
    if path.is_dir():
        inside = sorted(other.name for other in path.glob("*.toml"))
        raise ConfigError(
            f"{path}: this is a folder, not a recipe. Give a TOML file"
            f"{', such as one of those in it: ' + ', '.join(inside[:6]) if inside else ''}."
        )
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*.toml")])
        raise ConfigError(
            f"{path}: there is no such recipe.{near} Give a TOML file or the name of a packaged one."
        ) from None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start + 1} is no UTF-8, so this is no recipe. Give a TOML file."
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check its permissions.") from error
