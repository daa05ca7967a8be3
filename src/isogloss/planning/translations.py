"""From a recipe's [translate] table to the translations its runs read, and the models that make them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from typing import Literal

from isogloss.core.errors import ConfigError, check_named, located
from isogloss.core.languages import check_language, is_built_in
from isogloss.core.run_parts import Count, Whole, precision_of
from isogloss.data.corpus import Split, is_translation
from isogloss.data.formats.parallel_text import two_languages
from isogloss.data.projection.label_projection import WAYS, TagWay
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.encoders.seq2seq import load_subwords, seq2seq_folder
from isogloss.methods import TRANSLATION_TRAINING, Method
from isogloss.recipes.checking import Kinds, checked, names, part_of, refuse_empty_or_twice
from isogloss.recipes.recipe import Language, Recipe, Table
from isogloss.runs.alignments import aligner_of
from isogloss.runs.encoder_runs import Encoder, Pretrained
from isogloss.runs.encoders import check_layers_read, in_folder, model_folder, on_hub, places
from isogloss.runs.runs import (
    Run,
    TrainTranslator,
    Translate,
    TranslationModel,
    language_to_translate,
    last_step,
)
from isogloss.tasks import find_task
from isogloss.training.precision import PRECISIONS
from isogloss.translators import TRANSLATORS, Translator

TRANSLATOR_KINDS = Kinds("translator", TRANSLATORS)
TRAINING_KINDS = Kinds(
    "way to train a translator",
    TRANSLATION_TRAINING,
    default="translation-modelling",
    noun="training",
)


def translation_model(source: str) -> Pretrained:
    """Name a translation model without the place where this machine keeps it, as encoders are named."""
    folder = model_folder(source)
    if folder is None:
        return on_hub(source)
    seq2seq_folder(folder)
    return in_folder(folder)


def models_named(table: Mapping[str, object]) -> list[str]:
    """List the models a [translate] table names; anything else there is refused later, with its location."""
    model = table.get("model") or ()
    named = model.values() if isinstance(model, Mapping) else (model,) if isinstance(model, str) else ()
    return [source for source in named if isinstance(source, str)]


def translator_places(sources: Iterable[str]) -> dict[str, str]:
    """Return where translation models are on this machine, by fingerprint."""
    return places(sources, translation_model)


@lru_cache(maxsize=256)
def check_direction(folder: str, source: str, target: str) -> None:
    """Raise ModelError unless a model on this machine has subwords for these languages."""
    load_subwords(folder, (source, target))


def fetch_translators(runs: Iterable[Run]) -> None:
    """Make sure that translation models of the hub are whole on this machine."""
    models = [run.model for run in runs if isinstance(run, Translate)]
    for name in sorted({one.pinned for one in models if isinstance(one, Pretrained) and not one.data}):
        seq2seq_folder(name)


ANY = ""
"""The direction of a model used for all directions."""


@dataclass(frozen=True, kw_only=True)
class TranslateTable:
    """The fields of [translate] besides the translator's own; a list in one of those makes several."""

    name: str
    """The translator."""
    model: str | dict[str, str] = ""
    """Its model, where it needs one: a folder or hub name for all directions, or one for each ("en-es")."""
    train: Table = field(default_factory=dict)
    """A model that is trained first, instead of one that exists: a table of its own."""
    answers: tuple[str, ...] = ()
    """Ways to find the answers to questions again, in order: links (the translator's own), marks,
    alignment (by the aligner of [align]), alone; links or else marks, then alone, when left out."""
    scored: tuple[str, ...] = ()
    """Corpora of translations whose test split is translated, both ways, and scored by chrF."""
    pairs: tuple[Language, ...] = ()
    """Pairs of languages that are scored; those the model is trained on when left out."""


@dataclass(frozen=True, kw_only=True)
class TrainTable:
    """The fields of [translate.train] besides those of the training."""

    name: str = "translation-modelling"
    """How it is trained."""
    bitext: str
    """Corpus of translations ("bitext:bible"); several are joined by +."""
    pairs: tuple[Language, ...]
    """Pairs of languages; one model is trained on all of them, both ways."""
    dev: str = ""
    """Corpus of translations whose dev split chooses among the weights on the way; none when left out."""
    examples: Count = 0
    """Translations of each pair, drawn at random; 0 for all."""
    seed: Whole = 0
    """Seed of initial weights, order and dropout."""


@dataclass(frozen=True, kw_only=True)
class TranslationRequest:
    """What is to be translated, and for which use."""

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
    """Whose states a word aligner may compare."""


@dataclass(frozen=True, kw_only=True)
class RecipeTranslator:
    """A translator of a recipe, with its models, checked."""

    translator: Translator
    models: Mapping[str, TranslationModel]
    """By direction."""
    answers: tuple[str, ...]
    align: Table
    label: str = ""
    """The fields in which it differs from others of the recipe; empty when there is one."""

    def run(self, request: TranslationRequest, sources: Sources) -> Translate:
        """Build the run that translates as requested; ConfigError where this cannot be."""
        source, target = last_step(request.languages)
        start = self._start(request, sources)
        with located("translate"):
            self.translator.check(source, target)
            corpus = sources.corpus(request.corpus)
            code = language_to_translate(request.corpus, request.languages)
            treebanks, limit = tuple(pair for pair in request.treebanks if pair[0] == code), request.examples
            data = sources.fingerprint(
                request.corpus, code, request.split, treebanks=treebanks, examples=limit
            )
            answers = self._answers(request.purpose) if "qa" in corpus.tasks else None
            best: TagWay = "links" if self.translator.knows_links else "alignment"
            tags, links = (best if needed else None for needed in (request.tags, request.links))
            aligns = "alignment" in (*(answers or ()), tags, links)
            aligner = aligner_of(self.align) if aligns else None
            model = self.model(source, target, sources)
        compared = request.encoder if aligner is not None and aligner.needs_encoder else None
        if compared is not None:
            with located("align"):
                check_layers_read(aligner, compared.original, sources.encoders)
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
            encoder=compared.original if compared is not None else None,
            treebanks=() if start else treebanks,
            examples=0 if start else limit,
            data="" if start else data,
        )

    def _start(self, request: TranslationRequest, sources: Sources) -> Translate | None:
        before, _, _ = request.languages.rpartition("-")
        return self.run(replace(request, languages=before), sources) if "-" in before else None

    def _answers(self, purpose: str) -> tuple[str, ...]:
        """Return the ways for a purpose; marks in a text a model is tested on would give answers away."""
        if purpose == "pair":
            return ()
        best = "links" if self.translator.knows_links else "marks"
        ways = self.answers or (best, "alone")
        kept = ways if purpose == "train" else tuple(way for way in ways if way != "marks")
        return kept or ("alone",)

    def model(self, source: str, target: str, sources: Sources) -> TranslationModel | None:
        """Return the model for a direction; ConfigError where there is none."""
        if not self.translator.needs_model:
            return None
        direction = f"{source}-{target}"
        model = self.models.get(direction) or self.models.get(ANY)
        if model is None:
            there = f" There are models for {', '.join(self.models)}." if self.models else ""
            both = is_built_in(source) and is_built_in(target)
            perfect = ", or take the translator of these languages, built-in" if both else ""
            raise ConfigError(
                f"{self.translator.name} needs a model for {direction}.{there} Name one (model), "
                f"or train one ([translate.train]){perfect}."
            )
        if isinstance(model, TrainTranslator) and not {direction, f"{target}-{source}"} & set(model.pairs):
            raise ConfigError(
                f"train.pairs: the model is trained on {', '.join(model.pairs)}, so it cannot "
                f"translate {direction}. Add the pair."
            )
        if isinstance(model, Pretrained) and (folder := sources.encoders.get(model.data)):
            check_direction(folder, source, target)
        return model


def needs_tags(task: str, method: Method) -> bool:
    """Return whether a method trains on the tags that translated words have."""
    reads, of_words = method.reads(("en",), ("sw",)), find_task(task).labels_are == "word"
    return of_words and any(map(is_translation, reads.train)) and not reads.needs_teacher(find_task(task))


def check_links(method: Method) -> None:
    """Raise ConfigError where a method reads word links, and its translations are read from files."""
    if method.reads((), ()).links:
        raise ConfigError(
            f"attends: {method.name} reads which words of a translation are linked, and files of "
            "translations do not say. Add [translate] (its own links, or those of [align]), or leave "
            "attends out."
        )


def check_labels(task: str, method: Method | None) -> None:
    """Raise ConfigError where labels are needed that are lost in translation.

    ``method`` is what trains on translations; None where they are what a model is tested on.
    """
    unit = find_task(task).labels_are
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


def translators(recipe: Recipe, sources: Sources) -> tuple[RecipeTranslator, ...]:
    """Build the translators that a recipe's [translate] asks for; none without such a table."""
    if not recipe.translate:
        return ()
    with located("translate"):
        return tuple(_translators(recipe.translate, recipe.align, sources))


def _translators(table: Table, align: Table, sources: Sources) -> Iterator[RecipeTranslator]:
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
    models = _models(choice, kind.needs_model, sources)
    several = [key for key, values in lists.items() if len(values) > 1]
    for combination in product(*lists.values()):
        chosen = dict(zip(lists, combination, strict=True))
        yield RecipeTranslator(
            translator=checked(kind, chosen),
            models=models,
            answers=choice.answers,
            align=align,
            label=", ".join(f"{key}={chosen[key]}" for key in several),
        )


def scored_translations(
    recipe: Recipe, by: tuple[RecipeTranslator, ...], sources: Sources
) -> Iterator[TrainTranslator | Translate]:
    """Yield the runs [translate] itself asks for: the model it trains, and scored translations."""
    if not by:
        return
    yield from (model for model in by[0].models.values() if isinstance(model, TrainTranslator))
    choice = part_of(recipe.translate, TranslateTable)
    trained = [model.pairs for model in by[0].models.values() if isinstance(model, TrainTranslator)]
    pairs = choice.pairs or (trained[0] if trained else ())
    if choice.scored and not pairs:
        raise ConfigError('translate.scored: between which languages? Add pairs = ["en-es"].')
    for one, corpus, pair in product(by, choice.scored, pairs):
        with located("translate.scored"):
            sources.needs(corpus, "bitext")
        first, second = two_languages(pair)
        for way in (pair, f"{second}-{first}"):
            yield one.run(TranslationRequest(corpus=corpus, languages=way, split="test"), sources)


def _models(choice: TranslateTable, needed: bool, sources: Sources) -> dict[str, TranslationModel]:
    if choice.model and choice.train:
        raise ConfigError("give either model (one that exists) or train (make one), not both.")
    if (choice.model or choice.train) and not needed:
        raise ConfigError(f"translator {choice.name} takes no model. Leave it out.")
    if choice.train:
        with located(".train"):
            return {ANY: _trained(choice.train, sources)}
    named = choice.model if isinstance(choice.model, dict) else {ANY: choice.model} if choice.model else {}
    found: dict[str, TranslationModel] = {}
    for direction, source in named.items():
        with located(".model"):
            if direction:
                two_languages(direction)
            found[direction] = translation_model(source)
    return found


def _trained(table: Table, sources: Sources) -> TrainTranslator:
    method, choice = TRAINING_KINDS.read(table, TrainTable), part_of(table, TrainTable)
    check_named("precision", "precision", PRECISIONS, precision_of(method))
    refuse_empty_or_twice(choice.pairs, ".pairs")
    with located(".bitext"):
        files = _bitext_files("train", choice.bitext, choice.examples, choice.pairs, sources)
    if choice.dev:
        with located(".dev"):
            files += _bitext_files("dev", choice.dev, method.dev_sentences, choice.pairs, sources)
    return TrainTranslator(
        bitext=choice.bitext,
        pairs=choice.pairs,
        method=method,
        dev=choice.dev,
        examples=choice.examples,
        seed=choice.seed,
        data=combined_fingerprint(files),
    )


def _bitext_files(
    split: Split, corpus: str, limit: int, pairs: tuple[str, ...], sources: Sources
) -> list[str]:
    """Return the fingerprint of each pair's files."""
    sources.needs(corpus, "bitext")
    for pair in pairs:
        for code in two_languages(pair):
            check_language(code, "pairs")
    return [sources.fingerprint(corpus, pair, split, examples=limit) for pair in pairs]


def _check_answers(choice: TranslateTable, knows_links: bool) -> None:
    check_named(".answers", "way to find them again", WAYS, *choice.answers)
    if "links" in choice.answers and not knows_links:
        raise ConfigError(
            f".answers: translator {choice.name} does not tell which words belong together. Take "
            "marks, alignment or alone."
        )
