"""What a corpus is, where its files lie below a data folder, and the errors for missing files.

A layout is a path with ``{language}`` in it; each split has a tuple of them, official folder names first. The
first layout that exists is read.

The language of a labelled corpus in translation is a pair: ``en-sw`` was written in English and translated
into Swahili (a training split: translate-train), ``sw-en`` the reverse (a test split: translate-test), and
``en-sw-en`` was translated back into English. Layouts of translations name the whole pair, ``{language}``, or
the one language that is not English: ``{into}``, ``{from}``, or ``{back}`` for there and back. A layout
of English files ends in ``{en}``; ``{name}`` is the English name of the language in lower case.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

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
        """Names of the tasks it has labels for (upos, nli …); "text", "bitext" or "comparable" for none."""
        ...

    @property
    def about(self) -> About:
        """Contents, home page and licence."""
        ...

    def choose(self, collection: str) -> "Corpus":
        """Return the part that a recipe names after a colon ("bitext:bible"); ConfigError for none."""
        ...

    def path(self, language: str, split: Split) -> str:
        """Return the path, below a data folder, of a file that ``write`` makes and ``read`` finds."""
        ...

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of one split on disk; DataError, naming what exists, for none."""
        ...

    def files(self, source: "Source", language: str, split: Split) -> list[File]:
        """Return the files of one split from any source; DataError for none."""
        ...

    def read(self, source: "Source", language: str, split: Split) -> Iterator[Example]:
        """Read one split, in file order; DataError with file and line at the first broken line."""
        ...

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines (without line ends) of a file in the corpus's native format."""
        ...


class Source(FilePlace, Protocol):
    """Where corpora come from: a folder on disk, the built-in languages, Hugging Face datasets."""

    def files(self, corpus: Corpus, language: str, split: Split) -> list[File]:
        """Return the files of one split in the corpus's format; DataError, naming what exists, for none."""
        ...

    def folder(self, corpus: str, languages: Sequence[str] = ()) -> DiskFolder | None:
        """Return the folder with the files of a described corpus in some languages; None for none."""
        ...


class CorpusDefaults:
    """Methods of most corpora: the source finds their files, and they have no collections to choose from."""

    def choose(self: Corpus, collection: str) -> Corpus:
        """Refuse any collection."""
        raise ConfigError(
            f"corpus {self.name!r} has no choice after a colon to choose from; found {collection!r}. "
            f"Leave it out."
        )

    def files(self: Corpus, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        return source.files(self, language, split)


def only(kind: type[Kind], examples: Iterable[Example], corpus: str) -> Iterator[Kind]:
    """Yield the examples; DataError at one that is not of the corpus's kind."""
    for example in examples:
        if not isinstance(example, kind):
            raise DataError(
                f"{corpus}: cannot write a {type(example).__name__} ({example.id}); it holds {kind.__name__}."
            )
        yield example


def unique_id(name: str, counts: dict[str, int]) -> str:
    """Return the name, or the first free one of ``name#2``, ``name#3`` … if it is taken."""
    new = name
    while new in counts:
        counts[name] += 1
        new = f"{name}#{counts[name]}"
    counts[new] = 1
    return new


def nonempty(examples: Iterator[Kind], file: str) -> Iterator[Kind]:
    """Yield the examples; DataError if there are none."""
    empty = True
    for example in examples:
        empty = False
        yield example
    if empty:
        raise DataError(
            f"{file}:1: the split is empty; expected at least one example. "
            f"Fetch it again, or choose another split."
        )


def cell(text: str, corpus: str, example: str) -> str:
    """Return a text that fits into a tab-separated cell; DataError for any other."""
    if "\t" in text or "\n" in text or "\r" in text:
        raise cannot_write(
            corpus,
            example,
            f"{text[:40]!r} has a tab or line end in it; expected text of one line. Replace it by a space",
        )
    if not is_unicode(text):
        raise cannot_write(corpus, example, f"{text[:40]!r} has half a surrogate pair in it. Take it out")
    return text


def cannot_write(corpus: str, example: str, reason: str) -> DataError:
    """Build the error for an example that the corpus's format cannot hold."""
    return DataError(f"{corpus}: cannot write example {example}: {reason}.")


def with_byte_order_mark(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines, with a second byte order mark before a first line that begins with one.

    Readers remove one mark, so a text that begins with U+FEFF keeps its own.
    """
    for number, line in enumerate(lines):
        yield MARK + line if number == 0 and line.startswith(MARK) else line


Layouts = Mapping[Split, tuple[str, ...]]

COLLECTION = "{collection}"
"""In layouts: the part of a corpus that a recipe names after a colon."""

ENGLISH = "{en}"
"""End of a layout of English files without a language in the name."""

TREEBANKS = ("ud/", "ud-extra/", "ud-pud/", "ud-treebanks-*/", "")
"""Parents of treebank folders such as UD_English-EWT; the official release is ud-treebanks-vN.N."""


def every_split(*layouts: str) -> Layouts:
    """Return the layouts of each split, with its name for ``{split}``."""
    return {split: tuple(layout.replace("{split}", split) for layout in layouts) for split in SPLITS}


def paths(layouts: Layouts, language: str, split: Split) -> list[str]:
    """Return the paths to search, without those that need a language which the pair lacks.

    A script or region is searched in both spellings, ``zh_Hant``, then ``zh-Hant``, a language by all codes
    that it has, ``sw``, then ``swa``, and last with the script that goes without saying: ``sw_Latn``.
    """
    filled = (
        _filled(layout, language, spelled)
        for layout in layouts.get(split, ())
        for spelled in spellings(language)
    )
    return [path for path in dict.fromkeys(filled) if "{" not in path]


def is_translation(language: str) -> bool:
    """Return whether a language is a pair such as en-sw: text of one in translation."""
    return "-" in language


def _filled(layout: str, language: str, spelled: str) -> str:
    parts = spelled.split("-")
    match language.split("-"):
        case ["en"]:
            layout = layout.replace(ENGLISH, "")
        case ["en", _]:
            layout = layout.replace("{into}", parts[1])
        case [_, "en"]:
            layout = layout.replace("{from}", parts[0])
        case ["en", _, "en"]:
            layout = layout.replace("{back}", parts[1])
    return layout.replace("{language}", spelled).replace("{name}", language_name(language).lower())


def locate(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> list[File]:
    """Find the files of one split; DataError, naming what exists, for none."""
    files = folder.find(paths(layouts, language, split))
    if not files:
        raise missing(folder, corpus, layouts, language, split)
    return files


def not_english(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for an English corpus, whose files in other languages are the user's own."""
    english = {
        split: tuple(path for path in named if path.endswith(ENGLISH)) for split, named in layouts.items()
    }
    official = {name: paths(english, "en", name) for name in SPLITS}
    splits = [other for other in SPLITS if folder.find(official[other])]
    if splits and language != "en":
        return DataError(
            f"{folder.name}: corpus {corpus!r} is English; found language {language!r}. "
            f"Choose en, or add a file {paths(layouts, language, split)[0]}."
        )
    if splits:
        return DataError(
            f"{folder.name}: no {split} split of corpus {corpus!r}; it has {', '.join(splits)}. "
            f"Looked for {some(official[split])} (also .gz, .xz). "
            f"Put the file there, or train on the splits it has: {corpus}[{','.join(splits)}]."
        )
    return missing(folder, corpus, layouts, language, split)


def spelled_there(folder: Folder, layouts: Iterable[str]) -> Iterator[str]:
    """Yield what stands for {language} in the names of files."""
    for layout in layouts:
        if "{language}" not in layout:
            continue
        code = re.escape(layout).replace(re.escape("{language}"), "(?P<language>[A-Za-z_-]+)", 1)
        code = code.replace(re.escape("{language}"), "(?P=language)").replace(re.escape("*"), "[^/]*")
        for file in folder.find([layout.replace("{language}", "*")]):
            match = re.search(code + "$", file.plain_name.replace("\\", "/"))
            if match:
                yield match["language"]


def missing(folder: Folder, corpus: str, layouts: Layouts, language: str, split: Split) -> DataError:
    """Build the error for a split that is not on disk: paths searched, what exists, what to do."""
    looked = paths(layouts, language, split)
    spelled = {name: spelled_there(folder, layouts.get(name, ())) for name in SPLITS}
    return not_there(
        folder,
        corpus,
        language,
        split,
        available={name: sorted({*map(canonical_language, names)}) for name, names in spelled.items()},
        looked=f"Looked for {some(looked)} (also .gz, .xz)." if looked else f"{corpus} has no {split} split.",
    )


def not_there(
    source: FilePlace,
    corpus: str,
    language: str,
    split: Split,
    *,
    available: Mapping[Split, list[str]],
    looked: str = "",
) -> DataError:
    """Build the error for a missing split, from the languages that the source has of each split."""
    # Pairs such as en-sw where a pair was requested, single languages where one was.
    codes = [code for code in available[split] if ("-" in code) == ("-" in language)] or available[split]
    splits = [other for other in SPLITS if language in available[other]]
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
