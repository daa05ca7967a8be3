"""Single runs without a recipe: make them, translate a split, or translate text line by line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from isogloss.core.errors import ConfigError, StorageError, add_location, check_named
from isogloss.core.languages import check_language
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Record, Row
from isogloss.data.corpora.own import register_corpus
from isogloss.data.corpus import SPLITS, Split
from isogloss.data.sources import Sources
from isogloss.engine.engine import make_planned
from isogloss.engine.engines import Execution
from isogloss.planning.plan import Planned
from isogloss.planning.translations import (
    RecipeTranslator,
    TranslationRequest,
    models_named,
    translators,
)
from isogloss.recipes.recipe import Recipe
from isogloss.runs.measure import tasks_of
from isogloss.runs.pretrained import Pretrained, model_folders, translation_model
from isogloss.runs.run import Run
from isogloss.runs.translate import EXAMPLES, Translate, translator_label
from isogloss.store import store_at
from isogloss.tasks import find_task
from isogloss.tasks.lemmas import Lemmatization
from isogloss.tasks.tagging import Tagging
from isogloss.translators.setting import TranslateSetting

COMMAND_LINE = "command line"


@dataclass(frozen=True, kw_only=True)
class SplitToTranslate:
    """Split of a corpus to translate."""

    corpus: str
    split: str = "train"
    examples: int = 0


@dataclass(frozen=True)
class MadeFile:
    """A file that a run made, with the run's numbers and warnings."""

    row: Row
    file: Path
    warnings: tuple[str, ...] = ()


def parse_split(name: str) -> Split:
    """Return the split with a name. Raises ConfigError for an unknown name."""
    check_named("--split", "split", SPLITS, name)
    return next(split for split in SPLITS if split == name)


def make_runs(plan: Planned, command: str, run_kind: str, on_progress: OnProgress) -> None:
    """Make the runs of a plan in this process. Raises StorageError for a run that failed."""
    plan.write(command)
    outcome = make_planned(plan, Execution(jobs=1, retry_failed=True), on_progress=on_progress)
    for key, message in outcome.failed.items():
        raise StorageError(f"{run_kind} {key}: {message}")


@dataclass(frozen=True, kw_only=True)
class TranslationDirection:
    """Languages of a translation, and its translator."""

    source: str
    target: str
    table: Mapping[str, object]
    """The translator, its model and its fields, as in a recipe's [translate]."""

    def translator(self, sources: Sources) -> RecipeTranslator:
        """Build the translator. Raises ConfigError for impossible settings."""
        check_language(self.source, "--from")
        check_language(self.target, "--into")
        if self.source == self.target:
            raise ConfigError(f"--into: {self.target} is what --from says, too. Give another language.")
        recipe = Recipe(title="", translate=dict(self.table))
        with add_location(COMMAND_LINE):
            choices = translators(recipe, sources)
        if len(choices) > 1:
            labels = "; ".join(translator.label for translator in choices)
            raise ConfigError(f"--set: several translators ({labels}). Give one value, not a list.")
        return choices[0]


def translate_split(
    direction: TranslationDirection,
    data_split: SplitToTranslate,
    *,
    folder: Path,
    data: str = "",
    on_progress: OnProgress = no_progress,
) -> MadeFile:
    """Translate a split, unless its translation exists in the folder ``folder``."""
    corpus = register_corpus(data_split.corpus, data)
    languages = f"{direction.source}-{direction.target}"
    sources = Sources(data, model_folders(models_named(direction.table), translation_model))
    tasks = [find_task(name) for name in tasks_of(corpus)]
    if any(isinstance(task, Lemmatization) for task in tasks):
        raise ConfigError(
            f"{corpus}: lemmas belong to the forms of words, and a translation has others. Describe "
            'its words with other labels (columns = { label = "UPOS" }), or as raw text.'
        )
    request = TranslationRequest(
        corpus=corpus,
        languages=languages,
        split=parse_split(data_split.split),
        examples=data_split.examples,
        tags=any(isinstance(task, Tagging) for task in tasks),
    )
    translator = direction.translator(sources)
    with add_location(COMMAND_LINE):
        run = translator.run(request, sources)
    runs: list[Run] = [run]
    recipe = Recipe(title=f"{corpus} in translation")
    plan = Planned(recipe=recipe, text="", runs=runs, store=store_at(folder), sources=sources)
    make_runs(plan, f"isogloss translate {corpus} {languages}", "translation", on_progress)
    record = plan.store.record(run)
    return MadeFile(_translation(run, record), plan.store.folder(run) / EXAMPLES, record.warnings)


def _translation(run: Translate, record: Record) -> Row:
    """Return corpus, translator and counts of a translation, with scores on references."""
    (row,) = record.rows
    return {
        "corpus": run.corpus,
        "languages": run.languages,
        "split": run.split,
        "translator": translator_label([run]),
        **{name: value for name, value in row.items() if value is not None},
    }


def line_translator(
    direction: TranslationDirection, folder: Path, *, on_progress: OnProgress = no_progress
) -> Callable[[Iterable[str]], Iterator[str]]:
    """Return a function that translates lines one by one and reuses existing translations of the folder."""
    sources = Sources("", model_folders(models_named(direction.table), translation_model))
    translator = direction.translator(sources)
    translator.translator.check(direction.source, direction.target)
    with add_location(COMMAND_LINE):
        model = translator.model(direction.source, direction.target, sources)
    setting = TranslateSetting(
        source=direction.source,
        target=direction.target,
        model=sources.encoders.get(model.data, model.pinned) if isinstance(model, Pretrained) else "",
        folder=folder,
        on_progress=on_progress,
    )
    return lambda lines: (line.text for line in translator.translator.translate(lines, setting))
