"""A fine-tuned model in use: predicting, scoring, exporting."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os.path import realpath
from pathlib import Path

from isogloss.core.errors import ConfigError, DataError, check_named, located
from isogloss.core.languages import canonical_language, check_language, languages_named
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import RECORD, Row
from isogloss.core.run_parts import Optimization, Updates, with_fields
from isogloss.data.examples import Example
from isogloss.data.projection.label_projection import texts_of
from isogloss.data.sources import Sources, Treebanks
from isogloss.encoders import family_of, fastest_attention, load_encoder_config, load_tokenizer
from isogloss.encoders.added.active_language import check_languages
from isogloss.encoders.family import Model as Network
from isogloss.encoders.family import Tokenizer
from isogloss.encoders.mixup import Mixup, load_mixup
from isogloss.tasks import Task, find_task, task_names
from isogloss.tasks.task import Answer
from isogloss.training.evaluation import Evaluation, evaluation, pair_with_translations
from isogloss.training.precision import PRECISIONS, device
from isogloss.using.exporting import export
from isogloss.using.fine_tuned import (
    CONFIG,
    Provenance,
    Translations,
    exported_entry,
    folder_of,
    provenance_elsewhere,
    provenance_of,
)
from isogloss.using.formats import Answered, Entry, Kind, Prediction, Probabilities
from isogloss.using.kinds import kind_of, probabilities_of
from isogloss.using.predicting import pair_in_order, warn_of_unmixed
from isogloss.using.pushing import PushOptions, push
from isogloss.using.scoring import EvaluateOptions, evaluate

GROUP_SIZE = 256
"""Examples predicted together: enough for full batches, few enough for any memory."""

GROUP_CHARACTERS = 1_000_000
"""A group is complete once its entries have this many characters together."""


@dataclass(frozen=True, repr=False)
class Model:
    """A fine-tuned model: encoder, head and tokenizer, with the task that decodes it.

    ``language`` is required if its encoder has modules for each language, or maps its states (procrustes,
    centring). If it mixes (x-mixup), each input should have a translation into the source language.
    """

    network: Network
    tokenizer: Tokenizer
    task: Task
    provenance: Provenance
    """How it was made."""
    precision: str = "auto"
    """auto (what pays on this machine), float32 or bfloat16."""
    mixup: Mixup | None = None
    """Where and how much an input is mixed with its translation; None for a model that does not mix."""
    links: tuple[str, ...] = ()
    """Files of its folder that are symbolic links."""

    def __repr__(self) -> str:
        """Return title, task, class of the network and run in a line."""
        title, run, network = self.provenance.title, self.provenance.run, type(self.network).__name__
        return f"Model({title!r}, task={self.task.name!r}, network={network}, run={run!r})"

    @property
    def kind(self) -> Kind:
        """Forms of inputs and answers."""
        kind = kind_of(self.task)
        has_own_head = kind.auto_class in family_of(self.network).own_heads
        return replace(kind, auto_class="", hub_tag="", pipeline="") if has_own_head else kind

    @property
    def longest(self) -> int:
        """Subwords of its longest row, special ones included."""
        return (
            int(self.tokenizer.model_max_length) if self.task.evaluates_full_length else self.provenance.limit
        )

    @property
    def into(self) -> str:
        """The language of translations: its source language, the first of several."""
        return next(iter(self.provenance.source), "the source language")

    def predict(
        self,
        inputs: Iterable[object],
        *,
        language: str = "",
        translations: Iterable[object] | None = None,
        scores: bool = False,
    ) -> list[Answer]:
        """Predict a label for each word of sentences, one for each pair of texts, or an option of a choice.

        A sentence is a list of words, or a text that is split at white space; a pair is two texts; a choice
        is a mapping with context and options, its answer the index of one. Each may be an example of a
        corpus, whose labels are ignored. ``translations`` are the inputs in the source language, in their
        order and form, None for one without a translation; only for a model that mixes.
        With ``scores``, answers are ``Prediction``s with probabilities. DataError, with the number of the
        input, at anything else, and if inputs and translations differ in number; ConfigError for scores of a
        task that has no probabilities.
        """
        return list(self.predict_stream(inputs, language=language, translations=translations, scores=scores))

    def predict_stream(
        self,
        inputs: Iterable[object],
        *,
        language: str = "",
        translations: Iterable[object] | None = None,
        scores: bool = False,
    ) -> Iterator[Answer]:
        """Yield the answers while inputs are read, ``GROUP_SIZE`` at a time."""
        language = canonical_language(language)
        if language:
            check_language(language, "language")
        self.check_languages((language,))
        examples = self._examples(inputs, "input", language)
        entries: Iterable[Entry] = (Entry(lines=(), example=example, about={}) for example in examples)
        translated = translations is not None
        if translations is not None:
            self.check_mixes("translations")
            others = self._examples(translations, "translation", self.into)
            entries = pair_in_order(entries, others, ("inputs", "translations"))
        entries = warn_of_unmixed(self, entries, language, translated=translated)
        for _, prediction in self.answered(entries, language=language, scores=scores):
            yield prediction if scores or prediction is None else prediction.answer

    def answered(
        self,
        entries: Iterable[Entry],
        *,
        language: str = "",
        scores: bool = False,
        on_progress: OnProgress = no_progress,
    ) -> Iterator[Answered]:
        """Yield each entry with the prediction for its example, with probabilities if ``scores``.

        ``on_progress`` receives the rows done within each group of ``GROUP_SIZE`` entries.
        """
        probabilities = probabilities_of(self.task) if scores else None
        for group in in_groups(entries):
            examples = [entry.example for entry in group if entry.example is not None]
            translations = [entry.translation for entry in group if entry.example is not None]
            predictions: Iterator[Prediction] = iter(())
            if examples:
                prepared = self.prepared(examples, language=language, translations=translations)
                prepared = replace(prepared, on_progress=on_progress)
                predictions = iter(self._predictions(prepared, probabilities))
            for entry in group:
                yield entry, None if entry.example is None else next(predictions)

    def _predictions(self, prepared: Evaluation, probabilities: Probabilities | None) -> list[Prediction]:
        raw = prepared.scores(self.network)
        answers = self.task.decode(prepared.examples, prepared.rows, raw)
        if probabilities is None:
            return [Prediction(answer) for answer in answers]
        scores = probabilities(self.task, prepared.examples, prepared.rows, raw, answers)
        return [Prediction(*pair) for pair in zip(answers, scores, strict=True)]

    def score(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> float:
        """Return the task's metric on labelled examples."""
        return self.prepared(examples, language=language, translations=translations).score(self.network)

    def measures(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> dict[str, float]:
        """Return all measures of labelled examples, the task's metric first."""
        return self.prepared(examples, language=language, translations=translations).measures(self.network)

    def evaluate(  # noqa: PLR0913 (the options of the command line)
        self,
        corpus: str,
        languages: str | Sequence[str],
        *,
        split: str = "test",
        inputs: str = "",
        data: str | Path | None = None,
        treebanks: Treebanks = (),
        on_progress: OnProgress = no_progress,
    ) -> list[Row]:
        """Score it on a split of a corpus: a row for each language, with the majority baseline.

        ``corpus`` is a name, or the path of a TOML file that describes one; ``inputs`` are those of recipes:
        "paired" for a model that mixes, "translated" for translate-test. ``data`` is the folder with the
        corpora; the built-in languages need none.
        """
        from isogloss.recipes.descriptions import register_corpus

        options = EvaluateOptions(
            corpus=register_corpus(corpus, str(data or "")),
            languages=languages_named((languages,) if isinstance(languages, str) else languages),
            split=split,
            treebanks=treebanks,
            inputs=inputs,
        )
        return evaluate(self, options, Sources(str(data or "")), on_progress=on_progress)

    def export(self, folder: str | Path, *, onnx: bool = False, force: bool = False) -> Path:
        """Write a folder that transformers loads without isogloss, and return it; see docs/use.md."""
        return export(self, Path(folder), onnx=onnx, force=force)

    def push(self, name: str, *, private: bool = False, revision: str = "", update: bool = False) -> str:
        """Upload the model to the Hugging Face hub and return the commit's address; see docs/use.md."""
        return push(self, PushOptions(name=name, private=private, revision=revision, update=update))

    def solving(self, task: Task) -> "Model":
        """Return the same model with another task, whose labels rename those of its task."""
        return replace(self, task=task)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError if its encoder has language modules or maps, but none for one of these."""
        check_languages(self.network, languages)

    def check_mixes(self, option: str) -> Mixup:
        """Return where and how much it mixes; ConfigError, with the option, where it uses no translations."""
        if self.mixup is None:
            raise ConfigError(
                f"{option}: this model ({self.provenance.method}) does not mix inputs with their "
                f"translations; models of x-mixup do. Leave {option} away, or give it translations as inputs."
            )
        return self.mixup

    def prepared(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples, each with its translation if the model mixes the two."""
        if self.mixup is None or translations is None:
            return self._evaluation(examples, language)
        numbered = [replace(example, id=str(number)) for number, example in enumerate(examples)]
        others = [
            replace(other, id=example.id)
            for example, other in zip(numbered, translations, strict=True)
            if other is not None
        ]
        return self.prepared_by_id(numbered, others, language=language)

    def prepared_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples, each with the translation of its id, if any.

        ConfigError for a model that does not mix.
        """
        return pair_with_translations(
            self._evaluation(examples, language),
            translations,
            self.tokenizer,
            self._optimization,
            mixup=self.check_mixes("translations"),
            source=next(iter(self.provenance.source), ""),
        )

    def _evaluation(self, examples: Sequence[Example], language: str) -> Evaluation:
        return evaluation(self.task, examples, self.tokenizer, self._optimization, language=language)

    @property
    def _optimization(self) -> Optimization:
        updates = with_fields(Updates(), precision=self.precision)
        return Optimization(limit=self.provenance.limit, overlap=self.provenance.overlap, updates=updates)

    def _examples(self, values: Iterable[object], what: str, language: str) -> Iterator[Example | None]:
        """Yield the examples of values; only a translation may be None."""
        if isinstance(values, str):
            raise DataError(
                f"{what}s: found one text, {values[:60]!r}; expected several. Put it in a list: [text]."
            )
        for number, value in enumerate(values):
            is_none = value is None and what == "translation"
            with located(name := f"{what} {number}"):
                example = None if is_none else self.kind.example(value, name, language)
            yield example


def load_model(folder: str | Path, *, precision: str = "auto") -> Model:
    """Load the model of a finished fine-tuning run, or an exported model, from its folder or the hub.

    Models of other programs need a token, sequence, multiple-choice or question-answering head.
    """
    check_named("load_model", "precision", PRECISIONS, precision)
    name, folder = str(folder), folder_of(folder)
    of_run = any((path / RECORD).exists() for path in (folder, folder.parent))
    made_here = of_run or exported_entry(folder) is not None or not (folder / CONFIG).exists()
    elsewhere = None if made_here else provenance_elsewhere(folder, name)
    provenance, weights = (elsewhere, folder) if elsewhere else provenance_of(folder)
    check_named(str(folder), "task", task_names(), provenance.task)
    task = find_task(provenance.task, tuple(load_encoder_config(weights).id2label.values()))
    network = task.head(weights, seed=0, attention=fastest_attention()).eval().to(device())
    tokenizer, mixup = load_tokenizer(str(weights)), load_mixup(weights)
    return Model(network, tokenizer, task, provenance, precision, mixup, _links(Path(realpath(weights))))


def _links(folder: Path) -> tuple[str, ...]:
    """List the links in a folder, but for those by which the cache of the hub's client is made."""
    blobs = folder.parent.parent / "blobs"
    links = (path for path in sorted(folder.rglob("*")) if path.is_symlink())
    return tuple(str(path) for path in links if Path(realpath(path)).parent != blobs)


def in_groups(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Yield groups of ``GROUP_SIZE`` entries, smaller ones of ``GROUP_CHARACTERS``.

    Reads the entries of a group when the group is requested.
    """
    group, characters = list[Entry](), 0
    for entry in entries:
        group.append(entry)
        characters += _characters(entry)
        if len(group) == GROUP_SIZE or characters >= GROUP_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _characters(entry: Entry) -> int:
    """Return the number of characters in the lines of an entry, or else in its example."""
    read = () if entry.lines or entry.example is None else texts_of(entry.example)
    texts = () if entry.translation is None else texts_of(entry.translation)
    return sum(map(len, (*entry.lines, *read, *texts)))
