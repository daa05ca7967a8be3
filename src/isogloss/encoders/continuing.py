"""An encoder that exists already, loaded with its tokenizer and its masked-LM head to be trained further."""

from pathlib import Path

from isogloss.encoders.added.active_language import refuse_mapped
from isogloss.encoders.annotations import Model, Tokenizer
from isogloss.encoders.families import FAMILIES
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.loading import AutoClass, draw_parameters, load_model, load_with_head, model_folder
from isogloss.encoders.new import set_dropout
from isogloss.encoders.tokenizers import load_tokenizer


def load_to_continue(
    source: str | Path, *, seed: int, attention: str = "sdpa", dropout: float = 0.0
) -> Model:
    """Load an encoder with its masked-LM head and a dropout, in fp32; a pooler is kept as it is.

    A decoder is loaded with the head that it predicts the next subword with.

    An encoder that was saved without the head gets a new one, whose weights depend on the seed and their
    names; where the family ties it to the embeddings, it starts from these.
    """
    folder = model_folder(source)
    encoder, config = load_model(folder, attention=attention), load_encoder_config(folder)
    set_dropout(config, dropout)
    decoder = FAMILIES[config.model_type].is_decoder
    kind: AutoClass = "AutoModelForCausalLM" if decoder else "AutoModelForMaskedLM"
    model, lacking = load_with_head(folder, kind, config, attention=attention)
    refuse_mapped(model, source)
    draw_parameters(model, lacking, seed=seed)
    if getattr(encoder, "pooler", None) is not None:
        model.base_model.pooler = encoder.pooler
    return model


def dropout_rates(source: str | Path) -> dict[str, float]:
    """Return the dropout rates in an encoder's configuration, by field."""
    config = load_encoder_config(source)
    return {field: getattr(config, field) for field in FAMILIES[config.model_type].dropouts}


def load_text_tokenizer(source: str | Path) -> Tokenizer:
    """Load the tokenizer of an encoder for raw text, neither cut nor padded."""
    tokenizer = load_tokenizer(source)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    return tokenizer
