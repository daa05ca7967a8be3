"""Tables of the parts of isogloss by name, which import a part on first use.

Features of isogloss and installed packages (``plug_ins``) add entries to tables. These are also imported on
first use, so a broken package causes an error only where a recipe or a caller names it. A feature
is a folder of ``isogloss/features`` with a file ``feature.toml``, which lists names and objects by table.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from isogloss.core.plug_ins import Group, check_any, find_plug_in, plugged_names

Entry = TypeVar("Entry", covariant=True)

FEATURES = Path(__file__).parents[1] / "features"
DECLARATION = "feature.toml"


class Registry(Mapping[str, Entry]):
    """Mapping from names to objects. A lookup imports the object's module. Names and summaries do not."""

    def __init__(
        self,
        places: Mapping[str, str],
        group: Group | None = None,
        interface: str = "",
        features: str = "",
    ) -> None:
        """Make a table.

        ``places`` maps the names of isogloss to "module:object". ``group`` is the group of entry points by
        which packages add names. ``interface`` is the "module:class" of the protocol that their objects
        implement. ``features`` is the name of the table in the declarations of features. Default: ``group``.
        """
        self.places = {**places, **feature_entries(features or group or "")}
        self.group = group
        self.interface = interface

    def __getitem__(self, name: str) -> Entry:
        """Import the object with a name.

        Raises KeyError for an unknown name, ConfigError for a broken package.
        """
        if name in self.places:
            entry: Entry = _import_object(self.places[name])
        else:
            entry = self._import_plug_in(name)
        return entry

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the table."""
        return name in self.places or name in self._plugged_names()

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names in the order of the table, names of packages last."""
        yield from self.places
        yield from (name for name in self._plugged_names() if name not in self.places)

    def __len__(self) -> int:
        """Return the number of names."""
        return sum(1 for _ in self)

    def import_interface(self) -> type[object]:
        """Import the protocol that objects of packages implement. Default: ``object``."""
        interface: type[object] = _import_object(self.interface) if self.interface else object
        return interface

    def _import_plug_in(self, name: str) -> Any:
        plug_in = find_plug_in(self.group, name, self.places) if self.group else None
        if plug_in is None:
            raise KeyError(name)
        check_any(plug_in, [self.import_interface()], name)
        return plug_in

    def _plugged_names(self) -> list[str]:
        return plugged_names(self.group) if self.group else []

    def read_summary(self, name: str) -> str:
        """Return the first paragraph of an object's docstring, read from the source of its module."""
        nodes = self._find_definition(name)
        docstring = (
            ast.get_docstring(nodes[0]) if isinstance(nodes[0], ast.ClassDef) else _read_text(nodes[1])
        )
        return " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "")

    def read_constant(self, name: str, field: str) -> str:
        """Return the text that the body of a class assigns to a field, read from the source of its module."""
        body = getattr(self._find_definition(name)[0], "body", [])
        values = [node.value for node in body if field in _list_assigned_names(node)]
        return str(ast.literal_eval(values[0]))

    def _find_definition(self, name: str) -> list[ast.stmt]:
        """Return the statement that defines an object, and those that follow it."""
        module, _, attribute = self.places[name].partition(":")
        body = _parse_module(module)
        is_definition = [
            getattr(node, "name", "") == attribute or attribute in _list_assigned_names(node) for node in body
        ]
        return body[is_definition.index(True) :]


def feature_entries(table: str) -> Mapping[str, str]:
    """Return the "module:object" of each name that features add to a table, by feature and in their order."""
    return {
        name: place
        for declaration in _read_declarations()
        for name, place in declaration.get(table, {}).items()
    }


@cache
def _read_declarations() -> tuple[Mapping[str, Mapping[str, str]], ...]:
    paths = sorted(FEATURES.glob(f"*/{DECLARATION}"))
    return tuple(tomllib.loads(path.read_text(encoding="utf-8")) for path in paths)


def _import_object(path: str) -> Any:
    """Import what "module:object" names."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@cache
def _parse_module(module: str) -> list[ast.stmt]:
    spec = find_spec(module)
    return ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8")).body


def _list_assigned_names(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _read_text(node: ast.stmt) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return str(value.value) if isinstance(value, ast.Constant) else ""


FUNCTIONS: Registry[Any] = Registry({}, features="functions")
"""Public functions and classes of features."""
