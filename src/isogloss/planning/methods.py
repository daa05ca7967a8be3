"""Read [[grid.method]] tables into methods with their losses, weights and optimization."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from graphlib import CycleError
from itertools import product

from isogloss.core.errors import ConfigError, add_location, check_named, unknown_name
from isogloss.core.run_parts import Optimization
from isogloss.data.corpus import is_translation
from isogloss.data.sources import Sources
from isogloss.methods import AUXILIARY_LOSSES, METHODS, PEFT
from isogloss.methods.presets import preset_fields
from isogloss.planning.encoders import dependencies_first
from isogloss.planning.translations import RecipeTranslator
from isogloss.recipes.checking import (
    Kinds,
    build_checked,
    names,
    part_of,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.recipes.recipe import GridTable, MethodTable, Recipe, Table, many
from isogloss.runs.run import Encoder
from isogloss.tasks import find_task
from isogloss.tasks.task import Task
from isogloss.training.setting import AuxiliaryLoss, Combination, DataReader, GivenModel, Method, Peft, Reads

CONTINUAL = {"continual": "source-only", "continual-few-shot": "few-shot"}
"""Methods of the paper and the methods that, with an alignment loss, are the same here."""

SEED = "{seed}"
"""Placeholder in the name of a given model for a seed of the grid."""

ALL_WEIGHTS = "none"
"""The kind of peft that trains all weights."""

SPECIAL = 2
"""Number of subwords in every row that no window may overlap: the first and the last."""

METHOD_KINDS = Kinds("method", METHODS, "methods", Method)
AUXILIARY_KINDS = Kinds("auxiliary loss", AUXILIARY_LOSSES, "methods", AuxiliaryLoss)
PEFT_KINDS = Kinds("kind of peft", PEFT, "methods", Peft, key="kind", noun="peft", others=(ALL_WEIGHTS,))


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method of the grid with its changes to the optimization."""

    choice: MethodTable
    label: str
    method: Method
    changes: Table
    table: str = ""
    """Its table in the recipe, for messages: grid.method[0]."""
    auxiliary: AuxiliaryLoss | None = None
    peft: Peft | None = None
    teacher_peft: Peft | None = None
    """Part of the weights that a teacher trains: the same as in the grid."""
    by: RecipeTranslator | None = None
    """The translator of the translations it reads, or None if they are read from files."""


def method_entries(grid: GridTable, translators: Sequence[RecipeTranslator]) -> list[MethodEntry]:
    """Return the methods of a grid. Methods that read translations occur once for each translator."""
    with add_location(".peft"):
        grid_peft = _peft(grid.peft)
    entries: list[MethodEntry] = []
    for index, table in enumerate(grid.method):
        with add_location(f".method[{index}]"):
            entry = _entry(table, grid, grid_peft)
        entries += _repeat_for_translators(replace(entry, table=f"grid.method[{index}]"), translators)
    refuse_empty_or_twice([entry.label for entry in entries], ".method")
    return entries


def _entry(table: Table, grid: GridTable, grid_peft: Peft | None) -> MethodEntry:
    if str(table.get("name")) in CONTINUAL:
        raise ConfigError(
            f"no method {table['name']!r}: it is a loss that any method can carry. Write name = "
            f'"{CONTINUAL[table["name"]]}" and auxiliary = {{ name = "alignment-loss", bitext = "…" }}, '
            f"which takes alpha and the other fields too."
        )
    kind = METHOD_KINDS.choose(table, Optimization, MethodTable)
    table = METHOD_KINDS.fill_from_preset(table)
    choice = part_of(table, MethodTable)
    check_named("targets", "target of this grid", grid.targets, *choice.targets)
    check_named("sources", "source of this grid", many(grid.source), *choice.sources)
    method = part_of(table, kind)
    if kind.weights_from != "training":
        return _check_untrained(table, method, choice, grid)
    if choice.of or choice.size != 1:
        raise ConfigError(
            f"of and size say what is averaged, and {kind.name} trains a model. Remove them, or "
            'add a method name = "average" for the mean of several models.'
        )
    with add_location("auxiliary"):
        auxiliary = AUXILIARY_KINDS.read(choice.auxiliary) if choice.auxiliary else None
    with add_location("peft"):
        entry_peft = _peft(choice.peft)
    part_names = [part.name for part in (auxiliary, entry_peft) if part]
    return MethodEntry(
        choice=choice,
        label=choice.label or " + ".join((kind.name, *part_names)),
        method=method,
        changes={key: table[key] for key in names(Optimization) & set(table) - names(kind)},
        auxiliary=auxiliary,
        peft=entry_peft if choice.peft else grid_peft,
        teacher_peft=grid_peft,
    )


def _check_untrained(table: Table, method: Method, choice: MethodTable, grid: GridTable) -> MethodEntry:
    """Check the entry of an existing model or of an average, which trains nothing."""
    fields = sorted(names(Optimization) & set(table))
    if fields:
        raise ConfigError(
            f"{fields[0]}: {method.name} trains nothing, so it has no optimization of its own. Remove it."
        )
    if method.weights_from == "model":
        _check_given(given_model(method), grid)
    else:
        _check_combination(combination(method), choice)
    if choice.start or choice.teacher or choice.auxiliary or choice.peft:
        raise ConfigError(
            f"{method.name} trains nothing, so it has no start, teacher, auxiliary or peft. Let "
            "another method start from it."
        )
    return MethodEntry(choice=choice, label=choice.label or method.name, method=method, changes={})


def given_model(method: Method) -> GivenModel:
    """Return a method that takes its weights from a model, as such.

    Raises ConfigError if it has no field for the model.
    """
    if not isinstance(method, GivenModel):
        raise ConfigError(
            f'{method.name}: its class says weights_from = "model" and has no field model. Add one, with the '
            "folder or name of a model."
        )
    return method


def combination(method: Method) -> Combination:
    """Return a method that takes its weights from several models, as such.

    Raises ConfigError if its class lacks a member of ``Combination``.
    """
    if not isinstance(method, Combination) or "weights" not in names(type(method)):
        raise ConfigError(
            f'{method.name}: its class says weights_from = "parts", and lacks the field weights, or one of '
            "weights_of and needs_origin. Add them, as isogloss.training.setting.Combination has them."
        )
    return method


def _check_given(method: GivenModel, grid: GridTable) -> None:
    if not method.model:
        raise ConfigError(f'{method.name} takes a model: a folder or name, as in model = "theirs".')
    if len(grid.seeds) > 1 and SEED not in method.model:
        raise ConfigError(
            f"model: {method.model!r} is one model, and the grid has {len(grid.seeds)} seeds. Write "
            f"{SEED} where their names differ, or give the grid one seed."
        )


def _check_combination(method: Combination, choice: MethodTable) -> None:
    refuse_empty_or_twice(choice.of, "of")
    if method == type(method)() and len(choice.of) == choice.size == 1:
        raise ConfigError(
            "size: the mean of one model is that model. Give size = 3 for averages of three seeds "
            "each (0 for one of all), name several methods in of, or give weights."
        )


def models_given(recipe: Recipe) -> list[str]:
    """List the folders and names of the models that a recipe is given."""
    grid = recipe.grid
    if grid is None:
        return []
    models = [str(table["model"]) for table in grid.method if table.get("model") and _takes_a_model(table)]
    return [name for model in models for name in dict.fromkeys(fill_seed(model, seed) for seed in grid.seeds)]


def _takes_a_model(table: Table) -> bool:
    """Return whether a table names a method whose model exists. Later checks report an unknown method."""
    with suppress(ConfigError):
        return METHOD_KINDS.find_class(table).weights_from == "model"
    return False


def fill_seed(model: str, seed: int) -> str:
    """Return the folder or name of the model of a seed."""
    return model.replace(SEED, str(seed))


def _peft(table: Table) -> Peft | None:
    if not table or table.get("kind") == ALL_WEIGHTS:
        refuse_unknown(table, {"kind"}, f"peft {ALL_WEIGHTS}")
        return None
    return PEFT_KINDS.read(table)


def _repeat_for_translators(entry: MethodEntry, translators: Sequence[RecipeTranslator]) -> list[MethodEntry]:
    """Return a method once for each translator, if it reads translations."""
    label = entry.label
    parts = [entry.method, *([entry.auxiliary] if entry.auxiliary else ())]
    part_reads = [part.reads(("en",), ("sw",)) for part in parts]
    if not translators or not any(
        is_translation(language) for read in part_reads for language in (*read.train, *read.dev)
    ):
        return [entry]
    return [
        replace(entry, by=translator, label=f"{label} ({translator.label})" if translator.label else label)
        for translator in translators
    ]


def sort_by_dependency(entries: Sequence[MethodEntry]) -> list[MethodEntry]:
    """Order methods so that each follows those it starts from, learns from, or averages."""
    labels = [entry.label for entry in entries]
    dependencies = [dependencies_of(entry, entries) for entry in entries]
    for entry, fields in zip(entries, dependencies, strict=True):
        for field, label in fields:
            if label not in labels:
                further_labels = [
                    label_elsewhere for label_elsewhere in labels if label_elsewhere != entry.label
                ]
                with add_location(entry.table):
                    raise unknown_name(field, "method of this grid", label, further_labels)
    needs = [{labels.index(label) for _, label in fields} for fields in dependencies]
    try:
        return [entries[index] for index in dependencies_first(dict(enumerate(needs)))]
    except CycleError as error:
        circle = error.args[1]
    lowest = min(circle)
    field, label = next(pair for pair in dependencies[lowest] if labels.index(pair[1]) in circle)
    with add_location(entries[lowest].table):
        raise ConfigError(
            f"{field}: {labels[lowest]!r} goes on from {label!r}, and that from it again. Let one of them "
            f"start from the encoder."
        )


def dependencies_of(entry: MethodEntry, entries: Sequence[MethodEntry]) -> list[tuple[str, str]]:
    """List the fields and labels of the methods whose models it needs."""
    choice = entry.choice
    labels = {sibling.label for sibling in entries}
    field_labels = [("start", choice.start), ("teacher", choice.teacher)]
    # Other labels in ``of`` name encoders.
    part_labels = [("of", label) for label in choice.of if label in labels]
    return [(field, label) for field, label in field_labels if label] + part_labels


def changes_of(table: Table) -> Iterator[Table]:
    """Yield every combination of the values of list-valued fields."""
    refuse_unknown(table, names(Optimization), "the optimization")
    lists = {key: value if isinstance(value, list) else [value] for key, value in table.items()}
    for key, values in lists.items():
        refuse_empty_or_twice(values, f".{key}")
    for combination in product(*lists.values()):
        changes = dict(zip(lists, combination, strict=True))
        build_checked(Optimization, changes)
        yield changes


def all_changes(entry: MethodEntry, grid_changes: Table, corpus: str, task: str) -> Table:
    """Return the changes to the optimization of a method: from its table, the grid or its preset."""
    preset = entry.choice.preset
    unit = find_task(task).labels_are
    preset_values = preset_fields(entry.method.name, preset, corpus=corpus, unit=unit) if preset else {}
    changes = {**preset_values, **grid_changes, **entry.changes}
    fields = names(Optimization) - names(type(entry.method))  # few-shot has a dev itself.
    return {name: value for name, value in changes.items() if name in fields}


def optimization_of(changes: Table, encoder: Encoder, task: str, sources: Sources) -> Optimization:
    """Check a model's optimization, also against the positions of its encoder."""
    facts = encoder.facts(sources.encoders)
    positions = facts.positions if facts else None
    optimization = _lengths(changes, find_task(task), positions)
    limit = optimization.limit
    overlap = optimization.overlap
    _check_averaged(optimization)
    if optimization.head_weights and find_task(task).labels_are == "tree":
        raise ConfigError(
            f"head_weights: task {task} multiplies the outputs of several layers, which learn nothing from "
            f"zeros. Remove it."
        )
    if overlap >= limit - SPECIAL:
        raise ConfigError(
            f"overlap: windows of {limit} subwords cannot overlap by {overlap}. "
            f"Choose overlap at most {max(0, limit - SPECIAL - 1)}, or raise limit."
        )
    if positions is not None and limit > positions:
        raise ConfigError(
            f"limit: rows of {limit} subwords do not fit into the {positions} positions of "
            f"encoder {encoder.label!r}. Lower limit (in grid.optimization) to {positions} or less."
        )
    return optimization


def _check_averaged(optimization: Optimization) -> None:
    if (optimization.averaged_epochs or 0) > optimization.epochs:
        raise ConfigError(
            f"averaged_epochs: found {optimization.averaged_epochs}, and there are {optimization.epochs} "
            "epochs. Choose at most that many."
        )
    if optimization.averaged_epochs and optimization.patience:
        raise ConfigError(
            "patience: a training that stops early has no last epochs to average. Leave out "
            "patience, or averaged_epochs."
        )


def _lengths(changes: Table, task: Task, positions: int | None) -> Optimization:
    """Check an optimization. Lengths that are not set become the task's, as far as they fit."""
    limit = task.limit if positions is None else min(task.limit, positions)
    optimization = build_checked(Optimization, {"limit": limit, **changes})
    overlap = min(task.overlap, task.overlap * optimization.limit // task.limit)
    return optimization if "overlap" in changes else replace(optimization, overlap=overlap)


OF_METHODS = ("dev", "unlabelled", "sides", "mixes", "itself")
"""Fields of ``Reads`` that an auxiliary loss cannot declare: they concern model selection and inputs."""

OF_TRAINING = ("train", "unlabelled", "bitext", "pairs", "original", "teacher", "links", "tasks")
"""Fields of ``Reads`` that a method without training cannot declare."""


def check_reads(part: DataReader, part_reads: Reads, undeliverable: Sequence[str] = ()) -> None:
    """Raise ConfigError if a method or an auxiliary loss declares data that it cannot receive."""
    undeliverable_fields = [
        name for name in undeliverable if getattr(part_reads, name) != getattr(Reads(), name)
    ]
    if undeliverable_fields:
        part_kind = "an auxiliary loss" if undeliverable == OF_METHODS else "a method that does not train"
        raise ConfigError(
            f"{part.name}: its reads declare {', '.join(undeliverable_fields)}, which {part_kind} does not "
            f"receive. Remove {undeliverable_fields[0]} from the result of {type(part).__name__}.reads."
        )
    if bool(part_reads.bitext) != bool(part_reads.pairs):
        field, missing = ("bitext", "pairs") if part_reads.bitext else ("pairs", "bitext")
        value = getattr(part_reads, field)
        raise ConfigError(
            f"{part.name}: its reads declare {field} {value!r} without {missing}. Declare "
            "both: a corpus of translations, and the pairs that are read, as language_pairs(source, target) "
            'returns them. The target is empty unless the uses of the class name "target".'
        )


def check_patience(optimization: Optimization, method: str, method_reads: Reads) -> None:
    """Raise ConfigError if training is to stop early without a dev set."""
    if optimization.patience and method_reads.train and not method_reads.dev:
        raise ConfigError(
            f"patience: no dev set chooses the epoch of {method}, so none says "
            "when to stop. Remove patience, or let the method read a dev set."
        )
