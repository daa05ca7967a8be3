"""The adapters of a task, stacked on those of the language (MAD-X).

Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer", Section
3.2: a bottleneck after each layer's feed-forward, behind the language's adapter or copy if any. All languages
share it, so at test time the language's modules are swapped beneath it. The residual is each adapter's input,
before the norm; in the paper both follow a norm, and their residual is the feed-forward's output.

On disk they are a file next to the weights of an ordinary model; or, with the head in the same file, all that
is saved of a model whose encoder stayed as it was (``differences``).
"""

from pathlib import Path

import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.encoders.added.added_weights import copy_weights, read_metadata, read_weights, write_weights
from isogloss.encoders.added.language_modules import TASK, adapter, check_reduction, connect, encoder_of
from isogloss.encoders.families import family_of
from isogloss.encoders.family import head_parameters

TASK_FILE = "task_adapter.safetensors"


class TaskAdapters(nn.ModuleList):
    """An adapter for each layer."""

    def __init__(self, model: nn.Module, reduction: int, *, seed: int) -> None:
        encoder = encoder_of(model)
        sites = family_of(encoder).sites(encoder)
        super().__init__(adapter(encoder, reduction, seed=derive(seed, f"{site.layer}")) for site in sites)
        self.reduction = reduction
        """How many times narrower than the states the bottlenecks are."""


def add_task_adapter(model: nn.Module, reduction: int, *, seed: int) -> None:
    """Add an adapter of the task to each layer; the outputs do not change.

    A model that has them keeps them; ConfigError if their reduction is another.
    """
    check_reduction(reduction, encoder_of(model).config.hidden_size, "task adapter")
    if (existing := task_adapter(model)) is None:
        _attach(model, TaskAdapters(model, reduction, seed=seed))
    elif existing.reduction != reduction:
        raise ConfigError(
            f"task adapter: the model this starts from has one of reduction {existing.reduction}, and "
            f"{reduction} is asked for. Ask for {existing.reduction}, or start from a model without."
        )


def task_adapter(model: nn.Module) -> TaskAdapters | None:
    """Return the adapters of a model's task, or None."""
    added: TaskAdapters | None = getattr(encoder_of(model), TASK, None)
    return added


def adapted_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of a model's task adapters and of its head, by their names in a file."""
    return {**_parameters(task_adapter(model)), **head_parameters(model)}


def write_task_adapter(model: nn.Module, folder: Path, *, head: bool = False) -> None:
    """Write the adapters of a model's task, if any, into a folder; with ``head``, the head as well."""
    if (added := task_adapter(model)) is not None:
        weights = adapted_parameters(model) if head else _parameters(added)
        write_weights(folder / TASK_FILE, weights, {"reduction": str(added.reduction)})


def read_task_adapter(model: nn.Module, folder: Path) -> set[str]:
    """Add the adapters of a task in a folder, if any, to a model, and copy head weights of the same shape.

    Returns the names of these. ModelError for a damaged file, or that of another encoder.
    """
    path = folder / TASK_FILE
    if not path.exists():
        return set()
    reduction = read_metadata(path, lambda metadata: int(metadata["reduction"]))
    weights, added = read_weights(path), TaskAdapters(model, reduction, seed=0)
    of_task = {name: weight for name, weight in weights.items() if name.startswith(TASK)}
    copy_weights(path, of_task, _parameters(added))
    _attach(model, added)
    head = {} if encoder_of(model) is model else head_parameters(model)
    fitting = {name for name, old in head.items() if name in weights and weights[name].shape == old.shape}
    with torch.no_grad():
        for name in fitting:
            head[name].copy_(weights[name])
    return fitting


def _parameters(added: TaskAdapters | None) -> dict[str, nn.Parameter]:
    return {} if added is None else dict(added.named_parameters(prefix=TASK))


def _attach(model: nn.Module, added: TaskAdapters) -> None:
    encoder_of(model).add_module(TASK, added.train(model.training))
    connect(model)
