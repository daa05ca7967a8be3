"""New models with random weights: an encoder with its masked-LM head, or a translation model.

A translation model may have several directions: ``>>fr<<`` before a text requests French, as in OPUS-MT.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

import torch

from isogloss.core.errors import ConfigError, StorageError
from isogloss.core.run_parts import Architecture
from isogloss.encoders.annotations import Config, Model, Tokenizer
from isogloss.encoders.families import FAMILIES, check_new
from isogloss.encoders.folders import quiet
from isogloss.encoders.seq2seq import language_subword
from isogloss.encoders.tokenizers import ModelJson, check_size, unigram_pieces

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
NEVER = -1e9
"""Added to the score of padding, so that it is never generated."""


def new_encoder(
    architecture: Architecture,
    tokenizer: Tokenizer,
    *,
    seed: int,
    attention: str = "eager",
    dropout: float = 0.0,
) -> Model:
    """Return an encoder with its masked-LM head; weights depend on the seed alone.

    ``dropout`` is that of pretraining, where small encoders underfit; ``set_dropout`` sets the rate of
    fine-tuning before the encoder is saved.
    """
    from transformers import AutoModelForMaskedLM

    first, last = tokenizer.cls_token_id, tokenizer.sep_token_id
    special = {"bos_token_id": first, "eos_token_id": last, "cls_token_id": first, "sep_token_id": last}
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
    """Return the configuration of an architecture; ConfigError where there is none.

    ``padding`` and ``special`` are the ids of special subwords.
    """
    from transformers import AutoConfig

    check_new(architecture.family, "architecture")
    if architecture.dim % architecture.heads:
        raise ConfigError(
            f"architecture: {architecture.heads} heads do not divide a width (dim) of {architecture.dim}. "
            f"Take heads of 64, that is heads = dim / 64."
        )
    shape = FAMILIES[architecture.family].shape(architecture, padding=padding)
    config: Config = AutoConfig.for_model(
        architecture.family, vocab_size=architecture.vocabulary, pad_token_id=padding, **special, **shape
    )
    return config


def count_parameters(config: Config) -> int:
    """Count the parameters of an encoder with the head it predicts text with, if any, without making any."""
    import transformers

    family = FAMILIES[config.model_type]
    with torch.device("meta"), quiet():
        if family.encoder_class != "AutoModel":  # The half of a translation model, by its own class.
            model = attrgetter(family.encoder_class)(transformers)(config)
        elif family.is_decoder:
            model = transformers.AutoModelForCausalLM.from_config(config)
        else:
            model = transformers.AutoModelForMaskedLM.from_config(config)
    return sum(weight.numel() for weight in model.parameters())


def set_dropout(config: Config, rate: float) -> None:
    """Set the dropout rate in a configuration; it takes effect when the encoder is loaded."""
    for field in FAMILIES[config.model_type].dropouts:
        setattr(config, field, rate)


def train_translation_tokenizer(lines: Iterable[str], *, languages: Sequence[str], size: int) -> Tokenizer:
    """Train a fast Unigram tokenizer of at most ``size`` subwords, including one per target language."""
    special = (END, UNKNOWN, *map(language_subword, languages))
    pieces = unigram_pieces(
        list(lines), size - 1, special, lambda model: _marian_tokenizer(model, special).backend_tokenizer
    )
    vocabulary = [*pieces["vocab"], (PADDING, 0.0)]
    check_size(len(vocabulary), size, "it")
    return _marian_tokenizer({"vocab": vocabulary}, (*special, PADDING))


def read_translation_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer written by ``write_tokenizer``; StorageError for a damaged file."""
    try:
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        special = [
            piece
            for piece, _ in model["vocab"]
            if piece in (END, UNKNOWN, PADDING) or piece == language_subword(piece[2:-2])
        ]
        return _marian_tokenizer(model, special)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise StorageError(f"{path}: this tokenizer is damaged. Delete the folder and run again.") from error


@dataclass(frozen=True, kw_only=True)
class MarianShape:
    """The size of a translation model."""

    layers: int
    """In the encoder."""
    decoder_layers: int
    dim: int
    heads: int
    feed_forward: int
    positions: int = 512
    """Longest text in subwords."""
    dropout: float = 0.1


def new_marian(shape: MarianShape, tokenizer: Tokenizer, *, seed: int, attention: str) -> Model:
    """Return a MarianMTModel; weights depend on the seed alone.

    Both embeddings and the output share one matrix. As in Marian, decoding starts from a zero embedding: that
    of padding, the last id.
    """
    from transformers import MarianConfig, MarianMTModel

    padding = tokenizer.pad_token_id
    config = MarianConfig(
        vocab_size=len(tokenizer),
        decoder_vocab_size=len(tokenizer),
        pad_token_id=padding,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        forced_eos_token_id=None,
        decoder_start_token_id=padding,
        d_model=shape.dim,
        encoder_layers=shape.layers,
        decoder_layers=shape.decoder_layers,
        encoder_attention_heads=shape.heads,
        decoder_attention_heads=shape.heads,
        encoder_ffn_dim=shape.feed_forward,
        decoder_ffn_dim=shape.feed_forward,
        max_position_embeddings=shape.positions,
        dropout=shape.dropout,
        activation_function="relu",
        scale_embedding=True,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        init_std=shape.dim**-0.5,
    )
    config._attn_implementation = attention
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = MarianMTModel(config)
    with torch.no_grad():
        model.model.shared.weight[padding] = 0.0
        model.final_logits_bias[0, padding] = NEVER
    return model


def _marian_tokenizer(model: ModelJson | None, special: Sequence[str]) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    given = [(name, 0.0) for name in special] if model is None else [tuple(pair) for pair in model["vocab"]]
    backend = Tokenizer(models.Unigram(given, unk_id=[name for name, _ in given].index(UNKNOWN)))
    backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {END}", special_tokens=[(END, [name for name, _ in given].index(END))]
    )
    languages = [name for name in special if name not in (END, UNKNOWN, PADDING)]
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        unk_token=UNKNOWN,
        pad_token=PADDING if PADDING in special else None,
        additional_special_tokens=languages,
        model_input_names=["input_ids", "attention_mask"],
    )
