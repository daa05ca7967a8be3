"""Every test is sure to assert: a loop over nothing, `all` of nothing and a branch not taken assert nothing.

What is looped over is therefore written out, a constant, a range, zipped strictly, or goes through `each`,
which fails for nothing. Tests of drawn examples are let off: they draw many.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isogloss import testing

TESTS = Path(__file__).parent
SURE = ("each", "range")
LAWS = tuple(name for name in testing.__all__ if name.startswith("check_"))
EXPECTING = ("raises", "warns", "fail", "says", "worded", *LAWS)
PASSING_ON = {
    *(
        "chain",
        "combinations",
        "dict",
        "enumerate",
        "items",
        "keys",
        "list",
        "map",
        "pairwise",
        "permutations",
    ),
    *("product", "reversed", "set", "sorted", "tuple", "values", "zip"),
}
"""Functions and methods that give something for something."""


def test_every_test_is_sure_to_assert():
    files = {path: functions(ast.parse(path.read_text(encoding="utf-8"))) for path in TESTS.rglob("*.py")}
    shared = {
        name: function
        for path, defined_file in files.items()
        if not path.name.startswith("test_")
        for name, function in defined_file.items()
    }
    unsure = [
        f"{path.relative_to(TESTS)}:{test.lineno} {name}"
        for path, defined_file in files.items()
        for readable in [shared | defined_file]
        for name, test in defined_file.items()
        if name.startswith("test_") and not is_drawn(test)
        if not Asserting(readable).block(test.body)
    ]
    assert not unsure, "tests that may assert nothing; let loops go through `each`:\n" + "\n".join(unsure)


MADE = {
    "innerHTML": "of scripts",
    "search.html": "an address of Sphinx",
    "Traceback": "of Python",
    "FieldInfo": "of pydantic",
    "pretrain.lines": "a field of a table",
    "is el": "a rule for lemmas",
    "60.0 ±": "a number",
    "\nlicense:": "a field of a card",
    "model-index": "a field that the hub's library writes",
}
"""Texts that tests do not expect, and that the package composes, so its source does not contain them."""


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_not_expected_could_be_found():
    """A text that the package no longer has is never found, so its absence proves nothing."""
    kinds = {".py", ".toml", ".html", ".j2", ".js", ".css", ".csv", ".tsv"}
    files = [path for path in (TESTS.parent / "src").rglob("*") if path.suffix in kinds]
    texts = (path.read_text(encoding="utf-8") for path in files)
    package = re.sub(r'"\s*\n\s*f?"', "", "\n".join(texts))  # Texts over several lines are one.
    removed_texts = []
    for path in TESTS.rglob("test_*.py"):
        source = path.read_text(encoding="utf-8")
        removed_texts += [
            f"{path.relative_to(TESTS)}:{line} {text!r}"
            for line, text in find_unexpected(ast.parse(source))
            if len(text) > 3 and text not in package and source.count(text) < 2 and text not in MADE
        ]
    assert not removed_texts, "texts that are found nowhere; expect what the package says:\n" + "\n".join(
        removed_texts
    )


def find_unexpected(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of each assertion that a text is not in something."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotIn):
                text = getattr(part.left, "value", None)
                if isinstance(text, str):
                    yield node.lineno, text


def functions(tree: ast.Module) -> Mapping[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def is_drawn(test: ast.FunctionDef) -> bool:
    return any(get_called(decorator) == "given" for decorator in test.decorator_list)


def get_called(node: ast.AST) -> str:
    """Return the name of a called function or method. Empty for anything else."""
    function = node.func if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", ""))


@dataclass
class Asserting:
    """Whether statements are sure to assert, by the functions they may call."""

    functions: Mapping[str, ast.FunctionDef]
    entered: frozenset[str] = frozenset()
    """Names of the functions that are being read."""
    full: set[str] = field(default_factory=set)
    """Names of variables that are sure to have elements."""

    def block(self, statements: list[ast.stmt]) -> bool:
        """Return whether one of them is sure to. All are read, for the variables they fill."""
        return sum(self.statement(entry) for entry in statements) > 0

    def statement(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Assert(test=test):
                return self.condition(test)
            case ast.For(iter=iterated_value, body=body):
                return self.has_elements(iterated_value) and self.block(body)
            case ast.If(body=body, orelse=orelse):
                return self.block(body) and self.block(orelse)
            case ast.With(items=items, body=body):
                return any(get_called(item.context_expr) in EXPECTING for item in items) or self.block(body)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                is_caught = all(self.block(handler.body) for handler in handlers)
                return self.block(final) or (self.block([*body, *orelse]) and is_caught)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if self.has_elements(value):
                self.full.add(name)
        return any(self.call(node) for node in self.calls(statement))

    def calls(self, statement: ast.stmt) -> Iterator[str]:
        if isinstance(statement, ast.Expr | ast.Assign | ast.Return):
            yield from (entry for entry in (get_called(member) for member in ast.walk(statement)) if entry)

    def call(self, name: str) -> bool:
        """Return whether a function is sure to assert. One that calls itself is read once."""
        if name.startswith("assert") or name in EXPECTING:
            return True
        function = None if name in self.entered else self.functions.get(name)
        return bool(function and Asserting(self.functions, self.entered | {name}).block(function.body))

    def condition(self, condition: ast.expr) -> bool:
        """Return whether a condition is about anything. ``all`` and ``not any`` may be about nothing."""
        match condition:
            case ast.BoolOp(op=ast.And(), values=values):
                return any(self.condition(entry) for entry in values)
            case (
                ast.Call(func=ast.Name(id="all"), args=[iterated_value])
                | ast.UnaryOp(op=ast.Not(), operand=ast.Call(func=ast.Name(id="any"), args=[iterated_value]))
            ):
                return self.has_elements(iterated_value)
        return True

    def has_elements(self, node: ast.expr) -> bool:
        """Return whether what is looped over is sure to have elements."""
        match node:
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                return any(
                    not isinstance(element, ast.Starred) or self.has_elements(element.value)
                    for element in elements
                )
            case ast.Dict(keys=elements) | ast.Constant(value=elements):
                return bool(elements)
            case ast.Name(id=name) | ast.Attribute(attr=name) if name.isupper() or name in self.full:
                return True
            case ast.Attribute(value=inner) | ast.Subscript(value=inner) | ast.Starred(value=inner):
                return self.has_elements(inner)
            case ast.BinOp(left=left, right=right):
                return self.has_elements(left) or self.has_elements(right)
            case ast.IfExp(body=body, orelse=orelse):
                return self.has_elements(body) and self.has_elements(orelse)
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
                return all(self.has_elements(part.iter) and not part.ifs for part in node.generators)
            case ast.Call():
                return self.gives_elements(node)
        return False

    def gives_elements(self, call: ast.Call) -> bool:
        name = get_called(call)
        parts = call.args[name == "map" :]
        if not parts and isinstance(call.func, ast.Attribute):
            parts = [call.func.value]
        strict = name == "zip" and any(keyword.arg == "strict" for keyword in call.keywords)
        is_given = bool(parts) and all(self.has_elements(entry) for entry in parts)
        return strict or name in SURE or (name in PASSING_ON and is_given)
