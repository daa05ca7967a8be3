"""A corpus that is described, not programmed: which files, which format, which columns hold what.

A cell of a row (``tables``) becomes a word, a text or a label by the kind of corpus.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import sha256
from importlib.resources import files as package_files
from itertools import chain, zip_longest
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import code_of_three_letters
from isogloss.data.bitext import two_languages
from isogloss.data.catalogue import NLI
from isogloss.data.corpora import SPLITS, Source, Split, nonempty, not_there, only, some, unique_id
from isogloss.data.examples import (
    Choice,
    Example,
    LabelledText,
    SentencePair,
    TaggedSentence,
    TextLine,
    Translation,
)
from isogloss.data.files import DiskFolder, File, Folder, is_unicode
from isogloss.data.forms import BY_WORD, FORMS, Kind
from isogloss.data.tables import Column, Columns, FileFormat, Row, rows
from isogloss.data.tag_projection import OUTSIDE, are_bio


@dataclass(frozen=True, kw_only=True)
class DescribedCorpus:
    """A corpus whose files, format and columns somebody described."""

    name: str
    kind: Kind
    paths: Mapping[Split, str]
    """Path of each split's file below the folder, with {language}."""
    format: FileFormat
    columns: Columns
    separator: str | None = None
    """What stands between the cells of CSV; none: a comma."""
    labels: tuple[str, ...] = ()
    """The inventory; none for bitext and raw text. Of choices the names of the options, in their order; none
    where they are counted from 0."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by how files spell them, where that is not the label itself."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Languages by their code, and what stands for {language}; of bitext in lines each language by itself."""
    where: Mapping[Split, Mapping[str, str]] = field(default_factory=dict)
    """Columns, and what stands in them in the rows of a split, with {language}; other rows are another's."""
    skip: tuple[str, ...] = ()
    """Spellings of labels whose rows are left out."""
    folder: str = ""
    """Where the files lie: the folder of the description; else below the data folder."""
    about: str = ""
    url: str = ""
    licence: str = ""
    after_colon: ClassVar[str] = ""

    @property
    def tasks(self) -> tuple[str, ...]:
        """The task of its labels, "bitext" or "text"; that of pairs with NLI's labels is NLI."""
        if self.kind == "pair" and {*self.labels} == {*NLI}:
            return ("nli",)
        if self.kind != "tagging":
            return (FORMS[self.kind].task,)
        return ("span-tagging" if are_bio(self.labels) else "word-tagging",)

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file that ``write`` makes."""
        return f"{self.name}/{split}-{language}.jsonl"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of one split; DataError, naming what exists, for none."""
        found = self._in(folder, language, split)
        if not found:
            raise self._missing(folder, language, split)
        return found

    def files(self, source: Source | None, language: str, split: Split) -> list[File]:
        """Return the file of one split, beside the description or else below the data folder."""
        if self.aligned:
            two_languages(language)
        own = DiskFolder(Path(self.folder))
        found = self._in(own, language, split)
        if not found and isinstance(source, DiskFolder):
            found = self._in(source, language, split)
        if not found:
            raise self._missing(own, language, split)
        return [replace(file, fingerprint=_with(file, self._described)) for file in found]

    def _in(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Return the file of a split, of bitext in lines one a language; none unless all are there."""
        found = [folder.find([path]) for path in self._paths(language, split)]
        return list(chain(*found)) if all(found) else []

    def _paths(self, language: str, split: Split) -> list[str]:
        sides = language.split("-") if self.aligned else [language]
        spelled = map(self._spelled, sides if split in self.paths else ())
        return [self.paths[split].replace("{language}", one) for one in spelled]

    def _missing(self, folder: Folder, language: str, split: Split) -> DataError:
        paths = self._paths(language, split)
        looked = f"Looked for {some(paths)} (also .gz, .xz)." if paths else f"It names no {split} file."
        there = {one: [code for code in self.languages if self._in(folder, code, one)] for one in SPLITS}
        return not_there(folder, self.name, language, split, there=there, looked=looked)

    @property
    def aligned(self) -> bool:
        """Whether it is bitext whose every language is a file of lines: any two of them are a pair."""
        return self.kind == "bitext" and self.format == "lines"

    def _spelled(self, language: str) -> str:
        """Return what stands for {language}, by its code of two or of three letters.

        A language that is there with one script or region (``sw_KE``) is found without (``sw``).
        """
        codes = (language, code_of_three_letters(language))
        found = [self.languages[code] for code in codes if code in self.languages]
        plain = [spelled for code, spelled in self.languages.items() if code.partition("_")[0] in codes]
        if found or len(plain) == 1:
            return (found or plain)[0]
        raise DataError(
            f"corpus {self.name!r} has no language {language!r}.{did_you_mean(language, self.languages)} "
            f"It has: {some(self.languages)}. Choose one, or add it to the description."
        )

    def is_there(self, folder: Folder, language: str, split: Split) -> bool:
        """Return whether a split has a file."""
        return bool(self._in(folder, language, split))

    @property
    def _described(self) -> str:
        """A digest of everything that changes what is read."""
        silent = ("folder", "about", "url", "licence", "languages")
        told = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in silent}
        if not self.where:
            del told["where"]  # so that what is read as before is the same
        return sha256(json.dumps(told, sort_keys=True, default=dict).encode()).hexdigest()[:12]

    def read(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Read one split; DataError with file and line at the first row that does not fit."""
        return nonempty(self.stream(source, language, split), self.files(source, language, split)[0].name)

    def stream(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of a split, maybe none: a file of several languages may lack a split of one."""
        files = self.files(source, language, split)
        if self.aligned:
            yield from self._translations(*files)
            return
        where = self.where.get(split, {}).items()
        chosen = {column: text.replace("{language}", self._spelled(language)) for column, text in where}
        for file in files:
            yield from self.examples(file, chosen)

    def _translations(self, first: File, second: File) -> Iterator[Translation]:
        """Yield the lines of two files side by side; DataError where one ends before the other."""
        sides = (rows(file, "lines", (0,)) for file in (first, second))
        for number, (one, other) in enumerate(zip_longest(*sides)):
            if one is None or other is None:
                file, longer = (first, second) if one is None else (second, first)
                raise file.broken(number, "the last line", f"as many lines as {longer.name} has")
            yield Translation(
                id=str(number),
                first=self.text(first, one, "first"),
                second=self.text(second, other, "second"),
            )

    def examples(self, file: File, where: Mapping[str, str] = MappingProxyType({})) -> Iterator[Example]:
        """Yield the examples of a file: of the rows in whose columns these texts stand."""
        seen = dict[str, int]()
        columns = [*where, *(column for part in self.columns for column in self.columns_of(part))]
        for number, row in enumerate(rows(file, self.format, columns, self.separator or ",")):
            if any(str(self._at(file, row, column, "where")) != text for column, text in where.items()):
                continue
            said = " ".join(map(str, self.cells(file, row, "id"))) if "id" in self.columns else ""
            name = unique_id(said, seen) if "id" in self.columns else str(number)
            found = _MAKE[self.kind](self, file, row, name)
            if found is not None:
                yield found

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield JSON lines whose keys are the parts of an example."""
        kind = _EXAMPLES[self.kind]
        for example in only(kind, examples, self.name):
            yield json.dumps(_parts(example, self.labels), ensure_ascii=False)

    def columns_of(self, part: str) -> tuple[Column, ...]:
        """Return where a part of an example stands, often in one column."""
        found = self.columns[part]
        return found if isinstance(found, tuple) else (found,)

    def cells(self, file: File, row: Row, part: str) -> list[Any]:
        """Return the cells of a part of an example; DataError where the row has none."""
        return [self._at(file, row, column, part) for column in self.columns_of(part)]

    def _at(self, file: File, row: Row, column: Column, part: str) -> Any:
        if column not in row.cells:
            there = ", ".join(map(str, row.cells))
            raise file.broken(
                row.line, f"no column {column!r} for {part}", f"one of {there}", "Correct the columns"
            )
        return row.cells[column]

    def cell(self, file: File, row: Row, part: str) -> Any:
        """Return the one cell of a part of an example; DataError where the row has none."""
        (found,) = self.cells(file, row, part)
        return found

    def text(self, file: File, row: Row, part: str) -> str:
        """Return what must be a text; of several columns one after the other."""
        return " ".join(_text_in(file, row, part, found) for found in self.cells(file, row, part))

    def label(self, file: File, row: Row, found: Any) -> str:
        """Return a label by its spelling, or by its number in the inventory."""
        numbered = type(found) is int and not self.spelled
        if numbered and 0 <= found < len(self.labels):
            return self.labels[int(found)]
        said = str(found).strip()
        label = self.spelled.get(said, said)
        if label not in self.labels:
            raise file.broken(
                row.line,
                f"label {said!r}",
                f"one of {some(self.spelled or self.labels)}",
                "Correct it, or the labels of the description",
            )
        return label


def _with(file: File, described: str) -> Callable[[], str]:
    return lambda: f"{file.fingerprint()}-{described}"


def _text_in(file: File, row: Row, part: str, found: object) -> str:
    if isinstance(found, str) and found.strip() and is_unicode(found):
        return found
    what = f"{part} is {str(found)[:60]!r}"
    raise file.broken(row.line, what, "a text that is not blank", "Take it out")


def _parts(example: Example, labels: Sequence[str]) -> dict[str, Any]:
    if isinstance(example, TaggedSentence):
        return {"words": example.words, "labels": example.tags}
    if isinstance(example, Choice):
        asked = {"question": example.question, "prompt": example.prompt}
        label = labels[example.label] if labels and example.label is not None else example.label
        told = {"context": example.context, **asked, "options": example.options, "label": label}
        return {name: value for name, value in told.items() if value != ""}
    told = {one.name: getattr(example, one.name) for one in fields(example)}
    return {name: value for name, value in told.items() if name in ("text", "first", "second", "label")}


def _sentence(corpus: DescribedCorpus, file: File, row: Row, name: str) -> TaggedSentence:
    words, tags = ("word", "label") if corpus.format in BY_WORD else ("words", "labels")
    texts, labels = corpus.cell(file, row, words), corpus.cell(file, row, tags)
    lists = isinstance(texts, list | tuple) and isinstance(labels, list | tuple)
    if not lists or len(texts) != len(labels):
        what = "words and labels that are no lists of one length"
        raise file.broken(row.line, what, "a label for each word")
    for word in texts:
        if not isinstance(word, str) or not word.strip() or not is_unicode(word):
            raise file.broken(row.line, f"the word {word!r}", "words that are not blank", "Take it out")
    return TaggedSentence(
        id=name, words=tuple(texts), tags=tuple(corpus.label(file, row, one) for one in labels)
    )


def _text(corpus: DescribedCorpus, file: File, row: Row, name: str) -> LabelledText | None:
    found = corpus.cell(file, row, "label")
    if str(found).strip() in corpus.skip:
        return None
    return LabelledText(id=name, text=corpus.text(file, row, "text"), label=corpus.label(file, row, found))


def _pair(corpus: DescribedCorpus, file: File, row: Row, name: str) -> SentencePair | None:
    found = corpus.cell(file, row, "label")
    if str(found).strip() in corpus.skip:
        return None
    first, second = (corpus.text(file, row, part) for part in ("first", "second"))
    return SentencePair(id=name, first=first, second=second, label=corpus.label(file, row, found))


def _choice(corpus: DescribedCorpus, file: File, row: Row, name: str) -> Choice | None:
    said = str(corpus.cell(file, row, "label")).strip()
    if said in corpus.skip:
        return None
    options = _options(corpus, file, row)
    names = (corpus.labels or [str(number) for number in range(len(options))])[: len(options)]
    if said not in names:
        what = f"label {said!r} for {len(options)} options"
        raise file.broken(
            row.line, what, f"one of {some(names)}", "Correct it, or the labels of the description"
        )
    asked = {part: corpus.text(file, row, part) for part in FORMS["choice"].more if part in corpus.columns}
    context = corpus.text(file, row, "context")
    return Choice(id=name, context=context, options=options, label=names.index(said), **asked)


def _options(corpus: DescribedCorpus, file: File, row: Row) -> tuple[str, ...]:
    """Return the options of a row: a list in one cell, or a cell each; the last ones may be empty."""
    cells = corpus.cells(file, row, "options")
    found: Any = cells if len(cells) > 1 else cells[0]
    if not isinstance(found, list | tuple):
        what = f"options {str(found)[:60]!r}"
        raise file.broken(row.line, what, "a list of texts, or a column for each", "Name their columns")
    while found and found[-1] in ("", None):
        found = found[:-1]
    if len(found) < 2:
        raise file.broken(row.line, f"{len(found)} options", "two or more", "Take the row out")
    return tuple(_text_in(file, row, "an option", one) for one in found)


def _translation(corpus: DescribedCorpus, file: File, row: Row, name: str) -> Translation:
    first, second = (corpus.text(file, row, part) for part in ("first", "second"))
    return Translation(id=name, first=first, second=second)


def _line(corpus: DescribedCorpus, file: File, row: Row, name: str) -> TextLine | None:
    if corpus.format == "lines" and not corpus.cell(file, row, "text").strip():
        return None  # Empty lines stand between paragraphs.
    return TextLine(id=name, text=corpus.text(file, row, "text"))


_MAKE: Mapping[Kind, Callable[[DescribedCorpus, File, Row, str], Example | None]] = {
    "tagging": _sentence,
    "text": _text,
    "pair": _pair,
    "choice": _choice,
    "bitext": _translation,
    "raw": _line,
}
_EXAMPLES: Mapping[Kind, type[Any]] = {
    "tagging": TaggedSentence,
    "text": LabelledText,
    "pair": SentencePair,
    "choice": Choice,
    "bitext": Translation,
    "raw": TextLine,
}


# Those of this process

KNOWN: dict[str, DescribedCorpus] = {}
"""Described corpora by name, beside the catalogue's."""


def shipped() -> dict[str, Path]:
    """Return the descriptions that come with the package, by name; their files are below the data folder."""
    folder = Path(str(package_files("isogloss") / "data" / "descriptions"))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def register(*corpora: DescribedCorpus) -> None:
    """Make corpora known by name; ConfigError where another one has the name."""
    for corpus in corpora:
        other = KNOWN.setdefault(corpus.name, corpus)
        if replace(other, folder=corpus.folder) != corpus:
            raise ConfigError(f"two descriptions are named {corpus.name!r}. Give one of them another name.")
        KNOWN[corpus.name] = corpus


def inventory(seen: Iterable[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a tagging corpus from those seen in a file and those a description gives.

    BIO tags are O, then B- and I- of each type, in the order of the given types, else sorted.
    """
    found = set(seen)
    if not are_bio(found):
        return tuple(given) or tuple(sorted(found))
    types = [tag.partition("-")[2] or tag for tag in given if tag != OUTSIDE]
    types = list(dict.fromkeys(types)) or sorted({tag[2:] for tag in found - {OUTSIDE}})
    return (OUTSIDE, *(f"{mark}-{one}" for one in types for mark in "BI"))
