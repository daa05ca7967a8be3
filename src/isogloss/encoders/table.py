"""The families of encoders isogloss knows, by the ``model_type`` of their config.json."""

from typing import TYPE_CHECKING

from isogloss.core.errors import ModelError, did_you_mean
from isogloss.encoders.bert import Bert
from isogloss.encoders.deberta import Deberta
from isogloss.encoders.distilbert import DistilBert
from isogloss.encoders.family import Ability, EncoderFamily
from isogloss.encoders.modernbert import ModernBert
from isogloss.encoders.roberta import Roberta

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_ALL: tuple[EncoderFamily, ...] = (
    Bert(),
    Roberta("camembert"),
    Deberta(),
    DistilBert(),
    ModernBert(),
    Roberta("roberta"),
    Roberta("xlm-roberta"),
)
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


def require(family: EncoderFamily, *abilities: Ability, what: str) -> None:
    """Raise ModelError, with the reason and the families that can, unless a family has these abilities.

    ``what`` says what needs them, as in "X-Mixup mixes after a post-norm self-attention". A name in
    config.json is enough to ask (``family_named``), so that a plan can before anything is loaded.
    """
    for ability in abilities:
        if ability in family.lacks:
            able = [one.name for one in _ALL if not one.lacks.keys() & set(abilities)]
            raise ModelError(f"{what}; {family.name} {family.lacks[ability]}. Use {' or '.join(able)}.")
