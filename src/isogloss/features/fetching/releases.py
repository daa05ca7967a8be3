"""Official files of corpora, from one table per corpus: ``official/xnli.toml`` and others.

A file either goes to the path where the reader expects it (``to``), or it is an archive with members to
extract (``take``). Sizes and checksums are published, or computed from the file at a pinned commit
(``official/pinned.tsv``). Files without a checksum have no published one. ``hub:OWNER/NAME@REVISION/PATH`` is
a file of a dataset on the Hugging Face hub. A row with ``spelled``, the codes of languages in its names, and
``splits`` is a file for each of them.
"""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import product
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from isogloss.core.errors import ConfigError, DataError, check_named, did_you_mean, unknown_name
from isogloss.core.languages import canonical_language, language_of_variety

DOWNLOADS = "downloads"
"""Folder of archives below the data folder. Archives may be deleted once their members are extracted."""

HOLES = {"language": "[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?", "split": "train|dev|test"}
"""Regular expressions of named holes in member patterns. Any other hole matches text without a slash."""

_HOLE = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One official file."""

    corpus: str
    part: str
    """Name of the part, as in ``xnli:train``."""
    url: str
    size: int | None = None
    """Bytes, if published."""
    sha256: str = ""
    """SHA-256, or "" if none is published."""
    languages: tuple[str, ...] = ()
    """Languages of its text, or empty if unknown."""
    splits: tuple[str, ...] = ()
    """Splits in it, or empty if the table does not list them."""
    licence: str = ""
    """Licence, if it differs from the corpus's."""
    to: str = ""
    """Target path below the data folder, or "" for an archive."""
    take: tuple[tuple[str, str], ...] = ()
    """Patterns of an archive's members with their target paths. Both may have holes such as
    ``{language}``."""

    @property
    def target(self) -> str:
        """Path of the downloaded file below the data folder."""
        return self.to or f"{DOWNLOADS}/{PurePosixPath(urlsplit(self.url).path).name}"

    def has(self, languages: Sequence[str]) -> bool:
        """Return whether it has text in one of these languages, or may have."""
        return not self.languages or any(covers(language, languages) for language in self.languages)

    def targets(self, member: str, languages: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Return the index of each pattern that a member matches, with the member's target path.

        With languages, members in other languages have no targets.
        """
        targets = []
        for index, (pattern, target) in enumerate(self.take):
            match = _pattern(pattern).fullmatch(member)
            language = match.groupdict().get("language") if match else None
            if match and (not languages or not language or covers(canonical_language(language), languages)):
                targets.append((index, _HOLE.sub(lambda hole, match=match: str(match[hole[1]]), target)))  # type: ignore[misc]
        return targets


@cache
def _language_without_variety(variety: str) -> str:
    return language_of_variety(variety)


def covers(language: str, languages: Sequence[str]) -> bool:
    """Return whether a language, or the language of its script or region, is in the list."""
    return language in languages or _language_without_variety(language) in languages


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The official files of one corpus."""

    corpus: str
    files: tuple[Release, ...] = ()
    default: tuple[str, ...] = ()
    """Parts that are fetched if no part is named."""
    by_hand: str = ""
    """Advice for corpora that cannot be fetched."""
    parts_by_hand: Mapping[str, str] = field(default_factory=dict)
    """Advice for parts that cannot be fetched, by part."""
    parallel: bool = False
    """Whether its languages have the same content."""
    train: tuple[str, ...] | None = None
    """Languages with training data. Default: languages of files with a training split."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """Codes of languages in file names, by our codes, if they differ."""

    @property
    def parts(self) -> list[str]:
        """Names of all parts, in the order of the table."""
        return list(dict.fromkeys(file.part for file in self.files))

    def select(self, part: str = "") -> list[Release]:
        """Return the files of one part, or of the default parts.

        Raises an error that lists the parts for an unknown part, and DataError for a corpus or part that must
        be fetched by hand.
        """
        if part in self.parts_by_hand:
            raise DataError(f"{self.corpus}:{part}: it cannot be fetched. {self.parts_by_hand[part]}")
        if not self.files:
            raise DataError(f"{self.corpus}: it cannot be fetched. {self.by_hand}")
        if part and part not in self.parts:
            raise unknown_name(self.corpus, "part", part, [*self.parts, *self.parts_by_hand])
        return [file for file in self.files if file.part in ([part] if part else self.default)]

    def has_train(self, languages: Sequence[str]) -> bool:
        """Return whether one of these languages has training data."""
        if self.train is not None:
            return any(covers(language, languages) for language in self.train)
        return any("train" in file.splits and file.has(languages) for file in self.files)


def releases(corpus: str) -> Releases:
    """Read the table of a corpus.

    Raises ConfigError, with the nearest name, if the corpus has no table.
    """
    check_named("fetch", "corpus", fetchable(), corpus)
    return _read(corpus)


def fetchable() -> list[str]:
    """Return the sorted names of the corpora with a table."""
    folder = files("isogloss.features.fetching") / "official"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def corpora_in(languages: Sequence[str]) -> list[str]:
    """Return the names of the corpora whose default parts can be fetched in one of these languages."""
    return [
        name
        for name in fetchable()
        if any(file.has(languages) for file in _read(name).files if file.part in _read(name).default)
    ]


def select_releases(names: Iterable[str], languages: Sequence[str] = ()) -> list[Release]:
    """Return the files of corpora or parts (``xnli``, ``xnli:train``), optionally only in some languages.

    Default: every corpus that has one of the languages. Raises ConfigError for a language in none of the
    files, and for a corpus in none of the languages.
    """
    names = list(dict.fromkeys(names)) or corpora_in(languages)
    files_by_name = {name: releases(name.partition(":")[0]).select(name.partition(":")[2]) for name in names}
    files = [file for corpus_files in files_by_name.values() for file in corpus_files]
    for language in languages:
        if not any(file.has([language]) for file in files):
            raise _no_file_error(language, names, files)
    for name, corpus_files in files_by_name.items():
        if languages and not any(file.has(languages) for file in corpus_files):
            raise _no_file_error(" ".join(languages), [name], corpus_files)
    return [file for file in dict.fromkeys(files) if not languages or file.has(languages)]


def _no_file_error(language: str, names: Sequence[str], releases: Sequence[Release]) -> ConfigError:
    available = sorted({language for file in releases for language in file.languages})
    corpora = ", ".join(names) or "any corpus that can be fetched"
    advice = f" Choose among: {', '.join(available)}." if available else " See isogloss list language-facts."
    return ConfigError(
        f"--language {language}: no file of {corpora} has it.{did_you_mean(language, available)}{advice}"
    )


@lru_cache(maxsize=64)
def _read(corpus: str) -> Releases:
    table = tomllib.loads(
        (files("isogloss.features.fetching") / "official" / f"{corpus}.toml").read_text(encoding="utf-8")
    )
    rows = table.pop("file", ())
    corpus_files = tuple(
        Release(corpus=corpus, **{**_pinned_facts().get(file["url"], {}), **file})
        for row in rows
        for file in _expand_row(row)
    )
    default = tuple(table.pop("default", dict.fromkeys(file.part for file in corpus_files)))
    train = table.pop("train", None)
    return Releases(
        corpus=corpus,
        files=corpus_files,
        default=default,
        train=None if train is None else tuple(train),
        spelled={language: spelling for row in rows for language, spelling in _spellings(row).items()},
        **table,
    )


@cache
def _pinned_facts() -> Mapping[str, Mapping[str, Any]]:
    """Return size and checksum of files at pinned commits by address, for tables without them."""
    text = (files("isogloss.features.fetching") / "official" / "pinned.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {url: {"size": int(size), "sha256": digest} for url, size, digest in rows}


def _spellings(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the spellings of languages in the names of a row, by our codes."""
    spellings = row.get("spelled", {})
    return (
        spellings
        if isinstance(spellings, dict)
        else {canonical_language(spelling): spelling for spelling in spellings.split()}
    )


def _expand_row(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the file of a row, or one for each language and split if its names have holes for them."""
    spellings = _spellings(row)
    splits = row.get("splits", ())
    names = splits if isinstance(splits, dict) else {split: split for split in splits}
    fields = {name: value for name, value in row.items() if name != "spelled"}
    fields |= {"take": tuple(row.get("take", {}).items()), "splits": tuple(names)}
    if not spellings or "to" not in row:
        yield {**fields, "languages": tuple(row.get("languages", spellings))}
        return
    row_splits = [split for split in names if "{split}" in row["url"]] or [""]
    for (language, spelling), split in product(spellings.items(), row_splits):
        paths = {
            name: row[name].replace("{language}", spelling).replace("{split}", names.get(split, ""))
            for name in ("url", "to")
        }
        yield {**fields, **paths, "languages": (language,), "splits": (split,) if split else tuple(names)}


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    """Turn a pattern with holes into a regular expression.

    A repeated hole must match the same text.
    """
    names: set[str] = set()
    expression = ""
    for index, piece in enumerate(_HOLE.split(pattern)):
        if index % 2 == 0:
            expression += re.escape(piece)
        elif piece in names:
            expression += f"(?P={piece})"
        else:
            names.add(piece)
            expression += f"(?P<{piece}>{HOLES.get(piece, '[^/]+?')})"
    return re.compile(expression)
