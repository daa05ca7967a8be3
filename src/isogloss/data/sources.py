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
from isogloss.data.corpora.bitext import Bitext
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import Concatenated, concatenated
from isogloss.data.corpora.described import KNOWN, DescribedCorpus, register, shipped
from isogloss.data.corpora.labelled import LabelledCorpus
from isogloss.data.corpora.texts_and_trees import BUILT_IN, Ud, treebanks_there
from isogloss.data.corpus import SPLITS, Corpus, Source, Split
from isogloss.data.examples import Example, limited
from isogloss.data.files import DiskFolder, File
from isogloss.data.hub import data_source
from isogloss.data.languages import BuiltInLanguages
from isogloss.data.projection.words import word_breaking


def source_of(language: str, data: Source | None) -> Source:
    """Return the source a language (or pair such as en-fr) is read from: the built-in one or the user's."""
    built_in = [is_built_in(code) for code in language.split("-")]
    if all(built_in):
        return BuiltInLanguages()
    if any(built_in):
        raise DataError(
            f"{language}: one of the two is a built-in language and one is not; expected both of one kind. "
            f"Choose a pair such as qaa-qab or en-fr."
        )
    if data is None:
        names = " and ".join(language_name(code) for code in language.split("-"))
        raise DataError(
            f"{language}: {names} must be read from corpora on your disk, and no folder was given. "
            f"Give --data DIR, or use the built-in languages (qaa to qai), which need none."
        )
    return data


def _has_treebank(folder: Source | None, language: str) -> bool:
    """Return whether a folder has a treebank under the code of a built-in language, as UD's qaf is."""
    if not (is_built_in(language) and isinstance(folder, DiskFolder)):
        return False
    names = {name for split in SPLITS for name in treebanks_there(folder, language, split)}
    return bool(names - {BUILT_IN.lower()})


Treebanks = tuple[tuple[str, str], ...]


class RecentExamples:
    """Cached examples of splits; the least recently used are dropped first."""

    def __init__(self, limit: int) -> None:
        """Cache up to ``limit`` examples of all splits together; a longer split is never cached."""
        self._limit = limit
        self._cached: OrderedDict[Hashable, tuple[Example, ...]] = OrderedDict()

    def examples(self, key: Hashable, read: Callable[[], Iterable[Example]]) -> list[Example]:
        """Return the examples cached under a key, which must contain their files' state, or read them."""
        examples = self._cached.pop(key, None)
        if examples is None:
            examples = tuple(read())
        if len(examples) <= self._limit:
            self._cached[key] = examples
            while sum(map(len, self._cached.values())) > self._limit:
                self._cached.popitem(last=False)
        return list(examples)


_RECENT = RecentExamples(limit=50_000)
"""Splits that this process has read, as runs and their languages need the same few again and again."""


@dataclass(frozen=True)
class Sources:
    """Corpora by name, read from the right folder for each language, and encoders that exist already."""

    data: str = ""
    """A folder; "hub" for the Hugging Face hub, "hub:FOLDER" for parquet files of it; none when empty."""
    encoders: Mapping[str, str] = field(default_factory=dict)
    """Where encoders and translation models are on this machine, by fingerprint: runs do not say it."""
    described: tuple[DescribedCorpus, ...] = ()
    """Corpora that are not the catalogue's; a process that receives these sources knows them by name."""
    assume: bool = False
    """Whether absent files are assumed where no data folder was given, so that a plan can be shown."""
    assumed: dict[tuple[str, Split, str], None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Corpus, split and language of those that a plan was made without."""
    unlabelled: dict[tuple[str, Split, str], None] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Corpus, split and language of those that a plan leaves out where labels are needed."""
    missing_packages: dict[str, None] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Packages that runs require and that a plan for display was made without."""
    _found: dict[Hashable, list[File] | DataError] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """Files found before: a plan looks for the same ones again and again, through folders of hundreds."""
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
        """Note a package that is not installed where this plan is for display alone, or else refuse it."""
        try:
            yield
        except MissingPackageError as error:
            if not self.assume:
                raise
            self.missing_packages[error.requirement] = None

    def corpus(self, name: str, treebanks: Treebanks = ()) -> Corpus:
        """Return a corpus by name; what follows a colon is one field of it ("bitext:bible", "mlqa:en").

        "snli+sick" is two read as one.

        ConfigError, with the nearest name, for an unknown corpus or choice.
        """
        return concatenated(name, lambda part: self._single(part, treebanks))

    def _single(self, name: str, treebanks: Treebanks) -> Corpus:
        plain, _, collection = name.partition(":")
        corpora: Mapping[str, Corpus] = {**CORPORA, **KNOWN, **{part.name: part for part in self.described}}
        corpus = corpora.get(plain) or find_plug_in("corpora", plain, corpora)
        if corpus is None:
            names = sorted({*corpora, *shipped(), *plugged_names("corpora")})
            raise ConfigError(
                f"no corpus {plain!r}.{did_you_mean(plain, names)} Known: {', '.join(names)}; or describe "
                f"one (name.toml)."
            )
        if plain not in corpora:
            check_value(corpus, Corpus, plain)
        if treebanks:
            if not isinstance(corpus, Ud):
                choices = ", ".join(map("=".join, treebanks))
                raise ConfigError(
                    f"corpus {plain!r} has no treebanks to choose from; found {choices}. Leave it out."
                )
            corpus = replace(corpus, treebanks=treebanks)
        return corpus.choose(collection) if collection else corpus

    def has_treebanks(self, name: str) -> bool:
        """Return whether a corpus, each part of it, has treebanks to choose from."""
        return all(isinstance(part, Ud) for part in self._parts(name))

    def _parts(self, name: str) -> list[Corpus]:
        corpus = self.corpus(name)
        return [part.corpus for part in corpus.parts] if isinstance(corpus, Concatenated) else [corpus]

    def _place(self, name: str, language: str) -> Any:
        """Return where a corpus is read from: a described one knows its folder, and needs no other."""
        source = data_source(self.data)
        if all(isinstance(part, DescribedCorpus) for part in self._parts(name)):
            return source
        if name == CORPORA["ud"].name and _has_treebank(source, language):
            return source  # UD's own use of the code goes before ours.
        return source_of(language, source)

    def labels(self, name: str) -> tuple[str, ...] | None:
        """Return the labels of a described corpus; None for the catalogue's, whose tasks know them."""
        parts: list[object] = list(self._parts(name))
        inventories = {part.labels for part in parts if isinstance(part, DescribedCorpus)}
        if len(inventories) > 1:
            raise ConfigError(
                f"corpus {name!r}: its parts differ in their labels. Join those of equal labels."
            )
        return next(iter(inventories), None)

    def needs(self, name: str, kind: str) -> None:
        """Raise ConfigError unless a corpus holds a kind of examples: text, bitext, or a task's labels."""
        tasks = self.corpus(name).tasks
        if kind not in tasks:
            fitting = [other for other, corpus in CORPORA.items() if kind in corpus.tasks]
            choice = f"one of: {', '.join(fitting)}" if fitting else "a described one (isogloss list corpora)"
            raise ConfigError(f"corpus {name!r} holds {', '.join(tasks)}, not {kind}. Choose {choice}.")

    def stream(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> Iterator[Example]:
        """Read a split, or so many examples of it, one at a time."""
        read = self.corpus(corpus, treebanks).read(self._place(corpus, language), language, split)
        if examples and self._draws(corpus, language, split):
            return iter(limited(read, examples))
        return islice(read, examples or None)

    def _draws(self, corpus: str, language: str, split: Split) -> bool:
        """Return whether a limit draws at random; of one file of the built-in languages it takes the first.

        Those are drawn one by one as they are made, so the first are a random choice without making the rest.
        """
        is_made = isinstance(self._place(corpus, language), BuiltInLanguages)
        return not is_made or len(self._files(corpus, language, split, ())) > 1

    def examples(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> list[Example]:
        """Read a split, or so many examples of it, or give those read before; DataError for none."""
        files = self._files(corpus, language, split, treebanks)
        state = tuple((file.name, file.fingerprint()) for file in files)
        read = _RECENT.examples(
            (corpus, treebanks, language, split, examples, state),
            lambda: self.stream(corpus, language, split, treebanks=treebanks, examples=examples),
        )
        if not read:
            raise DataError(
                f"{corpus} {language} {split}: the split is empty. Choose another split or language."
            )
        return read

    def fingerprint(
        self, corpus: str, language: str, split: Split, *, treebanks: Treebanks = (), examples: int = 0
    ) -> str:
        """Return a fingerprint of the files a split is read from, and of how a limit chooses among them.

        DataError when they are not there.
        """
        if self.assume and self._is_absent(corpus, language, split):
            self.assumed[corpus, split, language] = None
            return f"assumed {corpus} {language} {split}"
        files = self._files(corpus, language, split, treebanks)
        is_bitext = "bitext" in self.corpus(corpus, treebanks).tasks
        breaking = word_breaking(language.split("-")) if is_bitext else ""
        plugged = [part.name for part in self._parts(corpus) if part.name not in (*CORPORA, *KNOWN)]
        added = [package_named("corpora", name) for name in plugged]
        drawn = "drawn" if examples and self._draws(corpus, language, split) else ""
        return "+".join(filter(None, [*(file.fingerprint() for file in files), breaking, *added, drawn]))

    def remarks(self, corpus: str, language: str, split: Split) -> tuple[str, ...]:
        """Return how described files are read, and how many rows are left out of any; looked up once."""
        key = (corpus, language, split)
        if key not in self._remarks:
            joined = self.corpus(corpus)
            read: list[tuple[Corpus, Split]] = [(joined, split)]
            if isinstance(joined, Concatenated):
                read = [(part.corpus, origin) for part in joined.parts for origin in part.sources(split)]
            remarks = [remark for part, origin in read for remark in self._remarks_of(part, language, origin)]
            if corpus == CORPORA["ud"].name and _has_treebank(data_source(self.data), language):
                remarks.append(
                    f"ud {language}: the treebank in the data folder was read, not the built-in language."
                )
            self._remarks[key] = tuple(remarks)
        return self._remarks[key]

    def _remarks_of(self, corpus: Corpus, language: str, split: Split) -> Iterator[str]:
        source = data_source(self.data)
        with suppress(DataError):  # Translations are no files, and a corpus among others may lack a split.
            if isinstance(corpus, DescribedCorpus):
                yield from corpus.remarks(source, language, split)
            elif isinstance(corpus, LabelledCorpus | Bitext) and isinstance(source, DiskFolder):
                is_made = is_built_in(language.partition("-")[0])
                if count := 0 if is_made else corpus.left_out(source, language, split):
                    lack = "without a label, an answer or a translation"
                    yield f"{corpus.name} {language} {split}: {count:,} rows {lack} left out."

    def _is_absent(self, name: str, language: str, split: Split) -> bool:
        """Return whether files are not there because no data folder was given."""
        if self.data:
            return False
        corpus = self.corpus(name)
        if isinstance(corpus, Concatenated):
            parts = [(part.label, origin) for part in corpus.parts for origin in part.sources(split)]
            return any(self._is_absent(part, language, origin) for part, origin in parts)
        if not isinstance(corpus, DescribedCorpus):
            return not any(map(is_built_in, language.split("-")))
        try:
            return not corpus.files(None, language, split)
        except DataError:
            return corpus.has(language, split)

    def _files(self, corpus: str, language: str, split: Split, treebanks: Treebanks) -> list[File]:
        key = (corpus, language, split, treebanks)
        if key not in self._found:
            source = self._place(corpus, language)
            try:
                self._found[key] = self.corpus(corpus, treebanks).files(source, language, split)
            except DataError as error:
                self._found[key] = error
        files = self._found[key]
        if isinstance(files, DataError):
            raise DataError(str(files))
        return files

    def check_labelled(self, corpus: str, read: Iterable[tuple[Split, str]], method: str) -> None:
        """Raise ConfigError for a split without labels that a method reads."""
        for split, language in read:
            if self.lacks_labels(corpus, language, split):
                raise ConfigError(
                    f"{corpus} has no labels in {language} {split}, and {method!r} needs them. Choose a "
                    f"method that is trained on the source alone."
                )

    def lacks_labels(self, corpus: str, language: str, split: Split) -> bool:
        """Return whether a described corpus has no labels in a split or, if absent, the first of others."""
        parts = self._parts(corpus)
        for name in (split, *SPLITS):
            with suppress(DataError):  # An error where the split is read.
                return all(
                    isinstance(part, DescribedCorpus)
                    and not part.hub
                    and part.lacks_labels(data_source(self.data), language, name)
                    for part in parts
                )
        return False

    def has_dev(self, corpus: str, language: str) -> bool:
        """Return whether a corpus has a development split of a language."""
        try:
            self.fingerprint(corpus, language, "dev")
        except DataError:
            return False
        return True


def combined_fingerprint(fingerprints: list[str]) -> str:
    """Return one short fingerprint for several."""
    return sha256("\n".join(fingerprints).encode()).hexdigest()[:16]
