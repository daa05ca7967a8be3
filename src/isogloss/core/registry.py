"""Tables of what isogloss contains: names, and where their objects are. Nothing is imported before use."""

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

Entry = TypeVar("Entry", covariant=True)


class Registry(Mapping[str, Entry]):
    """Objects by name. To look one up imports its module; names and summaries import nothing."""

    def __init__(self, places: Mapping[str, str]) -> None:
        """``places`` has the "module:object" of each name."""
        self.places = dict(places)

    def __getitem__(self, name: str) -> Entry:
        """Import the object with a name; KeyError for an unknown one."""
        module, attribute = self._place(name)
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

    def summary(self, name: str) -> str:
        """Return the first paragraph of an object's docstring, read from the source of its module."""
        nodes = self._nodes(name)
        docstring = ast.get_docstring(nodes[0]) if isinstance(nodes[0], ast.ClassDef) else _text_of(nodes[1])
        return " ".join((docstring or "").partition("\n\n")[0].split()).replace("``", "")

    def constant(self, name: str, field: str) -> str:
        """Return the text that the body of a class assigns to a field, read from the source of its module."""
        body = getattr(self._nodes(name)[0], "body", [])
        values = [node.value for node in body if field in _assigned(node)]
        return str(ast.literal_eval(values[0]))

    def _place(self, name: str) -> tuple[str, str]:
        module, _, attribute = self.places[name].partition(":")
        return module, attribute

    def _nodes(self, name: str) -> list[ast.stmt]:
        """Return the statement that defines an object, and those that follow it."""
        module, attribute = self._place(name)
        body = _statements(module)
        defined = [getattr(node, "name", "") == attribute or attribute in _assigned(node) for node in body]
        return body[defined.index(True) :]


@cache
def _statements(module: str) -> list[ast.stmt]:
    spec = find_spec(module)
    return ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8")).body


def _assigned(node: ast.stmt) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _text_of(node: ast.stmt) -> str:
    value = node.value if isinstance(node, ast.Expr) else None
    return str(value.value) if isinstance(value, ast.Constant) else ""
