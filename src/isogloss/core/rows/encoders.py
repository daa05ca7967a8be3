"""The rows about encoders: states of sentences and words, weights and paths between, gradients, gates."""

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
class MiningRow:
    """Translations mined from comparable text at the best threshold on dev, in one layer."""

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
class NearestSourceRow:
    """Share of a candidate's words (or texts) among the nearest neighbours of a target's, in one layer."""

    frame: ClassVar[str] = "nearest-sources"
    model: str
    language: str
    """The target."""
    candidate: str
    layer: int
    neighbours: int
    centred: bool
    items: int
    """Words or texts of the target."""
    share: float
    behind: float
    """Share of the target's first candidate less this one."""
    chosen: bool
    """Whether it is the first, and more than chance puts it before the others."""


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
class WordDistanceRow:
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
class DistanceBinRow:
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
class DimensionShareRow:
    """Share of the squared L2 distances of words in the dimensions where these are largest, in one layer."""

    frame: ClassVar[str] = "word-distance-shares"
    model: str
    first: str
    second: str
    layer: int
    dimensions: int
    width: int
    """Dimensions of a state."""
    related_share: float
    unrelated_share: float


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPointRow:
    """One point of a straight path between two models (Eqs 1 and 2 of Wu 2022)."""

    frame: ClassVar[str] = "interpolation"
    start: str
    """Model at α = 0."""
    end: str
    """Model at α = 1."""
    part: str
    alpha: float
    language: str
    role: str
    """"source" or "target"."""
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanePointRow:
    """One point of the plane through three models (Eq. 3 of Wu 2022)."""

    frame: ClassVar[str] = "plane"
    origin: str
    first: str
    """Model at α₁ = 1."""
    second: str
    """Model at α₂ = 1."""
    part: str
    alpha_first: float
    alpha_second: float
    language: str
    role: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaRow:
    """The ways from one model to two others: lengths and the angle between, in degrees."""

    frame: ClassVar[str] = "deltas"
    origin: str
    first: str
    second: str
    part: str
    norm_first: float
    norm_second: float
    ratio: float | None
    angle: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictRow:
    """Cosine of the gradients of two batches, of two languages or of one, in a part of a model."""

    frame: ClassVar[str] = "gradient-conflict"
    model: str
    """A model, or an encoder (also in all rows below)."""
    draw: int
    batch: int
    first: str
    second: str
    layer: int | None
    """Layer counted from 1. 0 stands for the embeddings, None for all layers together."""
    module: str
    cosine: float | None
    within: float | None = None
    norm_first: float
    norm_second: float
    overlap: float | None = None
    """Share of subwords that the two texts have in common."""


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
