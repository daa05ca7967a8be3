"""What runs are made of and lower floors know: ranges of numbers, the shape of an encoder, optimization.

A nested value is one field of its owner in code, while in recipes and records its fields stand among those of
the owner: ``learning_rate = 1e-4`` in a method's table goes to the method's ``updates``.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import Field as DataclassField
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar

from pydantic import Field, model_validator

from isogloss.core.errors import ConfigError

Whole = Annotated[int, Field(strict=True)]
"""A whole number; true, false and texts are refused."""

Count = Annotated[int, Field(strict=True, ge=0)]
"""A number of things, possibly none."""

Positive = Annotated[int, Field(strict=True, ge=1)]
"""A number of things, at least one."""

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
"""A share, from 0 to 1."""

Rate = Annotated[float, Field(strict=True, gt=0)]
"""A step size, above 0."""

Weight = Annotated[float, Field(strict=True, ge=0)]
"""A factor that may be 0."""


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
        values |= values_of(current) if is_nested(field) else {field.name: current}
    return values


def parts_within(value: object) -> Iterator[object]:
    """Yield every dataclass within a run, or a tuple of runs, each before what stands in its fields."""
    if is_dataclass(value) and not isinstance(value, type):
        yield value
        value = tuple(getattr(value, field.name) for field in fields(value))
    for part in value if isinstance(value, tuple) else ():
        yield from parts_within(part)


def precision_of(value: object) -> str:
    """Return the precision that a method, or an optimization, asks for: auto, float32 or bfloat16.

    A part without such a field asks for none: auto.
    """
    return str(values_of(value).get("precision", "auto"))


def nested_fields() -> object:
    """Return the attribute of a class that lets pydantic read its nested values from its own table.

    What a table leaves out is the owner's default for it, not that of the nested class.
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
"""The part of an encoder that training on text changes: the modules of its languages; all but embeddings."""


class Named(Protocol):
    """A frozen dataclass that stands in one of the tables (METHODS, DIAGNOSTICS …)."""

    __dataclass_fields__: ClassVar[dict[str, DataclassField[object]]]
    name: ClassVar[str]
    """Name in the table, in kebab-case."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The shape of an encoder trained from scratch."""

    family: str = "bert"
    """Encoder family, as bert or xlm-roberta; `isogloss list encoders` names them all."""
    layers: Positive = 4
    """Transformer layers."""
    dim: Positive = 256
    """Width of the states; 64 to a head unless heads says otherwise."""
    heads: Positive = 4
    """Attention heads; must divide dim."""
    feed_forward: Positive = 1024
    """Width of the feed-forward layer (of each half where it is gated, as in modernbert)."""
    vocabulary: Positive = 12000
    """Subwords in the vocabulary that is trained on the text."""
    positions: Positive = 512
    """Longest input, in subwords."""
    dropout: Share = 0.1
    """Dropout of the encoder when it is fine-tuned; pretraining on this much text uses none."""


@dataclass(frozen=True, kw_only=True)
class Modules:
    """Modules that each language of an encoder has of its own; all other weights are shared."""

    kind: Literal["feed-forward", "attention", "adapter", "shared-adapter", "embedding"]
    """feed-forward or attention: every layer's, once for each language; adapter: a bottleneck for each
    language after every attention and feed-forward (``after``); shared-adapter: one for all (the control);
    embedding: a vector for each language that is added to the embeddings of its subwords (XLM)."""
    reduction: Positive = 4
    """How many times narrower than the states an adapter's bottleneck is."""
    fallback: str = ""
    """Language whose modules read the languages that have none; without one these are refused."""
    after: Literal["feed-forward"] | None = None
    """feed-forward: adapters follow the feed-forward alone, as in MAD-X; attention too when left out."""
    invertible: bool | None = None
    """Whether there are adapters at the embeddings too, undone before the masked-LM scores (MAD-X); none when
    left out."""
    embedding: bool | None = None
    """Whether a vector for each language is added to the embeddings of its subwords as well, as in XLM, with
    modules of any other kind; no when left out."""
    normed: bool | None = None
    """Whether adapters read the states that the following norm makes, and that norm their sum with the states
    before it (as Pfeiffer's of AdapterHub); they read and change the states before the norm when left out."""
    activation: Literal["relu", "swish"] | None = None
    """Of adapters; GELU when left out."""
    leave_out: tuple[int, ...] | None = None
    """Layers without adapters, from 1, or from the last, -1: [-1] is MAD-X 2.0; none when left out."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Text in languages that an encoder knows, mixed in while it is trained further: it is not to forget."""

    languages: tuple[str, ...]
    """Languages of that text; their perplexity on held-out text is measured too."""
    share: Share = 0.1
    """Share of the text's batches (of their rows, where these are mixed) that it has; 0 only measures."""
    text: tuple[str, ...] = ()
    """Corpora it is read from; those of the encoder when left out."""


@dataclass(frozen=True, kw_only=True)
class NewSubwords:
    """Subwords that an encoder gains before it is trained further, learned from the text of its languages."""

    size: Positive
    """At most so many: of a vocabulary of this size, those that the tokenizer lacks (of BPE, new merges)."""
    embeddings: Literal["subword-averages", "translations", "random"] = "subword-averages"
    """What they start from: the average of the old subwords they were split into; that of the words they
    translate, by word alignments, and of old subwords where they translate none; or random numbers with the
    old embeddings' mean and variance, which is also what subwords of unknown characters get."""
    bitext: str = ""
    """Corpus of translations that is aligned by [align], for translations; a dictionary is one, too."""
    pairs: tuple[str, ...] = ()
    """Pairs of languages in it, that which the encoder knows first: "en-sw"."""


TextAttention = Literal["causal", "bidirectional"]
"""Whether a subword of a decoder attends to preceding subwords, or to both sides."""


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Measurement of gradient conflict during a training, without effect on it, to the bit."""

    every: Positive = 10
    """Steps between two measurements; the last step is measured too."""

    batch: Positive = 4096
    """Rows each gradient is accumulated over: blocks of text, or labelled examples; half of them where there
    are fewer than twice as many. A measurement of two languages takes four gradients: large batches take
    longer than the training."""

    layers: bool = False
    """Whether single layers are recorded too, not only the kinds of modules and the model."""


@dataclass(frozen=True, kw_only=True)
class Updates:
    """How weights are updated: AdamW with linear warm-up and decay, the same for every training."""

    learning_rate: Rate = 2e-5
    """Highest rate, reached after the warm-up."""
    warmup: Share = 0.1
    """Share of the steps with linear warm-up."""
    rate_schedule: Literal["inverse-square-root", "constant"] | None = None
    """What the rate does after the warm-up: inverse-square-root, as in XLM (Vaswani et al. 2017, Section
    5.3); constant, as in Cao et al. (2020); linear decay to 0 when left out."""
    weight_decay: Weight = 0.01
    """AdamW's decay, on matrices only."""
    beta2: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.999
    """Adam's second moment decay."""
    epsilon: Rate | None = None
    """Adam's ε; 1e-8 when left out."""
    clip: Weight = 1.0
    """Largest gradient norm; 0 switches clipping off."""
    sam_radius: Weight | None = None
    """ρ of sharpness-aware minimization (Foret et al. 2021; 0.05 there): the weights move by their gradient
    at the worst point within ρ, to first order. An update takes two gradients, and so twice the time.
    Default: none."""
    accumulation: Positive | None = None
    """Parts that the batch of one update is computed in, one after the other or in several processes: less
    memory, the same result within rounding; one when left out."""
    gradient_checkpointing: bool | None = None
    """Whether each layer keeps its input alone and is computed anew for the gradients: far less memory, about
    a third more time, the same result; no when left out. It has nothing to do with checkpoint_every."""
    optimizer_states: Literal["8-bit"] | None = None
    """8-bit: Adam's two moments take 2 bytes a weight, not 8 (Dettmers et al. 2022; isogloss[eight-bit]); the
    result is a little another. 32-bit when left out."""
    capture: bool | None = None
    """Whether updates on batches of one shape become a CUDA graph, launched at once: for small encoders and
    short rows, whose kernels take less time than their launches. Rows are padded to few shapes. The same
    result within rounding; no when left out. Batches of pairs, trees and spans are computed as usual."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """auto (measured once per machine), float32 or bfloat16."""
    checkpoint_every: Count = 200
    """Steps between checkpoints; 0 for none. The first is written after a minute at the latest. Later ones
    are skipped while they would take more than 2 % of the time. SIGTERM writes one in any case."""

    def __post_init__(self) -> None:
        """Replace a radius of 0 by None; raise ConfigError for what cannot be captured as a graph."""
        if self.sam_radius == 0:
            object.__setattr__(self, "sam_radius", None)
        others = {
            "sam_radius": self.sam_radius is not None,
            "accumulation": (self.accumulation or 1) > 1,
            "gradient_checkpointing": self.gradient_checkpointing,
            "optimizer_states": self.optimizer_states,
        }
        refused = " and ".join(name for name, value in others.items() if value)
        if self.capture and refused:
            raise ConfigError(
                f"capture makes an update one graph, and {refused} makes it another. Leave capture out, or "
                f"{refused}."
            )


@dataclass(frozen=True, kw_only=True)
class TextTraining:
    """How an encoder is trained on raw text, by whatever method."""

    steps: Count = 10000
    """Updates; 0 leaves the encoder as it was, or as it was drawn."""
    batch_subwords: Positive = 4096
    """Subwords of one update, padding included."""
    block: Positive = 128
    """Subwords of one row of text, special ones included."""
    masked: Share = 0.15
    """Share of the subwords that are predicted."""
    temperature: Rate = 1.43
    """T in size^(1/T), with which languages are drawn; 1 keeps their proportions, large is even."""
    vocabulary_lines: Positive = 200_000
    """Lines the vocabulary is trained on, the same number of each language."""
    dropout: Share | None = None
    """Dropout while it is trained on text (XLM: 0.1); none when left out, as small encoders underfit."""
    evaluate_every: Positive | None = None
    """Steps of an epoch, after each of which the perplexity on held-out text is measured (Wang 2020: 10000);
    when left out, nothing is held out."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """How a model is fine-tuned.

    Rate, schedule, epochs, batches and lengths are those of Appendix A of the first paper, whose weight_decay
    and clip are 0 (docs/presets.md).
    """

    epochs: Positive = 5
    """Passes over the training data."""
    batch_size: Positive = 32
    """Sentences (or pairs) a step."""
    limit: Positive = 128
    """Longest input in subwords, special ones included; longer sentences become overlapping windows."""
    overlap: Count = 64
    """Subwords shared by neighbouring windows."""
    head_learning_rate: Rate | None = None
    """Highest rate of the head (and a pooler), as 1e-3 for a new one on an encoder that learns at 2e-5;
    learning_rate when left out."""
    averaged_epochs: Positive | None = None
    """The model is the mean of the weights after so many epochs, the last ones (stochastic weight averaging,
    Izmailov et al. 2018); the epoch that is best on dev data when left out."""
    patience: Count | None = None
    """Epochs in a row without a higher dev score after which training stops; the rate falls as if all epochs
    were to come. Never when left out or 0."""
    dev: Literal["source", "target", "all"] | None = None
    """Languages whose mean dev score chooses the epoch: source, target (then transfer is not zero-shot), or
    all; those that the method reads when left out. few-shot has a field of this name itself."""
    updates: Updates = dataclasses.field(default=Updates(), metadata=NESTED)
    """How weights are updated."""

    _nested = nested_fields()

    def __post_init__(self) -> None:
        """Treat a patience of 0, as written in a grid's list, as if it were left out."""
        if self.patience == 0:
            object.__setattr__(self, "patience", None)
