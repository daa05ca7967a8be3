"""Inputs of tasks that label words: plain lines, CoNLL-U, one word per line, JSON lines.

The layout of a file with one word per line is decided once, from its lines: comments, tags, running numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from isogloss.core.arguments import never
from isogloss.core.errors import DataError, add_location
from isogloss.core.tag_schemes import TagCounts, find_misfit
from isogloss.data.examples import Example, ParsedSentence, TaggedSentence
from isogloss.data.files import File, numbered_objects
from isogloss.data.formats import conll
from isogloss.data.formats.conll import DOCUMENT, HASH, split_cells
from isogloss.data.formats.conllu import (
    COLUMNS,
    LEMMA,
    TAG,
    UPOS,
    read_blocks,
    with_columns,
    with_misc,
)
from isogloss.data.formats.word_columns import describe_other_column
from isogloss.tasks.batch import EncodedRow, Scores, join_scores
from isogloss.tasks.tagging import Tagging, merge_windows
from isogloss.tasks.task import Answer, Task, label_ids
from isogloss.using.formats import (
    Answered,
    FileEntry,
    InputForm,
    InputFormat,
    Prediction,
    format_probabilities,
    is_object,
    keys_missing,
    softmax,
)

if TYPE_CHECKING:
    from isogloss.tasks.lemmas import Lemmatization

NO_WORDS = (HASH, DOCUMENT)
"""Begin comments, though # may be a word."""

_BIO = re.compile(r"O|[BIESLUMW]-\S+")
"""Tags of spans in any scheme of letters (``core.tag_schemes``)."""

_NUMBER = re.compile(r"\d[\d.,:/-]*")


class WordFileLayout(NamedTuple):
    """Layout of a file with one word per line."""

    plain: conll.ConllLayout
    """As it is without running numbers."""
    tags: tuple[int, ...]
    """Columns after the first that hold tags of spans (or parts of speech) alone."""
    separator: str
    """Parts the cells: a tab, or a space."""
    spaces: bool
    """Whether spaces part the cells of a line without a tab."""
    indexed: bool = False
    """Whether the first column numbers the words of each sentence, 1, 2, 3, and words follow it."""
    numbers: int = 0
    """Line of the first word, from 1, if the first column has only other numbers. Otherwise 0."""
    chosen: int | None = None
    """The column of words, if the user gives it."""

    def is_comment(self, line: str) -> bool:
        """Return whether a line before a sentence is not a word.

        With running numbers, # never begins a word.
        """
        if self.indexed:
            return line.startswith(NO_WORDS)
        if not self.spaces and "\t" not in line and line.startswith(HASH):
            return self.separator == "\t" or line.startswith("# ")
        return self.plain.is_comment(line, is_before_words=True)

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line."""
        return split_cells(line) if self.spaces else line.split("\t")


def layout_of(lines: Sequence[str], *, spaces: bool = True) -> WordFileLayout:
    """Return the layout of a file, from its lines (without line ends) or the first of them."""
    words = [line for line in lines if line.strip() and not line.startswith(NO_WORDS)]
    columns = list(zip(*map(split_cells, words), strict=False))
    tags = tuple(
        column_index for column_index, column in enumerate(columns) if column_index and _are_tags(column)
    )
    file = File("", lambda: iter(lines), str)
    last_tag = tags[-1] if tags else -1
    base_layout = conll.decide_layout(file, last_tag)
    has_labels = bool(tags) or base_layout.width > 1
    base_layout = base_layout._replace(label=last_tag if has_labels else None)
    layout = WordFileLayout(
        plain=base_layout._replace(labels=base_layout.labels | UPOS)
        if tags and base_layout.labels <= UPOS
        else base_layout,
        tags=tags,
        separator="\t" if any("\t" in line for line in words) else " ",
        spaces=spaces,
    )
    if len(columns) > 1 and 1 not in tags and _are_numbered(lines):
        return layout._replace(indexed=True)
    firsts = [
        (column_index, layout.cells(line)[0])
        for column_index, line in enumerate(lines, start=1)
        if line.strip() and not layout.is_comment(line)
    ]
    are_numbers = len(columns) > 1 and all(_NUMBER.fullmatch(cell) for _, cell in firsts)
    return layout._replace(numbers=firsts[0][0]) if are_numbers else layout


def are_tagged(lines: Sequence[str]) -> bool:
    """Return whether no plain text would look like these lines, which have one width and a column of tags."""
    layout = layout_of(lines)
    words = [line for line in lines if line.strip() and not (line[0] == HASH and layout.is_comment(line))]
    widths = {len(split_cells(line)) for line in words if not line.startswith(NO_WORDS)}
    if len(words) < 2 or len(widths) != 1 or not layout.tags:
        return False
    return layout.separator == "\t" or layout.indexed or layout.tags[-1] == max(widths) - 1


def _are_tags(cells: Sequence[str]) -> bool:
    if all(_BIO.fullmatch(tag) for tag in cells) or all(cell in UPOS for cell in cells):
        return True
    counts = TagCounts()
    counts.add(cells)
    scheme = counts.decide()
    return scheme.marks_spans and scheme.has_types and find_misfit(cells, scheme) is None


def _are_numbered(lines: Sequence[str]) -> bool:
    """Return whether the lines of each sentence begin with 1, 2, 3, and some sentence has two words."""
    running = longest = 0
    for line in lines:
        if not line.strip():
            running = 0
        elif not line.startswith(NO_WORDS):
            running += 1
            longest = max(longest, running)
            if split_cells(line)[0] != str(running):
                return False
    return longest > 1


INSPECTED_LINES = 10_000
"""Number of lines that decide a file's layout. Later lines must have the same layout."""

SCORE_KEY = "Score"
"""Key of the probability of a word's label in the last column of CoNLL-U."""


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Predictions of a task for words: lists with one value per word."""

    names: tuple[str, ...]
    """Names of the lists in JSON."""

    lists: Callable[[Answer], tuple[Sequence[object], ...]]
    """From the answer for a sentence."""

    fill: Callable[[Sequence[str], Answer], Iterable[str]]
    """From the lines of a sentence in CoNLL-U and the answer to the lines with the answer in them."""

    answered: Callable[[Any, Answer], Example]
    """Returns a sentence with the answer as its labels."""


def _is_conllu(line: str) -> bool:
    return line.count("\t") == COLUMNS - 1


def _has_one_tab(line: str) -> bool:
    return line.count("\t") == 1


def words(task: Task) -> InputForm:
    """Return the form of a task that labels each word."""
    from isogloss.tasks.lemmas import Lemmatization

    probabilities = partial(_rule_probabilities, task) if isinstance(task, Lemmatization) else _probabilities
    marks_spans = isinstance(task, Tagging) and task.metric == "span_f1"
    return replace(
        form_of_words(_tags(task.name)),
        auto_class="AutoModelForTokenClassification",
        hub_tag="token-classification",
        pipeline="token-classification",
        probabilities=probabilities,
        holds=("words", "spans") if marks_spans else ("words",),
    )


def form_of_words(labels: Labels) -> InputForm:
    """Return the form of inputs whose words get these labels."""
    return InputForm(
        formats=(
            InputFormat(
                name="conllu",
                matches=_is_conllu,
                read=_read_conllu,
                write=partial(_write_conllu, labels),
            ),
            InputFormat(
                name="tsv",
                matches=_has_one_tab,
                read=partial(_read_columns, spaces=False),
                write=partial(_write_columns, labels),
                option="column",
            ),
            InputFormat(
                name="columns",
                matches=never,
                matches_lines=are_tagged,
                read=_read_columns,
                write=partial(_write_columns, labels),
                option="column",
            ),
            InputFormat(name="jsonl", matches=is_object, read=_read_objects),
            InputFormat(name="lines", matches=bool, read=_read_lines, write=partial(_write_lines, labels)),
        ),
        sample=["a"],
        example=sentence,
        from_json=_from_json,
        to_json=partial(_to_json, labels),
        answered=labels.answered,
        auto_class="",
        holds=("words",),
    )


def _list_tags(tags: Sequence[str]) -> tuple[Sequence[str]]:
    return (tags,)


def _add_tags(example: TaggedSentence, tags: Sequence[str]) -> TaggedSentence:
    return replace(example, tags=tuple(tags))


def _tags(task: str) -> Labels:
    """Return the labels of a tagging task: UPOS and lemmas have columns, others are named in the last."""
    column = {"upos": TAG, "lemmas": LEMMA}.get(task)

    def fill(lines: Sequence[str], tags: Sequence[str]) -> Iterable[str]:
        return with_misc(lines, task.upper(), tags) if column is None else with_columns(lines, {column: tags})

    return Labels(names=("labels",), lists=_list_tags, fill=fill, answered=_add_tags)


def sentence(value: object, name: str, language: str = "") -> TaggedSentence:  # noqa: ARG001
    """Return a sentence, given its words, a text that is split at white space, or a labelled sentence."""
    if isinstance(value, ParsedSentence):
        return TaggedSentence(id=value.id, words=value.words, tags=())
    if isinstance(value, TaggedSentence):
        return replace(value, tags=())
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list | tuple):
        raise DataError(f"expected words or a text, found {str(value)[:60]!r}.")
    for word in words:
        if not isinstance(word, str) or not word.strip():
            raise DataError(f"expected words, found {word!r} among {str(value)[:60]!r}.")
    return TaggedSentence(id=name, words=tuple(words), tags=())


def _to_json(labels: Labels, example: Example | None, prediction: Prediction | None) -> dict[str, object]:
    body: dict[str, object] = {"words": [], **{name: [] for name in labels.names}}
    if isinstance(example, TaggedSentence):
        body["words"] = list(example.words)
    if prediction is not None:
        body |= zip(labels.names, map(list, labels.lists(prediction.answer)), strict=True)
        if prediction.scores is not None:
            body["scores"] = [round(score, 6) for score in prediction.scores]
    return body


def _read_lines(file: File, _: str) -> Iterator[FileEntry]:
    for line_number, line in file.lines():
        words = tuple(line.split())
        example = TaggedSentence(id=str(line_number), words=words, tags=()) if words else None
        yield FileEntry(lines=(line,), example=example, body={"line": line_number})


def _write_lines(labels: Labels, entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        yield "\t".join([*entry.lines, *(" ".join(column) for column in _columns(labels, prediction))])


def _read_conllu(file: File, _: str) -> Iterator[FileEntry]:
    for block in read_blocks(file):
        if not block.words:
            yield FileEntry(lines=block.lines)
            continue
        name = block.sent_id or str(block.number)
        example = TaggedSentence(id=name, words=block.words, tags=())
        yield FileEntry(lines=block.lines, example=example, body={"line": block.number, "id": name})


def _write_conllu(labels: Labels, entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        if prediction is None:
            yield from entry.lines
            continue
        lines = labels.fill(entry.lines, prediction.answer)
        scores = prediction.scores
        yield from (
            lines if scores is None else with_misc(tuple(lines), SCORE_KEY, format_probabilities(scores))
        )


def _read_columns(
    file: File, _: str, column: int | None = None, *, spaces: bool = True
) -> Iterator[FileEntry]:
    """Read one word per line, from a column. Default: the first, or the one after a running number."""
    lines = iter(file.read())
    first_lines = list(islice(lines, INSPECTED_LINES))
    stripped_lines = [line.rstrip("\r\n") for line in first_lines]
    layout = layout_of(stripped_lines, spaces=spaces)
    if column is None and layout.numbers:
        raise file.broken(
            layout.numbers, "column 0 contains numbers", "words", "Give --column, as in --column 1"
        )
    if column is None:
        _check_words(file, stripped_lines, layout)
    file = replace(file, read=lambda: chain(first_lines, lines))
    return _sentences(file, layout._replace(chosen=column))


def _check_words(file: File, lines: Sequence[str], layout: WordFileLayout) -> None:
    """Raise DataError where the first of several columns contains no words."""
    rows = list[tuple[int, list[str]]]()
    sentences = [list[str]()]
    for line_number, line in enumerate(lines, start=1):
        cells = layout.cells(line)
        if not line.strip():
            sentences.append([])
        elif line_number != layout.plain.header and (sentences[-1] or not layout.is_comment(line)):
            rows.append((line_number, cells))
            sentences[-1].append(cells[min(int(layout.indexed), len(cells) - 1)])
    content = describe_other_column(sentence for sentence in sentences if sentence)
    if content and any(len(cells) > 1 for _, cells in rows):
        column = int(layout.indexed)
        advice = f"Give --column, as in --column {column + 1}"
        raise file.broken(rows[0][0], f"column {column} contains {content}", "words", advice)


def _sentences(file: File, layout: WordFileLayout) -> Iterator[FileEntry]:
    """Yield sentences, and the empty lines after and comments before them."""
    start, lines, words = 1, list[str](), list[str]()
    for line_number, line in file.lines():
        is_header = line_number == layout.plain.header
        if line.strip() and not is_header and (lines or not layout.is_comment(line)):
            lines.append(line)
            words.append(_word(file, layout, line_number, line, len(lines)))
            continue
        if lines:
            yield _word_lines(start, lines, words, layout)
        yield FileEntry(lines=(line,))
        start, lines, words = line_number + 1, [], []
    if lines:
        yield _word_lines(start, lines, words, layout)


def _word(file: File, layout: WordFileLayout, line_number: int, line: str, running: int) -> str:
    """Return the word of a line, given its number in the file and in its sentence."""
    cells = layout.cells(line)
    if layout.chosen is None and layout.indexed and cells[0] != str(running):
        raise file.broken(
            line_number,
            f"{line[:60]!r}, while column 0 of other lines numbers the words of a sentence",
            f"{running} there",
            "Correct the line, or say where the words are: --column 1",
        )
    if "\r" in line:
        raise file.broken(line_number, "a carriage return inside the line", "one at most, at its end")
    column = int(layout.indexed) if layout.chosen is None else layout.chosen
    if not -len(cells) <= column < len(cells) or not cells[column].strip():
        raise file.broken(line_number, f"{line[:60]!r}", f"a word in column {column}")
    return cells[column]


def _word_lines(start: int, lines: Sequence[str], words: Sequence[str], layout: WordFileLayout) -> FileEntry:
    example = TaggedSentence(id=str(start), words=tuple(words), tags=())
    separator = layout.separator if layout.spaces else "\t"
    return FileEntry(lines=tuple(lines), example=example, body={"line": start}, separator=separator)


def _write_columns(labels: Labels, entries: Iterable[Answered]) -> Iterator[str]:
    for entry, prediction in entries:
        columns = _columns(labels, prediction)
        for index, line in enumerate(entry.lines):
            yield entry.separator.join([line, *(column[index] for column in columns)])


def _columns(labels: Labels, prediction: Prediction | None) -> list[Sequence[str]]:
    """Return the columns of labels, and of their probabilities, if any."""
    if prediction is None:
        return []
    lists = [[str(value) for value in values] for values in labels.lists(prediction.answer)]
    return [*lists, *([] if prediction.scores is None else [format_probabilities(prediction.scores)])]


def _read_objects(file: File, language: str) -> Iterator[FileEntry]:
    for line_number, line, body in numbered_objects(file):
        with add_location(name := f"{file.name}:{line_number}"):
            example = _from_json(body, name, language)
        yield FileEntry(lines=(line,), example=example if example.words else None, body=body, original=body)


def _from_json(body: Mapping[str, object], name: str, language: str) -> TaggedSentence:
    if not {"words", "text"} & body.keys():
        raise keys_missing(body, "words (a list) or text")
    return sentence(body.get("words", body.get("text")), name, language)


def _probabilities(
    task: Task,
    examples: Sequence[Any],
    rows: Sequence[EncodedRow],
    scores: Sequence[Scores],
    answers: Sequence[Sequence[str]],
) -> list[list[float]]:
    """Return the probability of each word's label (of the repaired one if a tag was repaired)."""
    if not scores:
        return [[] for _ in answers]
    probabilities = softmax(join_scores(scores))
    indices = merge_windows([len(example.words) for example in examples], rows, range(len(probabilities)))
    classes = task.classes() if isinstance(task, Tagging) else _single_classes(task)
    return [
        [
            float(probabilities[index, classes[label]].sum())
            for index, label in zip(row_indices, labels, strict=True)
        ]
        for row_indices, labels in zip(indices, answers, strict=True)
    ]


def _single_classes(task: Task) -> dict[str, list[int]]:
    return {label: [index] for label, index in label_ids(task.labels).items()}


def _rule_probabilities(
    lemmas: Lemmatization,
    task: Task,
    examples: Sequence[Any],
    rows: Sequence[EncodedRow],
    scores: Sequence[Scores],
    _: Sequence[Sequence[str]],
) -> list[list[float]]:
    """Return the probability of the rule that made each lemma, or of unlisted rules if none fits."""
    rule_words = lemmas.apply_rules(examples, rows, scores)
    rules = [[task.labels[index] for index, _ in words] for words in rule_words]
    return _probabilities(task, examples, rows, scores, rules)
