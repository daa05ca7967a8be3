"""Adjustment of encoders: move the states of translations together."""

from dataclasses import dataclass, replace
from typing import ClassVar

from isogloss.core.identity import derive, identity
from isogloss.core.run_parts import Positive, Whole
from isogloss.data.examples import Translation, subsample
from isogloss.runs.estimates import Folders, encoder_training, encoder_training_operations, scoring
from isogloss.runs.run import Encoder, LinkedBitext, RunContext, RunResult, SplitRead
from isogloss.training.memory import Machine
from isogloss.training.setting import Adjustment, AdjustSetting


@dataclass(frozen=True, kw_only=True)
class Adjust(Encoder):
    """Adjust an encoder by aligning the states of translations."""

    name: ClassVar[str] = "adjust"
    trains: ClassVar[bool] = True
    encoder: Encoder
    """The encoder it starts from."""
    method: Adjustment
    """Objective, length and optimization."""
    aligned: tuple[LinkedBitext, ...]
    """Bitext with word alignments, one for each pair of languages. The source language is the first of a
    pair."""
    sampled: Positive | None = None
    """Maximum number of translations per pair of languages, drawn at random by the seed. None: all aligned
    translations."""
    seed: Whole = 0
    """Seed of the sample, the order and dropout."""

    @property
    def splits_read(self) -> tuple[SplitRead, ...]:
        """The bitext it samples from. The alignments read the whole bitext."""
        return tuple(
            SplitRead(corpus=run.bitext, language=run.languages, split=run.split, examples=self.sampled)
            for run in self.aligned
            if self.sampled
        )

    @property
    def base(self) -> Encoder:
        """The encoder it starts from."""
        return self.encoder

    @property
    def original(self) -> Encoder:
        """The encoder that was adjusted first."""
        return self.encoder.original

    @property
    def hyperparameters(self) -> object:  # noqa: D102
        return self.method

    @property
    def label(self) -> str:
        """Name in tables: adjusted encoder, method, bitext and the beginning of the id."""
        pairs = "+".join(run.languages for run in self.aligned)
        count = self.sampled or self.aligned[0].examples
        size = f"{count} " if count else ""
        return f"{self.encoder.label}, {self.method.name} on {size}{pairs} ({identity(self)[:6]})"

    @property
    def seeds(self) -> tuple[int, ...]:  # noqa: D102
        return (self.seed, *self.encoder.seeds)

    def seedless(self) -> "Adjust":  # noqa: D102
        return replace(self, seed=0, encoder=self.encoder.seedless())

    def mapped_languages(self, folders: Folders) -> frozenset[str] | None:  # noqa: D102
        if not self.method.maps:
            return super().mapped_languages(folders)
        return frozenset(language for run in self.aligned for language in run.languages.split("-"))

    def memory(self, folders: Folders, machine: Machine) -> int | None:  # noqa: D102
        shape = self.shape(folders)
        cost = self.method.cost(1)
        if shape is None:
            return None
        peak = scoring(shape, machine)
        if cost is None or not cost.steps:
            return peak
        dropout = shape.dropout and cost.dropout
        return max(peak, encoder_training(cost, replace(shape, dropout=dropout), machine))

    def operations(self, folders: Folders) -> float | None:  # noqa: D102
        pairs = [self.sampled or run.examples for run in self.aligned]
        cost = self.method.cost(sum(pairs))
        shape = self.shape(folders)
        if cost is None:
            return 0
        return None if shape is None or not all(pairs) else encoder_training_operations(cost, shape)

    def make(self, context: RunContext) -> RunResult:
        """Train on aligned bitext, and save the encoder."""
        from isogloss.encoders.saving import save_model
        from isogloss.training.distributed import is_main_process

        def sample(run: LinkedBitext) -> list[Translation]:
            pairs = run.read_links(context)
            if self.sampled is None:
                return pairs
            return subsample(pairs, self.sampled, seed=derive(self.seed, "pairs", run.languages))

        setting = AdjustSetting(
            start=self.encoder.weights(context),
            bitext={run.languages: sample(run) for run in self.aligned},
            folder=context.work(self),
            seed=self.seed,
            on_progress=context.on_progress,
        )
        result = context.with_precision(self.method).train(setting)
        if is_main_process():
            save_model(result.model, result.tokenizer, context.store.model(self))
        return RunResult(result.rows, result.warnings)
