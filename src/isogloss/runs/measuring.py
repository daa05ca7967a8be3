"""Making a measurement: what a diagnostic is given, read from finished runs and corpora."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import cast

import torch

from isogloss.core.errors import DataError, ModelError
from isogloss.core.identity import identity
from isogloss.core.records import Value
from isogloss.core.result_files import ENDING, Predictions, write_tensors
from isogloss.core.rows import as_row
from isogloss.data.corpus import Split
from isogloss.data.examples import ComparableText, Example, TextLine, Translation
from isogloss.diagnostics.setting import LoadedEncoder, MeasureSetting, Subject
from isogloss.encoders import fastest_attention, load_masked_lm, load_model, load_tokenizer
from isogloss.encoders.family import Model
from isogloss.encoders.loading import unmerge
from isogloss.encoders.mixup import load_mixup
from isogloss.runs.context import RunContext, RunResult
from isogloss.runs.encoder_runs import Encoder, Pretrain, Pretrained
from isogloss.runs.runs import FineTune, Measure, Run, tasks_of
from isogloss.tasks import find_task
from isogloss.training.evaluation import (
    ORIGINAL_INPUTS,
    PAIRED,
    Evaluation,
    codes_read,
    evaluation,
    examples_of,
    language_read,
    pair_with_translations,
)
from isogloss.training.precision import device
from isogloss.training.states import BitextSentences, ParallelExamples, ParallelText


def measure(context: RunContext, run: Measure) -> RunResult:
    """Let a diagnostic measure, and return its rows and predictions."""
    predictions: list[Predictions] = []
    warnings: dict[str, None] = {}  # Each is told once.
    runs = {identity(one): one for one in run.subjects}
    inputs = _Inputs(context, run)
    setting = MeasureSetting(
        subjects=tuple(_subject(context, one) for one in run.subjects),
        languages=run.languages,
        split=run.split,
        source=run.source_languages,
        load=lambda subject: _model(context, runs[subject.id]),
        load_factors=lambda subject: _with_factors(context, runs[subject.id]),
        evaluation=inputs.paired if run.inputs == PAIRED else inputs.evaluation,
        encoder=lambda subject: _encoder(context, runs[subject.id]),
        bitext=partial(_bitext, context, run),
        comparable=lambda pair, split: cast(
            list[ComparableText], context.sources.examples(run.corpus, pair, cast(Split, split))
        ),
        parallel=_parallel_text(context, run, lambda text: warnings.update({text: None})),
        text=partial(text_of, context, run),
        masked_lm=lambda subject: masked_lm_of(context, runs[subject.id]),
        precision=context.precision,
        paired=inputs.paired if run.inputs == PAIRED else None,
        mixup=lambda subject: load_mixup(context.store.model(runs[subject.id])),
        keep=predictions.append,
        keep_tensors=partial(_write_tensors, context.store.folder(run)),
        warn=lambda text: warnings.update({text: None}),
        on_progress=context.on_progress,
    )
    rows = [as_row(row) for row in run.diagnostic.measure(setting)]
    return RunResult(rows, tuple(warnings), predictions=tuple(predictions))


def _subject(context: RunContext, run: Run) -> Subject:
    return Subject(
        id=identity(run),
        rows=tuple(context.store.record(run).rows) if context.store.is_finished(run) else (),
        folder=context.store.model(run),
        trained_length=_trained_length(run.original) if isinstance(run, Encoder) else None,
    )


def _trained_length(encoder: Pretrain | Pretrained) -> int | None:
    """Return the longest rows an encoder was pretrained on; None where that is not known."""
    if isinstance(encoder, Pretrained):
        return None
    own = encoder.method.training.block
    if encoder.start is None:
        return own
    before = _trained_length(encoder.start.original)
    return None if before is None else max(own, before)


def _model(context: RunContext, run: Run) -> Model:
    """Load a fine-tuned model."""
    if not isinstance(run, FineTune):
        raise TypeError(f"a run of kind {run.name} has no head")
    model = run.solves.head(context.store.model(run), seed=0, attention=fastest_attention())
    return model.to(device()).eval()


def _with_factors(context: RunContext, run: Run) -> Model:
    """Load a fine-tuned model with its adapters not merged."""
    model = _model(context, run)
    unmerge(model, context.store.model(run))
    return model.to(device()).eval()


def _encoder(context: RunContext, run: Run) -> LoadedEncoder:
    """Load an encoder, or the one within a model, with its tokenizer."""
    if not isinstance(run, FineTune | Encoder):
        raise TypeError(f"a run of kind {run.name} has no weights")
    folder = str(context.store.model(run)) if isinstance(run, FineTune) else context.encoder(run)
    return load_model(folder).to(device()).eval(), load_tokenizer(folder)


def masked_lm_of(context: RunContext, run: Run) -> LoadedEncoder:
    """Load an encoder with its masked-LM head, and its tokenizer; ModelError when it has none."""
    if not isinstance(run, Encoder):
        raise ModelError(f"{run.title}: this leaves no masked-LM head. Look at the encoder it was made from.")
    folder = context.encoder(run)
    model = load_masked_lm(folder, attention=fastest_attention())
    return model.to(device()).eval(), load_tokenizer(folder)


@dataclass(frozen=True)
class _Inputs:
    """The examples a measurement reads, encoded as the model it measures needs them."""

    context: RunContext
    run: Measure

    @cached_property
    def model(self) -> FineTune:
        """The model measured; tokenizer and lengths are this one's, also where there are several."""
        if self.run.model is None:
            raise TypeError(f"{self.run.title}: a measurement of no model has no inputs")
        return self.run.model

    @cached_property
    def folder(self) -> str:
        """The folder of the model."""
        return str(self.context.store.model(self.model))

    @cached_property
    def trained_on(self) -> list[Example]:
        """What the model was trained on, whose commonest label is the baseline; nothing for a given one.

        Of an average it is what the first of its models was trained on.
        """
        model = self.model
        while model.parts:
            model = next(one for one in model.parts if isinstance(one, FineTune))
        return [
            example
            for code in model.method.reads(model.source, model.target).train
            for example in self.context.examples(model, code, "train", model.examples)
        ]

    def evaluation(self, language: str) -> Evaluation:
        """Encode one language's examples."""
        run, model, task = self.run, self.model, self.model.solves
        source = model.source_languages
        inputs = ORIGINAL_INPUTS if run.inputs in (None, PAIRED) else run.inputs
        examples = examples_of(inputs, language, source, self._read)
        found = evaluation(
            task,
            examples,
            load_tokenizer(self.folder),
            self.context.optimization(model.optimization),
            language=language_read(inputs, language, source),
        )
        labelled = any(row.labelled for row in found.rows) and self.trained_on
        return replace(found, baseline=task.majority(self.trained_on, examples)) if labelled else found

    def paired(self, language: str) -> Evaluation:
        """Pair a language's examples with their translations; the source's, which have none, run alone."""
        own, source = self.evaluation(language), self.model.source_languages
        mixup = load_mixup(Path(self.folder))
        _, *pairs = codes_read(PAIRED, language, source)
        if mixup is None or not pairs:
            return own
        return pair_with_translations(
            own,
            self._read(pairs[0]),
            load_tokenizer(self.folder),
            self.context.optimization(self.model.optimization),
            mixup=mixup,
            source=source[0],
        )

    def _read(self, code: str) -> list[Example]:
        return self.context.examples(self.run, code, self.run.split, self.run.examples)


def _bitext(context: RunContext, run: Measure, pair: str) -> list[Translation]:
    """Read the translations of a pair, with their links where the run has word alignments."""
    aligned = next((one for one in run.aligned or () if one.languages == pair), None)
    found = context.sources.examples(run.corpus, pair, run.split, examples=run.examples)
    wanted = {one.id for one in found}
    if aligned is not None:
        return [one for one in context.aligned(aligned) if one.id in wanted]
    return cast(list[Translation], found)


def _parallel_text(context: RunContext, run: Measure, warn: Callable[[str], None]) -> ParallelText:
    """Return what says the same in several languages: bitext, or the examples of parallel test sets."""
    tasks = tasks_of(run.corpus) if run.corpus else []
    if not tasks:
        return BitextSentences(partial(_bitext, context, run))

    def read(language: str) -> list[Example]:
        return context.examples(run, language, run.split, run.examples)

    model = run.model
    own = (
        model.solves
        if model is not None and model.task in tasks
        else find_task(tasks[0], context.sources.labels(run.corpus) or ())
    )
    found = ParallelExamples(task=own, read=read, name=f"{run.corpus} {run.split}", warn=warn)
    if model is None or run.inputs != PAIRED:
        return found
    source = model.source_languages

    @cache
    def translations(language: str) -> list[Example]:
        _, *pairs = codes_read(PAIRED, language, source)
        return read(pairs[0]) if pairs else []

    mixup = load_mixup(context.store.model(model))
    return replace(found, translations=translations, mixup=mixup, source=source[0])


def text_of(context: RunContext, run: Measure, language: str) -> Iterator[str]:
    """Yield the lines of a language's text, one at a time; DataError when there are none."""
    empty = True
    for line in context.sources.stream(run.corpus, language, run.split, examples=run.examples):
        empty = False
        yield cast(TextLine, line).text
    if empty:
        raise DataError(
            f"{run.corpus} {language} {run.split}: the split is empty. Choose another split or language."
        )


def _write_tensors(
    folder: Path, name: str, tensors: Mapping[str, torch.Tensor], about: Mapping[str, Value]
) -> None:
    """Write tensors into the folder of the run."""
    # numpy has no bfloat16; float32 holds all of its numbers.
    numbers = {key: one.float() if one.dtype is torch.bfloat16 else one for key, one in tensors.items()}
    arrays = {key: one.detach().cpu().numpy() for key, one in numbers.items()}
    write_tensors(folder / f"{name}{ENDING}", arrays, about)
