"""Translating by itself: a corpus's split as a recipe would translate it, or text line by line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ConfigError, StorageError, unknown_name
from isogloss.core.languages import check_language
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Record, Row
from isogloss.core.runs import Pretrained, Run, Translate
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.sources import Sources
from isogloss.experiments.labels import translator_label
from isogloss.experiments.recipe import Recipe
from isogloss.experiments.running import Planned, make
from isogloss.experiments.store import Store
from isogloss.experiments.translation_runs import EXAMPLES
from isogloss.experiments.translations import (
    TranslatedBy,
    Wanted,
    models_named,
    translator_places,
    translators,
)
from isogloss.translators import TranslateSetting

WHERE = "command line"


@dataclass(frozen=True, kw_only=True)
class Direction:
    """From which language into which, and by whom."""

    source: str
    target: str
    table: Mapping[str, Any]
    """The translator, its model and its fields, as in a recipe's [translate]."""

    def by(self, sources: Sources) -> TranslatedBy:
        """Build the translator; ConfigError where it cannot be."""
        check_language(self.source, "--from")
        check_language(self.target, "--into")
        recipe = Recipe(title="", translate=dict(self.table))
        found = translators(recipe, sources, WHERE)
        if len(found) > 1:
            labels = "; ".join(one.label for one in found)
            raise ConfigError(f"--set: several translators ({labels}). Give one value, not a list.")
        return found[0]


@dataclass(frozen=True, kw_only=True)
class SplitWanted:
    """Which split of a corpus is translated."""

    corpus: str
    split: str = "train"
    examples: int = 0


@dataclass(frozen=True)
class SplitTranslated:
    """A translation that is there: what it came to, what to know of it, and the file of its examples."""

    row: Row
    warnings: tuple[str, ...]
    file: Path


def translate_split(
    direction: Direction,
    wanted: SplitWanted,
    *,
    out: Path,
    data: str = "",
    on_progress: OnProgress = no_progress,
) -> SplitTranslated:
    """Translate a split that is not translated yet in the folder ``out``."""
    if wanted.split not in SPLITS:
        raise unknown_name("--split", "split", wanted.split, SPLITS)
    split: Split = next(one for one in SPLITS if one == wanted.split)
    sources = Sources(data, translator_places(models_named(direction.table)))
    languages = f"{direction.source}-{direction.target}"
    run = direction.by(sources).run(
        Wanted(corpus=wanted.corpus, languages=languages, split=split, examples=wanted.examples, where=WHERE),
        sources,
    )
    runs: list[Run] = [run]
    recipe = Recipe(title=f"{wanted.corpus} in translation")
    planned = Planned(recipe=recipe, text="", runs=runs, store=Store(out), sources=sources)
    with planned.store.lock():
        planned.write(f"isogloss translate {wanted.corpus} {languages}")
        outcome = make(planned, jobs=1, announce=lambda *_: None, on_progress=on_progress)
    for key, message in outcome.failed.items():
        raise StorageError(f"translation {key}: {message}")
    record = planned.store.record(run)
    return SplitTranslated(_row(run, record), record.warnings, planned.store.folder(run) / EXAMPLES)


def _row(run: Translate, record: Record) -> Row:
    """Say what was translated, by whom, and what it came to; no score where there is none."""
    (found,) = record.rows
    return {
        "corpus": run.corpus,
        "languages": run.languages,
        "split": run.split,
        "translator": translator_label([run]),
        **{name: value for name, value in found.items() if value is not None},
    }


def line_translator(
    direction: Direction, folder: Path, *, on_progress: OnProgress = no_progress
) -> Callable[[Iterable[str]], Iterator[str]]:
    """Return what translates lines, one for one, and keeps in the folder what is done already."""
    sources = Sources("", translator_places(models_named(direction.table)))
    by = direction.by(sources)
    by.translator.check(direction.source, direction.target)
    model = by.model(direction.source, direction.target, sources, WHERE)
    setting = TranslateSetting(
        source=direction.source,
        target=direction.target,
        model=sources.encoder(model) if isinstance(model, Pretrained) else "",
        folder=folder,
        on_progress=on_progress,
    )
    return lambda lines: (one.text for one in by.translator.translate(lines, setting))
