"""Models that were fine-tuned elsewhere: transformers folders with a head for words, texts, options or spans.

Its config says the labels. Those of a corpus are matched by name, whatever their order and letter case.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from isogloss.core.errors import ConfigError
from isogloss.data.files import some
from isogloss.data.formats.conll import are_bio
from isogloss.data.sources import Sources
from isogloss.encoders import load_encoder_config, load_tokenizer
from isogloss.encoders.family import Config
from isogloss.tasks import TASKS, Task, find_task, task_names
from isogloss.tasks.classification import NLI, TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.using.fine_tuned import Provenance, is_on_hub

HEADS: Mapping[str, str] = {
    "ForTokenClassification": "word-tagging",
    "ForSequenceClassification": "text-classification",
    "ForMultipleChoice": "multiple-choice",
    "ForQuestionAnswering": "qa",
}
"""The task of a head, by the end of its class's name; labels may say more."""

LONGEST = 512
"""Subwords of a row, where the model has as many positions."""

METHOD = "elsewhere"


def provenance_elsewhere(folder: Path, name: str) -> Provenance | None:
    """Return what a folder's config says of a model that isogloss did not make; None where it has no head.

    ``given`` is the model as it was asked for: a folder, or a name on the hub.
    """
    config = load_encoder_config(folder)
    task = _task(config)
    if not task:
        return None
    limit = min(LONGEST, int(load_tokenizer(str(folder)).model_max_length))
    # On the hub the folder's own name is a commit.
    title = name if is_on_hub(name) else folder.resolve().name
    return Provenance(
        run=title.partition("/")[2].partition("@")[0] or title,
        title=f"fine-tuned elsewhere: {title}",
        task=task,
        corpus="",
        method=METHOD,
        encoder=str(config.model_type),
        source=(),
        target=(),
        limit=limit,
        overlap=limit // 4,
        versions={},
    )


PROBLEMS: Mapping[str, str] = {
    "regression": "regression",
    "multi_label_classification": "multi-label-classification",
}
"""The task of a sequence head whose config says what its labels are."""


def _task(config: Config) -> str:
    kinds, labels = config.architectures or (), tuple(config.id2label.values())
    task = next((task for head, task in HEADS.items() if any(str(kind).endswith(head) for kind in kinds)), "")
    if task == "word-tagging" and are_bio(labels):
        return "span-tagging"
    return _of_sequences(config, labels) if task == "text-classification" else task


def _of_sequences(config: Config, labels: Sequence[str]) -> str:
    """Return the task of a sequence head; one with a single score predicts a number, as in transformers."""
    problem = config.problem_type or ("regression" if len(labels) == 1 else "")
    if problem in PROBLEMS:
        return PROBLEMS[problem]
    return "pair-classification" if {*map(str.casefold, labels)} == {*NLI.labels} else "text-classification"


def fitting_task(task: Task, corpus: str, sources: Sources) -> Task:
    """Return a model's task as a corpus has it: under its name, its labels spelled as there.

    ConfigError where the model predicts something else, or lacks some of the corpus's labels.
    """
    tasks = sources.corpus(corpus).tasks
    for name in tasks:
        if name == task.name and name in TASKS:
            return task
        theirs = find_task(name, sources.labels(corpus) or ()) if name in task_names() else None
        if theirs is not None and _alike(task, theirs):
            return replace(theirs, labels=_respelled(task.labels, theirs.labels, corpus))  # type: ignore[type-var]
    sources.needs(corpus, task.name)
    return task


def _alike(task: Task, other: Task) -> bool:
    """Return whether two tasks predict the same: labels of words, of spans or of texts, or numbers."""
    if isinstance(task, Tagging) and isinstance(other, Tagging):
        return task.metric == other.metric
    # A head for sequences does not say whether it reads one text or two.
    return isinstance(task, TextClassification) and type(task) is type(other)


def _respelled(labels: Sequence[str], theirs: Sequence[str], corpus: str) -> tuple[str, ...]:
    spelled = {label.casefold(): label for label in theirs}
    lacking = [label for label in theirs if label.casefold() not in {*map(str.casefold, labels)}]
    if lacking:
        raise ConfigError(
            f"corpus {corpus!r} has the labels {some(theirs)}, and the model {some(labels)}: it lacks "
            f"{some(lacking)}. Choose a model that was trained on them; if its labels have no names, write "
            f"them into its config.json (id2label)."
        )
    return tuple(spelled.get(label.casefold(), label) for label in labels)
