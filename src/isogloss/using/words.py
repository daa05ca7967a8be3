"""Sentences in words, and a label for each: plain lines, CoNLL-U, a word a line, JSON lines."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from isogloss.core.errors import DataError
from isogloss.data.conllu import COLUMNS, TAG
from isogloss.data.conllu_blocks import read_blocks, with_columns, with_misc
from isogloss.data.examples import Example, TaggedSentence
from isogloss.data.files import File
from isogloss.using.formats import (
    Answered,
    Entry,
    Format,
    Kind,
    Prediction,
    is_object,
    numbered_objects,
    shown,
)

NER_KEY = "NER"
"""Key of a word's entity tag in the last column of CoNLL-U."""

SCORE_KEY = "Score"
"""Key of its probability."""

Fill = Callable[[Sequence[str], Prediction], Iterable[str]]
"""From a sentence's lines in CoNLL-U and what was predicted to its lines with that in them."""


def tags_filled(lines: Sequence[str], prediction: Prediction) -> Iterator[str]:
    """Put universal tags into their column."""
    return with_columns(lines, {TAG: prediction.answer})


def entities_filled(lines: Sequence[str], prediction: Prediction) -> Iterator[str]:
    """Put entity tags into the last column, beside what else is there."""
    return with_misc(lines, NER_KEY, prediction.answer)


def words(fill: Fill) -> Kind:
    """Make the kind of tasks that label words; ``fill`` puts labels into CoNLL-U."""
    return Kind(
        formats=(
            Format(
                name="conllu",
                looks_so=lambda line: line.count("\t") == COLUMNS - 1,
                read=_read_conllu,
                write=partial(_write_conllu, fill),
            ),
            Format(name="tsv", looks_so=lambda line: line.count("\t") == 1, read=_read_tsv, write=_write_tsv),
            Format(name="jsonl", looks_so=is_object, read=_read_objects),
            Format(name="lines", looks_so=bool, read=_read_lines, write=_write_lines),
        ),
        example=sentence,
        told=_told,
        answered=_answered,
        auto_class="AutoModelForTokenClassification",
        pipeline="token-classification",
    )


def sentence(value: Any, where: str, language: str = "") -> TaggedSentence:  # noqa: ARG001
    """Make a sentence of its words, or of a text whose words are parted by white space."""
    found = value.split() if isinstance(value, str) else value
    if not isinstance(found, list | tuple):
        raise DataError(f"{where}: expected words or a text, found {str(value)[:60]!r}.")
    for word in found:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"{where}: expected words, found {word!r} among {str(value)[:60]!r}.")
    return TaggedSentence(id=where, words=tuple(found), tags=())


def _told(example: Example | None, prediction: Prediction | None) -> dict[str, Any]:
    told: dict[str, Any] = {"words": [], "labels": []}
    if isinstance(example, TaggedSentence):
        told["words"] = list(example.words)
    if prediction is not None:
        told["labels"] = list(prediction.answer)
        if prediction.scores is not None:
            told["scores"] = [round(score, 6) for score in prediction.scores]
    return told


def _answered(example: Any, answer: Sequence[str]) -> Example:
    filled: Example = replace(example, tags=tuple(answer))
    return filled


def _read_lines(file: File, _: str) -> Iterator[Entry]:
    for number, line in file.lines():
        found = tuple(line.split())
        example = TaggedSentence(id=str(number), words=found, tags=()) if found else None
        yield Entry(lines=(line,), example=example, about={"line": number})


def _write_lines(entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        yield "\t".join([*entry.lines, *map(" ".join, _columns(prediction))])


def _read_conllu(file: File, _: str) -> Iterator[Entry]:
    for block in read_blocks(file):
        if not block.words:
            yield Entry(lines=block.lines)
            continue
        name = block.sent_id or str(block.number)
        example = TaggedSentence(id=name, words=block.words, tags=())
        yield Entry(lines=block.lines, example=example, about={"line": block.number, "id": name})


def _write_conllu(fill: Fill, entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        if prediction is None:
            yield from entry.lines
        elif prediction.scores is None:
            yield from fill(entry.lines, prediction)
        else:
            yield from with_misc(list(fill(entry.lines, prediction)), SCORE_KEY, shown(prediction.scores))


def _read_tsv(file: File, _: str) -> Iterator[Entry]:
    """Read a word a line, in the first column; an empty line ends a sentence."""
    start, lines = 1, list[str]()
    for number, line in file.lines():
        if line.strip():
            if line.startswith("\t"):
                raise file.broken(number, "a line that begins with a tab", "a word before the first tab")
            lines.append(line)
            continue
        if lines:
            yield _word_lines(start, lines)
        yield Entry(lines=(line,))
        start, lines = number + 1, []
    if lines:
        yield _word_lines(start, lines)


def _word_lines(start: int, lines: Sequence[str]) -> Entry:
    found = tuple(line.partition("\t")[0] for line in lines)
    example = TaggedSentence(id=str(start), words=found, tags=())
    return Entry(lines=tuple(lines), example=example, about={"line": start})


def _write_tsv(entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        columns = _columns(prediction)
        for number, line in enumerate(entry.lines):
            yield "\t".join([line, *(column[number] for column in columns)])


def _columns(prediction: Prediction | None) -> list[Sequence[str]]:
    """Return the labels, and their probabilities where there are any."""
    if prediction is None:
        return []
    scores = [] if prediction.scores is None else [shown(prediction.scores)]
    return [prediction.answer, *scores]


def _read_objects(file: File, language: str) -> Iterator[Entry]:
    for number, line, body in numbered_objects(file):
        if not {"words", "text"} & body.keys():
            raise file.broken(number, f"the keys {', '.join(body) or 'none'}", "words (a list) or text")
        example = sentence(body.get("words", body.get("text")), f"{file.name}:{number}", language)
        yield Entry(lines=(line,), example=example if example.words else None, about=body)
