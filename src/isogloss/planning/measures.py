"""From a [[measure]] table to what it asks for, and to the measurements of models."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from operator import itemgetter
from typing import cast

from isogloss.core.errors import ConfigError, check_named, located, unknown_name
from isogloss.core.languages import check_language, language_of_text
from isogloss.data.corpus import SPLITS, Split, is_translation
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.diagnostics.weight_space import FACTORS, MIX_OTHERWISE
from isogloss.methods import WITH_FACTORS
from isogloss.methods.x_mixup import XMixup, mixup_task
from isogloss.planning.grid import Cell, Planning
from isogloss.planning.translations import RecipeTranslator, TranslationRequest, check_labels
from isogloss.recipes.checking import names, part_of, plug_in, refuse_empty_or_twice, refuse_unknown
from isogloss.recipes.recipe import MeasureTable, Table
from isogloss.runs.averages import seedless
from isogloss.runs.encoder_runs import Encoder
from isogloss.runs.encoders import check_layers_read, check_read, facts_of
from isogloss.runs.runs import FineTune, Measure, Run, Translate
from isogloss.tasks import find_task
from isogloss.training.evaluation import PAIRED, check_inputs, codes_read, language_read

_OF_ENCODERS = ("split", "examples", "corpus", "languages", "encoders")
_OF_STATES = ("split", "examples", "corpus", "languages", "tasks", "targets", "seeds", "methods", "encoders")
_OF_MODELS = (*_OF_STATES, "treebanks", "inputs")
CHOICE = {
    "model": _OF_MODELS,
    "scores": _OF_MODELS,
    "seeds": _OF_MODELS,
    "cell": tuple(name for name in _OF_MODELS if name != "methods"),
    "encoder": _OF_ENCODERS,
    "states": _OF_STATES,
    "parallel": _OF_MODELS,
    "comparable": tuple(name for name in _OF_STATES if name != "examples"),
    "words": _OF_STATES,
    "text": _OF_ENCODERS,
}
"""Fields of a [[measure]] table that choose what is measured; the others are the diagnostic's."""


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """What one [[measure]] table asks for, with the encoders and cells it may measure."""

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
        named = ((choice.tasks, cell.task), (choice.targets, cell.target), (choice.seeds, cell.seed))
        return all(not values or value in values for values, value in named)


def measure_request(table: Table, planning: Planning, grid: Sequence[Cell], where: str) -> MeasureRequest:
    """Read a table; ConfigError for names there are none of, and fields the diagnostic does not take."""
    kind = plug_in(table, DIAGNOSTICS, "diagnostic", where, added=("diagnostics", Diagnostic))
    if kind.subject not in CHOICE:
        raise unknown_name(f"{where}: subject of {kind.name}", "subject", str(kind.subject), CHOICE)
    choosing = {"name", *CHOICE[kind.subject]}
    refuse_unknown(table, names(kind) | choosing, f"diagnostic {kind.name}", where)
    choice = part_of(table, MeasureTable, where, only=choosing)
    check_named(f"{where}: split", "split", SPLITS, choice.split)
    diagnostic = part_of(table, kind, where)
    _check_lists(choice, diagnostic, table, where)
    for code in choice.languages:
        check_language(code, f"{where}: languages")
    built = planning.encoders
    check_named(f"{where}: encoders", "encoder of this recipe", {*built.values()}, *choice.encoders)
    encoders = [one for one, label in built.items() if not choice.encoders or label in choice.encoders]
    for encoder in encoders:
        check_layers_read(diagnostic, encoder, planning.sources.encoders, where)
    return MeasureRequest(
        diagnostic=diagnostic,
        choice=choice,
        align=planning.recipe.align,
        where=where,
        encoders=encoders,
        cells=[cell for cell in grid if cell.encoder in encoders],
        sources=planning.sources,
    )


def _check_lists(choice: MeasureTable, diagnostic: Diagnostic, table: Table, where: str) -> None:
    """Refuse lists that name a thing twice, and empty ones of a diagnostic that then measures nothing."""
    for part in (choice, diagnostic):
        for one in fields(part):
            values = getattr(part, one.name)
            if one.name in table and isinstance(values, tuple) and (values or one.default):
                refuse_empty_or_twice(values, f"{where}: {one.name}")


def check_names(request: MeasureRequest) -> None:
    """Refuse tasks, targets, seeds and methods that are not in the grid, treebanks of other languages."""
    known: dict[str, set[object]] = {
        "tasks": {cell.task for cell in request.cells},
        "targets": {cell.target for cell in request.cells},
        "seeds": {cell.seed for cell in request.cells},
        "methods": {label for cell in request.cells for label in cell.models},
    }
    for name, there in known.items():
        named = map(str, getattr(request.choice, name))
        check_named(f"{request.where}: {name}", f"{name[:-1]} of the grid", [*map(str, there)], *named)
    chosen, own = request.choice.languages, request.choice.treebanks
    read = chosen or {code for cell in request.cells for code in (*cell.source, *cell.targets)}
    if read and not isinstance(own, str):
        check_named(f"{request.where}: treebanks", "language that is measured", read, *own)


def chosen_models(request: MeasureRequest) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
    """Yield each model once with the languages it is measured in: its cell's source and all its targets.

    Where both training data and inputs are translated, it is by the same translator.
    """
    found: dict[FineTune, tuple[set[str], Cell]] = {}
    for cell in filter(request.takes, request.cells):
        for label, model in cell.models.items():
            if not request.choice.methods or label in request.choice.methods:
                targets, _ = found.setdefault(model, (set(), cell))
                targets.update(cell.targets)
    for model, (targets, cell) in found.items():
        reads = request.choice.inputs != PAIRED or model.method.reads((), ()).mixes
        if reads and _has_its_translator(request, model):
            # Sorted, so that a recipe with its lists in another order asks for the same runs.
            yield model, (*cell.source, *sorted(targets - {*cell.source})), cell


def _has_its_translator(request: MeasureRequest, model: FineTune) -> bool:
    """Return whether inputs are translated by whom a model's training data was, if either is."""
    by = {one.translator for one in model.translated or ()}
    return not by or request.translator is None or by == {request.translator.translator}


def of_models(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each model, in its source and all targets of its cells."""
    for model, languages, cell in chosen_models(request):
        yield _on_labels(request, (model,), languages, cell)


def of_scores(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of each source-trained model's scores in all languages."""
    for model, scores in _scores(request):
        if model.source and not model.target:
            yield _of_measurements(request, (scores,))


def of_seeds(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of the scores of the models that differ in their seed alone."""
    groups: dict[object, list[tuple[int, Measure]]] = {}
    for model, scores in _scores(request):
        others = (model.start, model.teacher, *(model.parts or ()))
        alike = replace(model, seed=0, start=None, teacher=None, parts=None)
        key = (alike, scores.languages, *(seedless(one) if one else "" for one in others))
        groups.setdefault(key, []).append((model.seed, scores))
    for group in groups.values():
        if len(group) < 2 and group[0][1].models[0].parts:
            continue  # Of an average of all seeds there are no others.
        if len(group) < 2:
            raise ConfigError(
                f"{request.where}: {request.diagnostic.name} compares seeds, and there is only one. "
                f"Give grid.seeds two or more (three for a paper)."
            )
        yield _of_measurements(request, tuple(scores for _, scores in sorted(group, key=itemgetter(0))))


def _scores(request: MeasureRequest) -> Iterator[tuple[FineTune, Measure]]:
    """Yield each model with the measurement of its scores, whose rows other diagnostics read."""
    of_scores = replace(request, diagnostic=DIAGNOSTICS["scores"]())
    for model, languages, cell in chosen_models(request):
        yield model, _on_labels(of_scores, (model,), languages, cell)


def _of_measurements(request: MeasureRequest, subjects: tuple[Measure, ...]) -> Measure:
    """Build a measurement of measurements, which reads no file."""
    return replace(
        subjects[0],
        diagnostic=request.diagnostic,
        subjects=subjects,
        translated=None,
        examples=0,
        data="",
    )


def of_cells(request: MeasureRequest) -> Iterator[Measure]:
    """One measurement of the models named by ``between`` in each cell that has them."""
    wanted: tuple[str, ...] = getattr(request.diagnostic, "between")  # noqa: B009 (only these have it)
    labels = {label for cell in request.cells for label in cell.models}
    check_named(f"{request.where}: between", "method of this recipe", labels, *wanted)
    for cell in filter(request.takes, request.cells):
        if all(label in cell.models for label in wanted):
            subjects = tuple(cell.models[label] for label in wanted)
            _check_factors(request, subjects)
            _check_paired(request, subjects, cell)
            if not all(_has_its_translator(request, one) for one in subjects):
                continue
            yield _on_labels(request, subjects, (*cell.source, *cell.targets), cell)


def _check_paired(request: MeasureRequest, models: Sequence[FineTune], cell: Cell) -> None:
    """Raise ConfigError where inputs are paired and a model, or the diagnostic, reads no pairs."""
    unpaired = [one.label for one in models if not one.method.reads((), ()).mixes]
    if request.choice.inputs == PAIRED and unpaired:
        raise ConfigError(
            f"{request.where}: inputs: {unpaired[0]} reads inputs alone, and models of x-mixup beside their "
            f"translations: a point between them would infer as neither does. Leave inputs out, or let "
            f"between name models of x-mixup alone."
        )
    mixing = [one.method for one in models if isinstance(one.method, XMixup)]
    if request.choice.inputs == PAIRED and _mix_otherwise(mixing, request, cell):
        raise ConfigError(f"{request.where}: inputs: {MIX_OTHERWISE}")


def _mix_otherwise(mixing: Sequence[XMixup], request: MeasureRequest, cell: Cell) -> bool:
    """Return whether methods mix in other layers or ways; the paper's layer is that of an encoder here."""
    ways = {(mixup.learned_ratio, mixup.residual, mixup.attends) for mixup in mixing}
    facts = facts_of(cell.encoder, request.sources.encoders)
    own = mixup_task(find_task(cell.task)).layer_of(facts.layers) if facts and mixing else 0
    return len(ways) > 1 or len({mixup.layer or own for mixup in mixing} - {0}) > 1


def _check_factors(request: MeasureRequest, models: Sequence[FineTune]) -> None:
    """Raise ConfigError where adapters are to be mixed that are not alike."""
    kinds = {one.peft for one in models}
    if getattr(request.diagnostic, "part", "") != FACTORS:
        return
    if len(kinds) > 1 or not all(isinstance(one, WITH_FACTORS) for one in kinds):
        found = ", ".join(one.label for one in models)
        raise ConfigError(
            f"{request.where}: part: factors are those of models with one and the same "
            f"{', '.join(one.name for one in WITH_FACTORS)}; these are {found}. Take "
            f'models that are alike, or part = "all", which mixes merged weights.'
        )


def _on_labels(
    request: MeasureRequest, subjects: tuple[Run, ...], languages: tuple[str, ...], cell: Cell
) -> Measure:
    """Build the measurement of models on the labelled examples of their corpus, or of the one named."""
    inputs, languages = request.choice.inputs, request.choice.languages or languages
    check_inputs(inputs, cell.task, f"{request.where}: inputs")
    check_languages(request, cell.encoder, [language_read(inputs, one, cell.source) for one in languages])
    corpus = request.choice.corpus or cell.corpus
    with located(request.where):
        request.sources.needs(corpus, cell.task)
        request.diagnostic.check(find_task(cell.task))
    return on_examples(request, subjects, corpus, _labelled(request, languages, cell), cell)


def _labelled(request: MeasureRequest, languages: tuple[str, ...], cell: Cell) -> tuple[str, ...]:
    """Return the languages with labels, where a diagnostic needs some; the others are noted for the plan.

    ConfigError where no target language is left of those that the table names.
    """
    if not request.diagnostic.needs_labels:
        return languages
    corpus, split = request.choice.corpus or cell.corpus, request.split
    lacking = [code for code in languages if request.sources.lacks_labels(corpus, code, split)]
    if lacking and (request.choice.languages or len(lacking) == len(languages)):
        raise ConfigError(
            f"{request.where}: languages: {corpus} has no labels in {', '.join(lacking)}, and "
            f"{request.diagnostic.name} needs them. Leave out {lacking[0]}, or measure label-free."
        )
    request.sources.unlabelled.update({(corpus, split, code): None for code in lacking})
    return tuple(code for code in languages if code not in lacking)


def on_examples(
    request: MeasureRequest,
    subjects: tuple[Run, ...],
    corpus: str,
    languages: tuple[str, ...],
    cell: Cell | None,
) -> Measure:
    """Build a measurement on labelled examples, translated where the request says so."""
    inputs, source = request.choice.inputs, cell.source if cell else ()
    treebanks = treebanks_read(request, corpus, languages, cell)
    codes = [code for language in languages for code in codes_read(inputs, language, source)]
    into = [code for code in codes if is_translation(code)]
    links = any(one.method.reads((), ()).links for one in subjects if isinstance(one, FineTune))
    made = _translations(request, corpus, into, cell, treebanks, links=links)
    from_files = [code for code in codes if code not in {one.languages for one in made}]
    with located(request.where):
        found = measurement(request, subjects, languages, corpus, from_files, treebanks)
    own = tuple(pair for pair in treebanks if pair[0] in languages)
    return replace(found, inputs=inputs or None, translated=made or None, treebanks=own)


def measurement(
    request: MeasureRequest,
    subjects: tuple[Run, ...],
    languages: tuple[str, ...],
    corpus: str,
    codes: Iterable[str],
    treebanks: Treebanks = (),
) -> Measure:
    """Build a measurement of a corpus, with the fingerprint of what is read from its files."""
    fingerprint, limit = request.sources.fingerprint, request.choice.examples
    files = [fingerprint(corpus, one, request.split, treebanks=treebanks, examples=limit) for one in codes]
    return Measure(
        diagnostic=request.diagnostic,
        subjects=subjects,
        languages=languages,
        corpus=corpus,
        split=request.split,
        examples=limit,
        data=combined_fingerprint(files),
    )


def treebanks_read(
    request: MeasureRequest, corpus: str, languages: tuple[str, ...], cell: Cell | None
) -> Treebanks:
    """Return the treebanks a table names (one name is that of all its languages), or else the grid's."""
    named = request.choice.treebanks
    own = dict.fromkeys(languages, named) if isinstance(named, str) else named
    of_cell = cell.treebanks if cell is not None and corpus == cell.corpus else ()
    return tuple(sorted(own.items())) or of_cell


def _translations(
    request: MeasureRequest,
    corpus: str,
    codes: list[str],
    cell: Cell | None,
    treebanks: Treebanks,
    *,
    links: bool,
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
        links=links and paired,
        encoder=cell.encoder,
        where=request.where,
    )
    return tuple(request.translator.run(replace(asked, languages=code), request.sources) for code in codes)


def check_languages(request: MeasureRequest, encoder: Encoder, languages: Iterable[str]) -> None:
    """Refuse languages that an encoder cannot read; of a pair such as fr-en the text is in the last."""
    codes = map(language_of_text, languages)
    check_read(encoder, codes, request.sources.encoders, f"{request.where}: encoder {encoder.label!r}")
