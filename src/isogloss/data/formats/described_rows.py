"""From a row of a described corpus to an example, by the kind of corpus."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.corpora.questions import place_answer
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
from isogloss.data.formats.file_facts import LINES, FileFacts, Reading, label_text
from isogloss.data.formats.forms import BY_WORD, FORMS, Kind, Predicts
from isogloss.data.formats.tables import Column, Columns, Row
from isogloss.data.formats.tag_schemes import MARKS, WORDS, as_bio, misfit
from isogloss.data.projection.tag_projection import OUTSIDE


def columns_of(columns: Columns, part: str) -> tuple[Column, ...]:
    """Return the columns that hold a part of an example."""
    found = columns[part]
    return found if isinstance(found, tuple) else (found,)


@dataclass(frozen=True, slots=True)
class DescribedRow:
    """A row, and how it is read; every error names its file and line."""

    how: Reading
    file: File
    row: Row
    id: str
    facts: FileFacts = LINES

    def example(self) -> Example | None:
        """Return its example; None for a row that is left out."""
        return _MAKE[self.how.kind](self)

    def broken(
        self, found: str, expected: str, advice: str = "Correct the line", *, word: int | None = None
    ) -> DataError:
        """Build the error for this row, or for a word of it."""
        line = self.row.line if word is None or not self.row.lines else self.row.lines[word]
        return self.file.broken(line, found, expected, advice)

    def at(self, column: Column, part: str) -> object:
        """Return the cell of a column; DataError where the row has none."""
        if column not in self.row.cells:
            there = ", ".join(map(str, self.row.cells))
            raise self.broken(f"no column {column!r} for {part}", f"one of {there}", "Correct the columns")
        return self.row.cells[column]

    def cells(self, part: str) -> list[object]:
        """Return the cells of a part of an example."""
        return [self.at(column, part) for column in columns_of(self.how.columns, part)]

    def cell(self, part: str) -> Any:
        """Return the one cell of a part of an example."""
        (found,) = self.cells(part)
        return found

    def text(self, part: str) -> str:
        """Return the text of a part; that of several columns is joined by spaces."""
        return " ".join(self.text_in(part, found) for found in self.cells(part))

    def text_in(self, part: str, found: object) -> str:
        """Return the text of a cell; DataError where it is blank or no text."""
        if isinstance(found, str) and found.strip() and is_unicode(found):
            return found
        raise self.broken(f"{part} is {str(found)[:60]!r}", "a text that is not blank", "Take it out")

    def is_skipped(self) -> bool:
        """Return whether the row is left out for its label."""
        skips = bool(self.how.skip) and not self.facts.unlabelled
        return skips and " ".join(map(label_text, self.cells("label"))).strip() in self.how.skip

    def labels(self, cells: Sequence[object]) -> tuple[str, ...]:
        """Return labels by their spelling, or by their number in the inventory."""
        return tuple(self.known(self.spell(cell), index) for index, cell in enumerate(cells))

    def spell(self, cell: object) -> str:
        """Return the label in a cell."""
        return self.how.spell(cell, numbered=self.facts.numbered)

    def known(self, label: str, word: int | None = None) -> str:
        """Return a label of the inventory; DataError for another one."""
        if label and label in self.how.labels:
            return label
        what = f"label {label!r}" if label else "no label"
        known = self.how.spelled or self.how.labels
        expected = f"one of {some(known)}" if known else "a label"
        if self.how.kind == "tagging":
            raise self.broken(what, expected, "Correct it, or the labels of the description", word=word)
        skip = "Correct it or the labels of the description, or leave such rows out (skip = [{!r}])"
        raise self.broken(what, expected, skip.format(label).replace("'", '"'))


_SPAN = re.compile(r"\[\s*([^\s:\[\]]+)\s*:\s*([^\[\]]*)\]|[\[\]]")
"""``[time : nine am]``, or a bracket that marks no span."""

_OF_CHARACTERS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Kana and Chinese characters, which stand without spaces."""


def _annotated(row: DescribedRow) -> TaggedSentence:
    """Read a text in which spans stand as ``[type : words]`` (MASSIVE).

    Spaces separate words; Chinese and Japanese words are characters, as in the corpus's own script.
    """
    text, end, words, tags = row.text("annotated"), 0, list[str](), list[str]()
    for span in (*_SPAN.finditer(text), None):
        outside = _words(text[end : span.start() if span else None])
        words += outside
        tags += [OUTSIDE] * len(outside)
        if span is None:
            break
        if not span[1] or not (inside := _words(span[2])):
            raise row.broken(f"{text[span.start() :][:60]!r}", "spans as in [time : nine am]")
        words += inside
        tags += [f"{mark}-{span[1]}" for mark in ("B", *"I" * (len(inside) - 1))]
        end = span.end()
    return TaggedSentence(id=row.id, words=tuple(words), tags=row.labels(tags))


def _words(text: str) -> list[str]:
    chunks = (list(chunk) if _OF_CHARACTERS.search(chunk) else [chunk] for chunk in text.split())
    return [word for chunk in chunks for word in chunk]


def _sentence(row: DescribedRow) -> TaggedSentence:
    if "annotated" in row.how.columns:
        return _annotated(row)
    parts = ("word", "label") if row.how.format in BY_WORD else ("words", "labels")
    words = row.cell(parts[0])
    tags = [] if row.facts.unlabelled else row.cell(parts[1])
    lists = isinstance(words, list | tuple) and isinstance(tags, list | tuple)
    if not lists or (len(words) != len(tags) and not row.facts.unlabelled):
        raise row.broken("words and labels that are no lists of one length", "a label for each word")
    for index, word in enumerate(words):
        if not isinstance(word, str) or not word.strip() or not is_unicode(word):
            raise row.broken(f"the word {word!r}", "words that are not blank", "Take it out", word=index)
    return TaggedSentence(id=row.id, words=tuple(words), tags=_bio(row, [*map(row.spell, tags)]))


def _bio(row: DescribedRow, tags: Sequence[str]) -> tuple[str, ...]:
    """Return the tags of a sentence, spans as BIO; DataError, with its line, for one that does not fit."""
    scheme = row.facts.scheme
    if scheme != WORDS and (wrong := misfit(tags, scheme)) is not None:
        marks = ", ".join(f"{mark}-TYPE" for mark in MARKS[scheme]) or "(TYPE*, *, *)"
        raise row.broken(
            f"tag {tags[wrong]!r} in a file whose tags are {scheme}",
            f"O, {marks}",
            'Correct it or, where each word has a label of its own, write scheme = "words"',
            word=wrong,
        )
    return tuple(row.known(tag, index) for index, tag in enumerate(as_bio(tags, scheme)))


def _text(row: DescribedRow) -> LabelledText | None:
    if row.is_skipped():
        return None
    return LabelledText(id=row.id, text=row.text("text"), label=_label_of(row))


def _pair(row: DescribedRow) -> SentencePair | None:
    if row.is_skipped():
        return None
    first, second = (row.text(part) for part in ("first", "second"))
    return SentencePair(id=row.id, first=first, second=second, label=_label_of(row))


def _one(row: DescribedRow) -> str:
    return row.labels(row.cells("label"))[0]


def _label_of(row: DescribedRow) -> Label:
    return UNKNOWN if row.facts.unlabelled else _LABEL[row.how.predicts](row)


def _labels(row: DescribedRow) -> tuple[str, ...]:
    """Return the labels of a row: a list, a text with separators, or a column each that says yes or no.

    A row may have none.
    """
    if isinstance(row.how.columns["label"], tuple):
        each = zip(row.how.labels, row.cells("label"), strict=True)
        return tuple(label for label, cell in each if _holds(row, label, cell))
    found = row.cell("label")
    if isinstance(found, str):
        found = [part for part in found.split(row.how.between) if part.strip()]
    if not isinstance(found, list | tuple):
        expected = f"a list of labels, or labels with {row.how.between!r} between"
        raise row.broken(f"label is {str(found)[:60]!r}", expected)
    return tuple(dict.fromkeys(row.labels(found)))


def _holds(row: DescribedRow, label: str, cell: object) -> bool:
    said = str(cell).strip().lower()
    if said not in _HOLDS:
        raise row.broken(f"{label} is {str(cell)[:60]!r}", "0 or 1", "Correct it, or leave the column out")
    return _HOLDS[said]


_HOLDS = {"0": False, "0.0": False, "false": False, "1": True, "1.0": True, "true": True}


def _number(row: DescribedRow) -> float:
    found = row.cell("label")
    try:
        number = math.nan if isinstance(found, bool) else float(found)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise row.broken(f"label is {str(found)[:60]!r}", "a number such as 2.6", "Correct it, or skip it")
    return number


_LABEL: Mapping[Predicts, Callable[[DescribedRow], Label]] = {
    "label": _one,
    "labels": _labels,
    "number": _number,
}


def _choice(row: DescribedRow) -> Choice | None:
    if row.is_skipped():
        return None
    options = _options(row)
    asked = {part: row.text(part) for part in FORMS["choice"].more if part in row.how.columns}
    context = row.text("context")
    if row.facts.unlabelled:
        return Choice(id=row.id, context=context, options=options, label=None, **asked)
    said = label_text(row.cell("label"))
    names = (row.how.labels or [str(number) for number in range(len(options))])[: len(options)]
    if said not in names:
        raise row.broken(
            f"label {said!r} for {len(options)} options",
            f"one of {some(names)}",
            "Correct it, or the labels of the description",
        )
    return Choice(id=row.id, context=context, options=options, label=names.index(said), **asked)


def _options(row: DescribedRow) -> tuple[str, ...]:
    """Return the options of a row: a list in one cell, or a cell each; the last ones may be empty."""
    cells = row.cells("options")
    found: object = cells if len(cells) > 1 else cells[0]
    if not isinstance(found, list | tuple):
        what = f"options {str(found)[:60]!r}"
        raise row.broken(what, "a list of texts, or a column for each", "Name their columns")
    while found and found[-1] in ("", None):
        found = found[:-1]
    if len(found) < 2:
        raise row.broken(f"{len(found)} options", "two or more", "Take the row out")
    return tuple(row.text_in("an option", one) for one in found)


UNKNOWN = ""
"""The label of an example that has none."""

NO_ANSWER = ""
"""What ``skip`` calls a question without an answer."""


def _question(row: DescribedRow) -> Question | None:
    passage, answers = row.text("context"), list[tuple[int, str]]()
    repairs = []
    for text, start in _answers(row):
        found = place_answer(passage, row.text_in("an answer", text), _offset(row, start))
        if isinstance(found, str):
            raise row.broken(found, "an answer that stands in its context, at its start")
        answers.append(found[:2])
        repairs.append(found[2])
    if not answers and NO_ANSWER in row.how.skip and not row.facts.unlabelled:
        return None
    if not answers and not row.facts.unlabelled:
        raise row.broken(
            "a question without an answer",
            "one that stands in the context, as the task finds one for every question (SQuAD 1.1)",
            'Take it out, or leave out all such questions (skip = [""])',
        )
    return Question(
        id=row.id,
        passage=passage,
        question=row.text("question"),
        answers=tuple(answers),
        repaired=", ".join(filter(None, repairs)),
    )


def _answers(row: DescribedRow) -> list[tuple[object, object]]:
    """Return text and start of each answer of a row; None for a start that is not given.

    They are a text, a list of texts, SQuAD's list of objects, or the object of two lists that ``datasets``
    makes of it.
    """
    if row.facts.unlabelled:
        return []
    found = row.cell("answers")
    objects = found if isinstance(found, list | tuple) else [found]
    if objects and all(isinstance(one, Mapping) for one in objects):
        texts = [text for one in objects for text in _listed(one.get("text"))]
        starts = [start for one in objects for start in _listed(one.get("answer_start"))]
    else:
        texts = [text for text in _listed(found) if text != NO_ANSWER]
        starts = _listed(row.cell("start")) if "start" in row.how.columns and texts else []
    if starts and len(starts) != len(texts):
        counts = f"{len(texts)} answers and {len(starts)} starts"
        raise row.broken(counts, "a start for each answer, or none")
    return list(zip(texts, starts or [None] * len(texts), strict=True))


def _listed(found: object) -> list[object]:
    if isinstance(found, list | tuple):
        return list(found)
    return [] if found is None else [found]


def _offset(row: DescribedRow, start: object) -> int | None:
    if start in (None, ""):
        return None
    if isinstance(start, bool) or not _WHOLE.fullmatch(str(start).strip()):
        raise row.broken(f"start is {str(start)[:60]!r}", "a number of characters, counted from 0")
    return int(str(start))


_WHOLE = re.compile(r"-?\d{1,18}")


def _translation(row: DescribedRow) -> Translation:
    return Translation(id=row.id, first=row.text("first"), second=row.text("second"))


def _line(row: DescribedRow) -> TextLine | None:
    if row.how.format == "lines" and not row.cell("text").strip():
        return None  # Empty lines stand between paragraphs.
    return TextLine(id=row.id, text=row.text("text"))


_MAKE: Mapping[Kind, Callable[[DescribedRow], Example | None]] = {
    "tagging": _sentence,
    "text": _text,
    "pair": _pair,
    "choice": _choice,
    "span": _question,
    "bitext": _translation,
    "raw": _line,
}
EXAMPLES: Mapping[Kind, type[Example]] = {
    "tagging": TaggedSentence,
    "text": LabelledText,
    "pair": SentencePair,
    "choice": Choice,
    "span": Question,
    "bitext": Translation,
    "raw": TextLine,
}


def parts_of(example: Example, labels: Sequence[str]) -> dict[str, object]:
    """Return the parts of an example as JSON holds them, for a reader that finds each under its name."""
    if isinstance(example, TaggedSentence):
        return {"words": example.words, "labels": example.tags}
    if isinstance(example, Choice):
        asked = {"question": example.question, "prompt": example.prompt}
        label = labels[example.label] if labels and example.label is not None else example.label
        parts = {"context": example.context, **asked, "options": example.options, "label": label}
        return {name: value for name, value in parts.items() if value != ""}
    if isinstance(example, Question):
        starts, texts = zip(*example.answers, strict=True) if example.answers else ((), ())
        answers = {"text": texts, "answer_start": starts}
        return {"context": example.passage, "question": example.question, "answers": answers}
    parts = {one.name: getattr(example, one.name) for one in fields(example)}
    return {name: value for name, value in parts.items() if name in ("text", "first", "second", "label")}
