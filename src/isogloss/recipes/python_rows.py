"""Corpora of rows that Python has: JSON lines beside a description, and from then on as any other."""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

from isogloss.core.caches import user_cache
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.records import write_text
from isogloss.data.corpus import SPLITS
from isogloss.data.hub_rows import json_lines
from isogloss.recipes.recipe_text import to_toml

Rows = Iterable[Mapping[str, object]]
"""Rows of a split, by column: mappings, a ``datasets.Dataset`` or a pandas DataFrame."""


def written(told: Mapping[str, object], rows: Mapping[str, Mapping[str, Rows]]) -> Path:
    """Write rows, by language and split, with their description into the user's cache; return that file.

    What is equal is written once. DataError, with its place, for a row that is no mapping or that JSON cannot
    say.
    """
    files: dict[str, str] = {}
    for language, by_split in rows.items():
        for split, own in by_split.items():
            check_named(f"rows[{language!r}]", "split", SPLITS, split)
            files[f"{language}.{split}.jsonl"] = "".join(json_lines(own, f"rows[{language!r}][{split!r}]"))
    taken = told.keys() & {"files", "format", "languages"}
    if taken:
        raise ConfigError(f"corpus: {', '.join(sorted(taken))}: that of rows is known. Leave it out.")
    about = {"files": "{language}.{split}.jsonl", "format": "jsonl", "languages": [*rows]}
    name, text = str(told.get("name", "corpus")), to_toml({"name": "corpus", **told, **about})
    digest = sha256(json.dumps([text, sorted(files.items())]).encode()).hexdigest()[:12]
    folder = user_cache() / "corpora" / f"{name}-{digest}"
    for place, lines in {**files, f"{name}.toml": text}.items():
        if not (folder / place).is_file():
            folder.mkdir(parents=True, exist_ok=True)
            write_text(folder / place, lines)
    return folder / f"{name}.toml"
