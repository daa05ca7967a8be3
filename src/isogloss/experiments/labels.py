"""What translators and translation models are called in tables and titles."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from isogloss.core.run_graph import run_id
from isogloss.core.run_parts import values_of
from isogloss.core.runs import Pretrained, TrainTranslator, Translate


def described(part: Any, *more: str) -> str:
    """Name a method or translator with its fields that are not the default, and what else there is to say."""
    silent = {one.name for one in fields(part) if one.metadata.get("watches")}
    default = values_of(type(part)())
    changed = [
        f"{name}={value}"
        for name, value in values_of(part).items()
        if value != default[name] and name not in silent
    ]
    about = ", ".join((*filter(None, more), *changed))
    return f"{part.name} ({about})" if about else str(part.name)


def translator_label(translated: Sequence[Translate]) -> str:
    """Name what made some translations; models that differ by direction are joined by +."""
    models = dict.fromkeys(translation_model_label(one.model) for one in translated if one.model is not None)
    return described(translated[0].translator, "+".join(models))


def translation_model_label(model: TrainTranslator | Pretrained) -> str:
    """Name a translation model: its folder's or hub name, or the beginning of its run's id."""
    if isinstance(model, Pretrained):
        return model.source.rpartition("/")[2] or model.source
    return f"trained {run_id(model)[:6]}"
