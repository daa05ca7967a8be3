"""A head of one's own on any encoder, for a task that transformers has no class for.

On disk the model is an ordinary Hugging Face folder: transformers' AutoModel loads the encoder from it, and
the head's weights lie beside the encoder's in the same safetensors file, as ``head.…``.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError
from isogloss.encoders.folders import differing, weight_files
from isogloss.encoders.loading import draw_parameters, load_model, model_folder

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

HEAD = "head."
"""What the names of the head's weights begin with."""


class HeadedEncoder(nn.Module):
    """An encoder and a head; has the names, and is saved as, a model of transformers."""

    def __init__(self, encoder: "PreTrainedModel", head: nn.Module) -> None:
        super().__init__()
        self.config: PreTrainedConfig = encoder.config
        self.base_model_prefix: str = encoder.base_model_prefix
        self.add_module(self.base_model_prefix, encoder)
        self.head = head

    @property
    def base_model(self) -> "PreTrainedModel":
        """The encoder."""
        return cast("PreTrainedModel", self.get_submodule(self.base_model_prefix))

    def save_pretrained(self, folder: str | Path) -> None:
        """Write configuration and all weights into a folder."""
        self.base_model.save_pretrained(folder, state_dict=self.state_dict())


def load_with_own_head(
    source: str | Path,
    make: Callable[[int], nn.Module],
    *,
    labels: Sequence[str],
    seed: int,
    attention: str = "sdpa",
) -> HeadedEncoder:
    """Load an encoder and put a head on it that ``make`` makes for its width, in fp32 and evaluation mode.

    A head for the same labels that lies beside the encoder is kept; any other is replaced. What is new
    depends on the seed and its own name alone. ModelError when the head there is incomplete.
    """
    folder = model_folder(source)
    encoder = load_model(folder, attention=attention)
    encoder.pooler = None  # No head of ours looks at it, and what is never trained is not saved.
    with torch.random.fork_rng(devices=[]):
        model = HeadedEncoder(encoder, make(encoder.config.hidden_size))
    there = _head_weights(folder) if tuple(encoder.config.id2label.values()) == tuple(labels) else {}
    encoder.config.id2label = dict(enumerate(labels))
    encoder.config.label2id = {label: number for number, label in enumerate(labels)}
    if there:
        _take(model.head, there, folder)
    else:
        draw_parameters(
            cast("PreTrainedModel", model),
            [f"{HEAD}{name}" for name, _ in model.head.named_parameters()],
            seed=seed,
        )
    return model.eval()


def _head_weights(folder: Path) -> dict[str, Tensor]:
    """Read the weights of the head that lies in a model folder, by their names in the head; none, none."""
    from safetensors import safe_open

    found: dict[str, Tensor] = {}
    for path in weight_files(folder, "AutoModel"):
        with safe_open(path, framework="pt") as weights:
            names = [name for name in weights.keys() if name.startswith(HEAD)]  # noqa: SIM118 (no dict)
            found |= {name.removeprefix(HEAD): weights.get_tensor(name) for name in names}
    return found


def _take(head: nn.Module, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Put weights into a head; ModelError when they are not exactly its own."""
    own: dict[str, Any] = {name: tuple(weight.shape) for name, weight in head.state_dict().items()}
    there = {name: tuple(weight.shape) for name, weight in weights.items()}
    for name in differing(own, there):
        raise ModelError(
            f"{folder}: the head there is not this task's: {HEAD}{name} has the shape {there.get(name)} in "
            f"the weights, and {own.get(name)} is expected. Give a model of this task, or an encoder alone."
        )
    head.load_state_dict(dict(weights))
