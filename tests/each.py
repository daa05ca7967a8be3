"""Check things one by one."""

from collections.abc import Iterable
from typing import Any


def each(things: Iterable[Any]) -> list[Any]:
    """List them. What is asserted of each of none is not asserted."""
    result = list(things)
    assert result
    return result
