"""The interface of a diagnostic, and its input: finished runs, their models, data encoded for scoring."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Row, Value
from isogloss.core.rows.models import ByMeasure, ScoreRow
from isogloss.core.run_parts import Named
from isogloss.data.corpus import Split
from isogloss.data.examples import ComparableText, Example, Translation
from isogloss.data.result_files import Predictions
from isogloss.encoders.family import Model, Tokenizer
from isogloss.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.mixup import Mixup
    from isogloss.training.evaluation import Evaluation
    from isogloss.training.parallel_text import ParallelText

LoadedEncoder = tuple[Model, Tokenizer]
"""An encoder, with or without a masked-LM head, and its tokenizer."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A finished run: its id, its rows, and the folder of its weights (if it has any)."""

    id: str
    """Id of the run: what rows are about."""
    rows: tuple[Row, ...]
    """Rows it made."""
    folder: Path
    """Folder of its weights, if it has any."""
    trained_length: int | None = None
    """Length, in subwords, of the rows that an encoder was pretrained on. None if unknown."""


def role_of(language: str, sources: Collection[str]) -> str:
    """Return "source" for a language among a model's ``sources``, else "target"."""
    return "source" if language in sources else "target"


def main_scores(subjects: Iterable[Subject]) -> list[ScoreRow]:
    """Return the rows of main metrics that measurements of scores recorded."""
    rows: list[dict[str, Any]] = [dict(row) for subject in subjects for row in subject.rows]
    return [ScoreRow(**row) for row in rows if row["main"]]


def kept_predictions(
    language: str, evaluation: Evaluation, predictions: Sequence[object], contributions: ByMeasure
) -> Predictions:
    """Return answers as stored next to a record, with their contributions to the measures, if any."""
    return Predictions(
        language=language,
        ids=[example.id for example in evaluation.examples],
        predicted=[
            json.dumps(answer, ensure_ascii=False, separators=(",", ":"), default=asdict)
            for answer in predictions
        ],
        contributions=contributions,
    )


def _not_given(*arguments: object) -> Any:
    raise TypeError(f"this input is not available to the measurement: {arguments}")


@dataclass(frozen=True, kw_only=True)
class MeasureSetting:
    """Subjects, languages, and data already encoded for scoring."""

    subjects: tuple[Subject, ...]
    languages: tuple[str, ...]
    split: str
    source: tuple[str, ...]
    """Source languages of the models. Empty for encoders."""
    load: Callable[[Subject], Model]
    """Return a subject's model (encoder and head), ready for evaluation."""
    load_factors: Callable[[Subject], Model] = _not_given
    """Return the model with its adapters not merged. Raises ModelError for a model without adapters."""
    evaluation: Callable[[str], Evaluation]
    """Return one language's examples, encoded once, which score any model."""
    tuning_evaluation: Callable[[str], Evaluation] = _not_given
    """Return the examples of one source language in the diagnostic's tuning split."""
    translated_evaluation: Callable[[str], Evaluation] = _not_given
    """Return the translations of one language's examples into the source, encoded once."""
    encoder: Callable[[Subject], LoadedEncoder]
    """Return a subject's encoder, without any head, and its tokenizer."""
    bitext: Callable[[str], list[Translation]]
    """Return the translations of a pair such as en-fr, with word links where the subject is "words"."""
    comparable: Callable[[str, str], list[ComparableText]] = _not_given
    """Return the comparable text of a pair such as en-fr, of one split."""
    parallel: ParallelText
    """Parallel text in several languages: bitext, or the examples of parallel test sets."""
    examples: Callable[[str], list[Example]] = _not_given
    """Return the examples of one language, without looking at their labels."""
    text: Callable[[str], Iterator[str]] = _not_given
    """Iterate over the lines of one language's raw text. Each call starts at the first line."""
    masked_lm: Callable[[Subject], LoadedEncoder] = _not_given
    """Return a subject's encoder with its masked-LM head, and its tokenizer. Raises ModelError if it has
    none."""
    keep: Callable[[Predictions], None] = lambda _: None
    """Store a model's predictions next to the record."""
    keep_tensors: Callable[[str, Mapping[str, Tensor], Mapping[str, Value]], None] = lambda *_: None
    """Write tensors and metadata into a file of this name next to the record (``data.result_files``)."""
    paired: Callable[[str], Evaluation] | None = None
    """Return one language's examples paired with their translations, encoded once.

    ``ratios(model)`` are their mixing ratios [example], or None if the model reads no pairs.
    """
    mixup: Callable[[Subject], Mixup | None] = lambda _: None
    """Return a function that mixes a model's examples with translations. None if the model does not mix."""
    warn: Callable[[str], None] = lambda _: None
    """Add a warning to the record and to the report."""
    precision: str = "auto"
    """auto (measured), float32 or bfloat16. Models with a head use their own precision."""
    on_progress: OnProgress = no_progress

    def warn_of_length(self, where: str, field: str, longest: int) -> None:
        """Warn when the ``longest`` row, in subwords, exceeds the rows that the encoder was pretrained on.

        Position embeddings beyond these keep their random initial weights, which makes losses high and
        gradients large. ``field`` of the diagnostic ``where`` sets the length. Nothing is known of encoders
        that were not pretrained here.
        """
        trained_length = self.subjects[0].trained_length
        if trained_length is not None and longest > trained_length:
            self.warn(
                f"{where}: rows of up to {longest} subwords, but the encoder was pretrained on rows of "
                f"{trained_length}: untrained positions can dominate losses and gradients. Set {field} = "
                f"{trained_length}."
            )


class Diagnostic(Named, Protocol):
    """A measurement, configured by its fields."""

    subject: ClassVar[str]
    """Subject of one measurement. "model"; "cell": the models of a cell (its field ``between``); "scores":
    the scores of a model; "seeds": the scores of all seeds; "encoder". The following measure each encoder and
    each model's encoder: "states" on bitext, "parallel" on bitext or labelled test sets, "comparable" on
    comparable text, and "words" on word-aligned bitext. "examples": each encoder, on labelled corpora.
    "text": each encoder with its masked-LM head, on raw text."""

    needs_labels: ClassVar[bool] = True
    """Whether it reads the labels of the examples that it is taken on."""

    tuning_split: ClassVar[Split | None] = None
    """The split on which it chooses a threshold or temperature, read in addition to the one measured. For
    the subject "model" it is read only in source languages."""

    reads_translations: ClassVar[bool] = False
    """Whether it reads the translation of each input itself, whatever the models read."""

    computes_gradients: ClassVar[bool] = False
    """Whether it computes gradients, which take memory that is not estimated."""

    def check(self, task: Task) -> None:
        """Raise ConfigError for a task that it does not support."""
        del task  # Most take all.

    @abstractmethod
    def measure(self, setting: MeasureSetting) -> Iterable[object]:
        """Return rows of the kinds that ``core.rows`` declares for it."""


def layer_numbers(layers: Sequence[int], encoder: LoadedEncoder) -> list[int]:
    """Return layers counted from 0 (the embeddings). -1 is the last. An empty sequence means all layers."""
    from isogloss.training.states import layers_once

    count: int = encoder[0].config.num_hidden_layers + 1
    return [layer % count for layer in layers_once(encoder[0], layers)] or list(range(count))
