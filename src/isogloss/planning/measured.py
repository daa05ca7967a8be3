"""Subjects of measurements: models of a grid, single or compared, and a recipe's encoders."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from isogloss.core.errors import ConfigError, ModelError, add_location, check_named
from isogloss.core.languages import language_of_text
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.diagnostics.mixed_parts import FACTORS, INCOMPATIBLE_MIXUPS
from isogloss.diagnostics.setting import Diagnostic
from isogloss.methods import PEFT
from isogloss.planning.grid import GridCell, Planning
from isogloss.planning.translations import RecipeTranslator
from isogloss.recipes.recipe import MeasureTable
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.runs.run import Encoder, Run
from isogloss.tasks import find_task
from isogloss.tasks.inputs import PAIRED


@dataclass(frozen=True, kw_only=True)
class MeasureRequest:
    """One [[measure]] table, with the encoders it chooses and their cells."""

    diagnostic: Diagnostic
    choice: MeasureTable
    planning: Planning
    encoders: Sequence[Encoder]
    cells: Sequence[GridCell]
    """Of these encoders."""
    translator: RecipeTranslator | None = None
    """Translates the inputs. None if they are not translated or are read from files."""

    @property
    def sources(self) -> Sources:
        """Locations of corpora and encoders."""
        return self.planning.sources

    @property
    def chosen_cells(self) -> Iterator[GridCell]:
        """The cells of the chosen tasks, targets and seeds. Default: all."""
        choice = self.choice
        for cell in self.cells:
            choices = ((choice.tasks, cell.task), (choice.targets, cell.target), (choice.seeds, cell.seed))
            if all(not values or value in values for values, value in choices):
                yield cell

    def measure(
        self, subjects: "Measured", corpus: str, languages: Sequence[str], treebanks: Treebanks = ()
    ) -> Measure:
        """Build a measurement on a corpus, with the fingerprint of the files it reads."""
        run = Measure(
            diagnostic=self.diagnostic,
            subjects=subjects.runs,
            languages=subjects.languages,
            corpus=corpus,
            split=self.choice.split,
            examples=self.choice.examples,
        )
        fingerprint = partial(
            self.sources.fingerprint, corpus, treebanks=treebanks, examples=self.choice.examples
        )
        data = [
            combined_fingerprint(
                [fingerprint(language, split) for language in run.select_read(split, languages)]
            )
            for split in run.splits
        ]
        return replace(run, data=data[0] if len(data) == 1 else combined_fingerprint(data))

    def check_languages(self, encoder: Encoder, languages: Iterable[str]) -> None:
        """Raise ConfigError for languages that an encoder cannot read.

        A pair (fr-en) stands for text translated into its last language.
        """
        codes = [language_of_text(language) for language in languages]
        encoder.check_read(codes, self.sources.encoders, f"encoder {encoder.label!r}")


class Measured(NamedTuple):
    """The runs and languages of one measurement."""

    runs: tuple[Run, ...]
    encoder: Encoder
    languages: tuple[str, ...]
    cell: GridCell | None = None
    """The grid cell of a model, or None for an encoder."""


def models(request: MeasureRequest) -> Iterator[Measured]:
    """Yield each model once, with its cell's source and the targets of all its cells."""
    targets_of: dict[FineTune, tuple[set[str], GridCell]] = {}
    for cell in request.chosen_cells:
        for label, model in cell.models.items():
            if not request.choice.methods or label in request.choice.methods:
                targets, _ = targets_of.setdefault(model, (set(), cell))
                targets.update(cell.targets)
    for model, (targets, cell) in targets_of.items():
        reads_pairs = request.choice.inputs != PAIRED or model.method.reads((), ()).mixes
        if reads_pairs and _same_translator(request, model):
            # Sorted, so that the order of a recipe's lists does not change its runs.
            languages = (*cell.source, *sorted(targets - set(cell.source)))
            yield Measured((model,), model.encoder, request.choice.languages or languages, cell)


def _same_translator(request: MeasureRequest, model: FineTune) -> bool:
    """Return whether inputs and training data are translated by the same translator, if both are."""
    translators = {run.translator for run in model.translated or ()}
    return not translators or request.translator is None or translators == {request.translator.translator}


def compared_models(request: MeasureRequest) -> Iterator[Measured]:
    """Yield the models that the diagnostic's ``between`` names, cell by cell."""
    model_names: tuple[str, ...] = getattr(request.diagnostic, "between")  # noqa: B009 (only these have it)
    labels = {label for cell in request.cells for label in cell.models}
    check_named("between", "method of this recipe", labels, *model_names)
    for cell in request.chosen_cells:
        if all(label in cell.models for label in model_names):
            runs = tuple(cell.models[label] for label in model_names)
            _check_factors(request, runs)
            _check_paired(request, runs, cell)
            if all(_same_translator(request, model) for model in runs):
                yield Measured(
                    runs, cell.encoder, request.choice.languages or (*cell.source, *cell.targets), cell
                )


def _check_paired(request: MeasureRequest, models: Sequence[FineTune], cell: GridCell) -> None:
    if request.diagnostic.reads_translations and request.choice.inputs != PAIRED:
        raise ConfigError(
            f"inputs: {request.diagnostic.name} reads each input with its translation. Set inputs = "
            f'"{PAIRED}".'
        )
    if request.diagnostic.reads_translations or request.choice.inputs != PAIRED:
        return
    unpaired_labels = [model.label for model in models if not model.method.reads((), ()).mixes]
    with add_location("inputs"):
        if unpaired_labels:
            raise ConfigError(
                f"{unpaired_labels[0]} reads inputs without translations, but models of x-mixup read them "
                f"with translations, so points between them are undefined. Remove inputs, or name only "
                f"models of x-mixup in between."
            )
        facts = cell.encoder.facts(request.sources.encoders)
        task = find_task(cell.task)
        if facts and len({model.method.mixing(task, facts.layers) for model in models}) > 1:
            raise ConfigError(INCOMPATIBLE_MIXUPS)


def _check_factors(request: MeasureRequest, models: Sequence[FineTune]) -> None:
    kinds = {model.peft for model in models}
    if getattr(request.diagnostic, "part", "") != FACTORS:
        return
    if len(kinds) > 1 or not all(kind is not None and kind.has_factors for kind in kinds):
        labels = ", ".join(model.label for model in models)
        raise ConfigError(
            f"part: factors are those of models with one and the same "
            f"{', '.join(kind.name for kind in PEFT.values() if kind.has_factors)}; these are {labels}. Take "
            f'models of one kind and size, or part = "all", which mixes merged weights.'
        )


def encoders(request: MeasureRequest, min_languages: int = 2) -> Iterator[Measured]:
    """Yield each encoder with its languages.

    These are the given languages, the encoder's, or the grid's languages that it reads.
    """
    grid_languages = dict.fromkeys(
        language for cell in request.cells for language in (*cell.source, *cell.targets)
    )
    for encoder in request.encoders:
        readable = tuple(
            language for language in grid_languages if encoder.reads(language, request.sources.encoders)
        )
        languages = request.choice.languages or encoder.original.languages_read or readable
        if len(languages) < min_languages:
            wants, minimum = (
                ("reads languages", "one") if min_languages == 1 else ("compares languages", "two")
            )
            raise ConfigError(
                f"languages: {request.diagnostic.name} {wants}, and the recipe names {len(languages)}. Name "
                f"{minimum} or more."
            )
        yield Measured((encoder,), encoder, languages)


def masked_lms(request: MeasureRequest) -> Iterator[Measured]:
    """Yield each encoder with a masked-LM head. One language is enough.

    Raises ModelError for an encoder without the head.
    """
    for encoder in request.encoders:
        if not encoder.has_masked_lm(request.sources.encoders):
            raise ModelError(
                f"{request.diagnostic.name} reads masked-LM heads, and the encoder {encoder.label!r} has "
                f"none. Give one that was saved with its head."
            )
    yield from encoders(request, min_languages=1)


def encoders_and_models(request: MeasureRequest) -> Iterator[Measured]:
    """Yield each encoder, then each model as an encoder. Paired inputs need models."""
    if not request.choice.inputs:
        yield from encoders(request)
    yield from models(request)
