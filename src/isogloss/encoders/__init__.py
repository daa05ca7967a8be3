"""Floor 2: encoder families, their models and tokenizers on disk, language modules, mixup and gates."""

from isogloss.encoders.computation import fastest_attention, offer_explicit_attention
from isogloss.encoders.families import FAMILIES, family_named, family_of, require
from isogloss.encoders.family import Ability, EncoderFamily, Site
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.initial import new_encoder, set_dropout
from isogloss.encoders.loading import (
    has_masked_lm_head,
    has_text_head,
    load_masked_lm,
    load_model,
    load_whole,
    load_with_new_head,
)
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer, read_tokenizer, train_tokenizer, write_tokenizer

__all__ = [
    "FAMILIES",
    "Ability",
    "EncoderFamily",
    "Site",
    "family_named",
    "family_of",
    "fastest_attention",
    "has_masked_lm_head",
    "has_text_head",
    "load_encoder_config",
    "load_masked_lm",
    "load_model",
    "load_tokenizer",
    "load_whole",
    "load_with_new_head",
    "new_encoder",
    "offer_explicit_attention",
    "read_tokenizer",
    "require",
    "save_model",
    "set_dropout",
    "train_tokenizer",
    "write_tokenizer",
]
