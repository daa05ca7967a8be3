"""From a [[measure]] table to what it asks for, and to the measurements of models."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import cast

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import check_language, language_of_text
from isogloss.core.runs import Encoder, FineTune, Measure, Run, Translate
from isogloss.data.corpora import SPLITS, Split, is_translation
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.experiments.encoders import check_read, encoder_label
from isogloss.experiments.grid import Cell
from isogloss.experiments.recipe import (
    MeasureTable,
    Table,
    checked,
    located,
    refuse_unknown,
)
from isogloss.experiments.translations import TranslatedBy, Wanted, check_labels
from isogloss.methods import Mixing
from isogloss.training.inputs import PAIRED, check_inputs, codes_read, language_read

_OF_MODELS = (
    *("split", "examples", "tasks", "targets", "seeds", "methods", "encoders"),
    *("corpus", "languages", "treebanks", "inputs"),
)
_OF_STATES = ("split", "examples", "corpus", "languages", "tasks", "targets", "seeds", "methods", "encoders")
CHOICE = {
    "model": _OF_MODELS,
    "scores": _OF_MODELS,
    "seeds": _OF_MODELS,
    "cell": ("split", "examples", "tasks", "targets", "seeds", "encoders"),
    "encoder": ("split", "examples", "corpus", "languages", "encoders"),
    "states": _OF_STATES,
    "parallel": (*_OF_STATES, "treebanks", "inputs"),
    "words": _OF_STATES,
    "text": ("split", "examples", "corpus", "languages", "encoders"),
}
"""Fields of a [[measure]] table that choose what is looked at; the others are the diagnostic's."""


@dataclass(frozen=True)
class Chosen:
    """What one [[measure]] table asks for."""

    diagnostic: Diagnostic
    choice: MeasureTable
    align: Table
    where: str
    by: tuple[TranslatedBy, ...] = ()
    """Who translates the inputs, if they are to come in translation and are not read from files."""

    @property
    def split(self) -> Split:
        """The split it reads (``choose`` checked that it is one)."""
        return cast(Split, self.choice.split)

    def one_by_one(self) -> "Iterator[Chosen]":
        """Give what is asked for once for each translator."""
        yield from (replace(self, by=(one,)) for one in self.by)
        if not self.by:
            yield self

    def takes(self, cell: Cell) -> bool:
        """Tell whether a cell is among the tasks, targets and seeds asked for (all when none are named)."""
        choice = self.choice
        return (
            (not choice.tasks or cell.task in choice.tasks)
            and (not choice.targets or cell.target in choice.targets)
            and (not choice.seeds or cell.seed in choice.seeds)
        )


def choose(table: Table, align: Table, where: str) -> Chosen:
    """Read a table; ConfigError for names there are none of, and fields the diagnostic does not take."""
    name = str(table.get("name"))
    if name not in DIAGNOSTICS:
        raise unknown_name(where, "diagnostic", name, DIAGNOSTICS)
    kind = DIAGNOSTICS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    choosing = {"name", *CHOICE[kind.subject]}
    refuse_unknown(table, own | choosing, f"diagnostic {name}", where)
    choice: MeasureTable = checked(MeasureTable, {key: table[key] for key in table if key in choosing}, where)
    if choice.split not in SPLITS:
        raise unknown_name(f"{where}: split", "split", choice.split, SPLITS)
    for code in choice.languages:
        check_language(code, f"{where}: languages")
    diagnostic = checked(kind, {key: table[key] for key in table if key in own}, where)
    return Chosen(diagnostic, choice, align, where)


def models_chosen(chosen: Chosen, grid: list[Cell]) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
    """Give each model once with the languages it is looked at in: its cell's source and all its targets."""
    found: dict[FineTune, tuple[set[str], Cell]] = {}
    for cell in grid:
        for label, model in cell.models.items():
            if chosen.takes(cell) and (not chosen.choice.methods or label in chosen.choice.methods):
                targets, _ = found.setdefault(model, (set(), cell))
                targets.update(cell.targets)
    for model, (targets, cell) in found.items():
        if chosen.choice.inputs == PAIRED and not isinstance(model.method, Mixing):
            continue
        if not _by_the_same(chosen, model):
            continue
        # Sorted, so that a recipe with its lists in another order asks for the same runs.
        yield model, (*cell.source, *sorted(targets - {*cell.source})), cell


def _by_the_same(chosen: Chosen, model: FineTune) -> bool:
    """Tell whether who translates the inputs also translated what a model was trained on, if anyone did."""
    own = {one.translator for one in model.translated or ()}
    return not own or not chosen.by or own == {one.translator for one in chosen.by}


def refuse_unread(chosen: Chosen, encoder: Encoder, languages: Iterable[str], sources: Sources) -> None:
    """Refuse languages that an encoder cannot read; of a pair such as fr-en the text is in the last."""
    codes = [language_of_text(language) for language in languages]
    check_read(encoder, codes, sources.encoders, f"{chosen.where}: encoder {encoder_label(encoder)!r}")


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
        data=combined_fingerprint(files),
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
