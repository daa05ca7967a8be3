"""Adapters of a task, stacked on the language's adapters (MAD-X).

MAD-X: Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer",
Section 3.2: a bottleneck after each layer's feed-forward, behind the language's adapter or copy if any. All
languages share it, so at test time the language's modules are swapped beneath it. The residual is each
adapter's input, before the norm; in the paper both follow a norm, and their residual is the feed-forward's
output. On disk they are a file next to the weights of an ordinary model; or, with the head in the same file,
all that is saved of a model whose encoder stayed as it was (``differences``).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.added_weights import copy_weights, read_weights, write_weights
from isogloss.encoders.added.differences import DifferenceFormat
from isogloss.encoders.added.language_modules import TASK, TaskAdapters, connect, encoder_of, modules_of
from isogloss.encoders.added.module_files import (
    BOTH_PLACES,
    optional_metadata,
    optional_settings,
    read_metadata,
)
from isogloss.encoders.added.module_settings import FEED_FORWARD, SHARED_ADAPTER, check_reduction
from isogloss.encoders.family import head_parameters

TASK_FILE = "task_adapter.safetensors"


def add_task_adapter(model: nn.Module, reduction: int, *, seed: int) -> None:
    """Add an adapter of the task to each layer, without changing the outputs.

    It reads states behind the norm if the languages' adapters do. Existing task adapters stay. Raises
    ConfigError if their reduction differs.
    """
    check_reduction(reduction, encoder_of(model).config.hidden_size, "task adapter")
    if (existing := task_adapter(model)) is None:
        info = modules_of(model)
        is_normed = info.modules.normed if info else None
        attach_task_adapter(
            model, TaskAdapters(model, task_placement(reduction, normed=is_normed), seed=seed)
        )
    elif existing.placement.reduction != reduction:
        theirs = existing.placement.reduction
        raise ConfigError(
            f"task adapter: the model this starts from has one of reduction {theirs}, not {reduction}. Set "
            f"reduction = {theirs}, or start from a model without task adapters."
        )


def task_placement(reduction: int, **placement: Any) -> Modules:
    """Return the placement of a task's adapters: after each feed-forward, where nothing else is named."""
    return Modules(**{"kind": SHARED_ADAPTER, "after": FEED_FORWARD, "reduction": reduction, **placement})


def task_adapter(model: nn.Module) -> TaskAdapters | None:
    """Return the adapters of a model's task, or None."""
    adapters: TaskAdapters | None = getattr(encoder_of(model), TASK, None)
    return adapters


def adapted_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model's task adapters and of its head, by their names in a file."""
    return {**_parameters(task_adapter(model)), **head_parameters(model)}


def write_task_adapter(model: nn.Module, folder: Path, *, head: bool = False) -> None:
    """Write the adapters of a model's task, if any, into a folder.

    ``head``: write the head as well.
    """
    if (adapters := task_adapter(model)) is not None:
        weights = adapted_parameters(model) if head else _parameters(adapters)
        metadata = {"reduction": str(adapters.placement.reduction), **optional_metadata(adapters.placement)}
        position = metadata.pop("after", BOTH_PLACES)
        metadata |= {"after": position} if position != FEED_FORWARD else {}
        write_weights(folder / TASK_FILE, weights, metadata)


def read_task_adapter(model: nn.Module, folder: Path) -> set[str]:
    """Add the adapters of a task in a folder, if any, to a model, and copy head weights of the same shape.

    Returns the names of the copied head weights. Raises ModelError for a damaged file, or adapters of a
    different encoder.
    """
    path = folder / TASK_FILE
    if not path.exists():
        return set()

    def placement(metadata: Mapping[str, Any]) -> Modules:
        optional = optional_settings({"after": FEED_FORWARD, **metadata})
        return task_placement(int(metadata["reduction"]), **optional)

    weights = read_weights(path)
    adapters = TaskAdapters(model, read_metadata(path, placement), seed=0)
    task_weights = {name: weight for name, weight in weights.items() if name.startswith(TASK)}
    copy_weights(path, task_weights, _parameters(adapters))
    attach_task_adapter(model, adapters)
    head = {} if encoder_of(model) is model else head_parameters(model)
    fitting = {
        name for name, parameter in head.items() if name in weights and weights[name].shape == parameter.shape
    }
    with torch.no_grad():
        for name in fitting:
            head[name].copy_(weights[name])
    return fitting


def _parameters(adapters: TaskAdapters | None) -> dict[str, nn.Parameter]:
    return {} if adapters is None else dict(adapters.named_parameters(prefix=TASK))


def attach_task_adapter(model: nn.Module, adapters: TaskAdapters) -> None:
    """Add the adapters of a task to a model, and connect them."""
    encoder_of(model).add_module(TASK, adapters.train(model.training))
    connect(model)


TASK_FORMAT = DifferenceFormat(load=read_task_adapter)
"""Adapters of a task, with the head, as the difference of a model from its base."""
