"""Runs that make translations, models and measurements.

A run knows which splits it reads, the precision it asks for and what it is called in tables and titles.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from math import fsum
from typing import ClassVar

from isogloss.aligners import Aligner
from isogloss.core.identity import identity
from isogloss.core.run_parts import Count, Named, Optimization, Whole, precision_of, values_of
from isogloss.data.corpus import Split
from isogloss.data.projection.label_projection import TagWay
from isogloss.data.sources import Sources, Treebanks
from isogloss.diagnostics import ON_PAIRS, Diagnostic
from isogloss.diagnostics.mining import TUNING_SPLIT
from isogloss.methods import AuxiliaryLoss, Method, Peft
from isogloss.methods.average import Average
from isogloss.methods.translation_modelling import TranslationModelling
from isogloss.runs.encoder_runs import Adjust, Align, Encoder, Pretrain, Pretrained, SplitRead
from isogloss.tasks import Task, find_task, task_names
from isogloss.training.evaluation import ORIGINAL_INPUTS, codes_read
from isogloss.translators import Translator


@dataclass(frozen=True, kw_only=True)
class TrainTranslator:
    """Make a translation model from bitext, for both directions of every pair."""

    name: ClassVar[str] = "train-translator"
    bitext: str
    """Corpus of translations."""
    pairs: tuple[str, ...]
    """Pairs of languages, as in en-es."""
    method: TranslationModelling
    """How: size, length and optimization."""
    dev: str = ""
    """Corpus of translations whose dev split chooses among the weights on the way; none when empty."""
    examples: Count = 0
    """Translations of each pair, drawn at random; 0 for all."""
    seed: Whole = 0
    """Seed of initial weights, order and dropout."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""

    @property
    def precision(self) -> str:
        """Precision asked for: auto, float32 or bfloat16."""
        return precision_of(self.method)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What is read before anything is made, to find broken lines."""
        found = []
        for pair in self.pairs:
            found += [SplitRead(corpus=self.bitext, language=pair, split="train", examples=self.examples)]
            found += [SplitRead(corpus=self.dev, language=pair, split="dev")] if self.dev else []
        return tuple(found)

    @property
    def label(self) -> str:
        """Name in tables: the beginning of the id."""
        return f"trained {identity(self)[:6]}"

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return ()

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        size = f"{self.examples} of " if self.examples else ""
        return f"translator, {self.label}: {size}{self.bitext} {' '.join(self.pairs)}"


@dataclass(frozen=True, kw_only=True)
class Translate:
    """Make translated examples, under the same ids, of a corpus's split."""

    name: ClassVar[str] = "translate"
    corpus: str
    """Corpus of any kind: with labels, of text, or of translations, whose first texts are translated."""
    languages: str
    """From and into: en-sw; en-sw-en goes back to where it came from."""
    split: Split = "train"
    """Split that is translated."""
    translator: Translator
    """How texts are translated."""
    model: TrainTranslator | Pretrained | None = None
    """The model, where the translator needs one."""
    start: "Translate | None" = None
    """The translation whose output is translated back; None where the corpus itself is translated."""
    answers: tuple[str, ...] | None = None
    """Ways to find the answers to questions in the translation, tried in order; when empty, questions are
    translated without their answers. None where nothing has answers."""
    tags: TagWay | None = None
    """How tags find their words in the translation: links or alignment; None leaves them behind."""
    links: TagWay | None = None
    """How words are linked to those of the translation, which then keeps the links: links (the translator's
    own) or alignment; None keeps none."""
    aligner: Aligner | None = None
    """Word aligner, where labels or links are found by alignment."""
    encoder: "Encoder | None" = None
    """The encoder whose states that aligner compares."""
    treebanks: Treebanks = ()
    """Treebank of a language where the corpus has several."""
    examples: Count = 0
    """Examples that are translated, drawn at random; 0 for all."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""
    precision: ClassVar[str] = "auto"

    @property
    def direction(self) -> tuple[str, str]:
        """What is translated from and into last: (sw, en) of en-sw-en."""
        return last_step(self.languages)

    @property
    def language_read(self) -> str:
        """Language, or pair of a corpus of translations, that the corpus is read in."""
        return language_to_translate(self.corpus, self.languages)

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What is read before anything is made, to find broken lines."""
        return () if self.start else (_split_read(self, self.language_read, self.split, self.examples),)

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return ()

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        return f"translation: {self.corpus} {self.languages} {self.split} by {translator_label([self])}"


@dataclass(frozen=True, kw_only=True)
class FineTune:
    """Make a model: an encoder, a corpus, languages, a method."""

    name: ClassVar[str] = "fine-tune"
    encoder: "Encoder"
    """The encoder it starts from."""
    corpus: str
    """Corpus with the labels."""
    task: str
    """Task of the corpus."""
    labels: tuple[str, ...] | None = None
    """The labels of the corpus, for a task of any labels; None for a task with labels of its own."""
    package: str | None = None
    """Package and version of the plug-in that adds the task; None for a task of the house."""
    method: Method
    """How: source-only, target-only, bilingual …"""
    auxiliary: AuxiliaryLoss | None = None
    """A loss added to the method's own; none when left out."""
    peft: Peft | None = None
    """Which weights are trained (LoRA …); all when left out."""
    source: tuple[str, ...]
    """Source languages; empty for a method that uses none."""
    target: tuple[str, ...] = ()
    """Target languages the method trains on; empty when it sees none."""
    optimization: Optimization = field(default_factory=Optimization)
    """Steps, rates, lengths."""
    start: "FineTune | None" = None
    """The model it starts from, head included; without one a new head is put on the encoder."""
    parts: "tuple[FineTune | Encoder, ...] | None" = None
    """What its weights are made of, in the order of the method's weights; None where they are trained."""
    aligned: tuple[Align, ...] | None = None
    """Bitext with word alignments, one for each pair of languages, for methods that read some."""
    translated: tuple[Translate, ...] | None = None
    """Translations it reads, where they are made and not read from the corpus's files."""
    teacher: "FineTune | None" = None
    """The model whose predictions are learned, for methods and auxiliary losses that need one."""
    original: "Encoder | None" = None
    """The encoder before it was adjusted, for an auxiliary loss that reads it."""
    treebanks: Treebanks = ()
    """Treebank of a language where the corpus has several: (("fr", "Sequoia"),)."""
    examples: Count = 0
    """Training examples of each language, drawn at random; 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language that choose the epoch, drawn at random; 0 for all."""
    seed: Whole = 0
    """Seed of the head's initial weights, the order of the data and dropout."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""

    @property
    def precision(self) -> str:
        """Precision asked for: auto, float32 or bfloat16."""
        return precision_of(self.optimization)

    @property
    def solves(self) -> Task:
        """The task with its labels."""
        return find_task(self.task, self.labels or ())

    @property
    def source_languages(self) -> tuple[str, ...]:
        """Source languages of the model or, where it names none, of the model it starts from."""
        return self.source if self.source or self.start is None else self.start.source_languages

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What is read before anything is made, to find broken lines."""
        reads = self.method.reads(self.source, self.target)
        added = self.auxiliary.reads(self.source, self.target).train if self.auxiliary else ()
        train = dict.fromkeys((*reads.train, *added))
        wanted = [_split_read(self, code, "train", self.examples) for code in train]
        wanted += [_split_read(self, code, "dev", self.dev_examples) for code in reads.dev]
        return _from_files(wanted, self.translated or ())

    @property
    def label(self) -> str:
        """Name in tables: the method, its fields that are not the default, the translator, the start."""
        if isinstance(self.method, Average):
            return f"{described(replace(self.method, weights=None))} of {self._parts_label(self.method)}"
        name = " + ".join(described(part) for part in (self.method, self.auxiliary, self.peft) if part)
        if self.translated:
            name = f"{name} by {translator_label(self.translated)}"
        return f"{name} after {self.start.label}" if self.start else name

    def _parts_label(self, method: Average) -> str:
        """Name what it is an average of: each kind of model once, with its weight where these differ."""
        parts = self.parts or ()
        weights: dict[str, list[float]] = {}
        for part, weight in zip(parts, method.weights_of(len(parts)), strict=True):
            weights.setdefault(part.label, []).append(weight)
        each = [f"{fsum(own):g} {label}" if method.weights else label for label, own in weights.items()]
        seeds = len({one.seed for one in parts if isinstance(one, FineTune)})
        return " + ".join(each) + (f", {seeds} seeds" if seeds > 1 else "")

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return (self.encoder,)

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        languages = "+".join((*self.source, *self.target))
        return f"{self.label}: {self.corpus} {self.task} {languages}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Make rows of numbers: a diagnostic of models, of encoders or of other measurements."""

    name: ClassVar[str] = "measure"
    diagnostic: Diagnostic
    """What is measured."""
    subjects: tuple["Run", ...]
    """The runs measured, in the diagnostic's order."""
    languages: tuple[str, ...] = ()
    """Languages measured; the source first where the diagnostic compares it with the others."""
    corpus: str = ""
    """Corpus it reads; empty when it reads none."""
    split: Split = "dev"
    """Split it reads."""
    inputs: str | None = None
    """How target inputs come: None (as they are), translated, or mixed with the source language."""
    aligned: tuple[Align, ...] | None = None
    """Word alignments of the bitext it reads, where it compares words; one for each pair of languages."""
    translated: tuple[Translate, ...] | None = None
    """Translations it reads, where they are made and not read from the corpus's files."""
    treebanks: Treebanks = ()
    """Treebank of a language where the corpus has several."""
    examples: Count = 0
    """Examples of each language, drawn at random; 0 for all."""
    data: str = ""
    """Fingerprint of the files read; the plan fills it in."""

    @property
    def precision(self) -> str:
        """Precision of the first of the runs measured."""
        return self.subjects[0].precision if self.subjects else "auto"

    @property
    def models(self) -> tuple[FineTune, ...]:
        """The fine-tuned models measured, those of the measurements it is made from included."""
        found: list[FineTune] = []
        for one in self.subjects:
            found += one.models if isinstance(one, Measure) else [one] if isinstance(one, FineTune) else []
        return tuple(found)

    @property
    def model(self) -> FineTune | None:
        """The first fine-tuned model among the runs measured; None where there is none."""
        return next((one for one in self.subjects if isinstance(one, FineTune)), None)

    @property
    def source_languages(self) -> tuple[str, ...]:
        """Source languages of the models measured; empty where these have none."""
        return next(filter(None, (one.source_languages for one in self.models)), ())

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """What is read before anything is made, to find broken lines."""
        if not self.corpus or not self.data:
            return ()
        each = product(self.splits, dict.fromkeys(self._codes))
        wanted = [_split_read(self, one, split, self.examples) for split, one in each]
        return _from_files(wanted, self.translated or ())

    @property
    def splits(self) -> tuple[Split, ...]:
        """The split it reads; before it, of comparable text, the one on which a threshold is chosen."""
        before = (TUNING_SPLIT,) if self.diagnostic.subject == "comparable" else ()
        return tuple(dict.fromkeys((*before, self.split)))

    @property
    def _codes(self) -> list[str]:
        """Languages, or pairs of them, whose examples are read."""
        subject = self.diagnostic.subject
        if subject in ON_PAIRS or (subject == "parallel" and not tasks_of(self.corpus)):
            first, *others = self.languages
            return [f"{first}-{other}" for other in others]
        if subject == "text":
            return list(self.languages)
        source = self.model.source_languages if self.model else ()
        inputs = self.inputs or ORIGINAL_INPUTS
        return [code for one in self.languages for code in codes_read(inputs, one, source)]

    @property
    def encoders(self) -> "tuple[Encoder, ...]":
        """The encoders that it makes, starts from or measures."""
        return tuple(encoder for subject in self.subjects for encoder in subject.encoders)

    @property
    def title(self) -> str:
        """What the run is, in a few words."""
        methods = " to ".join(dict.fromkeys(one.label for one in self.models))
        seeds = " ".join(dict.fromkeys(str(one.seed) for one in self.models))
        about = f"{methods}, seed {seeds}, " if self.models else ""
        where = f"{self._test_set} " if self.corpus else ""
        return f"{self.diagnostic.name}: {about}{where}{' '.join(self.languages)} {self.split}"

    @property
    def _test_set(self) -> str:
        """What is read: the corpus, its treebank if all languages have the same, how inputs come."""
        named = {dict(self.treebanks).get(language, "") for language in self.languages}
        treebank = named.pop() if len(named) == 1 else ""
        by = f"by {translator_label(self.translated)}" if self.translated else ""
        return " ".join(part for part in (self.corpus, treebank, self.inputs, by) if part)


TranslationModel = TrainTranslator | Pretrained
Run = Pretrain | Pretrained | Align | Adjust | TrainTranslator | Translate | FineTune | Measure


def tasks_of(corpus: str) -> list[str]:
    """List the tasks a corpus has labels for; none for text and bitext."""
    return [task for task in Sources().corpus(corpus).tasks if task in task_names()]


def last_step(languages: str) -> tuple[str, str]:
    """Return what is translated from and into last: (sw, en) of en-sw-en."""
    _, source, target = ("", *languages.split("-"))[-3:]
    return source, target


def language_to_translate(corpus: str, languages: str) -> str:
    """Return the language, or the pair of a corpus of translations, that a corpus to translate is read in."""
    return languages if "bitext" in Sources().corpus(corpus).tasks else languages.partition("-")[0]


def described(part: Named, *more: str) -> str:
    """Return the name of a method or translator with the fields that are not the default, after ``more``."""
    silent = {entry.name for entry in fields(part) if entry.metadata.get("watches")}
    default = values_of(type(part)())
    changed = [
        f"{name}={value}"
        for name, value in values_of(part).items()
        if value != default[name] and name not in silent
    ]
    about = ", ".join((*filter(None, more), *changed))
    return f"{part.name} ({about})" if about else part.name


def translator_label(translated: Sequence[Translate]) -> str:
    """Return the translator's name with its models; those of several directions are joined by +."""
    models = dict.fromkeys(one.model.label for one in translated if one.model is not None)
    return described(translated[0].translator, "+".join(models))


def _split_read(run: Translate | FineTune | Measure, language: str, split: Split, examples: int) -> SplitRead:
    banks = tuple(pair for pair in run.treebanks if pair[0] == language)
    return SplitRead(corpus=run.corpus, language=language, split=split, treebanks=banks, examples=examples)


def _from_files(wanted: list[SplitRead], translated: tuple[Translate, ...]) -> tuple[SplitRead, ...]:
    """Leave out what is translated by a run."""
    made = {(one.languages, one.split) for one in translated}
    return tuple(one for one in wanted if (one.language, one.split) not in made)
