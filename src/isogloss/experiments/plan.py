"""The plan: all runs of a recipe, what is needed first, before the first one starts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.run_graph import in_order
from isogloss.core.runs import Encoder, Pretrained, Run
from isogloss.data.sources import Sources
from isogloss.experiments.grid import Cell, cells
from isogloss.experiments.measured_encoders import over_encoders, over_parallel, over_states, over_text
from isogloss.experiments.measured_models import (
    Chosen,
    choose,
    over_cells,
    over_models,
    over_scores,
    over_seeds,
)
from isogloss.experiments.recipe import (
    Recipe,
)
from isogloss.experiments.translations import scored_translations, translators
from isogloss.training.evaluation import PAIRED, TRANSLATED


def plan(recipe: Recipe, built: Mapping[Encoder, str], sources: Sources, where: str) -> list[Run]:
    """Return every run of a recipe in an order in which each finds what it needs.

    ``built`` are its encoders with their labels.
    """
    by = translators(recipe, sources, where)
    grid = cells(recipe, built, sources, where, by=by)
    runs: list[Run] = [encoder for encoder in built if not isinstance(encoder, Pretrained)]
    runs += scored_translations(recipe, by, sources, where)
    runs += [model for cell in grid for model in cell.models.values()]
    for place, table in enumerate(recipe.measure):
        chosen = choose(table, recipe.align, f"{where}: measure[{place}]")
        if chosen.choice.inputs in (TRANSLATED, PAIRED):
            chosen = replace(chosen, by=by)
        runs += _measures(chosen, *_of_encoders(chosen, built, grid), sources)
    if not runs:
        raise ConfigError(
            f"{where}: this recipe asks for nothing: its encoder is there already, and it has neither [grid] "
            f"nor [[measure]]. Add one of them."
        )
    return in_order(tuple(runs))


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
    over = chosen.diagnostic.subject
    if over in ("model", "cell", "scores", "seeds") and not grid:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} looks at models, and there is no [grid]. Add one."
        )
    found = [run for one in chosen.one_by_one() for run in _MEASURES[over](one, built, grid, sources)]
    if not found:
        raise ConfigError(
            f"{chosen.where}: {chosen.diagnostic.name} finds nothing in the grid to look at. "
            f"Change its targets, seeds or methods, or those of the grid."
        )
    return found


_MEASURES: dict[str, Callable[[Chosen, list[Encoder], list[Cell], Sources], Iterable[Run]]] = {
    "model": over_models,
    "scores": over_scores,
    "seeds": over_seeds,
    "cell": over_cells,
    "encoder": over_encoders,
    "states": over_states,
    "parallel": over_parallel,
    "words": over_states,
    "text": over_text,
}
