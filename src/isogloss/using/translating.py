"""Translating a model's inputs on the way, by any of the translators."""

from pathlib import Path

from isogloss.core.errors import ConfigError, unknown_name
from isogloss.core.progress import Tell, silent
from isogloss.data.translated_text import TranslateTexts
from isogloss.translators import TRANSLATORS, TranslateSetting, Translator
from isogloss.using.model import Model


def translation_for(
    model: Model, name: str, *, language: str, translating: str = "", folder: Path, tell: Tell = silent
) -> TranslateTexts:
    """Return what translates inputs in a language into the model's source language.

    ``translating`` is the folder or hub name of the model that translates, ``folder`` one in which the
    translator may keep what it needs. ConfigError where options do not go together.
    """
    if name not in TRANSLATORS:
        raise unknown_name("--translator", "translator", name, TRANSLATORS)
    model.check_mixes("--translator")
    _check_languages(model, language)
    translator: Translator = TRANSLATORS[name]()
    if translator.needs_model and not translating:
        raise ConfigError(f"--translator {name} needs a model: --model FOLDER, or its name on the hub.")
    if translating and not translator.needs_model:
        raise ConfigError(f"--model: translator {name} takes none. Leave it away.")
    setting = TranslateSetting(
        source=language,
        target=model.into,
        model=translating,
        folder=folder,
        precision=model.precision,
        tell=tell,
    )
    return lambda texts: translator.translate(texts, setting)


def _check_languages(model: Model, language: str) -> None:
    if not language:
        raise ConfigError("--translator: from which language? Say that of the inputs: --language sw.")
    if not model.origin.source:
        raise ConfigError("--translator: into which language? The model's record names no source language.")
    if language in model.origin.source:
        raise ConfigError(
            f"--translator: {language} is the language the model was trained on; there is nothing to "
            f"translate. Leave --translator away."
        )
