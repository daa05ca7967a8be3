"""Training methods, and the tables that list them."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.methods.translation_modelling import TranslationModelling
    from isogloss.training.setting import Adjustment, AuxiliaryLoss, Method, Peft, Pretraining

METHODS: "Registry[type[Method]]" = Registry(
    {
        "source-only": "isogloss.methods.plain:SourceOnly",
        "oracle-stopping": "isogloss.methods.plain:OracleStopping",
        "target-only": "isogloss.methods.plain:TargetOnly",
        "bilingual": "isogloss.methods.plain:Bilingual",
        "few-shot": "isogloss.methods.plain:FewShot",
        "translate-train": "isogloss.methods.plain:TranslateTrain",
        "consistency": "isogloss.methods.consistency:Consistency",
        "x-mixup": "isogloss.methods.x_mixup:XMixup",
        "given": "isogloss.methods.plain:GivenWeights",
        "average": "isogloss.methods.average:Average",
    },
    features="methods",
)
"""[[grid.method]]: what a fine-tuning trains on, and its loss."""

AUXILIARY_LOSSES: "Registry[type[AuxiliaryLoss]]" = Registry(
    {
        "alignment-loss": "isogloss.methods.alignment_loss:AlignmentTerm",
        "model-consistency": "isogloss.methods.consistency:ModelConsistency",
    },
    features="auxiliary-losses",
)
"""auxiliary: terms that are added to a loss."""

PEFT: "Registry[type[Peft]]" = Registry(
    {
        "lora": "isogloss.methods.peft:LoRA",
        "dora": "isogloss.methods.peft:DoRA",
        "ia3": "isogloss.methods.peft:IA3",
        "lt-sft": "isogloss.methods.peft:LotteryTicket",
        "adapter": "isogloss.methods.peft:TaskAdapter",
        "layer-freezing": "isogloss.methods.peft:LayerFreezing",
    }
)
"""peft: which weights are trained."""

PRETRAINING: "Registry[type[Pretraining]]" = Registry(
    {
        "masked-language-modelling": "isogloss.methods.masked_language_modelling:MaskedLanguageModelling",
        "masked-next-token": "isogloss.methods.masked_language_modelling:MaskedNextToken",
    },
    features="pretraining",
)
"""[encoder.pretrain]: how an encoder learns from text."""

ADJUSTMENTS: "Registry[type[Adjustment]]" = Registry(
    {
        "cross-lingual-adjustment": "isogloss.methods.adjustments:CrossLingualAdjustment",
        "contrastive-alignment": "isogloss.methods.adjustments:ContrastiveAlignment",
        "procrustes": "isogloss.methods.adjustments:Procrustes",
        "centring": "isogloss.methods.adjustments:Centring",
    }
)
"""[[adjust]]: how an encoder learns from aligned bitext."""

TRANSLATION_TRAINING: "Registry[type[TranslationModelling]]" = Registry(
    {"translation-modelling": "isogloss.methods.translation_modelling:TranslationModelling"}
)
"""[translate.train]: how a translator learns from bitext."""
