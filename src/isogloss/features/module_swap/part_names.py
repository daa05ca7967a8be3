"""Names of parts of models, which need no model: their grammar, and where a part is.

Names of parts and of unions of parts:

- ``embeddings``, ``head`` (with a pooler) and ``rest`` (a final norm, for example)
- ``layer 2 attention``, ``layer 2 feed-forward``, ``layer 2 norms`` (all norms of the layer)
- ``layer 2 modules of qab``, ``layer 2 shared adapter``, ``layer 2 task adapter`` and ``layer 2 adapters``
  (LoRA and IA3 that are not merged), where a model has them
- ``layer 2`` and ``layers 1-3``: all parts of these layers
- ``attention``, ``norms``, ``modules of qab`` …: these parts of all layers
- ``encoder`` (all but the head) and ``all``
- the name of a module or parameter, such as ``bert.encoder.layer.0.attention.self.query``
"""

import re

from isogloss.core.errors import ConfigError, did_you_mean

EMBEDDINGS, HEAD, REST, NORMS, OTHER = "embeddings", "head", "rest", "norms", "other"
ATTENTION, FEED_FORWARD = "attention", "feed-forward"
SHARED, TASK_ADAPTER, ADAPTERS = "shared adapter", "task adapter", "adapters"
LANGUAGE = "modules of {}"
ENCODER, ALL = "encoder", "all"

KINDS = (EMBEDDINGS, ATTENTION, FEED_FORWARD, NORMS, OTHER, SHARED, TASK_ADAPTER, ADAPTERS, REST, HEAD)
"""Kinds of parts. ``LANGUAGE`` has one for each language."""

LAYERS = re.compile(r"layers? (\d+)(?:-(\d+))?")
"""A layer, or several."""

PART_OF_LAYER = re.compile(r"(?:layer \d+|embeddings) (.+)")


def check_part_name(part: str, field: str) -> None:
    """Raise ConfigError for what is the name of no part of any model. Names of modules are not checked."""
    match = PART_OF_LAYER.fullmatch(part)
    kind = match[1] if match else part
    is_language = bool(re.fullmatch(LANGUAGE.format(r"\S+"), kind))
    if LAYERS.fullmatch(part) or is_language or "." in part or kind in (*KINDS, ENCODER, ALL):
        return
    names = ("layer 1", "layers 1-2", "layer 1 attention", *KINDS, LANGUAGE.format("en"), ENCODER, ALL)
    raise ConfigError(
        f"{field}: no part {part!r}.{did_you_mean(part, names)} Name parts such as {', '.join(names)}, or a "
        f"module such as bert.encoder.layer.0.attention.self.query."
    )


def locate_part(part: str) -> tuple[int | None, str]:
    """Return the layer of a part, None for several layers or none, and the kind of part, by its name."""
    match = re.fullmatch(r"layer (\d+)(?: (.+))?", part)
    return (int(match[1]), match[2] or ALL) if match else (None, part)
