"""Where the official files of the corpora are: one table a corpus, ``official/xnli.toml``.

A file is either put where the corpus's reader finds it (``to``), or it is an archive of which some members
are (``take``). Sizes and checksums are those that others published or that were taken from the file at a
pinned commit; a checksum that is not there is nowhere to be had.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from isogloss.core.errors import ConfigError, DataError, did_you_mean, unknown_name

DOWNLOADS = "downloads"
"""Folder, below the data folder, of archives; they may be deleted once their members are taken."""

HOLES = {"language": "[a-z]{2,3}", "split": "train|dev|test"}
"""What a named hole of a member pattern may be; any other hole is anything without a slash."""

_HOLE = re.compile(r"\{([a-z]+)\}")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One official file."""

    corpus: str
    part: str
    """The name under which it is asked for, as in ``xnli:train``."""
    url: str
    size: int | None = None
    """Bytes, where published."""
    sha256: str = ""
    """Empty where no checksum is published."""
    languages: tuple[str, ...] = ()
    """The languages it has text in; empty where that is not said."""
    licence: str = ""
    """Where it is not that of the corpus."""
    to: str = ""
    """Where it goes below the data folder; empty for an archive."""
    take: tuple[tuple[str, str], ...] = ()
    """Which members of an archive go where, with holes such as ``{language}`` in both names."""

    @property
    def place(self) -> str:
        """Where the file itself is kept, below the data folder."""
        return self.to or f"{DOWNLOADS}/{PurePosixPath(urlsplit(self.url).path).name}"

    def places(self, member: str, languages: Sequence[str] = ()) -> list[tuple[int, str]]:
        """Give, for a member of the archive, the number of each pattern it matches and where it goes.

        With languages, members of others are left out.
        """
        found = []
        for number, (pattern, place) in enumerate(self.take):
            match = _pattern(pattern).fullmatch(member)
            if match and (not languages or match.groupdict().get("language", languages[0]) in languages):
                found.append((number, _HOLE.sub(lambda hole, match=match: str(match[hole[1]]), place)))  # type: ignore[misc]
        return found


@dataclass(frozen=True, kw_only=True)
class Releases:
    """The official files of one corpus."""

    corpus: str
    files: tuple[Release, ...] = ()
    default: tuple[str, ...] = ()
    """The parts that are meant where none is named."""
    by_hand: str = ""
    """What to do for what cannot be fetched."""
    parts_by_hand: Mapping[str, str] = field(default_factory=dict)
    """The same for parts of their own."""

    @property
    def parts(self) -> list[str]:
        """All parts, in the order of the table."""
        return list(dict.fromkeys(file.part for file in self.files))

    def chosen(self, part: str) -> list[Release]:
        """Give the files of one part, or of the default ones; an error says what there is."""
        if part in self.parts_by_hand:
            raise DataError(f"{self.corpus}:{part}: it cannot be fetched. {self.parts_by_hand[part]}")
        if not self.files:
            raise DataError(f"{self.corpus}: it cannot be fetched. {self.by_hand}")
        if part and part not in self.parts:
            raise unknown_name(self.corpus, "part", part, [*self.parts, *self.parts_by_hand])
        return [file for file in self.files if file.part in ([part] if part else self.default)]


def releases(corpus: str) -> Releases:
    """Read a corpus's table; ConfigError, with the nearest name, where there is none."""
    known = with_tables()
    if corpus not in known:
        raise unknown_name("fetch", "corpus", corpus, known)
    return _read(corpus)


def with_tables() -> list[str]:
    """Give the names of the corpora that have a table, sorted."""
    folder = files("isogloss.data") / "official"
    return sorted(
        entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml")
    )


def chosen(names: Iterable[str], languages: Sequence[str] = ()) -> list[Release]:
    """Give the files of corpora or parts (``xnli``, ``xnli:train``), those of some languages only.

    ConfigError for a language that none of them has, and for a corpus that has none of the languages.
    """
    names = list(dict.fromkeys(names))
    found = {name: releases(name.partition(":")[0]).chosen(name.partition(":")[2]) for name in names}
    every = [file for its in found.values() for file in its]
    for language in languages:
        if not any(_has(file, [language]) for file in every):
            raise _nothing_in(language, names, every)
    for name, its in found.items():
        if languages and not any(_has(file, languages) for file in its):
            raise _nothing_in(" ".join(languages), [name], its)
    return [file for file in dict.fromkeys(every) if not languages or _has(file, languages)]


def _has(file: Release, languages: Sequence[str]) -> bool:
    return not file.languages or not set(languages).isdisjoint(file.languages)


def _nothing_in(language: str, names: Sequence[str], found: Sequence[Release]) -> ConfigError:
    there = sorted({language for file in found for language in file.languages})
    return ConfigError(
        f"--language {language}: nothing of {', '.join(names)} is in it.{did_you_mean(language, there)} "
        f"There is: {', '.join(there)}."
    )


@lru_cache(maxsize=64)
def _read(corpus: str) -> Releases:
    table = tomllib.loads(
        (files("isogloss.data") / "official" / f"{corpus}.toml").read_text(encoding="utf-8")
    )
    default = tuple(table.get("default", ()))
    found = tuple(_release(corpus, row) for row in table.get("file", ()))
    return Releases(
        corpus=corpus,
        files=found,
        default=default or tuple(dict.fromkeys(file.part for file in found)),
        by_hand=table.get("by_hand", ""),
        parts_by_hand=table.get("parts_by_hand", {}),
    )


def _release(corpus: str, row: Mapping[str, Any]) -> Release:
    lists = {"languages": tuple(row.get("languages", ())), "take": tuple(row.get("take", {}).items())}
    return Release(**{"corpus": corpus, **row, **lists})


@lru_cache(maxsize=64)
def _pattern(pattern: str) -> re.Pattern[str]:
    """Turn a pattern with holes into an expression; a hole that comes again is the same text again."""
    seen: set[str] = set()
    expression = ""
    for number, piece in enumerate(_HOLE.split(pattern)):
        if number % 2 == 0:
            expression += re.escape(piece)
        elif piece in seen:
            expression += f"(?P={piece})"
        else:
            seen.add(piece)
            expression += f"(?P<{piece}>{HOLES.get(piece, '[^/]+?')})"
    return re.compile(expression)
