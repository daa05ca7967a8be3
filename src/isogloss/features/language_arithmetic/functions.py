"""Arithmetic of adapters in weight space: from a language to a related one, without training.

AdaMergeX: Zhao et al. (NAACL 2025), "AdaMergeX: Cross-Lingual Transfer with Large Language Models via
Adaptive Adapter Merging". A task was learned in the source language S, and a reference task, such as language
modelling, in S and in the target T. Adapters that are added (LoRA) and that multiply (IA3) move differently:

    A_T,task = A_S,task + γ (A_T,ref - A_S,ref)                                              (1)
    A_T,task = A_S,task ⊙ (1 + γ (A_T,ref ⊘ A_S,ref - 1))                                    (2)

Language arithmetic: Klimaszewski et al. (COLING 2025), "No Train but Gain: Language Arithmetic for
training-free Language Adapters enhancement". The adapters of a language and of a related one are mixed:

    φ' = λ φ_T + (1 - λ) φ_near                                                              (3)
"""

from copy import deepcopy
from typing import Annotated, TypeVar

import torch
from annotated_types import Le
from pydantic import Strict
from torch import nn

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ModelError
from isogloss.core.run_parts import Share
from isogloss.encoders.added.added_weights import mix_modules
from isogloss.functional.preparing import unwrap_torch

AnyModel = TypeVar("AnyModel", bound=nn.Module)

Finite = Annotated[float, Strict(), Le(float("inf"))]

ADDED = ("lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector")
"""Parts of the names of parameters of peft that are added to weights."""

MULTIPLIED = ("ia3_l",)
"""Parts of the names of parameters of peft that multiply states."""


@checks_arguments
def shift_adapter(model: AnyModel, target: nn.Module, source: nn.Module, *, gamma: Finite = 1.0) -> AnyModel:
    """Return a copy of a model of peft whose adapters are moved from the source language to the target.

    AdaMergeX (Zhao et al. 2025): ``model`` learned the task in the source language, ``target`` and ``source``
    learned one reference task, such as language modelling, in the two languages, all with adapters of the
    same shape on one base model. Both factors of LoRA move by γ times their difference (Eq. 1), the vectors
    of IA3 by their ratio (Eq. 2). ``gamma`` 0 changes nothing. Heads and all other weights are the model's.
    Use ``average`` instead for models with merged or without adapters: its weights (1, γ, -γ) are Eq. 1.

    ModelError for models without such adapters, or with adapters of other names or shapes.

    Device: as the model. Cost: the memory of one more model.

    >>> isogloss.shift_adapter(ner_en, mlm_sw, mlm_en, gamma=0.8)                 # doctest: +SKIP
    """
    result = deepcopy(unwrap_torch(model))
    adapters = _find_adapters("model", result)
    references = {"target": _find_adapters("target", target), "source": _find_adapters("source", source)}
    for name, reference in references.items():
        shapes = {key: weight.shape for key, weight in reference.items()}
        for key, weight in adapters.items():
            if shapes.get(key) != weight.shape:
                raise ModelError(
                    f"shift_adapter: {key} has the shape {list(weight.shape)} in model, and "
                    f"{list(shapes[key]) if key in shapes else 'does not exist'} in {name}. Give adapters of "
                    f"one kind, rank and base."
                )
    with torch.no_grad():
        for key, weight in adapters.items():
            to_target, to_source = (reference[key].to(weight) for reference in references.values())
            if _is_multiplied(key):
                weight.mul_(1 + gamma * (to_target / to_source - 1))
            else:
                weight.add_(to_target - to_source, alpha=gamma)
    return result


def _find_adapters(name: str, model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters of adapters by their names within the encoder."""
    found = {
        key: weight
        for key, weight in unwrap_torch(model).named_parameters()
        if _is_multiplied(key) or any(f".{part}." in key for part in ADDED)
    }
    if not found:
        raise ModelError(
            f"shift_adapter: {name}: {type(model).__name__} has no adapters of peft (LoRA, DoRA or IA3) that "
            f"are not merged. Give a PeftModel, or average models without adapters."
        )
    return found


def _is_multiplied(name: str) -> bool:
    return any(f".{part}." in name for part in MULTIPLIED)


@checks_arguments
def mix_language_adapters(model: AnyModel, language: str, near: str, share: Share = 0.5) -> AnyModel:
    """Return a copy of a model in which a language's modules are mixed with a related language's.

    Language arithmetic (Klimaszewski et al. 2025): φ' = λφ + (1 - λ)φ_near with λ = ``share``, for each
    weight of the modules that an encoder of isogloss has for ``language``. 1 changes nothing, 0 gives the
    language the modules of ``near``. Modules of other languages stay. In recipes: ``near`` of ``average``.

    ConfigError for a language without separate modules.

    Device: as the model. Cost: the memory of one more model.

    >>> isogloss.mix_language_adapters(tagger, "qad", "qab", share=0.7)           # doctest: +SKIP
    """
    result = deepcopy(unwrap_torch(model))
    mix_modules(result, language, near, share)
    return result
