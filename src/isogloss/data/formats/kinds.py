"""Kinds of labelled corpora: the parts of an example, their default columns, and how to build it from a row.

The catalogue, described corpora and datasets of the hub are all read here: a row (``tables``) becomes an
example by its kind.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE, as_bio, find_misfit
from isogloss.data.examples import (
    Choice,
    Example,
    Label,
    LabelledText,
    Question,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import File, is_unicode, some
from isogloss.data.formats.conllu import COLUMNS, LEMMA, NAMES
from isogloss.data.formats.label_cells import read_cell_text
from isogloss.data.formats.questions import question_of_row
from isogloss.data.formats.reading import CorpusRow, FileFacts, KindName, Predicts, Reading
from isogloss.data.formats.tables import OF_SPANS, SENTENCE, SUFFIXES, AnyOf, Columns, FileFormat


def labelled_rows(file: File, reading: Reading, facts: FileFacts) -> Iterator[Example | DataError | None]:
    """Yield the example of each selected row, its error, or None if it is skipped for its label.

    Without stated ids, official examples are numbered from 1 within their language, so that rows of parallel
    corpora have equal ids in all languages, and described ones from 0 within their file.
    """
    id_counts = dict[str, int]()
    count = 0
    reading = reading.without_labels if facts.unlabelled else reading
    for row in reading.rows(file, facts.layout):
        if isinstance(row, DataError):
            yield row
            continue
        count += 1
        record = CorpusRow(reading, file, row, str(count if reading.official else row.number), facts)
        try:
            if "id" in reading.table.columns and ("id" in row.parts or not reading.official):
                record = record.with_row_id(id_counts)
            yield KINDS[reading.kind].make(record)
        except DataError as error:
            yield error


_SPAN = re.compile(r"\[\s*([^\s:\[\]]+)\s*:\s*([^\[\]]*)\]|[\[\]]")
"""``[time : nine am]``, or a bracket outside of such a span."""

_UNSPACED_CHARACTER = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Kana and Chinese characters, which are written without spaces."""


def _read_annotated(record: CorpusRow) -> TaggedSentence:
    """Read a text with spans written as ``[type : words]`` (MASSIVE).

    Spaces separate words. Chinese and Japanese words are characters, as in the corpus's own script.
    """
    text = record.text("annotated")
    end = 0
    words = list[str]()
    tags = list[str]()
    for span in (*_SPAN.finditer(text), None):
        outside = _words(text[end : span.start() if span else None])
        words += outside
        tags += [OUTSIDE] * len(outside)
        if span is None:
            break
        if not span[1] or not (inside := _words(span[2])):
            raise record.broken(f"{text[span.start() :][:60]!r}", "spans as in [time : nine am]")
        words += inside
        tags += [f"{mark}-{span[1]}" for mark in ("B", *"I" * (len(inside) - 1))]
        end = span.end()
    return TaggedSentence(id=record.id, words=tuple(words), tags=record.labels(tags))


def _words(text: str) -> list[str]:
    chunks = (list(chunk) if _UNSPACED_CHARACTER.search(chunk) else [chunk] for chunk in text.split())
    return [word for chunk in chunks for word in chunk]


def _sentence(record: CorpusRow) -> TaggedSentence:
    columns = record.reading.table.columns
    if "annotated" in columns:
        return _read_annotated(record)
    parts = ("word", "label") if "word" in columns else ("words", "labels")
    words = record.part(parts[0])
    tags = [] if record.is_unlabelled else record.part(parts[1])
    lists = isinstance(words, list) and isinstance(tags, list)
    if not lists or (len(words) != len(tags) and not record.is_unlabelled):
        raise record.broken("words and labels that are not lists of one length", "a label for each word")
    return TaggedSentence(id=record.id, words=_checked_words(record, words), tags=_tags(record, tags))


def _checked_words(record: CorpusRow, words: list[object]) -> tuple[str, ...]:
    texts = [word for word in words if isinstance(word, str)]
    stripped_texts = texts if record.reading.blank else [text.strip() for text in texts]
    if (
        len(texts) == len(words)
        and all(stripped_texts)
        and is_unicode("".join(texts))
        and not record.reading.prefixes
    ):
        return tuple(texts)
    return tuple(_word(record, word, index) for index, word in enumerate(words))


def _tags(record: CorpusRow, cells: list[object]) -> tuple[str, ...]:
    """Return the tags of a sentence, with a shortcut for official files with tags of the inventory."""
    reading = record.reading
    if reading.official and not reading.spelled and all(cell in reading.labels for cell in cells):
        return tuple(str(cell) for cell in cells)
    return _bio(record, [record.spell(cell) for cell in cells])


def _word(record: CorpusRow, word: object, index: int) -> str:
    """Return a word without the prefix that the words of its file have.

    Raises DataError if it is blank or lacks the prefix.
    """
    prefixes = record.reading.prefixes
    may_be_blank = record.reading.blank
    if not isinstance(word, str) or not (word if may_be_blank else word.strip()) or not is_unicode(word):
        raise record.broken(f"the word {word!r}", "words that are not blank", "Remove it", word=index)
    stem = next((word.removeprefix(prefix) for prefix in prefixes if word.startswith(prefix)), "")
    if prefixes and not stem:
        raise record.broken(f"word {word!r}", f"{prefixes[0]!r} before each word", word=index)
    return stem if prefixes else word


def _bio(record: CorpusRow, tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of a sentence, with spans as BIO.

    Raises DataError, with the line, for a tag that does not fit the file's scheme.
    """
    scheme = record.facts.scheme
    if scheme.marks_spans and (wrong := find_misfit(tags, scheme)) is not None:
        raise record.broken(
            f"tag {tags[wrong]!r} in a file whose tags are {scheme.name}",
            scheme.describe_tags(),
            'Correct it or, if each word has a separate label, write scheme = "words"',
            word=wrong,
        )
    return tuple(record.checked_label(tag, index) for index, tag in enumerate(as_bio(tags, scheme)))


def _text(record: CorpusRow) -> LabelledText | None:
    if record.is_skipped():
        return None
    return LabelledText(id=record.id, text=record.text("text"), label=_label_of(record))


def _pair(record: CorpusRow) -> SentencePair | None:
    if record.is_skipped():
        return None
    texts = {part: record.text(part) for part in ("first", "second")}
    return SentencePair(id=record.id, **texts, label=_label_of(record))


def _single(record: CorpusRow) -> str:
    return record.checked_label(record.spell(record.part("label")))


def _label_of(record: CorpusRow) -> Label:
    return UNKNOWN if record.is_unlabelled else _LABEL[record.reading.predicts](record)


def _labels(record: CorpusRow) -> tuple[str, ...]:
    """Return the labels of a row: a list, a text with separators, or a column of yes or no for each label."""
    labels = record.part("label")
    if isinstance(labels, tuple):
        pairs = zip(record.reading.labels, labels, strict=True)
        return tuple(label for label, cell in pairs if _is_yes(record, label, cell))
    if isinstance(labels, str):
        labels = record.reading.split_labels(labels)
    if not isinstance(labels, list):
        expectation = f"a list of labels, or labels with {record.reading.between!r} between"
        raise record.broken(f"label is {str(labels)[:60]!r}", expectation)
    return tuple(dict.fromkeys(record.labels(labels)))


def _is_yes(record: CorpusRow, label: str, cell: object) -> bool:
    text = str(cell).strip().lower()
    if text not in _YES_OR_NO:
        raise record.broken(f"{label} is {str(cell)[:60]!r}", "0 or 1", "Correct it, or remove the column")
    return _YES_OR_NO[text]


_YES_OR_NO = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}


def _number(record: CorpusRow) -> float:
    cell = record.part("label")
    try:
        value = math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise record.broken(f"label is {str(cell)[:60]!r}", "a number such as 2.6", "Correct it, or skip it")
    return value


_LABEL: Mapping[Predicts, Callable[[CorpusRow], Label]] = {
    "label": _single,
    "labels": _labels,
    "number": _number,
}


def _choice(record: CorpusRow) -> Choice | None:
    if record.is_skipped():
        return None
    options = _options(record)
    more = [part for part in KINDS["choice"].more if part in record.reading.table.columns]
    texts = {part: record.text(part) for part in ("context", *more)}
    if record.is_unlabelled:
        return Choice(id=record.id, options=options, label=None, **texts)
    label = read_cell_text(record.part("label"))
    names = (record.reading.labels or [str(index) for index in range(len(options))])[: len(options)]
    if label not in names:
        raise record.broken(
            f"label {label!r} for {len(options)} options",
            f"one of {some(names)}",
            "Correct it, or the labels of the description",
        )
    return Choice(id=record.id, options=options, label=names.index(label), **texts)


def _options(record: CorpusRow) -> tuple[str, ...]:
    """Return the options of a row: a list in one cell, or a cell for each.

    Empty options at the end are dropped.
    """
    options = record.part("options")
    if isinstance(options, tuple) and len(options) == 1:
        options = options[0]
    if not isinstance(options, list | tuple):
        problem = f"options {str(options)[:60]!r}"
        raise record.broken(problem, "a list of texts, or a column for each", "Name their columns")
    while options and options[-1] in ("", None):
        options = options[:-1]
    if len(options) < 2:
        raise record.broken(f"{len(options)} options", "two or more", "Remove the row")
    return tuple(record.checked_text("an option", option) for option in options)


UNKNOWN = ""
"""Label of an example without one."""


def _translation(record: CorpusRow) -> Translation:
    return Translation(id=record.id, first=record.text("first"), second=record.text("second"))


def _line(record: CorpusRow) -> TextLine | None:
    if record.reading.table.format == "lines" and not record.part("text").strip():
        return None  # An empty line separates paragraphs.
    return TextLine(id=record.id, text=record.text("text"))


LEMMA_COLUMNS = (NAMES[LEMMA], LEMMA, LEMMA - COLUMNS)
"""Column of lemmas in CoNLL-U, by name and by index."""


def predicts_of(form: FileFormat, columns: Columns, predicts: Predicts) -> Predicts:
    """Return the kind of labels of a corpus, which is "lemma" for the column of lemmas in CoNLL-U."""
    return "lemma" if form == "conllu" and columns.get("label") in LEMMA_COLUMNS else predicts


LINES_OF_WORDS = (SENTENCE, "word", "label")
"""Parts of sentences in tables with a line for each word."""


class CorpusKind(NamedTuple):
    """A kind of labelled corpus: its columns, its tasks, and the function from a row to an example."""

    example: type[Example]
    make: Callable[[CorpusRow], Example | None]
    """Function from a row to its example, or None for a skipped row."""
    columns: Mapping[FileFormat, Columns]
    """Default columns by format."""
    tasks: Mapping[Predicts, str]
    """Task by kind of labels. The task of tagging depends on the labels."""
    more: tuple[str, ...] = ()
    """Optional parts, for which the description must name a column."""
    several: tuple[str, ...] = ()
    """Parts that may have several columns."""
    suffixes: Mapping[str, FileFormat] = SUFFIXES
    """Default format by suffix of the file."""


_BY_NAME: tuple[FileFormat, ...] = ("tsv", "csv", "jsonl", "json", "parquet")


_IN_USE = {
    "words": ("words", "tokens"),
    "labels": ("labels", "ner_tags", "tags", "upos", "pos_tags"),
    "label": ("label", "labels"),
    "text": ("text", "sentence"),
    "first": ("first", "premise", "sentence1"),
    "second": ("second", "hypothesis", "sentence2"),
}
"""Names of parts in published datasets, ours first."""


def _columns_by_name(*names: str) -> dict[FileFormat, Columns]:
    columns = {name: AnyOf(_IN_USE[name]) if name in _IN_USE else name for name in names}
    return dict.fromkeys(_BY_NAME, columns)


KINDS: Mapping[KindName, CorpusKind] = {
    "tagging": CorpusKind(
        TaggedSentence,
        _sentence,
        {
            "conll": {"word": 0, "label": -1},
            "conllu": {"word": "FORM", "label": "UPOS"},
            "brat": {**OF_SPANS, "id": "id"},
            "webanno": {**OF_SPANS},
            **_columns_by_name("words", "labels"),
        },
        {"label": "", "lemma": "lemmas"},
        ("annotated", *LINES_OF_WORDS),
    ),
    "text": CorpusKind(
        LabelledText,
        _text,
        _columns_by_name("text", "label"),
        {"label": "text-classification", "labels": "multi-label-classification", "number": "regression"},
    ),
    "pair": CorpusKind(
        SentencePair,
        _pair,
        _columns_by_name("first", "second", "label"),
        {"label": "pair-classification", "number": "pair-regression"},
    ),
    "choice": CorpusKind(
        Choice,
        _choice,
        _columns_by_name("context", "options", "label"),
        {"label": "multiple-choice"},
        ("question", "prompt"),
        ("context", "options"),
    ),
    "span": CorpusKind(
        Question,
        question_of_row,
        {"squad": {}, **_columns_by_name("context", "question", "answers")},
        {"label": "qa"},
        ("start",),
        suffixes={**SUFFIXES, ".json": "squad"},
    ),
    "bitext": CorpusKind(
        Translation,
        _translation,
        {"lines": {"first": 0, "second": 0}, **_columns_by_name("first", "second")},
        {"label": "bitext"},
    ),
    "raw": CorpusKind(TextLine, _line, {"lines": {"text": 0}, **_columns_by_name("text")}, {"label": "text"}),
}


def parts_of(example: Example, labels: Sequence[str]) -> dict[str, object]:
    """Return the parts of an example as JSON values, for a reader that finds each part under its name."""
    if isinstance(example, TaggedSentence):
        return {"words": example.words, "labels": example.tags}
    if isinstance(example, Choice):
        texts = {"context": example.context, "question": example.question, "prompt": example.prompt}
        label = labels[example.label] if labels and example.label is not None else example.label
        parts = {**texts, "options": example.options, "label": label}
        return {name: value for name, value in parts.items() if value != ""}
    if isinstance(example, Question):
        starts, answers = zip(*example.answers, strict=True) if example.answers else ((), ())
        return {
            "context": example.passage,
            "question": example.question,
            "answers": {"text": answers, "answer_start": starts},
        }
    names = [field.name for field in fields(example)]
    return {name: getattr(example, name) for name in names if name in ("text", "first", "second", "label")}
