"""Make examples of rows: sentences with tags, texts, pairs, translations and lines.

The catalogue, described corpora and datasets of the hub are all read here: a row (``tables``) becomes an
example by its kind (``corpus_kinds``).
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from isogloss.core.errors import DataError
from isogloss.core.tag_schemes import OUTSIDE, as_bio, find_misfit
from isogloss.data.examples import (
    Example,
    Label,
    LabelledText,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import File, is_unicode
from isogloss.data.formats.conllu import COLUMNS, LEMMA, NAMES
from isogloss.data.formats.corpus_kinds import KINDS, UNKNOWN, CorpusKind, name_columns
from isogloss.data.formats.formats import Columns
from isogloss.data.formats.reading import CorpusRow, FileFacts, Predicts, Reading
from isogloss.data.formats.tables import SENTENCE


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


def _translation(record: CorpusRow) -> Translation:
    return Translation(id=record.id, first=record.text("first"), second=record.text("second"))


def _line(record: CorpusRow) -> TextLine | None:
    if record.reading.table.format == "lines" and not record.part("text").strip():
        return None  # An empty line separates paragraphs.
    return TextLine(id=record.id, text=record.text("text"))


LEMMA_COLUMNS = (NAMES[LEMMA], LEMMA, LEMMA - COLUMNS)
"""Column of lemmas in CoNLL-U, by name and by index."""


def predicts_of(form: str, columns: Columns, predicts: Predicts) -> Predicts:
    """Return the kind of labels of a corpus, which is "lemma" for the column of lemmas in CoNLL-U."""
    return "lemma" if form == "conllu" and columns.get("label") in LEMMA_COLUMNS else predicts


LINES_OF_WORDS = (SENTENCE, "word", "label")
"""Parts of sentences in tables with a line for each word."""


def _list_words(sentence: TaggedSentence, _: Sequence[str]) -> dict[str, object]:
    return {"words": sentence.words, "labels": sentence.tags}


TAGGING = CorpusKind(
    example=TaggedSentence,
    make=_sentence,
    columns=name_columns("words", "labels"),
    tasks={"label": "", "lemma": "lemmas"},
    more=("annotated", *LINES_OF_WORDS),
    parts=_list_words,
)
TEXT = CorpusKind(
    example=LabelledText,
    make=_text,
    columns=name_columns("text", "label"),
    tasks={"label": "text-classification", "labels": "multi-label-classification", "number": "regression"},
)
PAIR = CorpusKind(
    example=SentencePair,
    make=_pair,
    columns=name_columns("first", "second", "label"),
    tasks={"label": "pair-classification", "number": "pair-regression"},
)
BITEXT = CorpusKind(
    example=Translation,
    make=_translation,
    columns=name_columns("first", "second"),
    tasks={"label": "bitext"},
)
RAW = CorpusKind(example=TextLine, make=_line, columns=name_columns("text"), tasks={"label": "text"})
