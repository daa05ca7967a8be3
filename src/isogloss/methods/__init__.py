"""Floor 5: training methods, and the tables that list them."""

from typing import ClassVar, Protocol, runtime_checkable

from isogloss.core.run_parts import Modules, Named
from isogloss.methods.alignment_loss import AlignmentLoss
from isogloss.methods.average import Average
from isogloss.methods.consistency import Consistency
from isogloss.methods.contrastive_alignment import ContrastiveAlignment
from isogloss.methods.cross_lingual_adjustment import CrossLingualAdjustment
from isogloss.methods.given import Given
from isogloss.methods.language_maps import Centring, Procrustes
from isogloss.methods.layer_freezing import LayerFreezing
from isogloss.methods.lottery_ticket import LotteryTicket
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling
from isogloss.methods.masked_next_token import MaskedNextToken
from isogloss.methods.meta_learning import MetaLearning
from isogloss.methods.model_consistency import ModelConsistency
from isogloss.methods.peft_adapters import IA3, DoRA, LoRA
from isogloss.methods.plain import Bilingual, FewShot, OracleStopping, SourceOnly, TargetOnly, TranslateTrain
from isogloss.methods.task_adapter import TaskAdapter
from isogloss.methods.translation_modelling import TranslationModelling
from isogloss.methods.x_mixup import XMixup
from isogloss.tasks.task import Config
from isogloss.training.pretraining import TextMethod
from isogloss.training.setting import AdjustSetting, AuxiliaryLoss, Peft, Reads, Setting, TextSetting, Trained


class Method(Named, Protocol):
    """A way to train a model; its fields are its hyper-parameters."""

    uses: ClassVar[tuple[str, ...]]
    """The languages that its model depends on: source, target, or both."""

    needs_start: ClassVar[bool]
    """Whether training continues from the model of another method."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Return the data it reads, so that every file is checked before anything trains."""
        ...

    def train(self, setting: Setting) -> Trained:
        """Choose data, modules and loss; everything else is ``fit``."""
        ...


@runtime_checkable
class UsesTeacher(Protocol):
    """A method or an auxiliary loss that learns predictions of a model that was trained before."""

    def needs_teacher(self, task: str) -> bool:
        """Return whether it does so in a task."""
        ...


@runtime_checkable
class Mixing(Protocol):
    """A method whose models mix an input with its translation."""

    def check(self, task: str, config: Config) -> None:
        """Raise ConfigError or ModelError for a task or an encoder that it does not support."""
        ...

    def needs_teacher(self, task: str) -> bool:
        """Return whether translations of a task are labelled by a source-only model."""
        ...


@runtime_checkable
class ReadsLinks(Protocol):
    """A method that may read which words of a translation are linked to those of its original."""

    @property
    def needs_links(self) -> bool:
        """Whether it does so."""
        ...


class Pretraining(Named, TextMethod, Protocol):
    """A way to make an encoder from text; its fields are its hyper-parameters."""

    replays: ClassVar[bool]
    """Whether text of other languages can be mixed in."""

    def check(self, family: str, modules: Modules | None, languages: tuple[str, ...]) -> None:
        """Raise ModelError or ConfigError for an encoder that it cannot train.

        ``family`` is empty where a plan cannot know it yet.
        """
        ...

    def train(self, setting: TextSetting) -> Trained:
        """Train the encoder with its masked-LM head."""
        ...


class Adjustment(Named, Protocol):
    """A way to align translations in an encoder; its fields are its hyper-parameters."""

    maps: ClassVar[bool]
    """Whether it leaves the weights as they are and adds a map for each target language."""

    @property
    def needs_links(self) -> bool:
        """Whether it reads which words are linked; otherwise the bitext is not aligned."""
        ...

    def train(self, setting: AdjustSetting) -> Trained:
        """Adjust the encoder on aligned bitext."""
        ...


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
AUXILIARY_LOSSES: dict[str, type[AuxiliaryLoss]] = {
    AlignmentLoss.name: AlignmentLoss,
    ModelConsistency.name: ModelConsistency,
}
_ALL_PEFT: tuple[type[Peft], ...] = (
    LoRA,
    DoRA,
    IA3,
    LotteryTicket,
    TaskAdapter,
    LayerFreezing,
)
PEFT: dict[str, type[Peft]] = {kind.name: kind for kind in _ALL_PEFT}
WITH_FACTORS = (LoRA, DoRA, IA3)
"""The kinds whose adapters can be looked at before they are merged."""
_ALL_PRETRAINING: tuple[type[Pretraining], ...] = (
    MaskedLanguageModelling,
    MaskedNextToken,
    MetaLearning,
)
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
    "WITH_FACTORS",
    "Adjustment",
    "AuxiliaryLoss",
    "Method",
    "Mixing",
    "Peft",
    "Pretraining",
    "ReadsLinks",
    "UsesTeacher",
]
