"""Predicting for a file: read, predicted and written a few entries at a time, so memory stays what it is."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.languages import check_language
from isogloss.core.progress import Progress, Tell, silent
from isogloss.data.files import File
from isogloss.data.label_projection import texts_of
from isogloss.data.translated_text import TranslateTexts
from isogloss.using.beside import Warn, beside, by_id, python_warning, translated, unless_blank
from isogloss.using.certainty import certainty_of
from isogloss.using.formats import Answered, Entry, Format, format_of
from isogloss.using.model import Model, in_groups

OWN = "translation"
"""What a JSON object calls the translation that it carries itself: an object like it."""

LARGEST = 1_000_000
"""Once entries have this many characters together, no further one is read before they are predicted."""


@dataclass(frozen=True, kw_only=True)
class How:
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


def predict_file(model: Model, file: File, how: How, *, tell: Tell = silent, lines: int = 0) -> Iterator[str]:
    """Give the lines to write, without line ends, as the file is read.

    ``lines`` is how many lines the file has, where progress is to be told. DataError with file and line at
    a broken line; ConfigError, before anything is read, at what the task cannot do.
    """
    if how.language:
        check_language(how.language, "--language")
    model.check_languages((how.language,))
    if how.scores:
        certainty_of(model.task.name)
    _check_options(model, how)
    chosen, file = format_of(file, model.kind, model.task.name, how.format)
    counted = _counting(file, lines, tell) if lines else file
    entries = _with_translations(model, chosen.read(counted, how.language), how, (chosen, file))
    if how.language:
        entries = (_with_language(entry, how.language) for entry in entries)
    write = model.kind.json_lines if how.as_json else chosen.write or model.kind.json_lines
    return write(answered(model, entries, language=how.language, scores=how.scores))


def check_translations(model: Model, file: File, how: How) -> None:
    """Read inputs and translations to their ends, for what is wrong with them to be said beforehand.

    Only for files that can be read twice. DataError as at prediction.
    """
    _check_options(model, how)
    if how.translations is not None:
        chosen, file = format_of(file, model.kind, model.task.name, how.format)
        entries = _with_translations(
            model, chosen.read(file, how.language), replace(how, warn=_unheard), (chosen, file)
        )
        deque(entries, maxlen=0)


def _unheard(_: str) -> None:
    pass


def answered(
    model: Model, entries: Iterable[Entry], *, language: str = "", scores: bool = False
) -> Iterator[Answered]:
    """Give each entry with what the model says of the example in it."""
    for together in in_groups(entries, size=_characters, largest=LARGEST):
        inputs = [entry for entry in together if entry.example is not None]
        predictions = iter(
            model.predictions(
                [entry.example for entry in inputs if entry.example is not None],
                language=language,
                scores=scores,
                translations=[entry.translation for entry in inputs],
            )
        )
        for entry in together:
            yield entry, None if entry.example is None else next(predictions)


def _check_options(model: Model, how: How) -> None:
    if how.translations is not None and how.translate is not None:
        raise ConfigError("--translations and --translator: both give translations. Leave one away.")
    for given, option in ((how.translations, "--translations"), (how.translate, "--translator")):
        if given is not None:
            model.check_mixes(option)


def _with_translations(
    model: Model, entries: Iterable[Entry], how: How, source: tuple[Format, File]
) -> Iterable[Entry]:
    """Give entries with their translations, from wherever these come, where the model mixes the two."""
    if model.mixup is None:
        return entries
    chosen, file = source
    given = how.translations is not None or how.translate is not None
    if how.translations is not None:
        theirs, translations = format_of(how.translations, model.kind, model.task.name)
        others = (one.example for one in theirs.read(translations, model.into) if one.about is not None)
        pair = by_id if chosen.has_ids and theirs.has_ids else beside
        entries = pair(entries, others, (file.name, translations.name))
    elif how.translate is not None:
        entries = translated(entries, how.translate)
    else:
        entries = (_with_own(model, entry) for entry in entries)
    return model.telling(entries, how.language, given=given, warn=how.warn)


def _with_own(model: Model, entry: Entry) -> Entry:
    """Take the translation that a JSON object carries itself."""
    own = (entry.about or {}).get(OWN)
    if own is None or entry.example is None:
        return entry
    where = f"{entry.example.id}: {OWN}"
    if not isinstance(own, dict):
        raise DataError(f"{where} is {str(own)[:60]!r}; expected an object like the one it stands in.")
    return replace(entry, translation=unless_blank(model.kind.of_object(own, where, model.into)))


def _characters(entry: Entry) -> int:
    texts = () if entry.translation is None else texts_of(entry.translation)
    return sum(map(len, (*entry.lines, *texts)))


def _with_language(entry: Entry, language: str) -> Entry:
    return entry if entry.about is None else replace(entry, about={**entry.about, "language": language})


def _counting(file: File, total: int, tell: Tell) -> File:
    """Tell how many lines of a file were read."""

    def read() -> Iterator[str]:
        for done, line in enumerate(file.read(), start=1):
            yield line
            if done % 100 == 0 or done == total:
                tell(Progress("predicting", done, total, "lines"))

    return replace(file, read=read)
