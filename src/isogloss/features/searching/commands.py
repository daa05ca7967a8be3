"""The command that searches for the setting of a recipe."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from isogloss.cli.display import Display, emit, show_line
from isogloss.cli.options import STUDY, ExecutionGroup, OutputOptions, RecipeGroup, verb, with_groups

if TYPE_CHECKING:
    from isogloss.features.searching.search import Search, Trial

verbs = typer.Typer()


@verb(verbs, STUDY, "isogloss search mine.toml --over optimization.learning_rate=1e-5..1e-3:log")
@with_groups
def search(
    recipe: str,
    over: list[str],
    trials: int = 20,
    by: str = "",
    target_dev: bool = False,
    seed: int = 0,
    to: Path | None = None,
    *,
    setup: RecipeGroup,
    execution: ExecutionGroup,
    output: OutputOptions,
) -> None:
    """Search for the setting whose models score highest on the source's dev set, over the recipe's seeds.

    Trials are ordinary runs in the folder, so the same command, or one with more trials, resumes.
    """
    from isogloss.features.searching import functions
    from isogloss.features.searching.search import NO_ZERO_SHOT
    from isogloss.features.searching.spaces import parse_over
    from isogloss.recipes.request import unique_keys

    with output.events as display:
        result = functions.search(
            recipe,
            over=unique_keys("--over", (parse_over(text) for text in over)),
            trials=trials,
            by=by,
            target_dev=target_dev,
            seed=seed,
            to=to,
            **setup.options(),
            **execution.options(),
            on_progress=display.on_progress,
            announce=display.announce,
            on_trial=lambda trial: display.say(_line(trial)),
            command=f"isogloss {' '.join(sys.argv[1:])}",
        )
    _show_search(result, display)
    if target_dev:
        print(f"isogloss: {NO_ZERO_SHOT}", file=sys.stderr)
    if result.best is None:
        raise typer.Exit(1)


def _line(trial: "Trial") -> str:
    setting = ", ".join(f"{key.removeprefix('grid.')} = {value}" for key, value in trial.values.items())
    return f"trial {trial.number}: {setting}: {_score(trial)}"


def _score(trial: "Trial") -> str:
    if trial.score is None:
        return f"failed: {trial.failed[0]}"
    spread = "" if trial.std is None else f" ± {100 * trial.std:.1f}"
    return f"{100 * trial.score:.1f}{spread}"


def _show_search(result: "Search", display: Display) -> None:
    best_trial = result.best
    if display.as_json:
        for trial in result.trials:
            emit({"event": "trial", **asdict(trial), "best": trial == best_trial})
        emit({"event": "search", "recipe": result.recipe and str(result.recipe), "by": result.chosen_by})
        return
    keys = [key.removeprefix("grid.") for key in result.trials[0].values]
    rows = [
        (
            trial.number,
            *trial.values.values(),
            _score(trial),
            trial.made,
            "best" if trial == best_trial else "",
        )
        for trial in result.trials
    ]
    display.table(("trial", *keys, f"{result.chosen_by}, percent", "runs made", ""), rows)
    if best_trial and result.recipe:
        show_line(f"Best: {_line(best_trial)}")
        show_line(f"Recipe: {result.recipe}")
