"""Language-specific parameters: which of a frozen encoder's parameters does each language need?

"On Negative Interference in Multilingual Models", Sections 3.2 and 3.4, Fig. 4: for each language, gates over
the parameters are learned by masked language modelling on only its text (``gate_training``). The parameters π
of the gates (log α, above 0 if a gate is more open than closed) are compared between languages, by layer,
separately for attention and feed-forward. As a control, each language's gates are learned twice.

The paper compares by cosine. The mean that all gates share makes cosines high whatever the language; the
correlation is the cosine without it. Finally each mask is applied: how well does the pruned model predict its
language, and every other one?
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, islice, permutations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int64

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Rate, Share, Weight, Whole, with_fields
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Tokenizer
from isogloss.features.language_gates.gate_files import MASKS
from isogloss.features.language_gates.rows import (
    MaskKeptRow,
    MaskPerplexityRow,
    MaskSimilarityRow,
    SpecificGatesRow,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isogloss.features.language_gates.gates import GateGroup, GateKinds, Mask
    from isogloss.tasks.masked_lm import MaskedBatch, Masking

    Specific = dict[tuple[str, str, str], Int64[Tensor, " gate"]]
    """Indices of gates, by the language that keeps them, the language that prunes them, and the group."""

MAX_HELD_OUT_SUBWORDS = 32768
"""Maximum subwords of a language that perplexity is computed on: some 5,000 predictions."""

HELD_OUT_EVERY = 10
"""In a short text, every tenth block is held out."""

MIN_ROW_SUBWORDS = 8
"""Subwords of the shortest rows allowed: six of text, two special."""

Part = tuple[int | None, str]
"""A layer, counted from 1 (None: all layers), and a module: attention, feed-forward or "all"."""


@dataclass(frozen=True, kw_only=True)
class LanguageGates(Diagnostic):
    """Gates over a frozen encoder's parameters, learned for each language, with their similarity and cost."""

    name: ClassVar[str] = "language-gates"
    subject: ClassVar[str] = "text"
    computes_gradients: ClassVar[bool] = True
    version: ClassVar[int] = 2

    attention: str = "row"
    """Unit that a gate controls in attention: weight, row (of a matrix), head, or none."""

    feed_forward: str = "row"
    """Unit that a gate controls in feed-forward: weight, row (of a matrix), neuron, or none."""

    sparsity: Share = 0.5
    """Share of the gated parameters that is pruned, for every language. 0: the penalty decides."""

    penalty: Weight = 0.0
    """λ of Eq. 1 where sparsity is 0: the cost of keeping all gated parameters, in nats."""

    draws: Positive = 3
    """Number of times that each language's gates are learned. The control needs two or more."""

    steps: Positive = 300
    """Updates per training of gates."""

    batch_subwords: Positive = 4096
    """Subwords per update."""

    block: Positive = 128
    """Subwords per row of text, special ones included."""

    masked: Share = 0.15
    """Share of the subwords that are predicted."""

    learning_rate: Rate = 0.1
    """Peak learning rate. It decays linearly to 0."""

    settle: Share = 0.5
    """Share of the steps over which the target sparsity rises to its full value."""

    start: Share = 0.95
    """Probability that a gate is open before the first update."""

    seed: Whole = 0
    """Seed of text, masks and gates. Languages and draws each derive their own."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot be learned."""
        from isogloss.features.language_gates.gates import NONE

        kinds = self._kinds()
        conditions = {
            "attention": {kinds.attention, kinds.feed_forward} != {NONE},
            "sparsity": self.sparsity < 1,
            "penalty": bool(self.penalty or self.sparsity),
            "block": self.block >= MIN_ROW_SUBWORDS,
            "batch_subwords": self.batch_subwords >= self.block,
            "masked": self.masked > 0,
            "start": 0 < self.start < 1,
        }
        for field, is_met in conditions.items():
            if not is_met:
                raise ConfigError(
                    f"{self.name}: {field} cannot be {getattr(self, field)} here. Gates must be in attention "
                    f"or feed-forward, sparsity is below 1 (or 0, and penalty above 0), start is "
                    f"between 0 and 1, block is {MIN_ROW_SUBWORDS} or more and batch_subwords at least block."
                )

    def measure(
        self, setting: MeasureSetting
    ) -> list[MaskSimilarityRow | MaskPerplexityRow | MaskKeptRow | SpecificGatesRow]:
        """Return rows of mask similarity, perplexity, kept shares and language-specific gates."""
        from isogloss.features.language_gates.gates import gate_groups, mask_tensors
        from isogloss.tasks.masked_lm import Masking, Vocabulary

        model, tokenizer = setting.masked_lm(setting.subjects[0])
        setting.warn_of_length(self.name, "block", self.block)
        groups = {
            language: gate_groups(model, self._kinds(), language=language) for language in setting.languages
        }
        all_groups = groups[setting.languages[0]]
        masking = Masking(
            vocabulary=Vocabulary.from_tokenizer(tokenizer),
            share=self.masked,
            first_position=family_of(model).first_position,
        )
        text = {language: self._text(setting, language, tokenizer, masking) for language in setting.languages}
        masks = [
            self._learn_mask(
                setting, (model, masking), groups[language], (language, language_text.blocks), draw
            )
            for language, language_text in text.items()
            for draw in range(self.draws)
        ]
        specific = specific_gates(masks, all_groups)
        lists = {"/".join(("specific", *key)): numbers for key, numbers in specific.items()}
        setting.keep_tensors(MASKS, {**mask_tensors(masks), **lists}, asdict(self._kinds()))
        encoder = setting.subjects[0].id
        return [
            *similarity_rows(encoder, masks, all_groups),
            *_perplexity_rows(setting, model, groups, masks, text),
            *kept_rows(encoder, masks, all_groups),
            *specific_rows(encoder, specific, all_groups),
        ]

    def _kinds(self) -> GateKinds:
        from isogloss.features.language_gates.gates import GateKinds

        return GateKinds(attention=self.attention, feed_forward=self.feed_forward)

    def _text(
        self, setting: MeasureSetting, language: str, tokenizer: Tokenizer, masking: Masking
    ) -> "_Text":
        """Read the blocks that training can use, and hold out some of them."""
        from isogloss.tasks.masked_lm import subwords_of
        from isogloss.training.gradient_conflict import masked_parts

        if self.block > tokenizer.model_max_length:
            raise ConfigError(
                f"{self.name}: rows of {self.block} subwords (block), but the encoder takes only "
                f"{tokenizer.model_max_length}. Lower block."
            )
        rows, held_out = self._rows(), MAX_HELD_OUT_SUBWORDS // self.block
        lines = subwords_of(setting.text(language), tokenizer)
        blocks = list(
            islice(_blocks(lines, tokenizer.sep_token_id, self.block - 2), rows * self.steps + held_out)
        )
        if len(blocks) < 2:
            raise DataError(
                f"{self.name}: the text of {language} ({setting.split}) fills {len(blocks)} rows of "
                f"{self.block} subwords; two or more are needed, and hundreds are better. Choose another "
                f"split or corpus, read more lines (examples), or lower block."
            )
        held_out = max(1, min(held_out, len(blocks) // HELD_OUT_EVERY))
        held_indices = set(np.linspace(0, len(blocks) - 1, held_out).astype(int).tolist())
        held_blocks = [block for index, block in enumerate(blocks) if index in held_indices]
        seed = derive(self.seed, language, "held out")
        return _Text(
            [block for index, block in enumerate(blocks) if index not in held_indices],
            masked_parts(held_blocks, masking, seed=seed, budget=self.batch_subwords, language=language),
        )

    def _rows(self) -> int:
        return max(1, self.batch_subwords // self.block)

    def _learn_mask(
        self,
        setting: MeasureSetting,
        model_and_masking: tuple[nn.Module, Masking],
        groups: Sequence[GateGroup],
        text: tuple[str, Sequence[np.ndarray]],
        draw: int,
    ) -> Mask:
        from isogloss.features.language_gates.gate_training import GATE_UPDATES, GateTraining, learn_gates
        from isogloss.features.language_gates.gates import Mask

        training = GateTraining(
            steps=self.steps,
            rows=self._rows(),
            updates=with_fields(GATE_UPDATES, learning_rate=self.learning_rate, precision=setting.precision),
            sparsity=self.sparsity,
            penalty=self.penalty,
            settle=self.settle,
            start=self.start,
        )
        seed = derive(self.seed, text[0], draw)
        gates = learn_gates(
            model_and_masking, groups, text, training, seed=seed, on_progress=setting.on_progress
        )
        return Mask(
            language=text[0],
            draw=draw,
            kinds=self._kinds(),
            log_alpha=gates.log_alpha,
            above=gates.threshold,
        )


@dataclass(frozen=True)
class _Text:
    """A language's blocks for training, and held-out batches."""

    blocks: list[np.ndarray]
    held_out: list[MaskedBatch]


def _blocks(lines: Iterable[list[int]], separator: int, length: int) -> Iterator[np.ndarray]:
    """Concatenate lines, each followed by the separator, and yield full blocks. The rest is dropped."""
    row: list[int] = []
    for line in lines:
        row += [*line, separator] if line else []
        while len(row) >= length:
            yield np.array(row[:length], dtype=np.int32)
            del row[:length]


def _perplexity_rows(
    setting: MeasureSetting,
    model: nn.Module,
    groups: Mapping[str, Sequence[GateGroup]],
    masks: Sequence[Mask],
    text: Mapping[str, _Text],
) -> Iterator[MaskPerplexityRow]:
    """Yield the perplexity of every language, without a mask and under each language's masks."""
    from isogloss.features.language_gates.gates import with_gates
    from isogloss.training.batching import perplexity

    device = next(model.parameters()).device
    runs: list[Mask | None] = [None, *masks]
    for count, mask in enumerate(runs, start=1):
        gates = {name: gate.to(device) for name, gate in mask.gates().items()} if mask else {}
        for language, language_text in text.items():
            with with_gates(model, groups[language], gates):
                value = perplexity(model, language_text.held_out, precision=setting.precision)
            yield MaskPerplexityRow(
                model=setting.subjects[0].id,
                language=language,
                mask=mask.language if mask else "",
                draw=mask.draw if mask else None,
                perplexity=value if math.isfinite(value) else None,
            )
        setting.on_progress(Progress("perplexity", count, len(runs), mask.language if mask else "unpruned"))


def gate_cosine(x: Float[Tensor, " gate"], y: Float[Tensor, " gate"]) -> float | None:
    """Return the cosine of two vectors. None if one of them is 0."""
    x, y = x.double(), y.double()
    lengths = float(x.norm() * y.norm())
    return max(-1.0, min(1.0, float(x @ y) / lengths)) if lengths > 0 else None


def correlation(x: Float[Tensor, " gate"], y: Float[Tensor, " gate"]) -> float | None:
    """Return Pearson's correlation of two vectors. None if one of them is constant."""
    if bool((x == x[0]).all()) or bool((y == y[0]).all()):
        return None
    x, y = x.double(), y.double()
    return gate_cosine(x - x.mean(), y - y.mean())


def jaccard(x: Bool[Tensor, " gate"], y: Bool[Tensor, " gate"]) -> float | None:
    """Return the Jaccard index of the gates that two masks keep. None if none is kept."""
    union = int((x | y).sum())
    return int((x & y).sum()) / union if union else None


def similarity_rows(
    model: str, masks: Sequence[Mask], groups: Sequence[GateGroup]
) -> Iterator[MaskSimilarityRow]:
    """Yield a row for each pair of masks and part of the model. Pairs of one language are the control."""
    from isogloss.features.language_gates.gates import open_probability

    for mask_x, mask_y in combinations(masks, 2):
        for (layer, module), part in parts_of(groups).items():
            x, y = log_alphas(mask_x, part), log_alphas(mask_y, part)
            open_x, open_y = x > mask_x.above, y > mask_y.above
            yield MaskSimilarityRow(
                model=model,
                first=mask_x.language,
                first_draw=mask_x.draw,
                second=mask_y.language,
                second_draw=mask_y.draw,
                layer=layer,
                module=module,
                gates=len(x),
                cosine=gate_cosine(x, y),
                correlation=correlation(x, y),
                open_cosine=gate_cosine(open_probability(x), open_probability(y)),
                overlap=jaccard(open_x, open_y),
                only_first=int((open_x & ~open_y).sum()),
                only_second=int((open_y & ~open_x).sum()),
            )


def kept_rows(model: str, masks: Sequence[Mask], groups: Sequence[GateGroup]) -> Iterator[MaskKeptRow]:
    """Yield a row for each mask and part: the share of parameters it keeps, and its expected share."""
    import torch

    from isogloss.features.language_gates.gates import kept_share

    for mask in masks:
        for (layer, module), part in parts_of(groups).items():
            log_alpha = log_alphas(mask, part)
            sizes = torch.cat([torch.full((group.size,), float(group.parameters)) for group in part])
            yield MaskKeptRow(
                model=model,
                mask=mask.language,
                draw=mask.draw,
                layer=layer,
                module=module,
                parameters=int(sizes.sum()),
                kept=float((log_alpha > mask.above).double() @ sizes.double() / sizes.double().sum()),
                expected=float(kept_share(log_alpha.double(), sizes.double())),
            )


def specific_gates(masks: Sequence[Mask], groups: Sequence[GateGroup]) -> Specific:
    """List the gates kept by every mask of a language and pruned by every mask of a second language."""
    import torch

    languages = list(dict.fromkeys(mask.language for mask in masks))
    specific: Specific = {}
    for group in groups:
        kept_by = {
            language: torch.stack(
                [mask.find_kept(group.name).flatten() for mask in masks if mask.language == language]
            )
            for language in languages
        }
        for keeper, pruner in permutations(languages, 2):
            only = kept_by[keeper].all(dim=0) & ~kept_by[pruner].any(dim=0)
            specific[keeper, pruner, group.name] = only.nonzero().flatten()
    return specific


def specific_rows(model: str, specific: Specific, groups: Sequence[GateGroup]) -> Iterator[SpecificGatesRow]:
    """Yield a row for each pair of languages and part: gates and parameters that only the first keeps."""
    for keeper, pruner in dict.fromkeys((keeper, pruner) for keeper, pruner, _ in specific):
        for (layer, module), part in parts_of(groups).items():
            counts = [len(specific[keeper, pruner, group.name]) for group in part]
            yield SpecificGatesRow(
                model=model,
                keeps=keeper,
                prunes=pruner,
                layer=layer,
                module=module,
                gates=sum(counts),
                of=sum(group.size for group in part),
                parameters=sum(n * group.parameters for n, group in zip(counts, part, strict=True)),
            )


def parts_of(groups: Sequence[GateGroup]) -> Mapping[Part, list[GateGroup]]:
    """Return the groups of each part: attention and feed-forward of a layer, of all layers, and all."""
    parts: dict[Part, list[GateGroup]] = {}
    for group in groups:
        for part in ((group.layer, group.module), (None, group.module), (None, "all")):
            parts.setdefault(part, []).append(group)
    return parts


def log_alphas(mask: Mask, groups: Sequence[GateGroup]) -> Float[Tensor, " gate"]:
    """Return a mask's log α in some groups, concatenated."""
    import torch

    return torch.cat([mask.log_alpha[group.name].flatten() for group in groups])
