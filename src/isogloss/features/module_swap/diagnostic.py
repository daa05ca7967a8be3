"""Module swap: the score of two models in each language after single parts were swapped between them.

It shows which part of a difference between two models, such as a source-only and a bilingual model of one
seed, carries the difference of their scores. ``changes`` has the equations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, cast

from isogloss.core.errors import ConfigError
from isogloss.core.progress import Progress
from isogloss.core.run_parts import Positive, Whole
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting, role_of
from isogloss.features.module_swap.part_names import check_part_name, locate_part
from isogloss.features.module_swap.rows import Change, PartRow

if TYPE_CHECKING:
    from isogloss.encoders.family import Model
    from isogloss.features.module_swap.changes import ChangedModel
    from isogloss.training.evaluation import Evaluation


@dataclass(frozen=True, kw_only=True)
class ModuleSwap(Diagnostic):
    """Scores of two models after each part was swapped between them, removed or moved at random."""

    name: ClassVar[str] = "module-swap"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 1

    between: tuple[str, ...] = ("source-only", "bilingual")
    """The methods of the start and of the end. Parts of each model are put into the other."""

    parts: tuple[str, ...] | None = None
    """Parts such as "embeddings", "layer 1", "layers 1-2", "layer 1 attention", "feed-forward", "head", or
    the name of a module. Default: all parts, layers and kinds of parts."""

    changes: tuple[Change, ...] = ("swap",)
    """swap: the part of the other model. strip: no part (weights 0, norms the identity). random: moved as far
    as by the swap in a random direction, the control of the swap."""

    draws: Positive = 1
    """Random directions for each part."""

    seed: Whole = 0
    """Seed of the random directions."""

    def __post_init__(self) -> None:
        """Raise ConfigError for a wrong number of models, unknown parts, and empty lists."""
        if len(self.between) != 2:
            raise ConfigError(
                f"{self.name}: between: found {len(self.between)} methods; expected two, the methods of the "
                f"start and of the end."
            )
        for field, values in (("changes", self.changes), ("parts", self.parts)):
            if values == ():
                raise ConfigError(f"{self.name}: {field}: found an empty list. Name one or more.")
        for part in self.parts or ():
            check_part_name(part, f"{self.name}: parts")

    def measure(self, setting: MeasureSetting) -> list[PartRow]:
        """Return a row for each changed part and language."""
        import torch

        from isogloss.encoders.shared_weights import evaluation_copy
        from isogloss.features.module_swap.changes import NONE, list_changes, visit_changes

        models = [evaluation_copy(setting.load(subject)) for subject in setting.subjects]
        planned = list_changes(models, self.parts, self.changes, draws=self.draws, function=self.name)
        evaluations = [self._list_evaluations(setting, index) for index in range(len(models))]
        rows: list[PartRow] = []
        before: dict[str, float] = {}
        visits = visit_changes(models, planned, seed=self.seed, function=self.name)
        for count, changed in enumerate(visits, start=1):
            change = changed.change
            with torch.no_grad():
                scores = {
                    language: evaluation.score(cast("Model", changed.network))
                    for language, evaluation in evaluations[change.model].items()
                }
            if change.part == NONE:
                before = scores
            else:
                rows += self._list_rows(setting, changed, before, scores)
            setting.on_progress(Progress("parts", count, len(planned)))
        return rows

    def _list_evaluations(self, setting: MeasureSetting, model: int) -> dict[str, Evaluation]:
        """Return the evaluation of each language, with the mixup of a model that mixes."""
        evaluations = {language: setting.evaluation(language) for language in setting.languages}
        mixup = None if setting.paired is None else setting.mixup(setting.subjects[model])
        if mixup is None:
            return evaluations
        return {language: replace(evaluation, mixup=mixup) for language, evaluation in evaluations.items()}

    def _list_rows(
        self,
        setting: MeasureSetting,
        changed: ChangedModel,
        before: Mapping[str, float],
        scores: Mapping[str, float],
    ) -> list[PartRow]:
        start, end = setting.subjects
        change = changed.change
        layer, module = locate_part(change.part)
        sources = setting.source or setting.languages[:1]
        return [
            PartRow(
                start=start.id,
                end=end.id,
                changed=("start", "end")[change.model],
                part=change.part,
                layer=layer,
                module=module,
                change=change.change,
                draw=change.draw,
                parameters=changed.parameters,
                norm=changed.norm,
                language=language,
                role=role_of(language, sources),
                split=setting.split,
                metric=setting.evaluation(language).metric,
                before=before[language],
                score=score,
            )
            for language, score in scores.items()
        ]
