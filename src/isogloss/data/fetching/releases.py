"""The official files of corpora, by one table for each corpus: ``official/xnli.toml`` and others.

A file either goes where the reader looks (``to``), or it is an archive of which some members do (``take``).
Sizes and checksums are the published ones, or those of the file at a pinned commit (``official/pinned.tsv``);
without a checksum, none has been published. ``hub:OWNER/NAME@REVISION/PATH`` is a file of a dataset of the
Hugging Face hub. A row with ``spelled``, the codes of languages in its names, and ``splits`` is a file for
each of them.
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
"""Folder, below the data folder, of archives; they may be deleted once their members are taken."""

HOLES = {"language": "[a-z]{2,3}(?:[_-][A-Za-z]{2,4})?", "split": "train|dev|test"}
"""What a named hole of a member pattern may be; any other hole is anything without a slash."""

_HOLE = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One official file."""

    corpus: str
    part: str
    """Name of the part, as in ``xnli:train``."""
    url: str
    size: int | None = None
    """Bytes, where published."""
    sha256: str = ""
    """Empty where no checksum is published."""
    languages: tuple[str, ...] = ()
    """The languages of its text; empty where unknown."""
    splits: tuple[str, ...] = ()
    """The splits in it; empty where the table does not list them."""
    licence: str = ""
    """Where it differs from the corpus's."""
    to: str = ""
    """Target path below the data folder; empty for an archive."""
    take: tuple[tuple[str, str], ...] = ()
    """Which members of an archive go where, with holes such as ``{language}`` in both names."""

    @property
    def target(self) -> str:
        """Path of the downloaded file below the data folder."""
        return self.to or f"{DOWNLOADS}/{PurePosixPath(urlsplit(self.url).path).name}"

    def has(self, languages: Sequence[str]) -> bool:
        """Return whether it has text of one of these languages, or may have."""
        return not self.languages or any(covers(code, languages) for code in self.languages)

    def targets(self, member: str, languages: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Give, for a member of the archive, the number of each pattern it matches and where it goes.

        With languages, members of others are left out.
        """
        targets = []
        for number, (pattern, target) in enumerate(self.take):
            match = _pattern(pattern).fullmatch(member)
            language = match.groupdict().get("language") if match else None
            if match and (not languages or not language or covers(canonical_language(language), languages)):
                targets.append((number, _HOLE.sub(lambda hole, match=match: str(match[hole[1]]), target)))  # type: ignore[misc]
        return targets


@cache
def _language(code: str) -> str:
    return language_of_variety(code)


def covers(code: str, languages: Sequence[str]) -> bool:
    """Return whether a language is one of these, or a script or region of one that is named without."""
    return code in languages or _language(code) in languages


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The official files of one corpus."""

    corpus: str
    files: tuple[Release, ...] = ()
    default: tuple[str, ...] = ()
    """Parts fetched where none is named."""
    by_hand: str = ""
    """Advice for what cannot be fetched."""
    parts_by_hand: Mapping[str, str] = field(default_factory=dict)
    """The same by part."""
    parallel: bool = False
    """Whether its languages have the same content."""
    train: tuple[str, ...] | None = None
    """Languages with training data; None: those of the files that have such a split."""
    spelled: Mapping[str, str] = field(default_factory=dict)
    """The codes of languages in the names of files, by our code; none where they are ours."""

    @property
    def parts(self) -> list[str]:
        """All parts, in the order of the table."""
        return list(dict.fromkeys(file.part for file in self.files))

    def chosen(self, part: str = "") -> list[Release]:
        """Return the files of one part, or of the default parts; an error lists the parts."""
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
            return any(covers(code, languages) for code in self.train)
        return any("train" in file.splits and file.has(languages) for file in self.files)


def releases(corpus: str) -> Releases:
    """Read a corpus's table; ConfigError, with the nearest name, where it has none."""
    check_named("fetch", "corpus", fetchable(), corpus)
    return _read(corpus)


def fetchable() -> list[str]:
    """Return the names of the corpora that have a table, sorted."""
    folder = files("isogloss.data.fetching") / "official"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def corpora_in(languages: Sequence[str]) -> list[str]:
    """Return the names of the corpora that can be fetched in one of these languages."""
    return [
        name
        for name in fetchable()
        if any(file.has(languages) for file in _read(name).files if file.part in _read(name).default)
    ]


def chosen(names: Iterable[str], languages: Sequence[str] = ()) -> list[Release]:
    """Return the files of corpora or parts (``xnli``, ``xnli:train``), those of some languages only.

    Without names those of every corpus in the languages. ConfigError for a language that none of them has,
    and for a corpus that has none of the languages.
    """
    names = list(dict.fromkeys(names)) or corpora_in(languages)
    by_name = {name: releases(name.partition(":")[0]).chosen(name.partition(":")[2]) for name in names}
    files = [file for named in by_name.values() for file in named]
    for language in languages:
        if not any(file.has([language]) for file in files):
            raise _lacks(language, names, files)
    for name, named in by_name.items():
        if languages and not any(file.has(languages) for file in named):
            raise _lacks(" ".join(languages), [name], named)
    return [file for file in dict.fromkeys(files) if not languages or file.has(languages)]


def _lacks(language: str, names: Sequence[str], releases: Sequence[Release]) -> ConfigError:
    codes = sorted({language for file in releases for language in file.languages})
    corpora = ", ".join(names) or "any corpus that can be fetched"
    listed = f" Choose among: {', '.join(codes)}." if codes else " See isogloss list language-facts."
    return ConfigError(
        f"--language {language}: no file of {corpora} is in it.{did_you_mean(language, codes)}{listed}"
    )


@lru_cache(maxsize=64)
def _read(corpus: str) -> Releases:
    table = tomllib.loads(
        (files("isogloss.data.fetching") / "official" / f"{corpus}.toml").read_text(encoding="utf-8")
    )
    rows = table.pop("file", ())
    released = tuple(
        Release(corpus=corpus, **{**_pinned().get(file["url"], {}), **file})
        for row in rows
        for file in _expanded(row)
    )
    default = tuple(table.pop("default", dict.fromkeys(file.part for file in released)))
    train = table.pop("train", None)
    return Releases(
        corpus=corpus,
        files=released,
        default=default,
        train=None if train is None else tuple(train),
        spelled={code: text for row in rows for code, text in _spelled(row).items()},
        **table,
    )


@cache
def _pinned() -> Mapping[str, Mapping[str, Any]]:
    """Return sizes and checksums of files at pinned commits, by address, where their tables have none."""
    text = (files("isogloss.data.fetching") / "official" / "pinned.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines()[1:])
    return {url: {"size": int(size), "sha256": digest} for url, size, digest in rows}


def _spelled(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what stands for {language} in the names of a row, by our codes."""
    spelled = row.get("spelled", {})
    return (
        spelled if isinstance(spelled, dict) else {canonical_language(code): code for code in spelled.split()}
    )


def _expanded(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the file of a row, or one for each language and split where its names have holes for them."""
    spelled, splits = _spelled(row), row.get("splits", ())
    names = splits if isinstance(splits, dict) else {split: split for split in splits}
    fields = {name: value for name, value in row.items() if name != "spelled"}
    fields |= {"take": tuple(row.get("take", {}).items()), "splits": tuple(names)}
    if not spelled or "to" not in row:
        yield {**fields, "languages": tuple(row.get("languages", spelled))}
        return
    holed = [split for split in names if "{split}" in row["url"]] or [""]
    for (code, text), split in product(spelled.items(), holed):
        filled = {
            name: row[name].replace("{language}", text).replace("{split}", names.get(split, ""))
            for name in ("url", "to")
        }
        yield {**fields, **filled, "languages": (code,), "splits": (split,) if split else tuple(names)}


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    """Turn a pattern with holes into a regular expression; repeated holes must match the same text."""
    names: set[str] = set()
    expression = ""
    for number, piece in enumerate(_HOLE.split(pattern)):
        if number % 2 == 0:
            expression += re.escape(piece)
        elif piece in names:
            expression += f"(?P={piece})"
        else:
            names.add(piece)
            expression += f"(?P<{piece}>{HOLES.get(piece, '[^/]+?')})"
    return re.compile(expression)
