"""The tables and fields of a recipe, as frozen values."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator

from isogloss.core.languages import canonical_language
from isogloss.core.run_parts import (
    Architecture,
    Count,
    Modules,
    NewSubwords,
    Positive,
    Replay,
    TextAttention,
    TrainedPart,
    Whole,
)
from isogloss.data.corpus import Split

Table = dict[str, Any]
OneOrMany = str | tuple[str, ...]
T = TypeVar("T")
Language = Annotated[str, AfterValidator(canonical_language)]
"""A language, a pair or several joined by plus, as BCP 47 or FLORES write them: zh-Hant, eng_Latn."""


def many(value: T | tuple[T, ...]) -> tuple[T, ...]:
    """Return a tuple of values, given one value or a tuple."""
    return value if isinstance(value, tuple) else (value,)


def _default_pretraining() -> dict[str, object]:
    return {"name": "masked-language-modelling"}


@dataclass(frozen=True, kw_only=True)
class PretrainTable:
    """[encoder.pretrain]: pretraining of an encoder on text."""

    start: str = ""
    """The encoder that is trained further: "shipped", a folder, a hub name (name@revision), or the label of
    an encoder of the recipe. Default: a new encoder."""
    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[Language, ...]
    """Languages of the text. The first is the pivot of the bitext."""
    bitext: str = ""
    """Corpus of translations for translation LM."""
    lines: dict[Language, Positive] = field(default_factory=dict)
    """Maximum number of lines of a language, drawn at random from the seed (a low-resource copy of it).
    Default: all lines."""
    architecture: Architecture | None = None
    """The shape of a new encoder. It has separate defaults. With ``start``, the shape is the start's."""
    vocabulary: NewSubwords | None = None
    """Subwords that the start gains, learned from the text of ``languages``. Default: none."""
    replay: Replay | None = None
    """Text in languages that the start knows, mixed in so that it does not forget them."""
    modules: Modules | None = None
    """Modules of each language. Default: all weights are shared. A start with such modules gets modules for
    the languages it lacks."""
    trained: TrainedPart | None = None
    """modules: only the language modules are trained, and all other weights stay as in the start. layers: all
    weights except the embeddings. Default: all weights."""
    method: Table = field(default_factory=_default_pretraining)
    """The method of training: ``name`` and the method's fields."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of initial weights, order, masks and drawn lines. A list makes an encoder for each seed.
    Models of the grid start from the encoder of the same seed."""


@dataclass(frozen=True, kw_only=True)
class EncoderTable:
    """[encoder]: pretrained by the recipe, or existing."""

    pretrain: PretrainTable | None = None
    """Make it from text."""
    pretrained: str = ""
    """ "shipped", a folder, or a name on the Hugging Face hub (name@revision for a branch, tag or commit)."""
    attention: TextAttention | None = None
    """Attention of a decoder: causal (a subword attends to those before it) or bidirectional (the mask is
    lifted). Default: as in its config.json."""
    label: str = ""
    """Its name in methods and tables. Default: "original"."""


@dataclass(frozen=True, kw_only=True)
class AdjustTable:
    """The fields of an [[adjust]] table in addition to the method's. Each table makes one more encoder."""

    name: str
    """The adjustment method."""
    preset: str = ""
    """paper or released: the method's fields that you do not set have the values of the paper or of its
    released code. Default: the defaults of isogloss."""
    bitext: str
    """Corpus of translations ("bitext:bible")."""
    pairs: tuple[Language, ...]
    """Pairs of languages, the source first: "en-es"."""
    examples: Count | tuple[Count, ...] = 0
    """Translations of each pair, drawn at random. 0 for all. A list makes one encoder for each size."""
    sample: Literal["random"] | None = None
    """random: drawn from the seed, from bitext whose words are aligned as a whole. With one seed, a smaller
    sample is part of a larger one. Default: the same translations for every seed, aligned by themselves."""
    start: str = "original"
    """Label of the encoder it starts from."""
    label: str = ""
    """Name of the new encoder in methods and tables. Default: the method's name (and size)."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of the sample, the order and dropout. A list makes an encoder for each seed, and a model of the
    grid starts from the encoder with its seed."""


@dataclass(frozen=True, kw_only=True)
class GridTable:
    """[grid]: the product of all lists."""

    corpus: OneOrMany
    """Corpora with labels."""
    task: OneOrMany = ()
    """Tasks, each on the corpora that have labels for it. Default: the corpus's task."""
    source: Language | tuple[Language, ...]
    """Source languages, each used separately. "en+ar" trains on both at once."""
    targets: tuple[Language, ...]
    """Target languages, each used separately. "de+fr" trains for both at once."""
    seeds: tuple[Whole, ...] = (0, 1, 2)
    """Seeds of head, order and dropout."""
    method: tuple[Table, ...]
    """Methods: ``name``, their fields, and any field of the optimization that differs."""
    optimization: Table = field(default_factory=dict)
    """Fields of the optimization for all methods. A list makes one grid point for each value."""
    treebanks: dict[Language, str] = field(default_factory=dict)
    """Treebank of a language where a corpus has several."""
    peft: Table = field(default_factory=dict)
    """Trained weights: ``kind`` (lora, dora, ia3 …) and its fields. Default: all weights."""
    examples: Count = 0
    """Training examples of each language, drawn at random. 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language, drawn at random, that choose the epoch. 0 for all."""


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """The fields of a [[grid.method]] table besides the method's and the optimization's."""

    name: str
    """The method."""
    preset: str = ""
    """paper or released: fields of the method and the optimization that neither this table nor the grid sets
    have the values of the paper or of its released code. Default: the defaults of isogloss."""
    label: str = ""
    """Its name in measurements. Default: the method's name."""
    sources: tuple[Language, ...] = ()
    """Sources of the grid it is trained from. Default: all."""
    targets: tuple[Language, ...] = ()
    """Targets of the grid it is trained for. Default: all."""
    start: str = ""
    """Label of the method whose model it starts from. Default: it starts from the encoder."""
    teacher: str = ""
    """Label of the method whose model's predictions are learned, if it or its auxiliary loss learns some.
    Default: a source-only model."""
    against: str = ""
    """Label of the method that reports compare it with. Default: the one that differs from it only in the
    method, if there is exactly one."""
    auxiliary: Table = field(default_factory=dict)
    """A loss added to the method's: ``name`` and the loss's fields. Default: none."""
    peft: Table = field(default_factory=dict)
    """Weights it trains, instead of the grid's choice. { kind = "none" } trains all weights."""
    encoders: tuple[str, ...] = ()
    """Labels of the encoders it starts from ("original" for an encoder without a label). Default: all."""
    of: tuple[str, ...] = ()
    """Parts of an average: labels of the methods whose models are averaged, and of encoders that were trained
    further from the grid's (language vectors)."""
    size: Count = 1
    """Seeds of the grid in each average. 3 makes averages of the first three, the next three …, under the
    first seed of each. 0 makes one average of all seeds."""


@dataclass(frozen=True, kw_only=True)
class MeasureTable:
    """The fields of a [[measure]] table besides the diagnostic's: which runs are measured."""

    name: str
    """The diagnostic."""
    split: Split = "dev"
    """Split it reads."""
    examples: Count = 0
    """Examples of each language, drawn at random. 0 for all."""
    corpus: str = ""
    """Corpus they are measured on. For encoders it is bitext (cka and representation-map also read a parallel
    test set, mining reads comparable text). For models it is a corpus of their task that differs from the
    grid's ("mlqa:de" has German questions)."""
    languages: tuple[Language, ...] = ()
    """Measured languages (for encoders the first with each other one). Default: the recipe's."""
    treebanks: str | dict[Language, str] = field(default_factory=dict)
    """Treebank of all languages, or of each, if the corpus has several. Default: the grid's."""
    inputs: str = ""
    """Form of target inputs: unchanged (""), "translated" into the source (translate-test), or "paired" with
    their translations (only for models of x-mixup and paths between them). Or with a part in the source
    language: "mixed" (one text of a pair, at random), "mixed-first", "mixed-second", "mixed-question",
    "mixed-passage"."""
    tasks: tuple[str, ...] = ()
    """Tasks of the grid that are measured. Default: all."""
    targets: tuple[Language, ...] = ()
    """Targets of the grid that are measured. Default: all."""
    seeds: tuple[Whole, ...] = ()
    """Seeds of the grid that are measured. Default: all."""
    methods: tuple[str, ...] = ()
    """Labels of the grid's methods that are measured. Default: all."""
    encoders: tuple[str, ...] = ()
    """Labels of the recipe's encoders that are measured, or whose models are. Default: all."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A recipe."""

    title: str
    """The question of the experiment, in a sentence."""
    extends: str = ""
    """A recipe that this one completes: a file in its folder, or the name of a packaged one."""
    encoder: str | EncoderTable | tuple[str | EncoderTable, ...] = "shipped"
    """The encoder or encoders."""
    pretrain: Table = field(default_factory=dict)
    """Fields shared by the recipe's encoder.pretrain tables."""
    align: Table = field(default_factory=dict)
    """The aligner of words in bitext: ``name`` (default: fast-align) and the aligner's fields."""
    translate: Table = field(default_factory=dict)
    """The translator of examples: ``name``, its fields and its model. Default: translations are read from the
    corpora's own files."""
    adjust: tuple[Table, ...] = ()
    """Encoders that are adjusted: ``name``, the method's fields, and the bitext."""
    grid: GridTable | None = None
    """The models to fine-tune. Without it, encoders are only pretrained or adjusted (and measured)."""
    measure: tuple[Table, ...] = ()
    """Diagnostics: ``name``, their fields, and which runs they measure."""
    scale: dict[str, Table] = field(default_factory=dict)
    """Named changes to the recipe (--scale): dotted keys and their values."""
    published: str = ""
    """A CSV file in the recipe's folder with numbers of a paper, which the report compares with ours."""
