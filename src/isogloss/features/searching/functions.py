"""The search for a setting, as a function."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from isogloss.api import refuse_several_processes
from isogloss.core.arguments import checks_arguments, do_nothing
from isogloss.core.errors import explaining_missing_models
from isogloss.core.processes import collector_paused
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.engine.engines import ExecutionOptions, parse_execution
from isogloss.engine.fork_server import start_early
from isogloss.recipes.recipe_text import Source, folder_for
from isogloss.store import store_at
from isogloss.study import write_report_of

if TYPE_CHECKING:
    from isogloss.features.searching.search import Search, Trial
    from isogloss.planning.plan import Announce


@explaining_missing_models()
@checks_arguments
def search(
    recipe: Source,
    *,
    over: Mapping[str, str | Sequence[object]],
    trials: Positive = 20,
    by: str = "",
    target_dev: bool = False,
    seed: Whole = 0,
    to: str | Path | None = None,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    on_progress: OnProgress = no_progress,
    announce: "Announce" = do_nothing,
    on_trial: "Callable[[Trial], None]" = do_nothing,
    command: str = "isogloss search (in Python)",
    **execution: Unpack[ExecutionOptions],
) -> "Search":
    """Search for the setting of a recipe whose models score highest on the source's dev set.

    ``over`` maps dotted keys of the recipe to a range ("1e-5..1e-3:log") or a list of values; ``by`` is a
    measure (default: the task's metric). A trial's score is the mean over the recipe's seeds. With
    ``target_dev`` the targets' dev sets choose, which is no zero-shot transfer. Trials are ordinary runs in
    the folder, so the same call, or one with more ``trials``, goes on where it was. The best one's recipe is
    written ``to`` a file that extends the recipe. The other arguments are as for ``run``.

    ConfigError for a key of ``over`` that the recipe lacks, or a range without values.

    Device: chosen by ``devices``, as of ``run``. Cost: ``trials`` times the runs of the recipe, without
    those that have a record.

    >>> over = {"grid.optimization.learning_rate": "1e-5..1e-3:log"}
    >>> isogloss.search("mine.toml", over=over, trials=8).best                # doctest: +SKIP
    """
    options = parse_execution(**execution)
    start_early(options.processes)
    with collector_paused():
        from isogloss.engine.engine import make_planned
        from isogloss.features.searching.search import SearchRequest
        from isogloss.features.searching.search import search as search_plans

    refuse_several_processes()
    request = SearchRequest(
        recipe=recipe,
        over=over,
        trials=trials,
        by=by,
        target_dev=target_dev,
        seed=seed,
        out=out or folder_for(recipe),
        data=data,
        changes=changes or {},
        scale=scale,
    )
    make = partial(make_planned, execution=options, announce=announce, on_progress=on_progress)
    result = search_plans(request, make, to=Path(to) if to else None, command=command, on_trial=on_trial)
    write_report_of(store_at(out or folder_for(recipe)), on_progress)
    return result
