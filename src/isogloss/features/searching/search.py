"""Hyper-parameter search: trials of a recipe, proposed by Optuna and chosen by a dev set.

Every trial is an ordinary plan of ordinary runs in one folder, so no study is stored. The sampler is seeded
and receives the scores of trials in order. So the same command proposes the same trials and finds their
records.
"""

import os
import tomllib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from math import prod
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from isogloss.core.arguments import do_nothing
from isogloss.core.atomic_files import write_text
from isogloss.core.errors import ConfigError, StorageError, add_location, unknown_name
from isogloss.core.identity import identity
from isogloss.core.records import Row
from isogloss.features.searching.spaces import EXPECTED, Choices, Space, space_of
from isogloss.planning.plan import Planned, plan_recipe
from isogloss.recipes.checking import names, read_recipe, set_key
from isogloss.recipes.recipe import GridTable, Recipe, many
from isogloss.recipes.recipe_text import Source, as_table, packaged_recipes, recipe_text, to_toml
from isogloss.recipes.request import unique_keys
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.run import Run, order_runs
from isogloss.store.store import Outcome, Store

if TYPE_CHECKING:
    import pandas as pd

NO_ZERO_SHOT = (
    "the targets' dev sets choose, which takes labels in the target languages: what is found is no zero-shot "
    "transfer, and must not be reported as such."
)

WRITTEN = "# Found by isogloss search"
"""First line of a file that a search may overwrite."""


@dataclass(frozen=True, kw_only=True)
class SearchRequest:
    """Parameters, folder and score of a search."""

    recipe: Source
    over: Mapping[str, str | Sequence[object]]
    """Range or values by dotted key of the recipe. ``grid.`` is optional."""
    trials: int = 20
    by: str = ""
    """Measure that is maximised. Default: the task's metric."""
    target_dev: bool = False
    """Whether the targets' dev sets choose, instead of the source's. Then transfer is not zero-shot."""
    seed: int = 0
    """Seed of the proposals."""
    out: str | Path | None = None
    data: str | Path | None = None
    changes: Mapping[str, object] = field(default_factory=dict)
    scale: str = ""

    @property
    def spaces(self) -> dict[str, Space]:
        """The values of each field, in an order that does not depend on how they were given."""
        if not self.over:
            raise ConfigError(f"search: nothing to search over. Add --over, {EXPECTED}.")
        grid_names = names(GridTable) - names(Recipe)
        spaces = unique_keys(
            "--over",
            (
                (f"grid.{key}" if key.partition(".")[0] in grid_names else key, space_of(key, values))
                for key, values in self.over.items()
            ),
        )
        for key in spaces.keys() & self.changes.keys():
            raise ConfigError(f"--set {key}: --over says it, too. Leave one of them out.")
        return dict(sorted(spaces.items()))

    @property
    def chosen_by(self) -> str:
        """The score in words."""
        return f"{self.by or 'metric'} on {'target' if self.target_dev else 'source'} dev"

    def decides(self, run: Measure) -> bool:
        """Return whether the scores of a model count in the search."""
        return self.target_dev or bool(run.source_languages)

    def takes(self, row: Row, run: Measure) -> bool:
        """Return whether a row's measure and language count in the search."""
        is_source = row["language"] in run.source_languages
        return is_source != self.target_dev and (row["metric"] == self.by if self.by else bool(row["main"]))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A setting, and mean and standard deviation of its score over seeds."""

    number: int
    values: Mapping[str, object]
    score: float | None = None
    """None if runs failed."""
    std: float | None = None
    seeds: int = 0
    made: int = 0
    """Number of runs made in this call. The others had a record."""
    failed: tuple[str, ...] = ()
    """Reasons of failed runs."""

    def __repr__(self) -> str:
        """Return number, setting and score in a line."""
        score = "failed" if self.score is None else f"score {self.score:.4f}, {self.seeds} seeds"
        return f"Trial({self.number}, {dict(self.values)!r:.180}, {score})"


@dataclass(frozen=True)
class Search:
    """The trials of a search, in order, and the recipe of the best one."""

    trials: tuple[Trial, ...]
    recipe: Path | None
    """None if all trials failed."""
    chosen_by: str

    def __repr__(self) -> str:
        """Return the number of trials and the best of them."""
        return f"Search({len(self.trials)} trials, best: {self.best!r:.250})"

    @property
    def best(self) -> Trial | None:
        """The first trial with the highest score. None if all trials failed."""
        trials = [trial for trial in self.trials if trial.score is not None]
        return max(trials, key=lambda trial: trial.score or 0.0, default=None)

    def frame(self) -> "pd.DataFrame":
        """Return the trials as a DataFrame: a column for each field, score, std and failures."""
        import pandas as pd

        return pd.DataFrame(
            {
                "trial": trial.number,
                **trial.values,
                "score": trial.score,
                "std": trial.std,
                "failed": len(trial.failed),
            }
            for trial in self.trials
        )


Make = Callable[[Planned], Outcome]
"""Makes the runs of a plan that have no record yet."""


def search(
    request: SearchRequest,
    make: Make,
    *,
    to: Path | None = None,
    command: str = "isogloss search",
    on_trial: Callable[[Trial], None] = do_nothing,
) -> Search:
    """Run trials sequentially and write the best one's recipe.

    Raises ConfigError, before the first run, if an end of a range or a value gives an invalid plan.
    """
    base_plan = _check(request)
    store = base_plan.store
    file = to or _best_recipe_path(request, store.root)
    if file.is_dir():
        raise ConfigError(f"{file}: this is a folder, and the best recipe is a file. Name one by --to.")
    if file.exists() and not file.read_bytes().startswith(WRITTEN.encode()):
        raise ConfigError(f"{file}: this file was not written by a search. Name another by --to.")
    trials: list[Trial] = []
    runs: list[Run] = []
    with _one_search(store):
        proposals = _proposals(request)
        values = next(proposals)
        while values:
            trial = Trial(number=len(trials) + 1, values=values)
            try:
                plan = _plan(request, values)
            except ConfigError as error:  # Each value is possible, but not their combination.
                trials.append(replace(trial, failed=(str(error),)))
            else:
                runs += plan.runs
                replace(plan, runs=order_runs(runs)).write(command)
                trials.append(_score_trial(trial, request, plan, make(plan)))
            on_trial(trials[-1])
            values = proposals.send(trials[-1].score)
    result = Search(tuple(trials), file, request.chosen_by)
    if result.best is None:
        return replace(result, recipe=None)
    write_text(file.parent, file.name, _best_recipe(request, result, result.best, file))
    return result


@contextmanager
def _one_search(store: Store) -> Iterator[None]:
    """Keep other searches out of this folder, because each search writes its trials as the plan."""
    with store.leases.lease_run("search") as lease:
        if lease is None:
            raise StorageError(
                f"{store.root}: another search ({store.leases.holder('search')}) works in this folder. Wait "
                f"until it has ended, or choose another --out."
            )
        lease.ending = "finished"
        yield


def _check(request: SearchRequest) -> Planned:
    """Plan a trial for each value and each end of a range, and return the first plan.

    In each trial, the other fields have their first values.
    """
    spaces = request.spaces
    if not _all(spaces, request.trials) and find_spec("optuna") is None:
        raise ConfigError(
            'search: the package optuna is not installed. Install: pip install "isogloss[search]"'
        )
    values = {key: space.ends[0] for key, space in spaces.items()}
    plans = {
        key: [_plan(request, {**values, key: end}) for end in space.ends] for key, space in spaces.items()
    }
    first_plan = next(iter(plans.values()))[0]
    models = [model for _, model in _scored_models(first_plan.runs)]
    if not models:
        raise ConfigError(
            "search: no model of this recipe has a source language whose dev set could choose. Let those of "
            "the targets choose by --target-dev."
        )
    measures = {name for model in models for name in model.solves.contributions([], [])}
    if request.by and request.by not in measures:
        raise unknown_name("--by", "measure", request.by, measures)
    for key, ends in plans.items():
        if len({tuple(identity(run) for run in plan.runs) for plan in ends}) == 1:
            raise ConfigError(
                f"search: --over {key}: the models are the same whatever its value, so that none could be "
                f"chosen. Search over what they are trained with, {EXPECTED}."
            )
    return first_plan


def _plan(request: SearchRequest, values: Mapping[str, object]) -> Planned:
    """Plan only the models of a setting and their scores on the dev sets that choose."""
    text, where = recipe_text(request.recipe)
    with add_location(where):
        grid = read_recipe(text, changes=request.changes, scale=request.scale).grid
    if grid is None:
        raise ConfigError("search: this recipe trains no model that could be scored. Add [grid].")
    language_groups = grid.targets if request.target_dev else many(grid.source)
    languages = list(dict.fromkeys(language for group in language_groups for language in group.split("+")))
    scores = {"name": "scores", "split": "dev", "languages": languages, "examples": grid.dev_examples}
    plan = plan_recipe(
        request.recipe,
        out=request.out,
        data=request.data,
        changes={**request.changes, **values, "measure": [scores]},
        scale=request.scale,
    )
    deciding = [run for run, _ in _scored_models(plan.runs) if request.decides(run)]
    return replace(plan, runs=order_runs(deciding))


def _scored_models(runs: Iterable[Run]) -> list[tuple[Measure, FineTune]]:
    """List the measurements of models with their models."""
    return [(run, run.model) for run in runs if isinstance(run, Measure) and run.model]


def _score_trial(trial: Trial, request: SearchRequest, plan: Planned, outcome: Outcome) -> Trial:
    """Return a trial with the mean over seeds of the scores that count."""
    trial = replace(trial, made=len(outcome.made), failed=tuple(outcome.failed.values()))
    if trial.failed:
        return trial
    seed_scores: dict[int, list[float]] = {}
    for run, model in _scored_models(plan.runs):
        rows = [row for row in plan.store.record(run).rows if request.takes(row, run)]
        seed_scores.setdefault(model.seed, []).extend(float(row["score"] or 0.0) for row in rows)
    means = [fmean(scores) for scores in seed_scores.values()]
    std = stdev(means) if len(means) > 1 else None
    return replace(trial, score=fmean(means), std=std, seeds=len(means))


def _all(spaces: Mapping[str, Space], trials: int) -> list[dict[str, object]]:
    """List all settings. Empty if there are more than ``trials``."""
    lists = [space.values for space in spaces.values() if isinstance(space, Choices)]
    if len(lists) < len(spaces) or prod(len(values) for values in lists) > trials:
        return []
    return [dict(zip(spaces, values, strict=True)) for values in product(*lists)]


def _proposals(request: SearchRequest) -> Generator[dict[str, object], float | None, None]:
    """Yield settings. The caller sends the score of each before the next. An empty setting is the end."""
    spaces = request.spaces
    if settings := _all(spaces, request.trials):
        yield from (values for values in [*settings, {}])  # A list cannot receive scores.
        return
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=request.seed))
    drawn_from = {key: space.distribution() for key, space in spaces.items()}
    for _ in range(request.trials):
        trial = study.ask(drawn_from)
        score = yield {key: space.value(trial.params[key]) for key, space in spaces.items()}
        state = optuna.trial.TrialState.FAIL if score is None else None
        study.tell(trial, score, state=state)
    yield {}


def _best_recipe_path(request: SearchRequest, folder: Path) -> Path:
    """Return the path of the best recipe: next to the file it extends, or among the runs."""
    file = Path(request.recipe) if isinstance(request.recipe, str | Path) else Path()
    return file.with_name(f"{file.stem}-best.toml") if file.is_file() else folder / "best.toml"


def _best_recipe(request: SearchRequest, result: Search, trial: Trial, path: Path) -> str:
    """Return the recipe of a trial, which extends the searched recipe by the trial's values.

    The values are also set in the scale of the search, so that the scale does not override them.
    """
    text, where = recipe_text(request.recipe)
    body = tomllib.loads(text)
    recipe = deepcopy(body)
    values = as_table({**request.changes, **trial.values})
    with add_location(where):
        for key, value in values.items():
            set_key(recipe, key.split("."), value)
            if request.scale:
                _set_in_scale(recipe["scale"][request.scale], key, value)
    name = request.recipe
    if isinstance(name, str | Path):
        if str(name) not in packaged_recipes():
            name = Path(os.path.relpath(Path(name).resolve(), path.parent.resolve())).as_posix()
        recipe = {"extends": str(name), **_difference(body, recipe)}
    remark = f"trial {trial.number} of {len(result.trials)}, {result.chosen_by} {trial.score:.4f}"
    scale = f" at --scale {request.scale}" if request.scale else ""
    warning = f"# {NO_ZERO_SHOT}\n" if request.target_dev else ""
    return f"{WRITTEN}: {remark}{scale}, mean over {trial.seeds} seeds.\n{warning}{to_toml(recipe)}"


def _set_in_scale(scale: dict[str, Any], key: str, value: object) -> None:
    """Set a dotted key where a scale sets it or a table that contains it. The later of two places counts."""
    around = max((name for name in scale if key.startswith(f"{name}.")), key=len, default="")
    inner_key = key.removeprefix(f"{around}.")
    if key in scale or not around:
        scale[key] = value
    elif isinstance(scale[around], dict):
        _set_in_scale(scale[around], inner_key, value)
    else:
        set_key(scale, [around, *inner_key.split(".")], value)


def _difference(base: Mapping[str, object], table: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of a table that a base table lacks or has with a different value.

    Lists are compared as a whole.
    """
    difference: dict[str, object] = {}
    for key, value in table.items():
        original = base.get(key)
        if isinstance(value, Mapping) and isinstance(original, Mapping):
            if inside := _difference(original, value):
                difference[key] = inside
        elif key not in base or original != value:
            difference[key] = value
    return difference
