"""Floor 2: encoder families, subword-to-word maps and windows."""

from isogloss.encoders.loading import load_masked_lm, load_model, load_tokenizer, save_model
from isogloss.encoders.new import new_encoder
from isogloss.encoders.table import FAMILIES, family_of
from isogloss.encoders.tokenizers import train_tokenizer

__all__ = [
    "FAMILIES",
    "family_of",
    "load_masked_lm",
    "load_model",
    "load_tokenizer",
    "new_encoder",
    "save_model",
    "train_tokenizer",
]
