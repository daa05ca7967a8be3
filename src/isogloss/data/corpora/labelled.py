"""Official corpora of labelled pairs and tagged words: values that one class reads and writes.

A corpus states the paths of its files (``layouts``), the names of its columns, and the spelling of its
labels. Pairs are rows separated by tabs or one JSON object per line (.jsonl); quotes are ordinary characters.
Without a header the columns are first, second, label. In XTREME's files of translations, the first two are
repeated in the original language. Words have a line each with their tag; an empty line ends a sentence.
Features add corpora with other files to ``CORPUS_FILES``, such as questions about passages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.core.registry import Registry
from isogloss.data.column_names import FIRST, SECOND
from isogloss.data.corpus import (
    COLLECTION,
    ENGLISH,
    About,
    CorpusDefaults,
    Layouts,
    Source,
    Split,
    cannot_write,
    cell,
    is_translation,
    locate,
    missing,
    nonempty,
    not_english,
    only,
    paths,
    with_byte_order_mark,
)
from isogloss.data.examples import Example, SentencePair, TaggedSentence
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.conll import ConllLayout
from isogloss.data.formats.formats import AnyOf, Column, ExampleColumns, PartColumns
from isogloss.data.formats.kinds import labelled_rows
from isogloss.data.formats.reading import LINES, FileFacts, Reading
from isogloss.data.formats.tables import FileRow, rows

LABEL = ("gold_label", "label")
"""Usual names of the column of the label."""

PAIRS: Mapping[str, PartColumns] = {
    "first": AnyOf(FIRST),
    "second": AnyOf(SECOND),
    "label": AnyOf(LABEL),
    "id": "id",
}
WORDS: Mapping[str, PartColumns] = {"word": 0, "label": -1}

HEADERLESS = {3: ("first", "second", "label"), 2: ("first", "second")}
"""Columns of files without a header, by their number. XTREME removes the labels of tests."""

TRANSLATED = {**HEADERLESS, 5: ("", "", "first", "second", "label"), 4: ("", "", "first", "second")}


@dataclass(frozen=True, kw_only=True)
class LabelledCorpus(CorpusDefaults):
    """A corpus of labelled pairs of texts, of words with a tag each, or of a kind that a feature adds."""

    name: str
    tasks: tuple[str, ...]
    about: About
    layouts: Layouts
    labels: tuple[str, ...] = ()
    kind: str = "pair"
    """Kind of its files (``CORPUS_FILES``)."""
    columns: Mapping[str, PartColumns] = field(default_factory=lambda: PAIRS)
    """Columns of pairs, by any name in use. A first row with a name of the first column is a header."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by their spelling in files, where it differs."""
    skip: tuple[str, ...] = ()
    """Labels of rows without agreement among annotators, which are skipped and counted."""
    translations: Layouts = field(default_factory=dict)
    written: str = ""
    """Path of files written by ``write``. Default: ``name/{split}-{language}.tsv``."""
    all_languages: Layouts = field(default_factory=dict)
    """Files of all languages, with a language column. They are preferred if they have the language."""
    split_column: str = ""
    """Column of the splits, if one file has all of them."""
    split_names: Mapping[Split, str] = field(default_factory=dict)
    unlabelled: tuple[Split, ...] = ()
    """Splits that may lack labels. Files without labels can be predicted, but not scored."""
    separator: Literal["\t", " "] = "\t"
    """Separator of a word and its tag. Lines are split at its last occurrence."""
    ids_by_language: str = ""
    """File of all languages, in which ids of questions begin with the English name of their language."""
    version: str | float = ""
    """Version in files of questions."""
    own_rules: tuple[str, ...] = ()
    """Languages for which the corpus's script has rules to compare answers."""
    collection: str = ""
    """Part of the corpus to read, if layouts have ``{collection}``. For MLQA, the language of the questions.
    Default: the language of the passages."""

    def __repr__(self) -> str:
        """Return name, kind and tasks in a line."""
        return f"LabelledCorpus({self.name!r}, {self.kind}, tasks {', '.join(self.tasks)})"

    def choose(self, collection: str) -> "LabelledCorpus":
        """Return the part that a recipe names after a colon ("mlqa:en").

        Raises ConfigError if the corpus has no parts.
        """
        layouts = (layout for layouts in self.layouts.values() for layout in layouts)
        if not any(COLLECTION in layout for layout in layouts):
            super().choose(collection)
        return replace(self, collection=collection)

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file in one language, or of a translation."""
        if self._is_translated(language) and (translations := paths(self.translations, language, split)):
            return translations[0]
        layout = self._fill_layout(self.written or f"{self.name}/{{split}}-{{language}}.tsv")
        return paths({split: (layout.replace("{split}", split),)}, language, split)[0]

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of a split: the file of all languages if it has this one, else the language's own.

        Raises DataError, naming the existing files, if none exists.
        """
        if self._is_translated(language):
            return locate(folder, self.name, self.translations, language, split)
        joint_files = folder.find(self.all_languages.get(split, ()))
        names = spellings(language)
        if joint_files and any(name in names for name in languages_in(joint_files[0])):
            return joint_files
        layouts = {
            name: tuple(self._fill_layout(layout) for layout in split_layouts)
            for name, split_layouts in self.layouts.items()
        }
        if files := folder.find(paths(layouts, language, split)):
            return files
        if joint_files:
            languages = sorted(languages_in(joint_files[0]))
            raise DataError(
                f"{joint_files[0].name}: no rows of language {language!r}."
                f"{did_you_mean(language, languages)} It has: {some(languages)}. "
                f"Choose one of these, or add a file {self.path(language, split)}."
            )
        raise (not_english if self._is_english() else missing)(folder, self.name, layouts, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of one split.

        Raises DataError with file and line at the first row that does not fit.
        """
        file = self.files(source, language, split)[0]
        return nonempty(self.examples(file, language, split), file.name)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count skipped rows: annotators disagreed, or the translation lost the label or answers."""
        if not (self.skip or self._is_translated(language)):
            return 0
        file = self.files(source, language, split)[0]
        return sum(
            example is None for example in CORPUS_FILES[self.kind].attempts(self, file, language, split)
        )

    def examples(self, file: File, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of a file.

        Raises DataError at the first row that does not fit.
        """
        for example in CORPUS_FILES[self.kind].attempts(self, file, language, split):
            if isinstance(example, DataError):
                raise example
            if example is not None:
                yield example

    def reading(self, file: File, language: str, split: Split) -> Reading:
        """Return the rules for reading a file.

        A blank text is an error in dev and test, but not in train.
        """
        is_original = self.kind == "tagging" and not file.plain_name.endswith((".tsv", ".txt"))
        return Reading(
            kind=self.kind,
            table=self._table(file, language, split),
            labels=self.labels,
            spelled=self.spelled,
            skip=self.skip,
            may_lack_labels=split in self.unlabelled,
            official=True,
            blank=split == "train" or self.kind == "tagging",
            prefixes=tuple(f"{name}:" for name in spellings(language)) if is_original else (),
            skip_unknown=self._is_translated(language),
        )

    def _table(self, file: File, language: str, split: Split) -> ExampleColumns:
        if self.kind == "tagging":
            return ExampleColumns(format="conll", columns=WORDS)
        selection: dict[Column, tuple[str, ...]] = {"language": tuple(spellings(language))}
        if self.split_column:
            selection = {self.split_column: (self.split_names[split],)}
        return ExampleColumns(
            format="jsonl" if file.plain_name.endswith(".jsonl") else "tsv",
            columns=self.columns,
            chosen=selection,
            optional=(*(str(column) for column in selection), "id"),
            headerless=TRANSLATED if self._is_translated(language) else HEADERLESS,
            skip_blank=False,
            lossy=self._is_translated(language),
        )

    def _is_english(self) -> bool:
        return any(layout.endswith(ENGLISH) for layout in self.layouts.get("test", ()))

    def _is_translated(self, language: str) -> bool:
        """Return whether a language is read from translations, whose rows may repeat the original texts."""
        return is_translation(language) and bool(self.translations) and not self.collection

    def _fill_layout(self, layout: str) -> str:
        return layout.replace(COLLECTION, self.collection or "{language}")

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file.

        Pairs of multilingual corpora have XTREME's layout.
        """
        files = CORPUS_FILES[self.kind]
        lines = files.lines(self, examples)
        return with_byte_order_mark(lines) if files.is_marked and not self._is_english() else lines

    def word_lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """Yield a line for each word and an empty one after each sentence.

        Raises DataError for empty words and for tags outside of the labels.
        """
        for sentence in only(TaggedSentence, examples, self.name):
            words = len(sentence.words)
            tags = len(sentence.tags)
            if words != tags or not words or not all(sentence.words):
                reason = (
                    f"{words} words {sentence.words[:6]} and {tags} tags; expected equal numbers and no "
                    f"empty word"
                )
                raise cannot_write(self.name, sentence.id, reason)
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                if tag not in self.labels:
                    reason = f"tag {tag!r}; expected one of {', '.join(sorted(self.labels))}"
                    raise cannot_write(self.name, sentence.id, reason)
                yield f"{cell(word, self.name, sentence.id)}{self.separator}{tag}"
            yield ""

    def pair_lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """Yield rows of pairs.

        English corpora have a header, and ids if any. Other corpora have no header, unless the first row
        looks like one.
        """
        english = self._is_english()
        parts = [part for part in ("id", "first", "second", "label")[not english :] if part in self.columns]
        header = "\t".join(self._column(part) for part in parts)
        if english:
            yield header
        for index, pair in enumerate(only(SentencePair, examples, self.name)):
            label = self._spelling(pair)
            texts = {"id": pair.id, "first": pair.first, "second": pair.second}
            texts["label"] = label if english else str(pair.label)
            row = [cell(texts[part], self.name, pair.id) for part in parts]
            if index == 0 and not english and not set(FIRST).isdisjoint(row):
                yield header
            yield "\t".join(row)

    def _column(self, part: str) -> str:
        column = self.columns[part]
        return column.names[0] if isinstance(column, AnyOf) else str(column)

    def _spelling(self, pair: SentencePair) -> str:
        if pair.label not in self.labels:
            reason = f"label {pair.label!r}; expected one of {', '.join(self.labels)}"
            raise cannot_write(self.name, pair.id, reason)
        label = str(pair.label)
        return next((spelling for spelling, name in self.spelled.items() if name == label), label)


Attempts = Iterator[Example | DataError | None]
"""Examples, errors of rows, or None for skipped rows."""


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """How the files of a kind of corpus are read and written."""

    attempts: Callable[[LabelledCorpus, File, str, Split], Attempts]
    lines: Callable[[LabelledCorpus, Iterable[Example]], Iterator[str]]
    is_marked: bool = True
    """Whether a text that begins with a byte order mark gets a second one."""


CORPUS_FILES: Registry[CorpusFiles] = Registry(
    {
        "pair": "isogloss.data.corpora.labelled:PAIR_FILES",
        "tagging": "isogloss.data.corpora.labelled:WORD_FILES",
    },
    features="corpus-files",
)
"""Ways to read and write official files, by kind of corpus."""


def _pairs(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:
    return labelled_rows(file, corpus.reading(file, language, split), LINES)


def _sentences(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:
    layout = ConllLayout(
        2, ends=False, hashes=False, labels=frozenset(), comment="", separator=corpus.separator
    )
    return labelled_rows(file, corpus.reading(file, language, split), FileFacts(layout=layout))


PAIR_FILES = CorpusFiles(attempts=_pairs, lines=LabelledCorpus.pair_lines)
WORD_FILES = CorpusFiles(attempts=_sentences, lines=LabelledCorpus.word_lines)


def languages_in(file: File) -> Iterator[str]:
    """Yield the languages of a file in order of appearance, or none without a language column."""
    table = ExampleColumns(
        format="tsv",
        columns={"first": AnyOf(FIRST), "language": "language"},
        optional=("language",),
        headerless=HEADERLESS,
        skip_blank=False,
    )
    seen_languages = set[str]()
    for row in rows(file, table):
        if isinstance(row, FileRow) and "language" not in row.parts:
            return
        if isinstance(row, FileRow) and row.parts["language"] not in seen_languages:
            seen_languages.add(row.parts["language"])
            yield row.parts["language"]
