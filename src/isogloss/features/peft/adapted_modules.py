"""The modules of a layer that adapters of the library peft can be put into."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal, get_args

from isogloss.core.errors import ConfigError, MissingPackageError
from isogloss.encoders.family import EncoderFamily

ModuleChoice = Literal["query", "key", "value", "attention_output", "feed_forward_in", "feed_forward_out"]
"""A module that an adapter can be put into, by its name in ``families.Site``."""

PROJECTIONS = ("query", "key", "value")
WITHOUT_PROJECTIONS: tuple[ModuleChoice, ...] = ("attention_output", "feed_forward_in", "feed_forward_out")
"""Modules that LoRA adapts in families without separate queries and values."""


def check_peft(family: EncoderFamily, modules: Sequence[ModuleChoice] | None, where: str) -> None:
    """Raise ConfigError if the library is not installed, or a family lacks one of the modules."""
    if find_spec("peft") is None:
        raise MissingPackageError(
            f'{where}: the package peft is not installed. Install it: pip install "isogloss[peft]"',
            "peft (pip install 'isogloss[peft]')",
        )
    lacking = [name for name in modules or () if name not in available_modules(family, modules or ())]
    if lacking:
        available = ", ".join(available_modules(family, get_args(ModuleChoice)))
        raise ConfigError(
            f"{where}: modules: {', '.join(lacking)}: {family.name} {family.lacks['projections']}. Choose "
            f"among: {available}."
        )


def available_modules(family: EncoderFamily, modules: Sequence[ModuleChoice]) -> tuple[ModuleChoice, ...]:
    """Return the modules that a family has, in the given order."""
    lacks = "projections" in family.lacks
    return tuple(name for name in modules if not (lacks and name in PROJECTIONS))
