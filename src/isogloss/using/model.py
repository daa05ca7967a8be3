"""A fine-tuned model in use: its answers, a few at a time, however many inputs there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.languages import canonical_language, check_language
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Row
from isogloss.core.run_parts import Optimization, Updates
from isogloss.data.examples import Example
from isogloss.data.label_projection import texts_of
from isogloss.data.sources import Sources, Treebanks
from isogloss.encoders import fastest_attention, load_tokenizer
from isogloss.encoders.language_context import check_languages
from isogloss.encoders.mixup import Mixup, load_mixup
from isogloss.tasks import TASKS, Task
from isogloss.training.evaluation import Evaluation, beside_translations, evaluation
from isogloss.training.precision import device
from isogloss.using.exporting import export
from isogloss.using.fine_tuned import Provenance, Translations, provenance_of
from isogloss.using.formats import Answered, Entry, Kind, Prediction, Probabilities
from isogloss.using.kinds import KINDS, probabilities_of
from isogloss.using.scoring import EvaluateOptions, evaluate
from isogloss.using.translations import (
    Warn,
    pair_with_translations,
    python_warning,
    warn_of_unmixed,
)

TOGETHER = 256
"""Examples predicted together: enough for full batches, few enough for any memory."""

LARGEST = 1_000_000
"""Once entries have this many characters together, no further one is read before they are predicted."""

One = TypeVar("One")


@dataclass(frozen=True)
class Model:
    """A fine-tuned model: encoder, head and tokenizer, with the task that decodes it.

    Where its encoder has modules for each language, or maps its states (procrustes, centring), ``language``
    must be said. Where it mixes (x-mixup), each input should come beside its translation into the source
    language.
    """

    network: Any
    tokenizer: Any
    task: Task
    provenance: Provenance
    """How it was made."""
    precision: str = "auto"
    """auto (what pays on this machine), float32 or bfloat16."""
    mixup: Mixup | None = None
    """Where and how much an input is mixed with its translation; None for a model that does not mix."""

    @property
    def kind(self) -> Kind:
        """What goes into it and comes out."""
        return KINDS[self.task.name]

    @property
    def longest(self) -> int:
        """Subwords of its longest row, special ones included."""
        return (
            int(self.tokenizer.model_max_length) if self.task.evaluates_full_length else self.provenance.limit
        )

    @property
    def into(self) -> str:
        """The language that translations are in: its source, the first of several."""
        return next(iter(self.provenance.source), "the source language")

    def predict(
        self,
        inputs: Iterable[Any],
        *,
        language: str = "",
        translations: Iterable[Any] | None = None,
        scores: bool = False,
    ) -> list[Any]:
        """Predict a label for each word of sentences, or one for each pair of texts.

        A sentence is its words, or a text whose words are parted by white space; a pair is two texts. Either
        may be an example of a corpus, whose labels are not looked at. ``translations`` are the inputs in the
        source language, in their order and form, None for one that has none; they are for a model that
        mixes. With ``scores`` answers are ``Prediction``s, which know how probable they are. DataError, with
        the number of the input, at anything else, and with both counts where there are more of the one than
        of the other; ConfigError where a task has no probabilities.
        """
        return list(self.predict_stream(inputs, language=language, translations=translations, scores=scores))

    def predict_stream(
        self,
        inputs: Iterable[Any],
        *,
        language: str = "",
        translations: Iterable[Any] | None = None,
        scores: bool = False,
    ) -> Iterator[Any]:
        """Give the answers to inputs as they come, ``TOGETHER`` inputs at a time."""
        language = canonical_language(language)
        if language:
            check_language(language, "language")
        self.check_languages((language,))
        entries: Iterable[Entry] = (
            Entry(lines=(), example=example, about={})
            for example in self._examples(inputs, "input", language)
        )
        if translations is not None:
            self.check_mixes("translations")
            others = self._examples(translations, "translation", self.into)
            entries = pair_with_translations(entries, others, ("inputs", "translations"))
        entries = self.with_warnings(entries, language, given=translations is not None)
        for _, prediction in self.answered(entries, language=language, scores=scores):
            yield prediction if scores or prediction is None else prediction.answer

    def answered(
        self, entries: Iterable[Entry], *, language: str = "", scores: bool = False
    ) -> Iterator[Answered]:
        """Give each entry with what is said of the example in it, with probabilities where asked."""
        how_sure = probabilities_of(self.task) if scores else None
        for together in in_groups(entries, size=_characters, largest=LARGEST):
            examples = [entry.example for entry in together if entry.example is not None]
            found = [entry.translation for entry in together if entry.example is not None]
            predictions = iter(self._predictions(examples, found, language, how_sure))
            for entry in together:
                yield entry, None if entry.example is None else next(predictions)

    def _predictions(
        self,
        examples: Sequence[Example],
        translations: Translations,
        language: str,
        how_sure: Probabilities | None,
    ) -> list[Prediction]:
        if not examples:
            return []
        prepared = self.prepared(examples, language=language, translations=translations)
        raw = prepared.scores(self.network)
        answers = self.task.decode(examples, prepared.rows, raw)
        if how_sure is None:
            return [Prediction(answer) for answer in answers]
        sure = how_sure(self.task, examples, prepared.rows, raw, answers)
        return [Prediction(*both) for both in zip(answers, sure, strict=True)]

    def score(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> float:
        """Return the task's metric on labelled examples."""
        return self.prepared(examples, language=language, translations=translations).score(self.network)

    def measures(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> dict[str, float]:
        """Return the task's metric on labelled examples, first, and what the field reports beside it."""
        return self.prepared(examples, language=language, translations=translations).measures(self.network)

    def evaluate(  # noqa: PLR0913 (what the command line asks, too)
        self,
        corpus: str,
        languages: Sequence[str],
        *,
        split: str = "test",
        inputs: str = "",
        data: str | Path | None = None,
        treebanks: Treebanks = (),
        on_progress: OnProgress = no_progress,
    ) -> list[Row]:
        """Score it on a split of a corpus: a row for each language, with the majority baseline.

        ``inputs`` are those of recipes: "paired" for a model that mixes, "translated" for translate-test.
        ``data`` is the folder with the corpora; the built-in languages need none.
        """
        options = EvaluateOptions(
            corpus=corpus,
            languages=tuple(map(canonical_language, languages)),
            split=split,
            treebanks=treebanks,
            inputs=inputs,
        )
        return evaluate(self, options, Sources(str(data or "")), on_progress=on_progress)

    def export(self, folder: str | Path, *, onnx: bool = False, force: bool = False) -> Path:
        """Write a folder that transformers loads without isogloss; see docs/use.md."""
        return export(self, Path(folder), onnx=onnx, force=force)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError where its encoder has a module, or a map, for each language but these."""
        check_languages(self.network, languages)

    def check_mixes(self, where: str) -> Mixup:
        """Return where and how much it mixes; ConfigError for a model without use for translations."""
        if self.mixup is None:
            raise ConfigError(
                f"{where}: this model ({self.provenance.method}) does not mix inputs with their "
                f"translations; models of x-mixup do. Leave {where} away, or give it translations as inputs."
            )
        return self.mixup

    def with_warnings(
        self, entries: Iterable[Entry], language: str, *, given: bool, warn: Warn = python_warning
    ) -> Iterable[Entry]:
        """Pass entries on; where the model mixes, warn once of those that lack a translation."""
        if self.mixup is None or (language in self.provenance.source and not given):
            return entries
        return warn_of_unmixed(entries, self.into, given=given, warn=warn)

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples, each beside its translation where the model mixes the two."""
        if self.mixup is None or translations is None:
            return self._alone(examples, language)
        numbered = [replace(one, id=str(number)) for number, one in enumerate(examples)]
        others = [
            replace(other, id=one.id)
            for one, other in zip(numbered, translations, strict=True)
            if other is not None
        ]
        return self._beside(self._alone(numbered, language), others, self.mixup)

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples of a corpus, each beside the translation of its id, if there is one.

        ConfigError where the model does not mix the two.
        """
        return self._beside(self._alone(examples, language), translations, self.check_mixes("translations"))

    def _alone(self, examples: Sequence[Example], language: str) -> Evaluation:
        return evaluation(self.task, examples, self.tokenizer, self._how, language=language)

    def _beside(self, alone: Evaluation, translations: Sequence[Example], mixup: Mixup) -> Evaluation:
        return beside_translations(
            alone,
            translations,
            self.tokenizer,
            self._how,
            mixup=mixup,
            source=next(iter(self.provenance.source), ""),
        )

    @property
    def _how(self) -> Optimization:
        updates = Updates(precision=self.precision)
        return Optimization(limit=self.provenance.limit, overlap=self.provenance.overlap, updates=updates)

    def _examples(self, values: Iterable[Any], what: str, language: str) -> Iterator[Example | None]:
        """Make examples of values; only a translation may be None."""
        for number, value in enumerate(values):
            given = isinstance(value, Example) or (value is None and what == "translation")
            yield value if given else self.kind.example(value, f"{what} {number}", language)


def load_model(folder: str | Path, *, precision: str = "auto") -> Model:
    """Load the model of a finished fine-tuning run, or one that was exported, from its folder."""
    from isogloss.training.precision import check_precision

    check_precision(precision, "load_model")
    folder = Path(folder)
    provenance, weights = provenance_of(folder)
    if provenance.task not in TASKS:
        raise unknown_name(str(folder), "task", provenance.task, TASKS)
    task = TASKS[provenance.task]
    network = task.head(weights, seed=0, attention=fastest_attention()).eval().to(device())
    return Model(network, load_tokenizer(str(weights)), task, provenance, precision, load_mixup(weights))


def in_groups(
    things: Iterable[One], *, size: Callable[[One], int] = lambda _: 0, largest: int = 1
) -> Iterator[list[One]]:
    """Give things as they come, ``TOGETHER`` at a time, fewer once their sizes add up to ``largest``."""
    rest = iter(things)
    while first := list(islice(rest, 1)):
        together, sizes = first, size(first[0])
        while len(together) < TOGETHER and sizes < largest and (another := list(islice(rest, 1))):
            together += another
            sizes += size(another[0])
        yield together


def _characters(entry: Entry) -> int:
    texts = () if entry.translation is None else texts_of(entry.translation)
    return sum(map(len, (*entry.lines, *texts)))
