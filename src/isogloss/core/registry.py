"""Tables of the parts of isogloss by name. A part is imported when it is looked up."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

Entry = TypeVar("Entry", covariant=True)


class Registry(Mapping[str, Entry]):
    """Mapping from names to objects. A lookup imports the object's module; names and summaries do not."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """``places`` has the "module:object" of each name."""
        self.places = dict(places)

    def __getitem__(self, name: str) -> Entry:
        """Import the object with a name; KeyError for an unknown one."""
        module, attribute = self._split_place(name)
        entry: Entry = getattr(import_module(module), attribute)
        return entry

    def __contains__(self, name: object) -> bool:
        """Return whether a name is in the table."""
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the table."""
        return iter(self.places)

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self.places)

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

    def _split_place(self, name: str) -> tuple[str, str]:
        module, _, attribute = self.places[name].partition(":")
        return module, attribute

    def _find_definition(self, name: str) -> list[ast.stmt]:
        """Return the statement that defines an object, and those that follow it."""
        module, attribute = self._split_place(name)
        body = _parse_module(module)
        defined = [
            getattr(node, "name", "") == attribute or attribute in _list_assigned_names(node) for node in body
        ]
        return body[defined.index(True) :]


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
