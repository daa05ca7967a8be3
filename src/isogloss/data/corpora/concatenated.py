"""Several corpora of one task read as one: ``snli+cad-nli+sick``.

Parts are read in turn, and ids begin with the part. ``snli[dev,test]`` makes the named splits of a part its
training data; the part then has no dev or test. So held-out splits can be used for training, while dev and
test come from the other parts. ``cad-nli:original`` is a collection of a corpus.
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
    """A part of a concatenated corpus."""

    label: str
    """Its name, with its collection if one is named (bitext:bible). Ids begin with it."""
    splits: tuple[Split, ...]
    """Splits used as its training data. Default: its own train, dev and test."""
    corpus: Corpus

    def sources(self, split: Split) -> tuple[Split, ...]:
        """Return the splits of this corpus from which a split of the whole is read."""
        if not self.splits:
            return (split,)
        return self.splits if split == "train" else ()


@dataclass(frozen=True)
class Concatenated(CorpusDefaults):
    """Corpora read in turn, with the tasks that all of them have."""

    parts: tuple[CorpusPart, ...]

    def __post_init__(self) -> None:
        if not self.tasks:
            facts = "; ".join(f"{part.label} has {', '.join(part.corpus.tasks)}" for part in self.parts)
            raise ConfigError(
                f"corpus {self.name!r}: its parts have no task in common: {facts}. Join corpora of one task."
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
        first_tasks, *other_tasks = (part.corpus.tasks for part in self.parts)
        return tuple(task for task in first_tasks if all(task in tasks for tasks in other_tasks))

    @property
    def about(self) -> About:
        """Contents, home pages and licences of the parts."""
        abouts = [part.corpus.about for part in self.parts]
        licences = [f"{part.label}: {part.corpus.about.licence}" for part in self.parts]
        return About(
            text=" ".join(entry.text for entry in abouts),
            url=" ".join(entry.url for entry in abouts),
            licence="; ".join(licences),
        )

    def path(self, language: str, split: Split) -> str:
        """Raise DataError, because each part has its own files."""
        raise self._not_written(f"{split} of {language}")

    def find(self, folder: Folder, language: str, split: Split) -> list[File]:
        """Find the files of all parts on disk."""
        files = (part.corpus.find(folder, language, origin) for part, origin in self._sources(split))
        return list(chain.from_iterable(files))

    def files(self, source: Source, language: str, split: Split) -> list[File]:
        """Return the files of all parts.

        Raises DataError if any part lacks its files, or no part has the split.
        """
        files = (part.corpus.files(source, language, origin) for part, origin in self._sources(split))
        return list(chain.from_iterable(files))

    def read(self, source: Source, language: str, split: Split) -> Iterator[Example]:
        """Yield the examples of the parts in turn.

        An id consists of the part, the split if several serve as train, and the example's id.
        """
        readers = [
            _prefix_ids(part.corpus.read(source, language, origin), part, origin)
            for part, origin in self._sources(split)
        ]
        return chain.from_iterable(readers)

    def write(self, examples: Iterable[Example], language: str) -> Iterator[str]:  # noqa: ARG002
        """Raise DataError, because each part has its own format."""
        raise self._not_written(f"examples of {language}")

    def _sources(self, split: Split) -> list[tuple[CorpusPart, Split]]:
        sources = [(part, origin) for part in self.parts for origin in part.sources(split)]
        if not sources:
            raise DataError(
                f"corpus {self.name!r}: no part has {split}, because each uses the splits in brackets as "
                f"training data. Join a corpus that has {split}, or remove the brackets of one."
            )
        return sources

    def _not_written(self, content: str) -> DataError:
        return DataError(
            f"corpus {self.name!r}: cannot write {content}; it is only read. Write one of its parts."
        )


def join_corpora(name: str, corpus: Callable[[str], Corpus]) -> Corpus:
    """Return the corpus of a recipe's name.

    ``corpus`` is a function from the name of a single part (snli, bitext:bible) to its corpus.
    """
    parts = parts_of(name)
    if len(parts) == 1 and not parts[0][1]:
        return corpus(parts[0][0])
    return Concatenated(tuple(CorpusPart(label, splits, corpus(label)) for label, splits in parts))


def parts_of(name: str) -> list[tuple[str, tuple[Split, ...]]]:
    """Parse the name of a corpus in a recipe into each part's label and splits.

    Raises ConfigError, with the syntax, if it is malformed.
    """
    parts = [_part(part.strip(), name) for part in name.split("+")]
    labels = [label for label, _ in parts]
    for label in labels:
        if labels.count(label) > 1:
            raise ConfigError(f"corpus {name!r}: {label} occurs twice. Name each part once.")
    return parts


def _part(part: str, name: str) -> tuple[str, tuple[Split, ...]]:
    match = _PART.fullmatch(part)
    if match is None:
        raise ConfigError(
            f"corpus {name!r}: {part!r} is not a corpus; expected names joined by +, as in "
            f"snli+cad-nli+sick, with splits to train on in brackets: snli[dev,test]."
        )
    splits = [] if match["splits"] is None else [split.strip() for split in match["splits"].split(",")]
    return match["corpus"], tuple(_split(split, splits, name) for split in splits)


def _split(split: str, part_splits: list[str], corpus: str) -> Split:
    for name in SPLITS:
        if split == name and part_splits.count(split) == 1:
            return name
    reason = " It occurs twice." if part_splits.count(split) > 1 else did_you_mean(split, SPLITS)
    raise ConfigError(
        f"corpus {corpus!r}: {split!r} in brackets is not a split to train on.{reason} "
        f"Expected one or more of {', '.join(SPLITS)}, each once: snli[dev,test]."
    )


def _prefix_ids(examples: Iterator[Example], part: CorpusPart, split: Split) -> Iterator[Example]:
    mark = f"{part.label}:{split}" if len(part.splits) > 1 else part.label
    for example in examples:
        yield replace(example, id=f"{mark}:{example.id}")
