"""Interfaces of corpora and sources, layouts of their files in a data folder, and errors for missing files.

A layout is a path with ``{language}`` in it. Each split has a tuple of layouts, official folder names first.
The first layout that exists is read.

The language of a translated labelled corpus is a pair. ``en-sw`` was written in English and translated into
Swahili (a training split: translate-train), ``sw-en`` the reverse (a test split: translate-test), and
``en-sw-en`` was translated back into English. Layouts of translations name the whole pair, ``{language}``, or
the language that is not English: ``{into}``, ``{from}``, or ``{back}`` for back-translations. A layout of
English files ends in ``{en}``; ``{name}`` is the English name of the language in lower case.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar, runtime_checkable

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import canonical_language, language_name, spellings
from isogloss.data.examples import Example
from isogloss.data.files import DiskFolder, File, FilePlace, Folder, is_unicode, some

Split = Literal["train", "dev", "test"]
SPLITS: tuple[Split, ...] = ("train", "dev", "test")

MARK = "\ufeff"

Kind = TypeVar("Kind", bound=Example)


@dataclass(frozen=True)
class About:
    """Documentation of a corpus."""

    text: str = ""
    """Contents, authors, and the layouts that are read."""
    url: str = ""
    """Home page."""
    licence: str = ""
    """Licence of the files."""


class Corpus(Protocol):
    """A corpus: one of the catalogue's, or several read as one."""

    @property
    def name(self) -> str:
        """Name in recipes and in the table of corpora."""
        ...

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks it has labels for (upos, nli …), or "text", "bitext" or "comparable"."""
        ...

    @property
    def about(self) -> About:
        """Contents, home page and licence."""
        ...

    def choose(self, collection: str) -> "Corpus":
        """Return the part that a recipe names after a colon ("bitext:bible").

        Raises ConfigError if the corpus has no such part.
        """
        ...

    def path(self, language: str, split: Split) -> str:
        """Return the path below a data folder at which ``read`` finds a file with the lines of ``write``."""
        ...

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split on disk.

        Raises DataError, naming the existing files, if the split has none.
        """
        ...

    def files(self, source: "Source", language: str, split: Split) -> list[File]:
        """Return the files of one split from any source.

        Raises DataError if the split has none.
        """
        ...

    def read(self, source: "Source", language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of one split in file order.

        Raises DataError, with file and line, at the first broken line.
        """
        ...

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines (without line ends) of a file in the corpus's native format."""
        ...


class Source(FilePlace, Protocol):
    """A provider of corpora: a folder on disk, the built-in languages, or Hugging Face datasets."""

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the files of one split in the corpus's format.

        Raises DataError, naming the existing files, if the split has none.
        """
        ...

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> DiskFolder | None:
        """Return the folder of a described corpus in some languages, or None without one."""
        ...


def two_languages(pair: str, corpus: str = "bitext") -> tuple[str, str]:
    """Split a pair such as ``en-fr`` into its languages.

    Raises ConfigError for anything else.
    """
    source, separator, target = pair.partition("-")
    if not (source and separator and target) or "-" in target or source == target:
        raise ConfigError(
            f"corpus {corpus}: {pair!r} is not a pair of languages. Give two with a hyphen, as in en-fr."
        )
    return source, target


@runtime_checkable
class SkipsRows(Protocol):
    """A corpus of which some rows are not examples."""

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count the skipped rows of a split."""
        ...


class CorpusDefaults:
    """Methods of most corpora: the source finds their files, and they have no parts to choose."""

    def choose(self: Corpus, collection: str) -> Corpus:
        """Raise ConfigError, because the corpus has no parts."""
        raise ConfigError(
            f"corpus {self.name!r} has no parts to choose after a colon; found {collection!r}. Remove it."
        )

    def files(self: Corpus, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        return source.files(self, language, split)


def only(kind: type[Kind], examples: Iterable[Example], corpus: str) -> Iterator[Kind]:
    """Yield the examples of a corpus.

    Raises DataError at an example of a different kind.
    """
    for example in examples:
        if not isinstance(example, kind):
            raise DataError(
                f"{corpus}: cannot write a {type(example).__name__} ({example.id}); it holds {kind.__name__}."
            )
        yield example


def unique_id(name: str, counts: dict[str, int]) -> str:
    """Return the name, or the first free one of ``name#2``, ``name#3`` … if it is used.

    The counts are updated.
    """
    free_name = name
    while free_name in counts:
        counts[name] += 1
        free_name = f"{name}#{counts[name]}"
    counts[free_name] = 1
    return free_name


def nonempty(examples: Iterator[Kind], file: str) -> Iterator[Kind]:
    """Yield the examples.

    Raises DataError for an empty iterator.
    """
    is_empty = True
    for example in examples:
        is_empty = False
        yield example
    if is_empty:
        raise DataError(
            f"{file}:1: the split is empty; expected at least one example. "
            f"Fetch it again, or choose another split."
        )


def cell(text: str, corpus: str, example: str) -> str:
    """Return a text unchanged if it fits into a tab-separated cell.

    Raises DataError for tabs, line ends, and half surrogate pairs.
    """
    if "\t" in text or "\n" in text or "\r" in text:
        raise cannot_write(
            corpus,
            example,
            f"{text[:40]!r} has a tab or line end; expected text on one line. Replace it by a space",
        )
    if not is_unicode(text):
        raise cannot_write(corpus, example, f"{text[:40]!r} has half a surrogate pair. Remove it")
    return text


def cannot_write(corpus: str, example: str, reason: str) -> DataError:
    """Build the error for an example that the corpus's format cannot hold."""
    return DataError(f"{corpus}: cannot write example {example}: {reason}.")


def with_byte_order_mark(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with a second byte order mark if the text begins with one.

    Readers remove one mark, so a text that begins with U+FEFF keeps its first character.
    """
    for index, line in enumerate(lines):
        yield MARK + line if index == 0 and line.startswith(MARK) else line


Layouts = Mapping[Split, tuple[str, ...]]

COLLECTION = "{collection}"
"""In layouts: the part of a corpus that a recipe names after a colon."""

ENGLISH = "{en}"
"""End of a layout of English files without a language in the name."""

TREEBANKS = ("ud/", "ud-extra/", "ud-pud/", "ud-treebanks-*/", "")
"""Parents of treebank folders such as UD_English-EWT; the official release is ud-treebanks-vN.N."""


def every_split(*layouts: str) -> Layouts:
    """Return the layouts of each split, in which the split's name replaces ``{split}``."""
    return {split: tuple(layout.replace("{split}", split) for layout in layouts) for split in SPLITS}


def paths(layouts: Layouts, language: str, split: Split) -> list[str]:
    """Return the paths to search, without layouts that need a language which the pair lacks.

    A script or region is searched in both spellings (``zh_Hant``, then ``zh-Hant``), a language under all its
    codes (``sw``, then ``swa``), and last with its default script (``sw_Latn``).
    """
    candidate_paths = (
        _fill_layout(layout, language, spelling)
        for layout in layouts.get(split, ())
        for spelling in spellings(language)
    )
    return [path for path in dict.fromkeys(candidate_paths) if "{" not in path]


def is_translation(language: str) -> bool:
    """Return whether a language is a pair such as en-sw, which stands for translated text."""
    return "-" in language


def _fill_layout(layout: str, language: str, spelling: str) -> str:
    parts = spelling.split("-")
    match language.split("-"):
        case ["en"]:
            layout = layout.replace(ENGLISH, "")
        case ["en", _]:
            layout = layout.replace("{into}", parts[1])
        case [_, "en"]:
            layout = layout.replace("{from}", parts[0])
        case ["en", _, "en"]:
            layout = layout.replace("{back}", parts[1])
    return layout.replace("{language}", spelling).replace("{name}", language_name(language).lower())


def locate(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> list[File]:
    """Find the files of one split.

    Raises DataError, naming the existing files, if the split has none.
    """
    files = folder.find(paths(layouts, language, split))
    if not files:
        raise missing(folder, corpus, layouts, language, split)
    return files


def not_english(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for an English corpus, which has official files in English only."""
    english = {
        split: tuple(path for path in split_layouts if path.endswith(ENGLISH))
        for split, split_layouts in layouts.items()
    }
    official_paths = {name: paths(english, "en", name) for name in SPLITS}
    available_splits = [name for name in SPLITS if folder.find(official_paths[name])]
    if available_splits and language != "en":
        return DataError(
            f"{folder.name}: corpus {corpus!r} is English; found language {language!r}. "
            f"Choose en, or add a file {paths(layouts, language, split)[0]}."
        )
    if available_splits:
        return DataError(
            f"{folder.name}: no {split} split of corpus {corpus!r}; it has {', '.join(available_splits)}. "
            f"Paths searched: {some(official_paths[split])} (also .gz, .xz). "
            f"Put the file there, or train on the splits it has: {corpus}[{','.join(available_splits)}]."
        )
    return missing(folder, corpus, layouts, language, split)


def find_spellings(folder: Folder, layouts: Iterable[str]) -> Iterator[str]:
    """Yield the spellings of languages in file names, in the place of {language}."""
    for layout in layouts:
        if "{language}" not in layout:
            continue
        pattern = re.escape(layout).replace(re.escape("{language}"), "(?P<language>[A-Za-z_-]+)", 1)
        pattern = pattern.replace(re.escape("{language}"), "(?P=language)").replace(re.escape("*"), "[^/]*")
        for file in folder.find([layout.replace("{language}", "*")]):
            match = re.search(pattern + "$", file.plain_name.replace("\\", "/"))
            if match:
                yield match["language"]


def missing(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for a split that is not on disk: paths searched, existing files and advice."""
    searched_paths = paths(layouts, language, split)
    spellings_by_split = {name: find_spellings(folder, layouts.get(name, ())) for name in SPLITS}
    return not_there(
        folder,
        corpus,
        language,
        split,
        available={
            name: sorted({canonical_language(spelling) for spelling in spellings})
            for name, spellings in spellings_by_split.items()
        },
        search=f"Looked for {some(searched_paths)} (also .gz, .xz)."
        if searched_paths
        else f"{corpus} has no {split} split.",
    )


def not_there(
    source: FilePlace,
    corpus: str,
    language: str,
    split: Split,
    *,
    available: Mapping[Split, list[str]],
    search: str = "",
) -> DataError:
    """Build the error for a missing split from the languages that the source has for each split."""
    # Pairs such as en-sw where a pair was requested, single languages where one was.
    candidates = [
        candidate for candidate in available[split] if ("-" in candidate) == ("-" in language)
    ] or available[split]
    splits = [name for name in SPLITS if language in available[name]]
    facts = [
        f"{source.name}: no {split} split of corpus {corpus!r} for language {language!r}.",
        f"{corpus} has {split} for: {some(candidates)}.{did_you_mean(language, candidates)}"
        if candidates
        else "",
        f"For {language!r} it has: {', '.join(splits)}." if splits else "",
        search,
        "" if candidates or splits else f"{'The folder' if search else 'It'} holds: {some(source.inside())}.",
        "Put the file there, or choose a language and split that are."
        if search
        else "Choose a language and split that are there.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))
