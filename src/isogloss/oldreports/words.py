"""How numbers, names and lists are written in a report."""

import math
import re
import unicodedata
from collections.abc import Iterable
from hashlib import sha256

from isogloss.core.languages import language_name

EQUATIONS = {
    "source-only": "Eq. 1 from the source-only model",
    "target-only": "Eq. 2 from the target-only model",
}

LONGEST_SLUG = 90


def percent(value: float) -> str:
    """Write a score of 0 to 1 in percent with one decimal."""
    return f"{100 * value:.1f}"


def plus_minus(mean: float, std: float) -> str:
    """Write mean ± standard deviation in percent; without the latter for a single seed."""
    return percent(mean) if math.isnan(std) else f"{percent(mean)} ± {percent(std)}"


def count(n: int, noun: str, nouns: str = "") -> str:
    """Write "1 seed", "3 seeds"."""
    return f"{n} {noun if n == 1 else nouns or noun + 's'}"


def joined(parts: Iterable[str]) -> str:
    """Write "a", "a and b", "a, b and c"."""
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last


def language(code: str) -> str:
    """Write a language with its English name where there is one: "English (en)"."""
    name = language_name(code)
    return code if name == code else f"{name} ({code})"


def slug(*parts: str) -> str:
    """Return a file name of small letters, digits and dashes; what that loses is kept apart by a digest."""
    text = "-".join(parts)
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    kept = re.sub(r"[\s_./]+", "-", text.lower()).strip("-")
    if name == kept and len(name) <= LONGEST_SLUG:
        return name
    return f"{name[:LONGEST_SLUG]}-{sha256(text.encode()).hexdigest()[:6]}".strip("-")
