"""Parts of runs for lower layers: ranges of numbers, shapes of encoders, optimization.

A nested value is one field of its owner in code, while recipes and records list its fields with the owner's:
``learning_rate = 1e-4`` in a method's table sets a field of the method's ``updates``.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import Field as DataclassField
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from annotated_types import Ge, Gt, Le
from pydantic import Field, Strict, model_validator

from isogloss.core.errors import ConfigError

Whole = Annotated[int, Strict()]
"""A whole number. True, false and texts are refused."""

Precision = Literal["auto", "float32", "tf32", "bfloat16"]
"""Precision of a computation. auto is float32 or bfloat16, whichever is faster on a machine."""

ALIGNED_SUBWORDS: Literal["aligned-subwords"] = "aligned-subwords"
"""Value of the field ``word`` of methods that read links of subwords instead of words."""

Count = Annotated[int, Strict(), Ge(0)]
"""A number of things, possibly none."""

Positive = Annotated[int, Strict(), Ge(1)]
"""A number of things, at least one."""

Share = Annotated[float, Strict(), Ge(0), Le(1)]
"""A share, from 0 to 1."""

Rate = Annotated[float, Strict(), Gt(0)]
"""A step size, above 0."""

Weight = Annotated[float, Strict(), Ge(0)]
"""A factor that may be 0."""


Residual = Literal["normed", "summed"]

Attends = Literal["cosine", "links"]
"""Source of Eq. 3's weights, instead of queries and keys."""

Mixed = Literal["states"]
"""States that are mixed, instead of the outputs of self-attention."""

NESTED = {"nested": True}
"""The metadata of a field that holds a nested value."""

Owner = TypeVar("Owner")


def is_nested(field: "DataclassField[Any]") -> bool:
    """Return whether a dataclass's field holds a nested value."""
    return bool(field.metadata.get("nested"))


def keys_of(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of a dataclass's fields as recipes and records have them."""
    return tuple(
        name
        for field in fields(kind)
        for name in (keys_of(type(field.default)) if is_nested(field) else (field.name,))
    )


def with_fields(value: Owner, **changes: object) -> Owner:
    """Return a value with some fields replaced, by the names that recipes and records have."""
    remaining: dict[str, object] = dict(changes)
    for field in fields(value):  # type: ignore[arg-type]
        if is_nested(field):
            inside = {name: remaining.pop(name) for name in keys_of(type(field.default)) if name in remaining}
            if inside:
                remaining[field.name] = with_fields(
                    remaining.get(field.name, getattr(value, field.name)), **inside
                )
    return replace(value, **remaining)  # type: ignore[type-var]


def values_of(value: object) -> dict[str, object]:
    """Return the fields of a dataclass by the names that recipes and records have."""
    values: dict[str, object] = {}
    for field in fields(value):  # type: ignore[arg-type]
        current = getattr(value, field.name)
        if is_nested(field):
            values |= values_of(current)
        else:
            values[field.name] = current
    return values


def parts_within(value: object) -> Iterator[object]:
    """Yield every dataclass within a run, or a tuple of runs, each before its fields' values."""
    if is_dataclass(value) and not isinstance(value, type):
        yield value
        value = tuple(getattr(value, field.name) for field in fields(value))
    for part in value if isinstance(value, tuple) else ():
        yield from parts_within(part)


def precision_of(value: object) -> str:
    """Return the precision of a method or an optimization (``Precision``).

    Default, for parts without such a field: auto.
    """
    return str(values_of(value).get("precision", "auto"))


def nested_fields() -> object:
    """Return the attribute of a class that lets pydantic read its nested values from its own table.

    Fields that a table does not set have the owner's default, not the default of the nested class.
    """

    def nest(cls: type[Any], values: object) -> object:
        if not isinstance(values, Mapping):
            return values
        table = dict(values)
        for field in fields(cls):
            if is_nested(field) and isinstance(table.get(field.name, {}), Mapping):
                names = keys_of(type(field.default))
                inside = {name: table.pop(name) for name in names if name in table}
                default = {name: getattr(field.default, name) for name in names}
                table[field.name] = {**default, **table.get(field.name, {}), **inside}
        return table

    return model_validator(mode="before")(classmethod(nest))  # type: ignore[arg-type]


TrainedPart = Literal["modules", "layers"]
"""The part of an encoder that training on text changes: language modules, or all but the embeddings."""


class Named(Protocol):
    """Base of the frozen dataclasses in the tables (METHODS, DIAGNOSTICS …)."""

    __dataclass_fields__: ClassVar[dict[str, DataclassField[object]]]
    name: ClassVar[str]
    """Name in the table, in kebab-case."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shape of an encoder trained from scratch."""

    family: str = "bert"
    """Encoder family, such as bert or xlm-roberta. `isogloss list encoders` lists all."""
    layers: Positive = 4
    """Transformer layers."""
    dim: Positive = 256
    """Width of the states: 64 per head unless heads is set."""
    heads: Positive = 4
    """Number of attention heads, a divisor of dim."""
    feed_forward: Positive = 1024
    """Width of the feed-forward layer (of each half where it is gated, as in modernbert)."""
    vocabulary: Positive = 12000
    """Subwords in the vocabulary that is trained on the text."""
    positions: Positive = 512
    """Longest input, in subwords."""
    dropout: Share = 0.1
    """Dropout of the encoder when it is fine-tuned. Pretraining on this much text uses none."""


@dataclass(frozen=True, kw_only=True)
class Modules:
    """Modules of an encoder that are separate for each language. All other weights are shared."""

    kind: Literal["feed-forward", "attention", "adapter", "shared-adapter", "embedding"]
    """Kind of modules. feed-forward or attention: one per layer and language. adapter: a bottleneck per
    language after every attention and feed-forward (``after``). shared-adapter: one bottleneck for all
    languages (the control). embedding: a vector per language, added to the embeddings of its subwords
    (XLM)."""
    reduction: Positive = 4
    """Factor by which an adapter's bottleneck is narrower than the states."""
    fallback: str = ""
    """Language whose modules read languages without modules. Default: these are refused."""
    after: Literal["feed-forward"] | None = None
    """feed-forward: adapters follow only the feed-forward, as in MAD-X. Default: also attention."""
    invertible: bool | None = None
    """Whether the embeddings also have adapters, inverted before the masked-LM scores (MAD-X). Default:
    no."""
    embedding: bool | None = None
    """Whether a vector for each language is also added to the embeddings of its subwords, as in XLM, with any
    other kind of modules. Default: no."""
    normed: bool | None = None
    """Whether adapters read the states after the following norm, which then normalises their sum with the
    states before it (as in AdapterHub's Pfeiffer adapter). Default: adapters read and change the states
    before the norm."""
    activation: Literal["relu", "swish"] | None = None
    """Activation of adapters. Default: GELU."""
    leave_out: tuple[int, ...] | None = None
    """Layers without adapters, from 1, or from the last, -1: [-1] is MAD-X 2.0. Default: none."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Text in languages that an encoder knows, mixed in while it is trained further: it is not to forget."""

    languages: tuple[str, ...]
    """Languages of that text. Their perplexity on held-out text is also measured."""
    share: Share = 0.1
    """Share of the text's batches (of their rows, where these are mixed) that it has. 0 only measures."""
    text: tuple[str, ...] = ()
    """Corpora of the text. Default: the corpora of the encoder."""


@dataclass(frozen=True, kw_only=True)
class NewSubwords:
    """Subwords that an encoder gains before it is trained further, learned from the text of its languages."""

    size: Positive
    """Maximum number of new subwords: from a vocabulary of this size, the subwords that the tokenizer lacks
    (new merges for BPE)."""
    embeddings: Literal["subword-averages", "translations", "random"] = "subword-averages"
    """Initial embeddings. subword-averages: the average of the old subwords of the same text. translations:
    the average of the words they translate, by word alignments, and of old subwords where they translate
    none. random: random numbers with the mean and variance of the old embeddings. Subwords of unknown
    characters are always random."""
    bitext: str = ""
    """Corpus of translations that is aligned by [align], for translations. A dictionary also works."""
    pairs: tuple[str, ...] = ()
    """Pairs of languages in it, that which the encoder knows first: "en-sw"."""


TextAttention = Literal["causal", "bidirectional"]
"""Whether a subword of a decoder attends to preceding subwords, or to both sides."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Measurement of gradient conflict during a training, without effect on it, to the bit."""

    every: Positive = 10
    """Steps between two measurements. The last step is also measured."""

    batch: Positive = 4096
    """Rows per gradient: blocks of text, or labelled examples. Half of the rows if a language has fewer than
    twice as many. Measuring two languages takes four gradients, so with large batches it takes longer than
    the training."""

    layers: bool = False
    """Whether to record single layers, in addition to the kinds of modules and the model."""


@dataclass(frozen=True, kw_only=True)
class Updates:
    """Optimization of every training: AdamW with linear warm-up and decay."""

    learning_rate: Rate = 2e-5
    """Highest rate, reached after the warm-up."""
    warmup: Share = 0.1
    """Share of the steps with linear warm-up."""
    rate_schedule: Literal["inverse-square-root", "constant"] | None = None
    """Learning rate after the warm-up. inverse-square-root: as in XLM (Vaswani et al. 2017, Section 5.3).
    constant: as in Cao et al. (2020). Default: linear decay to 0."""
    weight_decay: Weight = 0.01
    """AdamW's decay, on matrices only."""
    beta2: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.999
    """Adam's second moment decay."""
    epsilon: Rate | None = None
    """Adam's ε. Default: 1e-8."""
    clip: Weight = 1.0
    """Maximum gradient norm. 0 disables clipping."""
    sam_radius: Weight | None = None
    """ρ of sharpness-aware minimization (Foret et al. 2021; 0.05 there): the weights move by their gradient
    at the worst point within ρ, to first order. An update takes two gradients, and so twice the time.
    Default: none."""
    accumulation: Positive | None = None
    """Number of parts that the batch of an update is computed in, sequentially or in several processes. More
    parts need less memory. The result is the same within rounding. Default: 1."""
    gradient_checkpointing: bool | None = None
    """Whether each layer stores only its input and recomputes its states for the gradients (gradient
    checkpointing): far less memory, about a third more time, the same result. Default: no. Unrelated to
    checkpoint_every."""
    optimizer_states: Literal["8-bit"] | None = None
    """8-bit: Adam's two moments take 2 bytes per weight instead of 8 (Dettmers et al. 2022;
    isogloss[eight-bit]); the result differs slightly. Default: 32-bit."""
    capture: bool | None = None
    """Whether updates on batches of one shape become a CUDA graph, launched at once: for small encoders and
    short rows, whose kernels take less time than their launches. Rows are padded to few shapes. The result is
    the same within rounding. Default: no. Batches of pairs, trees and spans are computed as usual."""
    precision: Precision = "auto"
    """auto (float32 or bfloat16, measured once per machine), float32, bfloat16, or tf32: float32 with factors
    rounded to 10 bits. Only GPUs from NVIDIA's Ampere on compute in tf32."""
    checkpoint_every: Count = 200
    """Steps between checkpoints. 0 for none. The first is written after a minute at the latest. Later ones
    are skipped while they would take more than 2 % of the time. SIGTERM writes one in any case."""

    def __post_init__(self) -> None:
        """Replace a radius of 0 by None. Raises ConfigError for settings that a graph cannot capture."""
        if self.sam_radius == 0:
            object.__setattr__(self, "sam_radius", None)
        settings = {
            "sam_radius": self.sam_radius is not None,
            "accumulation": (self.accumulation or 1) > 1,
            "gradient_checkpointing": self.gradient_checkpointing,
            "optimizer_states": self.optimizer_states,
        }
        conflicts = " and ".join(name for name, value in settings.items() if value)
        if self.capture and conflicts:
            raise ConfigError(
                f"capture makes an update one graph, and {conflicts} makes it another. Remove capture, or "
                f"{conflicts}."
            )


@dataclass(frozen=True, kw_only=True)
class TextTraining:
    """Length, batches, masking and optimization of a training on raw text by any method."""

    steps: Count = 10000
    """Number of updates. 0 leaves the initial weights unchanged."""
    batch_subwords: Positive = 4096
    """Subwords of one update, padding included."""
    block: Positive = 128
    """Subwords of one row of text, special ones included."""
    masked: Share = 0.15
    """Share of the subwords that are predicted."""
    temperature: Rate = 1.43
    """T of the weights size^(1/T) for drawing languages. 1 keeps their proportions, large values even them
    out."""
    vocabulary_lines: Positive = 200_000
    """Number of lines on which the vocabulary is trained, equally many per language."""
    dropout: Share | None = None
    """Dropout during the training on text (XLM: 0.1). Default: none, because small encoders underfit."""
    evaluate_every: Positive | None = None
    """Steps per epoch. 10,000 in Wang 2020. The perplexity on held-out text is measured after each epoch.
    Default: no text is held out."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """Optimization of a fine-tuning.

    Rate, schedule, epochs, batches and lengths follow Appendix A of the first paper, which uses weight_decay
    and clip 0 (docs/presets.md).
    """

    epochs: Positive = 5
    """Passes over the training data."""
    batch_size: Positive = 32
    """Sentences (or pairs) a step."""
    limit: Positive = 128
    """Longest input in subwords, special ones included. Longer sentences become overlapping windows."""
    overlap: Count = 64
    """Subwords shared by neighbouring windows."""
    head_learning_rate: Rate | None = None
    """Peak learning rate of the head (and a pooler), such as 1e-3 for a new head on an encoder that learns at
    2e-5. Default: learning_rate."""
    head_seed: Count | None = None
    """Seed of a new head's first weights, to tell their influence from the order of examples and dropout,
    which the run's seed draws. Default: the run's seed."""
    head_weights: Literal["zeros"] | None = None
    """First weights of the last layer of a new head. zeros: other languages' states meet no random weights
    that the source never trained. Default: drawn by the seed."""
    averaged_epochs: Positive | None = None
    """Number of last epochs whose weights are averaged (stochastic weight averaging, Izmailov et al. 2018).
    Default: the epoch with the best dev score."""
    patience: Count | None = None
    """Consecutive epochs without a higher dev score after which training stops. The learning rate decays as
    if all epochs were run. Default: 0, never."""
    dev: Literal["source", "target", "all"] | None = None
    """Languages that choose the epoch by their mean dev score: source, target (then transfer is not
    zero-shot), or all. Default: the languages that the method reads. few-shot has a separate field with this
    name."""
    updates: Updates = dataclasses.field(default=Updates(), metadata=NESTED)
    """Optimization of the training."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Treat a patience of 0, which lists in a grid may contain, like the default."""
        if self.patience == 0:
            object.__setattr__(self, "patience", None)
        if self.head_weights and self.head_seed is not None:
            raise ConfigError("head_seed: found with head_weights, which leaves nothing to draw. Remove one.")
