"""Filler words in code: names without meaning, and phrases that nobody in the field uses.

`python tests/words.py` prints today's counts by package of src, and of names in scripts of docs, examples and
benchmarks; with `--record` it sets the bounds in words.json to them. Counts may only fall: name a local for
the thing, and write sentences as a colleague would say them.
"""

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "isogloss"
SCRIPTS = ("docs", "examples", "benchmarks")
BOUNDS = Path(__file__).with_suffix(".json")
FILLERS = {
    *(
        "one",
        "found",
        "own",
        "place",
        "told",
        "there",
        "kept",
        "beside",
        "alike",
        "about",
        "how",
        "said",
        "given",
    ),
    *("asked", "wanted", "known", "each", "some", "every", "both", "before", "whole", "taken", "seen", "due"),
}
"""Names of locals, parameters and fields; `way` or `made` can be the thing itself."""
PHRASES = re.compile(r"\b(told|tells?|is said|beside|alike|there is|looks? at|what \w+ is)\b", re.IGNORECASE)
"""In docstrings and messages."""
STAYING = {
    "about": "describes a corpus, a family or an engine; plug-ins and descriptions set it",
    "asked": "stands in plan.json",
    "every": "stands in ids: how often the conflict of gradients is measured",
    "found": "stands in reports' JSON and tables: what was found of a claim, in words",
    "kept": "stands in records: the share of weights a mask keeps",
    "place": "stands in stored examples: article and paragraph of a question's passage",
    "whole": "stands in ids and recipes: the split that a collection of bitext is",
}
"""Fields of classes that keep their names, and why."""


def bound(tree: ast.AST) -> Iterator[str]:
    """Yield each name that is bound: variables, fields, parameters, targets of loops and of patterns."""
    fields = {
        statement.target
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if node not in fields or name not in STAYING:
                yield name
            case ast.arg(arg=str(name)) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name


def texts(tree: ast.AST) -> Iterator[str]:
    """Yield docstrings and all other texts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def counts() -> dict[str, Counter[str]]:
    """Return, by package, how often each filler is bound and each phrase is written."""
    by_package: dict[str, Counter[str]] = {}
    for path in sorted(SRC.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        words = by_package.setdefault(path.relative_to(SRC).parts[0].removesuffix(".py"), Counter())
        words.update(name for name in bound(tree) if name in FILLERS)
        words.update(f'"{phrase.lower()}"' for text in texts(tree) for phrase in PHRASES.findall(text))
    for folder in SCRIPTS:
        trees = (ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / folder).rglob("*.py"))
        by_package[folder] = Counter(name for tree in trees for name in bound(tree) if name in FILLERS)
    return {package: words for package, words in by_package.items() if words}


def totals(words: Counter[str]) -> dict[str, int]:
    """Count bound fillers and written phrases."""
    phrases = sum(count for word, count in words.items() if word.startswith('"'))
    return {"names": words.total() - phrases, "phrases": phrases}


def table(by_package: dict[str, Counter[str]]) -> str:
    """Return the counts as text: a line for each package, the commonest words first."""
    lines = [
        f"{package:14}{totals(words)['names']:6}{totals(words)['phrases']:6}  "
        + ", ".join(f"{word} {count}" for word, count in words.most_common())
        for package, words in {**by_package, "all": sum(by_package.values(), Counter())}.items()
    ]
    return "\n".join([f"{'package':14} names phrases", *lines])


if __name__ == "__main__":
    sys.stdout.write(table(counts()) + "\n")
    if sys.argv[1:] == ["--record"]:
        bounds = {package: totals(words) for package, words in counts().items()}
        BOUNDS.write_text(json.dumps(bounds, indent=1) + "\n", encoding="utf-8")
