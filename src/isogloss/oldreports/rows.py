"""The rows a report understands, typed: one dataclass per kind of record or diagnostic.

A record's rows are JSON, so anything can be in them; here they become values with known fields, or an
error that names the field. What a report does not know it shows as a plain table instead.
"""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One model on one language and split."""

    diagnostic: ClassVar[str] = "scores"
    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    target: str = ""
    seed: int
    language: str
    split: str
    metric: str
    score: float
    baseline: float | None = None
    examples: int | None = None

    @property
    def on_source(self) -> bool:
        """Tell whether the scored language is a source of the model."""
        return self.language in self.source.split("+")

    @property
    def on_own_target(self) -> bool:
        """Tell whether it is a language the model was made for."""
        return self.language in self.target.split("+") and not self.on_source


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPoint:
    """One point of a straight path between two models (Eqs. 1 and 2)."""

    diagnostic: ClassVar[str] = "interpolation"
    corpus: str
    task: str
    encoder: str
    source: str
    target: str
    seed: int
    start: str
    end: str = "bilingual"
    part: str = "all"
    alpha: float
    language: str
    role: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanePoint:
    """One point of the plane through three models (Eq. 3)."""

    diagnostic: ClassVar[str] = "plane"
    corpus: str
    task: str
    encoder: str
    source: str
    target: str
    seed: int
    part: str = "all"
    alpha_source: float
    alpha_target: float
    language: str
    role: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The two ways from the bilingual model to the single-language ones: lengths and the angle between."""

    diagnostic: ClassVar[str] = "deltas"
    corpus: str
    task: str
    encoder: str
    source: str
    target: str
    seed: int
    part: str = "all"
    norm_source: float
    norm_target: float
    ratio: float
    angle: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSpread:
    """Mean and standard deviation of one method's scores on one language over seeds."""

    diagnostic: ClassVar[str] = "run-variance"
    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    target: str = ""
    language: str
    role: str
    split: str
    metric: str
    seeds: int
    mean: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Source score minus the mean target score of one model."""

    diagnostic: ClassVar[str] = "transfer-gap"
    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    seed: int
    split: str
    metric: str
    source_score: float
    target_mean: float
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How often the nearest sentence of another language is the translation, in one layer.

    Rows without a task are about an encoder, others about the encoder within a model.
    """

    diagnostic: ClassVar[str] = "retrieval"
    encoder: str
    task: str = ""
    method: str = ""
    seed: int | None = None
    first: str
    second: str
    layer: int
    centred: bool = True
    similarity: str = "cosine"
    candidates: int
    accuracy_forward: float
    accuracy_backward: float
    chance: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """CKA of two languages' sentence states in one layer, of an encoder or (with a method) within a model."""

    diagnostic: ClassVar[str] = "cka"
    corpus: str = ""
    task: str = ""
    encoder: str
    method: str = ""
    source: str = ""
    target: str = ""
    seed: int | None = None
    first: str
    second: str
    layer: int
    sentences: int
    cka: float | None
    debiased: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MapPoint:
    """A sentence or a language's centroid on the map of an encoder's, or a model's, sentence states."""

    diagnostic: ClassVar[str] = "representation-map"
    corpus: str = ""
    task: str = ""
    encoder: str
    method: str = ""
    source: str = ""
    target: str = ""
    seed: int | None = None
    layer: int
    sentences: int
    what: str
    language: str
    x: float
    y: float
    explained_x: float | None = None
    explained_y: float | None = None
    between: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How much of the source a model mixes into one language's examples, over examples."""

    diagnostic: ClassVar[str] = "mixup-ratio"
    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    target: str = ""
    seed: int
    language: str
    split: str
    examples: int
    mean: float
    std: float | None = None
    q05: float
    median: float
    q95: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One model that mixes, with another largest ratio or in another layer, on one language."""

    diagnostic: ClassVar[str] = "mixup-sweep"
    corpus: str
    task: str
    encoder: str
    method: str
    source: str
    target: str = ""
    seed: int
    language: str
    split: str
    layer: int
    ratio: float
    trained: bool
    mean: float | None = None
    metric: str
    score: float
    baseline: float | None = None
    examples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Distances:
    """Distances of related and of unrelated words in one layer: means, and AUC of the separation."""

    another_with: ClassVar[tuple[str, ...]] = ("low",)

    diagnostic: ClassVar[str] = "word-distance"
    encoder: str
    task: str = ""
    method: str = ""
    seed: int | None = None
    first: str
    second: str
    layer: int
    distance: str
    related_mean: float
    unrelated_mean: float
    auc: float
    auc_within: float = 0.0
    related_pairs: int
    unrelated_pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DistanceBin:
    """One bin of the histograms of word distances: its edges, and the share of each group in it."""

    another_with: ClassVar[tuple[str, ...]] = ("auc",)

    diagnostic: ClassVar[str] = "word-distance"
    encoder: str
    task: str = ""
    method: str = ""
    seed: int | None = None
    first: str
    second: str
    layer: int
    distance: str
    low: float
    high: float
    related: float
    unrelated: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainStep:
    """The loss of masked language modelling at one step; language "" is all of them."""

    another_with: ClassVar[tuple[str, ...]] = ("metric", "cosine", "parameters")

    diagnostic: ClassVar[str] = "pretrain"
    step: int
    subwords: int | None = None
    loss: float
    language: str = ""
    rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """How perplexed an encoder is by held-out text of one language after one epoch of pretraining."""

    another_with: ClassVar[tuple[str, ...]] = ("loss", "parameters", "cosine")

    diagnostic: ClassVar[str] = "pretrain"
    step: int
    epoch: int
    language: str
    split: str = "dev"
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How many parameters of an encoder are a language's own; language "" is all share."""

    another_with: ClassVar[tuple[str, ...]] = ("loss", "metric", "cosine")

    diagnostic: ClassVar[str] = "pretrain"
    parameters: int
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustStep:
    """The loss of an adjustment at one step; rows about the pairs it read have the pair's name."""

    another_with: ClassVar[tuple[str, ...]] = ("pair",)

    diagnostic: ClassVar[str] = "adjust"
    step: int
    loss: float
    rate: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """One word alignment of bitext: how many links, and, where there is gold, how many of them are right."""

    diagnostic: ClassVar[str] = "align"
    bitext: str
    languages: str
    split: str
    aligner: str
    pairs: int
    links: int
    gold_pairs: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    aer: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A fine-tuned model on one dev set after one epoch.

    The record of a fine-tuning also holds rows of its steps; those have a rate. Where bitext was read,
    there is one more for each pair.
    """

    another_with: ClassVar[tuple[str, ...]] = ("rate", "pair", "cosine")

    diagnostic: ClassVar[str] = "fine-tune"
    epoch: int
    step: int | None = None
    loss: float | None = None
    language: str
    split: str = "dev"
    metric: str
    score: float
    chosen: bool = False


_OWN = (
    *(Score, PathPoint, PlanePoint, Delta, SeedSpread, Gap, Retrieval, Distances, Likeness, MapPoint, Ratio),
    SweepPoint,
)
KNOWN_DIAGNOSTICS = frozenset(kind.diagnostic for kind in _OWN)
"""The diagnostics with a section of their own."""
