"""Language-specific parameters: which of a frozen encoder's parameters does each language need?

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4, Fig. 4: for each language, gates over
the parameters are learned by masked language modelling on its text alone (``training.gate_training``), and
the parameters π of the gates (log α, above 0 where a gate is rather open) are compared between languages,
layer by layer, attention and feed-forward apart. As the control each language's gates are learned again.

The paper compares by cosine. What all gates have in common, their mean, makes cosines high whatever the
language; the correlation beside it is the cosine without that. A mask is then put to use: how well the
pruned model predicts its language, and every other one.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.progress import Progress
from isogloss.core.rows import MaskKept, MaskPerplexity, MaskSimilarity, SpecificGates
from isogloss.core.runs import Positive, Rate, Share, Weight, Whole
from isogloss.core.seeds import derive
from isogloss.diagnostics.mask_rows import kept_rows, likeness_rows, specific_gates, specific_rows
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.diagnostics.trained_length import warn_of_length
from isogloss.encoders import family_of
from isogloss.encoders.gates import (
    FILE,
    NONE,
    GateGroup,
    GateKinds,
    Mask,
    gate_groups,
    gated,
    mask_metadata,
    mask_tensors,
)
from isogloss.tasks.masked_lm import MaskedBatch, Masking, Vocabulary
from isogloss.tasks.text_stream import subwords_of
from isogloss.training.gate_training import GateTraining, learn_gates
from isogloss.training.gradient_conflict import masked_parts
from isogloss.training.pretraining import perplexity

HELD_OUT = 32768
"""Most subwords of a language that perplexity is computed on: some 5,000 predictions."""

TENTH = 10
"""Of a short text, one block in so many is held out."""

SHORTEST = 8
"""Subwords of the shortest rows that make sense: six of text, two special."""


@dataclass(frozen=True, kw_only=True)
class LanguageGates:
    """Gates over a frozen encoder's parameters, learned for each language: how alike, and what they cost."""

    name: ClassVar[str] = "language-gates"
    subject: ClassVar[str] = "text"
    version: ClassVar[int] = 2

    attention: str = "row"
    """What has a gate in attention: each weight, each row of a matrix, each head, or none."""

    feed_forward: str = "row"
    """What has a gate in feed-forward: each weight, each row of a matrix, each neuron, or none."""

    sparsity: Share = 0.5
    """Share of the gated parameters that is pruned, the same for all languages; 0 lets penalty decide."""

    penalty: Weight = 0.0
    """λ of Eq. 1 where no sparsity is asked for: what keeping all gated parameters costs, in nats."""

    draws: Positive = 3
    """Times each language's gates are learned; two or more give the control."""

    steps: Positive = 300
    """Updates of each training of gates."""

    batch_subwords: Positive = 4096
    """Subwords of one update."""

    block: Positive = 128
    """Subwords of one row of text, special ones included."""

    masked: Share = 0.15
    """Share of the subwords that are predicted."""

    learning_rate: Rate = 0.1
    """Highest rate; it falls linearly to 0."""

    settle: Share = 0.5
    """Share of the steps after which the whole sparsity is asked for; before, it rises."""

    start: Share = 0.95
    """Probability that a gate is open before the first update."""

    seed: Whole = 0
    """Seed of text, masks and gates; languages and draws each derive their own."""

    def __post_init__(self) -> None:
        """Refuse what cannot be learned."""
        kinds = self._kinds()
        allowed = {
            "attention": {kinds.attention, kinds.feed_forward} != {NONE},
            "sparsity": self.sparsity < 1,
            "penalty": bool(self.penalty or self.sparsity),
            "block": self.block >= SHORTEST,
            "batch_subwords": self.batch_subwords >= self.block,
            "masked": self.masked > 0,
            "start": 0 < self.start < 1,
        }
        for field, fine in allowed.items():
            if not fine:
                raise ConfigError(
                    f"{self.name}: {field} cannot be {getattr(self, field)} here. There are gates in "
                    f"attention or feed-forward, sparsity is below 1 (or 0, and penalty above 0), start is "
                    f"between 0 and 1, block is {SHORTEST} or more and batch_subwords at least block."
                )

    def measure(
        self, setting: MeasureSetting
    ) -> list[MaskSimilarity | MaskPerplexity | MaskKept | SpecificGates]:
        """Return rows of four kinds: likeness of masks, perplexities, kept shares, gates of one language."""
        model, tokenizer = setting.masked_lm(setting.subjects[0])
        self._check_block(tokenizer)
        warn_of_length(setting, self.name, "block", self.block)
        groups = {
            language: gate_groups(model, self._kinds(), language=language) for language in setting.languages
        }
        every = groups[setting.languages[0]]
        masking = Masking(
            vocabulary=Vocabulary.of(tokenizer),
            share=self.masked,
            first_position=family_of(model).first_position,
        )
        text = {language: self._text(setting, language, tokenizer, masking) for language in setting.languages}
        masks = [
            self._learned(setting, (model, masking), groups[language], (language, own.blocks), draw)
            for language, own in text.items()
            for draw in range(self.draws)
        ]
        specific = specific_gates(masks, every)
        lists = {"/".join(("specific", *key)): numbers for key, numbers in specific.items()}
        setting.keep_tensors(FILE, {**mask_tensors(masks), **lists}, mask_metadata(self._kinds()))
        encoder = setting.subjects[0].id
        return [
            *likeness_rows(encoder, masks, every),
            *_perplexity_rows(setting, model, groups, masks, text),
            *kept_rows(encoder, masks, every),
            *specific_rows(encoder, specific, every),
        ]

    def _kinds(self) -> GateKinds:
        return GateKinds(attention=self.attention, feed_forward=self.feed_forward)

    def _check_block(self, tokenizer: Any) -> None:
        if self.block > tokenizer.model_max_length:
            raise ConfigError(
                f"{self.name}: rows of {self.block} subwords (block), but the encoder takes only "
                f"{tokenizer.model_max_length}. Lower block."
            )

    def _text(self, setting: MeasureSetting, language: str, tokenizer: Any, masking: Masking) -> "_Text":
        """Read as many blocks as the training can use, and hold some of them out."""
        rows, held = self._rows(), HELD_OUT // self.block
        lines = subwords_of(setting.text(language), tokenizer)
        blocks = list(
            islice(_blocks(lines, tokenizer.sep_token_id, self.block - 2), rows * self.steps + held)
        )
        if len(blocks) < 2:
            raise DataError(
                f"{self.name}: the text of {language} ({setting.split}) fills {len(blocks)} rows of "
                f"{self.block} subwords; two or more are needed, and hundreds are better. Choose another "
                f"split or corpus, read more lines (examples), or lower block."
            )
        held = max(1, min(held, len(blocks) // TENTH))
        apart = set(np.linspace(0, len(blocks) - 1, held).astype(int).tolist())
        own = [block for place, block in enumerate(blocks) if place in apart]
        seed = derive(self.seed, language, "held out")
        return _Text(
            [block for place, block in enumerate(blocks) if place not in apart],
            masked_parts(own, masking, seed=seed, budget=self.batch_subwords, language=language),
        )

    def _rows(self) -> int:
        return max(1, self.batch_subwords // self.block)

    def _learned(
        self,
        setting: MeasureSetting,
        loaded: tuple[Any, Masking],
        groups: Sequence[GateGroup],
        text: tuple[str, Sequence[np.ndarray]],
        draw: int,
    ) -> Mask:
        how = GateTraining(
            steps=self.steps,
            rows=self._rows(),
            learning_rate=self.learning_rate,
            sparsity=self.sparsity,
            penalty=self.penalty,
            settle=self.settle,
            start=self.start,
            precision=setting.precision,
        )
        seed = derive(self.seed, text[0], draw)
        found = learn_gates(loaded, groups, text, how, seed=seed, on_progress=setting.on_progress)
        return Mask(
            language=text[0], draw=draw, kinds=self._kinds(), log_alpha=found.log_alpha, above=found.above
        )


@dataclass(frozen=True)
class _Text:
    """A language's blocks to learn from, and batches of others that are held out."""

    blocks: list[np.ndarray]
    held_out: list[MaskedBatch]


def _blocks(lines: Iterable[list[int]], separator: int, length: int) -> Iterator[np.ndarray]:
    """Join lines, each closed by the separator, and cut the row into blocks; the rest is left out."""
    row: list[int] = []
    for line in lines:
        row += [*line, separator] if line else []
        while len(row) >= length:
            yield np.array(row[:length], dtype=np.int32)
            del row[:length]


def _perplexity_rows(
    setting: MeasureSetting,
    model: Any,
    groups: Mapping[str, Sequence[GateGroup]],
    masks: Sequence[Mask],
    text: Mapping[str, _Text],
) -> Iterator[MaskPerplexity]:
    """Give the perplexity of every language: of the whole model, and under each language's masks."""
    device = next(model.parameters()).device
    runs: list[Mask | None] = [None, *masks]
    for number, mask in enumerate(runs, start=1):
        gates = {name: one.to(device) for name, one in mask.gates().items()} if mask else {}
        for language, own in text.items():
            with gated(model, groups[language], gates):
                found = perplexity(model, own.held_out, precision=setting.precision)
            yield MaskPerplexity(
                model=setting.subjects[0].id,
                language=language,
                mask=mask.language if mask else "",
                draw=mask.draw if mask else None,
                perplexity=found if math.isfinite(found) else None,
            )
        setting.on_progress(Progress("perplexity", number, len(runs), mask.language if mask else "unpruned"))
