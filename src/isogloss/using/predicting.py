"""Predicting for a file: read, predicted and written a few entries at a time, so memory stays what it is."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import canonical_language, check_language
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.data.files import File
from isogloss.data.label_projection import TranslateTexts
from isogloss.using.formats import Entry, Format, format_of
from isogloss.using.kinds import probabilities_of
from isogloss.using.model import Model
from isogloss.using.translations import (
    Warn,
    pair_by_id,
    pair_with_translations,
    python_warning,
    translate_on_the_way,
    unless_blank,
)

OWN = "translation"
"""What a JSON object calls the translation that it carries itself: an object like it."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How a file is read and its answers are written."""

    format: str = ""
    """One of the task's formats; empty: by the file's name or first line."""

    language: str = ""
    """Language of the file; empty where it does not matter (it does where a model has language modules or
    maps)."""

    scores: bool = False
    """With probabilities."""

    as_json: bool = False
    """As JSON lines, whatever the format."""

    translations: File | None = None
    """The inputs in the source language, for a model that mixes: as many in the same order (those of SQuAD's
    JSON by their ids), in any of the task's formats; an empty line for an input without a translation."""

    translate: TranslateTexts | None = None
    """What translates the inputs on the way, in place of a file."""

    warn: Warn = python_warning
    """Who is told, once, of inputs without a translation."""


def predict_file(
    model: Model,
    file: File,
    options: PredictOptions,
    *,
    on_progress: OnProgress = no_progress,
    lines: int = 0,
) -> Iterator[str]:
    """Give the lines to write, without line ends, as the file is read.

    ``lines`` is how many lines the file has, where progress is to be told. DataError with file and line at
    a broken line; ConfigError, before anything is read, at what the task cannot do.
    """
    options = replace(options, language=canonical_language(options.language))
    if options.language:
        check_language(options.language, "--language")
    model.check_languages((options.language,))
    if options.scores:
        probabilities_of(model.task)
    _check_options(model, options)
    chosen, file = format_of(file, model.kind, model.task.name, options.format)
    counted = _counting(file, lines, on_progress) if lines else file
    entries = _with_translations(model, chosen.read(counted, options.language), options, (chosen, file))
    if options.language:
        entries = (_with_language(entry, options.language) for entry in entries)
    write = model.kind.json_lines if options.as_json else chosen.write or model.kind.json_lines
    return write(model.answered(entries, language=options.language, scores=options.scores))


def check_translations(model: Model, file: File, options: PredictOptions) -> None:
    """Read inputs and translations to their ends, for what is wrong with them to be said beforehand.

    Only for files that can be read twice. DataError as at prediction.
    """
    _check_options(model, options)
    if options.translations is not None:
        chosen, file = format_of(file, model.kind, model.task.name, options.format)
        entries = _with_translations(
            model, chosen.read(file, options.language), replace(options, warn=_unheard), (chosen, file)
        )
        deque(entries, maxlen=0)


def _unheard(_: str) -> None:
    pass


def _check_options(model: Model, options: PredictOptions) -> None:
    if options.translations is not None and options.translate is not None:
        raise ConfigError("--translations and --translator: both give translations. Leave one away.")
    for given, option in ((options.translations, "--translations"), (options.translate, "--translator")):
        if given is not None:
            model.check_mixes(option)


def _with_translations(
    model: Model, entries: Iterable[Entry], options: PredictOptions, source: tuple[Format, File]
) -> Iterable[Entry]:
    """Give entries with their translations, from wherever these come, where the model mixes the two."""
    if model.mixup is None:
        return entries
    chosen, file = source
    given = options.translations is not None or options.translate is not None
    if options.translations is not None:
        theirs, translations = format_of(options.translations, model.kind, model.task.name)
        others = (one.example for one in theirs.read(translations, model.into) if one.about is not None)
        pair = pair_by_id if chosen.has_ids and theirs.has_ids else pair_with_translations
        entries = pair(entries, others, (file.name, translations.name))
    elif options.translate is not None:
        entries = translate_on_the_way(entries, options.translate)
    else:
        entries = (_with_own(model, entry) for entry in entries)
    return model.with_warnings(entries, options.language, given=given, warn=options.warn)


def _with_own(model: Model, entry: Entry) -> Entry:
    """Take the translation that a JSON object carries itself."""
    own = (entry.about or {}).get(OWN)
    if own is None or entry.example is None:
        return entry
    where = f"{entry.example.id}: {OWN}"
    if not isinstance(own, dict):
        raise DataError(f"{where} is {str(own)[:60]!r}; expected an object like the one it stands in.")
    return replace(entry, translation=unless_blank(model.kind.from_json(own, where, model.into)))


def _with_language(entry: Entry, language: str) -> Entry:
    return entry if entry.about is None else replace(entry, about={**entry.about, "language": language})


def _counting(file: File, total: int, on_progress: OnProgress) -> File:
    """Tell how many lines of a file were read."""

    def read() -> Iterator[str]:
        for done, line in enumerate(file.read(), start=1):
            yield line
            if done % 100 == 0 or done == total:
                on_progress(Progress("predicting", done, total, "lines"))

    return replace(file, read=read)
