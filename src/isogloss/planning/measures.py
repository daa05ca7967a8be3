"""Build measurements from [[measure]] tables: their subjects, and the data they read."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from operator import itemgetter
from typing import cast

from isogloss.core.errors import ConfigError, add_location, check_named, unknown_name
from isogloss.core.languages import check_language
from isogloss.data.corpus import is_translation
from isogloss.data.sources import Treebanks
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.diagnostics.setting import Diagnostic
from isogloss.planning.alignments import AlignmentRequest, alignments
from isogloss.planning.grid import GridCell, Planning
from isogloss.planning.measured import (
    Measured,
    MeasureRequest,
    compared_models,
    encoders,
    encoders_and_models,
    masked_lms,
    models,
)
from isogloss.planning.translations import TranslationRequest
from isogloss.recipes.checking import Kinds, names, part_of, refuse_empty_or_twice, refuse_unknown
from isogloss.recipes.recipe import MeasureTable, Table
from isogloss.runs.average import seedless
from isogloss.runs.fine_tune import FineTune, fine_tuned
from isogloss.runs.measure import Measure, pairs_of, tasks_of
from isogloss.runs.run import TranslatedSplit
from isogloss.tasks import find_task
from isogloss.tasks.inputs import ORIGINAL_INPUTS, PAIRED, TRANSLATED, check_inputs, codes_read, language_read

KINDS = Kinds("diagnostic", DIAGNOSTICS, "diagnostics", Diagnostic)


def measurements(planning: Planning, grid: Sequence[GridCell]) -> Iterator[Measure]:
    """Yield the measurements of all tables.

    Raises ConfigError for names that are not in the grid.
    """
    for index, table in enumerate(planning.recipe.measure):
        with add_location(f"measure[{index}]"):
            runs = _measurements(_read(table, planning, grid))
        yield from runs


def _measurements(request: MeasureRequest) -> list[Measure]:
    subject = SUBJECTS[request.diagnostic.subject]
    name = request.diagnostic.name
    if subject.needs_grid and not request.cells:
        raise ConfigError(f"{name} measures models, and the recipe has no [grid]. Add one.")
    translators = request.planning.translators if request.choice.inputs in (TRANSLATED, PAIRED) else ()
    requests = [replace(request, translator=translator) for translator in translators] or [request]
    runs = [run for request in requests for run in subject.measurements(request)]
    if not runs:
        raise ConfigError(
            f"{name} finds nothing in the grid to measure{subject.needs}. Change its targets, seeds or "
            f"methods, or those of the grid."
        )
    return runs


def _read(table: Table, planning: Planning, grid: Sequence[GridCell]) -> MeasureRequest:
    kind = KINDS.find_class(table)
    if kind.subject not in SUBJECTS:
        raise unknown_name(f"subject of {kind.name}", "subject", str(kind.subject), SUBJECTS)
    choosing = {"name", *SUBJECTS[kind.subject].fields}
    refuse_unknown(table, names(kind) | choosing, f"diagnostic {kind.name}")
    choice = part_of(table, MeasureTable, only=choosing)
    diagnostic = part_of(table, kind)
    _check_lists(choice, diagnostic, table)
    for language in choice.languages:
        check_language(language, "languages")
    labels = planning.encoders
    check_named("encoders", "encoder of this recipe", set(labels.values()), *choice.encoders)
    choices = [
        encoder for encoder, label in labels.items() if not choice.encoders or label in choice.encoders
    ]
    for encoder in choices:
        encoder.check_layers(diagnostic, planning.sources.encoders)
    cells = [cell for cell in grid if cell.encoder in choices]
    _check_chosen(choice, cells)
    return MeasureRequest(
        diagnostic=diagnostic, choice=choice, planning=planning, encoders=choices, cells=cells
    )


def _check_lists(choice: MeasureTable, diagnostic: Diagnostic, table: Table) -> None:
    """Refuse lists with duplicates, and empty ones with which a diagnostic measures nothing."""
    for part in (choice, diagnostic):
        for field in fields(part):
            values = getattr(part, field.name)
            if field.name in table and isinstance(values, tuple) and (values or field.default):
                refuse_empty_or_twice(values, field.name)


def _check_chosen(choice: MeasureTable, cells: Sequence[GridCell]) -> None:
    available: dict[str, set[object]] = {
        "tasks": {cell.task for cell in cells},
        "targets": {cell.target for cell in cells},
        "seeds": {cell.seed for cell in cells},
        "methods": {label for cell in cells for label in cell.models},
    }
    for name, values in available.items():
        names_chosen = [str(value) for value in getattr(choice, name)]
        check_named(name, f"{name[:-1]} of the grid", [str(value) for value in values], *names_chosen)
    languages = choice.languages or {language for cell in cells for language in (*cell.source, *cell.targets)}
    if languages and not isinstance(choice.treebanks, str):
        check_named("treebanks", "language that is measured", languages, *choice.treebanks)


def labels(request: MeasureRequest, subjects: Measured) -> Measure:
    """Read labelled examples of the corpus that the table names. Default: the grid's corpus."""
    inputs = request.choice.inputs
    cell = cast(GridCell, subjects.cell)
    with add_location("inputs"):
        check_inputs(inputs, cell.task)
    read = [language_read(inputs, language, cell.source) for language in subjects.languages]
    request.check_languages(cell.encoder, read)
    corpus = request.choice.corpus or cell.corpus
    request.sources.needs(corpus, cell.task)
    request.diagnostic.check(find_task(cell.task))
    languages = _select_labelled(request, subjects.languages, corpus)
    return _on_examples(request, subjects._replace(languages=languages), corpus)


def _select_labelled(request: MeasureRequest, languages: tuple[str, ...], corpus: str) -> tuple[str, ...]:
    """Return the languages with labels if the diagnostic needs labels, and record the others for the plan.

    Raises ConfigError if no language has labels, or if a language that the table names has none.
    """
    if not request.diagnostic.needs_labels:
        return languages
    split = request.choice.split
    lacks_labels = request.sources.lacks_labels
    lacking = [language for language in languages if lacks_labels(corpus, language, split)]
    if lacking and (request.choice.languages or len(lacking) == len(languages)):
        raise ConfigError(
            f"languages: {corpus} has no labels in {', '.join(lacking)}, and {request.diagnostic.name} needs "
            f"them. Leave out {lacking[0]}, or measure label-free."
        )
    request.sources.unlabelled.update({(corpus, split, language): None for language in lacking})
    return tuple(language for language in languages if language not in lacking)


def _on_examples(request: MeasureRequest, subjects: Measured, corpus: str) -> Measure:
    inputs = request.choice.inputs
    source = subjects.cell.source if subjects.cell else ()
    treebanks = _treebanks(request, corpus, subjects)
    codes = [code for language in subjects.languages for code in codes_read(inputs, language, source)]
    translations = [code for code in codes if is_translation(code)]
    translation_runs = _translations(request, subjects, corpus, translations, treebanks)
    translated_codes = {run.languages for run in translation_runs}
    from_files = [code for code in codes if code not in translated_codes]
    run = request.measure(subjects, corpus, from_files, treebanks)
    read = tuple(pair for pair in treebanks if pair[0] in subjects.languages)
    return replace(run, inputs=inputs or None, translated=translation_runs or None, treebanks=read)


def _treebanks(request: MeasureRequest, corpus: str, subjects: Measured) -> Treebanks:
    """Return the treebanks that a table names, or else the grid's.

    A single name applies to all languages of the table.
    """
    treebanks = request.choice.treebanks
    cell = subjects.cell
    language_treebanks = (
        dict.fromkeys(subjects.languages, treebanks) if isinstance(treebanks, str) else treebanks
    )
    cell_treebanks = cell.treebanks if cell is not None and corpus == cell.corpus else ()
    return tuple(sorted(language_treebanks.items())) or cell_treebanks


def _translations(
    request: MeasureRequest, subjects: Measured, corpus: str, codes: Iterable[str], treebanks: Treebanks
) -> tuple[TranslatedSplit, ...]:
    """Build the translations of machine-translated inputs. None if they are read from files."""
    cell = subjects.cell
    translator = request.translator
    if translator is None or cell is None:
        return ()
    is_paired = request.choice.inputs == PAIRED
    if not is_paired:
        with add_location("inputs"):
            translator.check_labels(cell.task, None)
    task = find_task(cell.task)
    links = request.diagnostic.reads_translations or any(
        model.method.reads((), ()).needs_links(task) for model in fine_tuned(subjects.runs)
    )
    inputs_request = TranslationRequest(
        corpus=corpus,
        languages="",
        split=request.choice.split,
        examples=request.choice.examples,
        treebanks=treebanks,
        purpose="pair" if is_paired else "test",
        links=links and is_paired,
        encoder=cell.encoder,
    )
    return tuple(
        translator.run(replace(inputs_request, languages=language), request.sources) for language in codes
    )


def bitext(
    request: MeasureRequest, subjects: Measured, task: str = "bitext", text_kind: str = "bitext"
) -> Measure:
    """Read translations of the first language into the others."""
    corpus = request.choice.corpus
    pairs = pairs_of(subjects.languages)
    if not corpus:
        raise ConfigError(f"{request.diagnostic.name} needs {text_kind}: name it in the field corpus.")
    with add_location("corpus"):
        request.sources.needs(corpus, task)
        run = request.measure(subjects, corpus, pairs)
    request.check_languages(subjects.encoder, subjects.languages)
    return run


def aligned_words(request: MeasureRequest, subjects: Measured) -> Measure:
    """Read bitext whose words are aligned."""
    run = bitext(request, subjects)
    pairs = pairs_of(subjects.languages)
    alignment = AlignmentRequest(request.planning.recipe.align, request.choice.split)
    alignment_runs = alignments(alignment, request.sources, subjects.encoder, run.corpus, pairs)
    return replace(run, aligned=alignment_runs)


def parallel_text(request: MeasureRequest, subjects: Measured) -> Measure:
    """Read bitext, or the labelled examples of a parallel test set."""
    choice = request.choice
    corpus = request.choice.corpus
    with add_location("corpus"):
        is_bitext = not corpus or not tasks_of(corpus)
    for field in ("inputs", "treebanks") if is_bitext else ():
        if getattr(choice, field):
            raise ConfigError(
                f"{field}: found {getattr(choice, field)!r}, but corpus {corpus!r} has no labels. Remove it, "
                f"or name a parallel test set of a task."
            )
    if is_bitext:
        return bitext(request, subjects, text_kind="bitext or a parallel test set")
    if choice.inputs != ORIGINAL_INPUTS:
        check_named("inputs", "kind of inputs here", (PAIRED,), choice.inputs)
    request.check_languages(subjects.encoder, subjects.languages)
    treebanks = dict(_treebanks(request, corpus, subjects))
    with add_location("corpus"):
        from isogloss.data.projection.parallel_examples import check_parallel

        check_parallel(corpus, request.choice.split, subjects.languages, treebanks)
        if subjects.cell is not None and choice.inputs:
            request.sources.needs(corpus, subjects.cell.task)
    return _on_examples(request, subjects, corpus)


def labelled_examples(request: MeasureRequest, subjects: Measured) -> Measure:
    """Read the examples of a corpus with labels. Default: the grid's corpus."""
    cell = next(iter(request.cells), None)
    corpus = request.choice.corpus or (cell.corpus if cell else "")
    if not corpus:
        raise ConfigError(f"{request.diagnostic.name} needs labelled examples: name a corpus.")
    with add_location("corpus"):
        if not tasks_of(corpus):
            raise ConfigError(
                f"{corpus!r} has text without labels, and {request.diagnostic.name} reads examples "
                f"of a task. Name a corpus of the task, as in wikiann."
            )
        treebanks = _treebanks(request, corpus, subjects._replace(cell=cell))
        run = request.measure(subjects, corpus, subjects.languages, treebanks)
    request.check_languages(subjects.encoder, subjects.languages)
    return replace(run, treebanks=tuple(pair for pair in treebanks if pair[0] in subjects.languages))


def raw_text(request: MeasureRequest, subjects: Measured) -> Measure:
    """Read raw text. Default: the corpus of the encoder's pretraining."""
    corpus = request.choice.corpus or "+".join(subjects.encoder.original.training_corpora)
    if not corpus:
        raise ConfigError(f"{request.diagnostic.name} needs raw text: name it in the field corpus.")
    with add_location("corpus"):
        request.sources.needs(corpus, "text")
        return request.measure(subjects, corpus, subjects.languages)


def _scores(request: MeasureRequest) -> Iterator[tuple[FineTune, Measure]]:
    """Yield each model with the measurement of its scores, whose rows other diagnostics read."""
    scores = replace(request, diagnostic=DIAGNOSTICS["scores"]())
    for subjects in models(request):
        yield cast(FineTune, subjects.runs[0]), labels(scores, subjects)


def _combine_measurements(request: MeasureRequest, subjects: Sequence[Measure]) -> Measure:
    """Build a measurement that reads the rows of other measurements and no files."""
    run = replace(subjects[0], diagnostic=request.diagnostic, subjects=tuple(subjects))
    return replace(run, translated=None, examples=0, data="")


def zero_shot_scores(request: MeasureRequest) -> Iterator[Measure]:
    """Yield a measurement of the scores of each model that is trained only on the source."""
    for model, scores in _scores(request):
        if model.source and not model.target:
            yield _combine_measurements(request, (scores,))


def scores_over_seeds(request: MeasureRequest) -> Iterator[Measure]:
    """Yield a measurement of the scores of the models that differ only in their seed."""
    groups: dict[object, list[tuple[int, Measure]]] = {}
    for model, scores in _scores(request):
        further_models = (model.start, model.teacher, *(model.parts or ()))
        seed_0 = replace(model, seed=0, start=None, teacher=None, parts=None)
        key = (
            seed_0,
            scores.languages,
            *(seedless(further_model) if further_model else "" for further_model in further_models),
        )
        groups.setdefault(key, []).append((model.seed, scores))
    for group in groups.values():
        if len(group) < 2 and group[0][1].models[0].parts:
            continue  # An average of all seeds has no others.
        if len(group) < 2:
            raise ConfigError(
                f"{request.diagnostic.name} compares seeds, and the grid has only one. "
                f"Give grid.seeds two or more (three for a paper)."
            )
        yield _combine_measurements(request, [scores for _, scores in sorted(group, key=itemgetter(0))])


@dataclass(frozen=True)
class SubjectKind:
    """A kind of measurement: its subjects, the fields of its table, and its builder."""

    runs: str
    """The measured runs, for the documentation."""
    fields: tuple[str, ...]
    """Fields of a [[measure]] table that choose what is measured. The other fields are the diagnostic's."""
    measurements: Callable[[MeasureRequest], Iterable[Measure]]
    needs_grid: bool = False
    needs: str = ""
    """What a grid must have, for the message about a grid without it."""


def _make_builder(
    choose: Callable[[MeasureRequest], Iterable[Measured]],
    build: Callable[[MeasureRequest, Measured], Measure],
) -> Callable[[MeasureRequest], Iterator[Measure]]:
    return lambda request: (build(request, subjects) for subjects in choose(request))


_ENCODERS = ("split", "examples", "corpus", "languages", "encoders")
_STATES = (*_ENCODERS[:-1], "tasks", "targets", "seeds", "methods", "encoders")
_MODELS = (*_STATES, "treebanks", "inputs")
_CELLS = tuple(name for name in _MODELS if name != "methods")
_COMPARABLE = tuple(name for name in _STATES if name != "examples")
_WITHIN = "encoder, and for the encoder within each fine-tuned model"
_CELL = "combination of encoder, corpus, source, target and seed that has all methods named"
_COMPARABLE_TEXT = partial(bitext, task="comparable", text_kind="comparable text")

SUBJECTS: Mapping[str, SubjectKind] = {
    "model": SubjectKind("fine-tuned model", _MODELS, _make_builder(models, labels), needs_grid=True),
    "cell": SubjectKind(_CELL, _CELLS, _make_builder(compared_models, labels), needs_grid=True),
    "scores": SubjectKind(
        "fine-tuned model that saw no target labels",
        _MODELS,
        zero_shot_scores,
        needs_grid=True,
        needs=": it is of models trained on the source alone",
    ),
    "seeds": SubjectKind("fine-tuned model over all its seeds", _MODELS, scores_over_seeds, needs_grid=True),
    "encoder": SubjectKind("encoder", _ENCODERS, _make_builder(encoders, bitext)),
    "states": SubjectKind(f"{_WITHIN}, on translations", _STATES, _make_builder(encoders_and_models, bitext)),
    "words": SubjectKind(
        f"{_WITHIN}, on translations with aligned words",
        _STATES,
        _make_builder(encoders_and_models, aligned_words),
    ),
    "comparable": SubjectKind(
        f"{_WITHIN}, on comparable text", _COMPARABLE, _make_builder(encoders_and_models, _COMPARABLE_TEXT)
    ),
    "parallel": SubjectKind(
        f"{_WITHIN}, on bitext or parallel test sets",
        _MODELS,
        _make_builder(encoders_and_models, parallel_text),
    ),
    "examples": SubjectKind(
        "encoder, on examples of a labelled corpus",
        (*_ENCODERS, "treebanks"),
        _make_builder(encoders, labelled_examples),
    ),
    "text": SubjectKind(
        "encoder with its masked-LM head, on raw text", _ENCODERS, _make_builder(masked_lms, raw_text)
    ),
}
"""The kinds of measurements, by the subject of a diagnostic."""
