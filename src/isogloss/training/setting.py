"""The interfaces of methods, losses, peft, pretraining and adjustments, with their inputs and results.

Classes inherit from these. Members that a class does not define have the most common meaning.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

from isogloss.core.errors import ConfigError
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Value
from isogloss.core.run_parts import (
    Architecture,
    Modules,
    Named,
    NewSubwords,
    Optimization,
    Replay,
    TextTraining,
    TrainedPart,
    Updates,
)
from isogloss.data.examples import Example, Translation
from isogloss.encoders.added.differences import whole_folder
from isogloss.encoders.added.module_files import read_module_info
from isogloss.encoders.family import Config, EncoderFamily, Model, Tokenizer
from isogloss.encoders.folders import load_encoder_config, model_folder
from isogloss.tasks.task import FurtherTask, LabelsAre, Task
from isogloss.training.memory import AddedCost, Cost, Load, Shape

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.training.batching import Batches, Movable


@dataclass(frozen=True, kw_only=True)
class RunSetting:
    """The input of all ways to train."""

    folder: Path
    """The run's temporary folder, removed when it finishes."""
    seed: int
    on_progress: OnProgress = no_progress


@dataclass(frozen=True, kw_only=True)
class TextSetting(RunSetting):
    """The input of a pretraining method."""

    text: Callable[[str], Iterator[str]]
    """From a language to its lines."""
    translations: Callable[[str, str], Iterator[Translation]] | None
    """From two languages to translations between them. None if the run has no bitext."""
    languages: tuple[str, ...]
    architecture: Architecture | None
    """The shape of a new encoder. None if training continues from an encoder."""
    start: str = ""
    """Folder or name of the encoder to continue from. Empty for a new one."""
    vocabulary: NewSubwords | None = None
    """Subwords that are added to the start, if any."""
    bitext: Mapping[str, list[Translation]] = field(default_factory=dict)
    """Translations with links, for embeddings of these subwords, by pair with the known language first."""
    replay: Replay | None = None
    """Text of further languages that is mixed in, if any."""
    modules: Modules | None = None
    """Modules of single languages that are added, if any."""
    trained: TrainedPart | None = None
    """The part that is trained. None trains all parameters."""
    held_out: Callable[[str], Iterator[str]] | None = None
    """From a language to lines that ``text`` does not contain. None if none are held out."""

    @property
    def languages_read(self) -> tuple[str, ...]:
        """Languages of all text, replayed text included."""
        return (*self.languages, *(self.replay.languages if self.replay else ()))

    @property
    def family(self) -> str:
        """Name of the encoder's family."""
        shape = self.architecture
        return shape.family if shape else str(load_encoder_config(self.start).model_type)

    @property
    def modules_trained(self) -> Modules | None:
        """The modules of single languages that are added, or that the start has, if any."""
        if self.modules or self.architecture:
            return self.modules
        folder = whole_folder(model_folder(self.start))
        info = read_module_info(folder, load_encoder_config(self.start).hidden_size)
        return info.modules if info else None


@dataclass(frozen=True, kw_only=True)
class AdjustSetting(RunSetting):
    """The input of a method that adjusts an encoder."""

    start: str
    """Folder or name of the encoder."""
    bitext: Mapping[str, list[Translation]]
    """Translations with word links, by language pair (en-es, the source first)."""


@dataclass(frozen=True, kw_only=True)
class Reads:
    """The data a method reads: languages, or pairs such as en-sw for text translated from en into sw."""

    train: tuple[str, ...] = ()
    """Languages whose training examples are trained on."""
    examples: int | None = None
    """Training examples of each language at most. None for all."""
    dev: tuple[str, ...] = ()
    """Languages whose development examples select the epoch."""
    unlabelled: tuple[str, ...] = ()
    """Languages whose examples are read without their labels."""
    unlabelled_split: Literal["train", "dev"] = "train"
    """Split of these examples."""
    bitext: str = ""
    """Corpus of word-aligned translations (``Setting.bitext``). Empty for none."""
    pairs: tuple[str, ...] = ()
    """Language pairs read there, the source first."""
    original: bool = False
    """Whether the encoder before its adjustment is read."""
    teacher: tuple[LabelsAre, ...] = ()
    """Units of labels that are learned from a teacher's predictions."""
    links: bool = False
    """Whether, in tagging, links between the words of translations and originals are read."""
    sides: int = 1
    """Inputs of an example that run through the model together: 2 with its translation."""
    mixes: bool = False
    """Whether the models mix an input with its translation."""
    itself: bool = False
    """Whether an input in a source language is its own translation there."""
    tasks: tuple[str, ...] = ()
    """Further tasks to learn, each with its corpus after a colon unless that is the grid's."""

    def chosen_by(self, dev: str | None, source: tuple[str, ...], target: tuple[str, ...]) -> "Reads":
        """Return the reads with the dev sets of an optimization's ``dev``. None keeps the method's."""
        if dev is None:
            return self
        return replace(self, dev={"source": source, "target": target, "all": (*source, *target)}[dev])

    def needs_teacher(self, task: Task) -> bool:
        """Return whether a teacher's predictions are learned in a task."""
        return task.labels_are in self.teacher

    def needs_links(self, task: Task) -> bool:
        """Return whether word links are read in a task."""
        return self.links and task.labels_are == "word"


def language_pairs(source: tuple[str, ...], target: tuple[str, ...]) -> tuple[str, ...]:
    """Return all pairs of a source and a target language, such as en-sw."""
    return tuple(f"{first}-{second}" for first, second in product(source, target))


@dataclass(frozen=True, kw_only=True)
class TermResult:
    """Rows and warnings of a term's training, and further files of the trained model."""

    rows: tuple[dict[str, Value], ...] = ()
    extra_writers: "tuple[ExtraWriter, ...]" = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AuxiliaryTerm:
    """A term that is added to the loss of a training."""

    batches: Batches[Movable] | None
    """One batch for each step. None: the batches of the training itself."""
    loss: Callable[[Any], Tensor]
    """From a batch to one number."""
    rows: tuple[dict[str, Value], ...] = ()
    warnings: tuple[str, ...] = ()
    every: int = 1
    """Steps from one that adds the term to the next. 1: each step adds it."""
    finish: Callable[[], TermResult] = TermResult
    """Called after training, to restore the model as it is without the term."""


ExtraWriter = Callable[[Path], None]
"""Writes further files into the folder of a model."""


@dataclass(frozen=True)
class Trained:
    """A trained model, its tokenizer, the rows of its training, and warnings."""

    model: Model
    tokenizer: Tokenizer
    rows: list[dict[str, Value]]
    warnings: tuple[str, ...] = ()
    extra_writers: tuple[ExtraWriter, ...] = ()
    difference: ExtraWriter | None = None
    """Writes the trained weights, if these are not all weights."""


@dataclass(frozen=True, kw_only=True)
class PeftSetting:
    """The input of parameter-efficient fine-tuning."""

    model: Model
    """Encoder and head before the first step."""
    train_all: Callable[[], Model]
    """Trains all weights in the same way, from the same point, and returns the model."""
    folder: Path
    """The run's temporary folder, removed when it finishes."""
    seed: int


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """The result of preparing a model for its first step."""

    fixed: int = 0
    """Numbers in trainable parameters that are masked."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Averaged:
    """A model or an encoder whose weights are combined."""

    id: str
    """Id of its run."""
    folder: str
    """Folder, or name on the hub."""
    has_head: bool
    """Whether it is a model. An encoder changes no head."""


@dataclass(frozen=True, kw_only=True)
class Setting(RunSetting):
    """The input of a fine-tuning method."""

    task: Task
    start: str
    """Folder or name of the encoder, or of the model from which training continues."""
    train: Callable[[str], list[Example]]
    """Training examples of one language (or pair)."""
    dev: Callable[[str], list[Example]]
    """Development examples of one language."""
    source: tuple[str, ...]
    target: tuple[str, ...]
    optimization: Optimization
    bitext: Mapping[str, list[Translation]] = field(default_factory=dict)
    """Translations with links by pair (en-es, the source first), if the method or its auxiliary loss reads
    any."""
    auxiliary: "AuxiliaryLoss | None" = None
    """The loss added to the method's own, if any."""
    peft: "Peft | None" = None
    """The choice of trained weights. Default: all."""
    teacher: str = ""
    """Folder of the model whose predictions are learned, if the method or its auxiliary loss needs one."""
    original: str = ""
    """Folder or name of the encoder before its adjustment, if the method or its auxiliary loss reads it."""
    parts: tuple[Averaged, ...] = ()
    """The models whose weights the method combines."""
    further: tuple[FurtherTask, ...] = ()
    """The tasks that the method or its auxiliary loss learns in addition, if any."""

    @property
    def head_seed(self) -> int:
        """The seed of new heads."""
        seed = self.optimization.head_seed
        return self.seed if seed is None else seed


class DataReader(Named, Protocol):
    """A method or a loss that reads data. Its fields are its hyper-parameters."""

    uses: ClassVar[tuple[str, ...]]
    """The languages that its model depends on: source, target, or both."""

    @abstractmethod
    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Return the data it reads, so that every file is checked before anything trains."""

    def check(self, task: Task, encoder: Config | None) -> None:
        """Raise ConfigError or ModelError for a task or an encoder that it does not support.

        ``encoder`` is None if a plan cannot know it yet.
        """
        del task, encoder  # Most take all.


WATCHES = {"watches": True}
"""Metadata of a method's field that does not affect the training, and so is not in its label."""

WeightsFrom = Literal["training", "model", "parts"]
"""Origin of a method's weights. training: it trains them. model: its field ``model`` names an existing model.
parts: it combines the models and encoders named by ``of`` in the recipe."""


class Method(DataReader, Protocol):
    """A way to train a model."""

    needs_start: ClassVar[bool] = False
    """Whether training continues from the model of a different method."""
    weights_from: ClassVar[WeightsFrom] = "training"
    """model: it is a ``GivenModel``. parts: it is a ``Combination``."""
    peft_kinds: ClassVar[tuple[str, ...]] = ()
    """The kinds of peft of which it needs one. Empty: it takes all, and none."""
    plain: ClassVar[bool] = False
    """Whether it trains only on the task's loss, on the examples that it reads. Reports compare other methods
    with such a method."""

    def mixing(self, task: Task, layers: int) -> Hashable:  # noqa: ARG002
        """Return the form of mixing inputs with translations, in an encoder of ``layers`` layers.

        Models with different values have no path between them. None means that models do not mix
        (``Reads.mixes``).
        """
        return None

    def check_peft(self, peft: "Peft | None") -> None:
        """Raise ConfigError without one of the kinds of peft that it needs."""
        kind = peft.name if peft else "none"
        if self.peft_kinds and kind not in self.peft_kinds:
            raise ConfigError(
                f"{self.name}: peft: found the kind {kind}; expected {' or '.join(self.peft_kinds)}. Set "
                f'peft = {{ kind = "{self.peft_kinds[0]}" }}.'
            )

    @abstractmethod
    def train(self, setting: Setting) -> Trained:
        """Choose data, modules and loss, and call ``fit``, directly or through ``fine_tune``."""


@runtime_checkable
class GivenModel(Method, Protocol):
    """A method that uses an existing model (``weights_from`` is "model")."""

    @property
    def model(self) -> str:
        """Folder of the model, or its name on the hub."""


WEIGHT_TOLERANCE = 1e-6
"""Tolerance of weights that sum to 1: 0.1 has no exact floating-point number."""


@runtime_checkable
class Combination(Method, Protocol):
    """A method that combines the weights of other models (``weights_from`` is "parts").

    It has a field ``weights``, which the plan sets to the weight of each model.
    """

    @property
    def weights(self) -> tuple[float, ...] | None:
        """The weight of each part. None for equal weights that sum to 1."""

    def weights_of(self, count: int) -> tuple[float, ...]:
        """Return the weights of ``count`` parts."""

    def needs_origin(self, count: int) -> bool:
        """Return whether the combination contains the pretrained encoder."""


@runtime_checkable
class AuxiliaryLoss(DataReader, Protocol):
    """A loss in addition to any fine-tuning method's own loss."""

    def cost(self, batch: Load) -> AddedCost:  # noqa: ARG002
        """Return the cost that it adds to a training on such batches."""
        return AddedCost()

    @abstractmethod
    def prepare(
        self, setting: Setting, model: Model, tokenizer: Tokenizer, steps: int
    ) -> AuxiliaryTerm | None:
        """Return the term for a model before its first step, or None if its weight is 0."""


@runtime_checkable
class Peft(Named, Protocol):
    """A choice of the weights that a fine-tuning changes. Its fields are its hyper-parameters."""

    has_factors: ClassVar[bool] = False
    """Whether it trains adapters that are saved before they are merged, and can be mixed as adapters."""

    def check(self, family: EncoderFamily) -> None:
        """Raise ConfigError for an encoder family that it does not support."""
        del family  # Most take all.

    def trained(self, shape: Shape) -> int | None:  # noqa: ARG002
        """Return the number of an encoder's parameters that are trained, or None for all."""
        return None

    def cost(self) -> AddedCost:
        """Return the cost that it adds to a training."""
        return AddedCost()

    @abstractmethod
    def prepare(self, setting: PeftSetting) -> Prepared:
        """Change a model in place so that training changes only these weights. Outputs stay the same."""

    @abstractmethod
    def finish(self, model: Model, base: str) -> ExtraWriter:
        """Restore an ordinary model, and return the writer of its difference from ``base``.

        ``base`` is the folder or hub name of its start (``encoders.added.differences``).
        """


PRETRAINING_UPDATES = Updates(learning_rate=1e-3, beta2=0.98, epsilon=1e-6, checkpoint_every=500)
"""Updates of a new encoder's weights, shared by all methods."""


@runtime_checkable
class Pretraining(Named, Protocol):
    """A way to train an encoder on text. Its fields are its hyper-parameters."""

    replays: ClassVar[bool] = False
    """Whether text of other languages can be mixed in."""
    trains_layers: ClassVar[bool] = True
    """Whether it can train all parameters except the embeddings of its start."""

    @property
    @abstractmethod
    def training(self) -> TextTraining:
        """Length, batches of text, and evaluation of the training."""

    @property
    @abstractmethod
    def updates(self) -> Updates:
        """Learning rate and other settings of weight updates."""

    @property
    def holds_out(self) -> bool:
        """Whether text is held out, for perplexity or other purposes."""
        return self.training.evaluate_every is not None

    @property
    def mixed(self) -> bool:
        """Whether rows of one batch come from all languages."""
        return False

    @property
    def translation(self) -> float:
        """Share of the updates on translations."""
        return 0.0

    @abstractmethod
    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ModelError or ConfigError for an encoder that it cannot train.

        ``family`` is empty if a plan cannot know it yet.
        """

    def check_mask(self, start: str, *, causal: bool) -> None:
        """Raise ConfigError for a start that it cannot train with its mask, or without one."""
        del start, causal  # Most take both.

    def cost(self) -> Cost | None:
        """Return the cost of the training, or None if it is unknown."""
        return None

    @abstractmethod
    def train(self, setting: TextSetting) -> Trained:
        """Train the encoder with its masked-LM head."""


class Adjustment(Named, Protocol):
    """A way to align translations in an encoder. Its fields are its hyper-parameters."""

    maps: ClassVar[bool] = False
    """Whether it leaves the weights unchanged and adds a map for each target language."""

    @property
    @abstractmethod
    def needs_links(self) -> bool:
        """Whether it reads word links. Otherwise the bitext is not aligned."""

    def cost(self, pairs: int) -> Cost | None:  # noqa: ARG002
        """Return the cost of a training on ``pairs`` sentence pairs, or None if no weight is trained."""
        return None

    @abstractmethod
    def train(self, setting: AdjustSetting) -> Trained:
        """Adjust the encoder on aligned bitext."""
