"""Several corpora of one task read as one: ``snli+cad-nli+sick``.

Each part is read in turn, and its ids begin with the part. ``snli[dev,test]`` makes the named splits of a
part its training data; it has no dev or test then. So corpora of which only held-out splits are at hand can
be trained on, while dev and test come from the other parts. ``cad-nli:original`` is a collection of one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from isogloss.core.errors import ConfigError, DataError, did_you_mean
from isogloss.data.corpus import SPLITS, About, Corpus, CorpusDefaults, Source, Split
from isogloss.data.examples import Example
from isogloss.data.files import File, Folder

_PART = re.compile(r"(?P<corpus>[^\[\]:+]+(:[^\[\]:+]+)?)(\[(?P<splits>[^\[\]]*)\])?")


@dataclass(frozen=True)
class CorpusPart:
    """A corpus among others."""

    label: str
    """Its name, with its collection if one is named: bitext:bible. Its ids begin so."""
    splits: tuple[Split, ...]
    """Splits that are its training data; none: its own train, dev and test."""
    corpus: Corpus

    def sources(self, split: Split) -> tuple[Split, ...]:
        """Return the splits of the corpus that a split of the whole is read from."""
        if not self.splits:
            return (split,)
        return self.splits if split == "train" else ()


@dataclass(frozen=True)
class Concatenated(CorpusDefaults):
    """Corpora read one after the other; it has the tasks that all of them have."""

    parts: tuple[CorpusPart, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            facts = "; ".join(f"{part.label} has {', '.join(part.corpus.tasks)}" for part in self.parts)
            raise ConfigError(
                f"corpus {self.name!r}: its parts have no task in common: {facts}. Join others."
            )

    @property
    def name(self) -> str:
        """The parts as a recipe names them."""
        return "+".join(
            part.label + (f"[{','.join(part.splits)}]" if part.splits else "") for part in self.parts
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that all parts have labels for."""
        first, *others = (part.corpus.tasks for part in self.parts)
        return tuple(task for task in first if all(task in tasks for tasks in others))

    @property
    def about(self) -> About:
        """Contents, home pages and licences of the parts."""
        labelled = [f"{part.label}: {part.corpus.about.licence}" for part in self.parts]
        texts, urls = zip(
            *((part.corpus.about.text, part.corpus.about.url) for part in self.parts), strict=True
        )
        return About(text=" ".join(texts), url=" ".join(urls), licence="; ".join(labelled))

    def path(self, language: str, split: Split) -> str:
        """Refuse: each part has files of its own."""
        raise self._not_written(f"{split} of {language}")

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of all parts on disk."""
        files = (part.corpus.find(folder, language, origin) for part, origin in self._sources(split))
        return [*chain.from_iterable(files)]

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of all parts; DataError where a part lacks the split, or all do."""
        files = (part.corpus.files(source, language, origin) for part, origin in self._sources(split))
        return [*chain.from_iterable(files)]

    def read(self, source: Source, language: str, split: Split) -> Iterator[Example]:
        """Read the parts in turn; an id is the part, the split where several serve as train, and its own."""
        readers = [
            _marked(part.corpus.read(source, language, origin), part, origin)
            for part, origin in self._sources(split)
        ]
        return chain.from_iterable(readers)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Refuse: each part has a format of its own."""
        raise self._not_written(f"examples of {language}")

    def _sources(self, split: Split) -> list[tuple[CorpusPart, Split]]:
        sources = [(part, origin) for part in self.parts for origin in part.sources(split)]
        if not sources:
            raise DataError(
                f"corpus {self.name!r}: no part has {split}, as each names the splits that are its training "
                f"data. Join a corpus that has {split}, or leave the brackets of one away."
            )
        return sources

    def _not_written(self, what: str) -> DataError:
        return DataError(
            f"corpus {self.name!r}: cannot write {what}; it is only read. Write one of its parts."
        )


def concatenated(name: str, corpus: Callable[[str], Corpus]) -> Corpus:
    """Return the corpus of a recipe's name; ``corpus`` gives that of one part's (snli, bitext:bible)."""
    parts = parts_of(name)
    if len(parts) == 1 and not parts[0][1]:
        return corpus(parts[0][0])
    return Concatenated(tuple(CorpusPart(label, splits, corpus(label)) for label, splits in parts))


def parts_of(name: str) -> list[tuple[str, tuple[Split, ...]]]:
    """Parse the name of a corpus in a recipe into each part's label and splits.

    ConfigError, with the syntax, where it is malformed.
    """
    parts = [_part(part.strip(), name) for part in name.split("+")]
    labels = [label for label, _ in parts]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"corpus {name!r}: {label} is there twice. Name each part once.")
    return parts


def _part(part: str, joined: str) -> tuple[str, tuple[Split, ...]]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ConfigError(
            f"corpus {joined!r}: {part!r} is no corpus; expected names joined by +, as in snli+cad-nli+sick, "
            f"one that trains on other splits than its own with these in brackets: snli[dev,test]."
        )
    splits = [] if match["splits"] is None else [split.strip() for split in match["splits"].split(",")]
    return match["corpus"], tuple(_split(split, splits, joined) for split in splits)


def _split(split: str, others: list[str], joined: str) -> Split:
    for name in SPLITS:
        if split == name and others.count(split) == 1:
            return name
    why = " It is there twice." if others.count(split) > 1 else did_you_mean(split, SPLITS)
    raise ConfigError(
        f"corpus {joined!r}: {split!r} in brackets is no split to train on.{why} "
        f"Expected one or more of {', '.join(SPLITS)}, each once: snli[dev,test]."
    )


def _marked(examples: Iterator[Example], part: CorpusPart, split: Split) -> Iterator[Example]:
    mark = f"{part.label}:{split}" if len(part.splits) > 1 else part.label
    for example in examples:
        yield replace(example, id=f"{mark}:{example.id}")
