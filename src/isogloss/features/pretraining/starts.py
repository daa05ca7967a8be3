"""Encoders from which pretraining starts: new ones with random weights, and existing ones trained further."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Architecture
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import check_new
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.encoders.folders import load_encoder_config, model_folder
from isogloss.training.memory import Shape, shape_of

if TYPE_CHECKING:
    from isogloss.encoders.loading import AutoClass


def new_encoder(
    architecture: Architecture,
    tokenizer: Tokenizer,
    *,
    seed: int,
    attention: str = "eager",
    dropout: float = 0.0,
) -> Model:
    """Return an encoder with its masked-LM head.

    Weights depend only on the seed. ``dropout`` is the rate of pretraining, where small encoders underfit;
    ``set_dropout`` sets the rate of fine-tuning before the encoder is saved.
    """
    import torch
    from transformers import AutoModelForMaskedLM

    opening = tokenizer.cls_token_id
    closing = tokenizer.sep_token_id
    special = {
        "bos_token_id": opening,
        "eos_token_id": closing,
        "cls_token_id": opening,
        "sep_token_id": closing,
    }
    config = config_of(
        replace(architecture, vocabulary=len(tokenizer)), padding=tokenizer.pad_token_id, **special
    )
    set_dropout(config, dropout)
    family = FAMILIES[architecture.family]
    attention = "eager" if "attention-kinds" in family.lacks else attention
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return AutoModelForMaskedLM.from_config(config, attn_implementation=attention)


def config_of(architecture: Architecture, *, padding: int = 0, **special: int) -> Config:
    """Return the configuration of an architecture.

    ``padding`` and ``special`` are the ids of special subwords. Raises ConfigError for an impossible
    architecture.
    """
    from transformers import AutoConfig

    check_new(architecture.family, "architecture")
    if architecture.dim % architecture.heads:
        raise ConfigError(
            f"architecture: {architecture.heads} heads do not divide a width (dim) of {architecture.dim}. "
            f"Use heads with a width of 64, that is heads = dim / 64."
        )
    shape = FAMILIES[architecture.family].shape(architecture, padding=padding)
    config: Config = AutoConfig.for_model(
        architecture.family, vocab_size=architecture.vocabulary, pad_token_id=padding, **special, **shape
    )
    return config


def set_dropout(config: Config, rate: float) -> None:
    """Set the dropout rate in a configuration, which takes effect when the encoder is loaded."""
    for field in FAMILIES[config.model_type].dropouts:
        setattr(config, field, rate)


def dropout_rates(source: str | Path) -> dict[str, float]:
    """Return the dropout rates in an encoder's configuration, by field."""
    config = load_encoder_config(source)
    return {field: getattr(config, field) for field in FAMILIES[config.model_type].dropouts}


def load_to_continue(
    source: str | Path, *, seed: int, attention: str = "sdpa", dropout: float = 0.0
) -> Model:
    """Load an encoder with its pretraining head (masked LM, or a decoder's) and a dropout, in fp32.

    A pooler is unchanged. An encoder that was saved without the head gets a new one, whose weights depend on
    the seed and their names. If the family ties the head to the embeddings, it starts from these.
    """
    from isogloss.encoders.added.active_language import refuse_mapped
    from isogloss.encoders.loading import draw_parameters, load_model, load_with_head

    folder = model_folder(source)
    encoder = load_model(folder, attention=attention)
    config = load_encoder_config(folder)
    set_dropout(config, dropout)
    decoder = FAMILIES[config.model_type].is_decoder
    kind: AutoClass = "AutoModelForCausalLM" if decoder else "AutoModelForMaskedLM"
    model, lacking = load_with_head(folder, kind, config, attention=attention)
    refuse_mapped(model, source)
    draw_parameters(model, lacking, seed=seed)
    if getattr(encoder, "pooler", None) is not None:
        model.base_model.pooler = encoder.pooler
    return model


def load_text_tokenizer(source: str | Path) -> Tokenizer:
    """Load the tokenizer of an encoder for raw text, without truncation and padding."""
    from isogloss.encoders.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(source)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer


@lru_cache(maxsize=64)
def architecture_shape(architecture: Architecture) -> Shape:
    """Return the shape of a new encoder."""
    return replace(shape_of(config_of(architecture)), dropout=architecture.dropout > 0)
