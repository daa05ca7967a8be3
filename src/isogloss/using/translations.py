"""Inputs beside their translations, for models that mix the two (X-Mixup): in step, and warned of where not.

An input without a translation is predicted unmixed. That is said once for all of them, with what to do.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice, tee
from pathlib import Path

from isogloss.core.errors import ConfigError, DataError, unknown_name
from isogloss.core.progress import OnProgress, no_progress
from isogloss.data.examples import Example
from isogloss.data.label_projection import TranslateTexts, texts_of, translate_inputs
from isogloss.translators import TRANSLATORS, TranslateSetting, Translator
from isogloss.using.fine_tuned import FineTuned
from isogloss.using.formats import Entry

COUNTED = 1_000_000
"""Where one side has more than the other, so many more are counted: a stream may never end."""

Warn = Callable[[str], None]
"""Tell a warning to whoever listens."""


def python_warning(text: str) -> None:
    """Warn as Python does."""
    warnings.warn(text, stacklevel=2)


def pair_with_translations(
    entries: Iterable[Entry], translations: Iterable[Example | None], names: tuple[str, str]
) -> Iterator[Entry]:
    """Give each entry with its translation, which stands at the same place; what is no input is passed over.

    ``names`` are what messages call inputs and translations. DataError, with both counts, where one side
    has more than the other.
    """
    here, there, done = iter(entries), iter(translations), 0
    for entry in here:
        if entry.about is None:
            yield entry
            continue
        found = list(islice(there, 1))
        if not found:
            raise _unequal(names, done + 1 + _more(one for one in here if one.about is not None), done)
        done += 1
        yield replace(entry, translation=unless_blank(found[0]))
    if more := _more(there):
        raise _unequal(names, done, done + more)


def pair_by_id(
    entries: Iterable[Entry], translations: Iterable[Example | None], names: tuple[str, str]
) -> Iterator[Entry]:
    """Give each entry with the translation of its example's id; DataError where no id is known at all."""
    known = {one.id: one for one in map(unless_blank, translations) if one is not None}
    every = list(entries)
    found = [known.get(entry.example.id) if entry.example is not None else None for entry in every]
    if known and not any(found):
        raise DataError(
            f"{names[1]}: none of its {len(known)} ids is one of {names[0]}. Give the same questions under "
            f"the same ids."
        )
    for entry, translation in zip(every, found, strict=True):
        yield replace(entry, translation=translation)


def translate_on_the_way(entries: Iterable[Entry], translate: TranslateTexts) -> Iterator[Entry]:
    """Give each entry with a translation made on the way."""
    here, there = tee(entries)
    made = translate_inputs((one.example for one in there if one.example is not None), translate)
    for entry in here:
        yield entry if entry.example is None else replace(entry, translation=unless_blank(next(made)))


def warn_of_unmixed(entries: Iterable[Entry], into: str, *, given: bool, warn: Warn) -> Iterator[Entry]:
    """Pass entries on; warn once of those without a translation.

    At the first where no translations were ``given``, else at the end, when it is known how many they are.
    """
    inputs = alone = 0
    for entry in entries:
        if entry.example is not None:
            inputs += 1
            alone += entry.translation is None
            if alone == 1 and entry.translation is None and not given:
                warn(_unmixed(f"input {inputs} has none, and so may others", into))
        yield entry
    if alone and given:
        warn(_unmixed(f"{alone} of {inputs} inputs have none", into))


def _unmixed(which: str, into: str) -> str:
    return (
        f"this model mixes each input with its translation into {into}; {which}. They are predicted unmixed. "
        f"Give translations (--translations FILE or --translator NAME; in Python translations=…)."
    )


def unless_blank(example: Example | None) -> Example | None:
    """Return a translation that says something."""
    return None if example is None or not any(text.strip() for text in texts_of(example)) else example


def _more(rest: Iterable[object]) -> int:
    return sum(1 for _ in islice(rest, COUNTED))


def _unequal(names: tuple[str, str], inputs: int, translations: int) -> DataError:
    return DataError(
        f"{names[1]}: {translations} translations for {inputs} inputs ({names[0]}). Give one for each, in "
        f"their order; an empty one for an input that has none."
    )


def translation_for(
    model: FineTuned,
    name: str,
    *,
    language: str,
    translating: str = "",
    folder: Path,
    on_progress: OnProgress = no_progress,
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
        on_progress=on_progress,
    )
    return lambda texts: translator.translate(texts, setting)


def _check_languages(model: FineTuned, language: str) -> None:
    if not language:
        raise ConfigError("--translator: from which language? Say that of the inputs: --language sw.")
    if not model.provenance.source:
        raise ConfigError("--translator: into which language? The model's record names no source language.")
    if language in model.provenance.source:
        raise ConfigError(
            f"--translator: {language} is the language the model was trained on; there is nothing to "
            f"translate. Leave --translator away."
        )
