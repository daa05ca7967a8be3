"""Encoders from which pretraining starts: new ones with random weights, and existing ones trained further.

A decoder can be trained further with its mask lifted, so that each subword attends to both sides
(BehnamGhader et al. 2024, "LLM2Vec: Large Language Models Are Secretly Powerful Text Encoders", Section 2.1).
The mask is lifted in config.json, so the encoder is read as it was trained.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Architecture, TextAttention
from isogloss.encoders import FAMILIES, folders
from isogloss.encoders.families import check_new
from isogloss.encoders.family import Config, Model, Tokenizer
from isogloss.encoders.folders import from_pretrained, load_encoder_config, model_folder, quiet

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


def count_parameters(config: Config) -> int:
    """Count the parameters of an encoder, with its pretraining head if any, without allocating them."""
    import torch
    import transformers

    family = FAMILIES[config.model_type]
    with torch.device("meta"), quiet():
        if family.encoder_class != "AutoModel":  # Halves of translation models have their own classes.
            model = attrgetter(family.encoder_class)(transformers)(config)
        elif family.is_decoder:
            model = transformers.AutoModelForCausalLM.from_config(config)
        else:
            model = transformers.AutoModelForMaskedLM.from_config(config)
    return sum(weight.numel() for weight in model.parameters())


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


def check_attention(source: str | Path, attention: TextAttention) -> None:
    """Raise ConfigError for an encoder that is not a decoder, because it has no mask to lift."""
    name = load_encoder_config(source).model_type
    if not FAMILIES[name].is_decoder:
        decoders = [name for name in FAMILIES.places if FAMILIES[name].is_decoder]
        raise ConfigError(
            f"attention: {attention}: {source} is not a decoder ({name}) and always attends to both sides. "
            f"Remove attention, or use {' or '.join(decoders)}."
        )


def prepare_folder(source: str | Path, attention: TextAttention | None, folder: Path) -> Path:
    """Create an ordinary folder of an encoder with this attention, unless it exists, and return it.

    All files except for config.json are links. A GGUF file, which is slow to read, is converted to
    safetensors.
    """
    if (folder / folders.CONFIG).exists() and folders.has_weights(folder):
        return folder
    original = model_folder(source)
    with atomic_folder(folder.parent, folder.name) as new_folder:
        if folders.gguf_file(original):
            _convert(original, new_folder)
        else:
            for path in original.iterdir():
                _link(path, new_folder / path.name)
        config = new_folder / folders.CONFIG
        body = json.loads(config.read_text(encoding="utf-8"))
        lifted_where = FAMILIES[body["model_type"]].lifted_where
        if attention is not None and lifted_where is not None:
            name, value = lifted_where
            body[name] = value if attention == "bidirectional" else not value
        config.unlink()
        config.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    return folder


def _convert(original: Path, folder: Path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"config": load_encoder_config(original), "dtype": "float32"}
    with quiet():
        from_pretrained(AutoModelForCausalLM, original, options).save_pretrained(folder)
        from_pretrained(AutoTokenizer, original, {}).save_pretrained(folder)


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path.resolve())
    except OSError:  # On Windows, links require a privilege.
        shutil.copyfile(path, link)
