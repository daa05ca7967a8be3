"""The Python interface: what the command line does, as functions.

>>> import isogloss
>>> result = isogloss.run("quickstart", out="runs/quickstart")      # doctest: +SKIP
>>> model = isogloss.load_model("runs/quickstart/<id>")             # doctest: +SKIP
>>> model.predict([["tuki", "mirne", "baboza", "."]])               # doctest: +SKIP
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isogloss.core.errors import ModelError
from isogloss.core.progress import Tell, silent
from isogloss.core.records import RECORD, Record, read_record
from isogloss.core.runs import Optimization
from isogloss.data.examples import Example, SentencePair, TaggedSentence
from isogloss.encoders import load_tokenizer
from isogloss.experiments.engine import Announce, Outcome
from isogloss.experiments.running import default_jobs, make, plan_recipe
from isogloss.reports import Report, write_report
from isogloss.tasks import TASKS, Task
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

    def predict(self, inputs: Sequence[Any]) -> list[Any]:
        """Predict a label for each word of sentences (sequences of words), or for pairs (first, second)."""
        return self.predict_examples([_example(self.task, one, number) for number, one in enumerate(inputs)])

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
    jobs: int = 1,
    tell: Tell = silent,
    announce: Announce = lambda *_: None,
    command: str = "",
) -> Result:
    """Run a recipe (a TOML file or the name of a packaged one); what has a record is not made again.

    ``changes`` are dotted keys of the recipe and their values. ``jobs`` runs are made side by side (0: one
    for each core); from 2 on, a script needs ``if __name__ == "__main__":`` around this call.
    """
    folder = Path(out) if out else None
    planned = plan_recipe(
        str(recipe), out=folder, data=Path(data) if data else None, changes=changes, scale=scale
    )
    planned.write(command or f"isogloss run {Path(recipe).name}")
    outcome = make(planned, jobs=jobs or default_jobs(planned.runs), announce=announce, tell=tell)
    records = [planned.store.record(one) for one in planned.runs if planned.store.is_finished(one)]
    return Result(planned.store.root, outcome, write_report(planned.store.root), records)


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


def _example(task: Task, one: Any, number: int) -> Example:
    """Make an example without labels."""
    if task.name in PAIR_TASKS:
        first, second = one
        return SentencePair(id=str(number), first=first, second=second, label="")
    words = tuple(one.split() if isinstance(one, str) else one)
    return TaggedSentence(id=str(number), words=words, tags=())


PAIR_TASKS = frozenset({"nli", "paraphrase"})

__all__ = ["Model", "Result", "load_model", "run"]
