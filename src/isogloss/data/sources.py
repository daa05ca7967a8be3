"""Sources of examples: corpora by name, from the built-in languages, a folder or the Hugging Face hub."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Any

from isogloss.core.errors import ConfigError, DataError, MissingPackageError, did_you_mean
from isogloss.core.languages import is_built_in, language_name
from isogloss.core.plug_ins import check_value, find_plug_in, package_named, plugged_names
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import Concatenated, join_corpora
from isogloss.data.corpora.own import KNOWN, OwnCorpus, list_shipped, register
from isogloss.data.corpora.texts_and_trees import BUILT_IN, Ud, find_treebank_names
from isogloss.data.corpus import SPLITS, Corpus, SkipsRows, Source, Split
from isogloss.data.data_sources import data_source
from isogloss.data.examples import Example, limit_examples
from isogloss.data.files import DiskFolder, File
from isogloss.data.generated import GENERATED, generated_languages
from isogloss.data.projection.words import word_breaking


def source_of(language: str, data: Source | None) -> Source:
    """Return the source of a language (or pair such as en-fr): the built-in one or the user's.

    Raises DataError for a pair of a built-in and a natural language, and for natural languages without data.
    """
    are_built_in = [is_built_in(part) for part in language.split("-")]
    if all(are_built_in):
        return generated_languages()
    if any(are_built_in):
        raise DataError(
            f"{language}: a pair needs two built-in languages (qaa-qab) or two natural ones (en-fr). "
            f"Choose two languages of one kind."
        )
    if data is None:
        names = " and ".join(language_name(part) for part in language.split("-"))
        raise DataError(
            f"{language}: {names} must be read from corpora on your disk, but no folder is given. "
            f"Give --data DIR, or use the built-in languages (qaa to qai), which need none."
        )
    return data


def _has_treebank(folder: Source | None, language: str) -> bool:
    """Return whether a folder has a treebank under the code of a built-in language, such as UD's qaf."""
    if not (is_built_in(language) and isinstance(folder, DiskFolder)):
        return False
    names = {name for split in SPLITS for name in find_treebank_names(folder, language, split)}
    return bool(names - {BUILT_IN.lower()})


Treebanks = tuple[tuple[str, str], ...]


class RecentExamples:
    """Cached examples of splits. The least recently used are dropped first."""

    def __init__(self, limit: int) -> None:
        """Cache up to ``limit`` examples of all splits together.

        A split with more examples is never cached.
        """
        self._limit = limit
        self._cached: OrderedDict[Hashable, tuple[Example, ...]] = OrderedDict()

    def examples(self, key: Hashable, read: Callable[[], Iterable[Example]]) -> list[Example]:
        """Return the examples cached under a key, or read them.

        The key must contain the state of their files.
        """
        examples = self._cached.pop(key, None)
        if examples is None:
            examples = tuple(read())
        if len(examples) <= self._limit:
            self._cached[key] = examples
            while sum(len(split) for split in self._cached.values()) > self._limit:
                self._cached.popitem(last=False)
        return list(examples)


_RECENT = RecentExamples(limit=50_000)
"""Splits that this process has read. Runs and their languages read the same few splits repeatedly."""


@dataclass(frozen=True)
class Sources:
    """Corpora by name, read from the right source for each language, and existing encoders."""

    data: str = ""
    """Folder of corpora, "hub" for the Hugging Face hub, or "hub:FOLDER" for its parquet files. Default:
    none."""
    encoders: Mapping[str, str] = field(default_factory=dict)
    """Folders of encoders and translation models on this machine, by fingerprint. Not part of runs."""
    described: tuple[OwnCorpus, ...] = ()
    """Corpora outside the catalogue. A process that receives these sources knows them by name."""
    assume: bool = False
    """Assume files that are absent without a data folder, so that a plan can be shown."""
    assumed: dict[tuple[str, Split, str], None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Corpus, split and language of splits that a plan assumed."""
    unlabelled: dict[tuple[str, Split, str], None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Corpus, split and language of splits that a plan skipped because they lack labels."""
    missing_packages: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Packages that runs require and that were not installed when a plan was built for display."""
    _found: dict[Hashable, list[File] | DataError] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Files found earlier: a plan searches folders of hundreds of files for the same ones."""
    _remarks: dict[Hashable, tuple[str, ...]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        register(*self.described)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_found": {}, "_remarks": {}}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        register(*self.described)

    @contextmanager
    def assuming_packages(self) -> Iterator[None]:
        """Record a missing package if the plan is only for display.

        Otherwise MissingPackageError is raised as usual.
        """
        try:
            yield
        except MissingPackageError as error:
            if not self.assume:
                raise
            self.missing_packages[error.requirement] = None

    def corpus(self, name: str, treebanks: Treebanks = ()) -> Corpus:
        """Return a corpus by name, with one field after a colon ("bitext:bible", "mlqa:en").

        "snli+sick" is two corpora read as one. Raises ConfigError, with the nearest name, for an unknown
        corpus or field.
        """
        return join_corpora(name, lambda part: self._single(part, treebanks))

    def _single(self, name: str, treebanks: Treebanks) -> Corpus:
        base_name, _, collection = name.partition(":")
        described = {**KNOWN, **{part.name: part for part in self.described}}
        known_names = {*described, *CORPORA}
        corpus = described.get(base_name) or CORPORA.get(base_name)
        corpus = corpus or find_plug_in("corpora", base_name, known_names)
        if corpus is None:
            names = sorted({*known_names, *list_shipped(), *plugged_names("corpora")})
            raise ConfigError(
                f"no corpus {base_name!r}.{did_you_mean(base_name, names)} Known: {', '.join(names)}; or "
                f"describe one (name.toml)."
            )
        if base_name not in known_names:
            check_value(corpus, Corpus, base_name)
        if treebanks:
            if not isinstance(corpus, Ud):
                choices = ", ".join(f"{language}={treebank}" for language, treebank in treebanks)
                raise ConfigError(
                    f"corpus {base_name!r} has no treebanks to choose from; found {choices}. Remove them."
                )
            corpus = replace(corpus, treebanks=treebanks)
        return corpus.choose(collection) if collection else corpus

    def has_treebanks(self, name: str) -> bool:
        """Return whether every part of a corpus has treebanks to choose from."""
        return all(isinstance(part, Ud) for part in self._parts(name))

    def _parts(self, name: str) -> list[Corpus]:
        corpus = self.corpus(name)
        return [part.corpus for part in corpus.parts] if isinstance(corpus, Concatenated) else [corpus]

    def _source(self, name: str, language: str) -> Any:
        """Return the source of a corpus in a language.

        Described corpora know their own folders, so any source will do.
        """
        source = data_source(self.data)
        if all(isinstance(part, OwnCorpus) for part in self._parts(name)):
            return source
        if name == Ud.name and _has_treebank(source, language):
            return source  # UD's use of the code takes precedence over ours.
        return source_of(language, source)

    def labels(self, name: str) -> tuple[str, ...] | None:
        """Return the labels of a described corpus.

        None is for corpora of the catalogue, whose tasks define the labels. Raises ConfigError if the parts
        of a corpus have different labels.
        """
        parts: list[object] = list(self._parts(name))
        inventories = {part.labels for part in parts if isinstance(part, OwnCorpus)}
        if len(inventories) > 1:
            raise ConfigError(
                f"corpus {name!r}: its parts have different labels. Join only corpora with the same labels."
            )
        return next(iter(inventories), None)

    def needs(self, name: str, kind: str) -> None:
        """Raise ConfigError unless a corpus holds a kind of examples: text, bitext, or a task's labels."""
        tasks = self.corpus(name).tasks
        if kind not in tasks:
            alternatives = [name for name, corpus in CORPORA.items() if kind in corpus.tasks]
            choice = (
                f"one of: {', '.join(alternatives)}"
                if alternatives
                else "a described one (isogloss list corpora)"
            )
            raise ConfigError(f"corpus {name!r} holds {', '.join(tasks)}, not {kind}. Choose {choice}.")

    def stream(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> Iterator[Example]:
        """Yield the examples of a split one at a time.

        With ``examples``, yield at most that number of them. Default: all.
        """
        rows = self.corpus(corpus, treebanks).read(self._source(corpus, language), language, split)
        if examples and self._draws(corpus, language, split):
            return iter(limit_examples(rows, examples))
        return islice(rows, examples or None)

    def _draws(self, corpus: str, language: str, split: Split) -> bool:
        """Return whether a limit draws examples at random instead of using the first ones.

        One file of a built-in language is generated example by example from random draws. Its first examples
        are a random choice already, and the others need not be generated.
        """
        is_generated = self._source(corpus, language) in GENERATED.values()
        return not is_generated or len(self._files(corpus, language, split, ())) > 1

    def examples(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> list[Example]:
        """Return the examples of a split, cached if it was read recently.

        With ``examples``, return at most that number of them. Default: all. Raises DataError for an empty
        split.
        """
        files = self._files(corpus, language, split, treebanks)
        state = tuple((file.name, file.fingerprint()) for file in files)
        split_examples = _RECENT.examples(
            (corpus, treebanks, language, split, examples, state),
            lambda: self.stream(corpus, language, split, treebanks=treebanks, examples=examples),
        )
        if not split_examples:
            raise DataError(
                f"{corpus} {language} {split}: the split is empty. Choose another split or language."
            )
        return split_examples

    def fingerprint(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> str:
        """Return a fingerprint of the files of a split and of how a limit chooses among their examples.

        Raises DataError if the files do not exist.
        """
        if self.assume and self._is_absent(corpus, language, split):
            self.assumed[corpus, split, language] = None
            return f"assumed {corpus} {language} {split}"
        files = self._files(corpus, language, split, treebanks)
        is_bitext = "bitext" in self.corpus(corpus, treebanks).tasks
        segmentation = word_breaking(language.split("-")) if is_bitext else ""
        plug_ins = [part.name for part in self._parts(corpus) if part.name not in (*CORPORA, *KNOWN)]
        packages = [package_named("corpora", name) for name in plug_ins]
        draw = "drawn" if examples and self._draws(corpus, language, split) else ""
        facts = [*(file.fingerprint() for file in files), segmentation, *packages, draw]
        return "+".join(fact for fact in facts if fact)

    def remarks(self, corpus: str, language: str, split: Split) -> tuple[str, ...]:
        """Return remarks on how described files are read and on how many rows any corpus skips.

        They are computed once per corpus, language and split.
        """
        key = (corpus, language, split)
        if key not in self._remarks:
            joint_corpus = self.corpus(corpus)
            parts: list[tuple[Corpus, Split]] = [(joint_corpus, split)]
            if isinstance(joint_corpus, Concatenated):
                parts = [
                    (part.corpus, origin) for part in joint_corpus.parts for origin in part.sources(split)
                ]
            remarks = [
                remark for part, origin in parts for remark in self._remarks_of(part, language, origin)
            ]
            if corpus == Ud.name and _has_treebank(data_source(self.data), language):
                remarks.append(
                    f"ud {language}: the treebank in the data folder was read, not the built-in language."
                )
            self._remarks[key] = tuple(remarks)
        return self._remarks[key]

    def _remarks_of(self, corpus: Corpus, language: str, split: Split) -> Iterator[str]:
        source = data_source(self.data)
        with suppress(DataError):  # Translations have no files, and one part of a corpus may lack a split.
            if isinstance(corpus, OwnCorpus):
                yield from corpus.remarks(source, language, split)
            elif isinstance(corpus, SkipsRows) and isinstance(source, DiskFolder):
                is_generated = is_built_in(language.partition("-")[0])
                if count := 0 if is_generated else corpus.left_out(source, language, split):
                    lack = "without a label, an answer or a translation"
                    yield f"{corpus.name} {language} {split}: {count:,} rows {lack} are skipped."

    def _is_absent(self, name: str, language: str, split: Split) -> bool:
        """Return whether files are missing because no data folder is given."""
        if self.data:
            return False
        corpus = self.corpus(name)
        if isinstance(corpus, Concatenated):
            parts = [(part.label, origin) for part in corpus.parts for origin in part.sources(split)]
            return any(self._is_absent(part, language, origin) for part, origin in parts)
        if not isinstance(corpus, OwnCorpus):
            return not any(is_built_in(part) for part in language.split("-"))
        try:
            return not corpus.files(None, language, split)
        except DataError:
            return corpus.has(language, split)

    def _files(self, corpus: str, language: str, split: Split, treebanks: Treebanks) -> list[File]:
        key = (corpus, language, split, treebanks)
        if key not in self._found:
            source = self._source(corpus, language)
            try:
                self._found[key] = self.corpus(corpus, treebanks).files(source, language, split)
            except DataError as error:
                self._found[key] = error
        files = self._found[key]
        if isinstance(files, DataError):
            raise DataError(str(files))
        return files

    def check_labelled(self, corpus: str, read: Iterable[tuple[Split, str]], method: str) -> None:
        """Raise ConfigError if a method reads a split without labels.

        ``read`` lists the splits and languages that it reads.
        """
        for split, language in read:
            if self.lacks_labels(corpus, language, split):
                raise ConfigError(
                    f"{corpus} has no labels in {language} {split}, and {method!r} needs them. Choose a "
                    f"method that is trained only on the source."
                )

    def lacks_labels(self, corpus: str, language: str, split: Split) -> bool:
        """Return whether all parts of a corpus are described without labels in a split.

        If a part lacks the split, the first of the other splits that all parts have is used.
        """
        parts = self._parts(corpus)
        for name in (split, *SPLITS):
            with suppress(DataError):  # Reading the split reports the error.
                return all(
                    isinstance(part, OwnCorpus)
                    and not part.hub
                    and part.lacks_labels(data_source(self.data), language, name)
                    for part in parts
                )
        return False

    def has_dev(self, corpus: str, language: str) -> bool:
        """Return whether a corpus has a development split in a language."""
        try:
            self.fingerprint(corpus, language, "dev")
        except DataError:
            return False
        return True


def combined_fingerprint(fingerprints: list[str]) -> str:
    """Return one short fingerprint of several, in their order."""
    return sha256("\n".join(fingerprints).encode()).hexdigest()[:16]
