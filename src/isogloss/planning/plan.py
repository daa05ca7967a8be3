"""Plan a recipe: list all its runs, dependencies first, before the first one starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from isogloss.core import plug_ins
from isogloss.core.errors import ConfigError, StorageError, add_location
from isogloss.core.identity import content, identity
from isogloss.core.progress import OnProgress, Progress
from isogloss.core.records import PLANNED_RUNS
from isogloss.data.corpora.own import KNOWN, OwnCorpus, register_corpus
from isogloss.data.sources import Sources
from isogloss.planning.encoders import ORIGINAL, encoder_sources, planned_encoders
from isogloss.planning.grid import Planning, cells
from isogloss.planning.measures import measurements
from isogloss.planning.methods import models_given
from isogloss.planning.stored_plans import (
    PlannedRuns,
    UnreadablePlanError,
    planned_parts,
    read_planned_runs,
    write_planned_runs,
)
from isogloss.planning.translations import scored_translations, translation_models, translators
from isogloss.recipes.checking import read_recipe
from isogloss.recipes.recipe import Recipe
from isogloss.recipes.recipe_text import (
    Source,
    folder_for,
    published_file,
    read_published,
    recipe_folder,
    recipe_text,
)
from isogloss.recipes.request import digest_request, request_parts
from isogloss.runs.pretrained import model_folders
from isogloss.runs.run import Encoder, Run, order_runs
from isogloss.store import store_at
from isogloss.store.store import Store


class Begun(NamedTuple):
    """A run that begins."""

    run: str
    """Its id."""
    title: str
    """Title among the plan's titles."""
    number: int
    """Counted from 1."""
    total: int
    """Number of runs."""


Announce = Callable[[Begun], None]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A recipe's runs and their store."""

    recipe: Recipe
    text: str
    asked: str = ""
    """Digest of the request that it was planned for (``request.digest_request``)."""
    runs: list[Run]
    store: Store
    sources: Sources
    encoders: Mapping[Encoder, str] = field(default_factory=dict)
    """The recipe's encoders, each with its label."""
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the models of each of the recipe's methods, by its label."""
    against: Mapping[str, str] = field(default_factory=dict)
    """Ids of models with a baseline in the recipe, each with the id of its baseline."""
    scale: str = ""
    published: Sequence[Mapping[str, object]] = ()
    """Rows that a paper printed, for comparison in the report."""
    request: Mapping[str, str] = field(default_factory=dict)
    """Facts that the plan depends on (``request.request_parts``). Empty if other processes cannot read it."""
    is_stored: bool = False
    """Whether an earlier process planned the runs, and this one read them."""

    def write(self, command: str) -> None:
        """Write the plan into the folder of the runs, with the labels of the recipe's encoders by id.

        Plans that were read from the folder are written only if a different recipe was run in the meantime.
        """
        self.check_looked_at()
        if self.is_stored and self.asked and self.store.plan().asked == self.asked:
            return
        labels = {identity(encoder): label for encoder, label in self.encoders.items() if label != ORIGINAL}
        facts: dict[str, object] = {
            "title": self.recipe.title,
            "recipe": self.text,
            "command": command,
            "scale": self.scale,
            "labels": labels,
            "methods": self.methods,
            "against": self.against,
            "published": self.published,
            "asked": self.asked,
        }
        self.store.write_plan(self.runs, facts)
        if not self.is_stored:
            planned_runs = PlannedRuns(
                runs=self.runs,
                titles=dict(self.titles),
                encoders=dict(self.encoders),
                methods=self.methods,
                against=self.against,
            )
            write_planned_runs(self.store, planned_runs, self.request)

    def check_looked_at(self) -> None:
        """Raise ConfigError for a plan that is only for display."""
        if self.sources.assume:
            raise ConfigError(
                "this plan was made to be looked at (--dry-run): files may be missing. Plan again without it."
            )

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Titles of the runs by id, with the labels of encoders and the fields in which runs differ."""
        groups: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs:
            groups.setdefault((run.title, self._labels(run)), []).append(run)
        titles: dict[str, str] = {}
        for (title, labels), group in groups.items():
            for run, fields in zip(group, _differences(group), strict=True):
                details = ", ".join(part for part in (labels, fields) if part)
                titles[identity(run)] = f"{title} ({details})" if details else title
        return titles

    def _labels(self, run: Run) -> str:
        """Name the encoders in a run, where the recipe has several."""
        labels = [self.encoders[encoder] for encoder in run.encoders if encoder in self.encoders]
        return ", ".join(dict.fromkeys(labels)) if len(set(self.encoders.values())) > 1 else ""


@plug_ins.plug_ins_named()
def plan_recipe(  # noqa: PLR0913 (the options of isogloss.run)
    recipe: Source,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    assume: bool = False,
    on_progress: OnProgress | None = None,
) -> Planned:
    """Read a recipe (``recipe_text.Source``), check it and expand it to its runs.

    With ``assume``, and no ``data``, files of corpora may be missing (``Sources.assumed``). Such a plan can
    be displayed, but it cannot be written or run. With ``on_progress``, runs that an earlier process planned
    are read from the folder (``stored_plans``). It receives the reason if they cannot be used.
    """
    text, where = recipe_text(recipe)
    folder = recipe_folder(recipe)
    parts_used = set[str]()
    if isinstance(recipe, str | Path) and Path(recipe).is_file():
        plug_ins.add_module_folder(folder)

    def register(corpus: str) -> str:
        name = register_corpus(corpus, str(data or ""), folder, assume=assume)
        parts_used.add(name.partition("[")[0])
        return name

    prepare = partial(_with_descriptions, register=register)
    with add_location(where):
        read = read_recipe(text, changes=changes, scale=scale, prepare=prepare)
    store = store_at(out or folder_for(recipe))
    if store.root.exists() and not store.root.is_dir():
        raise StorageError(f"{store.root}: this is a file; runs need a folder. Choose another --out.")
    described_corpora = tuple(corpus for corpus in KNOWN.values() if corpus.name in parts_used)
    with add_location(where):
        sources = Sources(str(data or ""), _model_folders(read), described_corpora, assume=assume)
        request = request_parts(text, changes=changes, scale=scale, data=data, folder=folder)
        request = {**request, **planned_parts(sources)} if request else {}
        stored_runs = _read_stored(store, request, sources, on_progress) if on_progress else None
        planned = stored_runs or _plan_runs(read, sources)
        numbers = read_published(published_file(recipe, read.published)) if read.published else []
    plan = Planned(
        recipe=read,
        text=text,
        asked=digest_request(request),
        runs=planned.runs,
        store=store,
        sources=sources,
        encoders=planned.encoders,
        methods=planned.methods,
        against=planned.against,
        scale=scale,
        published=numbers,
        request=request,
        is_stored=stored_runs is not None,
    )
    if stored_runs:
        vars(plan)["titles"] = stored_runs.titles
    return plan


def _read_stored(
    store: Store, request: Mapping[str, str], sources: Sources, on_progress: OnProgress
) -> PlannedRuns | None:
    """Read the runs that an earlier process planned. None if unusable, with the reason as progress."""
    try:
        return read_planned_runs(store, request, sources)
    except UnreadablePlanError as error:
        reason = f"{store.root / PLANNED_RUNS} is not used: {error}"
        on_progress(Progress("planning", 1, 1, reason))
        return None


def _plan_runs(recipe: Recipe, sources: Sources) -> PlannedRuns:
    built = planned_encoders(recipe, sources)
    runs, methods, against = runs_of(recipe, built, sources)
    return PlannedRuns(runs=runs, titles={}, encoders=dict(built), methods=methods, against=against)


def plan_recipes(  # noqa: PLR0913 (the options of isogloss.run)
    recipes: Sequence[Source],
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    assume: bool = False,
    on_progress: OnProgress | None = None,
) -> Planned:
    """Plan a recipe, or several recipes with a common folder of runs and a common report."""
    if len(recipes) > 1 and out is None:
        raise ConfigError(
            f"run: found {len(recipes)} recipes and no folder. Runs of several lie in one folder, and have "
            "one report: name it by --out FOLDER."
        )
    reading = on_progress if len(recipes) == 1 else None
    plans = [
        plan_recipe(
            recipe,
            out=out,
            data=data,
            changes=changes,
            scale=scale,
            assume=assume,
            on_progress=reading,
        )
        for recipe in recipes
    ]
    return plans[0] if len(plans) == 1 else _join_plans(plans)


def _join_plans(plans: Sequence[Planned]) -> Planned:
    """Return the common plan of several recipes. Shared runs occur once."""
    folders = {data: folder for plan in plans for data, folder in plan.sources.encoders.items()}
    corpora: dict[str, OwnCorpus] = {}
    for corpus in (corpus for plan in plans for corpus in plan.sources.described):
        if corpora.setdefault(corpus.name, corpus) != corpus:
            raise ConfigError(
                f"corpus {corpus.name!r}: these recipes describe it in two ways, and it is known by its name "
                "alone. Give one of them another (name = …), or run the recipes in folders of their own."
            )
    sources = replace(plans[0].sources, encoders=folders, described=tuple(corpora.values()))
    methods: dict[str, dict[str, None]] = {}
    for plan in plans:
        sources.assumed.update(plan.sources.assumed)
        sources.unlabelled.update(plan.sources.unlabelled)
        sources.missing_packages.update(plan.sources.missing_packages)
        for label, ids in plan.methods.items():
            methods.setdefault(label, {}).update(dict.fromkeys(ids))
    return replace(
        plans[0],
        recipe=replace(plans[0].recipe, title=" · ".join(plan.recipe.title for plan in plans)),
        text="\n".join(plan.text for plan in plans),
        asked="",
        request={},
        runs=order_runs([run for plan in plans for run in plan.runs]),
        sources=sources,
        encoders={encoder: label for plan in plans for encoder, label in plan.encoders.items()},
        methods={label: list(ids) for label, ids in methods.items()},
        against={model: reference for plan in plans for model, reference in plan.against.items()},
        published=[row for plan in plans for row in plan.published],
    )


def runs_of(
    recipe: Recipe, built: Mapping[Encoder, str], sources: Sources
) -> tuple[list[Run], dict[str, list[str]], dict[str, str]]:
    """Return the runs of a recipe (dependencies first), the ids of its models by method, and their baselines.

    ``built`` are its encoders with their labels. The baselines are those that the recipe names.
    """
    recipe_translators = translators(recipe, sources)
    planning = Planning(recipe=recipe, sources=sources, encoders=built, translators=recipe_translators)
    grid = cells(planning)
    runs: list[Run] = [encoder for encoder in built if not encoder.exists]
    runs += scored_translations(recipe, recipe_translators, sources)
    runs += [model for cell in grid for model in cell.models.values()]
    runs += measurements(planning, grid)
    if not runs:
        raise ConfigError(
            "this recipe asks for nothing: its encoder is there already, and it has neither [grid] "
            "nor [[measure]]. Add one of them."
        )
    methods: dict[str, dict[str, None]] = {}
    against: dict[str, str] = {}
    for cell in grid:
        for label, model in cell.models.items():
            methods.setdefault(label, {})[identity(model)] = None
            if baseline := cell.models.get(cell.against.get(label, "")):
                against[identity(model)] = identity(baseline)
    return order_runs(runs), {label: list(ids) for label, ids in methods.items()}, against


def _differences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield, for each run, the fields in which runs differ, with their values."""
    facts = [dict(_leaves(content(run))) for run in runs]
    names = dict.fromkeys(name for leaves in facts for name in leaves if not name.endswith(".data"))
    differ = [name for name in names if len({leaves.get(name) for leaves in facts}) > 1]
    for leaves in facts:
        fields = (f"{name.rpartition('.')[2]}={leaves[name]}" for name in differ if name in leaves)
        yield ", ".join(dict.fromkeys(fields))


def _leaves(data: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted names of content's leaves, with their values."""
    inside = dict(enumerate(data)) if isinstance(data, list) else data
    if not isinstance(inside, Mapping):
        yield name, data
        return
    for key, part in inside.items():
        yield from _leaves(part, f"{name}.{key}")


_CORPUS_FIELDS = ("corpus", "bitext", "text", "dev", "scored")
"""Fields of a recipe that name corpora."""


def _with_descriptions(body: object, register: Callable[[str], str]) -> Any:
    if isinstance(body, list):
        return [_with_descriptions(part, register) for part in body]
    if not isinstance(body, dict):
        return body
    return {key: _with_names(key, value, register) for key, value in body.items()}


def _with_names(field: str, value: object, register: Callable[[str], str]) -> object:
    if field == "tasks":
        return _registered_tasks(value, register)
    return (_register_names if field in _CORPUS_FIELDS else _with_descriptions)(value, register)


def _register_names(corpora: object, register: Callable[[str], str]) -> object:
    if isinstance(corpora, list):
        return [_register_names(corpus, register) for corpus in corpora]
    if not isinstance(corpora, str):
        return corpora
    return "+".join(register(corpus) for corpus in corpora.split("+"))


def _registered_tasks(tasks: object, register: Callable[[str], str]) -> object:
    """Register the corpora of tasks ("task:corpus") and return the tasks with the registered names."""
    if not isinstance(tasks, list):
        return tasks
    parts = [str(task).partition(":") for task in tasks]
    return [f"{task}:{_register_names(corpus, register)}" if corpus else task for task, _, corpus in parts]


def _model_folders(recipe: Recipe) -> dict[str, str]:
    """Return the folders of the recipe's encoders and translation models on this machine, by fingerprint."""
    with add_location("encoder"):
        folders = model_folders(encoder_sources(recipe))
    with add_location("grid.method"):
        folders |= model_folders(models_given(recipe))
    return folders | dict(translation_models(recipe.translate))
