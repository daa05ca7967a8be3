"""Floor 5: measurements of models, encoders and scores."""

from collections.abc import Sequence
from typing import ClassVar, Protocol

from isogloss.core.run_parts import Named
from isogloss.diagnostics.anisotropy import Anisotropy
from isogloss.diagnostics.cka import Cka
from isogloss.diagnostics.gradient_conflict import GradientConflict, TaskGradientConflict
from isogloss.diagnostics.label_free import LabelFree
from isogloss.diagnostics.language_gates import LanguageGates
from isogloss.diagnostics.link_attention import LinkAttention
from isogloss.diagnostics.mining import Mining
from isogloss.diagnostics.mixup import MixupRatio, MixupSweep
from isogloss.diagnostics.representation_map import RepresentationMap
from isogloss.diagnostics.retrieval import Retrieval
from isogloss.diagnostics.scores import RunVariance, Scores, TransferGap
from isogloss.diagnostics.setting import MeasureSetting
from isogloss.diagnostics.weight_space import Deltas, Interpolation, Plane
from isogloss.diagnostics.word_distance import WordDistance


class Diagnostic(Named, Protocol):
    """A measurement; its fields say how it is taken."""

    subject: ClassVar[str]
    """What one measurement is taken of: a "model", the models of a "cell" (its field ``between``), the
    "scores" of a model, the scores of all "seeds", an "encoder"; or each encoder and each model's encoder in
    turn: its "states" on bitext, or on anything "parallel" (bitext or labelled test sets), or on "comparable"
    text, or its "words" on word-aligned bitext; or each encoder with its masked-LM head, on raw "text"."""

    def measure(self, setting: MeasureSetting) -> Sequence[object]:
        """Return rows of the kinds that ``core.rows`` declares for it."""
        ...


ON_PAIRS = ("encoder", "states", "words", "comparable")
"""Subjects that are measured on pairs of languages alone: on bitext, or on comparable text."""

_ALL: tuple[type[Diagnostic], ...] = (
    Scores,
    Interpolation,
    Plane,
    Deltas,
    RunVariance,
    TransferGap,
    LabelFree,
    Retrieval,
    Mining,
    Anisotropy,
    WordDistance,
    Cka,
    RepresentationMap,
    MixupRatio,
    MixupSweep,
    LinkAttention,
    GradientConflict,
    TaskGradientConflict,
    LanguageGates,
)
DIAGNOSTICS: dict[str, type[Diagnostic]] = {diagnostic.name: diagnostic for diagnostic in _ALL}

__all__ = ["DIAGNOSTICS", "ON_PAIRS", "Diagnostic", "MeasureSetting"]
