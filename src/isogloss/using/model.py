"""A fine-tuned model in use: its answers, a few at a time, however many inputs there are."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from isogloss.core.errors import unknown_name
from isogloss.core.languages import check_language
from isogloss.core.progress import Tell, silent
from isogloss.core.records import Row
from isogloss.core.runs import Optimization
from isogloss.data.examples import Example
from isogloss.data.sources import Treebanks
from isogloss.encoders import load_tokenizer
from isogloss.encoders.speaking import check_languages
from isogloss.tasks import TASKS, Task
from isogloss.training.evaluation import Evaluation, evaluation
from isogloss.training.precision import device
from isogloss.using.certainty import certainty_of
from isogloss.using.formats import Kind, Prediction
from isogloss.using.kinds import KINDS
from isogloss.using.origin import Origin, origin_of

TOGETHER = 256
"""Examples predicted together: enough for full batches, few enough for any memory."""

One = TypeVar("One")


@dataclass(frozen=True)
class Model:
    """A fine-tuned model: encoder, head and tokenizer, with the task that decodes it.

    Where its encoder has modules for each language, or maps its states (procrustes, centring), ``language``
    must be said.
    """

    network: Any
    tokenizer: Any
    task: Task
    origin: Origin
    """How it was made."""
    precision: str = "auto"
    """auto (what pays on this machine), float32 or bfloat16."""

    @property
    def kind(self) -> Kind:
        """What goes into it and comes out."""
        return KINDS[self.task.name]

    @property
    def longest(self) -> int:
        """Subwords of its longest row, special ones included."""
        return int(self.tokenizer.model_max_length) if self.task.scored_whole else self.origin.limit

    def predict(self, inputs: Iterable[Any], *, language: str = "") -> list[Any]:
        """Predict a label for each word of sentences, or one for each pair of texts.

        A sentence is its words, or a text whose words are parted by white space; a pair is two texts.
        DataError, with the number of the input, at any other.
        """
        return list(self.predict_stream(inputs, language=language))

    def predict_stream(self, inputs: Iterable[Any], *, language: str = "") -> Iterator[Any]:
        """Give the answers to inputs as they come, ``TOGETHER`` inputs at a time."""
        if language:
            check_language(language, "language")
        self.check_languages((language,))
        made = (self.kind.example(one, f"input {number}", language) for number, one in enumerate(inputs))
        for together in in_groups(made):
            yield from self.predict_examples(together, language=language)

    def predict_examples(self, examples: Sequence[Example], *, language: str = "") -> list[Any]:
        """Predict for examples of a corpus; their labels are not looked at."""
        return self.prepared(examples, language=language).predict(self.network)

    def predictions(
        self, examples: Sequence[Example], *, language: str = "", scores: bool = False
    ) -> list[Prediction]:
        """Predict for examples, with probabilities where asked; ConfigError where the task has none."""
        how_sure = certainty_of(self.task.name) if scores else None
        if not examples:
            return []
        prepared = self.prepared(examples, language=language)
        raw = prepared.scores(self.network)
        answers = self.task.decode(examples, prepared.rows, raw)
        if how_sure is None:
            return [Prediction(answer) for answer in answers]
        sure = how_sure(self.task, examples, prepared.rows, raw, answers)
        return [Prediction(*both) for both in zip(answers, sure, strict=True)]

    def score(self, examples: Sequence[Example], *, language: str = "") -> float:
        """Return the task's metric on labelled examples."""
        return self.prepared(examples, language=language).score(self.network)

    def measures(self, examples: Sequence[Example], *, language: str = "") -> dict[str, float]:
        """Return the task's metric on labelled examples, first, and what the field reports beside it."""
        return self.prepared(examples, language=language).measures(self.network)

    def evaluate(
        self,
        corpus: str,
        languages: Sequence[str],
        *,
        split: str = "test",
        data: str | Path | None = None,
        treebanks: Treebanks = (),
        tell: Tell = silent,
    ) -> list[Row]:
        """Score it on a split of a corpus: a row for each language, with the majority baseline.

        ``data`` is the folder with the corpora; the built-in languages need none.
        """
        from isogloss.data.sources import Sources
        from isogloss.using.scoring import Wanted, evaluate

        wanted = Wanted(corpus=corpus, languages=tuple(languages), split=split, treebanks=treebanks)
        return evaluate(self, wanted, Sources(str(data or "")), tell=tell)

    def export(self, folder: str | Path, *, onnx: bool = False, force: bool = False) -> Path:
        """Write a folder that transformers loads without isogloss; see docs/use.md."""
        from isogloss.using.exporting import export

        return export(self, Path(folder), onnx=onnx, force=force)

    def check_languages(self, languages: Iterable[str]) -> None:
        """Raise ConfigError where its encoder has a module, or a map, for each language but these."""
        check_languages(self.network, languages)

    def prepared(self, examples: Sequence[Example], *, language: str = "") -> Evaluation:
        """Encode and batch examples."""
        how = Optimization(limit=self.origin.limit, overlap=self.origin.overlap, precision=self.precision)
        return evaluation(self.task, examples, self.tokenizer, how, language=language)


def load_model(folder: str | Path, *, precision: str = "auto") -> Model:
    """Load the model of a finished fine-tuning run, or one that was exported, from its folder."""
    from isogloss.training.precision import check_precision

    check_precision(precision, "load_model")
    folder = Path(folder)
    origin, weights = origin_of(folder)
    if origin.task not in TASKS:
        raise unknown_name(str(folder), "task", origin.task, TASKS)
    task = TASKS[origin.task]
    network = task.head(weights, seed=0).eval().to(device())
    return Model(network, load_tokenizer(str(weights)), task, origin, precision)


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
