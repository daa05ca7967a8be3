"""Giving freed memory back to the system.

Batches have many lengths, so the blocks a step frees seldom fit the next one's, and glibc keeps them all:
training on SQuAD grew to 12 GiB, of which less than one was in use.
"""

import ctypes
from collections.abc import Callable
from functools import cache


def give_back() -> None:
    """Return what was freed and is not in use to the system, where the C library can."""
    _trim()(0)


@cache
def _trim() -> Callable[[int], int]:
    try:
        found: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # Another C library, or another system.
        return lambda _: 0
    return found
