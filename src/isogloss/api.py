"""The Python interface: what the command line does, as functions.

>>> import isogloss
>>> result = isogloss.run("quickstart", out="runs/quickstart")      # doctest: +SKIP
>>> result.frame("scores")                                          # doctest: +SKIP
>>> isogloss.read("runs/quickstart").frame("cka")                   # doctest: +SKIP
>>> model = isogloss.load_model("runs/quickstart/<id>")             # doctest: +SKIP
>>> model.predict([["tuki", "mirne", "baboza", "."]])               # doctest: +SKIP
>>> model.evaluate("ud", ["qab", "qad"])                            # doctest: +SKIP
>>> model.export("my-model")                                        # doctest: +SKIP

What needs torch or pandas is imported where it is used.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

from isogloss.core.arguments import checks_arguments, do_nothing
from isogloss.core.errors import ConfigError, explaining_missing_models
from isogloss.core.processes import collector_paused, is_launched
from isogloss.core.progress import OnProgress, no_progress
from isogloss.engine.engines import ExecutionOptions, parse_execution
from isogloss.engine.fork_server import start_early
from isogloss.recipes.recipe_text import Source, folder_for, recipe_folder, recipe_text
from isogloss.recipes.request import request_digest
from isogloss.store import store_at
from isogloss.store.store import Outcome
from isogloss.study import Result, Study, read, report, report_alone

if TYPE_CHECKING:
    from isogloss.data.corpus import Corpus
    from isogloss.data.json_rows import Rows
    from isogloss.planning.plan import Announce


@explaining_missing_models()
@checks_arguments
def run(
    recipe: "Source | Sequence[Source]",
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    report: bool = True,
    on_progress: OnProgress = no_progress,
    announce: "Announce" = do_nothing,
    command: str = "",
    **execution: Unpack[ExecutionOptions],
) -> Result:
    """Run a recipe. Runs with a record are not repeated.

    A recipe is a TOML file, the name of a packaged one, or, with ``out``, a dict of the same tables or a
    ``Recipe``, whose methods and measurements may be values of their classes. The runs of several recipes
    share one folder ``out`` and one report. ConfigError says what is wrong.

    ``changes`` are dotted keys of the recipe and their values. ``out`` is a folder, or a URL as in
    s3://bucket/study. The same call in other processes, here or on other machines that see it, shares the
    work. The remaining options say how the runs are executed, as on the command line:

    - ``engine``: "processes" (the default), "serial", "ray" (its cluster: ``address``) or "slurm" (its
      parameters: ``slurm``);
    - ``jobs``: runs made side by side; 0, the default, is as many as this machine has GPUs, or cores.
      Records are the same for any number;
    - ``threads``: threads of each run (1); records depend on it in the last digits;
    - ``gpu_share``: with Ray, the share of a GPU for each run with a model; 0: use none. Default: as much as
      its memory needs;
    - ``devices``: numbers or UUIDs of the GPUs to use (default: all), or "cpu";
    - ``retry_failed``: also make runs that failed in an earlier call;
    - ``track``: trackers that follow the runs while they train: tensorboard, mlflow, wandb.

    Device: chosen by ``devices``: all GPUs, or the CPU. Cost: the runs that have no record yet.
    """
    options = parse_execution(**execution)
    recipes: list[Source] = list(recipe) if isinstance(recipe, list | tuple) else [cast("Source", recipe)]
    if len(recipes) == 1 and (
        result := find_result(recipes[0], out=out, data=data, changes=changes, scale=scale)
    ):
        return result
    start_early(options.processes)
    with collector_paused():
        from isogloss.core.identity import identity
        from isogloss.engine.engine import make_planned
        from isogloss.planning.plan import plan_recipes

    refuse_several_processes()
    plan = plan_recipes(recipes, out=out, data=data, changes=changes, scale=scale, on_progress=on_progress)
    names = [Path(recipe).name if isinstance(recipe, str | Path) else "(in Python)" for recipe in recipes]
    plan.write(command or f"isogloss run {' '.join(names)}")
    outcome = make_planned(plan, options, announce=announce, on_progress=on_progress)
    if report:
        report_alone(plan.store, on_progress)
    else:
        plan.store.download_records()
    return Result(
        plan.store.root, outcome=outcome, ids=tuple(identity(planned_run) for planned_run in plan.runs)
    )


@checks_arguments
def corpus(
    description: str | Path | Mapping[str, object],
    *,
    data: str | Path = "",
    rows: Mapping[str, Mapping[str, "Rows"]] | None = None,
) -> "Corpus":
    """Return a corpus by its name, or read a description of one and register it under its name.

    The description is a TOML file, whose files are in its folder or below ``data``; or its fields as a
    mapping, with ``rows`` by language and split: mappings, a ``datasets.Dataset`` or a DataFrame, which are
    written into the user's cache folder, for other processes to read. ConfigError or DataError, with file and
    field or line, where the description or the rows that labels are read from are wrong.

    Device: none. Cost: reads the rows that labels are read from.

    >>> isogloss.corpus("ud").about                                     # doctest: +SKIP
    >>> topics = isogloss.corpus("topics.toml")                         # doctest: +SKIP
    >>> description = {"name": "own", "kind": "text", "labels": ["weather"]}
    >>> rows = {"sw": {"test": [{"text": "Mvua ilinyesha.", "label": "weather"}]}}
    >>> own = isogloss.corpus(description, rows=rows)                   # doctest: +SKIP
    >>> model.evaluate(own.name, ["sw"])                                # doctest: +SKIP
    """
    from isogloss.data.corpora.own import KNOWN, find_describer, register_corpus

    if isinstance(description, str) and rows is None and not Path(description).suffix:
        from isogloss.data.sources import Sources

        return Sources().corpus(register_corpus(description, str(data)))
    if (rows is None) == isinstance(description, Mapping):
        raise ConfigError(
            "corpus: a description as a mapping comes with its rows, and that of a TOML file with none. Give "
            "either."
        )
    describer = find_describer()
    path = describer.write_rows(description, rows or {}) if isinstance(description, Mapping) else description
    with describer.name_rows(Path(path)) if rows else nullcontext():
        return KNOWN[register_corpus(str(path), str(data))]


def find_result(
    recipe: Source,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
) -> Result | None:
    """Return the result of an earlier run of a recipe. None unless it is complete and up to date.

    Does not import torch, and writes nothing. Compares the recipe, changes, scale, the package, the files of
    the data and of whatever the recipe names, all records, and the report.
    """
    if is_launched():
        return None
    text, _ = recipe_text(recipe)
    store = store_at(out or folder_for(recipe))
    plan = store.plan()
    if not plan.asked:
        return None
    if plan.asked != request_digest(
        text, changes=changes, scale=scale, data=data, folder=recipe_folder(recipe)
    ):
        return None
    from isogloss.reports.report import finished_report

    store.download_records()
    if not finished_report(store.root):
        return None
    return Result(store.root, outcome=Outcome(done=list(plan.runs)), ids=plan.runs)


def refuse_several_processes() -> None:
    """Raise ConfigError where several processes were started for the work of one."""
    from isogloss.training.distributed import world_size

    if world_size() > 1:
        raise ConfigError(
            f"isogloss.run: this is one of {world_size()} processes, and each would make the same runs. "
            f"Start the script alone; a recipe is trained in several processes by the command line: "
            f"accelerate launch -m isogloss run RECIPE."
        )


__all__ = [
    "Result",
    "Study",
    "corpus",
    "read",
    "report",
    "report_alone",
    "run",
]
