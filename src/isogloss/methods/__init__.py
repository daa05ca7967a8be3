"""Training methods, and the tables that list them."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.core.run_parts import Named
    from isogloss.training.setting import Adjustment, AuxiliaryLoss, Method, Peft, Pretraining

METHODS: "Registry[type[Method]]" = Registry(
    {
        "source-only": "isogloss.methods.plain:SourceOnly",
        "oracle-stopping": "isogloss.methods.plain:OracleStopping",
        "target-only": "isogloss.methods.plain:TargetOnly",
        "bilingual": "isogloss.methods.plain:Bilingual",
        "few-shot": "isogloss.methods.plain:FewShot",
        "translate-train": "isogloss.methods.plain:TranslateTrain",
        "given": "isogloss.methods.plain:GivenWeights",
    },
    features="methods",
)
"""[[grid.method]]: what a fine-tuning trains on, and its loss."""

AUXILIARY_LOSSES: "Registry[type[AuxiliaryLoss]]" = Registry({}, features="auxiliary-losses")
"""auxiliary: terms that are added to a loss."""

PEFT: "Registry[type[Peft]]" = Registry({}, features="peft")
"""peft: which weights are trained."""

PRETRAINING: "Registry[type[Pretraining]]" = Registry({}, features="pretraining")
"""[encoder.pretrain]: how an encoder learns from text."""

ADJUSTMENTS: "Registry[type[Adjustment]]" = Registry({}, features="adjustments")
"""[[adjust]]: how an encoder learns from aligned bitext."""

TRANSLATION_TRAINING: "Registry[type[Named]]" = Registry({}, features="translation-training")
"""[translate.train]: how a translator learns from bitext."""
