"""Models and tokenizers as users have them, made ready for a function: unwrapped, checked and copied.

A function that reads states takes any model of transformers that returns hidden states. Only a function that
needs a place inside a layer requires a family that ``isogloss list encoders`` names.
"""

from copy import copy
from typing import Any, NamedTuple, TypeVar, cast

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.encoders import FAMILIES
from isogloss.encoders.families import family_named, has_known_layers, longest_text
from isogloss.encoders.family import Model, Tokenizer
from isogloss.encoders.sentence_parts import SentenceParts, has_sentence_parts, keep_sentence_parts
from isogloss.encoders.shared_weights import evaluation_copy
from isogloss.encoders.subwords import pad_rows, padding_mask, padding_of
from isogloss.functional.given_models import TextModel, TextTokenizer
from isogloss.training.precision import resolved_precision

AnyModule = TypeVar("AnyModule", bound=nn.Module)

PROBED = 5
"""Subwords of the longer of two rows that show whether a model returns states, and of what."""

CLOSE = 1e-3
"""Maximum relative difference of states with and without padding. Batches are computed differently."""


class PreparedEncoder(NamedTuple):
    """The encoder of a model, a copy in evaluation mode that shares its weights, and a tokenizer."""

    encoder: Model
    tokenizer: Tokenizer
    precision: str

    @property
    def loaded(self) -> tuple[Model, Tokenizer]:
        """The encoder and the tokenizer."""
        return self.encoder, self.tokenizer

    @property
    def layers(self) -> int:
        """The number of layers. States also have the embeddings."""
        return int(self.encoder.config.num_hidden_layers)


def prepare(
    model: TextModel, tokenizer: TextTokenizer, function: str, precision: str, *, words: bool = False
) -> PreparedEncoder:
    """Prepare a model for reading states of texts, or of ``words``, in float32 or bfloat16.

    ModelError for what returns no states of texts.
    """
    network = unwrap(model, function)
    check_tokenizer(tokenizer, function, words=words)
    encoder = evaluation_copy(text_encoder(network))
    if not getattr(network, "is_quantized", False):
        encoder = encoder.float()
    module = unwrap_torch(cast(nn.Module, model))
    if isinstance(module, nn.Sequential):
        _keep_own_parts(module, encoder)
    check_states(encoder, cast(Tokenizer, tokenizer), function)
    resolved = resolved_precision(precision, next(encoder.parameters()).device)
    return PreparedEncoder(encoder, limit_tokenizer(cast(Tokenizer, tokenizer), encoder), resolved)


def prepare_trained(model: TextModel, tokenizer: TextTokenizer, function: str) -> tuple[Model, Tokenizer]:
    """Return the model within a wrapper and a tokenizer, for a function that trains states of words.

    ModelError for what returns no states of texts.
    """
    network = unwrap(model, function)
    check_tokenizer(tokenizer, function, words=True)
    encoder = text_encoder(network)
    fast_tokenizer = cast(Tokenizer, tokenizer)
    check_states(evaluation_copy(encoder), fast_tokenizer, function)
    return network, limit_tokenizer(fast_tokenizer, encoder)


def has_own_pooling(model: TextModel, function: str) -> bool:
    """Return whether a model, or the folder that it is from, has its own way to compute vectors of texts."""
    is_sequence = isinstance(unwrap_torch(cast(nn.Module, model)), nn.Sequential)
    return is_sequence or has_sentence_parts(unwrap(model, function).base_model)


def unwrap(model: object, function: str) -> Model:
    """Return the model of transformers within a wrapper of torch, peft or sentence-transformers.

    ModelError for anything else, and for weights that are not loaded.
    """
    if not isinstance(model, nn.Module):
        raise ModelError(
            f"{function}: found a {type(model).__name__}; expected a model. Give a model of transformers, "
            f"peft or sentence-transformers, then its tokenizer."
        )
    network = unwrap_module(model, function)
    if isinstance(network, nn.Sequential):
        network = unwrap_module(_first_network(network), function)
    if not hasattr(getattr(network, "config", None), "model_type"):
        raise ModelError(
            f"{function}: found a {type(model).__name__}, which has no config.model_type; expected a model. "
            f"Give a model of transformers, peft or sentence-transformers."
        )
    if any(weight.is_meta for weight in network.parameters()):
        raise ModelError(
            f"{function}: weights of this {type(network).__name__} are on the meta device, that is, not "
            f"loaded. Load them by from_pretrained, without device_map or init_empty_weights."
        )
    return cast(Model, network)


def unwrap_module(model: nn.Module, function: str) -> nn.Module:
    """Return the module within wrappers of torch and peft. Raises ModelError for virtual subwords of peft."""
    network = unwrap_torch(model)
    if not (hasattr(network, "peft_config") and hasattr(network, "active_peft_config")):
        return network
    adapters: Any = network
    if adapters.active_peft_config.is_prompt_learning:
        raise ModelError(
            f"{function}: {adapters.active_peft_config.peft_type.value} of peft puts virtual subwords before "
            f"each text, which are not read here. Give a model with adapters in its layers, such as LoRA, or "
            f"the base model."
        )
    return unwrap_module(adapters.get_base_model(), function)


def unwrap_torch(model: AnyModule) -> AnyModule:
    """Return the module that torch has compiled or computes on several devices. Others stay the same."""
    network: Any = model
    while True:
        if isinstance(network, nn.DataParallel | nn.parallel.DistributedDataParallel):
            network = network.module
        elif isinstance(getattr(network, "_orig_mod", None), nn.Module):
            network = network._orig_mod
        else:
            return cast(AnyModule, network)


def require_layers(model: object, function: str) -> Model:
    """Return the model within a wrapper. Raises ModelError unless it has the layers of a known family."""
    network = unwrap(model, function)
    family_named(network.config.model_type, f"{function}: {type(network).__name__}")
    if not has_known_layers(network):
        raise ModelError(
            f"{function}: {type(network).__name__} has layers besides those of the encoder. Give the encoder "
            f"alone: its get_encoder(), or isogloss.load_encoder of its folder."
        )
    return network


def refuse_parallel(model: object, function: str) -> None:
    """Raise ModelError for a model in several processes: its wrapper averages the gradients of its calls."""
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        raise ModelError(
            f"{function}: found a {type(model).__name__}, whose gradients would not be averaged over "
            f"processes here. Give the model within it (.module), and average gradients yourself."
        )


def text_encoder(network: Model) -> Model:
    """Return the part of a model that reads a text: without a head, and without a decoder that translates."""
    base = cast(Model, network.base_model)
    if getattr(base.config, "is_encoder_decoder", False) and getattr(base, "decoder", None) is not None:
        return cast(Model, base.get_encoder())
    return base


def check_tokenizer(tokenizer: object, function: str, *, words: bool = False) -> None:
    """Raise ModelError unless a value is a tokenizer, and a fast one where ``words`` are split."""
    if not hasattr(tokenizer, "pad_token_id") or not callable(tokenizer):
        raise ModelError(
            f"{function}: found a {type(tokenizer).__name__} as tokenizer. Give the model first, then its "
            f"tokenizer, such as AutoTokenizer.from_pretrained returns."
        )
    if words and not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"{function}: {type(tokenizer).__name__} does not say which subwords are of which word. Give a "
            f"fast tokenizer: AutoTokenizer.from_pretrained(…, use_fast=True)."
        )


def limit_tokenizer(tokenizer: Tokenizer, encoder: Model) -> Tokenizer:
    """Return a tokenizer that knows the maximum length of its encoder.

    The caller's tokenizer is unchanged.
    """
    longest = longest_text(encoder)
    if tokenizer.model_max_length <= longest:
        return tokenizer
    limited_tokenizer: Tokenizer = copy(tokenizer)
    limited_tokenizer.model_max_length = longest
    return limited_tokenizer


def _first_network(sentence_model: nn.Sequential) -> nn.Module:
    """Return the model of transformers in a SentenceTransformer, which is a sequence of modules."""
    networks = (
        module
        for module in sentence_model[0].modules()
        if hasattr(getattr(module, "config", None), "model_type")
    )
    return next(networks, sentence_model)


def _keep_own_parts(sentence_model: nn.Sequential, encoder: Model) -> None:
    """Let ``pooling="model"`` make the vectors that a SentenceTransformer makes."""
    if has_sentence_parts(encoder):
        return
    steps = [evaluation_copy(module) for module in list(sentence_model)[1:]]
    settings: Any = sentence_model
    prompts = getattr(settings, "prompts", None) or {}
    keep_sentence_parts(
        encoder,
        lambda: _OwnParts(
            poolings=(),
            steps=tuple(steps),
            limit=getattr(settings, "max_seq_length", None),
            prompt=prompts.get(getattr(settings, "default_prompt_name", None)) or "",
            is_lower=bool(getattr(settings[0], "do_lower_case", False)),
        ),
    )


class _OwnParts(SentenceParts):
    """The modules of a SentenceTransformer after its encoder, which pass on a mapping of tensors."""

    def vectors(self, states: Tensor, mask: Tensor) -> Tensor:
        """Return a vector for each text from its states in the last layer."""
        features: Any = {"token_embeddings": states, "attention_mask": mask}
        for step in self.steps:
            features = step(features)
        vectors: Tensor = features["sentence_embedding"]
        return vectors


def check_states(encoder: Model, tokenizer: Tokenizer, function: str) -> None:
    """Raise ModelError unless an encoder returns states of subwords, in all layers, whatever the padding.

    All families that isogloss knows do. ``encoder`` is in evaluation mode.
    """
    if encoder.config.model_type in FAMILIES:
        return
    padding = padding_of(tokenizer)
    device = next(encoder.parameters()).device
    subwords = [subword for subword in range(PROBED + 1) if subword != padding][:PROBED]
    rows = [subwords, subwords[:2]]
    try:
        padded_states = _hidden_states(encoder, rows, padding, device)
        plain_states = _hidden_states(encoder, rows[1:], padding, device)
        count = encoder.config.num_hidden_layers + 1
    except Exception as error:  # Any model can raise anything.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise _unreadable(encoder, function, reason[:120].rstrip(".")) from error
    if len(padded_states) != count or {state.shape[:2] for state in padded_states} != {(2, PROBED)}:
        shapes = ", ".join(str(list(state.shape)) for state in padded_states[:3])
        raise _unreadable(
            encoder, function, f"states of {count} layers expected, found {len(padded_states)}: {shapes}"
        )
    if len({state.shape[2] for state in padded_states}) > 1:
        raise _unreadable(encoder, function, "its layers have different widths")
    for padded_state, plain_state in zip(padded_states, plain_states, strict=True):
        scale = float(plain_state.abs().max())
        if not float((padded_state[1, :2] - plain_state[0]).abs().max()) <= CLOSE * max(scale, 1.0):
            raise _unreadable(encoder, function, "states of a text change with the padding after it")


def _hidden_states(
    encoder: Model, rows: list[list[int]], padding: int, device: torch.device
) -> tuple[Tensor, ...]:
    inputs = {
        "input_ids": pad_rows(rows, padding),
        "attention_mask": padding_mask([len(row) for row in rows]),
    }
    with torch.inference_mode():
        output = encoder(
            **{name: part.to(device) for name, part in inputs.items()}, output_hidden_states=True
        )
    return tuple(output.hidden_states)


def _unreadable(encoder: Model, function: str, reason: str) -> ModelError:
    return ModelError(
        f"{function}: states of {type(encoder).__name__} cannot be read: {reason}. Compute them yourself, "
        f"and give arrays [layer, text, dim] to cka, retrieval, mine, anisotropy or representation_map."
    )
