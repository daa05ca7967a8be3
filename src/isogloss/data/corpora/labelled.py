"""Official corpora of labelled pairs and of tagged words: values, which one reader of labelled rows reads.

A corpus says where its files lie (``layouts``), what their columns are called, and how its labels are
spelled. Pairs stand in rows separated by tabs or a JSON object a line (.jsonl); quotes are ordinary signs.
Without a header the columns are first, second, label; in XTREME's files of translations, the first two are
repeated in the language they were written in. Words stand a line each with their tag; an empty line ends a
sentence.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import spellings
from isogloss.data.corpus import (
    ENGLISH,
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
from isogloss.data.formats.kinds import labelled_rows
from isogloss.data.formats.layouts import Layout
from isogloss.data.formats.reading import LINES, FileFacts, Reading
from isogloss.data.formats.tables import AnyOf, Column, Place, Row, Table, rows

FIRST, SECOND, LABEL = ("sentence1", "premise"), ("sentence2", "hypo", "hypothesis"), ("gold_label", "label")
"""What most headers call the columns of pairs."""

PAIRS: Mapping[str, Place] = {
    "first": AnyOf(FIRST),
    "second": AnyOf(SECOND),
    "label": AnyOf(LABEL),
    "id": "id",
}
WORDS: Mapping[str, Place] = {"word": 0, "label": -1}

HEADERLESS = {3: ("first", "second", "label"), 2: ("first", "second")}
"""XTREME removes the labels of tests."""

TRANSLATED = {**HEADERLESS, 5: ("", "", "first", "second", "label"), 4: ("", "", "first", "second")}


@dataclass(frozen=True, kw_only=True)
class LabelledCorpus:
    """A corpus of labelled pairs of texts, or of words with a tag each."""

    name: str
    tasks: tuple[str, ...]
    about: str
    url: str
    licence: str
    labels: tuple[str, ...]
    layouts: Layouts
    kind: Literal["pair", "tagging"] = "pair"
    columns: Mapping[str, Place] = field(default_factory=lambda: PAIRS)
    """The columns of pairs, by any name in use; that of the first text makes a header of a first row."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by their spelling, where it differs."""
    skip: tuple[str, ...] = ()
    """Labels of rows without agreement among annotators, which are left out and counted."""
    translations: Layouts = field(default_factory=dict)
    all_languages: Layouts = field(default_factory=dict)
    """Files of all languages, with a language column; preferred where they have the language."""
    split_column: str = ""
    """Column of the splits, where one file has all of them."""
    split_names: Mapping[Split, str] = field(default_factory=dict)
    unlabelled: tuple[Split, ...] = ()
    """Splits that may lack labels: such a file can be predicted, not scored."""
    separator: Literal["\t", " "] = "\t"
    """What stands between a word and its tag; of several spaces the last."""
    after_colon: str = ""
    collection: str = ""
    """Part of the corpus to read, where it has several."""

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file of one language, or of a translation."""
        if self.kind == "tagging":
            return paths(self.layouts, language, split)[0]
        translated = paths(self.translations, language, split) if is_translation(language) else []
        return (*translated, f"{self.name}/{split}-{language}.tsv")[0]

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of a split: the one of all languages if it has this one, else the language's own."""
        if self.translations and is_translation(language):
            return locate(folder, self.name, self.translations, language, split)
        together = folder.find(self.all_languages.get(split, ()))
        spelled = spellings(language)
        if together and any(code in spelled for code in languages_in(together[0])):  # It looks no further.
            return together
        layouts = {
            name: tuple(layout.replace("{collection}", self.collection) for layout in named)
            for name, named in self.layouts.items()
        }
        if files := folder.find(paths(layouts, language, split)):
            return files
        if together:
            codes = sorted(languages_in(together[0]))
            raise DataError(
                f"{together[0].name}: no rows of language {language!r}.{did_you_mean(language, codes)} "
                f"It has: {some(codes)}. Choose one of these, or add a file {self.path(language, split)}."
            )
        raise (not_english if self._is_english() else missing)(folder, self.name, layouts, language, split)

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of one split."""
        return source.files(self, language, split)

    def read(self, source: Source, language: str, split: Split) -> Iterator[Example]:
        """Read one split; DataError with file and line at the first row that does not fit."""
        file = self.files(source, language, split)[0]
        return nonempty(self._examples(file, language, split), file.name)

    def left_out(self, source: Source, language: str, split: Split) -> int:
        """Count the rows that are left out: annotators did not agree, or a translation lost the label."""
        if not (self.skip or self._repeats(language)):
            return 0
        file = self.files(source, language, split)[0]
        return sum(example is None for example in self._attempts(file, language, split))

    def _examples(self, file: File, language: str, split: Split) -> Iterator[Example]:
        for example in self._attempts(file, language, split):
            if isinstance(example, DataError):
                raise example
            if example is not None:
                yield example

    def _attempts(self, file: File, language: str, split: Split) -> Iterator[Example | DataError | None]:
        reading = self._reading(file, language, split)
        if self.kind == "tagging":
            return labelled_rows(file, reading, FileFacts(layout=_layout(self.separator)))
        return labelled_rows(file, reading, LINES)

    def _reading(self, file: File, language: str, split: Split) -> Reading:
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
            skip_unknown=self._repeats(language),
        )

    def _table(self, file: File, language: str, split: Split) -> Table:
        if self.kind == "tagging":
            return Table(format="conll", columns=WORDS)
        chosen: dict[Column, tuple[str, ...]] = {"language": (*spellings(language),)}
        if self.split_column:
            chosen = {self.split_column: (self.split_names[split],)}
        return Table(
            format="jsonl" if file.plain_name.endswith(".jsonl") else "tsv",
            columns=self.columns,
            chosen=chosen,
            optional=(*map(str, chosen), "id"),
            headerless=TRANSLATED if self._repeats(language) else HEADERLESS,
            skip_blank=False,
            lossy=self._repeats(language),
        )

    def _is_english(self) -> bool:
        """Return whether the official files are English only."""
        return self.layouts["test"][0].endswith(ENGLISH)

    def _repeats(self, language: str) -> bool:
        """Return whether rows may also have the texts in their original language."""
        return bool(self.translations) and is_translation(language)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield the lines of a file; pairs of multilingual corpora in XTREME's layout."""
        if self.kind == "tagging":
            return with_byte_order_mark(self._word_lines(only(TaggedSentence, examples, self.name)))
        pairs = only(SentencePair, examples, self.name)
        return (
            self._table_lines(pairs) if self._is_english() else with_byte_order_mark(self._bare_lines(pairs))
        )

    def _word_lines(self, sentences: Iterable[TaggedSentence]) -> Iterator[str]:
        for sentence in sentences:
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

    def _table_lines(self, pairs: Iterable[SentencePair]) -> Iterator[str]:
        """Yield a header and rows, with ids where the corpus has an id column."""
        parts = [part for part in ("id", "first", "second", "label") if part in self.columns]
        yield "\t".join(map(self._column, parts))
        for pair in pairs:
            texts = {"id": pair.id, "first": pair.first, "second": pair.second, "label": self._spelling(pair)}
            yield "\t".join(cell(texts[part], self.name, pair.id) for part in parts)

    def _bare_lines(self, pairs: Iterable[SentencePair]) -> Iterator[str]:
        """Yield rows without a header, unless the first pair reads like one."""
        for number, pair in enumerate(pairs):
            self._spelling(pair)
            row = [cell(text, self.name, pair.id) for text in (pair.first, pair.second, str(pair.label))]
            if number == 0 and not {*FIRST}.isdisjoint(row):
                yield "\t".join(map(self._column, ("first", "second", "label")))
            yield "\t".join(row)

    def _column(self, part: str) -> str:
        column = self.columns[part]
        return column.names[0] if isinstance(column, AnyOf) else str(column)

    def _spelling(self, pair: SentencePair) -> str:
        """Return the first spelling of the label of a pair; DataError where it has none of the labels."""
        if pair.label not in self.labels:
            reason = f"label {pair.label!r}; expected one of {', '.join(self.labels)}"
            raise cannot_write(self.name, pair.id, reason)
        label = str(pair.label)
        return next((spelling for spelling, name in self.spelled.items() if name == label), label)


def _layout(separator: str) -> Layout:
    return Layout(2, ends=False, hashes=False, labels=frozenset(), comment="", separator=separator)


def languages_in(file: File) -> Iterator[str]:
    """Yield the languages of a file in order of appearance; none without a language column."""
    table = Table(
        format="tsv",
        columns={"first": AnyOf(FIRST), "language": "language"},
        optional=("language",),
        headerless=HEADERLESS,
        skip_blank=False,
    )
    codes = set[str]()
    for row in rows(file, table):
        if isinstance(row, Row) and "language" not in row.parts:
            return
        if isinstance(row, Row) and row.parts["language"] not in codes:
            codes.add(row.parts["language"])
            yield row.parts["language"]
