"""Pretraining of an encoder on text, from new weights or from an existing encoder."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive, identity
from isogloss.core.rows import as_row
from isogloss.core.run_parts import (
    Architecture,
    Modules,
    NewSubwords,
    Replay,
    TrainedPart,
    Whole,
)
from isogloss.data.corpus import Split
from isogloss.data.examples import TextLine, Translation, subsample
from isogloss.data.sources import Sources
from isogloss.encoders.added.module_settings import LanguageModules
from isogloss.features.pretraining.rows import ParametersRow
from isogloss.features.pretraining.starts import architecture_shape
from isogloss.runs.estimates import (
    Facts,
    Folders,
    encoder_training,
    encoder_training_operations,
    with_modules,
)
from isogloss.runs.run import Encoder, LinkedBitext, RunContext, RunResult
from isogloss.training.memory import Machine, Shape
from isogloss.training.setting import Pretraining, TextSetting

HELD_OUT_INTERVAL = 100
"""One in this number of lines is held out of a text without a development split."""

NEW_HEAD = (
    "the encoder it starts from was saved without a head that predicts text: it was given a new one, which "
    "has to be learned first."
)
"""Warning for a start that was saved without a head that predicts text."""


@dataclass(frozen=True, kw_only=True)
class Pretrain(Encoder):
    """Pretrain an encoder on text by masked language modelling, from new weights or an existing encoder."""

    name: ClassVar[str] = "pretrain"
    trains: ClassVar[bool] = True
    text: tuple[str, ...]
    """Corpora of raw text."""
    languages: tuple[str, ...]
    """Languages of the text."""
    start: Encoder | None = None
    """The encoder that is trained further. None for a new encoder."""
    architecture: Architecture | None = field(default_factory=Architecture)
    """Shape of a new encoder. None: the shape of the start."""
    method: Pretraining
    """Objective, length and optimization."""
    bitext: str = ""
    """Corpus of translations for translation LM. Empty for none."""
    lines: tuple[tuple[str, int], ...] | None = None
    """Maximum number of lines per language, drawn at random by the seed: (("ru", 100000),). Other languages
    use all lines."""
    vocabulary: NewSubwords | None = None
    """Subwords that are added to the start, if any."""
    aligned: tuple[LinkedBitext, ...] | None = None
    """Bitext with word alignments that initialise the embeddings of new subwords. None if not used."""
    replay: Replay | None = None
    """Text in other languages that is mixed in if an encoder is trained further. None for none."""
    modules: Modules | None = None
    """Modules that each language has separately. Default: all weights are shared, or as in the start."""
    trained: TrainedPart | None = None
    """modules: only the language modules are trained, and all other weights stay as in the start. layers: all
    weights except the embeddings. None: all weights."""
    seed: Whole = 0
    """Seed of initial weights, order, masks and drawn lines."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    def __post_init__(self) -> None:
        """Raise ConfigError unless either a start or an architecture is given."""
        if (self.start is None) == (self.architecture is None):
            raise ConfigError(
                f"{self.name}: a new encoder has an architecture, and one that is trained further has "
                f"that of its start. Give either of them (with start, architecture=None)."
            )

    @property
    def training_corpora(self) -> tuple[str, ...]:  # noqa: D102
        return self.text

    @property
    def languages_read(self) -> tuple[str, ...]:
        """Languages of all text, including replayed text."""
        return (*self.languages, *(self.replay.languages if self.replay else ()))

    def corpora(self, language: str) -> tuple[str, ...]:
        """Return the corpora with the text of a language."""
        is_replayed = self.replay is not None and language in self.replay.languages
        return (self.replay.text if self.replay and is_replayed else ()) or self.text

    @property
    def base(self) -> Encoder | None:
        """The encoder it starts from. None for a new encoder."""
        return self.start

    @property
    def hyperparameters(self) -> object:  # noqa: D102
        return self.method

    @property
    def label(self) -> str:
        """Name in tables: the shape or the start, the languages and the beginning of the id."""
        shape = self.architecture
        modules = f", {self.modules.kind} modules" if self.modules else ""
        training = f"{self.trained} trained" if self.trained else "pretrained further"
        start = f"{self.start.label}, {training}" if self.start else ""
        size = f"{shape.family} {shape.layers}x{shape.dim}" if shape else start
        return f"{size} on {'+'.join(self.languages)}{modules} ({identity(self)[:6]})"

    @property
    def adds_subwords(self) -> bool:  # noqa: D102
        return self.vocabulary is not None

    @property
    def trained_length(self) -> int | None:  # noqa: D102
        block = self.method.training.block
        if self.start is None:
            return block
        longest = self.start.trained_length
        return None if longest is None else max(block, longest)

    @property
    def pretraining_seed(self) -> int:  # noqa: D102
        return self.seed

    def seedless(self) -> "Pretrain":  # noqa: D102
        return replace(self, seed=0, start=self.start.seedless() if self.start else None)

    def facts(self, folders: Folders) -> Facts | None:  # noqa: D102
        shape = self.architecture
        if shape is None:
            facts = super().facts(folders)
            return facts and facts._replace(masked_lm=True, text_head=True)
        return Facts(shape.family, shape.dim, shape.positions, shape.layers)

    def shape(self, folders: Folders) -> Shape | None:  # noqa: D102
        if self.architecture:
            shape: Shape | None = architecture_shape(self.architecture)
        else:
            shape = self.start.shape(folders) if self.start else None
        if shape and self.start and self.vocabulary:
            size = self.vocabulary.size
            parameters = shape.parameters + size * shape.dim
            shape = replace(shape, vocabulary=shape.vocabulary + size, parameters=parameters)
        return with_modules(shape, self.modules, len(self.languages)) if shape else None

    def language_modules(self, folders: Folders) -> LanguageModules | None:  # noqa: D102
        start_modules = self.start.language_modules(folders) if self.start else None
        if self.modules is None:
            return start_modules
        languages = start_modules.languages if start_modules else ()
        return LanguageModules(self.modules, tuple(dict.fromkeys((*languages, *self.languages))))

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: D102
        cost = self.method.cost()
        shape = self.shape(folders)
        if shape is None or cost is None:
            return None
        start = self.start.shape(folders) if self.start else None
        parts = {"modules": shape.parameters - start.parameters} if start else {}
        parts["layers"] = shape.parameters - shape.vocabulary * shape.dim
        count = parts.get(self.trained or "")
        return encoder_training(cost, replace(shape, dropout=cost.dropout), machine, trained=count)

    def operations(self, folders: Folders) -> float | None:  # noqa: D102
        cost = self.method.cost()
        shape = self.shape(folders)
        return None if shape is None or cost is None else encoder_training_operations(cost, shape)

    def make(self, context: RunContext) -> RunResult:
        """Train on text, and save the encoder."""
        from isogloss.encoders.saving import save_model
        from isogloss.features.pretraining.parameters import parameter_counts
        from isogloss.training.distributed import is_main_process

        def translations(source: str, second: str) -> Iterator[Translation]:
            bitext = context.sources.stream(self.bitext, f"{source}-{second}", "train")
            return cast(Iterator[Translation], bitext)

        text = PretrainingText(self, context.sources, holds_out=self.method.holds_out)
        setting = TextSetting(
            text=text.train,
            held_out=text.held_out,
            translations=translations if self.bitext else None,
            languages=self.languages,
            architecture=self.architecture,
            start=self.start.weights(context) if self.start else "",
            vocabulary=self.vocabulary,
            bitext={run.languages: run.read_links(context) for run in self.aligned or ()},
            replay=self.replay,
            modules=self.modules,
            trained=self.trained,
            folder=context.work(self),
            seed=self.seed,
            on_progress=context.on_progress,
        )
        result = context.with_precision(self.method).train(setting)
        if is_main_process():
            save_model(result.model, result.tokenizer, context.store.model(self))
        has_head = self.start is None or self.start.predicts_text(context.sources.encoders)
        parameters = [
            as_row(ParametersRow(language=language, parameters=count))
            for language, count in parameter_counts(result.model).items()
        ]
        new_head = () if has_head else (NEW_HEAD,)
        return RunResult([*result.rows, *parameters], (*new_head, *result.warnings))


@dataclass(frozen=True)
class PretrainingText:
    """Lines of each language for training, and lines held out to measure perplexity.

    The development split of a corpus is held out. A corpus without one has one line in a hundred held out.
    Held-out lines are used neither for training nor for the vocabulary.
    """

    run: Pretrain
    sources: Sources
    holds_out: bool
    """Whether perplexity is measured. If not, all text is used for training."""

    def train(self, language: str) -> Iterator[str]:
        """Yield the training lines: all, or a sample if the run limits them."""
        lines = (line for corpus in self.run.corpora(language) for line in self._training(corpus, language))
        limit = dict(self.run.lines or ()).get(language)
        if limit is None:
            return lines
        return iter(subsample(lines, limit, seed=derive(self.run.seed, "lines", language)))

    def held_out(self, language: str) -> Iterator[str]:
        """Yield the held-out lines of all corpora.

        Their number does not depend on the number of training lines.
        """
        for corpus in self.run.corpora(language):
            if self.sources.has_dev(corpus, language):
                yield from self._split(corpus, language, "dev")
            else:
                yield from _sift(self._split(corpus, language, "train"), held_out=True)

    def _training(self, corpus: str, language: str) -> Iterator[str]:
        lines = self._split(corpus, language, "train")
        if self.holds_out and not self.sources.has_dev(corpus, language):
            return _sift(lines, held_out=False)
        return lines

    def _split(self, corpus: str, language: str, split: Split) -> Iterator[str]:
        return (cast(TextLine, line).text for line in self.sources.stream(corpus, language, split))


def _sift(lines: Iterable[str], *, held_out: bool) -> Iterator[str]:
    """Yield the first of each hundred lines, or all other lines."""
    return (line for index, line in enumerate(lines) if (index % HELD_OUT_INTERVAL == 0) == held_out)
