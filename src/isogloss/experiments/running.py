"""Run a recipe: read it, plan it, make what is missing."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from isogloss.core.errors import did_you_mean
from isogloss.core.progress import Tell, silent
from isogloss.core.runs import Run
from isogloss.experiments.engine import Announce, Outcome, run_in_processes, run_serially
from isogloss.experiments.execute import Workshop
from isogloss.experiments.plan import plan
from isogloss.experiments.recipe import Recipe, read_recipe, read_recipe_file
from isogloss.experiments.sources import Sources
from isogloss.experiments.store import Store


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A recipe's runs and where they will be."""

    recipe: Recipe
    text: str
    runs: list[Run]
    store: Store
    sources: Sources

    def write(self, command: str) -> None:
        """Note the plan beside the runs."""
        self.store.write_plan(self.recipe.title, self.text, command, self.runs)


def plan_recipe(
    name: str,
    *,
    out: Path | None = None,
    data: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    scale: str = "",
) -> Planned:
    """Read a recipe (a file, or the name of a packaged one) and expand it; every mistake is found here."""
    packaged = packaged_recipes()
    if name in packaged:
        text, where = packaged[name], name
        recipe = read_recipe(text, where=name, changes=changes, scale=scale)
    else:
        path = Path(name)
        if not path.suffix and not path.exists():
            path = path.with_name(path.name + did_you_mean(path.name, packaged))
        recipe, text = read_recipe_file(path, changes=changes, scale=scale)
        where = path.name
    sources = Sources(data)
    root = out or Path("runs") / Path(name).stem
    return Planned(
        recipe=recipe, text=text, runs=plan(recipe, sources, where), store=Store(root), sources=sources
    )


def packaged_recipes() -> dict[str, str]:
    """Return the recipes that come with the package, by name."""
    folder = files("isogloss") / "recipes"
    found = {
        path.name.removesuffix(".toml"): path for path in folder.iterdir() if path.name.endswith(".toml")
    }
    return {name: path.read_text(encoding="utf-8") for name, path in sorted(found.items())}


def default_jobs(runs: Sequence[Run]) -> int:
    """Return how many runs to make side by side: one on a GPU, else one for each core."""
    import torch

    return 1 if torch.cuda.is_available() else max(1, min(os.cpu_count() or 1, len(runs)))


def make(planned: Planned, *, jobs: int, announce: Announce, tell: Tell = silent) -> Outcome:
    """Make what has no record yet."""
    shop = Workshop(store=planned.store, sources=planned.sources, tell=tell)
    if jobs == 1:
        return run_serially(shop, planned.runs, announce)
    return run_in_processes(shop, planned.runs, announce, jobs=jobs)
