"""Self-training: labels that a teacher predicts on unlabelled text of the target, with the gold ones.

"Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 6, names silver data in the target
as a constraint that makes the optimization less under-specified. Yarmohammadi et al. (2021), "Everything Is
All It Takes", use it in several tasks. The teacher p is a model that was trained on the source:

    y = argmax p(· | x)  where  max p(· | x) > τ                                               (1)
    L = Σ over source examples and target examples with such labels of the task's loss           (2)

In tagging a word is an item, in classification a text. Labels of the target are never read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from isogloss.core.errors import ConfigError
from isogloss.core.records import Value
from isogloss.core.rows import as_row
from isogloss.core.rows.models import SilverLabelsRow
from isogloss.core.run_parts import Share
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.tasks.batch import IGNORED, EncodedRow
from isogloss.tasks.task import CLASSES, Task
from isogloss.training.setting import Method, Reads, Setting, Trained

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from isogloss.data.examples import Example
    from isogloss.training.fine_tuning import Examples, Training


@dataclass(frozen=True, kw_only=True)
class SelfTraining(Method):
    """Train on the source and on unlabelled target text with the confident labels of a teacher.

    Examples of the target are read without labels. The teacher is a source-only model, or the model
    of ``teacher``: name a self-training there for a second round.
    """

    name: ClassVar[str] = "self-training"
    uses: ClassVar[tuple[str, ...]] = ("source", "target")

    threshold: Share = 0.9
    """τ: a label is learned where the teacher's probability exceeds it. 0 keeps all labels. 1 keeps none,
    which is source-only."""

    text: Literal["train", "dev"] = "train"
    """Split of the target's examples, whose dev file may lack labels in a described corpus."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Read labels of the source, and the target's examples without labels."""
        return Reads(
            train=source,
            dev=source,
            unlabelled=target,
            unlabelled_split=self.text,
            teacher=("word", "example"),
        )

    def check(self, task: Task, encoder: Config | None) -> None:  # noqa: ARG002
        """Raise ConfigError for a task without one class for each text or word."""
        if task.labels_are not in ("word", "example") or task.one_answer not in (None, CLASSES):
            raise ConfigError(
                f"{self.name}: task {task.name!r} does not have one class for each text or word, so no "
                f"label is chosen by its probability. Choose a classification or tagging task."
            )

    def train(self, setting: Setting) -> Trained:
        """Label the target's texts by the teacher, and fine-tune on both."""
        from isogloss.training.fine_tuning import fine_tune

        self.check(setting.task, None)
        silver = _Silver(self.threshold, setting.train if self.text == "train" else setting.dev)
        reads = replace(self.reads(setting.source, setting.target), unlabelled=())
        result = fine_tune(setting, reads, prepare=silver.prepare)
        return replace(
            result,
            rows=[*silver.rows(), *result.rows],
            warnings=(*result.warnings, *silver.warnings(setting.target)),
        )


@dataclass
class _Silver:
    """Labels of the target languages by a teacher, and their numbers."""

    threshold: float
    read: Callable[[str], list[Example]]
    """From a language to its examples."""
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Items and labelled items of each language."""

    def prepare(self, setting: Setting, model: Model, tokenizer: Tokenizer, train: Examples) -> Training:
        """Return batches of the source's examples and of the target's, one language a batch."""
        from isogloss.encoders.added.active_language import check_languages
        from isogloss.training.fine_tuning import train_on_rows
        from isogloss.training.pairs import encode

        check_languages(model, setting.target)
        groups = {
            language: encode(setting, tokenizer, examples, language) for language, examples in train.items()
        }
        if self.threshold < 1:
            for language in setting.target:
                rows = self._label(setting, tokenizer, language)
                groups |= {language: rows} if rows else {}
        return train_on_rows(setting, tokenizer, groups)

    def _label(self, setting: Setting, tokenizer: Tokenizer, language: str) -> list[EncodedRow]:
        """Return the rows of a language's examples with at least one label."""
        from isogloss.training.pairs import encode
        from isogloss.training.sides import without_labels

        examples = self.read(language)
        labels = predict_labels(setting, examples, language, threshold=self.threshold)
        self.counts[language] = (
            sum(len(item) for item in labels),
            sum(int((item != IGNORED).sum()) for item in labels),
        )
        rows = (without_labels(row) for row in encode(setting, tokenizer, examples, language))
        labelled_rows = (label_row(row, labels[row.example]) for row in rows)
        return [row for row in labelled_rows if row.gold]

    def rows(self) -> Iterator[dict[str, Value]]:
        """Yield a row of each language: the items and how many have a label."""
        for language, (items, kept) in self.counts.items():
            row = SilverLabelsRow(language=language, threshold=self.threshold, items=items, kept=kept)
            yield dict(as_row(row))

    def warnings(self, languages: Sequence[str]) -> Iterator[str]:
        """Warn of languages without any confident label."""
        for language in languages:
            items, kept = self.counts.get(language, (0, 0))
            if items and not kept:
                yield (
                    f"self-training: no label of {language} has a probability above {self.threshold:g}, so "
                    f"nothing was learned from its text. Lower threshold."
                )


def predict_labels(
    setting: Setting, examples: Sequence[Example], language: str, *, threshold: float
) -> list[npt.NDArray[np.int64]]:
    """Return the teacher's labels of each example: one, or one for each word. -100 where it is not confident.

    Words that were cut have no label.
    """
    import numpy as np

    from isogloss.encoders.tokenizers import load_tokenizer
    from isogloss.features.self_training.functions import silver_labels
    from isogloss.training.evaluation import evaluation
    from isogloss.training.pairs import load_teacher

    task = setting.task
    teacher = load_teacher(task, setting.teacher)
    tokenizer = load_tokenizer(setting.teacher)
    data = evaluation(task, examples, tokenizer, setting.optimization, language=language)
    sizes = [len(getattr(example, "words", ("",))) for example in examples]
    labels = [np.full(size, IGNORED, dtype=np.int64) for size in sizes]
    for row, scores in zip(data.rows, data.scores(teacher), strict=True):
        words = list(row.words) if task.labels_are == "word" else [0]
        if words:
            probabilities = scores.double().softmax(dim=-1).reshape(len(words), -1)
            labels[row.example][words] = silver_labels(probabilities.numpy(), threshold=threshold)
    return labels


def label_row(row: EncodedRow, labels: npt.NDArray[np.int64]) -> EncodedRow:
    """Return a row with labels of its example, scored only where there is one."""
    if not row.words:
        return replace(row, gold=tuple(int(label) for label in labels if label != IGNORED))
    scored = [
        (position, word, int(labels[word]))
        for position, word in zip(row.positions, row.words, strict=True)
        if labels[word] != IGNORED
    ]
    positions, words, gold = zip(*scored, strict=True) if scored else ((), (), ())
    return replace(row, positions=positions, words=words, gold=gold)
