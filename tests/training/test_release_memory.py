"""What was freed goes back to the system, even where something behind it is still in use."""

import sys
from pathlib import Path

import pytest

from isogloss.training.precision import _trim, release_memory

KIBIBYTE = 1024


def resident():
    """Return the memory this process has, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked to give memory back")
def test_memory_that_was_freed_is_given_back():
    blocks = [bytearray(b"x") * (64 * KIBIBYTE) for _ in range(3000)]
    blocks, behind = [], blocks[-1]  # what lies behind keeps the heap from shrinking by itself
    full = resident()
    release_memory()
    assert full - resident() > 100 * KIBIBYTE
    assert len(behind) == 64 * KIBIBYTE


def test_another_c_library_is_no_error(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    _trim.cache_clear()
    release_memory()
    _trim.cache_clear()
