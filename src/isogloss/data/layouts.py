"""Where corpora keep their files below one data folder, and what to say when nothing is there.

A layout is a path with ``{language}`` in it, one tuple of them for each split: the official folder names
first, then other names in common use. The first layout that is there counts.

Corpora with labels may be there in translation too. Their language is then a pair: ``en-sw`` was written in
English and translated into Swahili (a training split: translate-train), ``sw-en`` the other way round (a test
split: translate-test), ``en-sw-en`` is back in English. Layouts of translations name the whole pair,
``{language}``, or the one language that is not English: the one translated ``{into}``, ``{from}``, or there
and ``{back}``. A layout of English alone says so by ``{en}``, for which nothing is put in; ``{name}`` is the
English name of the language, in small letters.
"""

import re
from collections.abc import Iterable, Mapping

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import canonical_language, language_name
from isogloss.data.corpora import SPLITS, Split
from isogloss.data.files import File, FilePlace, Folder, short

Layouts = Mapping[Split, tuple[str, ...]]

ENGLISH = "{en}"
"""Ends a layout that has no language in it and is of English."""

TREEBANKS = ("ud/", "ud-extra/", "ud-pud/", "ud-treebanks-*/", "")
"""Where treebank folders such as UD_English-EWT lie; the official release is ud-treebanks-vN.N."""

MANY = 12
"""More names than this are not all shown in a message."""


def every_split(*layouts: str) -> Layouts:
    """Give each split the layouts with its name in the place of ``{split}``."""
    return {split: tuple(layout.replace("{split}", split) for layout in layouts) for split in SPLITS}


def paths(layouts: Layouts, language: str, split: Split) -> list[str]:
    """Return the paths to look for, without those that name a language which a pair has not.

    A script or region is looked for in both spellings: ``zh_Hant``, then ``zh-Hant``.
    """
    spellings = dict.fromkeys((language, language.replace("_", "-")))
    filled = (
        _filled(layout, language, spelled) for layout in layouts.get(split, ()) for spelled in spellings
    )
    return [path for path in filled if "{" not in path]


def is_translation(language: str) -> bool:
    """Tell whether a language is a pair such as en-sw: text of one in translation."""
    return "-" in language


def _filled(layout: str, language: str, spelled: str) -> str:
    match language.split("-"):
        case ["en"]:
            layout = layout.replace(ENGLISH, "")
        case ["en", other]:
            layout = layout.replace("{into}", other)
        case [other, "en"]:
            layout = layout.replace("{from}", other)
        case ["en", other, "en"]:
            layout = layout.replace("{back}", other)
    return layout.replace("{language}", spelled).replace("{name}", language_name(language).lower())


def locate(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> list[File]:
    """Find the files of one split, or raise the error that says what is there instead."""
    found = folder.find(paths(layouts, language, split))
    if not found:
        raise missing(folder, corpus, layouts, language, split)
    return found


def not_english(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for a corpus of English: files of other languages, and translations, are one's own."""
    official = {name: paths(_of_english(layouts), "en", name) for name in SPLITS}
    there = [other for other in SPLITS if folder.find(official[other])]
    if there and language != "en":
        return DataError(
            f"{folder.name}: corpus {corpus!r} is English; found language {language!r}. "
            f"Choose en, or add a file {paths(layouts, language, split)[0]}."
        )
    if there:
        return DataError(
            f"{folder.name}: no {split} split of corpus {corpus!r}; it has {', '.join(there)}. "
            f"Looked for {some(official[split])} (also .gz, .xz). "
            f"Put the file there, or train on what there is: {corpus}[{','.join(there)}]."
        )
    return missing(folder, corpus, layouts, language, split)


def _of_english(layouts: Layouts) -> Layouts:
    return {split: tuple(one for one in named if one.endswith(ENGLISH)) for split, named in layouts.items()}


def languages_there(folder: Folder, layouts: Layouts, split: Split) -> list[str]:
    """Give the languages whose files are there, sorted."""
    found: set[str] = set()
    for layout in layouts.get(split, ()):
        if "{language}" not in layout:
            continue
        code = re.escape(layout).replace(re.escape("{language}"), "(?P<language>[A-Za-z_-]+)", 1)
        code = code.replace(re.escape("{language}"), "(?P=language)").replace(re.escape("*"), "[^/]*")
        for file in folder.find([layout.replace("{language}", "*")]):
            match = re.search(code + "$", file.plain_name.replace("\\", "/"))
            if match:
                found.add(canonical_language(match["language"]))
    return sorted(found)


def missing(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for a split that is not on disk: what was looked for, what there is, what to do."""
    looked = paths(layouts, language, split)
    return not_there(
        folder,
        corpus,
        language,
        split,
        there={one: languages_there(folder, layouts, one) for one in SPLITS},
        looked=f"Looked for {some(looked)} (also .gz, .xz)." if looked else f"{corpus} has no {split} split.",
    )


def not_there(
    source: FilePlace,
    corpus: str,
    language: str,
    split: Split,
    *,
    there: Mapping[Split, list[str]],
    looked: str = "",
) -> DataError:
    """Build the error for a split that a source has not, from the languages that it has of each split."""
    codes = _like(language, there[split])
    splits = [other for other in SPLITS if language in there[other]]
    facts = [
        f"{source.name}: no {split} split of corpus {corpus!r} for language {language!r}.",
        f"{corpus} has {split} for: {some(codes)}.{did_you_mean(language, codes)}" if codes else "",
        f"For {language!r} it has: {', '.join(splits)}." if splits else "",
        looked,
        "" if codes or splits else f"{'The folder' if looked else 'It'} holds: {some(source.inside())}.",
        "Put the file there, or choose a language and split that are."
        if looked
        else "Choose a language and split that are there.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))


def _like(language: str, there: list[str]) -> list[str]:
    """Leave pairs such as en-sw out where a language was asked for, and languages where a pair was."""
    return [code for code in there if ("-" in code) == ("-" in language)] or there


def some(names: Iterable[str]) -> str:
    """Join names for a message; where there are many, say how many more."""
    names = list(names)
    rest = f" and {len(names) - MANY} more" if len(names) > MANY else ""
    return (short(", ".join(names[:MANY])) or "nothing") + rest
