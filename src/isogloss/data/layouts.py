"""Where corpora keep their files below one data folder, and what to say when nothing is there.

A layout is a path with ``{language}`` in it, one tuple of them for each split: the official folder names
first, then other names in common use. The first layout that is there counts.
"""

import re
from collections.abc import Iterable, Mapping

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.files import File, Folder, short

Layouts = Mapping[Split, tuple[str, ...]]

MANY = 12
"""More names than this are not all shown in a message."""


def every_split(*layouts: str) -> Layouts:
    """Give each split the layouts with its name in the place of ``{split}``."""
    return {split: tuple(layout.replace("{split}", split) for layout in layouts) for split in SPLITS}


def paths(layouts: Layouts, language: str, split: Split) -> list[str]:
    """Give the paths to look for."""
    return [layout.replace("{language}", language) for layout in layouts.get(split, ())]


def locate(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> list[File]:
    """Find the files of one split, or raise the error that says what is there instead."""
    return folder.find(paths(layouts, language, split)) or _raise(
        missing(folder, corpus, layouts, language, split)
    )


def languages_there(folder: Folder, layouts: Layouts, split: Split) -> list[str]:
    """Give the languages whose files are there, sorted."""
    found: set[str] = set()
    for layout in layouts.get(split, ()):
        if "{language}" not in layout:
            continue
        code = re.escape(layout).replace(re.escape("{language}"), "(?P<language>[a-z-]+)", 1)
        code = code.replace(re.escape("{language}"), "(?P=language)").replace(re.escape("*"), "[^/]*")
        for file in folder.find([layout.replace("{language}", "*")]):
            match = re.search(code + "$", file.plain_name.replace("\\", "/"))
            if match:
                found.add(match["language"])
    return sorted(found)


def missing(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for a split that is not there: what was looked for, what there is, what to do."""
    there = languages_there(folder, layouts, split)
    splits = [other for other in SPLITS if language in languages_there(folder, layouts, other)]
    looked = paths(layouts, language, split)
    facts = [
        f"{folder.name}: no {split} split of corpus {corpus!r} for language {language!r}.",
        f"{corpus} has {split} for: {some(there)}.{did_you_mean(language, there)}" if there else "",
        f"For {language!r} it has: {', '.join(splits)}." if splits else "",
        f"Looked for {some(looked)} (also .gz, .xz)." if looked else f"{corpus} has no {split} split.",
        "" if there or splits else f"The folder holds: {some(folder.inside())}.",
        "Put the file there, or choose a language and split that are.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))


def some(names: Iterable[str]) -> str:
    """Join names for a message; where there are many, say how many more."""
    names = list(names)
    rest = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return (short(", ".join(names[:MANY])) or "nothing") + rest


def _raise(error: DataError) -> list[File]:
    raise error
