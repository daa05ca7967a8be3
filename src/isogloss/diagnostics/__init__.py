"""Floor 5: measurements of models, encoders and scores."""

from isogloss.diagnostics.anisotropy import Anisotropy
from isogloss.diagnostics.cka import Cka
from isogloss.diagnostics.gradient_conflict import GradientConflict, TaskGradientConflict
from isogloss.diagnostics.label_free import LabelFree
from isogloss.diagnostics.language_gates import LanguageGates
from isogloss.diagnostics.mining import Mining
from isogloss.diagnostics.mixup import LinkAttention, MixupRatio, MixupSweep
from isogloss.diagnostics.representation_map import RepresentationMap
from isogloss.diagnostics.retrieval import Retrieval
from isogloss.diagnostics.scores import RunVariance, Scores, TransferGap
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.diagnostics.weight_space import Deltas, Interpolation, Plane
from isogloss.diagnostics.word_distance import WordDistance

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

__all__ = ["DIAGNOSTICS", "Diagnostic", "MeasureSetting"]
