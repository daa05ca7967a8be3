"""Rows of states of languages."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalRow:
    """Share of sentences whose nearest sentence in a second language is the translation, in one layer."""

    frame: ClassVar[str] = "retrieval"
    model: str
    """An encoder, or a model whose encoder is meant (in all rows of this module)."""
    first: str
    second: str
    layer: int
    centred: bool
    similarity: str
    candidates: int
    accuracy_forward: float
    accuracy_backward: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnisotropyRow:
    """Mean cosine between different sentences of one language, in one layer."""

    frame: ClassVar[str] = "anisotropy"
    model: str
    language: str
    layer: int
    sentences: int
    mean_cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CkaRow:
    """CKA of two languages' sentence states in one layer."""

    frame: ClassVar[str] = "cka"
    model: str
    first: str
    second: str
    layer: int
    sentences: int
    cka: float | None
    debiased: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPointRow:
    """A sentence, or a language's centroid, on the map of sentence states."""

    frame: ClassVar[str] = "representation-map"
    model: str
    layer: int
    sentences: int
    what: str
    """"sentence" or "centroid"."""
    language: str
    x: float
    y: float
    explained_x: float | None = None
    explained_y: float | None = None
    between: float | None = None
    """Share of the variance between the languages' centroids."""


RETRIEVAL = (RetrievalRow,)
ANISOTROPY = (AnisotropyRow,)
CKA = (CkaRow,)
REPRESENTATION_MAP = (MapPointRow,)
"""Classes of rows by diagnostic."""
