"""What a diagnostic is given to look at."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from isogloss.core.progress import OnProgress, no_progress
from isogloss.core.records import Row, Value
from isogloss.core.rows import Score
from isogloss.core.run_graph import run_id
from isogloss.core.runs import Run
from isogloss.data.examples import Translation
from isogloss.data.result_files import Predictions
from isogloss.training.evaluation import Evaluation
from isogloss.training.parallel_text import ParallelText


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A finished run: what it was, the rows it made, and where its weights are (if it has any)."""

    run: Run
    rows: tuple[Row, ...]
    folder: Path

    @property
    def id(self) -> str:
        """The id of the run: what rows are about."""
        return run_id(self.run)


def role_of(language: str, sources: Collection[str]) -> str:
    """Tell whether a model was trained on a language as one of its ``sources``."""
    return "source" if language in sources else "target"


def main_scores(subjects: Iterable[Subject]) -> list[Score]:
    """Return the scores by tasks' own metrics that measurements of scores left."""
    rows: list[dict[str, Any]] = [dict(row) for subject in subjects for row in subject.rows]
    return [Score(**row) for row in rows if row["main"]]


def _no_text(language: str) -> Iterator[str]:
    raise TypeError(f"this measurement reads no raw text ({language})")


def _no_masked_lm(subject: Subject) -> tuple[Any, Any]:
    raise TypeError(f"this measurement looks at no masked-LM head ({subject.run.name})")


@dataclass(frozen=True, kw_only=True)
class MeasureSetting:
    """Subjects, languages, and data already encoded for scoring."""

    subjects: tuple[Subject, ...]
    languages: tuple[str, ...]
    split: str
    source: tuple[str, ...]
    """Source languages of the models looked at; none where these know of none."""
    load: Callable[[Subject], Any]
    """Give a subject's model (encoder and head), ready for evaluation."""
    evaluation: Callable[[str], Evaluation]
    """Give one language's examples, encoded once, that score any model."""
    encoder: Callable[[Subject], tuple[Any, Any]]
    """Give a subject's encoder, without any head, and its tokenizer."""
    bitext: Callable[[str], list[Translation]]
    """Give the translations of a pair such as en-fr; with links where the diagnostic looks at words."""
    parallel: ParallelText
    """What says the same in several languages: bitext, or the examples of parallel test sets."""
    text: Callable[[str], Iterator[str]] = _no_text
    """Give the lines of one language's raw text, one at a time; each call begins anew."""
    masked_lm: Callable[[Subject], tuple[Any, Any]] = _no_masked_lm
    """Give a subject's encoder with its masked-LM head, and its tokenizer; ModelError when it has none."""
    keep: Callable[[Predictions], None] = lambda _: None
    """Take what a model predicted, to lie beside the record."""
    keep_tensors: Callable[[str, Mapping[str, Tensor], Mapping[str, Value]], None] = lambda *_: None
    """Write tensors, and what they are about, into a file of this name (``data.tensor_file``) beside the
    record."""
    paired: Callable[[str], Any] | None = None
    """Give one language's examples beside their translations, encoded once; ``ratios(model)`` are their
    mixing ratios [example]. None where the model takes no pairs."""
    warn: Callable[[str], None] = lambda _: None
    """Take what a reader of the numbers must know; it stands in the record and in the report."""
    precision: str = "auto"
    """auto (measured), float32 or bfloat16; models with a head say it themselves."""
    on_progress: OnProgress = no_progress
