"""Shapes are checked at each call of what states them, and of nothing else.

jaxtyping's import hook wraps every function of a package, which costs more than most of them do. Types
without shapes are mypy's: their functions are left as they are. Imported before anything of ours.
"""

import re
from collections.abc import Callable
from inspect import get_annotations
from typing import Any

import jaxtyping

SHAPE = re.compile(r"\b(Bool|Complex|Float|Int|Integer|Num|Shaped|UInt)\d*\[")

check_count = jaxtyping.jaxtyped


def states_shapes(item: Any) -> bool:
    """Return whether a function's parameters or result, or a class's fields, are arrays of stated shapes."""
    return any(SHAPE.search(repr(annotation)) for annotation in get_annotations(item).values())


def _checked_where_stated(*, typechecker: Any) -> Callable[[Any], Any]:
    check = check_count(typechecker=typechecker)
    return lambda item: check(item) if states_shapes(item) else item


jaxtyping.jaxtyped = _checked_where_stated
