"""The plan: all runs of a recipe, what is needed first, before the first one starts."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, cast

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import check_language, language_of_text
from isogloss.core.runs import Encoder, FineTune, Measure, Pretrain, Pretrained, Run, in_order, original
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.sources import Sources, Treebanks, joined
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.experiments.alignments import Asked, alignments
from isogloss.experiments.encoders import encoder_label
from isogloss.experiments.grid import Cell, cells
from isogloss.experiments.inputs import PAIRED, check_inputs, codes_read, language_read
from isogloss.experiments.languages_read import check_read, reads
from isogloss.experiments.recipe import (
    MeasureTable,
    Recipe,
    Table,
    checked,
    located,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.methods import Mixing

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
    "words": _OF_STATES,
}
"""Fields of a [[measure]] table that choose what is looked at; the others are the diagnostic's."""


@dataclass(frozen=True)
class Chosen:
    """What one [[measure]] table asks for."""

    diagnostic: Diagnostic
    choice: MeasureTable
    align: Table
    where: str

    @property
    def split(self) -> Split:
        """The split it reads (``_chosen`` checked that it is one)."""
        return cast(Split, self.choice.split)

    def takes(self, cell: Cell) -> bool:
        """Tell whether a cell is among the tasks, targets and seeds asked for (all when none are named)."""
        choice = self.choice
        return (
            (not choice.tasks or cell.task in choice.tasks)
            and (not choice.targets or cell.target in choice.targets)
            and (not choice.seeds or cell.seed in choice.seeds)
        )


def plan(recipe: Recipe, built: Mapping[Encoder, str], sources: Sources, where: str) -> list[Run]:
    """Return every run of a recipe in an order in which each finds what it needs.

    ``built`` are its encoders with their labels.
    """
    grid = cells(recipe, built, sources, where)
    runs: list[Run] = [encoder for encoder in built if not isinstance(encoder, Pretrained)]
    runs += [model for cell in grid for model in cell.models.values()]
    for place, table in enumerate(recipe.measure):
        chosen = _chosen(table, recipe.align, f"{where}: measure[{place}]")
        runs += _measures(chosen, *_of_encoders(chosen, built, grid), sources)
    if not runs:
        raise ConfigError(
            f"{where}: this recipe asks for nothing: its encoder is there already, and it has neither [grid] "
            f"nor [[measure]]. Add one of them."
        )
    return in_order(tuple(runs))


def _chosen(table: Table, align: Table, where: str) -> Chosen:
    name = str(table.get("name"))
    if name not in DIAGNOSTICS:
        raise unknown_name(where, "diagnostic", name, DIAGNOSTICS)
    kind = DIAGNOSTICS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    choosing = {"name", *CHOICE[kind.over]}
    refuse_unknown(table, own | choosing, f"diagnostic {name}", where)
    choice: MeasureTable = checked(MeasureTable, {key: table[key] for key in table if key in choosing}, where)
    if choice.split not in SPLITS:
        raise unknown_name(f"{where}: split", "split", choice.split, SPLITS)
    for code in choice.languages:
        check_language(code, f"{where}: languages")
    diagnostic = checked(kind, {key: table[key] for key in table if key in own}, where)
    return Chosen(diagnostic, choice, align, where)


def _of_encoders(
    chosen: Chosen, built: Mapping[Encoder, str], grid: list[Cell]
) -> tuple[list[Encoder], list[Cell]]:
    """Return the encoders asked for (all when none are named), and the cells of these."""
    names = chosen.choice.encoders
    for label in names:
        if label not in built.values():
            raise unknown_name(
                f"{chosen.where}: encoders", "encoder of this recipe", label, {*built.values()}
            )
    found = [encoder for encoder, label in built.items() if not names or label in names]
    return found, [cell for cell in grid if cell.encoder in found]


def _measures(chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources) -> list[Run]:
    """List what one table asks for: names that are not in the grid are refused, and so is nothing at all."""
    known: dict[str, set[Any]] = {
        "tasks": {cell.task for cell in grid},
        "targets": {cell.target for cell in grid},
        "seeds": {cell.seed for cell in grid},
        "methods": {label for cell in grid for label in cell.models},
    }
    for name, there in known.items():
        for value in getattr(chosen.choice, name):
            if value not in there:
                names = [str(one) for one in there]
                raise unknown_name(f"{chosen.where}: {name}", f"{name[:-1]} of the grid", str(value), names)
    over = chosen.diagnostic.over
    if over in ("model", "cell", "scores", "seeds") and not grid:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} looks at models, and there is no [grid]. Add one."
        )
    found = list(_MEASURES[over](chosen, built, grid, sources))
    if not found:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} finds nothing in the grid to look at. "
            f"Change its targets, seeds or methods, or those of the grid."
        )
    return found


def _over_models(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each model, in its source and all targets it was not kept from."""
    for model, languages, cell in _models(chosen, grid):
        yield _measure(chosen, (model,), languages, cell, sources)


def _over_scores(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each source-trained model's scores in all languages."""
    scores = _scores(chosen)
    for model, languages, cell in _models(chosen, grid):
        if model.source and not model.target:
            looked_at = _measure(scores, (model,), languages, cell, sources)
            yield replace(looked_at, diagnostic=chosen.diagnostic, subjects=(looked_at,), examples=0, data="")


def _over_seeds(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of the scores of all seeds of a model."""
    scores = _scores(chosen)
    groups: dict[object, list[Measure]] = {}
    for model, languages, cell in _models(chosen, grid):
        key = (
            model.encoder,
            model.corpus,
            model.method,
            _without_seeds(model.start),
            model.source,
            model.target,
            model.optimization,
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
        yield replace(
            subjects[0], diagnostic=chosen.diagnostic, subjects=tuple(subjects), examples=0, data=""
        )


def _over_cells(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
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


def _over_encoders(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder on bitext."""
    for encoder in built:
        yield _on_bitext(chosen, encoder, _languages(chosen, encoder, grid, sources), sources)


def _over_states(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder, and of that within each model chosen, on bitext."""
    yield from _over_encoders(chosen, built, grid, sources)
    for model, languages, _ in _models(chosen, grid):
        yield _on_bitext(chosen, model, chosen.choice.languages or languages, sources)


def _on_bitext(
    chosen: Chosen, subject: Encoder | FineTune, languages: tuple[str, ...], sources: Sources
) -> Measure:
    """One measurement on translations of the first language; their words are aligned where it asks for it."""
    corpus = chosen.choice.corpus
    if not corpus:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} needs bitext: name it in the field corpus."
        )
    first, *others = languages
    pairs = [f"{first}-{other}" for other in others]
    with located(f"{chosen.where}: corpus"):
        sources.needs(corpus, "bitext")
        files = [sources.fingerprint(corpus, pair, chosen.split) for pair in pairs]
    aligned = None
    encoder = subject.encoder if isinstance(subject, FineTune) else subject
    _check_read(chosen, encoder, languages, sources)
    if chosen.diagnostic.over == "words":
        asked = Asked(chosen.align, chosen.where, chosen.split)
        aligned = alignments(asked, sources, encoder, corpus, pairs)
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=(subject,),
        languages=(first, *others),
        corpus=corpus,
        split=chosen.split,
        aligned=aligned,
        examples=chosen.choice.examples,
        data=joined(files),
    )


def _languages(chosen: Chosen, encoder: Encoder, grid: list[Cell], sources: Sources) -> tuple[str, ...]:
    """Return the languages an encoder is looked at in: those named, its own, or the grid's it reads."""
    first = original(encoder)
    own = first.languages if isinstance(first, Pretrain) else ()
    of_grid = tuple(dict.fromkeys(code for cell in grid for code in (*cell.source, *cell.targets)))
    readable = tuple(code for code in of_grid if reads(encoder, code, sources.encoders))
    languages = tuple(chosen.choice.languages) or own or readable
    if len(languages) < 2:
        raise ConfigError(
            f"{chosen.where}: languages: {chosen.diagnostic.name} compares languages, and the recipe names "
            f"{len(languages)}. Name two or more."
        )
    refuse_empty_or_twice(languages, f"{chosen.where}: languages")
    return languages


_MEASURES: dict[str, Callable[[Chosen, list[Encoder], list[Cell], Sources], Iterable[Run]]] = {
    "model": _over_models,
    "scores": _over_scores,
    "seeds": _over_seeds,
    "cell": _over_cells,
    "encoder": _over_encoders,
    "states": _over_states,
    "words": _over_states,
}


def _models(chosen: Chosen, grid: list[Cell]) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
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
        # Sorted, so that a recipe with its lists in another order asks for the same runs.
        yield model, (*cell.source, *sorted(targets - {*cell.source})), cell


def _measure(
    chosen: Chosen, subjects: tuple[Run, ...], languages: tuple[str, ...], cell: Cell, sources: Sources
) -> Measure:
    choice, corpus = chosen.choice, chosen.choice.corpus or cell.corpus
    languages = choice.languages or languages
    treebanks = _treebanks(chosen, languages) or cell.treebanks
    codes = [code for language in languages for code in codes_read(choice.inputs, language, cell.source)]
    check_inputs(choice.inputs, cell.task, f"{chosen.where}: inputs")
    read = [language_read(choice.inputs, one, cell.source) for one in languages]
    _check_read(chosen, cell.encoder, read, sources)
    with located(chosen.where):
        sources.needs(corpus, cell.task)
        files = [sources.fingerprint(corpus, code, chosen.split, treebanks=treebanks) for code in codes]
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=subjects,
        languages=languages,
        corpus=corpus,
        split=chosen.split,
        inputs=choice.inputs or None,
        treebanks=tuple(pair for pair in treebanks if pair[0] in languages),
        examples=choice.examples,
        data=joined(files),
    )


def _check_read(chosen: Chosen, encoder: Encoder, languages: Iterable[str], sources: Sources) -> None:
    """Refuse languages that an encoder cannot read; of a pair such as fr-en the text is in the last."""
    codes = [language_of_text(language) for language in languages]
    check_read(encoder, codes, sources.encoders, f"{chosen.where}: encoder {encoder_label(encoder)!r}")


def _treebanks(chosen: Chosen, languages: tuple[str, ...]) -> Treebanks:
    """Return the treebanks a table names: one name is that of all its languages."""
    named = chosen.choice.treebanks
    return tuple(sorted(dict.fromkeys(languages, named).items() if isinstance(named, str) else named.items()))


def _without_seeds(model: FineTune | None) -> FineTune | None:
    """Return what a model goes on from as one value for all seeds."""
    return model and replace(model, seed=0, start=_without_seeds(model.start))


def _scores(chosen: Chosen) -> Chosen:
    """Give the measurement whose rows a diagnostic over scores reads."""
    return replace(chosen, diagnostic=DIAGNOSTICS["scores"]())
