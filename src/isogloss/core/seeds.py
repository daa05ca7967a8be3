"""Seeds for separate purposes, derived from one: equal on every machine and Python version."""

from hashlib import blake2b


def derive(seed: int, *purpose: str | int) -> int:
    """Return a 63-bit seed for one purpose, independent of the seeds of all other purposes."""
    text = "\x1f".join([str(seed), *(str(part) for part in purpose)])
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
