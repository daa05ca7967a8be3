"""Read and write spans that are marked by character offsets in a text.

Annotation tools export them as JSON: doccano and spaCy as ``[[0, 6, "PER"]]``, Prodigy, the library datasets
and newer versions of doccano as objects, Label Studio as tasks. ``find_style`` recognises the structure.

Words are separated by white space, and punctuation at their edges is separate words. In scripts without
spaces every grapheme cluster is a word. Spans must begin and end at borders of words. The longest of
overlapping spans is read; the others are counted.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import regex

from isogloss.core.tag_schemes import OUTSIDE, find_spans
from isogloss.data.column_names import TEXT_KEYS
from isogloss.data.projection.words import UNSPACED

SPAN_KEYS = ("entities", "spans", "label", "labels", "annotations", "ner")
START_KEYS = ("start", "start_offset", "begin", "start_char")
STOP_KEYS = ("end", "end_offset", "stop", "end_char")
TYPE_KEYS = ("label", "labels", "type", "entity", "entity_group", "tag", "category")
OWN_TEXT_KEYS = ("text", "name", "word", "mention")
BOTH_KEYS = ("span", "offsets", "offset")
"""Usual keys of texts, spans, and the parts of a span."""

MARKING_KEYS = frozenset((*START_KEYS, *STOP_KEYS, "labels"))
"""Keys of a value of Label Studio that marks a span."""

TASK_KEYS = ("annotations", "completions", "predictions")
"""Keys of Label Studio's annotations, the preferred one first."""

REJECTED = frozenset({"reject", "ignore"})
"""Answers of Prodigy for texts that are skipped."""

_CHUNK = regex.compile(r"\S+")
_PART = regex.compile(rf"(?=[{UNSPACED}])\X|(?:(?![{UNSPACED}])\X)+")
_EDGE = regex.compile(r"[\p{P}\p{S}]")

MAX_SHOWN = 40

SPAN_PARTS = 3
"""Number of parts of a span: start, end and label."""

LAST_NARROW = 0xFFFF
"""Last character of one unit in UTF-16, in which JavaScript programs count."""

Form = Literal["triples", "objects", "columns", "tasks", "empty"]


class OffsetError(ValueError):
    """A span that does not fit its text, with the expected form."""

    def __init__(self, problem: str, expected: str) -> None:
        """Store both parts of the message."""
        super().__init__(problem)
        self.problem = problem
        self.expected = expected


class Place(NamedTuple):
    """Characters ``start`` to ``stop`` (exclusive) of a text."""

    start: int
    stop: int


class MarkedSpan(NamedTuple):
    """A type and its extent in a text."""

    type: str
    start: int
    stop: int
    text: str | None = None
    """Text of the span, if the file states it."""


class TaggedText(NamedTuple):
    """Words of a text, their BIO tags, and the number of spans that overlap with a longer one."""

    words: list[str]
    tags: list[str]
    overlapping: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """Structure in which an object marks spans."""

    name: str
    """Tools that write it."""
    key: str
    """Key of its spans."""
    form: Form
    start: str = "start"
    stop: str = "end"
    type: str = "label"
    has_list_of_types: bool = False
    """Whether the type of a span is a list of one."""


def locate_words(text: str) -> list[Place]:
    """Return the place of each word of a text."""
    places = list[Place]()
    for chunk in _CHUNK.finditer(text):
        for part in _PART.finditer(chunk[0]):
            start = chunk.start() + part.start()
            places += _separate_punctuation(part[0], start)
    return places


def split_into_words(text: str) -> list[str]:
    """Return the words of a text."""
    return [text[extent.start : extent.stop] for extent in locate_words(text)]


def _separate_punctuation(part: str, start: int) -> Iterator[Place]:
    """Yield the place of a word, and of each punctuation mark at its edges."""
    word_start = 0
    word_stop = len(part)
    while word_start < word_stop and _EDGE.match(part[word_start]):
        word_start += 1
    while word_stop > word_start and _EDGE.match(part[word_stop - 1]):
        word_stop -= 1
    yield from (Place(start + index, start + index + 1) for index in range(word_start))
    if word_start < word_stop:
        yield Place(start + word_start, start + word_stop)
    yield from (Place(start + index, start + index + 1) for index in range(word_stop, len(part)))


def tag_text(text: str, spans: Iterable[MarkedSpan], places: Sequence[Place] | None = None) -> TaggedText:
    """Return the words of a text and their BIO tags.

    ``places`` are the words' places, if the file states them. Raises OffsetError for a span that does not
    fit.
    """
    places = locate_words(text) if places is None else places
    tags = [OUTSIDE] * len(places)
    overlapping = 0
    for span in sorted(spans, key=lambda span: (span.start - span.stop, span.start)):
        word_index, stop = _find_words_of_span(text, span, places)
        if any(tag != OUTSIDE for tag in tags[word_index:stop]):
            overlapping += 1
            continue
        tags[word_index:stop] = [f"B-{span.type}"] + [f"I-{span.type}"] * (stop - word_index - 1)
    return TaggedText([text[extent.start : extent.stop] for extent in places], tags, overlapping)


def _find_words_of_span(text: str, span: MarkedSpan, places: Sequence[Place]) -> tuple[int, int]:
    """Return the index of a span's first word and the index after its last word."""
    description = f"{span.start}-{span.stop} ({span.type})"
    if not 0 <= span.start < span.stop <= len(text):
        raise OffsetError(
            f"span {description} of a text of {len(text)} characters", "offsets inside the text"
        )
    span_text = text[span.start : span.stop]
    if not _has_its_text(text, span):
        own_text = str(span.text)[:MAX_SHOWN]
        raise OffsetError(
            f"span {description} with {own_text!r}, where the text has {span_text[:MAX_SHOWN]!r}",
            "offsets in characters, counted from 0",
        )
    start = span.stop - len(span_text.lstrip())
    stop = span.start + len(span_text.rstrip())
    inside = [index for index, extent in enumerate(places) if extent.start < stop and extent.stop > start]
    if not inside:
        raise OffsetError(f"span {description} without a word", "offsets of words")
    for index, border in ((inside[0], start), (inside[-1], stop)):
        extent = places[index]
        if extent.start < border < extent.stop:
            word = text[extent.start : extent.stop]
            raise OffsetError(
                f"span {description} cuts the word {word[:MAX_SHOWN]!r} at {extent.start}-{extent.stop}",
                "spans of whole words",
            )
    return inside[0], inside[-1] + 1


def locate_spans(text: str, tags: Sequence[str], places: Sequence[Place]) -> list[MarkedSpan]:
    """Return the spans of BIO tags as offsets in a text."""
    return [
        MarkedSpan(
            span.type,
            places[span.start].start,
            places[span.stop - 1].stop,
            text[places[span.start].start : places[span.stop - 1].stop],
        )
        for span in find_spans(tags)
    ]


def find_style(body: Mapping[str, Any]) -> Style | None:
    """Return the structure in which an object marks spans, or None without a text or spans."""
    if isinstance(body.get("data"), Mapping):
        key = next((key for key in TASK_KEYS if body.get(key)), "")
        key = key or next((key for key in TASK_KEYS if isinstance(body.get(key), list)), "")
        return Style(name="Label Studio", key=key, form="tasks") if key else None
    if _find_text_key(body) is None:
        return None
    styles = [style for key in SPAN_KEYS if (style := _find_style_of_value(key, body.get(key)))]
    return next((style for style in styles if style.form != "empty"), next(iter(styles), None))


def _find_style_of_value(key: str, value: object) -> Style | None:
    if isinstance(value, Mapping):
        names = _find_span_keys(value)
        is_columns = names is not None and all(isinstance(value[name], list) for name in names[:2])
        return _make_style(key, "columns", value) if is_columns else None
    if not isinstance(value, list):
        return None
    if not value:
        return Style(name="doccano or spaCy", key=key, form="empty")
    item = value[0]
    if (
        isinstance(item, list | tuple)
        and len(item) >= 3
        and _are_offsets(item[:2])
        and isinstance(item[2], str)
    ):
        return Style(name="doccano or spaCy", key=key, form="triples")
    if isinstance(item, Mapping):
        is_span = _find_span_keys(item) is not None or any(_are_offsets(item.get(name)) for name in BOTH_KEYS)
        return _make_style(key, "objects", item) if is_span else None
    return None


def marks_spans(value: object) -> bool:
    """Return whether a value is a list of spans by offsets."""
    style = _find_style_of_value("label", value)
    return style is not None and style.form != "empty"


def _make_style(key: str, form: Form, item: Mapping[str, Any]) -> Style:
    names = {"spans": "Prodigy", "label": "Label Studio", "entities": "doccano or datasets"}
    start, stop = _find_span_keys(item) or ("start", "end")
    type_key = next((name for name in TYPE_KEYS if name in item), "label")
    is_list = form == "objects" and isinstance(item.get(type_key), list)
    name = names.get(key, "datasets")
    return Style(
        name=name, key=key, form=form, start=start, stop=stop, type=type_key, has_list_of_types=is_list
    )


def _find_span_keys(item: Mapping[str, Any]) -> tuple[str, str] | None:
    start = next((name for name in START_KEYS if name in item), None)
    stop = next((name for name in STOP_KEYS if name in item), None)
    return (start, stop) if start is not None and stop is not None else None


def _are_offsets(values: object) -> bool:
    return (
        isinstance(values, list | tuple)
        and len(values) == 2
        and all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    )


def _find_text_key(body: Mapping[str, Any]) -> str | None:
    return next((key for key in TEXT_KEYS if isinstance(body.get(key), str)), None)


def find_text(body: Mapping[str, Any]) -> str:
    """Return the text of an object.

    Raises OffsetError if it has none.
    """
    data = body.get("data")
    holder = data if isinstance(data, Mapping) else body
    key = _find_text_key(holder)
    if key is None and holder is data:
        texts = [value for value in data.values() if isinstance(value, str)]
        if len(texts) == 1:
            return str(texts[0])
    if key is None:
        raise OffsetError(
            f"the keys {', '.join(str(name) for name in holder) or 'none'}",
            f"a text in {' or '.join(TEXT_KEYS)}",
        )
    return str(holder[key])


def has_wide_characters(body: Mapping[str, Any]) -> bool:
    """Return whether the text of an object has characters, such as emoji, that JavaScript counts as two."""
    with suppress(OffsetError):
        return any(_is_wide(character) for character in find_text(body))
    return False


def counts_utf16(body: Mapping[str, Any], style: Style) -> bool:
    """Return whether the offsets of an object count units of UTF-16, judged by the texts of its spans."""
    with suppress(OffsetError):
        text = find_text(body)
        spans = read_spans(body, style)
        return count_in_characters(text, spans) != spans
    return False


def count_in_characters(text: str, spans: Sequence[MarkedSpan]) -> Sequence[MarkedSpan]:
    """Return spans with offsets in characters.

    Early versions of Label Studio counted units of UTF-16. Offsets are read as such units if the file states
    the text of each span and these texts match at units of UTF-16, but not all of them at characters.
    """
    if not any(_is_wide(character) for character in text) or all(_has_its_text(text, span) for span in spans):
        return spans
    characters = dict[int, int]()
    unit = 0
    for index, character in enumerate(text):
        characters[unit] = index
        unit += 1 + _is_wide(character)
    characters[unit] = len(text)
    if not all(span.start in characters and span.stop in characters for span in spans):
        return spans
    character_spans = [
        span._replace(start=characters[span.start], stop=characters[span.stop]) for span in spans
    ]
    return (
        character_spans
        if all(span.text is not None and _has_its_text(text, span) for span in character_spans)
        else spans
    )


def _is_wide(character: str) -> bool:
    return ord(character) > LAST_NARROW


def _has_its_text(text: str, span: MarkedSpan) -> bool:
    return span.text is None or span.text.split() == text[span.start : span.stop].split()


def is_rejected(body: Mapping[str, Any]) -> bool:
    """Return whether an annotator rejected a text."""
    answer = body.get("answer")
    return isinstance(answer, str) and answer in REJECTED


def count_annotators(body: Mapping[str, Any]) -> int:
    """Return the number of annotators of a text in Label Studio, or 1 for other tools."""
    key = next((key for key in TASK_KEYS if body.get(key)), "")
    if key and isinstance(body.get("data"), Mapping):
        with suppress(OffsetError):  # Reading its spans says what is wrong.
            return len(_list_finished_annotations(body[key], key))
    return 1


def _list_finished_annotations(annotations: object, key: str) -> list[Mapping[str, Any]]:
    return [item for item in _list_objects(annotations, key) if not item.get("was_cancelled")]


def _list_objects(items: object, key: str) -> list[Mapping[str, Any]]:
    if not isinstance(items, list):
        raise OffsetError(f"{key} is {str(items)[:MAX_SHOWN]!r}", "a list of objects")
    for item in items:
        if not isinstance(item, Mapping):
            raise OffsetError(f"{str(item)[:MAX_SHOWN]!r} in {key}", "a list of objects")
    return items


def read_spans(body: Mapping[str, Any], style: Style) -> list[MarkedSpan]:
    """Return the spans of an object.

    Raises OffsetError for a span without offsets or type.
    """
    value: Any = body.get(style.key) or []
    if style.form == "tasks":
        annotations = _list_finished_annotations(value, style.key)[:1]
        results = [item for part in annotations for item in _list_objects(part.get("result"), "result")]
        return [_read_span(item) for item in _list_span_values(results)]
    if style.form == "columns":
        return [_check_span(*parts) for parts in _list_spans_of_columns(value, style)]
    if not isinstance(value, list):
        raise OffsetError(f"{style.key} is {str(value)[:MAX_SHOWN]!r}", "a list, as in other texts")
    return [_read_span(item) if isinstance(item, Mapping) else _read_triple(item) for item in value]


def _list_span_values(results: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the values of Label Studio that mark spans. Relations, choices and comments are left out."""
    values = _list_objects([result["value"] for result in results if "value" in result], "value")
    if missing := [item for item in results if item.get("type") == "labels" and "value" not in item]:
        raise OffsetError(f"{str(missing[0])[:MAX_SHOWN]!r}", "its value")
    return [value for value in values if value.keys() & MARKING_KEYS]


def _list_spans_of_columns(columns: object, style: Style) -> list[tuple[object, object, object]]:
    """Return start, stop and type of each span, from an object that has a list of each."""
    if not columns:
        return []
    names = (style.start, style.stop, style.type)
    lists = [columns.get(name) for name in names] if isinstance(columns, Mapping) else []
    lengths = {len(values) if isinstance(values, list) else None for values in lists}
    if len(lengths) != 1 or None in lengths:
        raise OffsetError(
            f"{style.key} is {str(columns)[:MAX_SHOWN]!r}",
            f"lists of equal length for {', '.join(names)}",
        )
    return list(zip(*lists, strict=True))


def _read_triple(item: object) -> MarkedSpan:
    if not isinstance(item, list | tuple) or len(item) < SPAN_PARTS:
        raise OffsetError(f"span {str(item)[:MAX_SHOWN]!r}", "its start, end and label")
    return _check_span(*item[:SPAN_PARTS])


def _read_span(item: Mapping[str, Any]) -> MarkedSpan:
    offsets = next((item[name] for name in BOTH_KEYS if _are_offsets(item.get(name))), None)
    names = _find_span_keys(item)
    if offsets is None and names is None:
        raise OffsetError(f"span {str(item)[:MAX_SHOWN]!r}", "its start and end")
    start, stop = offsets if offsets is not None else (item[names[0]], item[names[1]])  # type: ignore[index]
    type_name = next((item[name] for name in TYPE_KEYS if name in item), None)
    own_text = next((item[name] for name in OWN_TEXT_KEYS if isinstance(item.get(name), str)), None)
    return _check_span(start, stop, type_name, own_text)


def _check_span(start: object, stop: object, type_name: object, text: str | None = None) -> MarkedSpan:
    if isinstance(type_name, list) and len(type_name) == 1:
        type_name = type_name[0]
    if not _are_offsets([start, stop]) or not isinstance(type_name, str) or not type_name.strip():
        description = f"span {[start, stop, type_name]!s:.{MAX_SHOWN}}"
        raise OffsetError(description, "two whole numbers and one label")
    return MarkedSpan(type_name.strip(), start, stop, text)  # type: ignore[arg-type]


def locate_tokens(body: Mapping[str, Any]) -> list[Place] | None:
    """Return the places of the words that Prodigy writes with a text, or None without them."""
    tokens = body.get("tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, Mapping) for token in tokens):
        return None
    places = [Place(token.get("start"), token.get("end")) for token in tokens]
    return places if places and all(_are_offsets(item) for item in places) else None


def tag_object(body: Mapping[str, Any], style: Style) -> TaggedText:
    """Return the words and tags of an object.

    Raises OffsetError if its spans do not fit its text.
    """
    text = find_text(body)
    places = locate_tokens(body)
    if places is not None:
        places = [extent for extent in places if text[extent.start : extent.stop].strip()]
    return tag_text(text, count_in_characters(text, read_spans(body, style)), places)


def replace_spans(body: Mapping[str, Any], spans: Sequence[MarkedSpan], style: Style) -> dict[str, Any]:
    """Return an object with different spans in the same structure."""
    if style.form == "tasks":
        return {**body, **_write_task(body, spans)}
    if style.form in ("triples", "empty"):
        return {**body, style.key: [[span.start, span.stop, span.type] for span in spans]}
    if style.form == "columns":
        columns = {style.start: "start", style.stop: "stop", style.type: "type"}
        return {
            **body,
            style.key: {key: [getattr(span, name) for span in spans] for key, name in columns.items()},
        }
    items = [
        {
            style.start: span.start,
            style.stop: span.stop,
            style.type: [span.type] if style.has_list_of_types else span.type,
        }
        for span in spans
    ]
    return {**body, style.key: items}


def _write_task(body: Mapping[str, Any], spans: Sequence[MarkedSpan]) -> dict[str, Any]:
    """Return the annotations of a task of Label Studio, with the label names of its existing results."""
    results = [
        item
        for key in TASK_KEYS
        for annotation in body.get(key) or []
        for item in annotation.get("result", [])
    ]
    names = {key: results[0][key] for key in ("from_name", "to_name") if results and key in results[0]}
    names = {"from_name": "label", "to_name": "text", **names}
    items = [
        {
            **names,
            "type": "labels",
            "value": {"start": span.start, "end": span.stop, "text": span.text, "labels": [span.type]},
        }
        for span in spans
    ]
    return {**{key: [] for key in TASK_KEYS[:2] if key in body}, "predictions": [{"result": items}]}
