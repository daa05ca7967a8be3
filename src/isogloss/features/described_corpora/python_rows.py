"""Rows of Python as a described corpus: written into the user's cache, once for equal ones."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from isogloss.core.atomic_files import write_text
from isogloss.core.cache_folders import write_to_cache
from isogloss.core.errors import ConfigError, DataError, add_location, check_named
from isogloss.core.languages import canonical_language
from isogloss.core.shared_files import is_file
from isogloss.data.corpus import SPLITS
from isogloss.data.hub_splits import HUB_SPLITS
from isogloss.data.json_rows import Rows, json_lines
from isogloss.recipes.recipe_text import to_toml


@contextmanager
def name_rows(path: Path) -> Iterator[None]:
    """Let errors name rows of Python in place of the lines of their files, which ``write_rows`` wrote."""
    try:
        yield
    except DataError as error:
        line = rf"(?:{re.escape(str(path))}: )?{re.escape(str(path.parent))}/([^/]+)\.(\w+)\.jsonl:(\d+)"
        row = re.sub(line, lambda match: f"rows[{match[1]!r}][{match[2]!r}][{int(match[3]) - 1}]", str(error))
        raise DataError(row) from error


def write_rows(description: Mapping[str, object], rows: Mapping[str, Mapping[str, Rows]]) -> Path:
    """Write rows by language and split, and their description, into the user's cache, and return that file.

    Equal contents are written once. Raises DataError with the location of a row that is not a mapping or has
    values that JSON lacks.
    """
    if superfluous := description.keys() & {"files", "format"}:
        raise ConfigError(f"corpus: {', '.join(sorted(superfluous))}: this follows from the rows. Remove it.")
    _check_languages(description.get("languages"), rows)
    files: dict[str, str] = {}
    for language, rows_of_splits in rows.items():
        for split, rows_of_split in rows_of_splits.items():
            name = HUB_SPLITS.get(split, split)
            check_named(f"rows[{language!r}]", "split", (*SPLITS, *HUB_SPLITS), name)
            with add_location(f"rows[{language!r}][{split!r}]"):
                if (file := f"{language}.{name}.jsonl") in files:
                    raise ConfigError(f"found {split!r} and {name!r}, which are one split. Join them.")
                files[file] = "".join(json_lines(rows_of_split))
    paths = {"files": "{language}.{split}.jsonl", "format": "jsonl", "languages": list(rows)}
    name = str(description.get("name", "corpus"))
    text = to_toml({"name": "corpus", **description, **paths})
    digest = sha256(json.dumps([text, sorted(files.items())]).encode()).hexdigest()[:12]

    def write(cache: Path) -> Path:
        folder = cache / "corpora" / f"{name}-{digest}"
        for file, content in {**files, f"{name}.toml": text}.items():
            if not is_file(folder, file):
                write_text(folder, file, content)
        return folder / f"{name}.toml"

    return write_to_cache(write)


def _check_languages(described_languages: object, rows: Iterable[str]) -> None:
    """Raise ConfigError if the languages of a description differ from the languages of the rows."""
    if described_languages is None:
        return
    texts = [described_languages] if isinstance(described_languages, str) else described_languages
    languages = list(texts) if isinstance(texts, Iterable) else []
    are_texts = all(isinstance(text, str) for text in languages)
    if not are_texts or {canonical_language(language) for language in languages} != {
        canonical_language(language_of_row) for language_of_row in rows
    }:
        raise ConfigError(
            f"corpus: languages: found {described_languages!r:.60}; expected those of the rows, "
            f"{', '.join(rows)}. Remove it."
        )
