"""Corpora of sentences: Universal Dependencies' treebanks, lines of text, and verses of parallel text."""

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
from isogloss.data.formats.parallel_text import column_of, languages_in, read_rows, verse_split

DEFAULTS = {
    "ar": "PADT", "de": "GSD", "en": "EWT", "es": "GSD", "fr": "GSD",
    "hi": "HDTB", "ru": "GSD", "vi": "VTB", "zh": "GSD",
}  # fmt: skip
"""The nine treebanks of the interpolation paper (its Table 1)."""

BUILT_IN = "BuiltIn"
"""Treebank name of the built-in languages."""

_TREEBANK = re.compile(r"[\w.][\w./-]*")
_FILE = re.compile(r"([a-z]+)_([a-z0-9]+)-ud-(?:train|dev|test)\.conllu")


@dataclass(frozen=True, kw_only=True)
class Ud(CorpusDefaults):
    """Universal Dependencies: treebanks with universal tags and trees.

    Nivre et al. (2020), "Universal Dependencies v2 …". A language has several treebanks, and they differ in
    text and guidelines. It is read from one of them, as named in ``treebanks``, else in ``DEFAULTS``, else
    from the only one the folder has. Treebanks are never mixed, not even to fill in a missing split.
    """

    name: ClassVar[str] = "ud"
    tasks: ClassVar[tuple[str, ...]] = ("upos", "parsing")
    about: ClassVar[About] = About(
        __doc__, "https://universaldependencies.org", "that of each treebank (mostly CC BY-SA or CC BY-NC-SA)"
    )

    treebanks: tuple[tuple[str, str], ...] = ()
    """Language and treebank, as in ``(("fr", "Sequoia"),)``; a name with a slash is a folder below the data
    folder, as in ``(("vi", "ud-legacy/v2.5_UD_Vietnamese-VTB"),)``."""

    def __post_init__(self) -> None:
        for language, treebank in self.treebanks:
            if not _TREEBANK.fullmatch(treebank) or ".." in treebank:
                raise ConfigError(
                    f"corpus ud, treebanks: {treebank!r} for {language!r} is no treebank name. Use the part "
                    f"after the hyphen (Sequoia of UD_French-Sequoia) or a folder below the data folder."
                )

    def path(self, language: str, split: Split) -> str:
        """Return the path in the treebank that is read for the language."""
        treebank = self.named(language) or BUILT_IN
        if "/" in treebank:
            return f"{treebank}/{language}-ud-{split}.conllu"
        name = language if is_built_in(language) else language_name(language).replace(" ", "_")
        return f"ud/UD_{name}-{treebank}/{language}_{treebank.lower()}-ud-{split}.conllu"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the one file of a split in the language's treebank."""
        treebank = self.named(language)
        if treebank == BUILT_IN and treebanks_there(folder, language, split):  # UD uses one of our codes.
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

    def named(self, language: str) -> str:
        """Return the treebank that is read for a language; empty for the only one that exists."""
        if is_built_in(language.partition("-")[0]):  # A pair such as qaa-qab is there in translation.
            return BUILT_IN
        return dict(self.treebanks).get(language) or DEFAULTS.get(language, "")


def treebanks_there(folder: Folder, language: str, split: Split) -> list[str]:
    """Return the names, in lower case as in file names, of the language's treebanks that have the split."""
    names, codes = set[str](), spellings(language)
    for parent in TREEBANKS:
        for file in folder.find([f"{parent}UD_*/*_*-ud-{split}.conllu"]):
            if (match := _FILE.fullmatch(file.base_name)) and match[1] in codes:
                names.add(match[2])
    return sorted(names)


def _only_one(folder: Folder, language: str) -> str:
    names = sorted({name for split in SPLITS for name in treebanks_there(folder, language, split)})
    if len(names) > 1:
        raise DataError(
            f"{folder.name}: corpus ud has several treebanks for language {language!r}: {some(names)}; "
            f'expected one, or one that is named. Name it: treebanks = {{ {language} = "{names[0]}" }}.'
        )
    return names[0] if names else ""


def _missing(folder: Folder, language: str, split: Split, treebank: str) -> DataError:
    others = treebanks_there(folder, language, split)
    splits = [other for other in SPLITS if treebank and folder.find(ud_paths(treebank, language, other))]
    of_it = f"treebank {treebank!r} of language {language!r}" if treebank else f"language {language!r}"
    facts = [
        f"{folder.name}: no {split} split of corpus 'ud' for {of_it}."
        f"{did_you_mean(treebank.lower(), others)}",
        f"That treebank has: {', '.join(splits)}." if splits else "",
        f"Treebanks of {language!r} with {split}: {some(others)}. Name one, as in treebanks = "
        f'{{ {language} = "{others[0]}" }}; then all splits come from it.'
        if others
        else f"No treebank of {language!r} there has {split}. {_languages(folder, split)} Fetch it from "
        f"{Ud.about.url}, or choose another language or split.",
    ]
    return DataError(" ".join(fact for fact in facts if fact))


def _languages(folder: Folder, split: Split) -> str:
    files = [file for parent in TREEBANKS for file in folder.find([f"{parent}UD_*/*-ud-{split}.conllu"])]
    codes = {canonical_language(file.base_name.partition("_")[0]) for file in files}
    if codes:
        plain = {code for code in codes if "-" not in code} or codes
        return f"Languages with {split}: {some(sorted(plain))}."
    return f"The folder holds: {some(folder.inside())}."


_TEXTS: Layouts = {
    "train": ("rawtext/{language}/*.txt", "text/{language}/*.txt"),
    "dev": ("rawtext/{language}/dev/*.txt", "text/{language}/dev/*.txt"),
    "test": ("rawtext/{language}/test/*.txt", "text/{language}/test/*.txt"),
}

_TABLES = ("bible/*.tsv",)


@dataclass(frozen=True, kw_only=True)
class RawText(CorpusDefaults):
    """Raw text: one sentence or paragraph a line, an empty line between documents.

    All ``rawtext/sw/*.txt`` are one corpus, in the order of their names, and its train split. Text to measure
    on is in ``rawtext/sw/dev/*.txt`` and ``rawtext/sw/test/*.txt``, if anywhere.
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
        """Read all lines; an id is the file's name and line number, and a file begins a new document."""
        return _documents(self.files(source, language, split))

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file, an empty one where the document changes."""
        return with_byte_order_mark(self._lines(only(TextLine, examples, self.name)))

    def _lines(self, lines: Iterable[TextLine]) -> Iterator[str]:
        document = None
        for line in lines:
            if not line.text.strip():
                raise cannot_write(self.name, line.id, "its text is empty. Leave it out")
            if document not in (None, line.document):
                yield ""
            document = line.document
            yield cell(line.text, self.name, line.id)


@dataclass(frozen=True, kw_only=True)
class Bible(CorpusDefaults):
    """The Bible as text: the verses of one language of a verse-aligned table (``bible/*.tsv``).

    One verse in 25 is held out as dev and one as test, by its reference (``parallel_text.verse_split``), the
    same in all languages: an encoder pretrained on train can be tested on verses that it has read in no
    language. The same table gives translation pairs as corpus bitext, collection bible, in the same splits.
    """

    name: ClassVar[str] = "bible"
    tasks: ClassVar[tuple[str, ...]] = ("text",)
    about: ClassVar[About] = About(__doc__, "https://github.com/BibleNLP/ebible", "that of each translation")

    def path(self, language: str, split: Split) -> str:  # noqa: ARG002
        """Return the path of a table with one language; the split of a verse follows from its reference."""
        return f"bible/{language}.tsv"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:  # noqa: ARG002
        """Find the first table that has the language."""
        tables = folder.find(_TABLES)
        for table in tables:
            if column_of(language, languages_in(table)):
                return [table]
        codes = sorted({code for table in tables for code in languages_in(table)})
        contents = f"It has: {some(codes)}" if codes else f"The folder holds: {some(folder.inside())}"
        raise DataError(
            f"{folder.name}: no table {_TABLES[0]} with a column for language {language!r}."
            f"{did_you_mean(language, codes)} {contents}. Choose another language, or add a table with it."
        )

    def read(self, source: Source, language: str, split: Split) -> Iterator[TextLine]:
        """Read the verses of a split; ids are references, as in GEN 1:1."""
        file = self.files(source, language, split)[0]
        return nonempty(_verses(file, language, split), file.name)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:
        """Yield the lines of a table with one language."""
        yield f"verse\t{language}"
        references: set[str] = set()
        for verse in only(TextLine, examples, self.name):
            if not verse.id or verse.id in references or not verse.text.strip():
                raise cannot_write(self.name, verse.id, "expected a reference of its own and a text")
            references.add(verse.id)
            yield f"{cell(verse.id, self.name, verse.id)}\t{cell(verse.text, self.name, verse.id)}"


def _documents(files: list[File]) -> Iterator[TextLine]:
    document = 0
    for file in files:
        for line in nonempty(_lines(file, document), file.name):
            yield line
            document = line.document
        document += 1


def _lines(file: File, document: int) -> Iterator[TextLine]:
    name = file.base_name.removesuffix(".txt")
    has_text = ended = False
    for number, text in file.lines():
        if not text.strip():
            ended = has_text
            continue
        document += ended
        has_text, ended = True, False
        yield TextLine(id=f"{name}:{number}", text=text, document=document)


def _verses(file: File, language: str, split: Split) -> Iterator[TextLine]:
    books: dict[str, int] = {}
    for row in read_rows(file, [language]):
        document = books.setdefault(row.id.partition(" ")[0], len(books))
        if verse_split(row.id) == split:
            yield TextLine(id=row.id, text=row.texts[0], document=document)
