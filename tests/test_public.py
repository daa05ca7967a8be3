"""The signatures of all public names equal the recorded ones.

`python tests/test_public.py` records them in public.json again. A change there belongs in the CHANGELOG.
"""

import inspect
import json
from pathlib import Path

import isogloss

PROMISED = Path(__file__).with_name("public.json")
KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def parameters(function):
    """Return the parameters of a function: names, keyword-only ones, and required ones."""
    return [
        ("" if parameter.kind in KINDS else "*")
        + name
        + ("" if parameter.default is parameter.empty else "=")
        for name, parameter in inspect.signature(function).parameters.items()
    ]


def signatures():
    """Return the parameters of each public function and class, and the members of each class."""
    found = {}
    for name in isogloss.__all__:
        thing = getattr(isogloss, name)
        if callable(thing):
            found[name] = parameters(thing)
        if inspect.isclass(thing) and thing.__module__.startswith("isogloss"):
            found[f"{name} members"] = sorted(member for member in vars(thing) if not member.startswith("_"))
    return found


def test_public_names_keep_their_signatures():
    assert signatures() == json.loads(PROMISED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PROMISED.write_text(json.dumps(signatures(), indent=1) + "\n", encoding="utf-8")
