"""Corpora of sentences: Universal Dependencies' treebanks, and lines of text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import canonical_language, is_built_in, language_name, spellings
from isogloss.data.corpus import (
    SPLITS,
    TREEBANKS,
    About,
    CorpusDefaults,
    Layouts,
    Source,
    Split,
    cannot_write,
    cell,
    locate,
    nonempty,
    only,
    with_byte_order_mark,
)
from isogloss.data.examples import Example, ParsedSentence, TextLine
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.conllu import read_conllu, ud_paths, write_conllu

DEFAULTS = {
    "ar": "PADT", "de": "GSD", "en": "EWT", "es": "GSD", "fr": "GSD",
    "hi": "HDTB", "ru": "GSD", "vi": "VTB", "zh": "GSD",
}  # fmt: skip
"""Default treebanks: the nine of the interpolation paper (its Table 1)."""

BUILT_IN = "BuiltIn"
"""Treebank name of the built-in languages."""

_TREEBANK = re.compile(r"[\w.][\w./-]*")
_FILE = re.compile(r"([a-z]+)_([a-z0-9]+)-ud-(?:train|dev|test)\.conllu")


@dataclass(frozen=True, kw_only=True)
class Ud(CorpusDefaults):
    """Universal Dependencies: treebanks with universal tags and trees.

    Nivre et al. (2020), "Universal Dependencies v2 …". A language has several treebanks, which differ in text
    and guidelines. One of them is read: the one in ``treebanks``, else in ``DEFAULTS``, else the only one in
    the folder. Treebanks are never mixed, not even to fill in a missing split.
    """

    name: ClassVar[str] = "ud"
    tasks: ClassVar[tuple[str, ...]] = ("upos", "parsing")
    about: ClassVar[About] = About(
        __doc__,
        "https://universaldependencies.org",
        "stated by each treebank (mostly CC BY-SA or CC BY-NC-SA)",
    )

    treebanks: tuple[tuple[str, str], ...] = ()
    """Language and treebank, as in ``(("fr", "Sequoia"),)``. A name with a slash is a folder below the data
    folder, as in ``(("vi", "ud-legacy/v2.5_UD_Vietnamese-VTB"),)``."""

    def __post_init__(self) -> None:
        for language, treebank in self.treebanks:
            if not _TREEBANK.fullmatch(treebank) or ".." in treebank:
                raise ConfigError(
                    f"corpus ud, treebanks: {treebank!r} for {language!r} is not a treebank. Use the part "
                    f"after the hyphen (Sequoia of UD_French-Sequoia) or a folder below the data folder."
                )

    def path(self, language: str, split: Split) -> str:
        """Return the path of a split in the language's treebank."""
        treebank = self.treebank_of(language) or BUILT_IN
        if "/" in treebank:
            return f"{treebank}/{language}-ud-{split}.conllu"
        name = language if is_built_in(language) else language_name(language).replace(" ", "_")
        return f"ud/UD_{name}-{treebank}/{language}_{treebank.lower()}-ud-{split}.conllu"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of a split in the language's treebank.

        Raises DataError, naming the existing treebanks, if none exists.
        """
        treebank = self.treebank_of(language)
        if treebank == BUILT_IN and find_treebank_names(folder, language, split):  # UD uses one of our codes.
            treebank = dict(self.treebanks).get(language, "")
        treebank = treebank or _only_one(folder, language)
        if files := folder.find(ud_paths(treebank, language, split)):
            return files
        raise _missing(folder, language, split, treebank)

    def read(self, source: Source, language: str, split: Split) -> Iterator[ParsedSentence]:
        """Read the sentences with their lines."""
        file = self.files(source, language, split)[0]
        return nonempty(read_conllu(file), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a CoNLL-U file."""
        return write_conllu(only(ParsedSentence, examples, self.name), self.name)

    def treebank_of(self, language: str) -> str:
        """Return the treebank chosen or default for a language, or "" for the only one in the folder."""
        if is_built_in(language.partition("-")[0]):  # Pairs such as qaa-qab are translated treebanks.
            return BUILT_IN
        return dict(self.treebanks).get(language) or DEFAULTS.get(language, "")


def find_treebank_names(folder: Folder, language: str, split: Split) -> list[str]:
    """Return the names, in lower case as in file names, of the language's treebanks that have the split."""
    names = set[str]()
    language_spellings = spellings(language)
    for parent in TREEBANKS:
        for file in folder.find([f"{parent}UD_*/*_*-ud-{split}.conllu"]):
            if (match := _FILE.fullmatch(file.base_name)) and match[1] in language_spellings:
                names.add(match[2])
    return sorted(names)


def _only_one(folder: Folder, language: str) -> str:
    names = sorted({name for split in SPLITS for name in find_treebank_names(folder, language, split)})
    if len(names) > 1:
        raise DataError(
            f"{folder.name}: corpus ud has several treebanks for language {language!r}: {some(names)}; "
            f'expected one. Choose one: treebanks = {{ {language} = "{names[0]}" }}.'
        )
    return names[0] if names else ""


def _missing(folder: Folder, language: str, split: Split, treebank: str) -> DataError:
    alternatives = find_treebank_names(folder, language, split)
    splits = [name for name in SPLITS if treebank and folder.find(ud_paths(treebank, language, name))]
    owner = f"treebank {treebank!r} of language {language!r}" if treebank else f"language {language!r}"
    facts = [
        f"{folder.name}: no {split} split of corpus 'ud' for {owner}."
        f"{did_you_mean(treebank.lower(), alternatives)}",
        f"That treebank has: {', '.join(splits)}." if splits else "",
        f"Treebanks of {language!r} with {split}: {some(alternatives)}. Choose one, as in treebanks = "
        f'{{ {language} = "{alternatives[0]}" }}; then all splits come from it.'
        if alternatives
        else f"No treebank of {language!r} there has {split}. {_languages(folder, split)} Fetch it from "
        f"{Ud.about.url}, or choose a different language or split.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))


def _languages(folder: Folder, split: Split) -> str:
    files = [file for parent in TREEBANKS for file in folder.find([f"{parent}UD_*/*-ud-{split}.conllu"])]
    languages = {canonical_language(file.base_name.partition("_")[0]) for file in files}
    if languages:
        single_languages = {language for language in languages if "-" not in language} or languages
        return f"Languages with {split}: {some(sorted(single_languages))}."
    return f"The folder holds: {some(folder.inside())}."


_TEXTS: Layouts = {
    "train": ("rawtext/{language}/*.txt", "text/{language}/*.txt"),
    "dev": ("rawtext/{language}/dev/*.txt", "text/{language}/dev/*.txt"),
    "test": ("rawtext/{language}/test/*.txt", "text/{language}/test/*.txt"),
}


@dataclass(frozen=True, kw_only=True)
class RawText(CorpusDefaults):
    """Raw text: one sentence or paragraph per line, an empty line between documents.

    All files ``rawtext/sw/*.txt``, in the order of their names, are the train split of one corpus. Text to
    measure on is in ``rawtext/sw/dev/*.txt`` and ``rawtext/sw/test/*.txt``, if it exists.
    """

    name: ClassVar[str] = "rawtext"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    about: ClassVar[About] = About(__doc__, "", "that of the files")

    def path(self, language: str, split: Split) -> str:
        """Return the path of a language's text."""
        return (
            f"rawtext/{language}/train.txt" if split == "train" else f"rawtext/{language}/{split}/{split}.txt"
        )

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find all files of the language, sorted by name."""
        return locate(folder, self.name, _TEXTS, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[TextLine]:
        """Yield all lines.

        An id is the file's name and the line number, and a file begins a new document.
        """
        return _documents(self.files(source, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file, with an empty line between documents."""
        return with_byte_order_mark(self._lines(only(TextLine, examples, self.name)))

    def _lines(self, lines: Iterable[TextLine]) -> Iterator[str]:
        document = None
        for line in lines:
            if not line.text.strip():
                raise cannot_write(self.name, line.id, "its text is empty. Remove it")
            if document not in (None, line.document):
                yield ""
            document = line.document
            yield cell(line.text, self.name, line.id)


def _documents(files: list[File]) -> Iterator[TextLine]:
    document = 0
    for file in files:
        for line in nonempty(_lines(file, document), file.name):
            yield line
            document = line.document
        document += 1


def _lines(file: File, document: int) -> Iterator[TextLine]:
    name = file.base_name.removesuffix(".txt")
    has_text = False
    is_new_document = False
    for line_number, text in file.lines():
        if not text.strip():
            is_new_document = has_text
            continue
        document += is_new_document
        has_text = True
        is_new_document = False
        yield TextLine(id=f"{name}:{line_number}", text=text, document=document)
