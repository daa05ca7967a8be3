"""Plug-ins: entries of other packages in the tables of isogloss, and classes that recipes name by module.

A package declares an entry point of a group (``isogloss.methods``): a name, a module and an object in it.
Nothing is imported before its name is requested. A plug-in never replaces an entry of isogloss.
"""

import inspect
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import Distribution, EntryPoint, distribution, entry_points, packages_distributions
from importlib.util import find_spec
from pathlib import Path
from traceback import walk_tb
from typing import Any, Literal, Protocol, get_args

from isogloss.core.errors import ConfigError, IsoglossError, did_you_mean, one_line
from isogloss.core.processes import is_of_code
from isogloss.core.run_parts import values_of

Group = Literal[
    "methods",
    "tasks",
    "corpora",
    "diagnostics",
    "claims",
    "aligners",
    "translators",
    "families",
    "engines",
    "tables",
    "commands",
    "stores",
    "formats",
    "input_formats",
]
GROUPS: tuple[Group, ...] = get_args(Group)

PACKAGE = "isogloss"

_modules: dict[str, str] = {}
"""Top-level modules of the imported plug-ins, each with a plug-in's name for messages."""


def plugged_names(group: Group) -> list[str]:
    """Return the names that installed packages add to a table, sorted. Nothing is imported."""
    return sorted({entry.name for entry in _entries(group)})


def plugged_modules() -> frozenset[str]:
    """Return the top-level modules of the plug-ins of installed packages. Nothing is imported."""
    return frozenset(entry.module.partition(".")[0] for group in GROUPS for entry in _entries(group))


def find_plug_in(group: Group, name: str, built_in: Collection[str]) -> Any:
    """Import the object with a name in a group, from an entry point or by "module:object".

    Returns None for an unknown name. Raises ConfigError, with the package and its error, if the plug-in
    cannot be imported, its name differs from the entry point's name, or isogloss already has the name.
    """
    if ":" in name:
        return _import_plug_in(EntryPoint(name, name, PACKAGE), built_in)
    entries = [entry for entry in _entries(group) if entry.name == name]
    if len({entry.value for entry in entries}) > 1:
        several = " and ".join(sorted(f"{entry.value} of {_package(entry)}" for entry in entries))
        raise ConfigError(f"{name!r} is added by {several}. Name one of them: module:object.")
    return _import_plug_in(entries[0], built_in) if entries else None


def _import_plug_in(entry: EntryPoint, built_in: Collection[str]) -> object:
    module, _, attribute = entry.value.partition(":")
    where = f"plug-in {entry.value} of {_package(entry)}" if entry.dist else f"plug-in {entry.value}"
    if (top := module.partition(".")[0]) != PACKAGE:
        _modules.setdefault(top, where)
    try:
        owner = import_module(module)
    except BaseException as error:  # Whatever the code of others raises when it is imported.
        if not is_of_code(error):
            raise
        raise ConfigError(
            f"{where}: it cannot be imported ({one_line(error)}). Fix or install it, or remove it."
        ) from error
    if not hasattr(owner, attribute):
        suggestion = did_you_mean(attribute, vars(owner))
        raise ConfigError(f"{where}: module {module} has no {attribute!r}.{suggestion} Name what it has.")
    value = getattr(owner, attribute)
    name = getattr(value, "name", entry.name)
    for taken_name in {entry.name, name} & set(built_in):
        raise ConfigError(f"{where}: {taken_name!r} is a name of isogloss's own. Give it another.")
    if entry.dist and name != entry.name:
        raise ConfigError(
            f"{where}: it calls itself {name!r}, its entry point {entry.name!r}. Make them one."
        )
    return value


@contextmanager
def plug_ins_named() -> Iterator[None]:
    """Turn an error in a plug-in's code into a ConfigError that names the plug-in."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, IsoglossError) or not is_of_code(error) or not (where := _raised_in(error)):
            raise
        raise ConfigError(f"{where}. Fix it, or remove it.") from error


def _raised_in(error: BaseException) -> str:
    """Return the plug-in whose code raised an error, with the error and its line. Empty if none did."""
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        if where := _modules.get(str(frame.f_globals.get("__name__", "")).partition(".")[0]):
            return f"{where}: {one_line(error)} ({Path(frame.f_code.co_filename).name}:{line})"
    return ""


def add_module_folder(folder: Path) -> None:
    """Add a folder to the end of the search path of modules, also for processes started later."""
    path = str(folder.resolve())
    if path not in sys.path:
        sys.path.append(path)


def check_class(plug_in: Any, protocol: type[object], name: str) -> None:
    """Raise ConfigError unless a plug-in is a frozen dataclass with all members of a protocol.

    Its fields need defaults: titles and names of systems show the values that differ from them.
    """
    is_frozen = isinstance(plug_in, type) and is_dataclass(plug_in) and plug_in.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if not is_frozen:
        raise ConfigError(f"plug-in {name}: found {plug_in!r:.80}; expected a frozen dataclass.")
    check_value(plug_in, protocol, name)
    try:
        plug_in()
    except TypeError as error:
        raise ConfigError(f"plug-in {name}: {error}. Give each of its fields a default.") from error


def _members(protocol: type[object]) -> list[str]:
    bases = [
        base for base in protocol.__mro__ if base not in (object, Protocol) and base.__module__ != "typing"
    ]
    names = {name for base in bases for name in (*vars(base), *inspect.get_annotations(base))}
    return sorted(name for name in names if not name.startswith("_"))


def describe_plug_in(plug_in: type[object]) -> str:
    """Describe a plug-in's class by its docstring and its fields with their defaults."""
    summary = " ".join((plug_in.__doc__ or "").split())
    values = ", ".join(f"{name} = {value!r}" for name, value in values_of(plug_in()).items())
    return f"{summary} Fields: {values}." if values else summary


@cache
def package_of(module: str) -> str:
    """Return the package and version of a module. Empty for isogloss and Python.

    Code that changes without its version (in no package, or installed as editable) has a digest of its files.
    """
    return _origin(module.partition(".")[0])


def package_named(group: Group, name: str) -> str:
    """Return the package and version that add a name. Empty if no package adds it."""
    entries = [entry for entry in _entries(group) if entry.name == name]
    return _origin(entries[0].module.partition(".")[0], entries[0].dist) if entries else ""


def check_any(plug_in: object, protocols: Sequence[type[object]], name: str) -> None:
    """Raise ConfigError unless a plug-in, a class or a value, has all members of one of several protocols."""
    check = check_class if isinstance(plug_in, type) else check_value
    fitting = [
        protocol for protocol in protocols if all(hasattr(plug_in, name) for name in _members(protocol))
    ]
    check(plug_in, (fitting or protocols)[0], name)


def check_value(plug_in: object, protocol: type[object], name: str) -> None:
    """Raise ConfigError unless a plug-in has all members of a protocol."""
    lacking = {member for member in _members(protocol) if not hasattr(plug_in, member)}
    if missing := sorted(lacking | getattr(plug_in, "__abstractmethods__", frozenset())):
        raise ConfigError(
            f"plug-in {name}: it has no {', '.join(missing)}; a {protocol.__name__} has all of: "
            f"{', '.join(_members(protocol))}. Add them, or inherit from {protocol.__name__}."
        )


def stamp() -> str:
    """Return a text that changes with the plug-ins of installed packages. Nothing is imported."""
    return " ".join(
        f"{entry.group} {entry.name} {entry.value} {_origin(entry.module.partition('.')[0], entry.dist)}"
        for group in GROUPS
        for entry in _entries(group)
    )


def _origin(top: str, declared_by: Distribution | None = None) -> str:
    if top == PACKAGE or top in sys.stdlib_module_names:
        return ""
    names = () if declared_by else _all_packages(tuple(sys.path)).get(top, ())
    package = distribution(names[0]) if names else declared_by
    name = f"{package.name} {package.version}" if package else ""
    return (
        name
        if package and not _is_editable(package)
        else " ".join(text for text in (name, _digest(top)) if text)
    )


@cache
def _all_packages(_path: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
    return packages_distributions()


def _is_editable(package: Distribution) -> bool:
    direct_url = json.loads(package.read_text("direct_url.json") or "{}")
    return bool(direct_url.get("dir_info", {}).get("editable"))


def _digest(top: str) -> str:
    """Return a digest of a module's file, or of all files of a package. Empty for typed code."""
    digest = sha256()
    for path in sorted(_files(top)):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12] if list(_files(top)) else ""


def _files(top: str) -> Iterator[Path]:
    if top == "__main__":
        file = getattr(sys.modules[top], "__file__", None)
        yield from (Path(file),) if file else ()
        return
    spec = find_spec(top)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield from Path(folder).rglob("*.py")
    if spec and spec.has_location and spec.origin and not spec.submodule_search_locations:
        yield Path(spec.origin)


def _entries(group: Group) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group."""
    return _entries_by_group(tuple(sys.path))[group]


@cache
def _entries_by_group(_path: tuple[str, ...]) -> Mapping[Group, tuple[EntryPoint, ...]]:
    """Return the entry points of all groups, cached by the path of packages.

    Python reads all installed packages even for a single group.
    """
    entries = entry_points()
    return {group: tuple(entries.select(group=f"{PACKAGE}.{group}")) for group in GROUPS}


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else ""
