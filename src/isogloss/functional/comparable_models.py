"""Checks that the weights of several models can be combined or compared."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from isogloss.core.errors import ModelError


def is_encoder_of(origin: nn.Module, model: nn.Module) -> bool:
    """Return whether a model has a head and another is an encoder without one."""
    has_head = getattr(model, "base_model", model) is not model
    return has_head and getattr(origin, "base_model", None) is origin


def check_buffers(function: str, models: Mapping[str, nn.Module]) -> None:
    """Raise ModelError where buffers of two models that do not move differ."""
    buffers = [_saved_buffers(model) for model in models.values()]
    for name, values in buffers[0].items():
        other_values = buffers[1].get(name)
        if other_values is None or not torch.equal(values.cpu(), other_values.cpu()):
            raise ModelError(
                f"{function}: the buffer {name} differs between {' and '.join(models)}, and only parameters "
                f"are moved. Make it equal in all models, or score statistics that are computed anew."
            )


def _saved_buffers(model: nn.Module) -> dict[str, Tensor]:
    names = model.state_dict().keys()
    return {
        name: values for name, values in model.named_buffers() if name in names and values.is_floating_point()
    }


def check_labels(function: str, models: Mapping[str, nn.Module]) -> None:
    """Raise ModelError where heads name their classes differently. Default names are ignored."""
    labels_of_models = {
        name: {int(index): str(label) for index, label in labels.items()}
        for name, model in models.items()
        if getattr(model, "base_model", model) is not model
        and (labels := getattr(getattr(model, "config", None), "id2label", None))
        and not all(str(label).startswith("LABEL_") for label in labels.values())
    }
    for name, labels in labels_of_models.items():
        first_name, expected = next(iter(labels_of_models.items()))
        for index in sorted(labels.keys() | expected.keys()):
            if labels.get(index) != expected.get(index):
                raise ModelError(
                    f"{function}: class {index} is {expected.get(index)!r} in {first_name} and "
                    f"{labels.get(index)!r} in {name} (config.id2label). Give models with the same "
                    f"labels in one order."
                )
