"""A corpus that is described, not programmed: which files, which format, which columns hold what.

A row of a file (``tables``) becomes an example by the kind of corpus (``kinds``).
"""

import json
import tomllib
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from hashlib import sha256
from importlib.resources import files as package_files
from itertools import chain
from pathlib import Path
from typing import Any, Literal, cast

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.core.languages import canonical_language, language_of_variety
from isogloss.core.tag_schemes import OUTSIDE, WORDS, are_bio, decide_scheme, find_spans
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpus import SPLITS, About, CorpusDefaults, Source, Split, nonempty, not_there, only
from isogloss.data.examples import Example, Question, Translation
from isogloss.data.files import DiskFolder, File, Folder, some
from isogloss.data.formats.kinds import KINDS, labelled_rows, parts_of
from isogloss.data.formats.labelled_lines import LABEL, add_label, join_labels
from isogloss.data.formats.parallel_text import two_languages
from isogloss.data.formats.questions import read_questions
from isogloss.data.formats.reading import (
    NO_ANSWER,
    CorpusRow,
    FileFacts,
    KindName,
    Predicts,
    Reading,
    facts_of,
)
from isogloss.data.formats.tables import AnyOf, Column, Columns, ExampleColumns, FileFormat, FileRow, rows
from isogloss.data.hub_rows import hub_file

BadRows = Literal["refuse", "skip"]

NLI = {"entailment", "neutral", "contradiction"}
"""The labels that make pairs a corpus of NLI."""


@dataclass(frozen=True, kw_only=True)
class DescribedCorpus(CorpusDefaults):
    """A corpus whose files, format and columns somebody described."""

    name: str
    kind: KindName
    paths: Mapping[Split, str]
    """Path of each split's file below the folder, with {language}."""
    format: FileFormat
    columns: Columns
    separator: str | None = None
    """Separator of the cells of CSV; None: a comma."""
    predicts: Predicts = "label"
    """Whether a text or pair has one label, many (or none), or a number; a word a label or a lemma."""
    between: str = ","
    """Separator of the labels in a cell."""
    labels: tuple[str, ...] = ()
    """The inventory; none for bitext and raw text. Of choices the names of the options, in their order; none
    where they are counted from 0."""
    listed: tuple[str, ...] = ()
    """The labels in the order of the description. Numbers in a file are positions in this list."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Labels by their spelling in files, where it differs."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """What replaces {language}, by language; for bitext of lines by each single language."""
    where: Mapping[Split, Mapping[str, str]] = field(default_factory=dict)
    """What the rows of a split have in these columns, with {language}; other rows are skipped."""
    skip: tuple[str, ...] = ()
    """Spellings of labels whose rows are left out."""
    bad_rows: BadRows = "refuse"
    """Whether rows that do not fit are an error or left out."""
    comments: str | None = None
    """What the comment lines of CoNLL begin with; None: decided from each file."""
    scheme: str = ""
    """The scheme of tags; empty: decided from each file."""
    untrained: tuple[str, ...] = ()
    """Labels that no training data has."""
    label_paths: Mapping[Split, str] = field(default_factory=dict)
    """Path of the file with the labels of each split's texts, line by line; empty: labels are in the rows."""
    has_offsets: bool = False
    """Whether rows have texts with spans that are marked by offsets."""
    own_rules: tuple[str, ...] = ()
    """Languages in which answers are compared by the rules of MLQA's script."""
    hub: str = ""
    """The dataset of the hub whose rows are read, owner/name@commit; paths are then config/split."""
    folder: str = ""
    """Where the files lie: the folder of the description; else below the data folder."""
    assumed: bool = False
    """Whether none of its files is here: it is then assumed to have any language, unless it names some."""
    about: About = field(default=About())

    def __repr__(self) -> str:
        """Return name, kind, numbers of labels and languages in a line."""
        languages = f"{len(self.languages)} languages" if self.languages else "any language"
        return f"DescribedCorpus({self.name!r:.80}, {self.kind}, {len(self.labels)} labels, {languages})"

    @property
    def tasks(self) -> tuple[str, ...]:
        """The task of its labels, "bitext" or "text"; that of pairs with NLI's labels is NLI."""
        if self.kind == "pair" and self.predicts == "label" and {*self.labels} == NLI:
            return ("nli",)
        if self.kind != "tagging" or self.predicts != "label":
            return (KINDS[self.kind].tasks[self.predicts],)
        return ("span-tagging" if self.scheme != WORDS and are_bio(self.labels) else "word-tagging",)

    def path(self, language: str, split: Split) -> str:
        """Return the path of a file that ``write`` makes."""
        return f"{self.name}/{split}-{language}.jsonl"

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the file of one split; DataError, naming what exists, for none."""
        files = self._in(folder, language, split)
        if not files:
            raise self._missing(folder, language, split)
        return files

    def files(self, source: Source | None, language: str, split: Split) -> list[File]:
        """Return the file of one split, next to the description or else below the data folder."""
        if self.aligned:
            two_languages(language)
        folders = [DiskFolder(Path(self.folder))]
        files = self._in(folders[0], language, split)
        if not files and source and (folder := source.folder(self.name, language.split("-"))):
            folders.append(folder)
            files = self._in(folder, language, split)
        if not files:
            raise self._missing(next(filter(self._holds, folders), folders[-1]), language, split)
        return [replace(file, fingerprint=_with(file, self._described)) for file in files]

    def _in(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Return the file of a split, of bitext in lines one a language; none unless all are there."""
        if self.hub:
            return [hub_file(self.hub, path) for path in self._paths(language, split)]
        paths = self._paths(language, split)
        by_path = [self._find_rows(folder, path, language, split) for path in paths]
        return list(chain(*by_path)) if all(by_path) else []

    def _find_rows(self, folder: Folder, path: str, language: str, split: Split) -> list[File]:
        """Return the files of a path; texts in lines with their labels."""
        if LABEL in path:
            spellings = self.spelled or self.labels
            by_label = {label: folder.find([path.replace(LABEL, label)]) for label in spellings}
            return [add_label(file, label) for label, files in by_label.items() for file in files]
        texts = folder.find([path])
        if split not in self.label_paths:
            return texts
        labels = folder.find([self.label_paths[split].replace("{language}", self._spelled(language))])
        if not labels and split != "train":
            return [add_label(file, "") for file in texts]
        return [join_labels(*files) for files in zip(texts, labels, strict=False)]

    def _paths(self, language: str, split: Split) -> list[str]:
        sides = language.split("-") if self.aligned else [language]
        spelled = map(self._spelled, sides if split in self.paths else ())
        return [self.paths[split].replace("{language}", text) for text in spelled]

    def _holds(self, folder: Folder) -> bool:
        """Return whether any of its files is there."""
        return any(self._in(folder, code, split) for code in self.languages for split in SPLITS)

    def _missing(self, folder: Folder, language: str, split: Split) -> DataError:
        paths = self._paths(language, split)
        looked = f"Looked for {some(paths)} (also .gz, .xz)." if paths else f"It names no {split} file."
        available = {
            name: [code for code in self.languages if self._in(folder, code, name)] for name in SPLITS
        }
        error = not_there(folder, self.name, language, split, available=available, looked=looked)
        return DataError(f"{error} {fetching(self.name, language)}") if self.is_shipped else error

    @property
    def is_shipped(self) -> bool:
        """Whether its description comes with the package."""
        return self.folder == str(DESCRIPTIONS)

    @property
    def aligned(self) -> bool:
        """Whether it is bitext whose every language is a file of lines: any two of them are a pair."""
        return self.kind == "bitext" and self.format == "lines"

    def _spelled(self, language: str) -> str:
        """Return what stands for {language}.

        A language that is there with one script or region (``sw_KE``) is found without (``sw``).
        """
        if self.assumed and not self.languages:
            return language
        codes = (language, canonical_language(language))
        exact = [self.languages[code] for code in codes if code in self.languages]
        plain = [
            spelled
            for code, spelled in self.languages.items()
            if "_" not in language and language_of_variety(code) == language_of_variety(language)
        ]
        if exact or len(plain) == 1:
            return (exact or plain)[0]
        raise DataError(
            f"corpus {self.name!r} has no language {language!r}.{did_you_mean(language, self.languages)} "
            f"It has: {some(self.languages)}. Choose one, or add it to the description."
        )

    def has(self, language: str, split: Split) -> bool:
        """Return whether it says where a split is; DataError for a language that it does not have."""
        return bool(self._paths(language, split))

    def is_there(self, folder: Folder, language: str, split: Split) -> bool:
        """Return whether a split has a file."""
        return bool(self._in(folder, language, split))

    def _reading(self, language: str, split: Split) -> Reading:
        chosen: dict[Column, tuple[str, ...]] = {
            column: (text.replace("{language}", self._spelled(language)),)
            for column, text in self.where.get(split, {}).items()
        }
        return self._reading_of(chosen, may_lack_labels=split != "train")

    def _reading_of(
        self, chosen: Mapping[Column, tuple[str, ...]], *, may_lack_labels: bool = False
    ) -> Reading:
        separator = self.separator or ","
        table = ExampleColumns(
            format=self.format,
            columns=self.columns,
            chosen=chosen,
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
    def _described(self) -> str:
        """A digest of everything that changes what is read."""
        silent = ("listed", "folder", "assumed", "about", "languages", "untrained")
        values = {
            member.name: getattr(self, member.name) for member in fields(self) if member.name not in silent
        }
        facts = {name: value for name, value in values.items() if value != _ADDED.get(name, MISSING)}
        if self.kind == "tagging" or any(label.isdecimal() for label in self.labels):
            # Schemes and numbers are decided from whole files. Files of shipped descriptions are plain.
            facts["reading"] = 2 if self.is_shipped else 3
        return sha256(json.dumps(facts, sort_keys=True, default=_as_json).encode()).hexdigest()[:12]

    def read(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Read one split; DataError with file and line where rows do not fit, after the last one."""
        return nonempty(self.stream(source, language, split), self.files(source, language, split)[0].name)

    def stream(self, source: Source | None, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of a split, maybe none: a file of several languages may lack a split of one."""
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
        """Return whether no row of a split has a label; DataError where the split is not there."""
        reading = self._reading(language, split)
        return any(self._facts(file, reading).unlabelled for file in self.files(source, language, split))

    def remarks(self, source: Source | None, language: str, split: Split) -> Iterator[str]:
        """Yield what was decided about the files of a split, and how many of its rows are left out."""
        for file in () if self.aligned else self.files(source, language, split):
            reading = self._reading(language, split)
            facts = [*self._facts(file, reading).remarks]
            if self.bad_rows == "skip":
                bad = sum(isinstance(attempt, DataError) for attempt in self._attempts(file, reading))
                facts += [f"{bad:,} rows that do not fit left out"] if bad else []
            yield from [f"{self.name} {language} {split}: {', '.join(facts)}."] if facts else []
        if self.untrained and split != "train":
            # Labels of words are a fixed inventory: similar names are no misspelled ones.
            is_open = self.kind != "tagging"
            trained = [label for label in self.labels if is_open and label not in self.untrained]
            names = some(label + did_you_mean(label, trained) for label in self.untrained)
            end = "" if names.endswith("?") else "."
            yield f"{self.name}: labels that no training data has: {names}{end}"

    def _facts(self, file: File, reading: Reading) -> FileFacts:
        """Return what a file is, which is decided once as long as it does not change."""
        chosen = reading.table.chosen.items()
        key = (file.name, file.fingerprint(), self._described, reading.may_lack_labels, *chosen)
        if key not in _FACTS or not key[1]:
            while len(_FACTS) >= MOST_FACTS:
                _FACTS.pop(next(iter(_FACTS)), None)
            _FACTS[key] = facts_of(file, reading)
        return _FACTS[key]

    def _fitting(self, attempts: Iterable[Example | DataError]) -> Iterator[Example]:
        """Yield examples; at the end DataError for rows that do not fit, unless they are left out."""
        first, more = None, 0
        for example in attempts:
            if not isinstance(example, DataError):
                yield example
            elif self.bad_rows == "refuse":
                first, more = first or example, more + (first is not None)
        if first is not None:
            others = f" {more:,} more rows do not fit: isogloss corpus check lists them." if more else ""
            raise DataError(f"{first}{others}")

    def _translations(self, *files: File) -> Iterator[Translation | DataError]:
        """Yield the lines of two files side by side; DataError where one ends before the other."""
        reading = self._reading_of({})
        counts = [sum(1 for _ in rows(file, reading.table)) for file in files]
        if counts[0] != counts[1]:  # Which line is missing is unknown: all later pairs might be wrong.
            short, long = files if counts[0] < counts[1] else reversed(files)
            expected = f"as many lines as {long.name} has ({max(counts):,})"
            raise short.broken(min(counts), "the last line", expected, "Restore the lines that are missing")
        for number, sides in enumerate(zip(*(rows(file, reading.table) for file in files), strict=True)):
            first, second = (
                CorpusRow(reading, file, cast(FileRow, row), "")
                for file, row in zip(files, sides, strict=True)
            )
            try:
                yield Translation(id=str(number), first=first.text("first"), second=second.text("second"))
            except DataError as error:
                yield error

    def examples(self, file: File) -> Iterator[Example]:
        """Yield the examples of a file."""
        return self._fitting(self._attempts(file, self._reading_of({})))

    def _attempts(self, file: File, reading: Reading) -> Iterator[Example | DataError]:
        if self.format == "squad":
            return read_questions(file, answers="there" if NO_ANSWER in self.skip else "needed")
        attempts = labelled_rows(file, reading, self._facts(file, reading))
        return (attempt for attempt in attempts if attempt is not None)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Yield JSON lines whose keys are the parts of an example."""
        for example in only(KINDS[self.kind].example, examples, self.name):
            yield json.dumps(parts_of(example, self.labels), ensure_ascii=False)


_ADDED = {
    **{"where": {}, "predicts": "label", "between": ",", "hub": ""},
    **{
        "bad_rows": "refuse",
        "has_offsets": False,
        "label_paths": {},
        "own_rules": (),
        "comments": None,
        "scheme": "",
    },
}
"""Later fields by their neutral value, which leaves older fingerprints as they were."""


def _as_json(value: Any) -> object:
    """Return a mapping, or the first of the names in use, which has been the only one."""
    return value.names[0] if isinstance(value, AnyOf) else dict(value)


def _with(file: File, described: str) -> Callable[[], str]:
    return lambda: f"{file.fingerprint()}-{described}"


# Those of this process

_FACTS: dict[Hashable, FileFacts] = {}
"""What files are, by their names and states."""

MOST_FACTS = 1_000

KNOWN: dict[str, DescribedCorpus] = {}
"""Described corpora by name, besides the catalogue's."""


DESCRIPTIONS = Path(str(package_files("isogloss") / "data" / "descriptions"))


def shipped() -> dict[str, Path]:
    """Return the descriptions that come with the package, by name; their files are below the data folder."""
    return {path.stem: path for path in sorted(DESCRIPTIONS.glob("*.toml"))}


def shipped_table(name: str) -> dict[str, Any]:
    """Return the fields of a description that comes with the package, unchecked."""
    return tomllib.loads(shipped()[name].read_text(encoding="utf-8"))


def about_corpus(name: str) -> About:
    """Return the content, home page and licence of a corpus of the catalogue or of the package."""
    if name in CORPORA:
        return CORPORA[name].about
    table = shipped_table(name)
    return About(table["about"], table["url"], table["licence"])


def fetching(corpus: str, language: str = "") -> str:
    """Return the advice for a corpus of the package whose files are not here."""
    which = f" --language {language.replace('-', ',')}" if language else ""
    return (
        f"Fetch it: isogloss fetch {corpus}{which} --to DATA, and give --data DATA; or --data hub, which "
        f"fetches what is read."
    )


def register(*corpora: DescribedCorpus) -> None:
    """Make corpora known by name; ConfigError where another one has the name.

    The languages and labels of one description may differ between data folders; the last one counts.
    """
    for corpus in corpora:
        other = KNOWN.get(corpus.name, corpus)
        if other.folder == corpus.folder:
            from_files = {name: getattr(corpus, name) for name in ("languages", "labels", "untrained")}
            other = replace(other, **from_files)
        if other.assumed == corpus.assumed and replace(other, folder=corpus.folder) != corpus:
            raise ConfigError(f"two descriptions are named {corpus.name!r}. Give one of them another name.")
        KNOWN[corpus.name] = corpus


def inventory(observed: Iterable[str], listed: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a tagging corpus from those seen in a file and those a description gives.

    BIO tags are O, then B- and I- of each type, in the order of the given types (or tags), else sorted.
    """
    tags = set(observed)
    if not are_bio(tags):
        return tuple(listed) or tuple(sorted(tags))
    types = list_types(listed) or sorted({tag[2:] for tag in tags - {OUTSIDE}})
    return (OUTSIDE, *(f"{mark}-{type_name}" for type_name in types for mark in "BI"))


def list_types(listed: Sequence[str]) -> list[str]:
    """List the types of spans in an inventory of types, or of tags in any scheme."""
    scheme = decide_scheme(listed)
    if not scheme.marks_spans:
        return list(dict.fromkeys(tag for tag in listed if tag != OUTSIDE))
    return list(dict.fromkeys(span.type for tag in listed for span in find_spans([tag], scheme)))
