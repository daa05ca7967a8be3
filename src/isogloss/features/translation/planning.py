"""Plan the translations of a recipe's [translate] table and the models that produce them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import cast

from isogloss.core.errors import ConfigError, add_location, check_named
from isogloss.core.languages import check_language, is_built_in
from isogloss.core.run_parts import Count, Whole
from isogloss.data.corpus import Split, two_languages
from isogloss.data.sources import Sources, combined_fingerprint
from isogloss.features.translation.label_projection import WAYS, TagWay
from isogloss.features.translation.modelling import TranslationModelling
from isogloss.features.translation.models import check_subwords, translation_model
from isogloss.features.translation.run import (
    TrainTranslator,
    Translate,
    TranslationModel,
    language_to_translate,
    last_step,
)
from isogloss.methods import TRANSLATION_TRAINING
from isogloss.planning.alignments import aligner_of
from isogloss.planning.translations import (
    RecipeTranslator,
    TranslationPlanner,
    TranslationRequest,
    needs_tags,
)
from isogloss.recipes.checking import Kinds, build_checked, names, part_of, refuse_empty_or_twice
from isogloss.recipes.recipe import Language, Recipe, Table
from isogloss.runs.pretrained import model_folders
from isogloss.tasks import find_task
from isogloss.tasks.lemmas import Lemmatization
from isogloss.training.setting import Method
from isogloss.translators import TRANSLATORS
from isogloss.translators.setting import Translator

TRANSLATOR_KINDS = Kinds("translator", TRANSLATORS, "translators", Translator)
TRAINING_KINDS = Kinds(
    "way to train a translator",
    TRANSLATION_TRAINING,
    default="translation-modelling",
    noun="training",
)

ANY = ""
"""The direction of a model used for all directions."""


@dataclass(frozen=True, kw_only=True)
class TranslateTable:
    """Fields of [translate] in addition to the translator's. A list in a translator's field makes several."""

    name: str
    """The translator."""
    model: str | dict[str, str] = ""
    """Its model, where it needs one: a folder or hub name for all directions, or one for each ("en-es")."""
    train: Table = field(default_factory=dict)
    """Table of a translation model that is trained first, instead of an existing one."""
    answers: tuple[str, ...] = ()
    """Ways to find the answers to questions in translations, in order: links (the translator's), marks,
    alignment (by the aligner of [align]), alone (the answer is translated without its passage). Default:
    links if the translator has them, else marks, and then ``alone``."""
    scored: tuple[str, ...] = ()
    """Corpora of translations whose test split is translated, both ways, and scored by chrF."""
    pairs: tuple[Language, ...] = ()
    """Pairs of languages that are scored. Default: the pairs the model is trained on."""


@dataclass(frozen=True, kw_only=True)
class TrainTable:
    """Fields of [translate.train], in addition to the fields of the training."""

    name: str = "translation-modelling"
    """Optimization of the training."""
    bitext: str
    """Corpus of translations ("bitext:bible"), or several joined by +."""
    pairs: tuple[Language, ...]
    """Pairs of languages. One model is trained on all of them, in both directions."""
    dev: str = ""
    """Corpus of translations whose dev split chooses the checkpoint. Default: none."""
    examples: Count = 0
    """Translations of each pair, drawn at random. Default: 0, for all."""
    seed: Whole = 0
    """Seed of initial weights, order and dropout."""


@dataclass(frozen=True, kw_only=True)
class PlannedTranslator:
    """A translator of a recipe with its models, already checked: ``RecipeTranslator``."""

    translator: Translator
    models: Mapping[str, TranslationModel]
    """By direction."""
    answers: tuple[str, ...]
    align: Table
    trained: TrainTranslator | None = None
    """The model for all directions, where the recipe trains one."""
    label: str = ""
    """The fields in which it differs from the recipe's other translators. Empty if it is the only one."""

    def run(self, request: TranslationRequest, sources: Sources) -> Translate:
        """Build the run that translates as requested. Raises ConfigError if that is impossible."""
        source, target = last_step(request.languages)
        start = self._start(request, sources)
        with add_location("translate"):
            with sources.assuming_packages():
                self.translator.check(source, target)
            corpus = sources.corpus(request.corpus)
            language = language_to_translate(request.corpus, request.languages)
            treebanks = tuple(pair for pair in request.treebanks if pair[0] == language)
            limit = request.examples
            data = sources.fingerprint(
                request.corpus, language, request.split, treebanks=treebanks, examples=limit
            )
            answers = self._answers(request.purpose) if "qa" in corpus.tasks else None
            way: TagWay = "links" if self.translator.knows_links else "alignment"
            tags, links = (way if is_needed else None for is_needed in (request.tags, request.links))
            aligns = "alignment" in (*(answers or ()), tags, links)
            aligner = aligner_of(self.align) if aligns else None
            model = self.model(source, target, sources)
        encoder = request.encoder if aligner is not None and aligner.needs_encoder else None
        if encoder is not None:
            with add_location("align"):
                encoder.original.check_layers(aligner, sources.encoders)
        return Translate(
            corpus=request.corpus,
            languages=request.languages,
            split=request.split,
            translator=self.translator,
            model=model,
            start=start,
            answers=answers,
            tags=tags,
            links=links,
            aligner=aligner,
            encoder=encoder.original if encoder is not None else None,
            treebanks=() if start else treebanks,
            examples=0 if start else limit,
            data="" if start else data,
        )

    def _start(self, request: TranslationRequest, sources: Sources) -> Translate | None:
        languages, _, _ = request.languages.rpartition("-")
        return self.run(replace(request, languages=languages), sources) if "-" in languages else None

    def _answers(self, purpose: str) -> tuple[str, ...]:
        """Return the ways to find answers for a purpose. Marks in a test set would reveal the answers."""
        if purpose == "pair":
            return ()
        link_way = "links" if self.translator.knows_links else "marks"
        ways: tuple[str, ...] = self.answers or (link_way, "alone")
        if purpose == "test":
            ways = tuple(way for way in ways if way != "marks")
        return ways or ("alone",)

    def model(self, source: str, target: str, sources: Sources) -> TranslationModel | None:
        """Return the model for a direction, or None if the translator needs no model.

        Raises ConfigError if there is no model for the direction.
        """
        if not self.translator.needs_model:
            return None
        direction = f"{source}-{target}"
        model = self.models.get(direction) or self.models.get(ANY)
        if model is None:
            hint = f" There are models for {', '.join(self.models)}." if self.models else ""
            built_in = is_built_in(source) and is_built_in(target)
            advice = ", or take the translator of these languages, built-in" if built_in else ""
            raise ConfigError(
                f"{self.translator.name} needs a model for {direction}.{hint} Name one (model), "
                f"or train one ([translate.train]){advice}."
            )
        if isinstance(model, TrainTranslator):
            model.check_direction(source, target)
        elif folder := model.folder(sources.encoders):
            check_subwords(folder, source, target)
        return model

    def check_labels(self, task: str, method: Method | None) -> None:
        """Raise ConfigError if labels are needed that translation loses."""
        check_labels(task, method)


def check_labels(task: str, method: Method | None) -> None:
    """Raise ConfigError if labels are needed that translation loses.

    ``method`` is the one that trains on translations, or None if they are test inputs.
    """
    kind = find_task(task)
    unit = kind.labels_are
    if isinstance(kind, Lemmatization) and method is not None and needs_tags(task, method):
        raise ConfigError(
            f"labels of {task} edit the form of a word, and a translation has different words, so "
            f"{method.name} has no labels to train on. Remove [translate] and read translations with lemmas "
            "from files, or choose a method whose teacher labels translations (x-mixup)."
        )
    if unit in ("example", "option", "span"):
        return
    if method is None:
        raise ConfigError(
            f"labels of {task} belong to words, and a translation has others, so a translated test "
            "set has none. Measure it for tasks that label texts, choose or find answers, or leave inputs "
            "out."
        )
    if unit != "word":
        raise ConfigError(
            f"labels of {task} belong to words and do not outlive translation, so {method.name} "
            "finds none to train on. Leave [translate] out and read translations with labels from files, or "
            "choose a task of tagging: tags are carried along word links."
        )


def models_named(table: Mapping[str, object]) -> list[str]:
    """List the models that a [translate] table names. Other checks report values of other types."""
    model = table.get("model")
    if isinstance(model, Mapping):
        return [source for source in model.values() if isinstance(source, str)]
    return [model] if model and isinstance(model, str) else []


def find_models(table: Mapping[str, object]) -> dict[str, str]:
    """Return the folders of the models that a [translate] table names, by fingerprint."""
    return model_folders(models_named(table), translation_model)


def _find_models_of_recipe(table: Mapping[str, object]) -> dict[str, str]:
    with add_location("translate.model"):
        return find_models(table)


def plan_translators(recipe: Recipe, sources: Sources) -> tuple[PlannedTranslator, ...]:
    """Build the translators of a recipe's [translate] table."""
    with add_location("translate"):
        return tuple(_translators(recipe.translate, recipe.align, sources))


def _translators(table: Table, align: Table, sources: Sources) -> Iterator[PlannedTranslator]:
    kind = TRANSLATOR_KINDS.choose(table, TranslateTable)
    choice = part_of(table, TranslateTable)
    lists = {
        key: value if isinstance(value, list) else [value]
        for key, value in table.items()
        if key in names(kind)
    }
    for key, values in lists.items():
        refuse_empty_or_twice(values, f".{key}")
    _check_answers(choice, kind.knows_links)
    trained_model = _plan_training(choice, kind.needs_model, sources)
    models = {ANY: trained_model} if trained_model else _existing(choice)
    several = [key for key, values in lists.items() if len(values) > 1]
    for combination in product(*lists.values()):
        settings = dict(zip(lists, combination, strict=True))
        yield PlannedTranslator(
            translator=build_checked(kind, settings),
            models=models,
            answers=choice.answers,
            align=align,
            trained=trained_model,
            label=", ".join(f"{key}={settings[key]}" for key in several),
        )


def _plan_scored(
    recipe: Recipe, translators: Sequence[RecipeTranslator], sources: Sources
) -> Iterator[TrainTranslator | Translate]:
    """Yield the runs of [translate] itself: the model it trains, and scored translations."""
    planned_translators = cast(Sequence[PlannedTranslator], translators)
    model = planned_translators[0].trained
    if model:
        yield model
    choice = part_of(recipe.translate, TranslateTable)
    pairs = choice.pairs or (model.pairs if model else ())
    if choice.scored and not pairs:
        raise ConfigError('translate.scored: between which languages? Add pairs = ["en-es"].')
    for translator, corpus, pair in product(planned_translators, choice.scored, pairs):
        with add_location("translate.scored"):
            sources.needs(corpus, "bitext")
        source, second = two_languages(pair)
        for way in (pair, f"{second}-{source}"):
            request = TranslationRequest(corpus=corpus, languages=way, split="test")
            yield translator.run(request, sources)


def _plan_training(choice: TranslateTable, is_needed: bool, sources: Sources) -> TrainTranslator | None:
    if choice.model and choice.train:
        raise ConfigError("give either model (one that exists) or train (make one), not both.")
    if (choice.model or choice.train) and not is_needed:
        raise ConfigError(f"translator {choice.name} takes no model. Remove it.")
    if not choice.train:
        return None
    with add_location(".train"):
        method = cast(TranslationModelling, TRAINING_KINDS.read(choice.train, TrainTable))
        table = part_of(choice.train, TrainTable)
        refuse_empty_or_twice(table.pairs, ".pairs")
        with add_location(".bitext"):
            files = _bitext_files("train", table.bitext, table.examples, table.pairs, sources)
        if table.dev:
            with add_location(".dev"):
                files += _bitext_files("dev", table.dev, method.dev_sentences, table.pairs, sources)
        return TrainTranslator(
            bitext=table.bitext,
            pairs=table.pairs,
            method=method,
            dev=table.dev,
            examples=table.examples,
            seed=table.seed,
            data=combined_fingerprint(files),
        )


def _existing(choice: TranslateTable) -> dict[str, TranslationModel]:
    """Return the existing models by direction."""
    direction_models = choice.model if isinstance(choice.model, dict) else {ANY: choice.model}
    models: dict[str, TranslationModel] = {}
    for direction, source in direction_models.items() if choice.model else ():
        with add_location(".model"):
            if direction:
                two_languages(direction)
            models[direction] = translation_model(source)
    return models


def _bitext_files(
    split: Split, corpus: str, limit: int, pairs: tuple[str, ...], sources: Sources
) -> list[str]:
    sources.needs(corpus, "bitext")
    for pair in pairs:
        for language in two_languages(pair):
            check_language(language, "pairs")
    return [sources.fingerprint(corpus, pair, split, examples=limit) for pair in pairs]


def _check_answers(choice: TranslateTable, knows_links: bool) -> None:
    check_named(".answers", "way to find them again", WAYS, *choice.answers)
    if "links" in choice.answers and not knows_links:
        raise ConfigError(
            f".answers: translator {choice.name} does not link words. Take marks, alignment or alone."
        )


PLANNER = TranslationPlanner(
    find_models=_find_models_of_recipe, translators=plan_translators, scored=_plan_scored
)
"""The planner of [translate]."""
