"""The plan: all runs of a recipe, what is needed first, before the first one starts."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.runs import Encoder, FineTune, Measure, Run, in_order
from isogloss.data.corpora import SPLITS
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.experiments.grid import Cell, cells, encoders
from isogloss.experiments.recipe import Recipe, Table, checked
from isogloss.experiments.sources import Sources, joined

CHOICE = ("name", "split", "examples", "corpus", "targets", "seeds", "methods")
"""Fields of a [[measure]] table that choose what is looked at; the others are the diagnostic's."""


@dataclass(frozen=True)
class Chosen:
    """What one [[measure]] table asks for."""

    diagnostic: Diagnostic
    split: str
    examples: int
    corpus: str
    targets: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[str, ...]
    where: str

    def takes(self, cell: Cell) -> bool:
        """Tell whether a cell is among the targets and seeds asked for (all when none are named)."""
        return (not self.targets or cell.target in self.targets) and (
            not self.seeds or cell.seed in self.seeds
        )


def plan(recipe: Recipe, sources: Sources, where: str) -> list[Run]:
    """Return every run of a recipe in an order in which each finds what it needs."""
    built = encoders(recipe, sources, where)
    grid = cells(recipe, built, sources, where)
    runs: list[Run] = [encoder for encoder in built if encoder.name == "pretrain"]
    runs += [model for cell in grid for model in cell.models.values()]
    for place, table in enumerate(recipe.measure):
        chosen = _chosen(table, f"{where}: measure[{place}]")
        runs += _MEASURES[chosen.diagnostic.over](chosen, built, grid, sources)
    return in_order(tuple(runs))


def _chosen(table: Table, where: str) -> Chosen:
    name = str(table.get("name"))
    if name not in DIAGNOSTICS:
        raise unknown_name(where, "diagnostic", name, DIAGNOSTICS)
    diagnostic = checked(DIAGNOSTICS[name], {k: v for k, v in table.items() if k not in CHOICE}, where)
    split = str(table.get("split", "dev"))
    if split not in SPLITS:
        raise unknown_name(f"{where}: split", "split", split, SPLITS)
    return Chosen(
        diagnostic=diagnostic,
        split=split,
        examples=int(table.get("examples", 0)),
        corpus=str(table.get("corpus", "")),
        targets=tuple(table.get("targets", ())),
        seeds=tuple(table.get("seeds", ())),
        methods=tuple(table.get("methods", ())),
        where=where,
    )


def _over_models(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each model, in its source and all targets it was not kept from."""
    for model, languages, cell in _models(chosen, grid):
        yield _measure(chosen, (model,), languages, cell, sources)


def _over_scores(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of each source-trained model's scores in all languages."""
    scores = _scores(chosen)
    for model, languages, cell in _models(chosen, grid):
        if model.source and not model.target:
            yield Measure(
                diagnostic=chosen.diagnostic,
                subjects=(_measure(scores, (model,), languages, cell, sources),),
                languages=languages,
                corpus=cell.corpus,
                split=chosen.split,
            )


def _over_seeds(chosen: Chosen, _: list[Encoder], grid: list[Cell], sources: Sources) -> Iterator[Measure]:
    """One measurement of the scores of all seeds of a model."""
    scores = _scores(chosen)
    groups: dict[object, list[Measure]] = {}
    for model, languages, cell in _models(chosen, grid):
        key = (
            model.encoder,
            model.corpus,
            model.method,
            model.source,
            model.target,
            model.optimization,
            languages,
        )
        groups.setdefault(key, []).append(_measure(scores, (model,), languages, cell, sources))
    for subjects in groups.values():
        if len(subjects) < 2:
            raise ConfigError(
                f"{chosen.where}: {chosen.diagnostic.name} compares seeds, and there is only one. "
                f"Give grid.seeds two or more (three for a paper)."
            )
        yield Measure(
            diagnostic=chosen.diagnostic,
            subjects=tuple(subjects),
            languages=subjects[0].languages,
            corpus=subjects[0].corpus,
            split=chosen.split,
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
            yield _measure(chosen, subjects, (*cell.source, cell.target), cell, sources)


def _over_encoders(
    chosen: Chosen, built: list[Encoder], grid: list[Cell], sources: Sources
) -> Iterator[Measure]:
    """One measurement of each encoder on a bitext."""
    if not chosen.corpus:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} needs bitext: name it in the field corpus."
        )
    for encoder in built:
        languages = getattr(encoder, "languages", ()) or _grid_languages(grid)
        pairs = [f"{languages[0]}-{other}" for other in languages[1:]]
        files = [sources.fingerprint(chosen.corpus, pair, _split(chosen)) for pair in pairs]
        yield Measure(
            diagnostic=chosen.diagnostic,
            subjects=(encoder,),
            languages=tuple(languages),
            corpus=chosen.corpus,
            split=chosen.split,
            examples=chosen.examples,
            data=joined(files),
        )


_MEASURES: dict[str, Callable[[Chosen, list[Encoder], list[Cell], Sources], Iterable[Run]]] = {
    "model": _over_models,
    "scores": _over_scores,
    "seeds": _over_seeds,
    "cell": _over_cells,
    "encoder": _over_encoders,
}


def _models(chosen: Chosen, grid: list[Cell]) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
    """Give each model once with the languages it is looked at in: its cell's source and all its targets."""
    found: dict[FineTune, tuple[list[str], Cell]] = {}
    for cell in grid:
        for label, model in cell.models.items():
            if chosen.takes(cell) and (not chosen.methods or label in chosen.methods):
                languages, _ = found.setdefault(model, ([*cell.source], cell))
                languages.append(cell.target)
    for model, (languages, cell) in found.items():
        yield model, tuple(dict.fromkeys(languages)), cell


def _measure(
    chosen: Chosen, subjects: tuple[Run, ...], languages: tuple[str, ...], cell: Cell, sources: Sources
) -> Measure:
    split = _split(chosen)
    files = [
        sources.fingerprint(cell.corpus, language, split, treebanks=cell.treebanks) for language in languages
    ]
    return Measure(
        diagnostic=chosen.diagnostic,
        subjects=subjects,
        languages=languages,
        corpus=cell.corpus,
        split=chosen.split,
        treebanks=tuple(pair for pair in cell.treebanks if pair[0] in languages),
        examples=chosen.examples,
        data=joined(files),
    )


def _scores(chosen: Chosen) -> Chosen:
    """Give the measurement whose rows a diagnostic over scores reads."""
    return Chosen(
        DIAGNOSTICS["scores"](),
        chosen.split,
        chosen.examples,
        "",
        chosen.targets,
        chosen.seeds,
        chosen.methods,
        "",
    )


def _split(chosen: Chosen) -> Any:
    return chosen.split


def _grid_languages(grid: list[Cell]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(code for cell in grid for code in (*cell.source, cell.target)))
