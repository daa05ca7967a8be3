"""The families of encoders isogloss knows, by the ``model_type`` of their config.json."""

from typing import TYPE_CHECKING

from isogloss.core.errors import ModelError, did_you_mean
from isogloss.encoders.bert import Bert
from isogloss.encoders.family import EncoderFamily
from isogloss.encoders.xlm_roberta import XLMRoberta

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ALL: tuple[EncoderFamily, ...] = (Bert(), XLMRoberta())
FAMILIES = {family.name: family for family in _ALL}


def family_of(model: "PreTrainedModel") -> EncoderFamily:
    """Return the family of an encoder, or of a model with a head; ModelError when it is not known."""
    return family_named(model.config.model_type, type(model).__name__)


def family_named(model_type: str, where: str) -> EncoderFamily:
    """Return the family of a ``model_type``; ModelError, naming ``where``, when it is not known."""
    if model_type not in FAMILIES:
        raise ModelError(
            f"{where}: the architecture {model_type!r} is not supported."
            f"{did_you_mean(model_type, FAMILIES)} Supported: {', '.join(sorted(FAMILIES))}."
        )
    return FAMILIES[model_type]
