"""Translations that runs of a recipe read: the interface of the recipe's translators, and their requests."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from isogloss.core.errors import ConfigError
from isogloss.data.corpus import Split, is_translation
from isogloss.data.sources import Sources, Treebanks
from isogloss.planning.recipe_tables import find_planner
from isogloss.recipes.recipe import Recipe, Table
from isogloss.runs.run import Encoder, Run, TranslatedSplit
from isogloss.tasks import find_task
from isogloss.training.setting import DataReader, Method
from isogloss.translators.setting import Translator


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """A split to be translated, and the use of its translation."""

    corpus: str
    languages: str
    """From and into, as in en-sw, or there and back."""
    split: Split
    examples: int = 0
    treebanks: Treebanks = ()
    purpose: Literal["train", "test", "pair"] = "train"
    """pair: a model reads it together with the original, so the answer must leave no trace in it."""
    tags: bool = False
    """Whether translated words need tags."""
    links: bool = False
    """Whether they need links to the words they translate."""
    encoder: Encoder | None = None
    """Encoder whose states a word aligner may compare."""


class RecipeTranslator(Protocol):
    """A translator of a recipe with its models, already checked."""

    @property
    def translator(self) -> Translator:
        """The translator."""

    @property
    def label(self) -> str:
        """The fields in which it differs from the recipe's other translators. Empty if it is the only one."""

    def run(self, request: TranslationRequest, sources: Sources) -> TranslatedSplit:
        """Build the run that translates as requested. Raises ConfigError if that is impossible."""

    def check_labels(self, task: str, method: Method | None) -> None:
        """Raise ConfigError if labels are needed that translation loses.

        ``method`` is the one that trains on translations, or None if they are test inputs.
        """


@dataclass(frozen=True, kw_only=True)
class TranslationPlanner:
    """The planner of [translate]."""

    find_models: Callable[[Table], Mapping[str, str]]
    """From the table to the folders of its models on this machine, by fingerprint."""
    translators: Callable[[Recipe, Sources], Sequence[RecipeTranslator]]
    """Builds the translators of a recipe with the table."""
    scored: Callable[[Recipe, Sequence[RecipeTranslator], Sources], Iterator[Run]]
    """Yields the runs of the table itself: the model it trains, and scored translations."""


def _planner() -> TranslationPlanner:
    return cast(TranslationPlanner, find_planner("translate"))


def translation_models(table: Table) -> Mapping[str, str]:
    """Return the folders of the models that [translate] names, by fingerprint. Empty without the table."""
    return _planner().find_models(table) if table else {}


def translators(recipe: Recipe, sources: Sources) -> Sequence[RecipeTranslator]:
    """Build the translators of a recipe's [translate] table. Empty without the table.

    Raises ConfigError if no feature translates.
    """
    return _planner().translators(recipe, sources) if recipe.translate else ()


def scored_translations(
    recipe: Recipe, translators: Sequence[RecipeTranslator], sources: Sources
) -> Iterator[Run]:
    """Yield the runs of [translate] itself: the model it trains, and scored translations."""
    if translators:
        yield from _planner().scored(recipe, translators, sources)


def needs_tags(task: str, method: Method) -> bool:
    """Return whether a method trains on the tags that translated words have."""
    method_reads = method.reads(("en",), ("sw",))
    labels_words = find_task(task).labels_are == "word"
    return (
        labels_words
        and any(is_translation(language) for language in method_reads.train)
        and not method_reads.needs_teacher(find_task(task))
    )


def check_links(task: str, method: DataReader) -> None:
    """Raise ConfigError if a method reads word links, which translations from files do not have."""
    if method.reads((), ()).needs_links(find_task(task)):
        raise ConfigError(
            f"{method.name} reads which words of a translation are linked, and files of translations do not "
            "say. Add [translate] (its own links, or those of [align]), or leave out what reads links: "
            'attends = "links" of x-mixup, consistency (or its weight) in tagging.'
        )
