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


@dataclass(frozen=True, kw_only=True)
class PretrainTable:
    """[encoder.pretrain]: an encoder made from text."""

    start: str = ""
    """The encoder that is trained further: "shipped", a folder, a hub name (name@revision), or the label of
    another encoder of the recipe; a new one is made when left out."""
    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[Language, ...]
    """Languages of the text; the first is the pivot of the bitext."""
    bitext: str = ""
    """Corpus of translations for translation LM."""
    lines: dict[Language, Positive] = field(default_factory=dict)
    """At most so many lines of a language, drawn at random from the seed (a low-resource copy of it); all of
    the languages left out."""
    architecture: Architecture | None = None
    """The shape of a new encoder, with defaults of its own; with ``start`` it is that of the start."""
    vocabulary: NewSubwords | None = None
    """Subwords that the start gains, learned from the text of ``languages``; none when left out."""
    replay: Replay | None = None
    """Text in languages that the start knows, mixed in so that it does not forget them."""
    modules: Modules | None = None
    """Modules of each language; all weights are shared when left out. A start with such modules gets those
    of the languages it lacks."""
    trained: TrainedPart | None = None
    """modules: only those of the languages are trained, all else stays as in the start; layers: all but the
    embeddings; everything is trained when left out."""
    method: Table = field(default_factory=lambda: {"name": "masked-language-modelling"})
    """How it is trained: ``name`` and the method's fields."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of initial weights, order, masks, and the lines drawn; a list makes an encoder for each, and a
    model of the grid starts from the encoder of its own seed."""


@dataclass(frozen=True, kw_only=True)
class EncoderTable:
    """[encoder]: pretrained by the recipe, or existing."""

    pretrain: PretrainTable | None = None
    """Make it from text."""
    pretrained: str = ""
    """ "shipped", a folder, or a name on the Hugging Face hub (name@revision for a branch, tag or commit)."""
    attention: TextAttention | None = None
    """Of a decoder: causal (a subword attends to those before it) or bidirectional (the mask is lifted); as
    its config.json says when left out."""
    label: str = ""
    """Its name in methods and tables; "original" when left out."""


@dataclass(frozen=True, kw_only=True)
class AdjustTable:
    """The fields of an [[adjust]] table besides the method's; each table makes one more encoder."""

    name: str
    """How the encoder is adjusted."""
    preset: str = ""
    """paper or released: the method's fields that you do not set have the values of the paper or of its
    released code. Default: the defaults of isogloss."""
    bitext: str
    """Corpus of translations ("bitext:bible")."""
    pairs: tuple[Language, ...]
    """Pairs of languages, the source first: "en-es"."""
    examples: Count | tuple[Count, ...] = 0
    """Translations of each pair, drawn at random; 0 for all; a list makes one encoder for each size."""
    sample: Literal["random"] | None = None
    """random: drawn from the seed, of bitext whose words are aligned as a whole; with one seed, a smaller
    sample is part of a larger one. The same for every seed, and aligned by themselves, when left out."""
    start: str = "original"
    """Label of the encoder it starts from."""
    label: str = ""
    """Name of the new encoder in methods and tables; the method's name (and size) when left out."""
    seed: Whole | tuple[Whole, ...] = 0
    """Seed of the sample, of the order and of dropout; a list makes an encoder for each, and a model of the
    grid starts from the encoder of its own seed."""


@dataclass(frozen=True, kw_only=True)
class GridTable:
    """[grid]: the product of all lists."""

    corpus: OneOrMany
    """Corpora with labels."""
    task: OneOrMany = ()
    """Tasks, each on the corpora that have labels for it; the corpus's task when left out."""
    source: Language | tuple[Language, ...]
    """Source languages, one after the other; "en+ar" trains on both at once."""
    targets: tuple[Language, ...]
    """Target languages, one after the other; "de+fr" trains for both at once."""
    seeds: tuple[Whole, ...] = (0, 1, 2)
    """Seeds of head, order and dropout."""
    method: tuple[Table, ...]
    """Methods: ``name``, their fields, and any field of the optimization that differs."""
    optimization: Table = field(default_factory=dict)
    """Fields of the optimization for all methods; a list makes one grid point for each value."""
    treebanks: dict[Language, str] = field(default_factory=dict)
    """Treebank of a language where a corpus has several."""
    peft: Table = field(default_factory=dict)
    """Which weights are trained: ``kind`` (lora, dora, ia3 …) and its fields; all when left out."""
    examples: Count = 0
    """Training examples of each language, drawn at random; 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language that choose the epoch, drawn at random; 0 for all."""


@dataclass(frozen=True, kw_only=True)
class MethodTable:
    """The fields of a [[grid.method]] table besides the method's and the optimization's."""

    name: str
    """The method."""
    preset: str = ""
    """paper or released: fields of the method and the optimization that neither this table nor the grid sets
    have the values of the paper or of its released code. Default: the defaults of isogloss."""
    label: str = ""
    """Its name in measurements; the method's name when left out."""
    sources: tuple[Language, ...] = ()
    """Those of the grid's sources it is trained from; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets it is trained for; all when left out."""
    start: str = ""
    """Label of the method whose model it starts from; the encoder when left out."""
    teacher: str = ""
    """Label of the method whose model's predictions are learned, where it or its auxiliary loss learns some;
    those of a source-only model when left out."""
    against: str = ""
    """Label of the method that reports compare it with. Default: the one that differs from it in the method
    alone, if it is a single one."""
    auxiliary: Table = field(default_factory=dict)
    """A loss added to the method's: ``name`` and the loss's fields; none when left out."""
    peft: Table = field(default_factory=dict)
    """Which weights it trains, instead of what the grid says: { kind = "none" } is all of them."""
    encoders: tuple[str, ...] = ()
    """Labels of the encoders it starts from ("original" where an encoder has none); all when left out."""
    of: tuple[str, ...] = ()
    """Of an average: labels of the methods whose models are averaged, and of encoders that were trained on
    from the grid's (language vectors)."""
    size: Count = 1
    """Of an average: seeds of the grid in each; 3 makes averages of the first three, the next three …, under
    the first seed of each; 0 makes one of all seeds."""


@dataclass(frozen=True, kw_only=True)
class MeasureTable:
    """The fields of a [[measure]] table besides the diagnostic's: which runs are measured."""

    name: str
    """The diagnostic."""
    split: Split = "dev"
    """Split it reads."""
    examples: Count = 0
    """Examples of each language, drawn at random; 0 for all."""
    corpus: str = ""
    """Corpus they are measured on: bitext for encoders (for cka and representation-map a parallel test set
    too, for mining comparable text); for models, another one of their task than the grid's ("mlqa:de" has
    German questions)."""
    languages: tuple[Language, ...] = ()
    """Languages measured (for encoders the first with each other); the recipe's when left out."""
    treebanks: str | dict[Language, str] = field(default_factory=dict)
    """Treebank of all languages, or of each, where the corpus has several; the grid's when left out."""
    inputs: str = ""
    """Form of target inputs: as they are (""), "translated" into the source (translate-test), "paired"
    with their translations (models of x-mixup alone, and paths between them), or with a part in the source
    language: "mixed" (one text of a pair, at random), "mixed-first", "mixed-second", "mixed-question",
    "mixed-passage"."""
    tasks: tuple[str, ...] = ()
    """Those of the grid's tasks that are measured; all when left out."""
    targets: tuple[Language, ...] = ()
    """Those of the grid's targets that are measured; all when left out."""
    seeds: tuple[Whole, ...] = ()
    """Those of the grid's seeds that are measured; all when left out."""
    methods: tuple[str, ...] = ()
    """Those of the grid's methods, by label, that are measured; all when left out."""
    encoders: tuple[str, ...] = ()
    """Those of the recipe's encoders, by label, that are measured, or whose models are; all when left out."""


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
    """How the words of bitext are aligned: ``name`` (fast-align when left out) and the aligner's fields."""
    translate: Table = field(default_factory=dict)
    """How examples are translated: ``name`` (a translator), its fields, its model; without this table
    translations are read from the corpora's own files."""
    adjust: tuple[Table, ...] = ()
    """Encoders that are adjusted: ``name``, the method's fields, and the bitext."""
    grid: GridTable | None = None
    """What is fine-tuned; without it only encoders are made (and measured)."""
    measure: tuple[Table, ...] = ()
    """Diagnostics: ``name``, their fields, and which runs they measure."""
    scale: dict[str, Table] = field(default_factory=dict)
    """Named changes to the recipe (--scale): dotted keys and their values."""
    published: str = ""
    """A CSV file in the recipe's folder with numbers of a paper, which the report compares with ours."""
