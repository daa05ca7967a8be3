"""A fine-tuned model of torch as Python uses it: predicting, evaluating, exporting, pushing, loading."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pandas as pd
import torch
from torch import nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError, DataError, ModelError, add_location, check_named
from isogloss.core.languages import canonical_language, check_language, languages_named
from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import RECORD, Row
from isogloss.core.run_parts import Precision
from isogloss.core.tag_schemes import normalize_tags
from isogloss.data.corpus import Split
from isogloss.data.examples import Example
from isogloss.data.files import some
from isogloss.encoders.added.peft_folders import complete_folder
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.mixup import load_mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import ALL_TASKS, find_task, task_names
from isogloss.tasks.task import Answer, Task
from isogloss.training.evaluation import Evaluation
from isogloss.training.precision import device
from isogloss.using.extensions import find_action
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.formats import FileEntry, InputForm
from isogloss.using.kinds import check_takes_inputs, kind_of
from isogloss.using.predicting import pair_in_order, warn_of_unmixed
from isogloss.using.predictor import Translations
from isogloss.using.provenance import (
    CONFIG,
    ELSEWHERE,
    Provenance,
    exported_entry,
    folder_of,
    links_in,
    provenance_elsewhere,
    provenance_of,
    run_of_head,
)

if TYPE_CHECKING:
    from isogloss.data.sources import Treebanks

Predicted = TypeVar("Predicted")
"""The answer to an input."""


@dataclass(frozen=True, repr=False)
class Model(FineTuned, Generic[Predicted]):
    """A fine-tuned model: encoder, head and tokenizer, with the task that decodes it.

    Its type names the type of an answer, for type checkers: ``Model[str]`` of classes, ``Model[list[str]]``
    of tags, ``Model[int]`` of options, ``Model[float]`` of numbers.

    ``language`` is required if its encoder has modules for each language, or maps its states (procrustes,
    centring). If it mixes (x-mixup), each input should have a translation into the source language.
    """

    def __repr__(self) -> str:
        """Return title, task, class of the network and run in a line."""
        title, run, network = self.provenance.title, self.provenance.run, type(self.network).__name__
        return f"Model({title!r}, task={self.task.name!r}, network={network}, run={run!r})"

    @property
    def device(self) -> torch.device:
        """The device that it predicts on."""
        weight: torch.nn.Parameter = next(self.network.parameters())
        return weight.device

    def to(self, device: str | torch.device) -> "Model[Predicted]":
        """Move its weights to a device, such as "cpu" or "cuda:1", and return the model itself."""
        self.network.to(device)
        if self.mixup is not None:
            self.mixup.ratio_module.to(device)
        return self

    def __call__(self, inputs: Iterable[object], **options: Any) -> Any:
        """Predict, as ``predict`` does."""
        return self.predict(inputs, **options)

    @overload
    def predict(  # type: ignore[overload-overlap]
        self, inputs: str | Mapping[str, object], *, language: str = ..., translations: object = ...
    ) -> Predicted: ...

    @overload
    def predict(
        self, inputs: Iterable[object], *, language: str = ..., translations: Iterable[object] | None = ...
    ) -> list[Predicted]: ...

    @overload
    def predict(
        self, inputs: Iterable[object], *, language: str = ..., translations: Any = ..., scores: bool
    ) -> Any: ...

    @checks_arguments
    def predict(
        self,
        inputs: Iterable[object],
        *,
        language: str = "",
        translations: Any = None,
        scores: bool = False,
    ) -> Any:
        """Predict a label for each word of sentences, one for each pair of texts, or an option of a choice.

        A sentence is a list of words, or a text that is split at white space; a pair is two texts; a choice
        is a mapping with context and options, its answer the index of one. Each may be an example of a
        corpus, whose labels are ignored, or a mapping with the keys of the command line's JSON lines, such as
        {"words": […]} or {"question": …, "context": …}; inputs may be a DataFrame or a Dataset with these
        columns. A single text or mapping has a single answer, its translation a single one, too: one sentence
        of words is ``{"words": words}``, as a list of texts is several. ``translations`` are the inputs in
        the source language, in their order and form, None for one without a translation; only for a model
        that mixes.
        With ``scores``, each answer is a ``Prediction`` with probabilities. DataError, with the number of the
        input, at anything else, and if inputs and translations differ in number; ConfigError for scores of a
        task that has no probabilities.

        >>> tagger: isogloss.Model[list[str]] = isogloss.load_model("runs/…")     # doctest: +SKIP
        >>> tagger.predict("the cat sat")                                    # doctest: +SKIP
        ['DET', 'NOUN', 'VERB']
        """
        if isinstance(inputs, pd.DataFrame):
            inputs = inputs.to_dict("records")
        if isinstance(inputs, str | Mapping):
            input_translations = None if translations is None else [translations]
            return self.predict([inputs], language=language, translations=input_translations, scores=scores)[
                0
            ]
        return list(self.predict_stream(inputs, language=language, translations=translations, scores=scores))

    @checks_arguments
    def predict_stream(
        self,
        inputs: Iterable[object],
        *,
        language: str = "",
        translations: Iterable[object] | None = None,
        scores: bool = False,
    ) -> Iterator[Answer]:
        """Yield the answers while inputs are read, ``GROUP_SIZE`` at a time."""
        check_takes_inputs(self.task, self.tokenizer)
        language = canonical_language(language)
        if language:
            check_language(language, "language")
        self.check_languages((language,))
        examples = self._examples(inputs, "input", language)
        entries: Iterable[FileEntry] = (FileEntry(lines=(), example=example, body={}) for example in examples)
        has_translations = translations is not None
        if translations is not None:
            self.check_mixes("translations")
            translation_examples = self._examples(translations, "translation", self.into)
            entries = pair_in_order(entries, translation_examples, ("inputs", "translations"))
        entries = warn_of_unmixed(self, entries, language, has_translations=has_translations)
        for _, prediction in self.predict_entries(entries, language=language, scores=scores):
            yield prediction if scores or prediction is None else prediction.answer

    @checks_arguments
    def evaluate(  # noqa: PLR0913 (the options of the command line)
        self,
        corpus: str = "",
        languages: str | Sequence[str] = (),
        *,
        examples: Iterable[object] | None = None,
        split: Split = "test",
        inputs: str = "",
        data: str | Path | None = None,
        treebanks: "Treebanks" = (),
        on_progress: OnProgress = no_progress,
    ) -> list[Row]:
        """Score it on a split of a corpus, or on your own labelled examples.

        Returns a row for each language: ``run``, ``task``, ``method``, ``corpus``, ``language``, ``split``,
        ``metric`` and ``score``, the task's other measures, the ``baseline`` of the majority label, and the
        number of ``examples``.

        ``corpus`` is a name, or the path of a TOML file that describes one; ``inputs`` are as in recipes:
        "paired" for a model that mixes, "translated" for translate-test. ``data`` is the folder with the
        corpora; the built-in languages need none.

        ``examples``, instead of a corpus, are those that ``load_corpus`` returns, or mappings, a DataFrame or
        a Dataset with the keys of inputs of ``predict`` and the label under ``gold``, ``tags``, ``labels``,
        ``label``, ``answers`` or ``answer``: a text, or the index of a label. They have no baseline, and are
        of one language, if any is named.

        ConfigError for a corpus without labels of its task, DataError for examples without a label.

        >>> rows = [{"text": "Mvua ilinyesha.", "label": "weather"}]
        >>> model.evaluate(examples=rows)[0]["score"]                        # doctest: +SKIP
        """
        from isogloss.data.sources import Sources
        from isogloss.using.scoring import EvaluateOptions, evaluate

        if examples is not None:
            return self._evaluate_examples(examples, corpus, languages)
        if not corpus:
            raise ConfigError("evaluate: neither a corpus nor examples. Give either.")
        from isogloss.data.corpora.own import register_corpus

        options = EvaluateOptions(
            corpus=register_corpus(corpus, str(data or "")),
            languages=languages_named((languages,) if isinstance(languages, str) else languages),
            split=split,
            treebanks=treebanks,
            inputs=inputs,
        )
        return evaluate(self, options, Sources(str(data or "")), on_progress=on_progress)

    def _evaluate_examples(
        self, examples: Iterable[object], corpus: str, languages: str | Sequence[str]
    ) -> list[Row]:
        from isogloss.using.labelled_examples import read_labelled_example
        from isogloss.using.scoring import evaluate_examples

        requested_languages = languages_named((languages,) if isinstance(languages, str) else languages)
        if corpus or len(requested_languages) > 1 or isinstance(examples, str | Mapping):
            raise ConfigError(
                "evaluate: examples are a list, instead of a corpus, in one language. Give a corpus or "
                "examples, those of each language by themselves."
            )
        language = next(iter(requested_languages), "")
        self.check_languages((language,))
        if isinstance(examples, pd.DataFrame):
            examples = examples.to_dict("records")
        read = []
        for index, value in enumerate(examples):
            with add_location(name := f"example {index}"):
                read.append(read_labelled_example(self.task, self.kind, value, name, language))
        return evaluate_examples(self, read, language)

    @checks_arguments
    def export(
        self,
        folder: str | Path,
        *,
        onnx: bool = False,
        int8: bool = False,
        adapter: bool = False,
        force: bool = False,
        data: str | Path | None = None,
    ) -> Path:
        """Write a folder that transformers loads without isogloss, and return it. See docs/use.md.

        ``onnx`` adds an ONNX file, and ``int8`` a smaller and faster one, which is scored on the dev split of
        the model's corpus; ``data`` is the folder with the corpora. ``adapter`` writes only the adapters and
        the head, as peft or the library adapters loads them.
        """
        exported_folder: Path = find_action("export")(
            self,
            Path(folder),
            onnx=onnx,
            int8=int8,
            adapter=adapter,
            force=force,
            data=str(data or ""),
        )
        return exported_folder

    @checks_arguments
    def push(self, name: str, *, private: bool = False, revision: str = "", update: bool = False) -> str:
        """Upload the model to the Hugging Face hub and return the commit's address. See docs/use.md."""
        commit: str = find_action("push")(self, name=name, private=private, revision=revision, update=update)
        return commit

    def _examples(self, values: Iterable[object], role: str, language: str) -> Iterator[Example | None]:
        """Yield the examples of values. Only a translation may be None."""
        if isinstance(values, str):
            raise DataError(
                f"{role}s: found one text, {values[:60]!r}; expected several. Put it in a list: [text]."
            )
        for index, value in enumerate(values):
            is_none = value is None and role == "translation"
            with add_location(name := f"{role} {index}"):
                if is_none:
                    yield None
                elif isinstance(value, Mapping):
                    yield self.kind.from_json(value, name, language)
                else:
                    yield self.kind.example(value, name, language)


@dataclass(frozen=True, repr=False)
class Ensemble(Model[Predicted]):
    """Several models that predict by the mean of their probabilities, as one.

    They solve the same task with the same labels. Tokenizer, task and folder are as in the first. A model
    that mixes reads translations, the others ignore them.
    """

    members: tuple[Model[Any], ...] = ()

    def __repr__(self) -> str:
        """Return the task and the runs in a line."""
        runs = ", ".join(member.provenance.run for member in self.members)
        return f"Ensemble(task={self.task.name!r}, runs={runs!r})"

    @property
    def kind(self) -> InputForm:
        """Forms of inputs and answers."""
        return self.members[0].kind

    def solving(self, task: Task) -> "Ensemble[Predicted]":
        """Return the same models with a different task, whose labels replace the labels of their task."""
        from isogloss.using.ensembles import match_labels

        members = []
        for member in self.members:
            order = match_labels(self.task.labels, member.task.labels)
            is_same = order == tuple(range(len(order)))
            labels = tuple(task.labels[order.index(index)] for index in range(len(order)))
            member_task = task if is_same else replace(task, labels=labels)  # type: ignore[type-var]
            members.append(member.solving(member_task))
        return replace(self, task=task, members=tuple(members))

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError if a model has language modules or maps, but not for all of these languages."""
        languages = tuple(languages)
        for member in self.members:
            member.check_languages(languages)

    def prepare(
        self, examples: Sequence[Example], *, language: str = "", translations: Translations = None
    ) -> Evaluation:
        """Encode and batch examples for each model, with translations where it mixes the two."""
        return self._combine(
            [
                member.prepare(examples, language=language, translations=translations)
                for member in self.members
            ]
        )

    def prepare_by_id(
        self, examples: Sequence[Example], translations: Sequence[Example], *, language: str = ""
    ) -> Evaluation:
        """Encode and batch examples for each model, with the translation of its id where it mixes the two."""
        self.check_mixes("translations")
        return self._combine(
            [
                member.prepare_by_id(examples, translations, language=language)
                if member.mixup
                else member.prepare(examples, language=language)
                for member in self.members
            ]
        )

    def _combine(self, members: Sequence[Evaluation]) -> Evaluation:
        from isogloss.using.ensembles import combine_evaluations, match_labels

        orders = [match_labels(self.task.labels, member.task.labels) for member in self.members]
        return combine_evaluations(self.task, members, orders)

    def export(
        self,
        folder: str | Path,
        *,
        onnx: bool = False,  # noqa: ARG002 (as a model's)
        int8: bool = False,  # noqa: ARG002
        adapter: bool = False,  # noqa: ARG002
        force: bool = False,  # noqa: ARG002
        data: str | Path | None = None,  # noqa: ARG002
    ) -> Path:
        """Raise ConfigError: an ensemble is several models."""
        raise ConfigError(self._refusal(f"export {folder}"))

    def push(
        self,
        name: str,
        *,
        private: bool = False,  # noqa: ARG002 (as a model's)
        revision: str = "",  # noqa: ARG002
        update: bool = False,  # noqa: ARG002
    ) -> str:
        """Raise ConfigError: an ensemble is several models."""
        raise ConfigError(self._refusal(f"push {name}"))

    def _refusal(self, action: str) -> str:
        return (
            f"{action}: an ensemble is {len(self.members)} models and has no folder of its own. Export each "
            f"of them, or make one model of their weights (method average)."
        )


def ensemble(models: Sequence[Model[Any]]) -> Model[Any]:
    """Combine models into one that predicts by the mean of their probabilities.

    ConfigError where they solve different tasks or have other labels, or their answers have no probabilities.
    """
    if len(models) == 1:
        return models[0]
    first_model = models[0]
    if first_model.kind.probabilities is None:
        having = ", ".join(sorted(name for name, task in ALL_TASKS.items() if kind_of(task).probabilities))
        raise ConfigError(
            f"{first_model.provenance.run}: {len(models)} models of task {first_model.task.name}, whose "
            f"answers have no probabilities to average; these tasks have: {having}. Give one model."
        )
    for model in models[1:]:
        _check_alike(first_model, model)
    mixing = [member for member in models if member.mixup is not None]
    link_models = [member for member in mixing if member.mixup and member.mixup.attends == "links"]
    reads_translations = next(iter([*link_models, *mixing]), first_model)
    return Ensemble(
        nn.ModuleList([member.network for member in models]),
        first_model.tokenizer,
        first_model.task,
        _provenance_of_all([member.provenance for member in models]),
        first_model.precision,
        reads_translations.mixup,
        members=tuple(models),
    )


def _check_alike(reference: Model[Any], model: Model[Any]) -> None:
    if model.task.name != reference.task.name:
        raise ConfigError(
            f"{model.provenance.run}: task {model.task.name}, and {reference.provenance.run} has "
            f"{reference.task.name}. Give models of one task."
        )
    if set(model.task.labels) != set(reference.task.labels):
        lacking = sorted(set(reference.task.labels) ^ set(model.task.labels))
        raise ConfigError(
            f"{model.provenance.run}: its labels differ from the labels of {reference.provenance.run}: "
            f"only one of them has {some(lacking)}. Give models with the same labels."
        )


def _provenance_of_all(all_of_them: Sequence[Provenance]) -> Provenance:
    """Return the provenance of an ensemble: facts that all models share."""
    shared_facts = all_of_them[0]
    runs = sorted(provenance.run for provenance in all_of_them)
    same_source = len({provenance.source for provenance in all_of_them}) == 1
    return replace(
        shared_facts,
        run=f"ensemble-{sha256(' '.join(runs).encode()).hexdigest()[:12]}",
        title=f"ensemble of {len(runs)} models: {' '.join(runs)}",
        method=f"mean of {len(runs)} models",
        source=shared_facts.source if same_source else (),
        scores=(),
    )


@overload
def load_model(folder: str | Path, *, precision: Precision = ...) -> Model[Any]: ...


@overload
def load_model(folder: Sequence[str | Path], *, precision: Precision = ...) -> Model[Any]: ...


@checks_arguments
def load_model(folder: str | Path | Sequence[str | Path], *, precision: Precision = "auto") -> Model[Any]:
    """Load the model of a finished fine-tuning run, or an exported model, from its folder or the hub.

    Models of other programs need a token, sequence, multiple-choice or question-answering head. ModelError
    unless all weights of the model are in the folder, and all weights there are the model's. Several folders
    are loaded as one model that predicts by the mean of their probabilities.

    Device: a GPU if the machine has one, else the CPU; ``to`` of the model moves it. Cost: reads each folder
    once; a name on the hub is downloaded unless it is in the cache.

    >>> both = isogloss.load_model(["runs/quickstart/<id>", "runs/quickstart/<other>"])     # doctest: +SKIP
    """
    if isinstance(folder, str | Path):
        return _load_one(folder, precision)
    if not folder:
        raise ConfigError("load_model: no folder. Give one, or several whose probabilities are averaged.")
    return ensemble([_load_one(path, precision) for path in folder])


def _load_one(folder: str | Path, precision: Precision) -> Model[Any]:

    name = str(folder)
    folder = complete_folder(folder_of(folder))
    is_in_run = any((path / RECORD).exists() for path in (folder, folder.parent)) or run_of_head(folder)
    made_here = is_in_run or exported_entry(folder) is not None or not (folder / CONFIG).exists()
    elsewhere = None if made_here else provenance_elsewhere(folder, name)
    provenance, weights = (elsewhere, folder) if elsewhere else provenance_of(folder)
    check_named(str(folder), "task", task_names(), provenance.task)
    labels = tuple(load_encoder_config(weights).id2label.values())
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise ModelError(
            f"{weights / CONFIG}: several ids have the label {some(twice)}. Give each a name (id2label)."
        )
    head_task = find_task(provenance.task, labels)
    task = (
        find_task(provenance.task, normalize_tags(labels)) if provenance.task == "span-tagging" else head_task
    )
    network = head_task.head(weights, seed=None, attention=fastest_attention()).eval().to(device())
    tokenizer = load_tokenizer(str(weights), own_frame=provenance.method == ELSEWHERE)
    mixup = load_mixup(weights)
    if mixup is not None:
        mixup.ratio_module.to(device())
    links = links_in(weights)
    return Model(network, tokenizer, task, provenance, precision, mixup, links, weights)
