"""The files of a folder of sentence-transformers that define the vector of a text.

The file ``modules.json`` lists the parts: the encoder, a pooling, then optionally further layers. Parts of
other kinds, and weights as a pickle, are not read.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from isogloss.core.errors import ModelError
from isogloss.core.untrusted import join_safely, parse_json, read_regular
from isogloss.encoders import folders
from isogloss.encoders.added.added_weights import read_weights
from isogloss.encoders.sentence_parts import POOLINGS, SentenceParts

PARTS = "modules.json"
"""File that lists the parts for sentence-transformers."""

SETTINGS = "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"


_FIELDS = {"cls": "pooling_mode_cls_token"} | {
    name: f"pooling_mode_{name}_tokens" for name in ("max", "mean", "mean_sqrt_len", "weightedmean")
}
_FIELDS |= {"lasttoken": "pooling_mode_lasttoken"}

_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "Identity": nn.Identity(),
    "Tanh": torch.tanh,
    "ReLU": torch.relu,
    "GELU": nn.GELU(),
    "Sigmoid": torch.sigmoid,
}


def read_sentence_parts(folder: Path) -> SentenceParts:
    """Read the parts of an encoder's folder.

    Raises ModelError for parts of other kinds.
    """
    parts = _list_parts(folder)
    if [kind for kind, _ in parts[:2]] != ["Transformer", "Pooling"]:
        raise _unsupported_error(folder, f"the list {', '.join(kind for kind, _ in parts)}")
    steps = tuple(_step(folder, kind, path) for kind, path in parts[2:])
    settings = _json(folder / SETTINGS)
    prompts = _json(folder / PROMPTS)
    name = prompts.get("default_prompt_name")
    pooling = _json(parts[1][1] / folders.CONFIG)
    if name is not None and not pooling.get("include_prompt", True):
        raise _unsupported_error(folder, "a pooling without its prompt")
    return SentenceParts(
        _poolings(pooling, folder),
        steps,
        settings.get("max_seq_length"),
        "" if name is None else str(prompts["prompts"][name]),
        bool(settings.get("do_lower_case")),
    )


def _list_parts(folder: Path) -> list[tuple[str, Path]]:
    """Return kind and folder of each part."""
    try:
        body = parse_json(read_regular(folder / PARTS))
        parts = [(str(part["type"]).rpartition(".")[2], str(part["path"])) for part in body]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ModelError(
            f"{folder / PARTS}: expected a list of parts with type and path. Copy the folder again."
        ) from error
    return [
        (kind, join_safely(folder, path, folder / PARTS, ModelError) if path else folder)
        for kind, path in parts
    ]


def _json(path: Path) -> dict[str, Any]:
    return folders.read_json(path) if path.is_file() else {}


def _poolings(body: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """Return the names of the poolings, as written by older or newer versions."""
    mode = body.get("pooling_mode")
    if mode is not None:
        names = [mode] if isinstance(mode, str) else list(mode)
    else:
        names = [name for name, field in _FIELDS.items() if body.get(field)]
    if not names or not set(names) <= POOLINGS.keys():
        raise _unsupported_error(folder, f"pooling {names}")
    return tuple(name for name in POOLINGS if name in names)


def _step(folder: Path, kind: str, path: Path) -> Callable[[Tensor], Tensor]:
    if kind == "Normalize":
        return lambda vectors: normalize(vectors, dim=1)
    if kind != "Dense":
        raise _unsupported_error(folder, kind)
    body = _json(path / folders.CONFIG)
    activation = str(body.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if activation not in _ACTIVATIONS:
        raise _unsupported_error(folder, f"Dense with activation {activation}")
    if not (path / folders.WEIGHTS).is_file():
        raise _unsupported_error(folder, f"Dense without {path.name}/{folders.WEIGHTS}")
    weights = read_weights(path / folders.WEIGHTS)
    weight_names = {"linear.weight", *(["linear.bias"] if body.get("bias", True) else [])}
    if weights.keys() != weight_names:
        raise _unsupported_error(folder, f"Dense with {', '.join(sorted(weights))}")
    weight = weights["linear.weight"].float()
    bias = weights.get("linear.bias")

    def dense(vectors: Tensor) -> Tensor:
        device_bias = None if bias is None else bias.to(vectors)
        return _ACTIVATIONS[activation](linear(vectors, weight.to(vectors), device_bias))

    return dense


def _unsupported_error(folder: Path, part: str) -> ModelError:
    return ModelError(
        f"{folder / PARTS}: {part} is not supported. Known: Transformer, Pooling ({', '.join(POOLINGS)}), "
        f'Dense ({", ".join(_ACTIVATIONS)}, as safetensors), Normalize. Remove pooling = "model", or compute '
        f"the vectors with sentence-transformers."
    )
