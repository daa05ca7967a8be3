"""Scores of models of FLARE whose adapters read a text with its translation into the source language.

The control reads the translation of a different example: where it scores as much, the content of the
translations is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.language_fusion.rows import FusedScoreRow

if TYPE_CHECKING:
    from torch import Tensor

    from isogloss.encoders.family import Model
    from isogloss.features.language_fusion.fusion import Fusion
    from isogloss.tasks.batch import EncodedRow
    from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class LanguageFusion(Diagnostic):
    """Scores of a model of FLARE with and without translations of its inputs."""

    name: ClassVar[str] = "language-fusion"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 1
    reads_translations: ClassVar[bool] = True

    between: tuple[str, ...] = ("flare + lora",)
    """The method of the model: its label, or its name and the kind of peft."""

    seed: Whole = 0
    """Seed by which translations are shuffled for the control."""

    def __post_init__(self) -> None:
        """Refuse several models."""
        if len(self.between) != 1:
            raise ConfigError(
                f"{self.name}: between: found {len(self.between)} methods; expected one, of FLARE. Add a "
                f"measurement for each method."
            )

    def measure(self, setting: MeasureSetting) -> list[FusedScoreRow]:
        """Return a row for each target language."""
        from isogloss.features.language_fusion.method import load_fusion

        (subject,) = setting.subjects
        fusion = load_fusion(subject.folder)
        if fusion is None or fusion == "none":
            raise ModelError(
                f"{self.name}: the model of {self.between[0]} fuses no languages. Name a method flare "
                f"with a fusion in between."
            )
        model = setting.load_factors(subject)
        _, tokenizer = setting.encoder(subject)
        rows = []
        for language in setting.languages:
            if language in setting.source:
                continue
            data = replace(setting.evaluation(language), on_progress=setting.on_progress)
            partners = partner_rows(data, setting.translated_evaluation(language))
            if not partners:
                raise DataError(
                    f"{self.name}: no translation has the id of an example of {language}. Give translations "
                    f"of this test set."
                )
            languages = (setting.source[0] if setting.source else "", language)
            shuffled = shuffle_partners(partners, seed=derive(self.seed, language))
            scores = [
                _score(data, model, cast("Fusion", fusion), pairing, tokenizer.pad_token_id, languages)
                for pairing in ({}, partners, shuffled)
                if pairing is not None
            ]
            rows.append(
                FusedScoreRow(
                    model=subject.id,
                    language=language,
                    split=setting.split,
                    metric=data.metric,
                    alone=scores[0],
                    fused=scores[1],
                    shuffled=scores[2] if shuffled is not None else None,
                    translated=len({data.rows[row].example for row in partners}) / len(data.examples),
                    examples=len(data.examples),
                )
            )
        return rows


def partner_rows(data: Evaluation, translated: Evaluation) -> dict[int, EncodedRow]:
    """Return the translation's row with which each row is read, by row index. Examples match by id."""
    from isogloss.training.sides import scoring_partners

    numbers = {example.id: index for index, example in enumerate(data.examples)}
    ids = [example.id for example in translated.examples]
    rows = [
        replace(row, example=numbers[ids[row.example]])
        for row in translated.rows
        if ids[row.example] in numbers
    ]
    return scoring_partners(data.rows, rows)


def shuffle_partners(partners: Mapping[int, EncodedRow], *, seed: int) -> dict[int, EncodedRow] | None:
    """Pair each row with the translation of a different example, or return None for a single example."""
    import numpy as np

    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(partners))
    indices = list(partners)
    shuffled = {
        indices[place]: partners[indices[order[(position + 1) % len(order)]]]
        for position, place in enumerate(order)
    }
    is_own = [partner.example == partners[index].example for index, partner in shuffled.items()]
    sizes = {len(partner.options) for partner in partners.values()}
    return None if all(is_own) or len(sizes) > 1 else shuffled


def _score(
    data: Evaluation,
    model: Model,
    fusion: Fusion,
    partners: Mapping[int, EncodedRow],
    padding: int,
    languages: tuple[str, str],
) -> float:
    """Return the score of a model whose adapters read rows together with their partners, if any."""
    from contextlib import nullcontext

    import torch

    from isogloss.features.language_fusion.fusion import fused_adapters
    from isogloss.training.evaluation import scored_batches
    from isogloss.training.precision import release_memory, scoring

    row_scores: list[Tensor] = [torch.empty(0)] * len(data.rows)
    model.eval()
    with scoring(model, data.precision) as device:
        for batch in scored_batches(data.rows, partners, padding=padding, languages=languages):
            sides = batch.sides.to(device)
            fused = fused_adapters(model, fusion, sides.joined.mask) if sides.paired else nullcontext()
            with fused:
                _, scores = sides.split(data.task.scores(model, sides.joined).float().cpu())
            counts = [data.rows[row].scored for row in batch.numbers]
            for row, part in zip(batch.numbers, torch.split(scores, counts), strict=True):
                row_scores[row] = part
    release_memory()
    return data.task.score(data.gold, data.task.decode(data.examples, data.rows, row_scores))
