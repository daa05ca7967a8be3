"""Fine-tuning of an encoder on labelled examples of some languages by a method."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from math import fsum
from pathlib import Path
from typing import ClassVar, cast

from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.core.records import DataRead, base_of
from isogloss.core.run_parts import Count, Optimization, Whole, with_fields
from isogloss.data.corpora.own import KNOWN
from isogloss.data.corpus import Split, is_translation
from isogloss.data.examples import Example, repairs_message
from isogloss.data.generated import generated_size
from isogloss.data.sources import Treebanks
from isogloss.runs.estimates import Folders, count_gradients_per_update, scoring, training_operations
from isogloss.runs.run import Encoder, LinkedBitext, Run, RunContext, RunResult, SplitRead, TranslatedSplit
from isogloss.runs.splits import (
    describe_part,
    from_files,
    read_or_translated,
    split_read,
    translator_label,
)
from isogloss.tasks import find_task
from isogloss.tasks.task import FurtherTask, Task
from isogloss.training.memory import Load, Machine, Shape, training_memory
from isogloss.training.setting import AuxiliaryLoss, Averaged, Combination, Method, Peft, Reads, Setting

TRAIN_SIZES = {
    "xnli": 392_702,
    "pawsx": 49_401,
    "squad": 87_599,
    "wikiann": 20_000,
    "udpos": 21_253,
    "ud": 12_544,
}
"""Training examples of corpora in English, assumed if a recipe gives no number.

Sources: Table 1 of XTREME (Hu et al. 2020), and the English EWT for UD.
"""


@dataclass(frozen=True, kw_only=True)
class LearnedTask:
    """A further task that a model learns, with the corpus of its labels."""

    task: str
    corpus: str
    labels: tuple[str, ...] | None = None
    """Labels of the corpus, for a task of any labels. None for a task with fixed labels."""
    package: str | None = None
    """Package and version of the plug-in that adds the task. None for a built-in task."""
    treebanks: Treebanks = ()
    limit: Count
    """Subwords per row, special ones included."""
    overlap: Count
    """Subwords shared by neighbouring windows."""


@dataclass(frozen=True, kw_only=True)
class FineTune(Run):
    """Train a model with a method, from an encoder and a corpus in some languages."""

    name: ClassVar[str] = "fine-tune"
    trains: ClassVar[bool] = True
    encoder: Encoder
    """The encoder it starts from."""
    corpus: str
    """Corpus with the labels."""
    task: str
    """Task of the corpus."""
    labels: tuple[str, ...] | None = None
    """Labels of the corpus, for a task of any labels. None for a task with fixed labels."""
    package: str | None = None
    """Package and version of the plug-in that adds the task. None for a built-in task."""
    method: Method
    """The method, such as source-only, target-only or bilingual."""
    auxiliary: AuxiliaryLoss | None = None
    """Loss added to the method's loss. Default: none."""
    further: tuple[LearnedTask, ...] | None = None
    """The further tasks that the method or its auxiliary loss learns. None without."""
    peft: Peft | None = None
    """Trained weights (LoRA …). Default: all."""
    source: tuple[str, ...]
    """Source languages. Empty for a method that uses none."""
    target: tuple[str, ...] = ()
    """Target languages the method trains on. Empty if it uses none."""
    optimization: Optimization = field(default_factory=Optimization)
    """Steps, learning rates, lengths and other settings of the training."""
    start: "FineTune | None" = None
    """The model it starts from, with its head. None puts a new head on the encoder."""
    parts: "tuple[FineTune | Encoder, ...] | None" = None
    """Averaged models or encoders, in the order of the method's weights. None if the weights are trained."""
    aligned: tuple[LinkedBitext, ...] | None = None
    """Bitext with word alignments, one for each pair of languages, if the method reads some."""
    translated: tuple[TranslatedSplit, ...] | None = None
    """Translations that are machine-translated, not read from the corpus's files."""
    teacher: "FineTune | None" = None
    """The model whose predictions are learned, if a method or an auxiliary loss needs one."""
    original: Encoder | None = None
    """The encoder before it was adjusted, if an auxiliary loss reads it."""
    treebanks: Treebanks = ()
    """Treebanks of languages, for a corpus with several: (("fr", "Sequoia"),)."""
    examples: Count = 0
    """Training examples of each language, drawn at random. 0 for all."""
    dev_examples: Count = 0
    """Development examples of each language, drawn at random, that choose the epoch. 0 for all."""
    seed: Whole = 0
    """Seed of the head's initial weights, the order of the data and dropout."""
    data: str = ""
    """Fingerprint of the files read, set by the plan."""

    @property
    def hyperparameters(self) -> object:  # noqa: D102
        return self.optimization

    @property
    def solves(self) -> Task:
        """The task with its labels."""
        return find_task(self.task, self.labels or ())

    @property
    def source_languages(self) -> tuple[str, ...]:
        """Source languages of the model or, without any, of the model it starts from."""
        return self.source if self.source or self.start is None else self.start.source_languages

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:  # noqa: D102
        method_reads = self.method.reads(self.source, self.target)
        method_reads = method_reads.chosen_by(self.optimization.dev, self.source, self.target)
        auxiliary_languages = self.auxiliary.reads(self.source, self.target).train if self.auxiliary else ()
        sizes: dict[Split, int] = {"train": self.examples, "dev": self.dev_examples}
        codes: dict[Split, Iterable[str]] = {
            "train": (*method_reads.train, *auxiliary_languages),
            "dev": method_reads.dev,
        }
        codes[method_reads.unlabelled_split] = (
            *codes[method_reads.unlabelled_split],
            *method_reads.unlabelled,
        )
        splits = (
            split_read(self.corpus, language, split, size, self.treebanks)
            for split, size in sizes.items()
            for language in dict.fromkeys(codes[split])
        )
        further = (
            split_read(task.corpus, language, split, size, task.treebanks)
            for task in self.further or ()
            for split, size in sizes.items()
            for language in self.source
        )
        return from_files((*splits, *further), self.translated)

    @property
    def data_read(self) -> DataRead:
        """The data that it was trained on, as its method and auxiliary loss declare it."""
        method_reads = self.method.reads(self.source, self.target)
        dev = method_reads.chosen_by(self.optimization.dev, self.source, self.target).dev
        auxiliary_reads = self.auxiliary.reads(self.source, self.target) if self.auxiliary else Reads()
        train = (*method_reads.train, *auxiliary_reads.train)
        read_here = DataRead(
            labels=(
                *(language for language in train if not is_translation(language)),
                *(self.source * bool(self.further)),
            ),
            dev=dev if train else (),
            unlabelled=method_reads.unlabelled,
            translations=tuple(language for language in (*train, *dev) if is_translation(language)),
            bitext=tuple(run.languages for run in self.aligned or ()),
        )
        models = (self.start, self.teacher, *fine_tuned(self.parts or ()))
        all_read = (read_here, *(model.data_read for model in models if model))

        def languages(name: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(language for read in all_read for language in getattr(read, name)))

        return DataRead(
            labels=languages("labels"),
            dev=languages("dev"),
            unlabelled=languages("unlabelled"),
            translations=languages("translations"),
            bitext=languages("bitext"),
            plain=self.method.plain and self.auxiliary is None,
            taught=method_reads.needs_teacher(find_task(self.task)),
        )

    @property
    def encoders(self) -> tuple[Encoder, ...]:  # noqa: D102
        return (self.encoder,)

    @property
    def label(self) -> str:
        """Name in tables: the method, its changed fields, the translator and the start."""
        if self.parts:
            combination = cast(Combination, self.method)
            name = describe_part(with_fields(combination, weights=None))
            return f"{name} of {self._parts_label(combination)}"
        name = " + ".join(describe_part(part) for part in (self.method, self.auxiliary, self.peft) if part)
        if self.translated:
            name = f"{name} by {translator_label(self.translated)}"
        return f"{name} after {self.start.label}" if self.start else name

    def _parts_label(self, method: Combination) -> str:
        parts = self.parts or ()
        weights: dict[str, list[float]] = {}
        for part, weight in zip(parts, method.weights_of(len(parts)), strict=True):
            weights.setdefault(part.label, []).append(weight)
        labels = [
            f"{fsum(shares):g} {label}" if method.weights else label for label, shares in weights.items()
        ]
        seeds = len({model.seed for model in fine_tuned(parts)})
        return " + ".join(labels) + (f", {seeds} seeds" if seeds > 1 else "")

    @property
    def title(self) -> str:  # noqa: D102
        languages = "+".join((*self.source, *self.target))
        return f"{self.label}: {self.corpus} {self.task} {languages}, seed {self.seed}"

    def read(self, context: RunContext, language: str, split: Split, size: int) -> list[Example]:
        """Read ``size`` examples of a language or a translation. 0 reads all."""
        examples = SplitRead(
            corpus=self.corpus, language=language, split=split, treebanks=self.treebanks, examples=size
        )
        return read_or_translated(context, self.translated, examples)

    def _further(self, context: RunContext, task: LearnedTask) -> FurtherTask:
        """Return a further task with the readers of its examples."""

        def read(split: Split, size: int, language: str) -> list[Example]:
            return context.sources.examples(
                task.corpus, language, split, treebanks=task.treebanks, examples=size
            )

        return FurtherTask(
            task=find_task(task.task, task.labels or ()),
            corpus=task.corpus,
            train=partial(read, "train", self.examples),
            dev=partial(read, "dev", self.dev_examples),
            limit=task.limit,
            overlap=task.overlap,
        )

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: D102
        shape = self.encoder.shape(folders)
        training = self._training_memory(shape, machine) if shape else None
        return None if shape is None or training is None else max(scoring(shape, machine), training)

    def _training_memory(self, shape: Shape, machine: Machine) -> int | None:
        optimization = self.optimization
        options = self._options()
        if self.parts:
            return scoring(shape, machine, models=2)
        if options is None:
            return None
        batch = Load(rows=optimization.batch_size * options, length=optimization.limit)
        costs = [part.cost(batch) for part in (self.auxiliary,) if part]
        costs += [part.cost() for part in (self.peft,) if part]
        rows = batch.rows * self.method.reads(self.source, self.target).sides + sum(
            cost.rows for cost in costs
        )
        copies = round(4 * sum(cost.copies for cost in costs) * shape.parameters)
        return copies + training_memory(
            shape,
            replace(batch, rows=rows),
            optimization.updates,
            machine,
            best_weights=True,
            trained_parameters=self.peft.trained(shape) if self.peft else None,
        )

    def _options(self) -> int | None:
        """Return the number of rows of an example: its options, or 1 in other tasks. None if unknown."""
        if find_task(self.task).labels_are != "option":
            return 1
        corpora = [KNOWN.get(name.partition("[")[0]) for name in self.corpus.split("+")]
        counts = [corpus.count_options() if corpus else 1 for corpus in corpora]
        return None if 1 in counts else max(counts)

    def operations(self, folders: Folders) -> float | None:  # noqa: D102
        method_reads = self.method.reads(self.source, self.target)
        # Both sides of pairs are read. Back-translations replace source examples, so they add none.
        is_paired = method_reads.sides > 1
        codes = [
            language
            for language in (*method_reads.train, *method_reads.unlabelled)
            if language.count("-") < 2 and ("-" in language) >= is_paired
        ]
        sizes = [self._size(language) for language in dict.fromkeys(codes)]
        if self.parts or not sizes:
            return 0
        shape = self.encoder.shape(folders)
        optimization = self.optimization
        if shape is None or not all(sizes):
            return None
        numbers = [size or 0 for size in sizes]
        if method_reads.examples is not None:
            numbers = [min(size, method_reads.examples) for size in numbers]
        rows = method_reads.sides * sum(numbers)
        gradients = count_gradients_per_update(optimization.updates)
        subwords = rows * optimization.epochs * optimization.limit * gradients
        return training_operations(shape, subwords, optimization.limit)

    def _size(self, language: str) -> int | None:
        size = generated_size(self.corpus, language.partition("-")[0], "train")
        if size is None:
            size = TRAIN_SIZES.get(self.corpus.partition(":")[0])
        return min(size, self.examples) if size and self.examples else size or self.examples or None

    def weights(self, context: RunContext) -> str:
        """Return its folder. An encoder that is prepared for the recipe is prepared here, if needed.

        A model of few weights is read together with its encoder.
        """
        folder = super().weights(context)
        if base_of(Path(folder)):
            self.encoder.weights(context)
        return folder

    def make(self, context: RunContext) -> RunResult:
        """Train the model, and save it."""
        from isogloss.encoders.saving import save_model
        from isogloss.training.distributed import is_main_process

        repairs: dict[str, None] = {}  # Without duplicates if a method reads examples twice.

        def read(language: str, split: Split, size: int) -> list[Example]:
            examples = self.read(context, language, split, size)
            repairs[repairs_message(examples, f"{self.corpus} {language} {split}")] = None
            return examples

        setting = Setting(
            task=self.solves,
            start=(self.start or self.encoder).weights(context),
            train=lambda language: read(language, "train", self.examples),
            dev=lambda language: read(language, "dev", self.dev_examples),
            source=self.source,
            target=self.target,
            optimization=context.with_precision(self.optimization),
            folder=context.work(self),
            seed=self.seed,
            bitext={run.languages: run.read_links(context) for run in self.aligned or ()},
            teacher="" if self.teacher is None else self.teacher.weights(context),
            original="" if self.original is None else self.original.weights(context),
            auxiliary=self.auxiliary,
            further=tuple(self._further(context, task) for task in self.further or ()),
            peft=self.peft,
            parts=tuple(
                Averaged(id=identity(part), folder=part.weights(context), has_head=bool(fine_tuned([part])))
                for part in self.parts or ()
            ),
            on_progress=context.on_progress,
        )
        result = self.method.train(setting)
        if is_main_process():
            save_model(
                result.model,
                result.tokenizer,
                context.store.model(self),
                extra_writers=result.extra_writers,
                difference=result.difference,
            )
        return RunResult(result.rows, (*result.warnings, *(repair for repair in repairs if repair)))


def fine_tuned(runs: Iterable[Run]) -> tuple[FineTune, ...]:
    """Return the fine-tuned models among runs."""
    return tuple(run for run in runs if isinstance(run, FineTune))


def assumed_sizes(runs: Iterable[Run]) -> list[str]:
    """List the corpus sizes that the operations of runs assume, in words."""
    # Methods without source examples have languages only in their target.
    models = [
        run
        for run in fine_tuned(runs)
        if not any(is_built_in(language) for language in (*run.source, *run.target))
    ]
    names = {run.corpus.partition(":")[0] for run in models} & TRAIN_SIZES.keys()
    sizes = ", ".join(f"{name} {TRAIN_SIZES[name]:,}" for name in sorted(names))
    return [f"operations: training examples of each language are taken to be {sizes}."] if sizes else []
