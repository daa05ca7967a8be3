"""What a [[measure]] table asks for: the diagnostic, and which encoders and models it looks at."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import cast

from isogloss.core.errors import unknown_name
from isogloss.core.languages import check_language, language_of_text
from isogloss.core.runs import Encoder, FineTune
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.sources import Sources
from isogloss.diagnostics import DIAGNOSTICS, Diagnostic
from isogloss.experiments.encoders import encoder_label
from isogloss.experiments.grid import Cell
from isogloss.experiments.languages_read import check_read
from isogloss.experiments.recipe import MeasureTable, Table, checked, refuse_unknown
from isogloss.experiments.translations import TranslatedBy
from isogloss.methods import Mixing
from isogloss.training.inputs import PAIRED

_OF_MODELS = (
    *("split", "examples", "tasks", "targets", "seeds", "methods", "encoders"),
    *("corpus", "languages", "treebanks", "inputs"),
)
_OF_STATES = ("split", "examples", "corpus", "languages", "tasks", "targets", "seeds", "methods", "encoders")
CHOICE = {
    "model": _OF_MODELS,
    "scores": _OF_MODELS,
    "seeds": _OF_MODELS,
    "cell": ("split", "examples", "tasks", "targets", "seeds", "encoders"),
    "encoder": ("split", "examples", "corpus", "languages", "encoders"),
    "states": _OF_STATES,
    "parallel": (*_OF_STATES, "treebanks", "inputs"),
    "words": _OF_STATES,
    "text": ("split", "examples", "corpus", "languages", "encoders"),
}
"""Fields of a [[measure]] table that choose what is looked at; the others are the diagnostic's."""


@dataclass(frozen=True)
class Chosen:
    """What one [[measure]] table asks for."""

    diagnostic: Diagnostic
    choice: MeasureTable
    align: Table
    where: str
    by: tuple[TranslatedBy, ...] = ()
    """Who translates the inputs, if they are to come in translation and are not read from files."""

    @property
    def split(self) -> Split:
        """The split it reads (``choose`` checked that it is one)."""
        return cast(Split, self.choice.split)

    def one_by_one(self) -> "Iterator[Chosen]":
        """Give what is asked for once for each translator."""
        yield from (replace(self, by=(one,)) for one in self.by)
        if not self.by:
            yield self

    def takes(self, cell: Cell) -> bool:
        """Tell whether a cell is among the tasks, targets and seeds asked for (all when none are named)."""
        choice = self.choice
        return (
            (not choice.tasks or cell.task in choice.tasks)
            and (not choice.targets or cell.target in choice.targets)
            and (not choice.seeds or cell.seed in choice.seeds)
        )


def choose(table: Table, align: Table, where: str) -> Chosen:
    """Read a table; ConfigError for names there are none of, and fields the diagnostic does not take."""
    name = str(table.get("name"))
    if name not in DIAGNOSTICS:
        raise unknown_name(where, "diagnostic", name, DIAGNOSTICS)
    kind = DIAGNOSTICS[name]
    own = {one.name for one in fields(kind)}  # type: ignore[arg-type]
    choosing = {"name", *CHOICE[kind.over]}
    refuse_unknown(table, own | choosing, f"diagnostic {name}", where)
    choice: MeasureTable = checked(MeasureTable, {key: table[key] for key in table if key in choosing}, where)
    if choice.split not in SPLITS:
        raise unknown_name(f"{where}: split", "split", choice.split, SPLITS)
    for code in choice.languages:
        check_language(code, f"{where}: languages")
    diagnostic = checked(kind, {key: table[key] for key in table if key in own}, where)
    return Chosen(diagnostic, choice, align, where)


def models_chosen(chosen: Chosen, grid: list[Cell]) -> Iterator[tuple[FineTune, tuple[str, ...], Cell]]:
    """Give each model once with the languages it is looked at in: its cell's source and all its targets."""
    found: dict[FineTune, tuple[set[str], Cell]] = {}
    for cell in grid:
        for label, model in cell.models.items():
            if chosen.takes(cell) and (not chosen.choice.methods or label in chosen.choice.methods):
                targets, _ = found.setdefault(model, (set(), cell))
                targets.update(cell.targets)
    for model, (targets, cell) in found.items():
        if chosen.choice.inputs == PAIRED and not isinstance(model.method, Mixing):
            continue
        if not _by_the_same(chosen, model):
            continue
        # Sorted, so that a recipe with its lists in another order asks for the same runs.
        yield model, (*cell.source, *sorted(targets - {*cell.source})), cell


def _by_the_same(chosen: Chosen, model: FineTune) -> bool:
    """Tell whether who translates the inputs also translated what a model was trained on, if anyone did."""
    own = {one.translator for one in model.translated or ()}
    return not own or not chosen.by or own == {one.translator for one in chosen.by}


def refuse_unread(chosen: Chosen, encoder: Encoder, languages: Iterable[str], sources: Sources) -> None:
    """Refuse languages that an encoder cannot read; of a pair such as fr-en the text is in the last."""
    codes = [language_of_text(language) for language in languages]
    check_read(encoder, codes, sources.encoders, f"{chosen.where}: encoder {encoder_label(encoder)!r}")
