"""Check things one by one."""

from collections.abc import Iterable
from typing import Any


def each(things: Iterable[Any]) -> list[Any]:
    """List them; what is asserted of each of none is not asserted."""
    found = list(things)
    assert found
    return found
