"""A new encoder from an architecture, with its masked-LM head and random weights from a seed."""

from typing import Any

import torch

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.runs import Architecture
from isogloss.encoders.table import FAMILIES


def new_encoder(architecture: Architecture, tokenizer: Any, *, seed: int) -> Any:
    """Return a BertForMaskedLM or XLMRobertaForMaskedLM; the same seed gives the same weights.

    Pretraining drops nothing (a small encoder underfits its text); the configuration that is saved says
    the architecture's dropout, for fine-tuning.
    """
    _check(architecture)
    from transformers import AutoConfig, AutoModelForMaskedLM

    config = AutoConfig.for_model(
        architecture.family,
        vocab_size=len(tokenizer),
        hidden_size=architecture.dim,
        num_hidden_layers=architecture.layers,
        num_attention_heads=architecture.heads,
        intermediate_size=architecture.feed_forward,
        # XLM-R counts positions from the padding's number on.
        max_position_embeddings=architecture.positions
        + (tokenizer.pad_token_id + 1 if architecture.family == "xlm-roberta" else 0),
        type_vocab_size=1 if architecture.family == "xlm-roberta" else 2,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(config, attn_implementation="eager")


def _check(architecture: Architecture) -> None:
    if architecture.family not in FAMILIES:
        raise unknown_name("architecture", "encoder family", architecture.family, FAMILIES)
    if architecture.dim % architecture.heads:
        raise ConfigError(
            f"architecture: {architecture.heads} heads do not divide a width (dim) of {architecture.dim}. "
            f"Take heads of 64, that is heads = dim / 64."
        )
