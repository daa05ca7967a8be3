"""The layout of a labelled file by its header: which columns have texts, labels and languages."""

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from isogloss.core.errors import ConfigError, check_named, unknown_name
from isogloss.core.languages import canonical_language, check_language
from isogloss.data.column_names import TEXT_NAMES
from isogloss.data.files import disk_file, some
from isogloss.data.formats.conllu import NAMES, is_column
from isogloss.data.formats.formats import (
    FORMATS,
    MARKS,
    OF_SPANS,
    OFFSETS,
    Column,
    Columns,
    ExampleColumns,
    find_by_header,
    find_marks,
    list_suffixes,
)
from isogloss.data.formats.kinds import predicts_of
from isogloss.data.formats.reading import Predicts
from isogloss.data.formats.tables import BY_WORD, FileRow, header_of, read_bodies, rows

MAX_INSPECTED = 100
"""Rows that show whether spans are marked by offsets."""

OFFSET_FORMATS = ("jsonl", "json", "parquet")
"""Formats whose rows may have spans that are marked by offsets."""

LABEL_NAMES = ("label", "class", "category", "sentiment", "topic", "intent")
LANGUAGE_NAMES = ("language", "lang", "locale")
"""Usual names of columns of texts, labels and languages, in any case."""


class FileLayout(NamedTuple):
    """The kind of a file's examples, its format, and the column of each part."""

    kind: str
    format: str
    columns: Columns
    predicts: Predicts = "label"
    has_offsets: bool = False
    """Whether spans are marked by offsets."""


def layout_of(path: Path, text: str, label: str, *, is_labelled: bool) -> FileLayout:
    """Return the layout of a file, found by its header. Raises ConfigError if its columns are in doubt.

    ``text`` and ``label`` are requested columns, by name or number. The columns of two texts are joined by a
    comma. A file that is not ``is_labelled`` may have lines with only text.
    """
    suffix = Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix
    if not is_labelled and suffix in (".txt", ""):
        return FileLayout("raw", "lines", {"text": 0})
    suffixes = list_suffixes()
    if suffix not in suffixes:
        raise ConfigError(f"{path}: expected a name with one of {', '.join(suffixes)}. Rename the file.")
    form: str = "json" if suffix == ".json" else suffixes[suffix]
    if layout := _find_annotation_layout(path, form):
        return layout
    if form in BY_WORD:
        columns = dict(FORMATS[form].columns["tagging"])
        if form == "conllu" and label:
            columns["label"] = _check_column(label)
        return FileLayout("tagging", form, columns, predicts_of(form, columns, "label"))
    names = header_of(disk_file(path), form)
    if not is_labelled and not _find_columns(text, names):
        text = ""
    texts = _find_columns(text, names) if text else [name for name in names if name.casefold() in TEXT_NAMES]
    labels = _find_columns(label, names) or [
        name for name in names if not label and name.casefold() in LABEL_NAMES
    ]
    if len(texts) != 1 + text.count(",") or len(texts) > 2 or len(labels) > 1 or (is_labelled and not labels):
        raise ConfigError(
            f"{path}: it is not clear which columns are the text and the label. Found: {some(names)}. Name "
            f"them by --text and --label (numbers from 0 without a header), or describe the file "
            f"(--from FILE.toml)."
        )
    parts = ("text",) if len(texts) == 1 else ("first", "second")
    columns = dict(zip((*parts, "label"), (*texts, *(labels or ["label"])), strict=True))
    columns.update({name: name for name in names if name == "id"})
    return FileLayout("text" if len(texts) == 1 else "pair", form, columns)


def _check_column(label: str) -> str:
    if not is_column(label):
        check_named("--label", "column of CoNLL-U", NAMES, label)
    return label


def _find_annotation_layout(path: Path, form: str) -> FileLayout | None:
    """Return the layout of a file of an annotation tool. None for other files."""
    file = disk_file(path)
    form = find_by_header(file) or form
    columns = FORMATS[form].columns.get("tagging")
    if columns is not None and form not in BY_WORD:
        return FileLayout("tagging", form, columns)
    if form not in OFFSET_FORMATS or OFFSETS not in MARKS:
        return None
    if not find_marks().are_in(islice(read_bodies(file, form), MAX_INSPECTED)):
        return None
    return FileLayout("tagging", form, OF_SPANS, has_offsets=True)


def languages_of(path: Path, column: str) -> tuple[str, dict[str, str]]:
    """Return the column of languages of a table, and each language as spelled there, the most frequent first.

    An empty ``column`` is found by its name in the header, if possible. Raises ConfigError for texts in it
    that are not language codes.
    """
    form = list_suffixes().get(path.suffix)
    if form is None or form in BY_WORD or not path.is_file():
        return column, {}
    names = header_of(disk_file(path), form)
    language_columns = [name for name in names if name.casefold() in LANGUAGE_NAMES]
    column = column or next(iter(language_columns), "")
    if not column:
        return "", {}
    if column not in names:
        raise unknown_name("--language-column", "column", column, names)
    read = rows(disk_file(path), ExampleColumns(format=form, columns={"language": column}))
    counts = Counter(str(row.parts["language"]).strip() for row in read if isinstance(row, FileRow))
    spellings = {
        check_language(canonical_language(text), f"{path}: column {column!r}"): text
        for text, _ in counts.most_common()
    }
    if len(spellings) < len(counts):
        raise ConfigError(
            f"{path}: column {column!r}: several spellings of a language among {some(counts)}; expected one "
            f"for each. Correct them."
        )
    return column, spellings


def _find_columns(columns: str, names: Sequence[str]) -> list[Column]:
    requested_names = [name.strip() for name in columns.split(",") if name.strip()]
    return [
        name if name in names else int(name) for name in requested_names if name in names or name.isdecimal()
    ]
