"""A described corpus from one labelled file and the text of target languages: read, split, written."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import NamedTuple

from isogloss.core.atomic_files import atomic_folder
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.seeds import derive
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.described import DescribedCorpus
from isogloss.data.corpus import SPLITS, Split
from isogloss.data.examples import Example, LabelledText, TaggedSentence, TextLine, is_labelled
from isogloss.data.files import some
from isogloss.data.formats.kinds import UNKNOWN, parts_of
from isogloss.data.formats.reading import KindName
from isogloss.data.projection.label_projection import texts_of
from isogloss.recipes.described_labels import labels_of, with_labels
from isogloss.recipes.descriptions import SUFFIX, described
from isogloss.recipes.found_columns import columns_found
from isogloss.recipes.recipe_text import to_toml

LEFT_OUT = "left-out.txt"
"""The file with the rows that are in no split, and why."""

SHOWN = 5
"""Rows left out that are printed."""


@dataclass(frozen=True, kw_only=True)
class LabelledFile:
    """A labelled file, the text of target languages, and how it is read and split."""

    path: Path
    """The file, or a description of it as training data."""
    source: str
    texts: Mapping[str, Path]
    """A file for each target language, with labels or without."""
    text: str = ""
    label: str = ""
    """Columns (``found_columns``)."""
    weights: Sequence[int] = (80, 10, 10)
    """Shares of train, dev and test."""
    seed: int = 0


class _Part(NamedTuple):
    """What a file comes to."""

    path: Path
    language: str
    layout: str
    splits: Mapping[Split, list[Example]]
    errors: Sequence[str]
    notes: Sequence[str]
    """How the file is read."""

    @property
    def examples(self) -> list[Example]:
        return [example for examples in self.splits.values() for example in examples]

    def remarks(self, folder: Path) -> Iterator[str]:
        """Yield what was found and written."""
        labels = Counter(label for example in self.examples for label in labels_of(example))
        counts = some(f"{label} {count:,}" for label, count in labels.most_common()) if labels else "none"
        yield f"{self.path}: {self.layout}, language {self.language}. Labels: {counts}."
        yield from (f"  {note}" for note in (*self.notes, *_repeats(self.examples)))
        if self.errors:
            yield f"  Rows left out, which {folder / LEFT_OUT} lists: {len(self.errors):,}."
            yield from (f"    {error}" for error in self.errors[:SHOWN])
        sizes = ", ".join(f"{split} {len(examples):,}" for split, examples in self.splits.items())
        yield f"  In {folder}: {sizes}."


class CorpusWritten(NamedTuple):
    """What was written, and the remarks about it."""

    description: Path
    unlabelled: tuple[str, ...]
    """Target languages without labels."""
    remarks: tuple[str, ...]


def write_corpus(file: LabelledFile, beside: Path) -> CorpusWritten:
    """Write the splits and their description into a new folder; every row is in a split or in LEFT_OUT."""
    name = re.sub(r"[^\w-]+", "-", file.path.name.partition(".")[0]).strip("-") or "corpus"
    name += "-own" * (name in CORPORA)
    folder = beside / name
    if folder.exists():
        raise ConfigError(
            f"{folder}: this exists, and data is never replaced. Move it away, or rename {file.path.name}."
        )
    corpus = _source_corpus(file)
    parts = [_part(file, corpus, corpus.kind, file.source, file.path)]
    for language, path in file.texts.items():
        parts.append(_part(file, _target_corpus(file, corpus, language, path), corpus.kind, language, path))
    written = CorpusWritten(
        description=folder / f"{name}{SUFFIX}",
        unlabelled=tuple(part.language for part in parts if not any(map(is_labelled, part.examples))),
        remarks=tuple(remark for part in parts for remark in part.remarks(folder)),
    )
    with atomic_folder(folder) as temporary:
        for part in parts:
            for split, examples in part.splits.items():
                lines = (_line(example, corpus.labels) for example in examples)
                _write(temporary / f"{part.language}.{split}.jsonl", lines)
        _write(temporary / written.description.name, _description(file, corpus).splitlines())
        if errors := [error for part in parts for error in part.errors]:
            _write(temporary / LEFT_OUT, errors)
    return written


def _source_corpus(file: LabelledFile) -> DescribedCorpus:
    if file.path.suffix == SUFFIX:
        return described(file.path)
    return with_labels(_corpus(file, file.source, file.path, "train"), None)


def _target_corpus(file: LabelledFile, corpus: DescribedCorpus, language: str, path: Path) -> DescribedCorpus:
    own = _corpus(file, language, path, "dev")
    if own.kind != corpus.kind and (own.kind != "raw" or corpus.kind not in ("text", "tagging")):
        raise ConfigError(
            f"{path}: found {own.kind} ({own.format}); expected {corpus.kind}, as {file.path} has. Give a "
            f"file with the same columns; its label may be missing."
        )
    return replace(own, labels=corpus.labels)


def _corpus(file: LabelledFile, language: str, path: Path, split: Split) -> DescribedCorpus:
    """Return a file as a corpus of one split."""
    if not path.is_file():
        raise ConfigError(f"{path}: no such file. Give a file of text in {language}.")
    return DescribedCorpus(
        name=path.name,
        paths={split: escape(path.name)},
        languages={language: language},
        folder=str(path.parent),
        **columns_found(path, file.text, file.label, labelled=split == "train")._asdict(),
    )


def _part(file: LabelledFile, corpus: DescribedCorpus, kind: KindName, language: str, path: Path) -> _Part:
    """Read a file and split it: a target's is dev where it has no labels, else half dev and half test."""
    is_source = language == file.source
    read: tuple[str, Split] = (language, "train" if is_source else "dev")
    attempts = [*corpus.attempts(None, *read)]
    examples = [_of_kind(kind, example) for example in attempts if not isinstance(example, DataError)]
    errors = [str(error) for error in attempts if isinstance(error, DataError)]
    names = SPLITS if is_source else SPLITS[1:] if any(map(is_labelled, examples)) else SPLITS[1:2]
    weights = file.weights if is_source else [1] * len(names)
    splits = dict(zip(names, split_examples(examples, weights, seed=file.seed), strict=True))
    if empty := [split for split, part in splits.items() if not part]:
        first = f" First error: {errors[0]}" if errors else ""
        raise DataError(
            f"{path}: {len(examples):,} rows that fit, and none for {empty[0]}; expected some for each "
            f"split. Give a larger file, or other shares (--split).{first}"
        )
    columns = ", ".join(f"{part} in {column!r}" for part, column in corpus.columns.items())
    layout = "lines of text" if corpus.format == "lines" else f"{corpus.format}, {columns}"
    return _Part(path, language, layout, splits, errors, [*corpus.remarks(None, *read)])


def _of_kind(kind: KindName, example: Example) -> Example:
    """Return a line of text as an unlabelled example; others as they are."""
    if isinstance(example, TextLine) and kind == "text":
        return LabelledText(id=example.id, text=example.text, label=UNKNOWN)
    if isinstance(example, TextLine):
        return TaggedSentence(id=example.id, words=tuple(example.text.split()), tags=())
    return example


def _repeats(examples: Sequence[Example]) -> list[str]:
    """Return how many texts are there more than once; nothing where none is."""
    texts = [tuple(texts_of(example)) for example in examples]
    labels = [getattr(example, "label", "") or getattr(example, "tags", "") for example in examples]
    different, labelled = len({*texts}), len({*zip(texts, labels, strict=True)})
    counts = f"{len(texts) - different:,} ({labelled - different:,} with another label)"
    return [f"Rows that repeat a text, all in its split: {counts}."] if len(texts) > different else []


def _line(example: Example, labels: Sequence[str]) -> str:
    """Return an example as JSON, with its id or the number of its row in the file it came from."""
    parts = parts_of(example, labels)
    if not is_labelled(example):
        parts = {name: part for name, part in parts.items() if name not in ("label", "labels", "answers")}
    return json.dumps({"id": example.id, **parts}, ensure_ascii=False)


def _description(file: LabelledFile, corpus: DescribedCorpus) -> str:
    more = [part for part in ("question", "prompt") if corpus.kind == "choice" and part in corpus.columns]
    inventory = {"labels": list(corpus.labels)} if corpus.labels and corpus.kind != "tagging" else {}
    return to_toml(
        {
            "kind": corpus.kind,
            "predicts": corpus.predicts,
            "files": "{language}.{split}.jsonl",
            "languages": [file.source, *file.texts],
            **inventory,
            "columns": {part: part for part in ("id", *more)},
            "about": f"{file.path.name}, split by isogloss init with seed {file.seed}.",
        }
    )


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def split_examples(examples: Sequence[Example], weights: Sequence[int], *, seed: int) -> list[list[Example]]:
    """Return a list of examples for each weight, as large as its share of all weights, in their order.

    Seed, texts and labels decide, not the order of the examples. The first text of each label is in the first
    split.
    """
    groups: dict[str, list[int]] = {}
    for number, example in enumerate(examples):
        groups.setdefault("\t".join(texts_of(example)), []).append(number)
    ranked = sorted(
        (min(_stratum(examples[number]) for number in numbers), derive(seed, "split", text), numbers)
        for text, numbers in groups.items()
    )
    owed, seen, split_of = [0] * len(weights), set[str](), dict[int, int]()
    for stratum, _, numbers in ranked:
        owed = [count + weight * len(numbers) for count, weight in zip(owed, weights, strict=True)]
        split = owed.index(max(owed)) if stratum in seen else 0
        seen.add(stratum)
        owed[split] -= sum(weights) * len(numbers)
        split_of |= dict.fromkeys(numbers, split)
    return [
        [example for number, example in enumerate(examples) if split_of[number] == split]
        for split in range(len(weights))
    ]


def _stratum(example: Example) -> str:
    """Return the label of an example that has a single one; empty for others."""
    label = getattr(example, "label", None)
    return str(label) if isinstance(label, str | int) else ""
