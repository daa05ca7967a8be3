"""Facts, shapes and costs of models before they exist or are loaded, from their architecture or folder.

Peak memory assumes that all rows have the maximum length. The formulas are in ``training.memory``.

A forward and backward pass takes 6 operations per subword and parameter, embeddings excluded, and 12·n·d·L
for attention over rows of L subwords (n layers of width d). Predicting a subword takes 6·V·d. An example
counts as one row of the maximum length: most are shorter, long ones have several windows.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from isogloss.core.run_parts import Modules, Updates
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.differences import whole_folder
from isogloss.encoders.added.module_files import read_mapped_languages, read_module_info
from isogloss.encoders.added.module_settings import (
    ATTENTION,
    EMBEDDING,
    FEED_FORWARD,
    SHARED_ADAPTER,
    LanguageModules,
    layers_left_out,
)
from isogloss.encoders.families import has_masked_lm_head, has_text_head, is_causal
from isogloss.encoders.family import Config
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.stored_configs import read_stored_config
from isogloss.training.length_batches import BUDGET
from isogloss.training.memory import Cost, Load, Machine, Shape, scoring_memory, shape_of, training_memory

Folders = Mapping[str, str]
"""Folders of models on this machine, by the fingerprint of their files."""

SCORED_LENGTH = 128
"""Subwords per row of a scored batch, for the estimate."""

ASSUMED_SHAPES: Mapping[str, Shape] = {
    "google-bert/bert-base-multilingual-cased": Shape(
        parameters=177_974_523, vocabulary=119_547, layers=12, dim=768, heads=12, feed_forward=3072
    ),
    "FacebookAI/xlm-roberta-base": Shape(
        parameters=278_295_186, vocabulary=250_002, layers=12, dim=768, heads=12, feed_forward=3072
    ),
    "FacebookAI/xlm-roberta-large": Shape(
        parameters=560_142_482, vocabulary=250_002, layers=24, dim=1024, heads=16, feed_forward=4096
    ),
}
"""Shapes of encoders of the papers, with their masked-LM heads, for machines that do not have them."""


class Facts(NamedTuple):
    """Facts about an encoder, from its architecture or the files of its folder."""

    family: str
    dim: int
    """Width of its states."""
    positions: int
    """Maximum length of a text in subwords."""
    layers: int
    masked_lm: bool = True
    """Whether it has a masked-LM head."""
    text_head: bool = True
    """Whether the model has a masked-LM head or a decoder's LM head."""
    causal: bool = False
    """Whether it is a decoder whose mask is not lifted."""
    adapters: tuple[str, ...] = ()
    """Languages with an adapter of the family itself (as in X-MOD). Empty for most families."""
    modules: LanguageModules | None = None
    maps: tuple[str, ...] | None = None
    """Languages with maps, their source first."""
    config: Config | None = None
    """Read the facts of an encoder in a folder."""


@lru_cache(maxsize=64)
def read_facts(folder: str, _data: str) -> Facts:
    """Read the facts of a folder. The fingerprint is an argument so that changed files are read again."""
    config = read_stored_config(Path(folder))
    with_base = whole_folder(Path(folder))
    family = FAMILIES[config.model_type]
    return Facts(
        family=family.name,
        dim=config.hidden_size,
        positions=family.longest_text(config),
        layers=config.num_hidden_layers,
        masked_lm=has_masked_lm_head(config),
        text_head=has_text_head(config),
        causal=is_causal(config),
        adapters=family.languages(config),
        modules=read_module_info(with_base, config.hidden_size),
        maps=read_mapped_languages(with_base, config.hidden_size),
        config=config,
    )


@lru_cache(maxsize=64)
def folder_shape(folder: str) -> Shape:
    """Return the shape of an encoder, by its folder or hub name.

    Raises ModelError if it cannot be read.
    """
    config = load_encoder_config(folder)
    modules = read_module_info(Path(folder), config.hidden_size)
    shape = shape_of(config)
    return with_modules(shape, modules.modules, len(modules.languages)) if modules else shape


def with_modules(shape: Shape, modules: Modules | None, languages: int) -> Shape:
    """Return a shape with the parameters of language modules."""
    if modules is None:
        return shape
    dim = shape.dim
    layers = shape.layers - len(layers_left_out(modules, shape.layers))
    adapters = _adapter(dim, dim // modules.reduction) * (1 if modules.after else 2)
    size, count = {
        FEED_FORWARD: ((2 + shape.gated) * dim * shape.feed_forward, languages - 1),
        ATTENTION: (4 * dim**2, languages - 1),
        SHARED_ADAPTER: (adapters, 1),
    }.get(modules.kind, (adapters, languages))
    embeddings = dim * languages if modules.embedding or modules.kind == EMBEDDING else 0
    invertible = 2 * _adapter(dim // 2, dim // 4) * count if modules.invertible else 0
    module_size = 0 if modules.kind == EMBEDDING else layers * size * count
    return replace(shape, parameters=shape.parameters + module_size + embeddings + invertible)


def _adapter(dim: int, bottleneck: int) -> int:
    """Return the number of parameters of an adapter: two layers with their biases."""
    return 2 * dim * bottleneck + dim + bottleneck


def scoring(shape: Shape, machine: Machine, *, models: int = 1) -> int:
    """Return the bytes to score dev sets and measurements, and to compute states before an adjustment."""
    load = Load(rows=BUDGET // SCORED_LENGTH, length=SCORED_LENGTH)
    return scoring_memory(shape, load, machine, models=models)


def encoder_training(cost: Cost, shape: Shape, machine: Machine, *, trained: int | None = None) -> int:
    """Return the bytes to train an encoder."""
    copies = round(4 * cost.copies * shape.parameters)
    return copies + training_memory(
        shape, cost.batch, cost.updates, machine, best_weights=False, trained_parameters=trained
    )


def encoder_training_operations(cost: Cost, shape: Shape) -> float:
    """Return the operations to train an encoder."""
    batch = cost.batch
    share = batch.predicted / batch.subwords
    subwords = cost.steps * batch.subwords * count_gradients_per_update(cost.updates)
    return training_operations(shape, subwords, batch.length, predicted=share)


def count_gradients_per_update(updates: Updates) -> int:
    """Count the gradients of an update, which are two if sharpness is minimized."""
    return 2 if updates.sam_radius else 1


def training_operations(shape: Shape, subwords: float, length: int, *, predicted: float = 0) -> float:
    """Return the operations of training on a number of subwords in rows of a length.

    ``predicted`` is the share of subwords at which the whole vocabulary is scored.
    """
    inside = shape.parameters - shape.vocabulary * shape.dim
    attention = 12 * shape.layers * shape.dim * length
    return subwords * (6 * inside + attention + 6 * predicted * shape.vocabulary * shape.dim)
