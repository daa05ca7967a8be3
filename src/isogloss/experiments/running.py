"""Run a recipe: read it, plan it, make what is missing."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isogloss.core.errors import StorageError
from isogloss.core.languages import is_built_in
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.core.run_graph import needs, run_id
from isogloss.core.runs import Adjust, Encoder, FineTune, Measure, Pretrain, Pretrained, Run
from isogloss.data.sources import Sources
from isogloss.experiments.asking import folder_for, recipe_text, request
from isogloss.experiments.damage import set_damage_aside
from isogloss.experiments.encoder_runs import ORIGINAL, encoder_entries, encoders
from isogloss.experiments.encoders import fetch, places
from isogloss.experiments.engine import Announce, of_script, run_in_processes, run_serially
from isogloss.experiments.execute import title_of
from isogloss.experiments.plan import plan
from isogloss.experiments.reading import splits_read
from isogloss.experiments.recipe import Recipe, located, read_recipe
from isogloss.experiments.run_context import RunContext
from isogloss.experiments.store import Outcome, Store
from isogloss.experiments.translations import fetch_translators, models_named, translator_places


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A recipe's runs and where they will be."""

    recipe: Recipe
    text: str
    asked: str = ""
    """What this was planned for (``asking.request``)."""
    runs: list[Run]
    store: Store
    sources: Sources
    encoders: Mapping[Encoder, str] = field(default_factory=dict)
    """The recipe's encoders, each with its label."""

    def write(self, command: str) -> None:
        """Note the plan beside the runs, with what the recipe calls its encoders, by their ids."""
        labels = {run_id(encoder): label for encoder, label in self.encoders.items() if label != ORIGINAL}
        about = {"title": self.recipe.title, "recipe": self.text, "command": command}
        self.store.write_plan(self.runs, {**about, "labels": labels, "asked": self.asked})

    def title(self, run: Run) -> str:
        """Say what a run is, and, where there are several encoders, which of them it is about."""
        labels = [self.encoders[one] for one in _encoders_in(run) if one in self.encoders]
        several = len(set(self.encoders.values())) > 1
        about = ", ".join(dict.fromkeys(labels)) if several else ""
        return f"{title_of(run)} ({about})" if about else title_of(run)


def plan_recipe(
    name: str,
    *,
    out: Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
    scale: str = "",
) -> Planned:
    """Read a recipe (a file, or the name of a packaged one) and expand it; every mistake is found here."""
    text, where = recipe_text(name)
    asked = request(text, changes=changes, scale=scale, data=data)
    recipe = read_recipe(text, where=where, changes=changes, scale=scale)
    root = folder_for(name, out)
    if root.exists() and not root.is_dir():
        raise StorageError(f"{root}: this is a file; runs need a folder. Choose another --out.")
    sources = Sources(str(data or ""), _places(recipe, where))
    built = encoders(recipe, sources, where)
    return Planned(
        recipe=recipe,
        text=text,
        asked=asked,
        runs=plan(recipe, built, sources, where),
        store=Store(root),
        sources=sources,
        encoders=built,
    )


def _encoders_in(run: Run) -> list[Encoder]:
    """List the encoders that a run makes, starts from or looks at."""
    if isinstance(run, Measure):
        return [encoder for subject in run.subjects for encoder in _encoders_in(subject)]
    if isinstance(run, FineTune):
        return [run.encoder]
    return [run] if isinstance(run, Pretrain | Pretrained | Adjust) else []


def _places(recipe: Recipe, where: str) -> dict[str, str]:
    """Return where the recipe's encoders and translation models are on this machine."""
    entries = encoder_entries(recipe)
    named = [entry if isinstance(entry, str) else entry.pretrained for entry in entries]
    with located(f"{where}: encoder"):
        found = places(source for source in named if source)
    with located(f"{where}: translate.model"):
        return found | translator_places(models_named(recipe.translate))


def default_jobs(runs: Sequence[Run], threads: int = 1) -> int:
    """Return how many runs to make side by side: one on a GPU, else as many as cores and plan allow."""
    import torch

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if torch.cuda.is_available() else max(1, min(cores // threads, _width(runs)))


def _width(runs: Sequence[Run]) -> int:
    """Return the most runs that are equally far from those that need none of the others."""
    depths: dict[str, int] = {}
    for run in runs:  # What a run needs stands before it.
        below = [depths[key] for key in map(run_id, needs(run)) if key in depths]
        depths[run_id(run)] = max(below, default=0) + 1
    return max(Counter(depths.values()).values(), default=1)


def make(
    planned: Planned,
    *,
    jobs: int,
    announce: Announce,
    on_progress: OnProgress = no_progress,
    threads: int = 1,
) -> Outcome:
    """Make what has no record yet, ``jobs`` runs side by side (0: as many as this machine has cores for).

    What is damaged counts as missing.
    """
    damaged = set_damage_aside(planned.store, planned.runs)
    missing = [run for run in planned.runs if not planned.store.is_finished(run)]
    _fetch(missing)
    fetch_translators(missing)
    _read_once(missing, planned.sources, on_progress)
    context = RunContext(
        store=planned.store, sources=planned.sources, on_progress=on_progress, threads=threads
    )
    if missing:
        context = replace(context, precision=precision_here(planned.store))
    jobs = jobs or (1 if of_script(missing) else default_jobs(missing, threads))
    jobs = min(jobs, max(1, len(missing)))
    if jobs == 1:
        outcome = run_serially(context, planned.runs, announce)
    else:
        outcome = run_in_processes(context, planned.runs, announce, jobs=jobs)
    return replace(outcome, damaged=damaged)


def _fetch(runs: Sequence[Run]) -> None:
    """Download the encoders that are on the hub, before anything trains and once for all processes."""
    parts = [part for run in runs for part in (getattr(run, "encoder", None), *getattr(run, "subjects", ()))]
    # One with a fingerprint lies in a folder of this machine.
    for source in sorted({part.source for part in parts if isinstance(part, Pretrained) and not part.data}):
        fetch(source)


def _read_once(runs: Sequence[Run], sources: Sources, on_progress: OnProgress) -> None:
    """Read what will be read from disk once, so that a broken line is found before anything trains."""
    splits = dict.fromkeys(split for run in runs for split in splits_read(run))
    on_disk = [split for split in splits if not is_built_in(split.language[:3])]
    for done, split in enumerate(on_disk):
        on_progress(Progress("reading", done, len(on_disk), f"{split.corpus} {split.language} {split.split}"))
        for _ in sources.stream(
            split.corpus, split.language, split.split, treebanks=split.treebanks, examples=split.examples
        ):
            pass
    if on_disk:
        on_progress(Progress("reading", len(on_disk), len(on_disk)))


def precision_here(store: Store) -> str:
    """Return what precision "auto" comes to on this machine."""
    import torch

    from isogloss.training.precision import measured_precision

    if torch.cuda.is_available():
        return store.precision(torch.cuda.get_device_name(), lambda: measured_precision("cuda"))
    return store.precision(torch.backends.cpu.get_cpu_capability(), lambda: measured_precision("cpu"))
