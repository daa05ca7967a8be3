"""The Python interface: what the command line does, as functions.

>>> import isogloss
>>> result = isogloss.run("quickstart", out="runs/quickstart")      # doctest: +SKIP
>>> model = isogloss.load_model("runs/quickstart/<id>")             # doctest: +SKIP
>>> model.predict([["tuki", "mirne", "baboza", "."]])               # doctest: +SKIP
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import DataError, ModelError
from isogloss.core.progress import Tell, silent
from isogloss.core.records import RECORD, Record, read_record
from isogloss.core.runs import Optimization
from isogloss.data.examples import Example, SentencePair, TaggedSentence
from isogloss.encoders import load_tokenizer
from isogloss.experiments.engine import Announce, Outcome
from isogloss.experiments.running import make, plan_recipe
from isogloss.reports import Report, write_report
from isogloss.tasks import TASKS, Task
from isogloss.tasks.pair_classification import PairClassification
from isogloss.training.evaluation import evaluation


@dataclass(frozen=True)
class Result:
    """What running a recipe gave."""

    out: Path
    outcome: Outcome
    report: Report
    records: list[Record]


@dataclass(frozen=True)
class Model:
    """A fine-tuned model: encoder, head and tokenizer, with the task that decodes it."""

    network: Any
    tokenizer: Any
    task: Task
    limit: int = 128
    overlap: int = 64

    @property
    def pairs(self) -> bool:
        """Tell whether it labels pairs of texts, not words."""
        return isinstance(self.task, PairClassification)

    def predict(self, inputs: Iterable[Sequence[str] | str]) -> list[Any]:
        """Predict a label for each word of sentences, or one for each pair of texts.

        A sentence is its words, or a text whose words are parted by spaces; a pair is two texts.
        """
        make = _pair if self.pairs else _sentence
        return self.predict_examples([make(one, number) for number, one in enumerate(inputs)])

    def predict_examples(self, examples: Sequence[Example]) -> list[Any]:
        """Predict for examples of a corpus; their labels are not looked at."""
        how = Optimization(limit=self.limit, overlap=self.overlap)
        return evaluation(self.task, examples, self.tokenizer, how).predict(self.network)

    def score(self, examples: Sequence[Example]) -> float:
        """Return the task's metric on labelled examples."""
        how = Optimization(limit=self.limit, overlap=self.overlap)
        return evaluation(self.task, examples, self.tokenizer, how).score(self.network)


def run(
    recipe: str | Path,
    *,
    out: str | Path | None = None,
    data: str | Path | None = None,
    changes: Mapping[str, Any] | None = None,
    scale: str = "",
    jobs: int = 0,
    threads: int = 1,
    tell: Tell = silent,
    announce: Announce = lambda *_: None,
    command: str = "",
) -> Result:
    """Run a recipe (a TOML file or the name of a packaged one); what has a record is not made again.

    ``changes`` are dotted keys of the recipe and their values. ``jobs`` runs are made side by side (0: as
    many as this machine has cores for), each with ``threads`` threads; records are the same for any number
    of jobs, and for the same number of threads.
    """
    folder = Path(out) if out else None
    planned = plan_recipe(
        str(recipe), out=folder, data=Path(data) if data else None, changes=changes, scale=scale
    )
    with planned.store.lock():
        planned.write(command or f"isogloss run {Path(recipe).name}")
        outcome = make(planned, jobs=jobs, threads=threads, announce=announce, tell=tell)
        report = write_report(planned.store.root)
    records = [planned.store.record(one) for one in planned.runs if planned.store.is_finished(one)]
    return Result(planned.store.root, outcome, report, records)


def load_model(run_folder: str | Path) -> Model:
    """Load the model of a finished fine-tuning run from its folder."""
    folder = Path(run_folder)
    if not (folder / RECORD).exists():
        raise ModelError(
            f"{folder}: no finished run is here ({RECORD} is missing). Give the folder of a run."
        )
    record = read_record(folder)
    if record.kind != "fine-tune":
        raise ModelError(
            f"{folder}: run {record.id} is a {record.kind}, not a fine-tune; it has no head to predict with."
        )
    task = TASKS[record.run["task"]]
    how = record.run["optimization"]
    network = task.head(folder / "model", seed=0).eval()
    tokenizer = load_tokenizer(str(folder / "model"))
    return Model(network, tokenizer, task, how["limit"], how["overlap"])


def _pair(texts: Sequence[str] | str, number: int) -> SentencePair:
    """Make a pair without a label."""
    if isinstance(texts, str) or len(texts) != 2:
        raise DataError(f"input {number}: expected two texts (first, second), found {str(texts)[:60]!r}.")
    first, second = texts
    return SentencePair(id=str(number), first=first, second=second, label="")


def _sentence(words: Sequence[str] | str, number: int) -> TaggedSentence:
    """Make a sentence without labels."""
    split = tuple(words.split() if isinstance(words, str) else words)
    for word in split:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"input {number}: expected words, found {word!r} among {str(words)[:60]!r}.")
    return TaggedSentence(id=str(number), words=split, tags=())


__all__ = ["Model", "Result", "load_model", "run"]
