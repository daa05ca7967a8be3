"""Official corpora of labelled pairs, tagged words and questions: values that one class reads and writes.

A corpus says where its files lie (``layouts``), what their columns are called, and how its labels are
spelled. Pairs stand in rows separated by tabs or a JSON object a line (.jsonl); quotes are ordinary signs.
Without a header the columns are first, second, label; in XTREME's files of translations, the first two are
repeated in the language they were written in. Words stand a line each with their tag; an empty line ends a
sentence. Questions about passages are SQuAD's JSON; their language is that of the passages.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import language_name, spellings
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
from isogloss.data.examples import Example, Question, SentencePair, TaggedSentence
from isogloss.data.files import File, Folder, some
from isogloss.data.formats.conll import ConllLayout
from isogloss.data.formats.kinds import labelled_rows
from isogloss.data.formats.questions import all_questions, write_questions
from isogloss.data.formats.reading import LINES, FileFacts, Reading
from isogloss.data.formats.tables import AnyOf, Column, ExampleColumns, FileRow, PartColumns, rows

FIRST, SECOND, LABEL = ("sentence1", "premise"), ("sentence2", "hypo", "hypothesis"), ("gold_label", "label")
"""What most headers call the columns of pairs."""

PAIRS: Mapping[str, PartColumns] = {
    "first": AnyOf(FIRST),
    "second": AnyOf(SECOND),
    "label": AnyOf(LABEL),
    "id": "id",
}
WORDS: Mapping[str, PartColumns] = {"word": 0, "label": -1}

HEADERLESS = {3: ("first", "second", "label"), 2: ("first", "second")}
"""XTREME removes the labels of tests."""

TRANSLATED = {**HEADERLESS, 5: ("", "", "first", "second", "label"), 4: ("", "", "first", "second")}


@dataclass(frozen=True, kw_only=True)
class LabelledCorpus(CorpusDefaults):
    """A corpus of labelled pairs of texts, of words with a tag each, or of questions about passages."""

    name: str
    tasks: tuple[str, ...]
    about: About
    layouts: Layouts
    labels: tuple[str, ...] = ()
    kind: Literal["pair", "tagging", "span"] = "pair"
    columns: Mapping[str, PartColumns] = field(default_factory=lambda: PAIRS)
    """The columns of pairs, by any name in use; that of the first text makes a header of a first row."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by their spelling, where it differs."""
    skip: tuple[str, ...] = ()
    """Labels of rows without agreement among annotators, which are left out and counted."""
    translations: Layouts = field(default_factory=dict)
    written: str = ""
    """Path of a file that ``write`` makes; empty: ``name/{split}-{language}.tsv``."""
    all_languages: Layouts = field(default_factory=dict)
    """Files of all languages, with a language column; preferred where they have the language."""
    split_column: str = ""
    """Column of the splits, where one file has all of them."""
    split_names: Mapping[Split, str] = field(default_factory=dict)
    unlabelled: tuple[Split, ...] = ()
    """Splits that may lack labels: such a file can be predicted, not scored."""
    separator: Literal["\t", " "] = "\t"
    """What stands between a word and its tag; of several spaces the last."""
    ids_by_language: str = ""
    """A file of all languages, whose questions' ids begin with the English name of each."""
    version: str | float = ""
    """Version in a file of questions."""
    own_rules: tuple[str, ...] = ()
    """Languages for which the corpus's script has rules to compare answers by."""
    collection: str = ""
    """Part of the corpus to read, where layouts have ``{collection}``; of MLQA the language of the questions,
    which is that of the passages where none is named."""

    def __repr__(self) -> str:
        """Return name, kind and tasks in a line."""
        return f"LabelledCorpus({self.name!r}, {self.kind}, tasks {', '.join(self.tasks)})"

    def choose(self, collection: str) -> "LabelledCorpus":
        """Return the part that a recipe names after a colon ("mlqa:en"); ConfigError for none."""
        layouts = (layout for layouts in self.layouts.values() for layout in layouts)
        if not any(COLLECTION in layout for layout in layouts):
            super().choose(collection)
        return replace(self, collection=collection)

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file of one language, or of a translation."""
        translated = paths(self.translations, language, split) if self._is_translated(language) else []
        written = self._filled(self.written or f"{self.name}/{{split}}-{{language}}.tsv")
        return (*translated, *paths({split: (written.replace("{split}", split),)}, language, split))[0]

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of a split: the one of all languages if it has this one, else the language's own."""
        if self._is_translated(language):
            return locate(folder, self.name, self.translations, language, split)
        together = folder.find(self.all_languages.get(split, ()))
        spelled = spellings(language)
        if together and any(code in spelled for code in languages_in(together[0])):  # It looks no further.
            return together
        layouts = {name: tuple(map(self._filled, named)) for name, named in self.layouts.items()}
        if files := folder.find(paths(layouts, language, split)):
            return files
        if together:
            codes = sorted(languages_in(together[0]))
            raise DataError(
                f"{together[0].name}: no rows of language {language!r}.{did_you_mean(language, codes)} "
                f"It has: {some(codes)}. Choose one of these, or add a file {self.path(language, split)}."
            )
        raise (not_english if self._is_english() else missing)(folder, self.name, layouts, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[Example]:
        """Read one split; DataError with file and line at the first row that does not fit."""
        file = self.files(source, language, split)[0]
        return nonempty(self._examples(file, language, split), file.name)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count rows that are left out: annotators did not agree, or a translation lost label or answers."""
        if not (self.skip or self._is_translated(language)):
            return 0
        file = self.files(source, language, split)[0]
        return sum(example is None for example in _FORMATS[self.kind].attempts(self, file, language, split))

    def _examples(self, file: File, language: str, split: Split) -> Iterator[Example]:
        for example in _FORMATS[self.kind].attempts(self, file, language, split):
            if isinstance(example, DataError):
                raise example
            if example is not None:
                yield example

    def reading(self, file: File, language: str, split: Split) -> Reading:
        """Return how a file is read; a blank text is an error in a row to measure on."""
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
            prefixes=tuple(f"{code}:" for code in spellings(language)) if is_original else (),
            skip_unknown=self._is_translated(language),
        )

    def _table(self, file: File, language: str, split: Split) -> ExampleColumns:
        if self.kind == "tagging":
            return ExampleColumns(format="conll", columns=WORDS)
        chosen: dict[Column, tuple[str, ...]] = {"language": (*spellings(language),)}
        if self.split_column:
            chosen = {self.split_column: (self.split_names[split],)}
        return ExampleColumns(
            format="jsonl" if file.plain_name.endswith(".jsonl") else "tsv",
            columns=self.columns,
            chosen=chosen,
            optional=(*map(str, chosen), "id"),
            headerless=TRANSLATED if self._is_translated(language) else HEADERLESS,
            skip_blank=False,
            lossy=self._is_translated(language),
        )

    def _is_english(self) -> bool:
        return any(layout.endswith(ENGLISH) for layout in self.layouts.get("test", ()))

    def _is_translated(self, language: str) -> bool:
        """Return whether a language is read from translations, whose rows may repeat the original texts."""
        return is_translation(language) and bool(self.translations) and not self.collection

    def _filled(self, layout: str) -> str:
        return layout.replace(COLLECTION, self.collection or "{language}")

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file; pairs of multilingual corpora in XTREME's layout."""
        lines = _FORMATS[self.kind].lines(self, examples)
        return lines if self.kind == "span" or self._is_english() else with_byte_order_mark(lines)

    def question_lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """Yield the lines of a JSON file."""
        return write_questions(only(Question, examples, self.name), version=self.version)

    def word_lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """Yield a line for each word, an empty one after each sentence."""
        for sentence in only(TaggedSentence, examples, self.name):
            words, tags = len(sentence.words), len(sentence.tags)
            if words != tags or not words or not all(sentence.words):
                reason = (
                    f"{words} words {sentence.words[:6]} and {tags} tags; expected as many, no empty word"
                )
                raise cannot_write(self.name, sentence.id, reason)
            for word, tag in zip(sentence.words, sentence.tags, strict=True):
                if tag not in self.labels:
                    reason = f"tag {tag!r}; expected one of {', '.join(sorted(self.labels))}"
                    raise cannot_write(self.name, sentence.id, reason)
                yield f"{cell(word, self.name, sentence.id)}{self.separator}{tag}"
            yield ""

    def pair_lines(self, examples: Iterable[Example]) -> Iterator[str]:
        """Yield rows: of English with a header and ids, if any; else bare, unless the first is like one."""
        english = self._is_english()
        parts = [part for part in ("id", "first", "second", "label")[not english :] if part in self.columns]
        if english:
            yield "\t".join(map(self._column, parts))
        for number, pair in enumerate(only(SentencePair, examples, self.name)):
            label = self._spelling(pair)
            texts = {"id": pair.id, "first": pair.first, "second": pair.second}
            texts["label"] = label if english else str(pair.label)
            row = [cell(texts[part], self.name, pair.id) for part in parts]
            if number == 0 and not english and not {*FIRST}.isdisjoint(row):
                yield "\t".join(map(self._column, parts))
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
"""Examples, errors of rows, None for a row that is left out."""


def _pairs(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:
    return labelled_rows(file, corpus.reading(file, language, split), LINES)


def _sentences(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:
    layout = ConllLayout(
        2, ends=False, hashes=False, labels=frozenset(), comment="", separator=corpus.separator
    )
    return labelled_rows(file, corpus.reading(file, language, split), FileFacts(layout=layout))


def _questions(corpus: LabelledCorpus, file: File, language: str, split: Split) -> Attempts:  # noqa: ARG001
    """Yield the questions of a language; None for one that lost its answers in translation."""
    written_in, path = language.rpartition("-")[2], file.plain_name.replace("\\", "/")
    has_all = corpus.ids_by_language and path.endswith(corpus.ids_by_language)
    start = f"{language_name(language).lower()}-" if has_all else ""
    questions = all_questions(
        file,
        language=written_in if written_in in corpus.own_rules else "",
        answers="translated" if is_translation(language) else "needed",
    )
    for question in questions:
        if question.id.startswith(start):
            yield question if question.answers else None


class _Format(NamedTuple):
    attempts: Callable[[LabelledCorpus, File, str, Split], Attempts]
    lines: Callable[[LabelledCorpus, Iterable[Example]], Iterator[str]]


_FORMATS = {
    "pair": _Format(_pairs, LabelledCorpus.pair_lines),
    "tagging": _Format(_sentences, LabelledCorpus.word_lines),
    "span": _Format(_questions, LabelledCorpus.question_lines),
}


def languages_in(file: File) -> Iterator[str]:
    """Yield the languages of a file in order of appearance; none without a language column."""
    table = ExampleColumns(
        format="tsv",
        columns={"first": AnyOf(FIRST), "language": "language"},
        optional=("language",),
        headerless=HEADERLESS,
        skip_blank=False,
    )
    codes = set[str]()
    for row in rows(file, table):
        if isinstance(row, FileRow) and "language" not in row.parts:
            return
        if isinstance(row, FileRow) and row.parts["language"] not in codes:
            codes.add(row.parts["language"])
            yield row.parts["language"]
