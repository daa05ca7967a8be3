"""A new encoder from an architecture, with its masked-LM head and random weights from a seed."""

from typing import Any

import torch

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.runs import Architecture
from isogloss.encoders.families import FAMILIES


def new_encoder(architecture: Architecture, tokenizer: Any, *, seed: int, attention: str = "eager") -> Any:
    """Return a BertForMaskedLM or its like in another family; the same seed gives the same weights.

    ``attention`` is one of transformers' names, where the family leaves a choice.

    Pretraining drops nothing (a small encoder underfits its text); before it is saved, ``set_dropout``
    tells the configuration what fine-tuning is to drop.
    """
    _check(architecture)
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.for_model(
        architecture.family,
        vocab_size=len(tokenizer),
        **_special(tokenizer),
        **FAMILIES[architecture.family].shape(architecture, padding=tokenizer.pad_token_id),
    )
    set_dropout(config, 0.0)
    attention = "eager" if "attention-kinds" in FAMILIES[architecture.family].lacks else attention
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(config, attn_implementation=attention)


def set_dropout(config: Any, rate: float) -> None:
    """Say in a configuration how much the encoder drops while it trains, once it is loaded anew."""
    for field in FAMILIES[config.model_type].dropouts:
        setattr(config, field, rate)


def _special(tokenizer: Any) -> dict[str, int]:
    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    return {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": first,
        "eos_token_id": last,
        "cls_token_id": first,
        "sep_token_id": last,
    }


def _check(architecture: Architecture) -> None:
    if architecture.family not in FAMILIES:
        raise unknown_name("architecture", "encoder family", architecture.family, FAMILIES)
    if architecture.dim % architecture.heads:
        raise ConfigError(
            f"architecture: {architecture.heads} heads do not divide a width (dim) of {architecture.dim}. "
            f"Take heads of 64, that is heads = dim / 64."
        )
