"""The rows of measurements, each kind declared once: diagnostics return, records hold and reports read them.

A row holds the ids of the runs it is about and measured numbers, never a name made for people: what a run is
(its method, encoder, seed …) stands in its record. ``ROWS`` says which kinds a record can hold, by what it
measured or made (those of trainings and of states have files of their own); a row's fields tell which kind it
is, since no two kinds of one table fit the same row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields
from functools import cache, lru_cache
from itertools import groupby
from types import NoneType
from typing import Any, ClassVar, Protocol, get_args

from isogloss.core.representation_rows import (
    Anisotropy,
    Cka,
    DistanceBin,
    MapPoint,
    Mining,
    Retrieval,
    WordDistance,
)
from isogloss.core.training_rows import (
    Alignment,
    AveragedModel,
    BitextRead,
    ConflictStep,
    Epoch,
    Parameters,
    Perplexity,
    Stopping,
    SubwordsAdded,
    TrainedParameters,
    TrainingStep,
    TranslatedSplit,
)

Value = str | int | float | bool | None
Row = Mapping[str, Value]
"""A flat mapping from column to value: also a line of a CSV file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One model on one language and split by one measure; the task's own metric is its main one."""

    frame: ClassVar[str] = "scores"
    model: str
    language: str
    split: str
    metric: str
    score: float
    main: bool
    baseline: float | None = None
    """The score of always saying the commonest label, by the main metric."""
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelFree:
    """What a model's answers in a language say of its score there, where its labels are not looked at."""

    frame: ClassVar[str] = "label-free"
    model: str
    language: str
    split: str
    signal: str
    """confidence, entropy, steadiness; in the source score, in other languages atc and doc."""
    value: float
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPoint:
    """One point of a straight path between two models (Eqs 1 and 2 of the first paper)."""

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
class PlanePoint:
    """One point of the plane through three models (Eq. 3 of the first paper)."""

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
class Delta:
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
class SeedSpread:
    """Mean and unbiased standard deviation of models that differ in their seed alone, on one language."""

    frame: ClassVar[str] = "run-variance"
    models: str
    """Their ids, separated by spaces."""
    language: str
    role: str
    split: str
    metric: str
    seeds: int
    mean: float
    std: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Source score minus the mean target score of one model."""

    frame: ClassVar[str] = "transfer-gap"
    model: str
    split: str
    metric: str
    source_score: float
    target_mean: float
    gap: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MixupRatio:
    """How much of the source a model mixes into one language's examples, over examples."""

    frame: ClassVar[str] = "mixup-ratio"
    model: str
    language: str
    split: str
    examples: int
    mean: float
    std: float | None
    lowest: float
    q05: float
    q25: float
    median: float
    q75: float
    q95: float
    highest: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One model that mixes, with another largest ratio or in another layer, on one language."""

    frame: ClassVar[str] = "mixup-sweep"
    model: str
    language: str
    split: str
    layer: int
    ratio: float
    trained: bool
    mean: float | None
    metric: str
    score: float
    baseline: float | None
    examples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkAttention:
    """What of a layer's attention of X-Mixup lies on the words that words translate, over subwords."""

    frame: ClassVar[str] = "link-attention"
    model: str
    first: str
    """The language that is attended to."""
    second: str
    layer: int
    look: str
    """attention or cosine."""
    subwords: int
    """Of the second language, with a link."""
    mass: float
    """Mean weight on the linked word."""
    hits: float
    """How often the largest weight lies there."""
    chance: float
    """The weight there if all subwords of a sentence had the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Cosine of the gradients of two batches, of two languages or of one, in a part of a model."""

    frame: ClassVar[str] = "gradient-conflict"
    model: str
    """A model, or an encoder; so everywhere below."""
    draw: int
    batch: int
    first: str
    second: str
    layer: int | None
    """From 1; 0 the embeddings; None all layers together."""
    module: str
    cosine: float | None
    within: float | None = None
    norm_first: float
    norm_second: float
    overlap: float | None = None
    """Share of subwords that the two texts have in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskSimilarity:
    """How alike the gates of two masks are in a part of an encoder, of two languages or of one."""

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
class MaskPerplexity:
    """How well an encoder predicts a language, whole (mask "") or pruned by a language's mask."""

    frame: ClassVar[str] = "language-gates-perplexity"
    model: str
    language: str
    mask: str
    draw: int | None
    perplexity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskKept:
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
class SpecificGates:
    """How many gates every mask of one language keeps and every mask of another prunes."""

    frame: ClassVar[str] = "language-gates-specific"
    model: str
    keeps: str
    prunes: str
    layer: int | None
    module: str
    gates: int
    of: int
    parameters: int


class RowKind(Protocol):
    """The class of a kind of row."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]
    frame: ClassVar[str]
    """The frame, of all measurements in a folder, that has the rows."""


ROWS: dict[str, tuple[type[RowKind], ...]] = {
    "scores": (Score,),
    "interpolation": (PathPoint,),
    "plane": (PlanePoint,),
    "deltas": (Delta,),
    "run-variance": (SeedSpread,),
    "transfer-gap": (Gap,),
    "label-free": (LabelFree,),
    "retrieval": (Retrieval,),
    "mining": (Mining,),
    "anisotropy": (Anisotropy,),
    "word-distance": (WordDistance, DistanceBin),
    "cka": (Cka,),
    "representation-map": (MapPoint,),
    "mixup-ratio": (MixupRatio,),
    "mixup-sweep": (SweepPoint,),
    "link-attention": (LinkAttention,),
    "gradient-conflict": (Conflict,),
    "task-gradient-conflict": (Conflict,),
    "language-gates": (MaskSimilarity, MaskPerplexity, MaskKept, SpecificGates),
    "pretrain": (TrainingStep, Perplexity, SubwordsAdded, Parameters, ConflictStep),
    "adjust": (TrainingStep, BitextRead),
    "fine-tune": (
        *(TrainingStep, Epoch, Stopping, BitextRead, ConflictStep),
        *(TrainedParameters, AveragedModel),
    ),
    "align": (Alignment,),
    "translate": (TranslatedSplit,),
    "train-translator": (TrainingStep,),
}
"""What records hold, by the diagnostic of a measurement or else by the kind of run."""


def as_row(value: object) -> Row:
    """Return a typed row as a record holds it."""
    return asdict(value)  # type: ignore[call-overload, no-any-return]


def kind_of(names: frozenset[str], kinds: tuple[type[RowKind], ...]) -> type[RowKind] | None:
    """Return the kind of row all of whose needed fields are among these; None where there is none."""
    return next((kind for kind in kinds if _needed(kind) <= names), None)


LARGEST = 2**63 - 1
"""The largest whole number of a row: frames hold no larger ones."""


def wrong_value(kind: str, rows: Sequence[Row]) -> str:
    """Return the first value that rows of a kind of run do not allow, with its name; empty for none."""
    for names, alike in groupby(rows, key=tuple):
        columns = zip(*(row.values() for row in alike), strict=True)
        for name, allowed, column in zip(names, _allowed(kind, names), columns, strict=True):
            if not allowed.issuperset(map(type, column)) or not all(map(_is_small, column)):
                wrong = next(one for one in column if type(one) not in allowed or not _is_small(one))
                return f"{name:.40} is {wrong!r:.40}"
    return ""


def _is_small(value: Value) -> bool:
    return not isinstance(value, int) or -LARGEST <= value <= LARGEST


@lru_cache(maxsize=256)
def _allowed(kind: str, names: tuple[str, ...]) -> list[set[type[Any]]]:
    """Return the types of the values under some names; a fraction may be null, as nan is in a record."""
    row = kind_of(frozenset(names), ROWS.get(kind, ()))
    known = {one.name: {one.type, *get_args(one.type)} for one in fields(row)} if row else {}
    known = {name: types | {int, NoneType} if float in types else types for name, types in known.items()}
    return [known.get(name, {str, int, float, bool, NoneType}) for name in names]


@cache
def _needed(kind: type[RowKind]) -> frozenset[str]:
    return frozenset(one.name for one in fields(kind) if one.default is MISSING)
