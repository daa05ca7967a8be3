"""The plan of a recipe: all its runs, what is needed first, before the first one starts."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from isogloss.core import plug_ins
from isogloss.core.errors import ConfigError, StorageError, located
from isogloss.core.identity import content, identity
from isogloss.data.corpora.described import KNOWN, DescribedCorpus
from isogloss.data.sources import Sources
from isogloss.planning.encoders import ORIGINAL, encoder_sources, planned_encoders
from isogloss.planning.grid import Planning, cells
from isogloss.planning.measures import measurements
from isogloss.planning.methods import models_given
from isogloss.planning.store_places import store_for
from isogloss.planning.translations import models_named, scored_translations, translators
from isogloss.recipes.checking import read_recipe
from isogloss.recipes.descriptions import register_corpus
from isogloss.recipes.recipe import Recipe
from isogloss.recipes.recipe_text import Source, published_file, read_published, recipe_folder, recipe_text
from isogloss.recipes.request import request_digest
from isogloss.runs.pretrained import model_folders, translation_model
from isogloss.runs.run import Encoder, Run, in_order
from isogloss.store.store import Store


class Begun(NamedTuple):
    """A run that begins."""

    run: str
    """Its id."""
    title: str
    """Its title among those of the plan."""
    number: int
    """Counted from 1."""
    total: int
    """How many runs there are."""


Announce = Callable[[Begun], None]


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
    methods: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ids of the models of each of the recipe's methods, by its label."""
    scale: str = ""
    published: Sequence[Mapping[str, object]] = ()
    """Rows of what a paper printed, beside which the report shows ours."""

    def write(self, command: str) -> None:
        """Write the plan into the folder of the runs, with the labels of the recipe's encoders by id."""
        self.check_looked_at()
        labels = {identity(encoder): label for encoder, label in self.encoders.items() if label != ORIGINAL}
        about = {"title": self.recipe.title, "recipe": self.text, "command": command, "scale": self.scale}
        named = {"labels": labels, "methods": self.methods, "published": self.published}
        self.store.write_plan(self.runs, {**about, **named, "asked": self.asked})

    def check_looked_at(self) -> None:
        """Raise ConfigError for a plan that was made to be looked at alone."""
        if self.sources.assume:
            raise ConfigError(
                "this plan was made to be looked at (--dry-run): files may be missing. Plan again without it."
            )

    @cached_property
    def titles(self) -> Mapping[str, str]:
        """Each run's title by its id, with what tells it from others: its encoders' labels, then fields."""
        alike: dict[tuple[str, str], list[Run]] = {}
        for run in self.runs:
            alike.setdefault((run.title, self._labels(run)), []).append(run)
        found: dict[str, str] = {}
        for (title, labels), group in alike.items():
            for run, fields in zip(group, _differences(group), strict=True):
                about = ", ".join(filter(None, (labels, fields)))
                found[identity(run)] = f"{title} ({about})" if about else title
        return found

    def begun(self, run: Run, number: int, total: int) -> Begun:
        """Return what is told of a run that begins."""
        return Begun(identity(run), self.titles[identity(run)], number, total)

    def _labels(self, run: Run) -> str:
        """Name the encoders in a run, where there are several in the recipe."""
        labels = [self.encoders[one] for one in run.encoders if one in self.encoders]
        return ", ".join(dict.fromkeys(labels)) if len(set(self.encoders.values())) > 1 else ""


def plan_recipe(
    recipe: Source,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    assume: bool = False,
) -> Planned:
    """Read a recipe (``recipe_text.Source``) and expand it; every mistake is found here.

    With ``assume``, and no ``data``, files of corpora need not be there (``Sources.assumed``): such a plan
    is to be looked at, and can neither be written nor run.
    """
    text, where = recipe_text(recipe)
    folder, known = recipe_folder(recipe), set[str]()
    asked = request_digest(text, changes=changes, scale=scale, data=data, folder=folder)
    if isinstance(recipe, str | Path) and Path(recipe).is_file():
        plug_ins.look_beside(folder)

    def know(corpus: str) -> str:
        name = register_corpus(corpus, str(data or ""), folder, assume=assume)
        known.add(name.partition("[")[0])
        return name

    prepare = partial(_with_descriptions, know=know)
    with located(where):
        read = read_recipe(text, changes=changes, scale=scale, prepare=prepare)
    store = store_for(recipe, out)
    if store.root.exists() and not store.root.is_dir():
        raise StorageError(f"{store.root}: this is a file; runs need a folder. Choose another --out.")
    own = tuple(corpus for corpus in KNOWN.values() if corpus.name in known)
    with located(where):
        sources = Sources(str(data or ""), _model_folders(read), own, assume=assume)
        built = planned_encoders(read, sources)
        runs, methods = plan(read, built, sources)
        numbers = read_published(published_file(recipe, read.published)) if read.published else []
    return Planned(
        recipe=read,
        text=text,
        asked=asked,
        runs=runs,
        store=store,
        sources=sources,
        encoders=built,
        methods=methods,
        scale=scale,
        published=numbers,
    )


def plan_recipes(
    recipes: Sequence[Source],
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    scale: str = "",
    assume: bool = False,
) -> Planned:
    """Plan one recipe, or several whose runs lie in one folder and have one report."""
    if len(recipes) > 1 and out is None:
        raise ConfigError(
            f"run: found {len(recipes)} recipes and no folder. Runs of several lie in one folder, and have "
            "one report: name it by --out FOLDER."
        )
    plans = [
        plan_recipe(one, out=out, data=data, changes=changes, scale=scale, assume=assume) for one in recipes
    ]
    return plans[0] if len(plans) == 1 else _joined(plans)


def _joined(plans: Sequence[Planned]) -> Planned:
    """Return the plan of all recipes; what they share is there once."""
    places = {name: place for one in plans for name, place in one.sources.encoders.items()}
    described: dict[str, DescribedCorpus] = {}
    for corpus in (corpus for one in plans for corpus in one.sources.described):
        if described.setdefault(corpus.name, corpus) != corpus:
            raise ConfigError(
                f"corpus {corpus.name!r}: these recipes describe it in two ways, and it is known by its name "
                "alone. Give one of them another (name = …), or run the recipes in folders of their own."
            )
    sources = replace(plans[0].sources, encoders=places, described=tuple(described.values()))
    methods: dict[str, dict[str, None]] = {}
    for one in plans:
        sources.assumed.update(one.sources.assumed)
        sources.unlabelled.update(one.sources.unlabelled)
        for label, ids in one.methods.items():
            methods.setdefault(label, {}).update(dict.fromkeys(ids))
    return replace(
        plans[0],
        recipe=replace(plans[0].recipe, title=" · ".join(one.recipe.title for one in plans)),
        text="\n".join(one.text for one in plans),
        asked="",
        runs=in_order([run for one in plans for run in one.runs]),
        sources=sources,
        encoders={encoder: label for one in plans for encoder, label in one.encoders.items()},
        methods={label: [*ids] for label, ids in methods.items()},
        published=[row for one in plans for row in one.published],
    )


def plan(
    recipe: Recipe, built: Mapping[Encoder, str], sources: Sources
) -> tuple[list[Run], dict[str, list[str]]]:
    """Return every run of a recipe in an order in which each finds what it needs, and its models by method.

    ``built`` are its encoders with their labels.
    """
    by = translators(recipe, sources)
    planning = Planning(recipe=recipe, sources=sources, encoders=built, translators=by)
    grid = cells(planning)
    runs: list[Run] = [encoder for encoder in built if not encoder.exists]
    runs += scored_translations(recipe, by, sources)
    runs += [model for cell in grid for model in cell.models.values()]
    runs += measurements(planning, grid)
    if not runs:
        raise ConfigError(
            "this recipe asks for nothing: its encoder is there already, and it has neither [grid] "
            "nor [[measure]]. Add one of them."
        )
    methods: dict[str, dict[str, None]] = {}
    for cell in grid:
        for label, model in cell.models.items():
            methods.setdefault(label, {})[identity(model)] = None
    return in_order(runs), {label: [*ids] for label, ids in methods.items()}


def _differences(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what tells each run from the others: the fields that differ, and their values."""
    facts = [dict(_leaves(content(run))) for run in runs]
    names = dict.fromkeys(name for one in facts for name in one if not name.endswith(".data"))
    differ = [name for name in names if len({one.get(name) for one in facts}) > 1]
    for one in facts:
        told = (f"{name.rpartition('.')[2]}={one[name]}" for name in differ if name in one)
        yield ", ".join(dict.fromkeys(told))


def _leaves(value: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Yield the dotted names of what stands in content, and its values."""
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    if not isinstance(inside, Mapping):
        yield name, value
        return
    for key, part in inside.items():
        yield from _leaves(part, f"{name}.{key}")


_CORPUS_FIELDS = ("corpus", "bitext", "text", "dev", "scored")
"""Fields of a recipe that name corpora."""


def _with_descriptions(body: object, know: Callable[[str], str]) -> Any:
    """Return a recipe's body with each corpus by its name; ``know`` gives the name of a described one."""
    if isinstance(body, list):
        return [_with_descriptions(one, know) for one in body]
    if not isinstance(body, dict):
        return body
    return {
        key: _named(value, know) if key in _CORPUS_FIELDS else _with_descriptions(value, know)
        for key, value in body.items()
    }


def _named(value: object, know: Callable[[str], str]) -> object:
    if isinstance(value, list):
        return [_named(one, know) for one in value]
    return "+".join(map(know, value.split("+"))) if isinstance(value, str) else value


def _model_folders(recipe: Recipe) -> dict[str, str]:
    """Return the folders of the recipe's encoders and translation models on this machine, by fingerprint."""
    with located("encoder"):
        folders = model_folders(encoder_sources(recipe))
    with located("grid.method"):
        folders |= model_folders(models_given(recipe))
    with located("translate.model"):
        return folders | model_folders(models_named(recipe.translate), translation_model)
