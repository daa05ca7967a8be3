"""A corpus defined by a description instead of code: its files, their format, and their columns.

A row of a file (``tables``) becomes an example by the kind of corpus (``kinds``).
"""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from isogloss.core.checksums import stamp
from isogloss.core.errors import DataError, did_you_mean
from isogloss.core.languages import canonical_language, language_of_variety
from isogloss.core.plug_ins import package_named
from isogloss.core.tag_schemes import OUTSIDE, WORDS, are_bio, decide_scheme, find_spans
from isogloss.core.untrusted import is_there
from isogloss.data.corpora.own import OwnCorpus
from isogloss.data.corpus import SPLITS, About, Source, Split, nonempty, not_there, only, two_languages
from isogloss.data.data_sources import HUB, find_data_source, give_advice
from isogloss.data.examples import Example, Question, Translation
from isogloss.data.files import DiskFolder, File, Folder, some
from isogloss.data.formats.corpus_kinds import KINDS, parts_of
from isogloss.data.formats.formats import FORMATS, AnyOf, Column, Columns, ExampleColumns
from isogloss.data.formats.kinds import labelled_rows
from isogloss.data.formats.reading import CorpusRow, FileFacts, Predicts, Reading, cells_of
from isogloss.data.formats.tables import FileRow, rows
from isogloss.features.described_corpora.facts import facts_of
from isogloss.features.described_corpora.labelled_lines import LABEL, add_label, join_labels
from isogloss.features.described_corpora.shipped_corpora import SHIPPED

BadRows = Literal["refuse", "skip"]

NLI = {"entailment", "neutral", "contradiction"}
"""Labels of pairs that make a corpus one of NLI."""


@dataclass(frozen=True, kw_only=True)
class DescribedCorpus(OwnCorpus):
    """A corpus with described files, format and columns."""

    name: str
    kind: str
    paths: Mapping[Split, str]
    """Path of each split's file below the folder, with {language}."""
    format: str
    columns: Columns
    separator: str | None = None
    """Separator of the cells of CSV. Default: a comma."""
    predicts: Predicts = "label"
    """Label of a text or pair: one label, any number of labels, or a number. For words: a label or a
    lemma."""
    between: str = ","
    """Separator of the labels in a cell."""
    labels: tuple[str, ...] = ()
    """The inventory, empty for bitext and raw text. For choices, the names of the options in their order, or
    empty if they are counted from 0."""
    listed: tuple[str, ...] = ()
    """Labels in the order of the description. Numbers in a file are positions in this list."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by their spelling in files, where it differs."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Replacement of {language}, by language. Bitext in lines has one for each single language."""
    where: Mapping[Split, Mapping[str, str]] = field(default_factory=dict)
    """Required texts of columns by split, with {language}. Other rows are skipped."""
    skip: tuple[str, ...] = ()
    """Spellings of labels whose rows are skipped."""
    bad_rows: BadRows = "refuse"
    """Handling of rows that do not fit: refuse raises an error, skip skips them."""
    comments: str | None = None
    """Beginning of comment lines in CoNLL. Default: decided from each file."""
    scheme: str = ""
    """Scheme of tags. Default: decided from each file."""
    untrained: tuple[str, ...] = ()
    """Labels that are missing in all training data."""
    label_paths: Mapping[Split, str] = field(default_factory=dict)
    """Path of the file with the labels of each split's texts, line by line. Default: labels are in
    the rows."""
    has_offsets: bool = False
    """Whether rows have texts with spans marked by offsets."""
    own_rules: tuple[str, ...] = ()
    """Languages in which answers are compared by the rules of MLQA's script."""
    hub: str = ""
    """Dataset of the hub, as owner/name@commit. Paths are then config/split."""
    folder: str = ""
    """Folder of the description, in which files are searched first, before the data folder."""
    assumed: bool = False
    """Whether all of its files are absent. It is then assumed to have any language, unless it lists some."""
    about: About = field(default=About())

    def __repr__(self) -> str:
        """Return name, kind, numbers of labels and languages in a line."""
        languages = f"{len(self.languages)} languages" if self.languages else "any language"
        return f"DescribedCorpus({self.name!r:.80}, {self.kind}, {len(self.labels)} labels, {languages})"

    @property
    def tasks(self) -> tuple[str, ...]:
        """Task of its labels, "bitext" or "text". Pairs with NLI's labels are NLI."""
        if self.kind == "pair" and self.predicts == "label" and set(self.labels) == NLI:
            return ("nli",)
        if self.kind != "tagging" or self.predicts != "label":
            return (KINDS[self.kind].tasks[self.predicts],)
        return ("span-tagging" if self.scheme != WORDS and are_bio(self.labels) else "word-tagging",)

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file written by ``write``."""
        return f"{self.name}/{split}-{language}.jsonl"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of one split.

        Raises DataError, naming the existing files, if none exists.
        """
        files = self._find_files(folder, language, split)
        if not files:
            raise self._missing(folder, language, split)
        return files

    def files(self, source: Source | None, language: str, split: Split) -> list[File]:
        """Return the files of one split, next to the description or else below the data folder.

        Raises DataError, naming the existing files, if none exists.
        """
        if self.aligned:
            two_languages(language)
        folders = [DiskFolder(Path(self.folder))]
        files = self._find_files(folders[0], language, split)
        if not files and source and (folder := source.folder(self.name, language.split("-"))):
            folders.append(folder)
            files = self._find_files(folder, language, split)
        if not files:
            raise self._missing(self._folder_with_files(folders), language, split)
        return [replace(file, fingerprint=_combine_fingerprint(file, self._digest)) for file in files]

    def is_same(self, namesake: OwnCorpus) -> bool:
        """Return whether a corpus of its name is the same, except for its folder.

        Languages and labels of a description may differ between data folders, and are not known if its files
        are absent.
        """
        if not isinstance(namesake, DescribedCorpus):
            return False
        if namesake.folder == self.folder:
            from_files = {name: getattr(self, name) for name in ("languages", "labels", "untrained")}
            namesake = replace(namesake, **from_files)
        return namesake.assumed != self.assumed or replace(namesake, folder=self.folder) == self

    def count_options(self) -> int:
        """Return the number of columns with options of a choice."""
        return len(cells_of(self.columns["options"]))

    def state(self) -> str:
        """Return a digest of its description and of the states of all its files next to the description."""
        values = {
            member.name: getattr(self, member.name) for member in fields(self) if member.name != "about"
        }
        text = json.dumps(values, sort_keys=True, default=repr)
        return f"{sha256(text.encode()).hexdigest()[:16]}-{stamp(self._files_beside())}"

    def _files_beside(self) -> list[Path]:
        if self.hub or not is_there(Path(self.folder)):
            return []
        patterns = [*self.paths.values(), *self.label_paths.values()]
        spellings = self.languages.values()
        names = [pattern.replace("{language}", spelling) for pattern in patterns for spelling in spellings]
        folder = DiskFolder(Path(self.folder))
        return [Path(file.name).absolute() for name in dict.fromkeys(names) for file in folder.find([name])]

    def _find_files(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Return the files of a split, or none unless all exist.

        Bitext in lines has a file for each language.
        """
        if self.hub:
            return [find_data_source(HUB).open_split(self.hub, path) for path in self._paths(language, split)]
        paths = self._paths(language, split)
        files_by_path = [self._find_rows(folder, path, language, split) for path in paths]
        return list(chain.from_iterable(files_by_path)) if all(files_by_path) else []

    def _find_rows(self, folder: Folder, path: str, language: str, split: Split) -> list[File]:
        """Return the files of a path, with texts in lines joined with their labels."""
        if LABEL in path:
            spellings = self.spelled or self.labels
            files_by_label = {label: folder.find([path.replace(LABEL, label)]) for label in spellings}
            return [add_label(file, label) for label, files in files_by_label.items() for file in files]
        texts = folder.find([path])
        if split not in self.label_paths:
            return texts
        labels = folder.find([self.label_paths[split].replace("{language}", self._spelling(language))])
        if not labels and split != "train":
            return [add_label(file, "") for file in texts]
        return [join_labels(*files) for files in zip(texts, labels, strict=False)]

    def _paths(self, language: str, split: Split) -> list[str]:
        sides = language.split("-") if self.aligned else [language]
        if split not in self.paths:
            return []
        return [self.paths[split].replace("{language}", self._spelling(side)) for side in sides]

    def _folder_with_files(self, folders: Sequence[Folder]) -> Folder:
        """Return the first folder that has any of its files, or the last folder."""
        for folder in folders:
            if any(
                self._find_files(folder, language, split) for language in self.languages for split in SPLITS
            ):
                return folder
        return folders[-1]

    def _missing(self, folder: Folder, language: str, split: Split) -> DataError:
        paths = self._paths(language, split)
        search = f"Paths searched: {some(paths)} (also .gz, .xz)." if paths else f"It names no {split} file."
        available = {
            name: [part for part in self.languages if self._find_files(folder, part, name)] for name in SPLITS
        }
        error = not_there(folder, self.name, language, split, available=available, search=search)
        return DataError(f"{error} {give_advice(self.name, language)}") if self.is_shipped else error

    @property
    def is_shipped(self) -> bool:
        """Whether its description comes with the package."""
        return self.folder == str(SHIPPED)

    @property
    def aligned(self) -> bool:
        """Whether it is bitext with a file of lines for each language, so any two languages are a pair."""
        return self.kind == "bitext" and self.format == "lines"

    def _spelling(self, language: str) -> str:
        """Return the replacement of {language}.

        A language with only one script or region (``sw_KE``) is also found without it (``sw``). Raises
        DataError for a language that the corpus lacks.
        """
        if self.assumed and not self.languages:
            return language
        names = (language, canonical_language(language))
        exact = [self.languages[name] for name in names if name in self.languages]
        varieties = [
            spelling
            for name, spelling in self.languages.items()
            if "_" not in language and language_of_variety(name) == language_of_variety(language)
        ]
        if exact or len(varieties) == 1:
            return (exact or varieties)[0]
        raise DataError(
            f"corpus {self.name!r} has no language {language!r}.{did_you_mean(language, self.languages)} "
            f"It has: {some(self.languages)}. Choose one, or add it to the description."
        )

    def has(self, language: str, split: Split) -> bool:
        """Return whether the description states a path for a split.

        Raises DataError for a language that it lacks.
        """
        return bool(self._paths(language, split))

    def is_there(self, folder: Folder, language: str, split: Split) -> bool:
        """Return whether a split has a file."""
        return bool(self._find_files(folder, language, split))

    def _reading(self, language: str, split: Split) -> Reading:
        selection: dict[Column, tuple[str, ...]] = {
            column: (text.replace("{language}", self._spelling(language)),)
            for column, text in self.where.get(split, {}).items()
        }
        return self._reading_of(selection, may_lack_labels=split != "train")

    def _reading_of(
        self, selection: Mapping[Column, tuple[str, ...]], *, may_lack_labels: bool = False
    ) -> Reading:
        separator = self.separator or ","
        table = ExampleColumns(
            format=self.format,
            columns=self.columns,
            chosen=selection,
            separator=separator,
            has_offsets=self.has_offsets,
        )
        names = (
            "kind",
            "labels",
            "listed",
            "spelled",
            "skip",
            "predicts",
            "between",
            "comments",
            "scheme",
        )
        values = {name: getattr(self, name) for name in names}
        return Reading(table=table, may_lack_labels=may_lack_labels, **values)

    @property
    def _digest(self) -> str:
        """A digest of all fields that change the examples."""
        silent = ("listed", "folder", "assumed", "about", "languages", "untrained")
        values = {
            member.name: getattr(self, member.name) for member in fields(self) if member.name not in silent
        }
        facts = {name: value for name, value in values.items() if value != _ADDED.get(name, MISSING)}
        if package := package_named("formats", self.format):
            facts["package"] = package
        if self.kind == "tagging" or any(label.isdecimal() for label in self.labels):
            # Schemes and numbers are decided from whole files, except for shipped descriptions.
            facts["reading"] = 2 if self.is_shipped else 3
        return sha256(json.dumps(facts, sort_keys=True, default=_as_json).encode()).hexdigest()[:12]

    def read(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of one split.

        Raises DataError with file and line for rows that do not fit, after the last row.
        """
        return nonempty(self.stream(source, language, split), self.files(source, language, split)[0].name)

    def stream(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of a split, which may be empty.

        A file of several languages may lack a split of one of them.
        """
        yield from self._fitting(self.attempts(source, language, split))

    def attempts(self, source: Source | None, language: str, split: Split) -> Iterator[Example | DataError]:
        """Yield the examples of a split and the errors of rows that do not fit."""
        files = self.files(source, language, split)
        if self.aligned:
            yield from self._translations(*files)
            return
        has_own_rules = language in self.own_rules
        for file in files:
            for attempt in self._attempts(file, self._reading(language, split)):
                if has_own_rules and isinstance(attempt, Question):
                    yield replace(attempt, language=language)
                else:
                    yield attempt

    def lacks_labels(self, source: Source | None, language: str, split: Split) -> bool:
        """Return whether no row of a split has a label.

        Raises DataError if the split does not exist.
        """
        reading = self._reading(language, split)
        return any(self._facts(file, reading).unlabelled for file in self.files(source, language, split))

    def remarks(self, source: Source | None, language: str, split: Split) -> Iterator[str]:
        """Yield remarks on decisions about the files of a split, and on the number of skipped rows."""
        for file in () if self.aligned else self.files(source, language, split):
            reading = self._reading(language, split)
            facts = list(self._facts(file, reading).remarks)
            if self.bad_rows == "skip":
                errors = sum(isinstance(attempt, DataError) for attempt in self._attempts(file, reading))
                facts += [f"{errors:,} rows that do not fit skipped"] if errors else []
            if facts:
                yield f"{self.name} {language} {split}: {', '.join(facts)}."
        if self.untrained and split != "train":
            # Labels of words are a fixed inventory, so similar names are not misspellings.
            is_open = self.kind != "tagging"
            train_labels = [label for label in self.labels if is_open and label not in self.untrained]
            names = some(label + did_you_mean(label, train_labels) for label in self.untrained)
            end = "" if names.endswith("?") else "."
            yield f"{self.name}: labels that no training data has: {names}{end}"

    def _facts(self, file: File, reading: Reading) -> FileFacts:
        """Return the facts of a file, decided once per content of the file."""
        selection = reading.table.chosen.items()
        key = (file.name, file.fingerprint(), self._digest, reading.may_lack_labels, *selection)
        if key not in _FACTS or not key[1]:
            while len(_FACTS) >= MOST_FACTS:
                _FACTS.pop(next(iter(_FACTS)), None)
            _FACTS[key] = facts_of(file, reading)
        return _FACTS[key]

    def _fitting(self, attempts: Iterable[Example | DataError]) -> Iterator[Example]:
        """Yield examples, then raise DataError for rows that do not fit, unless these are skipped."""
        first_error = None
        error_count = 0
        for example in attempts:
            if not isinstance(example, DataError):
                yield example
            elif self.bad_rows == "refuse":
                first_error = first_error or example
                error_count += 1
        if first_error is not None:
            more = f" {error_count - 1:,} more rows do not fit: isogloss corpus check lists them."
            raise DataError(f"{first_error}{more if error_count > 1 else ''}")

    def _translations(self, *files: File) -> Iterator[Translation | DataError]:
        """Yield the lines of two files as pairs.

        Raises DataError if the files have different numbers of lines.
        """
        reading = self._reading_of({})
        counts = [sum(1 for _ in rows(file, reading.table)) for file in files]
        if counts[0] != counts[1]:  # The missing line is unknown, so all later pairs might be wrong.
            shorter, longer = files if counts[0] < counts[1] else reversed(files)
            expectation = f"as many lines as {longer.name} has ({max(counts):,})"
            raise shorter.broken(min(counts), "the last line", expectation, "Restore the missing lines")
        for index, sides in enumerate(zip(*(rows(file, reading.table) for file in files), strict=True)):
            source, target = (
                CorpusRow(reading, file, cast(FileRow, row), "")
                for file, row in zip(files, sides, strict=True)
            )
            try:
                yield Translation(id=str(index), first=source.text("first"), second=target.text("second"))
            except DataError as error:
                yield error

    def examples(self, file: File) -> Iterator[Example]:
        """Yield the examples of a file."""
        return self._fitting(self._attempts(file, self._reading_of({})))

    def _attempts(self, file: File, reading: Reading) -> Iterator[Example | DataError]:
        read_examples = FORMATS[self.format].read_examples
        if read_examples is not None:
            return read_examples(file, self.skip)
        attempts = labelled_rows(file, reading, self._facts(file, reading))
        return (attempt for attempt in attempts if attempt is not None)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield JSON lines whose keys are the parts of an example."""
        for example in only(KINDS[self.kind].example, examples, self.name):
            yield json.dumps(parts_of(example, self.labels), ensure_ascii=False)


_ADDED = {
    "where": {},
    "predicts": "label",
    "between": ",",
    "hub": "",
    "bad_rows": "refuse",
    "has_offsets": False,
    "label_paths": {},
    "own_rules": (),
    "comments": None,
    "scheme": "",
}
"""Neutral values of later fields. Fields with these values do not change older fingerprints."""


def _as_json(value: Any) -> object:
    """Return a mapping as a dict, and a column of several names as its first name.

    The first name used to be the only one, so digests stay the same.
    """
    return value.names[0] if isinstance(value, AnyOf) else dict(value)


def _combine_fingerprint(file: File, digest: str) -> Callable[[], str]:
    return lambda: f"{file.fingerprint()}-{digest}"


_FACTS: dict[Hashable, FileFacts] = {}
"""Facts of the files read by this process, by their names and states."""

MOST_FACTS = 1_000


def inventory(file_tags: Iterable[str], listed_labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a tagging corpus, given the tags in a file and the labels of the description.

    BIO tags are O, then B- and I- of each type, in the order of the listed types (or tags), or else sorted.
    """
    tags = set(file_tags)
    if not are_bio(tags):
        return tuple(listed_labels) or tuple(sorted(tags))
    types = list_types(listed_labels) or sorted({tag[2:] for tag in tags - {OUTSIDE}})
    return (OUTSIDE, *(f"{mark}-{type_name}" for type_name in types for mark in "BI"))


def list_types(labels: Sequence[str]) -> list[str]:
    """Return the types of spans in an inventory of types, or of tags in any scheme."""
    scheme = decide_scheme(labels)
    if not scheme.marks_spans:
        return list(dict.fromkeys(tag for tag in labels if tag != OUTSIDE))
    return list(dict.fromkeys(span.type for tag in labels for span in find_spans([tag], scheme)))
