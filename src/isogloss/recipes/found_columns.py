"""Which columns of a file contain texts and labels: those asked for, or else those its header shows."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from isogloss.core.errors import ConfigError
from isogloss.data.files import disk_file, some
from isogloss.data.formats.kinds import KINDS
from isogloss.data.formats.reading import KindName
from isogloss.data.formats.tables import BY_WORD, SUFFIXES, Column, Columns, FileFormat, header_of

TEXT_NAMES = ("text", "sentence", "review", "comment", "tweet", "headline", "document", "content")
LABEL_NAMES = ("label", "class", "category", "sentiment", "topic", "intent")
"""What headers call texts and labels, in any case."""


class FoundColumns(NamedTuple):
    """How a file is read."""

    kind: KindName
    format: FileFormat
    columns: Columns


def columns_found(path: Path, text: str, label: str, *, labelled: bool) -> FoundColumns:
    """Return how a file is read; ConfigError where its columns are in doubt.

    ``text`` and ``label`` are columns asked for, by name or number; of a pair's two texts with a comma
    between. A file that is not ``labelled`` may have lines of text alone.
    """
    suffix = Path(path.stem).suffix if path.suffix in (".gz", ".xz") else path.suffix
    if not labelled and suffix in (".txt", ""):
        return FoundColumns("raw", "lines", {"text": 0})
    if suffix not in SUFFIXES:
        raise ConfigError(f"{path}: expected a name with one of {', '.join(SUFFIXES)}. Rename the file.")
    form: FileFormat = "json" if suffix == ".json" else SUFFIXES[suffix]
    if form in BY_WORD:
        return FoundColumns("tagging", form, KINDS["tagging"].columns[form])
    names = header_of(disk_file(path), form)
    if not labelled and not _asked(text, names):
        text = ""
    texts = _asked(text, names) if text else [name for name in names if name.casefold() in TEXT_NAMES]
    labels = _asked(label, names) or [name for name in names if not label and name.casefold() in LABEL_NAMES]
    if len(texts) != 1 + text.count(",") or len(texts) > 2 or len(labels) > 1 or (labelled and not labels):
        raise ConfigError(
            f"{path}: it is not clear which columns are the text and the label. Found: {some(names)}. Name "
            f"them by --text and --label (numbers from 0 where there is no header), or describe the file "
            f"(--from FILE.toml)."
        )
    parts = ("text",) if len(texts) == 1 else ("first", "second")
    columns = dict(zip((*parts, "label"), (*texts, *(labels or ["label"])), strict=True))
    columns |= {"id": "id"} if "id" in names else {}
    return FoundColumns("text" if len(texts) == 1 else "pair", form, columns)


def _asked(asked: str, names: Sequence[str]) -> list[Column]:
    """Return the columns asked for that a file has."""
    columns = [name.strip() for name in asked.split(",") if name.strip()]
    return [name if name in names else int(name) for name in columns if name in names or name.isdecimal()]
