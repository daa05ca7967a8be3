"""Making a run: the thin shell between values, the store and the floors below."""

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from time import perf_counter
from typing import Any

import torch

from isogloss.core.identity import content
from isogloss.core.records import Record, Row
from isogloss.core.rows import Parameters, as_row
from isogloss.core.run_graph import needs, run_id, source_of
from isogloss.core.runs import (
    Adjust,
    Align,
    FineTune,
    Measure,
    Pretrain,
    Run,
    TrainTranslator,
    Translate,
)
from isogloss.core.version import VERSION
from isogloss.data.corpora import Split
from isogloss.data.examples import Example, Translation
from isogloss.data.questions import repairs_message
from isogloss.data.result_files import PREDICTIONS, Predictions, write_predictions
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders import load_model, load_tokenizer, save_model
from isogloss.encoders.attention import fastest_attention
from isogloss.encoders.language_modules import parameter_counts
from isogloss.encoders.mixup import load_mixup
from isogloss.experiments.alignments import adjust, align, bitext_of
from isogloss.experiments.encoders import encoder_label
from isogloss.experiments.labels import described, translation_model_label, translator_label
from isogloss.experiments.pretraining_text import PretrainingText, keep_tensors, masked_lm_of, text_of
from isogloss.experiments.reading import fewer_than_asked
from isogloss.experiments.run_context import WORK, RunContext, RunResult, device
from isogloss.experiments.run_examples import parallel_text, run_bitext, run_examples
from isogloss.experiments.translation_runs import train_translator, translate
from isogloss.tasks import TASKS
from isogloss.training.distributed import is_main_process
from isogloss.training.evaluation import Evaluation, beside_translations, evaluation
from isogloss.training.inputs import ORIGINAL_INPUTS, PAIRED, codes_read, examples_of, language_read
from isogloss.training.setting import Setting, TextSetting

Seen = Callable[[], list[Example]]
"""Gives what the model looked at was trained on."""


def make(context: RunContext, run: Run) -> Record:
    """Make one run whose needs are finished, and record it."""
    context.store.start(run)
    start = perf_counter()
    with _threads(context.threads):
        made = _MAKERS[run.name](context, run)
    if made.predictions:  # Before the record: a run is finished with all it made.
        write_predictions(context.store.folder(run) / PREDICTIONS, made.predictions)
    record = Record(
        id=run_id(run),
        kind=run.name,
        title=title_of(run),
        run=content(run),
        needs=tuple(run_id(needed) for needed in needs(run)),
        rows=made.rows,
        warnings=(*made.warnings, *dict.fromkeys(fewer_than_asked(run, context.sources))),
    )
    context.store.finish(record, _how(perf_counter() - start, context, run))
    context.store.remove_leftovers(run, WORK)
    return record


def compute_without_recording(context: RunContext, run: Run) -> None:
    """Compute for a run that the first of several processes makes and records."""
    with _threads(context.threads):
        _MAKERS[run.name](context, run)


def title_of(run: Run) -> str:
    """Say in a few words what a run is."""
    if isinstance(run, Measure):
        where = f"{_test_set(run)} " if run.corpus else ""
        return f"{run.diagnostic.name}: {_about(run)}{where}{' '.join(run.languages)} {run.split}"
    if isinstance(run, FineTune):
        languages = "+".join((*run.source, *run.target))
        return f"{method_label(run)}: {run.corpus} {run.task} {languages}, seed {run.seed}"
    if isinstance(run, Align):
        return f"{run.aligner.name}: {run.bitext} {run.languages}"
    if isinstance(run, Translate):
        return f"translation: {run.corpus} {run.languages} {run.split} by {translator_label([run])}"
    if isinstance(run, TrainTranslator):
        size = f"{run.examples} of " if run.examples else ""
        return f"translator, {translation_model_label(run)}: {size}{run.bitext} {' '.join(run.pairs)}"
    return f"encoder {encoder_label(run)}"


def method_label(run: FineTune) -> str:
    """Name a model's method in tables: fields not the default, who translated, what it goes on from."""
    name = described(run.method)
    if run.translated:
        name = f"{name} by {translator_label(run.translated)}"
    return f"{name} after {method_label(run.start)}" if run.start else name


def _test_set(run: Measure) -> str:
    """Name what a measurement reads: the corpus, its treebank if one is named for all, how inputs come."""
    named = {dict(run.treebanks).get(language, "") for language in run.languages}
    treebank = named.pop() if len(named) == 1 else ""
    by = f"by {translator_label(run.translated)}" if run.translated else ""
    return " ".join(part for part in (run.corpus, treebank, run.inputs, by) if part)


def _about(run: Measure) -> str:
    """Name the methods and seeds a measurement looks at."""
    models = _models(run)
    methods = " to ".join(dict.fromkeys(method_label(model) for model in models))
    seeds = " ".join(dict.fromkeys(str(model.seed) for model in models))
    return f"{methods}, seed {seeds}, " if models else ""


def _models(run: Measure) -> list[FineTune]:
    """List the models a measurement is about, through other measurements where need be."""
    return [
        model
        for subject in run.subjects
        for model in (_models(subject) if isinstance(subject, Measure) else (subject,))
        if isinstance(model, FineTune)
    ]


def _pretrain(context: RunContext, run: Pretrain) -> RunResult:
    def translations(first: str, second: str) -> Iterator[Translation]:
        return context.sources.stream(run.bitext, f"{first}-{second}", "train")  # type: ignore[return-value]

    method: Any = run.method
    text = PretrainingText(run, context.sources, holds_out=method.evaluate_every is not None)
    setting = TextSetting(
        text=text.train,
        held_out=text.held_out,
        translations=translations if run.bitext else None,
        languages=run.languages,
        architecture=run.architecture,
        modules=run.modules,
        folder=context.store.folder(run) / WORK,
        seed=run.seed,
        on_progress=context.on_progress,
    )
    method = replace(method, precision=context.settled(method.precision))
    model, tokenizer, fitted = method.train(setting)
    if is_main_process():
        save_model(model, tokenizer, context.store.model(run))
    return RunResult([*fitted.rows, *_parameters(model)])


def _parameters(model: Any) -> Iterator[Row]:
    """Count what all languages share and, where there are modules, what each has for itself."""
    counts = parameter_counts(model)
    for language, count in {"": counts.shared, **counts.own}.items():
        yield as_row(Parameters(language=language, parameters=count))


def _fine_tune(context: RunContext, run: FineTune) -> RunResult:
    repairs: dict[str, None] = {}  # A method may read the same examples twice: each is told of once.

    def read(language: str, split: Split, count: int) -> list[Example]:
        found = run_examples(context, run, language, split, count)
        repairs[repairs_message(found, f"{run.corpus} {language} {split}")] = None
        return found

    setting = Setting(
        task=TASKS[run.task],
        start=context.encoder(run.encoder) if run.start is None else str(context.store.model(run.start)),
        train=lambda language: read(language, "train", run.examples),
        dev=lambda language: read(language, "dev", run.dev_examples),
        source=run.source,
        target=run.target,
        optimization=context.optimization(run.optimization),
        folder=context.store.folder(run) / WORK,
        seed=run.seed,
        bitext={one.languages: bitext_of(context, one) for one in run.aligned or ()},
        teacher="" if run.teacher is None else str(context.store.model(run.teacher)),
        on_progress=context.on_progress,
    )
    method: Any = run.method
    trained = method.train(setting)
    save_model(trained.model, trained.tokenizer, context.store.model(run), extras=trained.extras)
    return RunResult(trained.rows, (*trained.warnings, *filter(None, repairs)))


def _measure(context: RunContext, run: Measure) -> RunResult:
    subjects = tuple(
        Subject(
            run=subject,
            rows=tuple(context.store.record(subject).rows) if context.store.is_finished(subject) else (),
            folder=context.store.model(subject),
        )
        for subject in run.subjects
    )
    kept: list[Predictions] = []
    warnings: dict[str, None] = {}  # Each is told once.

    def warn(text: str) -> None:
        warnings[text] = None

    seen = cache(
        partial(_trained_on, context, run)
    )  # Once for all languages, however many examples there are.
    look = MeasureSetting(
        subjects=subjects,
        languages=run.languages,
        split=run.split,
        source=_sources(run),
        load=lambda subject: _load(context, subject.run),
        evaluation=lambda language: _scorer(context, run, language, seen),
        encoder=lambda subject: _encoder(context, subject.run),
        bitext=partial(run_bitext, context, run),
        parallel=parallel_text(context, run, warn),
        text=partial(text_of, context, run),
        masked_lm=lambda subject: masked_lm_of(context, subject.run, title_of(subject.run)),
        precision=context.precision,
        paired=(lambda language: _paired(context, run, language, seen)) if run.inputs == PAIRED else None,
        keep=kept.append,
        keep_tensors=partial(keep_tensors, context.store.folder(run)),
        warn=warn,
        on_progress=context.on_progress,
    )
    diagnostic: Any = run.diagnostic
    rows = [as_row(row) for row in diagnostic.measure(look)]
    return RunResult(rows, tuple(warnings), predictions=tuple(kept))


_MAKERS: dict[str, Callable[[RunContext, Any], RunResult]] = {
    Pretrain.name: _pretrain,
    Align.name: align,
    Adjust.name: adjust,
    TrainTranslator.name: train_translator,
    Translate.name: translate,
    FineTune.name: _fine_tune,
    Measure.name: _measure,
}


def _load(context: RunContext, run: Run) -> Any:
    """Give a fine-tuned model."""
    if not isinstance(run, FineTune):
        raise TypeError(f"a run of kind {run.name} has no head")
    model = TASKS[run.task].head(context.store.model(run), seed=0, attention=fastest_attention())
    return model.to(device()).eval()


def _encoder(context: RunContext, run: Run) -> tuple[Any, Any]:
    """Give an encoder, or the one within a model, with its tokenizer."""
    if isinstance(run, Align | TrainTranslator | Translate | Measure):
        raise TypeError(f"a run of kind {run.name} has no weights")
    folder = str(context.store.model(run)) if isinstance(run, FineTune) else context.encoder(run)
    return load_model(folder).to(device()).eval(), load_tokenizer(folder)


def _scorer(context: RunContext, run: Measure, language: str, seen: Seen) -> Evaluation:
    """Give one language's examples, beside their translations where the run asks for pairs."""
    score = _paired if run.inputs == PAIRED else _evaluation
    return score(context, run, language, seen)


def _paired(context: RunContext, run: Measure, language: str, seen: Seen) -> Evaluation:
    """Put a language's examples beside their translations; the source's, which have none, run alone."""
    own, model = _evaluation(context, run, language, seen), _looked_at(run)
    mixup = load_mixup(context.store.model(model))
    _, *pairs = codes_read(PAIRED, language, source_of(model))
    if mixup is None or not pairs:
        return own
    return beside_translations(
        own,
        run_examples(context, run, pairs[0], run.split, run.examples),
        load_tokenizer(str(context.store.model(model))),
        context.optimization(model.optimization),
        mixup=mixup,
        source=source_of(model)[0],
    )


def _trained_on(context: RunContext, run: Measure) -> list[Example]:
    """Read what the model looked at was trained on: the baseline is its commonest label."""
    model = _looked_at(run)
    method: Any = model.method
    return [
        example
        for code in method.reads(model.source, model.target).train
        for example in run_examples(context, model, code, "train", model.examples)
    ]


def _looked_at(run: Measure) -> FineTune:
    return next(subject for subject in run.subjects if isinstance(subject, FineTune))


def _evaluation(context: RunContext, run: Measure, language: str, seen: Seen) -> Evaluation:
    """Encode one language's examples with the tokenizer and lengths of the models looked at."""
    model = _looked_at(run)
    task = TASKS[model.task]
    inputs = ORIGINAL_INPUTS if run.inputs in (None, PAIRED) else run.inputs
    examples = examples_of(
        inputs,
        language,
        source_of(model),
        lambda code: run_examples(context, run, code, run.split, run.examples),
    )
    tokenizer = load_tokenizer(str(context.store.model(model)))
    baseline = task.majority(seen(), examples)
    return evaluation(
        task,
        examples,
        tokenizer,
        context.optimization(model.optimization),
        baseline=baseline,
        language=language_read(inputs, language, source_of(model)),
    )


def _sources(run: Measure) -> tuple[str, ...]:
    """Return the source languages of the models a measurement is about."""
    return next((source_of(model) for model in _models(run) if source_of(model)), ())


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """Compute with a number of threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _how(seconds: float, context: RunContext, run: Run) -> dict[str, object]:
    """Say when and on what a run was made."""
    on_gpu = torch.cuda.is_available()
    names = ("torch", "transformers", "tokenizers", *(("sacrebleu",) if isinstance(run, Translate) else ()))
    return {
        "seconds": round(seconds, 3),
        "device": torch.cuda.get_device_name() if on_gpu else platform.processor() or platform.machine(),
        "threads": context.threads,
        "precision": context.settled(_asked_precision(run)),
        "versions": {"isogloss": VERSION, "python": platform.python_version()}
        | {name: version(name) for name in names},
    }


def _asked_precision(run: Run) -> str:
    """Return the precision a run's values ask for; a measurement is made in that of its models."""
    if isinstance(run, FineTune):
        return run.optimization.precision
    if isinstance(run, Measure):
        return next((_asked_precision(subject) for subject in run.subjects), "auto")
    return str(getattr(getattr(run, "method", None), "precision", "auto"))
