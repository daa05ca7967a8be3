"""The adapters of a task, stacked on those of the language (MAD-X).

Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer", Section
3.2: a bottleneck after each layer's feed-forward, behind the language's adapter or copy if there is one. All
languages share it, so at test time the language's modules are swapped beneath it. The residual is what each
adapter reads, before the norm; in the paper both stand behind a norm, and their residual is the
feed-forward's output.

On disk they are a file beside the weights, which are those of an ordinary model.
"""

from pathlib import Path

from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.seeds import derive
from isogloss.encoders.families import family_of
from isogloss.encoders.language_context import read_metadata, read_weights, write_weights
from isogloss.encoders.language_modules import TASK, adapter, check_reduction, connect, encoder_of

TASK_FILE = "task_adapter.safetensors"


class TaskAdapter(nn.ModuleList):
    """An adapter for each layer."""

    def __init__(self, model: nn.Module, reduction: int, *, seed: int) -> None:
        encoder = encoder_of(model)
        sites = family_of(encoder).sites(encoder)
        super().__init__(adapter(encoder, reduction, seed=derive(seed, f"{site.layer}")) for site in sites)
        self.reduction = reduction
        """How many times narrower than the states the bottlenecks are."""


def add_task_adapter(model: nn.Module, reduction: int, *, seed: int) -> None:
    """Add an adapter of the task to each layer; the outputs do not change.

    A model that has them keeps them; ConfigError where theirs is another reduction.
    """
    check_reduction(reduction, encoder_of(model).config.hidden_size, "task adapter")
    if (there := task_adapter(model)) is None:
        _put(model, TaskAdapter(model, reduction, seed=seed))
    elif there.reduction != reduction:
        raise ConfigError(
            f"task adapter: the model this starts from has one of reduction {there.reduction}, and "
            f"{reduction} is asked for. Ask for {there.reduction}, or start from a model without."
        )


def task_adapter(model: nn.Module) -> TaskAdapter | None:
    """Return the adapters of a model's task, or None."""
    added: TaskAdapter | None = getattr(encoder_of(model), TASK, None)
    return added


def write_task_adapter(model: nn.Module, folder: Path) -> None:
    """Write the adapters of a model's task, if any, into its folder."""
    if (added := task_adapter(model)) is not None:
        metadata = {"reduction": str(added.reduction)}
        write_weights(folder / TASK_FILE, dict(added.named_parameters()), metadata)


def read_task_adapter(model: nn.Module, folder: Path) -> None:
    """Add the adapters of a task in a folder, if any, to a model.

    ModelError for a damaged file, or that of another encoder.
    """
    path = folder / TASK_FILE
    if path.exists():
        reduction = read_metadata(path, lambda metadata: int(metadata["reduction"]))
        added = TaskAdapter(model, reduction, seed=0)
        read_weights(path, dict(added.named_parameters()))
        _put(model, added)


def _put(model: nn.Module, added: TaskAdapter) -> None:
    encoder_of(model).add_module(TASK, added.train(model.training))
    connect(model)
