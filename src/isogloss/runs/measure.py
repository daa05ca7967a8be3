"""Measurements: rows of numbers that a diagnostic computes from models, encoders or other measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from isogloss.core.errors import DataError, ModelError
from isogloss.core.identity import identity
from isogloss.core.records import Value
from isogloss.core.rows import as_row
from isogloss.core.run_parts import Count
from isogloss.data.corpus import Split
from isogloss.data.examples import ComparableText, Example, TextLine, Translation
from isogloss.data.result_files import ENDING, Predictions, write_tensors
from isogloss.data.sources import Sources, Treebanks
from isogloss.diagnostics.setting import Diagnostic, LoadedEncoder, MeasureSetting, Subject
from isogloss.encoders.family import Model
from isogloss.runs.estimates import Folders, scoring
from isogloss.runs.fine_tune import FineTune, fine_tuned
from isogloss.runs.run import Encoder, LinkedBitext, Run, RunContext, RunResult, SplitRead, TranslatedSplit
from isogloss.runs.splits import from_files, read_or_translated, split_read, translator_label
from isogloss.tasks import find_task, task_names
from isogloss.tasks.inputs import ORIGINAL_INPUTS, PAIRED, TRANSLATED, codes_read, examples_of, language_read
from isogloss.training.memory import Machine

if TYPE_CHECKING:
    import torch

    from isogloss.training.evaluation import Evaluation
    from isogloss.training.parallel_text import ParallelText

Loaded = TypeVar("Loaded")


@dataclass(frozen=True, kw_only=True)
class Measure(Run):
    """Measure rows of numbers with a diagnostic of models, of encoders or of other measurements."""

    name: ClassVar[str] = "measure"
    diagnostic: Diagnostic
    """The diagnostic."""
    subjects: tuple[Run, ...]
    """The runs measured, in the diagnostic's order."""
    languages: tuple[str, ...] = ()
    """Measured languages, with the source first if the diagnostic compares it with the others."""
    corpus: str = ""
    """Corpus it reads. Empty if it reads none."""
    split: Split = "dev"
    """Split it reads."""
    inputs: str | None = None
    """Form of target inputs: None (unchanged), translated, or mixed with the source language."""
    aligned: tuple[LinkedBitext, ...] | None = None
    """Word alignments of the bitext it reads, one for each pair of languages, if it compares words."""
    translated: tuple[TranslatedSplit, ...] | None = None
    """Translations that are machine-translated, not read from the corpus's files."""
    treebanks: Treebanks = ()
    """Treebanks of languages, for a corpus with several."""
    examples: Count = 0
    """Examples of each language, drawn at random. 0 for all."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    @property
    def precision(self) -> str:
        """Precision of the first measured run."""
        return self.subjects[0].precision if self.subjects else "auto"

    @property
    def measurements(self) -> "tuple[Measure, ...]":
        """The measurements it reads."""
        return tuple(subject for subject in self.subjects if isinstance(subject, Measure))

    @property
    def models(self) -> tuple[FineTune, ...]:
        """The fine-tuned models it measures, directly or through other measurements."""
        nested_models = [model for measurement in self.measurements for model in measurement.models]
        return (*fine_tuned(self.subjects), *nested_models)

    @property
    def described_by(self) -> Run:  # noqa: D102
        return self.subjects[0] if len(self.subjects) == 1 else self

    @property
    def model(self) -> FineTune | None:
        """The first fine-tuned model among the measured runs. None without any."""
        return next(iter(fine_tuned(self.subjects)), None)

    @property
    def source_languages(self) -> tuple[str, ...]:
        """Source languages of the measured models. Empty if they have none."""
        return next((model.source_languages for model in self.models if model.source_languages), ())

    @property
    def splits(self) -> tuple[Split, ...]:
        """The split it reads, after the split on which the diagnostic chooses a threshold, if it does."""
        tuning = self.diagnostic.tuning_split
        return tuple(dict.fromkeys((*((tuning,) if tuning else ()), self.split)))

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:  # noqa: D102
        if not self.corpus or not self.data:
            return ()
        return from_files(
            (
                split_read(self.corpus, language, split, self.examples, self.treebanks)
                for split in self.splits
                for language in dict.fromkeys(self.select_read(split, self._codes))
            ),
            self.translated,
        )

    def select_read(self, split: Split, codes: Sequence[str]) -> list[str]:
        """Return the codes of languages that are read in a split: of a model's tuning split, its sources."""
        is_tuning = split != self.split and self.diagnostic.subject == "model"
        return [name for name in codes if not is_tuning or name in self.source_languages]

    @property
    def _codes(self) -> list[str]:
        corpus_tasks = Sources().corpus(self.corpus).tasks
        if {"bitext", "comparable"} & set(corpus_tasks):
            return pairs_of(self.languages)
        if "text" in corpus_tasks:
            return list(self.languages)
        source = self.model.source_languages if self.model else ()
        inputs = self.inputs or ORIGINAL_INPUTS
        codes = [codes_read(inputs, language, source) for language in self.languages]
        return list(chain.from_iterable(codes))

    @property
    def encoders(self) -> tuple[Encoder, ...]:  # noqa: D102
        return tuple(encoder for subject in self.subjects for encoder in subject.encoders)

    @property
    def title(self) -> str:  # noqa: D102
        methods = " to ".join(dict.fromkeys(model.label for model in self.models))
        seeds = " ".join(dict.fromkeys(str(model.seed) for model in self.models))
        models = f"{methods}, seed {seeds}, " if self.models else ""
        test_set = f"{self._test_set} " if self.corpus else ""
        return f"{self.diagnostic.name}: {models}{test_set}{' '.join(self.languages)} {self.split}"

    @property
    def _test_set(self) -> str:
        names = {dict(self.treebanks).get(language, "") for language in self.languages}
        treebank = names.pop() if len(names) == 1 else ""
        translator = f"by {translator_label(self.translated)}" if self.translated else ""
        return " ".join(part for part in (self.corpus, treebank, self.inputs, translator) if part)

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: D102
        if self.measurements or not self.encoders:
            return 0
        shape = self.encoders[0].shape(folders)
        model_count = len(self.subjects)
        if shape is None or self.diagnostic.computes_gradients:
            return None
        # Several models are measured as weighted means, one at a time.
        return scoring(shape, machine, models=model_count + 1 if model_count > 1 else 1)

    def make(self, context: RunContext) -> RunResult:
        """Measure with the diagnostic, and return its rows and predictions."""
        from isogloss.encoders.mixup import load_mixup

        predictions: list[Predictions] = []
        warnings: dict[str, None] = {}
        subjects = {identity(subject): subject for subject in self.subjects}

        def warn(warning: str) -> None:
            warnings[warning] = None

        def loads(function: Callable[[RunContext, Run], Loaded]) -> Callable[[Subject], Loaded]:
            return lambda subject: function(context, subjects[subject.id])

        inputs = _Inputs(context, self)
        setting = MeasureSetting(
            subjects=tuple(_subject(context, subject) for subject in self.subjects),
            languages=self.languages,
            split=self.split,
            source=self.source_languages,
            load=loads(_model),
            load_factors=loads(_with_factors),
            evaluation=inputs.paired if self.inputs == PAIRED else inputs.evaluation,
            tuning_evaluation=self._tuning_inputs(context).evaluation,
            translated_evaluation=_Inputs(context, replace(self, inputs=TRANSLATED)).evaluation,
            encoder=loads(_encoder),
            bitext=partial(read_bitext, context, self),
            comparable=lambda pair, split: cast(
                list[ComparableText], context.sources.examples(self.corpus, pair, cast(Split, split))
            ),
            parallel=_parallel_text(context, self, warn),
            examples=partial(self.read, context),
            text=partial(text_of, context, self),
            masked_lm=loads(masked_lm_of),
            precision=context.precision,
            paired=inputs.paired if self.inputs == PAIRED else None,
            mixup=lambda subject: load_mixup(subject.folder),
            keep=predictions.append,
            keep_tensors=partial(_write_tensors, context.store.folder(self)),
            warn=warn,
            on_progress=context.on_progress,
        )
        rows = [as_row(row) for row in self.diagnostic.measure(setting)]
        return RunResult(rows, tuple(warnings), predictions=tuple(predictions))

    def _tuning_inputs(self, context: RunContext) -> "_Inputs":
        return _Inputs(context, replace(self, split=self.splits[0], inputs=None))

    def read(self, context: RunContext, language: str) -> list[Example]:
        """Read the examples of a language, or of a translation for a pair of languages."""
        split = SplitRead(
            corpus=self.corpus,
            language=language,
            split=self.split,
            treebanks=self.treebanks,
            examples=self.examples,
        )
        return read_or_translated(context, self.translated, split)


def pairs_of(languages: Sequence[str]) -> list[str]:
    """Pair the first language with each of the others."""
    source, *targets = languages
    return [f"{source}-{target}" for target in targets]


def tasks_of(corpus: str) -> list[str]:
    """List the tasks a corpus has labels for. Empty for text and bitext."""
    return [task for task in Sources().corpus(corpus).tasks if task in task_names()]


def _subject(context: RunContext, run: Run) -> Subject:
    return Subject(
        id=identity(run),
        rows=tuple(context.store.record(run).rows) if context.store.is_finished(run) else (),
        folder=Path(run.weights(context)) if fine_tuned([run]) else context.store.model(run),
        trained_length=run.trained_length,
    )


def _model(context: RunContext, run: Run) -> Model:
    from isogloss.encoders.computation import fastest_attention
    from isogloss.training.precision import device

    [model] = fine_tuned([run])
    head = model.solves.head(Path(model.weights(context)), seed=None, attention=fastest_attention())
    return head.to(device()).eval()


def _with_factors(context: RunContext, run: Run) -> Model:
    """Load a fine-tuned model with its adapters separate from the weights."""
    from isogloss.encoders.loading import unmerge
    from isogloss.training.precision import device

    model = _model(context, run)
    unmerge(model, context.store.model(run))
    return model.to(device()).eval()


def _encoder(context: RunContext, run: Run) -> LoadedEncoder:
    """Load an encoder, or the encoder of a model, with its tokenizer."""
    from isogloss.encoders.loading import load_model
    from isogloss.encoders.tokenizers import load_tokenizer
    from isogloss.training.precision import device

    folder = run.weights(context)
    return load_model(folder).to(device()).eval(), load_tokenizer(folder)


def masked_lm_of(context: RunContext, run: Run) -> LoadedEncoder:
    """Load an encoder with its masked-LM head and its tokenizer.

    Raises ModelError if it has no such head.
    """
    from isogloss.encoders.computation import fastest_attention
    from isogloss.encoders.loading import load_masked_lm
    from isogloss.encoders.tokenizers import load_tokenizer
    from isogloss.training.precision import device

    if run not in run.encoders:
        raise ModelError(f"{run.title}: this leaves no masked-LM head. Measure the encoder it was made from.")
    folder = run.weights(context)
    model = load_masked_lm(folder, attention=fastest_attention())
    return model.to(device()).eval(), load_tokenizer(folder)


@dataclass(frozen=True)
class _Inputs:
    """Examples for a measurement, encoded as the measured model needs them."""

    context: RunContext
    run: Measure

    @cached_property
    def model(self) -> FineTune:
        """The measured model. Among several, tokenizer and lengths come from the first."""
        if self.run.model is None:
            raise TypeError(f"{self.run.title}: a measurement of no model has no inputs")
        return self.run.model

    @cached_property
    def folder(self) -> Path:
        """The folder of the model."""
        return Path(self.model.weights(self.context))

    @cached_property
    def trained_on(self) -> list[Example]:
        """The model's training examples, whose most frequent label is the baseline. None for a given model.

        An average has the training examples of its first model.
        """
        model = self.model
        while model.parts:
            model = fine_tuned(model.parts)[0]
        return [
            example
            for language in model.method.reads(model.source, model.target).train
            for example in model.read(self.context, language, "train", model.examples)
        ]

    def evaluation(self, language: str) -> Evaluation:
        """Encode the examples of a language."""
        from isogloss.encoders.tokenizers import load_tokenizer
        from isogloss.training.evaluation import evaluation

        run = self.run
        model = self.model
        task = self.model.solves
        source = model.source_languages
        inputs = ORIGINAL_INPUTS if run.inputs in (None, PAIRED) else run.inputs
        examples = examples_of(inputs, language, source, self._read)
        data = evaluation(
            task,
            examples,
            load_tokenizer(str(self.folder)),
            self.context.with_precision(model.optimization),
            language=language_read(inputs, language, source),
        )
        has_labels = any(row.labelled for row in data.rows) and self.trained_on
        return replace(data, baseline=task.majority(self.trained_on, examples)) if has_labels else data

    def paired(self, language: str) -> Evaluation:
        """Pair the examples of a language with their translations.

        Source examples are paired with themselves, or stay unpaired.
        """
        from isogloss.encoders.mixup import load_mixup
        from isogloss.encoders.tokenizers import load_tokenizer
        from isogloss.training.evaluation import pair_with_translations

        data = self.evaluation(language)
        source = self.model.source_languages
        mixup = load_mixup(self.folder)
        _, *pairs = codes_read(PAIRED, language, source)
        if not pairs and self.model.method.reads((), ()).itself:
            pairs = [language]
            source = (language,)
        if mixup is None or not pairs:
            return data
        return pair_with_translations(
            data,
            self._read(pairs[0]),
            load_tokenizer(str(self.folder)),
            self.context.with_precision(self.model.optimization),
            mixup=mixup,
            source=source[0],
        )

    def _read(self, language: str) -> list[Example]:
        return self.run.read(self.context, language)


def read_bitext(context: RunContext, run: Measure, pair: str) -> list[Translation]:
    """Read the translations of a pair, with their links if the run has word alignments."""
    alignment_run = next((alignment for alignment in run.aligned or () if alignment.languages == pair), None)
    bitext = cast(
        list[Translation], context.sources.examples(run.corpus, pair, run.split, examples=run.examples)
    )
    if alignment_run is None:
        return bitext
    ids = {translation.id for translation in bitext}
    return [translation for translation in alignment_run.read_links(context) if translation.id in ids]


def _parallel_text(context: RunContext, run: Measure, warn: Callable[[str], None]) -> ParallelText:
    """Return text in several languages: bitext, or the examples of parallel test sets."""
    from isogloss.encoders.mixup import load_mixup
    from isogloss.training.parallel_text import BitextSentences, ParallelExamples

    tasks = tasks_of(run.corpus) if run.corpus else []
    if not tasks:
        return BitextSentences(partial(read_bitext, context, run))
    read = partial(run.read, context)
    model = run.model
    task = (
        model.solves
        if model is not None and model.task in tasks
        else find_task(tasks[0], context.sources.labels(run.corpus) or ())
    )
    parallel = ParallelExamples(task=task, read=read, name=f"{run.corpus} {run.split}", warn=warn)
    if model is None or run.inputs != PAIRED:
        return parallel
    source = model.source_languages

    @cache
    def translations(language: str) -> list[Example]:
        _, *pairs = codes_read(PAIRED, language, source)
        return read(pairs[0]) if pairs else []

    mixup = load_mixup(context.store.model(model))
    return replace(parallel, translations=translations, mixup=mixup, source=source[0])


def text_of(context: RunContext, run: Measure, language: str) -> Iterator[str]:
    """Yield the lines of a language's text. Raises DataError if there are none."""
    is_empty = True
    for line in context.sources.stream(run.corpus, language, run.split, examples=run.examples):
        is_empty = False
        yield cast(TextLine, line).text
    if is_empty:
        raise DataError(
            f"{run.corpus} {language} {run.split}: the split is empty. Choose another split or language."
        )


def _write_tensors(
    folder: Path, name: str, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, Value]
) -> None:
    # numpy has no bfloat16, but float32 represents all of its numbers.
    import torch

    wide_tensors = {
        key: tensor.float() if tensor.dtype is torch.bfloat16 else tensor for key, tensor in tensors.items()
    }
    arrays = {key: tensor.detach().cpu().numpy() for key, tensor in wide_tensors.items()}
    write_tensors(folder / f"{name}{ENDING}", arrays, metadata)
