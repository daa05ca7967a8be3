"""Check that models have the same form."""

from collections.abc import Mapping

from torch import nn

from isogloss.core.errors import ModelError
from isogloss.functional.comparable_models import check_buffers, check_labels


def check_alike(function: str, models: Mapping[str, nn.Module]) -> None:
    """Raise ModelError where models have other parameters, buffers that do not move, or labels."""
    (first_name, start), *further_models = models.items()
    parameters = {name: weight.shape for name, weight in start.named_parameters()}
    for name_of_model, model in further_models:
        shapes = {name: weight.shape for name, weight in model.named_parameters()}
        for name in sorted(parameters.keys() ^ shapes.keys()):
            having, lacking = (
                (first_name, name_of_model) if name in parameters else (name_of_model, first_name)
            )
            raise ModelError(
                f"{function}: {having} has the parameter {name}, and {lacking} has none of that name. Give "
                f"models of one class, with the same heads."
            )
        check_buffers(function, {first_name: start, name_of_model: model})
    check_labels(function, models)
