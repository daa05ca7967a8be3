"""The rows about an encoder's states of sentences and words, in two languages or in one."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How often the nearest sentence of another language is the translation, in one layer."""

    frame: ClassVar[str] = "retrieval"
    model: str
    """An encoder, or a model whose encoder is meant; so everywhere here."""
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
class Mining:
    """How many translations are mined from comparable text at dev's best threshold, in one layer."""

    frame: ClassVar[str] = "mining"
    model: str
    first: str
    second: str
    split: str
    layer: int
    centred: bool
    margin: str
    neighbours: int
    sentences_first: int
    sentences_second: int
    gold: int
    mined: int
    threshold: float
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Anisotropy:
    """Mean cosine between different sentences of one language, in one layer."""

    frame: ClassVar[str] = "anisotropy"
    model: str
    language: str
    layer: int
    sentences: int
    mean_cosine: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WordDistance:
    """Distances of related and of unrelated words in one layer: means, and AUC of the separation."""

    frame: ClassVar[str] = "word-distance"
    model: str
    first: str
    second: str
    layer: int
    distance: str
    related_mean: float
    unrelated_mean: float
    auc: float
    auc_within: float
    related_pairs: int
    unrelated_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceBin:
    """One bin of the histograms of word distances: its edges, and the share of each group in it."""

    frame: ClassVar[str] = "word-distance-bins"
    model: str
    first: str
    second: str
    layer: int
    distance: str
    low: float
    high: float
    related: float
    unrelated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cka:
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
class MapPoint:
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
