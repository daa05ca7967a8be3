"""From a [[measure]] table to the measurements of models: each alone, its scores, all seeds, or several."""

from collections.abc import Iterator
from dataclasses import replace

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.runs import Encoder, FineTune, Measure, Run, Translate
from isogloss.data.layouts import is_translation
from isogloss.data.sources import Sources, Treebanks, joined
from isogloss.diagnostics import DIAGNOSTICS
from isogloss.experiments.chosen import Chosen, models_chosen, refuse_unread
from isogloss.experiments.grid import Cell
from isogloss.experiments.recipe import (
    located,
)
from isogloss.experiments.translations import Wanted, check_labels
from isogloss.training.inputs import PAIRED, check_inputs, codes_read, language_read


def over_models(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each model, in its source and all targets it was not kept from."""
    for model, languages, cell in models_chosen(chosen, grid):
        yield _measure(chosen, (model,), languages, cell, sources)


def over_scores(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each source-trained model's scores in all languages."""
    scores = _scores(chosen)
    for model, languages, cell in models_chosen(chosen, grid):
        if model.source and not model.target:
            looked_at = _measure(scores, (model,), languages, cell, sources)
            yield _of_scores(looked_at, chosen, (looked_at,))


def over_seeds(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of the scores of all seeds of a model."""
    scores = _scores(chosen)
    groups: dict[object, list[Measure]] = {}
    for model, languages, cell in models_chosen(chosen, grid):
        key = (
            model.encoder,
            model.corpus,
            model.method,
            _without_seeds(model.start),
            model.source,
            model.target,
            model.optimization,
            model.translated,
            languages,
        )
        groups.setdefault(key, []).append(_measure(scores, (model,), languages, cell, sources))
    for group in groups.values():
        subjects = sorted(group, key=lambda one: [part.seed for part in one.subjects])  # type: ignore[union-attr]
        if len(subjects) < 2:
            raise ConfigError(
                f"{chosen.where}: {chosen.diagnostic.name} compares seeds, and there is only one. "
                f"Give grid.seeds two or more (three for a paper)."
            )
        yield _of_scores(subjects[0], chosen, tuple(subjects))


def _of_scores(scores: Measure, chosen: Chosen, subjects: tuple[Measure, ...]) -> Measure:
    """Give what looks at measurements of scores, and at no file."""
    diagnostic = chosen.diagnostic
    return replace(scores, diagnostic=diagnostic, subjects=subjects, translated=None, examples=0, data="")


def over_cells(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of the models named by ``between`` in each cell that has them."""
    wanted: tuple[str, ...] = getattr(chosen.diagnostic, "between")  # noqa: B009 (only these diagnostics have it)
    labels = {label for cell in grid for label in cell.models}
    for label in wanted:
        if label not in labels:
            raise unknown_name(f"{chosen.where}: between", "method of this recipe", label, labels)
    for cell in grid:
        if chosen.takes(cell) and all(label in cell.models for label in wanted):
            subjects = tuple(cell.models[label] for label in wanted)
            yield _measure(chosen, subjects, (*cell.source, *cell.targets), cell, sources)


def _measure(
    chosen: Chosen, subjects: tuple[Run, ...], languages: tuple[str, ...], cell: Cell, sources: Sources
) -> Measure:
    choice, corpus = chosen.choice, chosen.choice.corpus or cell.corpus
    languages = choice.languages or languages
    treebanks = named_treebanks(chosen, languages) or (cell.treebanks if corpus == cell.corpus else ())
    codes = [code for language in languages for code in codes_read(choice.inputs, language, cell.source)]
    check_inputs(choice.inputs, cell.task, f"{chosen.where}: inputs")
    spoken = [language_read(choice.inputs, one, cell.source) for one in languages]
    refuse_unread(chosen, cell.encoder, spoken, sources)
    with located(chosen.where):
        sources.needs(corpus, cell.task)
    made = translations_made(
        chosen, corpus, [code for code in codes if is_translation(code)], cell, treebanks, sources
    )
    with located(chosen.where):
        read = [code for code in codes if code not in {one.languages for one in made}]
        files = [sources.fingerprint(corpus, code, chosen.split, treebanks=treebanks) for code in read]
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=subjects,
        languages=languages,
        corpus=corpus,
        split=chosen.split,
        inputs=choice.inputs or None,
        translated=made or None,
        treebanks=tuple(pair for pair in treebanks if pair[0] in languages),
        examples=choice.examples,
        data=joined(files),
    )


def translations_made(
    chosen: Chosen,
    corpus: str,
    codes: list[str],
    cell: Cell,
    treebanks: Treebanks,
    sources: Sources,
) -> tuple[Translate, ...]:
    """Return the translations of inputs that are made; none where they are read from files."""
    if not chosen.by:
        return ()
    beside = chosen.choice.inputs == PAIRED
    if not beside:
        check_labels(cell.task, None, f"{chosen.where}: inputs")
    return tuple(
        chosen.by[0].run(
            Wanted(
                corpus=corpus,
                languages=code,
                split=chosen.split,
                examples=chosen.choice.examples,
                treebanks=treebanks,
                purpose="beside" if beside else "test",
                encoder=cell.encoder,
                where=chosen.where,
            ),
            sources,
        )
        for code in codes
    )


def named_treebanks(chosen: Chosen, languages: tuple[str, ...]) -> Treebanks:
    """Return the treebanks a table names: one name is that of all its languages."""
    named = chosen.choice.treebanks
    return tuple(sorted(dict.fromkeys(languages, named).items() if isinstance(named, str) else named.items()))


def _without_seeds(model: FineTune | None) -> FineTune | None:
    """Return what a model goes on from as one value for all seeds."""
    return model and replace(model, seed=0, start=_without_seeds(model.start))


def _scores(chosen: Chosen) -> Chosen:
    """Give the measurement whose rows a diagnostic over scores reads."""
    return replace(chosen, diagnostic=DIAGNOSTICS["scores"]())
