"""Predicting for a file: read, predicted and written a few entries at a time, in constant memory.

A model that mixes (X-Mixup) takes each input together with its translation, in the order of the inputs or by
id. An input without one is predicted unmixed, with a single warning that says what to do.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, tee
from pathlib import Path
from typing import TYPE_CHECKING

from isogloss.core.arguments import do_nothing
from isogloss.core.errors import ConfigError, DataError, add_location, check_named
from isogloss.core.languages import canonical_language, check_language
from isogloss.core.progress import OnProgress, Progress, no_progress
from isogloss.data.examples import Example
from isogloss.data.files import File
from isogloss.translators import TRANSLATORS
from isogloss.using.formats import FileEntry, InputFormat, format_of, list_formats
from isogloss.using.kinds import check_takes_inputs, probabilities_of
from isogloss.using.predictor import Predictor

if TYPE_CHECKING:
    from isogloss.data.projection.example_texts import TranslateTexts

TRANSLATION_KEY = "translation"
"""Key of a JSON object whose value is the object's own translation: an object like it."""

MAX_COUNTED = 1_000_000
"""Limit on counting the surplus of inputs or translations: a stream may be endless."""

Warn = Callable[[str], None]
"""Receives the text of a warning."""


def python_warning(text: str) -> None:
    """Issue a warning of Python's warnings module."""
    warnings.warn(text, stacklevel=2)


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of reading a file and writing its answers."""

    format: str = ""
    """One of the task's formats. Default: by the file's name or first line."""

    column: int | None = None
    """Column of words in a file with a line per word, from 0 (-1: the last). Default: found from its lines.
    """

    text: str = ""
    """Name of a table's column of texts, or two names joined by a comma for pairs. Default: a usual name."""

    language: str = ""
    """Language of the file. Only models with language modules or maps need it."""

    scores: bool = False
    """With probabilities."""

    as_json: bool = False
    """As JSON lines, whatever the format."""

    translations: File | None = None
    """The inputs in the source language, for a model that mixes, in any of the task's formats. They are in
    the same order (SQuAD's JSON: identified by ids). An input without a translation has an empty line."""

    translate: TranslateTexts | None = None
    """Translates the inputs while they are read, instead of a file."""

    warn: Warn = python_warning
    """Called once if any input has no translation."""


def predict_file(
    model: Predictor,
    file: File,
    options: PredictOptions,
    *,
    on_progress: OnProgress = no_progress,
    lines: int = 0,
) -> Iterator[str]:
    """Yield the lines to write, without line ends, while the file is read.

    ``lines`` is the number of lines of the file, needed for progress. DataError with file and line at a
    malformed line; ConfigError, before anything is read, for what the task cannot do.
    """
    check_takes_inputs(model.task, model.tokenizer)
    options = replace(options, language=canonical_language(options.language))
    if options.language:
        check_language(options.language, "--language")
    model.check_languages((options.language,))
    if options.scores:
        probabilities_of(model.task)
    _check_options(model, options)
    file_format, file = _format_of(file, model, options)
    progress = _LineProgress(file, lines, on_progress)
    read = replace(file, read=progress.read) if lines else file
    entries = _with_translations(
        model, file_format.read(read, options.language), options, (file_format, file)
    )
    if options.language:
        entries = (_with_language(entry, options.language) for entry in entries)
    write = model.kind.json_lines if options.as_json else file_format.write or model.kind.json_lines
    report_rows = progress.on_scored if lines else no_progress
    return write(
        model.predict_entries(
            entries, language=options.language, scores=options.scores, on_progress=report_rows
        )
    )


def _format_of(file: File, model: Predictor, options: PredictOptions) -> tuple[InputFormat, File]:
    """Return the format with the chosen columns, and the file. Raises ConfigError without a format."""
    file_format, file = format_of(file, model.kind, model.task.name, options.format)
    for name, value in (("column", options.column), ("text", options.text or None)):
        if value is not None and file_format.option != name:
            format_names = [form.name for form in list_formats(model.kind) if form.option == name]
            alternative = f"give --format {' or '.join(format_names)}, or " if format_names else ""
            raise ConfigError(
                f"--{name}: {file.name} is read as {file_format.name}; {alternative}leave --{name} out."
            )
        if value is not None:
            file_format = replace(file_format, read=partial(file_format.read, **{name: value}))
    return file_format, file


def check_translations(model: Predictor, file: File, options: PredictOptions) -> None:
    """Read inputs and translations to their ends, so that errors are raised before anything is predicted.

    Only for files that can be read twice. DataError as at prediction.
    """
    _check_options(model, options)
    if options.translations is not None:
        file_format, file = _format_of(file, model, options)
        entries = file_format.read(file, options.language)
        silent = replace(options, warn=do_nothing)
        deque(_with_translations(model, entries, silent, (file_format, file)), maxlen=0)


def _check_options(model: Predictor, options: PredictOptions) -> None:
    if options.translations is not None and options.translate is not None:
        raise ConfigError(
            "--translations and --translator: only one can give the translations. Leave the other out."
        )
    for value, option in ((options.translations, "--translations"), (options.translate, "--translator")):
        if value is not None:
            model.check_mixes(option)
    if options.translations is not None:
        _check_links(model, "--translations", "a file of translations")


def _check_links(model: Predictor, option: str, subject: str) -> None:
    """Raise ConfigError for a model that mixes by word links, where they are not known."""
    if model.mixup is not None and model.mixup.attends == "links":
        from isogloss.encoders.mixup import LINKS_NEEDED

        translator_names = ", ".join(name for name in TRANSLATORS.places if TRANSLATORS[name].knows_links)
        raise ConfigError(
            f"{option}: {LINKS_NEEDED}, and {subject} has no word links. Take a translator that knows them "
            f"(--translator {translator_names}), give translations with links in Python "
            f"(TaggedSentence.links), or remove {option}, to predict unmixed."
        )


def _with_translations(
    model: Predictor, entries: Iterable[FileEntry], options: PredictOptions, source: tuple[InputFormat, File]
) -> Iterable[FileEntry]:
    """Add the translations that the options name, if the model mixes."""
    if model.mixup is None:
        return entries
    file_format, file = source
    has_translations = options.translations is not None or options.translate is not None
    if options.translations is not None:
        theirs, translations = format_of(options.translations, model.kind, model.task.name)
        translation_examples = (
            entry.example for entry in theirs.read(translations, model.into) if entry.body is not None
        )
        pair = pair_by_id if file_format.has_ids and theirs.has_ids else pair_in_order
        entries = pair(entries, translation_examples, (file.name, translations.name))
    elif options.translate is not None:
        entries = _translate_entries(entries, options.translate)
    else:
        entries = (_with_own_translation(model, entry) for entry in entries)
    return warn_of_unmixed(
        model, entries, options.language, has_translations=has_translations, warn=options.warn
    )


def _with_own_translation(model: Predictor, entry: FileEntry) -> FileEntry:
    translation = (entry.body or {}).get(TRANSLATION_KEY)
    if translation is None or entry.example is None:
        return entry
    name = f"{entry.example.id}: {TRANSLATION_KEY}"
    if not isinstance(translation, dict):
        raise DataError(
            f"{name} is {str(translation)[:60]!r}; expected an object like the input that it translates."
        )
    with add_location(name):
        example = model.kind.from_json(translation, name, model.into)
    return replace(entry, translation=_unless_blank(example))


def _with_language(entry: FileEntry, language: str) -> FileEntry:
    return entry if entry.body is None else replace(entry, body={**entry.body, "language": language})


@dataclass
class _LineProgress:
    """Progress in lines of a file that is read ahead of what is predicted, a group at a time."""

    file: File
    total: int
    on_progress: OnProgress
    lines_read: int = 0
    predicted: int = 0

    def read(self) -> Iterator[str]:
        """Yield the file's lines, counting them."""
        for line in self.file.read():
            self.lines_read += 1
            yield line

    def on_scored(self, row_progress: Progress) -> None:
        """Report progress, given the progress of the rows of the lines read since the last group."""
        line_count = (
            self.predicted + (self.lines_read - self.predicted) * row_progress.done // row_progress.total
        )
        if row_progress.done == row_progress.total:
            self.predicted = self.lines_read
        self.on_progress(Progress("predicting", line_count, self.total, "lines"))


def pair_in_order(
    entries: Iterable[FileEntry], translations: Iterable[Example | None], names: tuple[str, str]
) -> Iterator[FileEntry]:
    """Yield each input with the translation in the same position. Other entries are passed on.

    ``names`` are the names of inputs and translations in messages. Raises DataError with both counts if they
    differ.
    """
    inputs, remaining, count = iter(entries), iter(translations), 0
    for entry in inputs:
        if entry.body is None:
            yield entry
            continue
        further = list(islice(remaining, 1))
        if not further:
            raise _length_error(
                names, count + 1 + _count(entry for entry in inputs if entry.body is not None), count
            )
        count += 1
        yield replace(entry, translation=_unless_blank(further[0]))
    if more := _count(remaining):
        raise _length_error(names, count, count + more)


def pair_by_id(
    entries: Iterable[FileEntry], translations: Iterable[Example | None], names: tuple[str, str]
) -> Iterator[FileEntry]:
    """Yield each entry with the translation of its example's id.

    Raises DataError if they have no id in common.
    """
    translations_by_id = {
        translation.id: translation
        for translation in (_unless_blank(example) for example in translations)
        if translation is not None
    }
    inputs = list(entries)
    counterparts = [
        translations_by_id.get(entry.example.id) if entry.example is not None else None for entry in inputs
    ]
    if translations_by_id and not any(counterparts):
        raise DataError(
            f"{names[1]}: none of its {len(translations_by_id)} ids is one of {names[0]}. Give the same "
            f"questions under the same ids."
        )
    for entry, translation in zip(inputs, counterparts, strict=True):
        yield replace(entry, translation=translation)


def _translate_entries(entries: Iterable[FileEntry], translate: TranslateTexts) -> Iterator[FileEntry]:
    from isogloss.data.projection.example_texts import translate_inputs

    inputs, copies = tee(entries)
    examples = (copy.example for copy in copies if copy.example is not None)
    translations = translate_inputs(examples, translate)
    for entry in inputs:
        translation = None if entry.example is None else _unless_blank(next(translations))
        yield replace(entry, translation=translation)


def warn_of_unmixed(
    model: Predictor,
    entries: Iterable[FileEntry],
    language: str,
    *,
    has_translations: bool,
    warn: Warn = python_warning,
) -> Iterator[FileEntry]:
    """Pass entries on. If the model mixes, warn once about entries without a translation.

    The warning comes at the first of them, or, if inputs were ``has_translations``, at the end, with the
    count.
    """
    expects = model.mixup is not None and (has_translations or language not in model.provenance.source)
    inputs = unmixed_count = 0
    for entry in entries:
        if entry.example is not None:
            inputs += 1
            unmixed_count += entry.translation is None
            if expects and not has_translations and unmixed_count == 1 and entry.translation is None:
                warn(_describe_unmixed(f"input {inputs} has none, and so may others", model.into))
        yield entry
    if expects and has_translations and unmixed_count:
        warn(_describe_unmixed(f"{unmixed_count} of {inputs} inputs have none", model.into))


def _describe_unmixed(reason: str, language: str) -> str:
    return (
        f"this model mixes each input with its translation into {language}; {reason}. They are predicted "
        f"unmixed. Give translations (--translations FILE or --translator NAME; in Python translations=…)."
    )


def _unless_blank(example: Example | None) -> Example | None:
    from isogloss.data.projection.example_texts import texts_of

    return None if example is None or not any(text.strip() for text in texts_of(example)) else example


def _count(items: Iterable[object]) -> int:
    return sum(1 for _ in islice(items, MAX_COUNTED))


def _length_error(names: tuple[str, str], inputs: int, translations: int) -> DataError:
    return DataError(
        f"{names[1]}: {translations} translations for {inputs} inputs ({names[0]}). Give one for each, in "
        f"their order; an empty one for an input that has none."
    )


def input_translator(
    model: Predictor, name: str, *, language: str, translator_model: str = "", folder: Path
) -> TranslateTexts:
    """Return a function that translates inputs in a language into the model's source language.

    ``translator_model`` is the folder or hub name of the model that translates, ``folder`` a work folder of
    the translator. ConfigError for options that contradict each other.
    """
    from isogloss.translators.setting import TranslateSetting, Translator

    check_named("--translator", "translator", TRANSLATORS, name)
    model.check_mixes("--translator")
    language = canonical_language(language)
    _check_translation_languages(model, language)
    translator: Translator = TRANSLATORS[name]()
    if not translator.knows_links:
        _check_links(model, "--translator", f"what {name} translates")
    if translator.needs_model and not translator_model:
        raise ConfigError(f"--translator {name} needs a model: --model FOLDER, or its name on the hub.")
    if translator_model and not translator.needs_model:
        raise ConfigError(f"--model: translator {name} takes none. Remove it.")
    setting = TranslateSetting(
        source=language, target=model.into, model=translator_model, folder=folder, precision=model.precision
    )
    return lambda texts: translator.translate(texts, setting)


def _check_translation_languages(model: Predictor, language: str) -> None:
    if not language:
        raise ConfigError("--translator: the language of the inputs is missing. Give it: --language sw.")
    if not model.provenance.source:
        raise ConfigError("--translator: into which language? The model's record names no source language.")
    if language in model.provenance.source:
        raise ConfigError(
            f"--translator: {language} is the language that the model was trained on, so no "
            f"translation is needed. Remove --translator."
        )
