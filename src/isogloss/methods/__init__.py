"""Floor 5: training methods, and the tables that list them."""

from isogloss.methods.adjustments import Centring, ContrastiveAlignment, CrossLingualAdjustment, Procrustes
from isogloss.methods.alignment_loss import AlignmentLoss
from isogloss.methods.average import Average
from isogloss.methods.consistency import Consistency, ModelConsistency
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling, MaskedNextToken
from isogloss.methods.meta_learning import MetaLearning
from isogloss.methods.multi_task import MultiTask
from isogloss.methods.peft import IA3, DoRA, LayerFreezing, LoRA, LotteryTicket, TaskAdapter
from isogloss.methods.plain import (
    Bilingual,
    FewShot,
    Given,
    OracleStopping,
    SourceOnly,
    TargetOnly,
    TranslateTrain,
)
from isogloss.methods.translation_modelling import TranslationModelling
from isogloss.methods.x_mixup import XMixup
from isogloss.training.setting import Adjustment, AuxiliaryLoss, Method, Peft, Pretraining

_ALL: tuple[type[Method], ...] = (
    SourceOnly,
    OracleStopping,
    TargetOnly,
    Bilingual,
    FewShot,
    TranslateTrain,
    Consistency,
    XMixup,
    Given,
    Average,
)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}
_ALL_AUXILIARY: tuple[type[AuxiliaryLoss], ...] = (AlignmentLoss, ModelConsistency, MultiTask)
AUXILIARY_LOSSES: dict[str, type[AuxiliaryLoss]] = {loss.name: loss for loss in _ALL_AUXILIARY}
_ALL_PEFT: tuple[type[Peft], ...] = (LoRA, DoRA, IA3, LotteryTicket, TaskAdapter, LayerFreezing)
PEFT: dict[str, type[Peft]] = {kind.name: kind for kind in _ALL_PEFT}
_ALL_PRETRAINING: tuple[type[Pretraining], ...] = (MaskedLanguageModelling, MaskedNextToken, MetaLearning)
PRETRAINING: dict[str, type[Pretraining]] = {method.name: method for method in _ALL_PRETRAINING}
_ALL_ADJUSTMENTS: tuple[type[Adjustment], ...] = (
    CrossLingualAdjustment,
    ContrastiveAlignment,
    Procrustes,
    Centring,
)
ADJUSTMENTS: dict[str, type[Adjustment]] = {method.name: method for method in _ALL_ADJUSTMENTS}

TRANSLATION_TRAINING: dict[str, type[TranslationModelling]] = {
    TranslationModelling.name: TranslationModelling
}

__all__ = [
    "ADJUSTMENTS",
    "AUXILIARY_LOSSES",
    "METHODS",
    "PEFT",
    "PRETRAINING",
    "TRANSLATION_TRAINING",
    "Adjustment",
    "AuxiliaryLoss",
    "Method",
    "Peft",
    "Pretraining",
]
