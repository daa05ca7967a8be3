"""Parameters of an encoder by language: those of its modules, and the shared ones."""

from collections.abc import Iterable

from torch import nn

from isogloss.encoders.added.added_weights import language_parameters, shared_parameters
from isogloss.encoders.added.language_modules import TREE, branch_of, modules_of
from isogloss.encoders.added.module_settings import SHARED_ADAPTER
from isogloss.encoders.family import encoder_prefix


def module_parameters(model: nn.Module, languages: Iterable[str]) -> dict[str, nn.Parameter]:
    """Return the parameters of a shared adapter and of these languages' modules, by name."""
    shared = f"{encoder_prefix(model)}{TREE}.{branch_of(SHARED_ADAPTER)}."
    parameters = {name: weight for name, weight in model.named_parameters() if name.startswith(shared)}
    for language in languages:
        parameters |= language_parameters(model, language)
    return parameters


def parameter_counts(model: nn.Module) -> dict[str, int]:
    """Count the parameters of each language's modules, with "" for the shared ones."""
    info = modules_of(model)
    parts = {"": shared_parameters(model)}
    parts |= {language: language_parameters(model, language) for language in (info.languages if info else ())}
    return {language: sum(weight.numel() for weight in part.values()) for language, part in parts.items()}
