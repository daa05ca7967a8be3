"""Translations: train models on bitext, and translate examples with their labels."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, cast

from isogloss.aligners.setting import Aligner, AlignSetting
from isogloss.core.errors import ConfigError, RunError
from isogloss.core.identity import identity
from isogloss.core.rows import as_row
from isogloss.core.run_parts import Count, Whole
from isogloss.data.corpus import Split
from isogloss.data.examples import Example, TaggedSentence, Translation
from isogloss.data.projection.example_texts import Translated
from isogloss.data.sources import Sources, Treebanks
from isogloss.features.translation.example_files import read_examples, write_examples
from isogloss.features.translation.label_projection import (
    Projection,
    TagWay,
    TranslatedExamples,
    Way,
    translate_examples,
)
from isogloss.features.translation.modelling import TranslationModelling, TranslationSetting
from isogloss.features.translation.rows import TranslatedSplitRow
from isogloss.features.translation.scores import bleu, chrf, signature
from isogloss.runs.estimates import Folders, scoring, training_operations
from isogloss.runs.pretrained import Pretrained
from isogloss.runs.run import Encoder, Run, RunContext, RunResult, SplitRead, TranslatedSplit
from isogloss.runs.splits import split_read, translator_label
from isogloss.training.memory import Load, Machine, Shape, training_memory
from isogloss.translators.setting import TranslateSetting, Translator

EXAMPLES = "examples.jsonl"
"""File of translated examples, one per line."""

CROSS_ATTENTION = 1.5
"""Cost of a decoder layer, in encoder layers."""


@dataclass(frozen=True, kw_only=True)
class TrainTranslator(Run):
    """Train a translation model on bitext, for both directions of every pair."""

    name: ClassVar[str] = "train-translator"
    trains: ClassVar[bool] = True
    bitext: str
    """Corpus of translations."""
    pairs: tuple[str, ...]
    """Pairs of languages, as in en-es."""
    method: TranslationModelling
    """Size, length and optimization."""
    dev: str = ""
    """Corpus of translations whose dev split chooses the checkpoint. Empty for none."""
    examples: Count = 0
    """Translations of each pair, drawn at random. 0 for all."""
    seed: Whole = 0
    """Seed of initial weights, order and dropout."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    @property
    def hyperparameters(self) -> object:  # noqa: D102
        return self.method

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:  # noqa: D102
        splits = []
        for pair in self.pairs:
            splits += [SplitRead(corpus=self.bitext, language=pair, split="train", examples=self.examples)]
            splits += [SplitRead(corpus=self.dev, language=pair, split="dev")] if self.dev else []
        return tuple(splits)

    @property
    def label(self) -> str:
        """Name in tables: the beginning of the id."""
        return f"trained {identity(self)[:6]}"

    @property
    def title(self) -> str:  # noqa: D102
        size = f"{self.examples} of " if self.examples else ""
        return f"translator, {self.label}: {size}{self.bitext} {' '.join(self.pairs)}"

    def translator_shape(self) -> Shape:
        """Return the shape of its model, in which decoder layers count as additional encoder layers."""
        method = self.method
        layer = 4 * method.dim**2 + 2 * method.dim * method.feed_forward
        layers = round(method.layers * (1 + CROSS_ATTENTION))
        return Shape(
            parameters=method.vocabulary * method.dim + layers * layer,
            layers=layers,
            dim=method.dim,
            heads=method.heads,
            feed_forward=method.feed_forward,
            vocabulary=method.vocabulary,
            dropout=method.dropout > 0,
        )

    def check_direction(self, source: str, target: str) -> None:
        """Raise ConfigError unless it is trained on these languages."""
        if not {f"{source}-{target}", f"{target}-{source}"} & set(self.pairs):
            raise ConfigError(
                f"train.pairs: the model is trained on {', '.join(self.pairs)}, so it cannot "
                f"translate {source}-{target}. Add the pair."
            )

    def memory(self, folders: Folders, machine: Machine) -> int:  # noqa: ARG002, D102
        method = self.method
        load = Load(
            rows=max(1, method.batch_subwords // method.longest),
            length=method.longest,
            predicted=method.batch_subwords,
        )
        return training_memory(
            self.translator_shape(), load, method.updates, machine, best_weights=bool(self.dev)
        )

    def operations(self, folders: Folders) -> float:  # noqa: ARG002, D102
        subwords = self.method.steps * self.method.batch_subwords
        return training_operations(self.translator_shape(), subwords, self.method.longest, predicted=1)

    def make(self, context: RunContext) -> RunResult:
        """Train the translation model."""
        from isogloss.encoders.saving import save_model
        from isogloss.training.distributed import is_main_process

        def read(corpus: str, split: Split, count: int) -> dict[str, list[Translation]]:
            examples = partial(context.sources.examples, corpus, split=split, examples=count)
            return {pair: cast(list[Translation], examples(pair)) for pair in self.pairs}

        setting = TranslationSetting(
            bitext=read(self.bitext, "train", self.examples),
            dev=read(self.dev, "dev", self.method.dev_sentences) if self.dev else {},
            folder=context.work(self),
            seed=self.seed,
            on_progress=context.on_progress,
        )
        result = context.with_precision(self.method).train(setting)
        if is_main_process():
            save_model(result.model, result.tokenizer, context.store.model(self))
        return RunResult(result.rows)


TranslationModel = TrainTranslator | Pretrained


@dataclass(frozen=True, kw_only=True)
class Translate(TranslatedSplit):
    """Translate the examples of a split, under the same ids."""

    name: ClassVar[str] = "translate"
    libraries: ClassVar[tuple[str, ...]] = ("sacrebleu",)
    corpus: str
    """Corpus of any kind: labelled, text, or translations (of which the first texts are translated)."""
    languages: str
    """Languages of the translation: en-sw, or en-sw-en for there and back."""
    split: Split = "train"
    """Split that is translated."""
    translator: Translator
    """The translator."""
    model: TranslationModel | None = None
    """The model, if the translator needs one."""
    start: "Translate | None" = None
    """The translation that is translated back. None if the corpus itself is translated."""
    answers: tuple[str, ...] | None = None
    """Ways to find the answers to questions in the translation, tried in order. Empty: questions are
    translated without their answers. None for examples without answers."""
    tags: TagWay | None = None
    """Projection of tags to the translation: links or alignment. None drops the tags."""
    links: TagWay | None = None
    """Word links that the translation keeps: links (the translator's) or alignment. None keeps no links."""
    aligner: Aligner | None = None
    """Word aligner, if alignment finds labels or links."""
    encoder: Encoder | None = None
    """The encoder whose states the aligner compares."""
    treebanks: Treebanks = ()
    """Treebanks of languages, for a corpus with several."""
    examples: Count = 0
    """Examples that are translated, drawn at random. 0 for all."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    @property
    def model_label(self) -> str:  # noqa: D102
        return self.model.label if self.model else ""

    @property
    def direction(self) -> tuple[str, str]:
        """Languages of the last translation: (sw, en) of en-sw-en."""
        return last_step(self.languages)

    @property
    def language_read(self) -> str:
        """Language in which the corpus is read. For a corpus of translations it is a pair."""
        return language_to_translate(self.corpus, self.languages)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:  # noqa: D102
        split = split_read(self.corpus, self.language_read, self.split, self.examples, self.treebanks)
        return () if self.start else (split,)

    @property
    def title(self) -> str:  # noqa: D102
        return f"translation: {self.corpus} {self.languages} {self.split} by {translator_label([self])}"

    @property
    def downloads(self) -> Mapping[str, Callable[[str], object]]:  # noqa: D102
        from isogloss.features.translation.seq2seq_models import seq2seq_folder

        translators = dict.fromkeys(self.model.download if self.model else (), seq2seq_folder)
        return {**super().downloads, **translators}

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: ARG002, D102
        if self.model is None:
            return 0
        if not isinstance(self.model, TrainTranslator):  # The shape of other models is unknown.
            return None
        return scoring(self.model.translator_shape(), machine)

    def read_examples(self, context: RunContext) -> list[Example]:
        """Read the translated examples."""
        return list(read_examples(context.store.folder(self) / EXAMPLES))

    def make(self, context: RunContext) -> RunResult:
        """Translate a split, and score the translations if the split has references."""
        if self.start is not None:
            originals = self.start.read_examples(context)
        else:
            originals = context.sources.examples(
                self.corpus, self.language_read, self.split, treebanks=self.treebanks, examples=self.examples
            )
        translation = translate_examples(
            originals,
            partial(self._translations, context),
            projection=self._projection(context),
            language=self.direction[1],
        )
        split = f"{self.corpus} {self.languages} {self.split}"
        if not translation.examples:
            raise RunError(
                f"{split}: of {len(originals)} examples no label was found again in the translation. Try "
                f"other ways (translate.answers, [align]), or another translator."
            )
        write_examples(context.store.folder(self) / EXAMPLES, translation.examples)
        row = self._row(originals, translation)
        return RunResult([as_row(row)], tuple(_warnings(split, len(originals), translation)))

    def _translations(self, context: RunContext, texts: Iterable[str]) -> Iterator[Translated]:
        source, target = self.direction
        texts = list(texts)
        setting = TranslateSetting(
            source=source,
            target=target,
            model="" if self.model is None else self.model.weights(context),
            folder=context.work(self),
            precision=context.precision,
            total=len(texts),
            on_progress=context.on_progress,
        )
        return self.translator.translate(texts, setting)

    def _projection(self, context: RunContext) -> Projection | None:
        if self.answers is None and self.tags is None and self.links is None:
            return None
        answers = cast(tuple[Way, ...], self.answers or ())
        find_links = None if self.aligner is None else partial(self._find_links, context, self.aligner)
        return Projection(answers=answers, tags=self.tags, links=self.links, find_links=find_links)

    def _find_links(
        self, context: RunContext, aligner: Aligner, pairs: Sequence[Translation]
    ) -> Iterator[Iterable[tuple[int, int]]]:
        """Link the words of texts and their translations."""
        setting = AlignSetting(
            pairs=list(pairs),
            encoder="" if self.encoder is None else self.encoder.weights(context),
            precision=context.precision,
            on_progress=context.on_progress,
        )
        return (alignment.links for alignment in aligner.align(setting))

    def _row(self, originals: Sequence[Example], translation: TranslatedExamples) -> TranslatedSplitRow:
        sentences = [example for example in translation.examples if isinstance(example, TaggedSentence)]
        tags = [tag for sentence in sentences for tag in sentence.tags]
        row = TranslatedSplitRow(
            examples=len(originals),
            translated=len(translation.examples),
            lost=len(translation.lost),
            cuts=translation.cuts,
            tagged=sum(bool(tag) for tag in tags) / len(tags) if tags else None,
        )
        references = [example.second for example in originals if isinstance(example, Translation)]
        if not references:
            return row
        hypotheses = [example.second for example in translation.examples if isinstance(example, Translation)]
        _, language = self.direction
        return replace(
            row,
            metric="chrf",
            score=chrf(references, hypotheses),
            bleu=bleu(references, hypotheses, language),
            signature=signature(language),
        )


def _warnings(split: str, originals: int, translation: TranslatedExamples) -> Iterator[str]:
    if translation.lost:
        yield (
            f"{split}: skipped {len(translation.lost)} of {originals} examples, whose labels were not found "
            f"in the translation."
        )
    if translation.cuts:
        yield f"{split}: texts too long for the translator were cut at {translation.cuts} places."


def last_step(languages: str) -> tuple[str, str]:
    """Return the languages of the last translation: (sw, en) of en-sw-en."""
    _, source, target = ("", *languages.split("-"))[-3:]
    return source, target


def language_to_translate(corpus: str, languages: str) -> str:
    """Return the language in which a corpus is translated, or the pair for a corpus of translations."""
    return languages if "bitext" in Sources().corpus(corpus).tasks else languages.partition("-")[0]
