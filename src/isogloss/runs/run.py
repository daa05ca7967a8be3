"""The base of all kinds of runs, their context, and the order of their dependencies.

A run is a frozen value that specifies a computation completely. Its id is the hash of its content
(``core.identity``), which includes the names of classes and fields. Each kind is one module of this package.
A base class here must not have an attribute with the name of a kind's field, because dataclasses would use it
as the field's default.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from pathlib import Path
from typing import ClassVar, TypeVar

from isogloss.core.errors import ConfigError, add_location, did_you_mean
from isogloss.core.identity import identity
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import DataRead, Row
from isogloss.core.run_parts import Named, precision_of, values_of, with_fields
from isogloss.data.corpus import Split
from isogloss.data.examples import Example, Translation
from isogloss.data.result_files import Predictions
from isogloss.data.sources import Sources, Treebanks
from isogloss.encoders.added.module_settings import LanguageModules, are_shared
from isogloss.encoders.family import check_layers
from isogloss.runs.estimates import Facts, Folders
from isogloss.store.store import WORK, Store
from isogloss.training.memory import Machine, Shape
from isogloss.translators.setting import Translator

Owner = TypeVar("Owner")


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """Store and data shared by runs."""

    store: Store
    sources: Sources
    on_progress: OnProgress = no_progress
    threads: int = 1
    """Threads of a run on the CPU. The last bits of sums depend on it, so it is independent of the machine
    and of the number of parallel runs."""
    precision: str = "auto"
    """The precision that "auto" stands for."""
    track: tuple[str, ...] = ()
    """Trackers that follow the runs."""

    def resolve_precision(self, precision: str) -> str:
        """Return the precision of a run."""
        return self.precision if precision == "auto" else precision

    def with_precision(self, part: Owner) -> Owner:
        """Return a method or an optimization with its precision resolved, if it has such a field."""
        if "precision" not in values_of(part):
            return part
        return with_fields(part, precision=self.resolve_precision(precision_of(part)))

    def work(self, run: "Run") -> Path:
        """Return the folder for files that only an unfinished run needs."""
        return self.store.folder(run) / WORK


@dataclass(frozen=True)
class RunResult:
    """Rows, warnings and predictions of a run. Its files are already in its folder."""

    rows: Sequence[Row]
    warnings: tuple[str, ...] = ()
    predictions: tuple[Predictions, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SplitRead:
    """Read of one split of a corpus, with a number of examples (0: all)."""

    corpus: str
    language: str
    split: Split
    treebanks: Treebanks = ()
    examples: int = 0


class Run(Named):
    """Base class of all kinds of runs. Its own members apply to most kinds."""

    exists: ClassVar[bool] = False
    """Whether it is an existing model, which no run makes."""
    trains: ClassVar[bool] = False
    """Whether several processes can make it together."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Libraries whose versions its record has, in addition to the libraries of all records."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Describe the run in a few words."""

    @property
    def hyperparameters(self) -> object:
        """The method or optimization with the hyper-parameters of its training. None without a training."""
        return None

    @property
    def data_read(self) -> DataRead | None:
        """The data that a fine-tuned model was trained on. None for other kinds of runs."""
        return None

    @property
    def precision(self) -> str:
        """Requested precision (``Precision``)."""
        return "auto" if self.hyperparameters is None else precision_of(self.hyperparameters)

    @property
    def reference(self) -> str:
        """Reference to this run in the settings of other runs."""
        return identity(self)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """List the splits that are read once before any run starts, so that broken lines are found."""
        return ()

    @property
    def read_with(self) -> "tuple[Run, ...]":
        """Further runs with files that are needed to read this run."""
        return ()

    @property
    def described_by(self) -> "Run":
        """The run whose settings describe it. A measurement of one run is described by that run."""
        return self

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """List the encoders that it makes, starts from or measures."""
        return ()

    @property
    def trained_length(self) -> int | None:
        """Maximum length of rows, in subwords, in the encoder's pretraining. None if unknown."""
        return None

    @property
    def unresolved(self) -> str:
        """Its name on the hub if its commit could not be found. Empty for all other runs."""
        return ""

    @property
    def download(self) -> Mapping[str, Callable[[str], object]]:
        """Its name on the hub, with the function that downloads it. Empty if it is not on the hub."""
        return {}

    @property
    def downloads(self) -> Mapping[str, Callable[[str], object]]:
        """The downloads of the models it loads."""
        return {name: function for part in parts_of(self) for name, function in part.download.items()}

    def weights(self, context: RunContext) -> str:
        """Return the folder, or hub name, of the model it makes."""
        return str(context.store.model(self))

    def make(self, context: RunContext) -> RunResult:
        """Make the run. Its dependencies must be finished."""
        raise TypeError(f"{self.title}: no run makes a model from elsewhere ({context.store.root})")

    def memory(self, folders: Folders, machine: Machine) -> int | None:
        """Estimate its peak memory in bytes: 0 without a model, None if unknown."""
        del folders, machine
        return 0

    def operations(self, folders: Folders) -> float | None:
        """Estimate the operations of its training: 0 without a training, None for unknown sizes."""
        del folders
        return 0


class LinkedBitext(Run):
    """Base class of runs that link the words of one split of bitext. Other runs read the links."""

    bitext: str
    """Corpus of translations."""
    languages: str
    """The pair, as in en-es."""
    split: Split
    """Split that is aligned."""
    examples: int
    """Translations of the split. 0 for all."""

    @abstractmethod
    def read_links(self, context: RunContext) -> list[Translation]:
        """Read the aligned translations with their links."""


class TranslatedSplit(Run):
    """Base class of runs that translate the examples of one split. Other runs read the translations."""

    languages: str
    """Languages of the translation: en-sw, or en-sw-en for there and back."""
    split: Split
    """Split that is translated."""
    translator: Translator
    """The translator."""

    @property
    @abstractmethod
    def model_label(self) -> str:
        """Name of the translator's model in tables. Empty without a model."""

    @abstractmethod
    def read_examples(self, context: RunContext) -> list[Example]:
        """Read the translated examples."""


class Encoder(Run):
    """A run that trains an encoder, or an existing encoder.

    Attributes that a kind does not override come from the encoder it starts from.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """Name it in tables."""

    @property
    @abstractmethod
    def base(self) -> "Encoder | None":
        """The encoder it starts from. None for a new encoder, and if it is unknown."""

    @property
    def original(self) -> "Encoder":
        """The encoder before any adjustment."""
        return self

    @property
    def root(self) -> "Encoder":
        """The encoder at the start of the chain of trainings and adjustments."""
        return self.base.root if self.base else self

    @property
    def title(self) -> str:  # noqa: D102
        return f"encoder {self.label}"

    @property
    def encoders(self) -> "tuple[Encoder, ...]":  # noqa: D102
        return (self,)

    @property
    def training_corpora(self) -> tuple[str, ...]:
        """Corpora of its pretraining, as far as they are known."""
        return ()

    @property
    def languages_read(self) -> tuple[str, ...]:
        """Languages of its pretraining, as far as they are known."""
        return ()

    @property
    def adds_subwords(self) -> bool:
        """Whether its training added subwords to its base."""
        return False

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of its adjustments, the last one first."""
        return ()

    @property
    def pretraining_seed(self) -> int | None:
        """Seed of the pretraining before any adjustment. None for an existing encoder."""
        return self.base.pretraining_seed if self.base else None

    @property
    def trained_length(self) -> int | None:  # noqa: D102
        return self.base.trained_length if self.base else None

    @abstractmethod
    def seedless(self) -> "Encoder":
        """Return the encoder with seed 0 in all its trainings."""

    def folder(self, folders: Folders) -> str:
        """Return the folder of its root. Empty if the root is not on this machine."""
        return self.base.folder(folders) if self.base else ""

    def facts(self, folders: Folders) -> Facts | None:
        """Return the facts of its root, with this encoder's head. None if the root is not on this machine."""
        return self.base.facts(folders) if self.base else None

    def shape(self, folders: Folders) -> Shape | None:
        """Return its shape with its modules. None if it is neither on this machine nor assumed."""
        return self.base.shape(folders) if self.base else None

    def has_masked_lm(self, folders: Folders) -> bool:
        """Return whether it has a masked-LM head. True if it is not on this machine."""
        facts = self.facts(folders)
        return facts is None or facts.masked_lm

    def predicts_text(self, folders: Folders) -> bool:
        """Return whether it has the head of its pretraining. True if it is not on this machine."""
        facts = self.facts(folders)
        return facts is None or facts.text_head

    def reads_causally(self, folders: Folders) -> bool:
        """Return whether it is a decoder with its causal mask. False if it is not on this machine."""
        return self.base.reads_causally(folders) if self.base else False

    def language_modules(self, folders: Folders) -> LanguageModules | None:
        """Return its language modules. None without any, or if it is not on this machine."""
        return self.base.language_modules(folders) if self.base else None

    def mapped_languages(self, folders: Folders) -> frozenset[str] | None:
        """Return the languages it has maps for, and their source. None if it reads any language."""
        return self.base.mapped_languages(folders) if self.base else None

    def module_languages(self, folders: Folders) -> frozenset[str] | None:
        """Return the languages it has modules for. None if it reads any language."""
        facts = self.facts(folders)
        if facts and facts.adapters:
            return frozenset(facts.adapters)
        modules = self.language_modules(folders)
        if modules is None or are_shared(modules.modules) or modules.modules.fallback:
            return None
        return frozenset(modules.languages)

    def reads(self, language: str, folders: Folders) -> bool:
        """Return whether it reads a language."""
        limits = (self.module_languages(folders), self.mapped_languages(folders))
        return all(languages is None or language in languages for languages in limits)

    def check_read(self, languages: Iterable[str], folders: Folders, name: str) -> None:
        """Raise ConfigError for a language without a module or map in this encoder.

        ``name`` is the encoder's name in the message.
        """
        modules = self.module_languages(folders)
        maps = self.mapped_languages(folders)
        for language in languages:
            if modules is not None and language not in modules:
                raise ConfigError(
                    f"{name} has modules for single languages, but none for {language!r}."
                    f"{did_you_mean(language, modules)} Known: {', '.join(sorted(modules))}. Pretrain it "
                    f"with {language} too, choose a language whose modules read {language} "
                    "(modules.fallback), or name other languages or encoders."
                )
            if maps is not None and language not in maps:
                raise ConfigError(
                    f"{name} maps each language's states, and has no map for {language!r}. "
                    f"Known: {', '.join(sorted(maps))}. Adjust it with bitext of {language} too, or name "
                    "other languages (or encoders)."
                )

    def check_unmapped(self, folders: Folders, name: str) -> None:
        """Raise ConfigError if this encoder has maps, because training would not update them.

        ``name`` is the encoder's name in the message.
        """
        if self.mapped_languages(folders) is not None:
            raise ConfigError(
                f"{name} maps each language's states, and what changes it would leave its maps behind. "
                "Start from the encoder without maps, and map last."
            )

    def check_layers(self, part: object, folders: Folders) -> None:
        """Raise ConfigError if a part reads a layer that the encoder lacks."""
        if part and (facts := self.facts(folders)):
            values = values_of(part)
            for name in ("layer", "layers"):
                layers = values.get(name) or ()
                with add_location(name):
                    check_layers(facts.layers, layers if isinstance(layers, tuple) else (layers,))


def runs_in(value: object) -> tuple[Run, ...]:
    """List the runs in the value of a field."""
    return tuple(part for part in (value if isinstance(value, tuple) else (value,)) if isinstance(part, Run))


def parts_of(run: Run) -> tuple[Run, ...]:
    """List the runs in a run's fields."""
    return tuple(part for field in fields(run) for part in runs_in(getattr(run, field.name)))


def needs(run: Run) -> tuple[Run, ...]:
    """List the runs that must be finished before this run. Existing encoders are not among them."""
    return tuple(part for part in parts_of(run) if not part.exists)


def read_by(run: Run) -> tuple[Run, ...]:
    """List the runs with files that are read to make this run."""
    dependencies = needs(run)
    read_too = (part for dependency in dependencies for part in dependency.read_with if not part.exists)
    return tuple(dict.fromkeys((*dependencies, *read_too)))


def unresolved_models(runs: Iterable[Run]) -> list[str]:
    """List the hub models of runs whose commits could not be found."""
    return sorted({part.unresolved for run in runs for part in parts_of(run)} - {""})


def download(runs: Iterable[Run]) -> None:
    """Download each model on the hub that runs load once."""
    downloads = {download for run in runs for download in run.downloads.items()}
    for name, function in sorted(downloads, key=itemgetter(0)):
        function(name)


def order_runs(runs: Iterable[Run]) -> list[Run]:
    """List all runs with their dependencies, each once, dependencies first."""
    sequence: dict[str, Run] = {}

    def add(run: Run) -> None:
        key = identity(run)
        if key in sequence:
            return
        for dependency in needs(run):
            add(dependency)
        sequence[key] = run

    for run in runs:
        add(run)
    return list(sequence.values())


def peak_memory(run: Run, folders: Folders, *, device_type: Machine | None = None) -> int | None:
    """Return the peak memory of a run in bytes. 0 without a model, None if unknown.

    ``device_type`` is a machine and its precision. Default: this process's device in the run's precision.
    Unknown are encoders that are not on this machine, meta-learning and external translation models.
    Diagnostics that compute gradients and training on choices with lists as options are also unknown.
    """
    from isogloss.training.precision import device, resolved_precision

    if device_type is None:
        own_device = device()
        is_bfloat16 = resolved_precision(run.precision, own_device) == "bfloat16"
        device_type = Machine(half=is_bfloat16, gpu=own_device.type == "cuda")
    return run.memory(folders, device_type)


def precision_here(store: Store) -> str:
    """Return the precision that "auto" stands for in a store, and measure it if it is not known yet."""
    from isogloss.training.precision import device, measured_precision

    return store.precision(lambda: measured_precision(device().type))
