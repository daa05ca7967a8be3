"""From a recipe's [[grid.method]] tables to methods with all they are trained with, checked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from isogloss.core.errors import ConfigError, check_named, unknown_name
from isogloss.core.plug_ins import plugged_names
from isogloss.core.run_parts import Optimization
from isogloss.data.corpus import is_translation
from isogloss.methods import AUXILIARY_LOSSES, METHODS, PEFT, AuxiliaryLoss, Method, Peft
from isogloss.methods.average import Average
from isogloss.methods.given import Given
from isogloss.planning.translations import RecipeTranslator
from isogloss.recipes.checking import (
    missing_name,
    named,
    names,
    part_of,
    plug_in,
    refuse_empty_or_twice,
    refuse_unknown,
)
from isogloss.recipes.recipe import GridTable, MethodTable, Recipe, Table, many

CONTINUAL = {"continual": "source-only", "continual-few-shot": "few-shot"}
"""What the paper calls methods, and are others with an alignment loss here."""


SEED = "{seed}"
"""Stands in the name of a given model for a seed of the grid."""

ALL_WEIGHTS = "none"
"""The kind of peft that is none: all weights are trained."""


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A method of the grid with what it changes of the optimization."""

    choice: MethodTable
    label: str
    method: Method
    changes: Table
    where: str
    auxiliary: AuxiliaryLoss | None = None
    peft: Peft | None = None
    teacher_peft: Peft | None = None
    """Which weights a teacher of its trains: those that the grid says."""
    by: RecipeTranslator | None = None
    """Who translates what it reads in translation; None where that is read from files."""


def method_entries(grid: GridTable, by: Sequence[RecipeTranslator], where: str) -> list[MethodEntry]:
    """Return the methods of a grid; those that read translations once for each translator."""
    of_grid = _peft(grid.peft, f"{where}.peft")
    entries = [
        one
        for place, table in enumerate(grid.method)
        for one in _translated(_entry(table, grid, of_grid, f"{where}.method[{place}]"), by)
    ]
    refuse_empty_or_twice([entry.label for entry in entries], f"{where}.method")
    return entries


def _entry(table: Table, grid: GridTable, of_grid: Peft | None, where: str) -> MethodEntry:
    if str(table.get("name")) in CONTINUAL:
        raise ConfigError(
            f"{where}: no method {table['name']!r}: it is a loss that any method can carry. Write name = "
            f'"{CONTINUAL[table["name"]]}" and auxiliary = {{ name = "alignment-loss", bitext = "…" }}, '
            f"which takes alpha and the other fields too."
        )
    kind = plug_in(table, METHODS, "method", where, added=("methods", Method))
    refuse_unknown(table, names(kind, Optimization, MethodTable), f"method {kind.name}", where)
    choice = part_of(table, MethodTable, where)
    check_named(f"{where}: targets", "target of this grid", grid.targets, *choice.targets)
    check_named(f"{where}: sources", "source of this grid", many(grid.source), *choice.sources)
    if issubclass(kind, Given | Average):
        _refuse_training(table, kind, where)
        return _untrained(part_of(table, kind, where), choice, grid, where)
    if choice.of or choice.size != 1:
        raise ConfigError(
            f"{where}: of and size say what is averaged, and {kind.name} trains a model. Leave them out, or "
            f'add a method name = "{Average.name}" for the mean of several models.'
        )
    auxiliary = _auxiliary(choice.auxiliary, f"{where}: auxiliary")
    own = _peft(choice.peft, f"{where}: peft")
    added = [part.name for part in (auxiliary, own) if part]
    return MethodEntry(
        choice=choice,
        label=choice.label or " + ".join((kind.name, *added)),
        method=part_of(table, kind, where),
        changes={key: table[key] for key in names(Optimization) & set(table)},
        where=where,
        auxiliary=auxiliary,
        peft=own if choice.peft else of_grid,
        teacher_peft=of_grid,
    )


def _refuse_training(table: Table, kind: type[Method], where: str) -> None:
    """Raise ConfigError where the model of a method that trains nothing is to be trained in some way."""
    own = sorted(names(Optimization) & set(table))
    if own:
        raise ConfigError(
            f"{where}: {own[0]}: {kind.name} trains nothing, so it has no optimization of its own. Leave it "
            f"out."
        )


def _untrained(method: Given | Average, choice: MethodTable, grid: GridTable, where: str) -> MethodEntry:
    """Check the entry of a model that is given, or made of others: nothing is added to it."""
    if isinstance(method, Given):
        _check_given(method, grid, where)
    else:
        _check_average(method, choice, where)
    if choice.start or choice.teacher or choice.auxiliary or choice.peft:
        raise ConfigError(
            f"{where}: {method.name} trains nothing, so it has no start, teacher, auxiliary or peft. Let "
            f"another method start from it."
        )
    return MethodEntry(
        choice=choice, label=choice.label or method.name, method=method, changes={}, where=where
    )


def _check_given(method: Given, grid: GridTable, where: str) -> None:
    if not method.model:
        raise ConfigError(f'{where}: {method.name} takes a model: a folder or name, as in model = "theirs".')
    if len(grid.seeds) > 1 and SEED not in method.model:
        raise ConfigError(
            f"{where}: model: {method.model!r} is one model, and the grid has {len(grid.seeds)} seeds. Write "
            f"{SEED} where their names differ, or give the grid one seed."
        )


def _check_average(method: Average, choice: MethodTable, where: str) -> None:
    refuse_empty_or_twice(choice.of, f"{where}: of")
    of_one = method == Average() and len(choice.of) == choice.size == 1
    if of_one:
        raise ConfigError(
            f"{where}: size: the mean of one model is that model. Give size = 3 for averages of three seeds "
            f"each (0 for one of all), name several methods in of, or give weights."
        )


def models_given(recipe: Recipe) -> list[str]:
    """List the folders and names of the models that a recipe is given."""
    grid = recipe.grid
    named = (
        [str(table.get("model", "")) for table in grid.method if table.get("name") == Given.name]
        if grid
        else []
    )
    seeds = grid.seeds if grid else ()
    return [
        one for name in filter(None, named) for one in dict.fromkeys(of_seed(name, seed) for seed in seeds)
    ]


def of_seed(model: str, seed: int) -> str:
    """Return the folder or name of the model of a seed."""
    return model.replace(SEED, str(seed))


def _auxiliary(table: Table, where: str) -> AuxiliaryLoss | None:
    """Build the loss that a method's table adds to its own; None for an empty table."""
    if not table:
        return None
    kind = plug_in(table, AUXILIARY_LOSSES, "auxiliary loss", where, added=("methods", AuxiliaryLoss))
    refuse_unknown(table, {"name", *names(kind)}, f"auxiliary loss {kind.name}", where)
    return part_of(table, kind, where)


def _peft(table: Table, where: str) -> Peft | None:
    """Build the choice of trained weights that a table describes; None for an empty table and for "none"."""
    if not table or table.get("kind") == ALL_WEIGHTS:
        refuse_unknown(table, {"kind"}, f"peft {ALL_WEIGHTS}", where)
        return None
    known = (ALL_WEIGHTS, *PEFT, *plugged_names("methods"))
    if "kind" not in table:
        raise missing_name(f"{where}: kind", known)
    kind = str(table["kind"])
    found = named(kind, PEFT, where, ("methods", Peft))
    if found is None:
        raise unknown_name(f"{where}: kind", "kind of peft", kind, known)
    refuse_unknown(table, {"kind", *names(found)}, f"peft {kind}", where)
    return part_of(table, found, where)


def _translated(entry: MethodEntry, by: Sequence[RecipeTranslator]) -> list[MethodEntry]:
    """Return a method once for each translator, if it reads translations."""
    label, parts = entry.label, [entry.method, *([entry.auxiliary] if entry.auxiliary else ())]
    reads = [part.reads(("en",), ("sw",)) for part in parts]
    if not by or not any(is_translation(code) for one in reads for code in (*one.train, *one.dev)):
        return [entry]
    return [replace(entry, by=one, label=f"{label} ({one.label})" if one.label else label) for one in by]


def starts_first(entries: list[MethodEntry]) -> list[MethodEntry]:
    """Order methods so that each comes after those it goes on from, learns from, or is an average of."""
    labels, ordered = [entry.label for entry in entries], list[MethodEntry]()
    waiting = list(entries)
    while waiting:
        done = {entry.label for entry in ordered}
        missing = [
            (entry, field, label)
            for entry in waiting
            for field, label in comes_after(entry, entries)
            if label not in done
        ]
        ready = [entry for entry in waiting if entry not in [one for one, _, _ in missing]]
        if not ready:
            raise _never_there(missing, labels)
        ordered += ready
        waiting = [entry for entry in waiting if entry not in ready]
    return ordered


def comes_after(entry: MethodEntry, entries: Sequence[MethodEntry]) -> list[tuple[str, str]]:
    """List the fields and labels of the methods whose models come first; others in ``of`` are encoders."""
    choice, labels = entry.choice, {one.label for one in entries}
    named = [("start", choice.start), ("teacher", choice.teacher)]
    averaged = [("of", label) for label in choice.of if label in labels]
    return [(field, label) for field, label in named if label] + averaged


def _never_there(missing: Sequence[tuple[MethodEntry, str, str]], labels: Sequence[str]) -> ConfigError:
    """Return the error for methods of which each waits for another one, or for one that is not there."""
    entry, field, wanted = next((one for one in missing if one[2] not in labels), missing[0])
    if wanted in labels:
        return ConfigError(
            f"{entry.where}: {field}: {entry.label!r} goes on from {wanted!r}, and that from it again. "
            f"Let one of them start from the encoder."
        )
    others = [label for label in labels if label != entry.label]
    return unknown_name(f"{entry.where}: {field}", "method of this grid", wanted, others)
