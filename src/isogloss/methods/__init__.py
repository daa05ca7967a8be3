"""Floor 5: one training method per file."""

from typing import ClassVar, Protocol

from isogloss.methods.bilingual import Bilingual
from isogloss.methods.few_shot import FewShot
from isogloss.methods.masked_language_modelling import MaskedLanguageModelling
from isogloss.methods.source_only import SourceOnly
from isogloss.methods.target_only import TargetOnly
from isogloss.methods.translate_train import TranslateTrain
from isogloss.methods.x_mixup import XMixup
from isogloss.training.setting import Reads, Setting
from isogloss.training.supervised import Trained


class Method(Protocol):
    """A way to train a model; its fields are its hyper-parameters."""

    name: ClassVar[str]
    sides: ClassVar[tuple[str, ...]]
    """Which languages decide what it makes: source, target, or both."""

    goes_on: ClassVar[bool]
    """Whether it goes on from the model of another method."""

    def reads(self, source: tuple[str, ...], target: tuple[str, ...]) -> Reads:
        """Say which examples it reads, so that every file is looked for before anything trains."""
        ...

    def train(self, setting: Setting) -> Trained:
        """Choose data, modules and loss; everything else is ``fit``."""
        ...


_ALL: tuple[type[Method], ...] = (SourceOnly, TargetOnly, Bilingual, FewShot, TranslateTrain, XMixup)
METHODS: dict[str, type[Method]] = {method.name: method for method in _ALL}
PRETRAINING: dict[str, type[MaskedLanguageModelling]] = {
    MaskedLanguageModelling.name: MaskedLanguageModelling
}

__all__ = ["METHODS", "PRETRAINING", "Method"]
