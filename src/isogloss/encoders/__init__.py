"""Encoder families, their models and tokenizers on disk, language modules, mixup and gates."""

from typing import TYPE_CHECKING

from isogloss.core.registry import Registry

if TYPE_CHECKING:
    from isogloss.encoders.family import EncoderFamily

FAMILIES: "Registry[EncoderFamily]" = Registry(
    {
        "bert": "isogloss.encoders.families:BERT",
        "camembert": "isogloss.encoders.families:CAMEMBERT",
        "deberta-v2": "isogloss.encoders.families:DEBERTA",
        "distilbert": "isogloss.encoders.families:DISTILBERT",
        "eurobert": "isogloss.encoders.families:EUROBERT",
        "gemma3_text": "isogloss.encoders.families:GEMMA3",
        "llama": "isogloss.encoders.families:LLAMA",
        "m2m_100": "isogloss.encoders.families:M2M_100",
        "modernbert": "isogloss.encoders.families:MODERNBERT",
        "mt5": "isogloss.encoders.families:MT5",
        "qwen3": "isogloss.encoders.families:QWEN3",
        "rembert": "isogloss.encoders.families:REMBERT",
        "roberta": "isogloss.encoders.families:ROBERTA",
        "xlm-roberta": "isogloss.encoders.families:XLM_ROBERTA",
        "xlm-roberta-xl": "isogloss.encoders.families:XLM_ROBERTA_XL",
        "xmod": "isogloss.encoders.families:XMOD",
    },
    group="families",
    interface="isogloss.encoders.family:EncoderFamily",
)
"""Supported families of encoders, by the ``model_type`` of their config.json."""
