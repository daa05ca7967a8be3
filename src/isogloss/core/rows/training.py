"""The rows of runs that train, align or translate, each kind declared once (``core.rows`` has the others)."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingStep:
    """The loss at one step of any training; language "" is all of them."""

    frame: ClassVar[str] = "training-steps"
    step: int
    loss: float
    rate: float
    language: str = ""
    subwords: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A model in training on one dev set after one epoch."""

    frame: ClassVar[str] = "epochs"
    epoch: int
    step: int
    language: str
    split: str
    metric: str
    score: float
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Perplexity:
    """How perplexed an encoder is by held-out text of one language after one epoch of pretraining."""

    frame: ClassVar[str] = "perplexity"
    step: int
    epoch: int
    language: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SubwordsAdded:
    """How many subwords an encoder gained, and how many of them start from translations, parts or chance."""

    frame: ClassVar[str] = "new-subwords"
    added: int
    from_translations: int
    from_averages: int
    at_random: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How many parameters of an encoder are a language's own; language "" is all share."""

    frame: ClassVar[str] = "parameters"
    language: str
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedParameters:
    """How many numbers a fine-tuning changed, the head's included, and how many the model has."""

    frame: ClassVar[str] = "trained-parameters"
    trained: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedModel:
    """A model in an average on one dev set, with its weight; the average itself where ``part`` is ""."""

    frame: ClassVar[str] = "averaged"
    part: str
    weight: float | None
    language: str
    split: str
    metric: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """How many updates a fine-tuning with patience made of those planned, its last epoch, and that chosen."""

    frame: ClassVar[str] = "stopping"
    updates: int
    planned: int
    last_epoch: int
    chosen_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictStep:
    """Cosine of gradients while a model trains, after one step."""

    frame: ClassVar[str] = "training-conflict"
    step: int
    draw: int
    batch: int
    first: str
    second: str
    layer: int | None
    module: str
    cosine: float | None
    within: float | None = None
    norm_first: float
    norm_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BitextRead:
    """What a training read of the bitext of one pair of languages."""

    frame: ClassVar[str] = "bitext-read"
    pair: str
    translations: int
    left_out: int
    pulled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alignment:
    """A word alignment of bitext: the number of links and, with gold links, how many are right."""

    frame: ClassVar[str] = "alignment"
    pairs: int
    links: int
    gold_pairs: int = 0
    precision: float | None = None
    recall: float | None = None
    f1: float | None = None
    aer: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedSplit:
    """One translated split: what was lost, and, of bitext, chrF and BLEU against its own translations.

    ``tagged`` is the share of words that have a tag, where tags were projected.
    """

    frame: ClassVar[str] = "translations"
    examples: int
    translated: int
    lost: int
    cuts: int
    metric: str | None = None
    score: float | None = None
    bleu: float | None = None
    signature: str | None = None
    tagged: float | None = None
