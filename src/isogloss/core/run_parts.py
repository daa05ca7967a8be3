"""What runs are made of and lower floors know: ranges of numbers, the shape of an encoder, optimization."""

from dataclasses import Field as DataclassField
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import Field

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


class Named(Protocol):
    """A frozen dataclass that stands in one of the tables (METHODS, DIAGNOSTICS …)."""

    __dataclass_fields__: ClassVar[dict[str, DataclassField[Any]]]
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

    kind: Literal["feed-forward", "attention", "adapter", "shared-adapter"]
    """feed-forward or attention: every layer's, once for each language; adapter: a bottleneck for each
    language after every attention and feed-forward; shared-adapter: one for all (the control)."""
    reduction: Positive = 4
    """How many times narrower than the states an adapter's bottleneck is."""
    fallback: str = ""
    """Language whose modules read the languages that have none; without one these are refused."""


@dataclass(frozen=True, kw_only=True)
class Optimization:
    """How a model is fine-tuned; the defaults are the seed paper's (Appendix A)."""

    epochs: Positive = 5
    """Passes over the training data."""
    learning_rate: Rate = 2e-5
    """Highest rate, reached after the warm-up; then linear decay to 0."""
    batch_size: Positive = 32
    """Sentences (or pairs) a step."""
    warmup: Share = 0.1
    """Share of the steps with linear warm-up."""
    weight_decay: Weight = 0.01
    """AdamW's decay, on matrices only."""
    beta2: Annotated[float, Field(strict=True, ge=0, lt=1)] = 0.999
    """Adam's second moment decay (the paper's released code used 0.99)."""
    clip: Weight = 1.0
    """Largest gradient norm; 0 switches clipping off."""
    limit: Positive = 128
    """Longest input in subwords, special ones included; longer sentences become overlapping windows."""
    overlap: Count = 64
    """Subwords shared by neighbouring windows."""
    precision: str = "auto"
    """auto (measured once per machine), float32 or bfloat16."""
    checkpoint_every: Count = 200
    """Steps between checkpoints; 0 for none."""
