"""Rows of language gates."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSimilarityRow:
    """Similarity of the gates of two masks in a part of an encoder, of two languages or of one."""

    frame: ClassVar[str] = "language-gates"
    model: str
    first: str
    first_draw: int
    second: str
    second_draw: int
    layer: int | None
    module: str
    gates: int
    cosine: float | None
    correlation: float | None
    open_cosine: float | None
    overlap: float | None
    only_first: int
    only_second: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskPerplexityRow:
    """Perplexity of a language in an encoder that is whole (mask "") or pruned by a language's mask."""

    frame: ClassVar[str] = "language-gates-perplexity"
    model: str
    language: str
    mask: str
    draw: int | None
    perplexity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskKeptRow:
    """The share of the parameters that a mask keeps in a part of an encoder."""

    frame: ClassVar[str] = "language-gates-kept"
    model: str
    mask: str
    draw: int
    layer: int | None
    module: str
    parameters: int
    kept: float
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecificGatesRow:
    """Gates kept by every mask of a language and pruned by every mask of a second language."""

    frame: ClassVar[str] = "language-gates-specific"
    model: str
    keeps: str
    prunes: str
    layer: int | None
    module: str
    gates: int
    of: int
    parameters: int


LANGUAGE_GATES = (
    MaskSimilarityRow,
    MaskPerplexityRow,
    MaskKeptRow,
    SpecificGatesRow,
)
"""Classes of rows by diagnostic."""
