"""Floor 5: one measurement per file."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from isogloss.core.run_parts import Named
from isogloss.diagnostics.cka import Cka
from isogloss.diagnostics.deltas import Deltas
from isogloss.diagnostics.gradient_conflict import GradientConflict, TaskGradientConflict
from isogloss.diagnostics.interpolation import Interpolation, Plane
from isogloss.diagnostics.language_gates import LanguageGates
from isogloss.diagnostics.mixup_ratio import MixupRatio
from isogloss.diagnostics.mixup_sweep import MixupSweep
from isogloss.diagnostics.representation_map import RepresentationMap
from isogloss.diagnostics.retrieval import Retrieval
from isogloss.diagnostics.run_variance import RunVariance
from isogloss.diagnostics.scores import Scores
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.diagnostics.transfer_gap import TransferGap
from isogloss.diagnostics.word_distance import WordDistance


class Diagnostic(Named, Protocol):
    """A measurement; its fields say how it is taken."""

    subject: ClassVar[str]
    """What one measurement looks at: a "model", the models of a "cell" (its field ``between``), the
    "scores" of a model, the scores of all "seeds", an "encoder"; or, one after the other, every encoder and
    the encoder within every model: their "states" on bitext, or on anything "parallel" (bitext, or labelled
    test sets), or their "words" on bitext whose words are aligned; or every encoder with its masked-LM head,
    on raw "text"."""

    def measure(self, setting: MeasureSetting) -> Sequence[object]:
        """Return rows of the kinds that ``core.rows`` declares for it."""
        ...


ON_BITEXT = ("encoder", "states", "words")
"""What is looked at on translations alone; what is "parallel" also on labelled examples."""

_ALL: tuple[type[Diagnostic], ...] = (
    Scores,
    Interpolation,
    Plane,
    Deltas,
    RunVariance,
    TransferGap,
    Retrieval,
    WordDistance,
    Cka,
    RepresentationMap,
    MixupRatio,
    MixupSweep,
    GradientConflict,
    TaskGradientConflict,
    LanguageGates,
)
DIAGNOSTICS: dict[str, type[Diagnostic]] = {diagnostic.name: diagnostic for diagnostic in _ALL}

__all__ = ["DIAGNOSTICS", "ON_BITEXT", "Diagnostic", "MeasureSetting"]
