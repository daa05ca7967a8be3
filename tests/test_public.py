"""The signatures of all public names equal the recorded ones.

`python tests/test_public.py` records them in public.json again. A change there belongs in the CHANGELOG.
"""

import ast
import inspect
import json
import re
from importlib import import_module
from pathlib import Path
from typing import get_origin

import isogloss
import isogloss.plugins
import isogloss.testing

PROMISED = Path(__file__).with_name("public.json")
KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def parameters(function):
    """Return the parameters of a function: names, marks of keyword-only ones, and defaults."""
    return [
        ("" if parameter.kind in KINDS else "*") + name + default_of(parameter)
        for name, parameter in inspect.signature(function).parameters.items()
    ]


def default_of(parameter):
    """Return the default of a parameter as text. Functions and instances of classes are shown by name."""
    default = parameter.default
    if default is parameter.empty:
        return ""
    if callable(default):
        return f"={default.__name__}"
    own_part = type(default).__module__.startswith("isogloss")
    return f"={type(default).__name__ if own_part else repr(default)}"


def signatures():
    """Return the parameters of each public function and class, and the members of each class."""
    texts = {}
    for module in (isogloss, isogloss.plugins, isogloss.testing):
        prefix = module.__name__.partition(".")[2]
        for name in module.__all__:
            thing = getattr(module, name)
            key = ".".join(item for item in (prefix, name) if item)
            is_alias = get_origin(thing) is not None
            if callable(thing) and not is_alias and thing.__init__ is not AssertionError.__init__:
                texts[key] = parameters(thing)
            if inspect.isclass(thing) and thing.__module__.startswith("isogloss"):
                texts[f"{key} members"] = sorted(
                    member for member in vars(thing) if not member.startswith("_")
                )
    return texts


def test_the_types_of_a_plug_ins_members_are_public():
    """Who implements a protocol can import every type that its members take or return."""
    protocols = [value for value in vars(isogloss.plugins).values() if is_protocol(value)]
    names = {
        name
        for protocol in protocols
        for member in vars(protocol).values()
        if inspect.isfunction(member)
        for name in named_classes(member)
    }
    assert {"Setting", "Trained", "Batch"} <= names
    assert names - set(isogloss.plugins.__all__) == set()


def named_classes(function):
    """Return the classes of isogloss in a signature, whose types may be imported for type checkers only."""
    signature = str(inspect.signature(function))
    module = ast.parse(Path(inspect.getfile(function)).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(module) if isinstance(node, ast.ImportFrom)]
    homes = {name.name: node.module for node in imports for name in node.names}
    homes |= {node.name: function.__module__ for node in module.body if isinstance(node, ast.ClassDef)}
    bare_names = {
        name
        for name in re.findall(r"\b[A-Z]\w*", signature)
        if homes.get(name, "").startswith("isogloss") and defines_class(homes[name], name)
    }
    return bare_names | set(re.findall(r"isogloss[\w.]*\.(\w+)", signature))


def defines_class(module, name):
    value = vars(import_module(module)).get(name)
    return inspect.isclass(value) and value.__module__.startswith("isogloss")


def is_protocol(value):
    return inspect.isclass(value) and getattr(value, "_is_protocol", False)


def test_public_names_keep_their_signatures():
    assert signatures() == json.loads(PROMISED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PROMISED.write_text(json.dumps(signatures(), indent=1) + "\n", encoding="utf-8")
