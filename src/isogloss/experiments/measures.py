"""From a recipe's [[measure]] tables to its measurements: of models, of encoders, on bitext or text."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from isogloss.core.errors import ConfigError, ModelError, unknown_name
from isogloss.core.languages import check_language, language_of_text
from isogloss.data.corpora import SPLITS, Split, is_translation
from isogloss.data.parallel_examples import check_parallel
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.experiments.alignments import AlignmentRequest, alignments
from isogloss.experiments.encoder_runs import Encoder, Pretrain
from isogloss.experiments.encoders import check_read, has_masked_lm, reads
from isogloss.experiments.grid import Cell
from isogloss.experiments.recipe import (
    MeasureTable,
    Recipe,
    Table,
    located,
    names,
    part_of,
    plug_in,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.experiments.runs import FineTune, Measure, Run, Translate, tasks_of
from isogloss.experiments.translations import RecipeTranslator, TranslationRequest, check_labels
from isogloss.methods import Mixing
from isogloss.training.inputs import (
    ORIGINAL_INPUTS,
    PAIRED,
    TRANSLATED,
    check_inputs,
    codes_read,
    language_read,
)

_OF_ENCODERS = ("split", "examples", "corpus", "languages", "encoders")
_OF_STATES = ("split", "examples", "corpus", "languages", "tasks", "targets", "seeds", "methods", "encoders")
_OF_MODELS = (*_OF_STATES, "treebanks", "inputs")
CHOICE = {
    "model": _OF_MODELS,
    "scores": _OF_MODELS,
    "seeds": _OF_MODELS,
    "cell": ("split", "examples", "tasks", "targets", "seeds", "encoders"),
    "encoder": _OF_ENCODERS,
    "states": _OF_STATES,
    "parallel": _OF_MODELS,
    "words": _OF_STATES,
    "text": _OF_ENCODERS,
}
"""Fields of a [[measure]] table that choose what is measured; the others are the diagnostic's."""


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """What one [[measure]] table asks for, and the encoders and models it asks it of."""

    diagnostic: Diagnostic
    choice: MeasureTable
    align: Table
    where: str
    """The place in the recipe, for messages."""
    encoders: Sequence[Encoder]
    cells: Sequence[Cell]
    """Of these encoders."""
    sources: Sources
    translator: RecipeTranslator | None = None
    """Who translates the inputs; None where they do not come in translation or are read from files."""

    @property
    def split(self) -> Split:
        """The split measured (``measure_request`` checked that it is one)."""
        return cast(Split, self.choice.split)

    def takes(self, cell: Cell) -> bool:
        """Return whether a cell is among the tasks, targets and seeds asked for (all when none are named)."""
        choice = self.choice
        return (
            (not choice.tasks or cell.task in choice.tasks)
            and (not choice.targets or cell.target in choice.targets)
            and (not choice.seeds or cell.seed in choice.seeds)
        )


def measurements(
    recipe: Recipe,
    built: Mapping[Encoder, str],
    grid: list[Cell],
    translators: Sequence[RecipeTranslator],
    sources: Sources,
    where: str,
) -> Iterator[Run]:
    """Yield the measurements of all tables; names that are not in the grid are refused."""
    for place, table in enumerate(recipe.measure):
        request = measure_request(
            table, recipe, built, grid, sources=sources, where=f"{where}: measure[{place}]"
        )
        _check_names(request)
        subject, name = request.diagnostic.subject, request.diagnostic.name
        if subject in ("model", "cell", "scores", "seeds") and not request.cells:
            raise ConfigError(f"{request.where}: {name} looks at models, and there is no [grid]. Add one.")
        by = translators if request.choice.inputs in (TRANSLATED, PAIRED) else ()
        each = [replace(request, translator=one) for one in by] or [request]
        found = [run for one in each for run in _MEASURES[subject](one)]
        if not found:
            raise ConfigError(
                f"{request.where}: {name} finds nothing in the grid to look at. "
                f"Change its targets, seeds or methods, or those of the grid."
            )
        yield from found


def measure_request(
    table: Table,
    recipe: Recipe,
    built: Mapping[Encoder, str],
    grid: Sequence[Cell],
    *,
    sources: Sources,
    where: str,
) -> MeasureRequest:
    """Read a table; ConfigError for names there are none of, and fields the diagnostic does not take."""
    kind = plug_in(table, DIAGNOSTICS, "diagnostic", where)
    choosing = {"name", *CHOICE[kind.subject]}
    refuse_unknown(table, names(kind) | choosing, f"diagnostic {kind.name}", where)
    choice = part_of(table, MeasureTable, where, only=choosing)
    if choice.split not in SPLITS:
        raise unknown_name(f"{where}: split", "split", choice.split, SPLITS)
    for code in choice.languages:
        check_language(code, f"{where}: languages")
    for label in choice.encoders:
        if label not in built.values():
            raise unknown_name(f"{where}: encoders", "encoder of this recipe", label, {*built.values()})
    encoders = [one for one, label in built.items() if not choice.encoders or label in choice.encoders]
    return MeasureRequest(
        diagnostic=part_of(table, kind, where),
        choice=choice,
        align=recipe.align,
        where=where,
        encoders=encoders,
        cells=[cell for cell in grid if cell.encoder in encoders],
        sources=sources,
    )


def _check_names(request: MeasureRequest) -> None:
    """Refuse tasks, targets, seeds and methods that are not in the grid."""
    known: dict[str, set[Any]] = {
        "tasks": {cell.task for cell in request.cells},
        "targets": {cell.target for cell in request.cells},
        "seeds": {cell.seed for cell in request.cells},
        "methods": {label for cell in request.cells for label in cell.models},
    }
    for name, there in known.items():
        for value in getattr(request.choice, name):
            if value not in there:
                what = f"{name[:-1]} of the grid"
                raise unknown_name(f"{request.where}: {name}", what, str(value), map(str, there))


def _chosen_models(request: MeasureRequest) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
    """Yield each model once with the languages it is measured in: its cell's source and all its targets."""
    found: dict[FineTune, tuple[set[str], Cell]] = {}
    for cell in filter(request.takes, request.cells):
        for label, model in cell.models.items():
            if not request.choice.methods or label in request.choice.methods:
                targets, _ = found.setdefault(model, (set(), cell))
                targets.update(cell.targets)
    for model, (targets, cell) in found.items():
        paired = request.choice.inputs == PAIRED
        if _shares_translator(request, model) and (not paired or isinstance(model.method, Mixing)):
            # Sorted, so that a recipe with its lists in another order asks for the same runs.
            yield model, (*cell.source, *sorted(targets - {*cell.source})), cell


def _shares_translator(request: MeasureRequest, model: FineTune) -> bool:
    """Return whether training data and inputs share a translator, as far as both are translated."""
    own = {one.translator for one in model.translated or ()}
    return not own or request.translator is None or own == {request.translator.translator}


def _of_models(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each model, in its source and all targets of its cells."""
    for model, languages, cell in _chosen_models(request):
        yield _on_labels(request, (model,), languages, cell)


def _of_scores(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each source-trained model's scores in all languages."""
    for model, languages, cell in _chosen_models(request):
        if model.source and not model.target:
            scores = _on_labels(_scores(request), (model,), languages, cell)
            yield _over(scores, request, (scores,))


def _of_seeds(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of the scores of all seeds of a model."""
    groups: dict[object, list[tuple[int, Measure]]] = {}
    for model, languages, cell in _chosen_models(request):
        scores = _on_labels(_scores(request), (model,), languages, cell)
        key = (
            *(model.encoder, model.corpus, model.method, _without_seeds(model.start)),
            *(model.source, model.target, model.optimization, model.translated, languages),
        )
        groups.setdefault(key, []).append((model.seed, scores))
    for group in groups.values():
        subjects = tuple(scores for _, scores in sorted(group, key=lambda one: one[0]))
        if len(subjects) < 2:
            raise ConfigError(
                f"{request.where}: {request.diagnostic.name} compares seeds, and there is only one. "
                f"Give grid.seeds two or more (three for a paper)."
            )
        yield _over(subjects[0], request, subjects)


def _scores(request: MeasureRequest) -> MeasureRequest:
    """Return the request for the measurements whose rows a diagnostic of scores reads."""
    return replace(request, diagnostic=DIAGNOSTICS["scores"]())


def _over(scores: Measure, request: MeasureRequest, subjects: tuple[Measure, ...]) -> Measure:
    """Return the measurement of measurements of scores, which reads no file."""
    diagnostic = request.diagnostic
    return replace(scores, diagnostic=diagnostic, subjects=subjects, translated=None, examples=0, data="")


def _without_seeds(model: FineTune | None) -> FineTune | None:
    """Return what a model starts from as one value for all seeds."""
    return model and replace(model, seed=0, start=_without_seeds(model.start))


def _of_cells(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of the models named by ``between`` in each cell that has them."""
    wanted: tuple[str, ...] = getattr(request.diagnostic, "between")  # noqa: B009 (only these have it)
    labels = {label for cell in request.cells for label in cell.models}
    for label in wanted:
        if label not in labels:
            raise unknown_name(f"{request.where}: between", "method of this recipe", label, labels)
    for cell in filter(request.takes, request.cells):
        if all(label in cell.models for label in wanted):
            subjects = tuple(cell.models[label] for label in wanted)
            yield _on_labels(request, subjects, (*cell.source, *cell.targets), cell)


def _on_labels(
    request: MeasureRequest, subjects: tuple[Run, ...], languages: tuple[str, ...], cell: Cell
) -> Measure:
    """Build the measurement of models on the labelled examples of their corpus, or of the one named."""
    inputs, languages = request.choice.inputs, request.choice.languages or languages
    check_inputs(inputs, cell.task, f"{request.where}: inputs")
    _check_read(request, cell.encoder, [language_read(inputs, one, cell.source) for one in languages])
    corpus = request.choice.corpus or cell.corpus
    with located(request.where):
        request.sources.needs(corpus, cell.task)
    return _on_examples(request, subjects, corpus, languages, cell)


def _on_examples(
    request: MeasureRequest,
    subjects: tuple[Run, ...],
    corpus: str,
    languages: tuple[str, ...],
    cell: Cell | None,
) -> Measure:
    """Build a measurement on labelled examples, translated where the request says so."""
    inputs, source = request.choice.inputs, cell.source if cell else ()
    treebanks = _treebanks(request, corpus, languages, cell)
    codes = [code for language in languages for code in codes_read(inputs, language, source)]
    made = _translations(request, corpus, [code for code in codes if is_translation(code)], cell, treebanks)
    from_files = [code for code in codes if code not in {one.languages for one in made}]
    with located(request.where):
        found = _measurement(request, subjects, languages, corpus, from_files, treebanks)
    own = tuple(pair for pair in treebanks if pair[0] in languages)
    return replace(found, inputs=inputs or None, translated=made or None, treebanks=own)


def _measurement(
    request: MeasureRequest,
    subjects: tuple[Run, ...],
    languages: tuple[str, ...],
    corpus: str,
    codes: Iterable[str],
    treebanks: Treebanks = (),
) -> Measure:
    """Build a measurement of a corpus, with the fingerprint of what is read from its files."""
    files = [request.sources.fingerprint(corpus, one, request.split, treebanks=treebanks) for one in codes]
    return Measure(
        diagnostic=request.diagnostic,
        subjects=subjects,
        languages=languages,
        corpus=corpus,
        split=request.split,
        examples=request.choice.examples,
        data=combined_fingerprint(files),
    )


def _treebanks(
    request: MeasureRequest, corpus: str, languages: tuple[str, ...], cell: Cell | None
) -> Treebanks:
    """Return the treebanks a table names (one name is that of all its languages), or else the grid's."""
    named = request.choice.treebanks
    own = dict.fromkeys(languages, named) if isinstance(named, str) else named
    of_cell = cell.treebanks if cell is not None and corpus == cell.corpus else ()
    return tuple(sorted(own.items())) or of_cell


def _translations(
    request: MeasureRequest, corpus: str, codes: list[str], cell: Cell | None, treebanks: Treebanks
) -> tuple[Translate, ...]:
    """Build the translations of inputs that are made; none where they are read from files."""
    if request.translator is None or cell is None:
        return ()
    paired = request.choice.inputs == PAIRED
    if not paired:
        check_labels(cell.task, None, f"{request.where}: inputs")
    asked = TranslationRequest(
        corpus=corpus,
        languages="",
        split=request.split,
        examples=request.choice.examples,
        treebanks=treebanks,
        purpose="pair" if paired else "test",
        encoder=cell.encoder,
        where=request.where,
    )
    return tuple(request.translator.run(replace(asked, languages=code), request.sources) for code in codes)


def _check_read(request: MeasureRequest, encoder: Encoder, languages: Iterable[str]) -> None:
    """Refuse languages that an encoder cannot read; of a pair such as fr-en the text is in the last."""
    codes = map(language_of_text, languages)
    check_read(encoder, codes, request.sources.encoders, f"{request.where}: encoder {encoder.label!r}")


def _of_encoders(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder on bitext."""
    for encoder in request.encoders:
        yield _on_bitext(request, encoder, encoder, _languages(request, encoder))


def _of_states(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext."""
    yield from _of_encoders(request)
    for model, languages, _ in _chosen_models(request):
        yield _on_bitext(request, model, model.encoder, request.choice.languages or languages)


def _of_parallel(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext or a test set.

    Paired inputs are for models alone, and among them for those that mix.
    """
    choice = request.choice
    with located(f"{request.where}: corpus"):
        bitext = not choice.corpus or not tasks_of(choice.corpus)
    for field in ("inputs", "treebanks") if bitext else ():
        if getattr(choice, field):
            raise ConfigError(
                f"{request.where}: {field}: found {getattr(choice, field)!r}, but corpus {choice.corpus!r} "
                f"has no labels. Leave it out, or name a parallel test set of a task."
            )
    if bitext:
        yield from _of_states(request)
        return
    if choice.inputs not in (ORIGINAL_INPUTS, PAIRED):
        raise unknown_name(f"{request.where}: inputs", "kind of inputs here", choice.inputs, (PAIRED,))
    for encoder in () if choice.inputs else request.encoders:
        yield _on_test_set(request, encoder, encoder, _languages(request, encoder), None)
    for model, languages, cell in _chosen_models(request):
        yield _on_test_set(request, model, model.encoder, choice.languages or languages, cell)


def _on_test_set(
    request: MeasureRequest, subject: Run, encoder: Encoder, languages: tuple[str, ...], cell: Cell | None
) -> Measure:
    """Build a measurement on the labelled examples of a parallel test set."""
    corpus, inputs = request.choice.corpus, request.choice.inputs
    _check_read(request, encoder, languages)
    with located(f"{request.where}: corpus"):
        check_parallel(corpus, request.split, languages, dict(_treebanks(request, corpus, languages, cell)))
        if cell is not None and inputs:
            request.sources.needs(corpus, cell.task)
    return _on_examples(request, (subject,), corpus, languages, cell)


def _on_bitext(
    request: MeasureRequest, subject: Run, encoder: Encoder, languages: tuple[str, ...]
) -> Measure:
    """Build a measurement on translations of the first language, aligned where words are compared."""
    corpus, diagnostic = request.choice.corpus, request.diagnostic
    if not corpus:
        or_more = " or a parallel test set" if diagnostic.subject == "parallel" else ""
        raise ConfigError(
            f"{request.where}: {diagnostic.name} needs bitext{or_more}: name it in the field corpus."
        )
    first, *others = languages
    pairs = [f"{first}-{other}" for other in others]
    with located(f"{request.where}: corpus"):
        request.sources.needs(corpus, "bitext")
        found = _measurement(request, (subject,), languages, corpus, pairs)
    _check_read(request, encoder, languages)
    if diagnostic.subject != "words":
        return found
    asked = AlignmentRequest(request.align, request.where, request.split)
    return replace(found, aligned=alignments(asked, request.sources, encoder, corpus, pairs))


def _of_masked_lm(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each encoder with its masked-LM head, on raw text: its own when none is named."""
    for encoder in request.encoders:
        first, name = encoder.original, request.diagnostic.name
        own = "+".join(first.text) if isinstance(first, Pretrain) else ""
        corpus = request.choice.corpus or own
        if not corpus:
            raise ConfigError(f"{request.where}: {name} needs raw text: name it in the field corpus.")
        if not has_masked_lm(encoder, request.sources.encoders):
            raise ModelError(
                f"{request.where}: {name} looks at masked-LM heads, and the encoder "
                f"{encoder.label!r} has none. Give one that was saved with its head."
            )
        languages = _languages(request, encoder, least=1)
        with located(f"{request.where}: corpus"):
            request.sources.needs(corpus, "text")
            found = _measurement(request, (encoder,), languages, corpus, languages)
        yield found


def _languages(request: MeasureRequest, encoder: Encoder, *, least: int = 2) -> tuple[str, ...]:
    """Return the languages an encoder is measured in: those named, its own, or the grid's it reads."""
    first, here = encoder.original, request.sources.encoders
    own = first.languages if isinstance(first, Pretrain) else ()
    of_grid = dict.fromkeys(code for cell in request.cells for code in (*cell.source, *cell.targets))
    readable = tuple(code for code in of_grid if reads(encoder, code, here))
    languages = request.choice.languages or own or readable
    if len(languages) < least:
        wants, number = ("reads languages", "one") if least == 1 else ("compares languages", "two")
        raise ConfigError(
            f"{request.where}: languages: {request.diagnostic.name} {wants}, and the recipe names "
            f"{len(languages)}. Name {number} or more."
        )
    refuse_empty_or_twice(languages, f"{request.where}: languages")
    return languages


_MEASURES: dict[str, Callable[[MeasureRequest], Iterable[Run]]] = {
    "model": _of_models,
    "scores": _of_scores,
    "seeds": _of_seeds,
    "cell": _of_cells,
    "encoder": _of_encoders,
    "states": _of_states,
    "parallel": _of_parallel,
    "words": _of_states,
    "text": _of_masked_lm,
}
