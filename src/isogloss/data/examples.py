"""Examples as corpora return them, frozen and independent of any file format; and choices among them.

Every example has an ``id`` that is unique within its corpus, language and split and identifies it in the
file (UD's sent_id, or a running number where the format has none).

Stored examples are JSON lines: one object an example, its ``kind`` first. Reading returns what was written.

Few-shot examples are the first k by a rank drawn from the seed and the example's id: the order of the files
does not matter, the shots of k = 5 are among those of k = 10, and parallel corpora (equal ids in all
languages) have the same shots in every language.
"""

import heapq
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from io import BufferedReader, TextIOWrapper
from operator import itemgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, get_args, get_origin

from isogloss.core.atomic_files import atomic_file
from isogloss.core.errors import ConfigError, DataError, StorageError, one_line
from isogloss.core.identity import derive
from isogloss.core.shared_files import open_file
from isogloss.core.untrusted import parse_json
from isogloss.data.files import is_unicode


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """Words with one tag each (WikiANN, XTREME's udpos).

    ``links`` are those of a translation, where they are known: 0-based pairs of a word of the sentence that
    was translated and a word of this one. They do not make another sentence of it.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSentence:
    """A sentence of a treebank: words, universal tags and a tree.

    ``heads`` are 1-based word numbers, 0 for the root; ``relations`` are UD relations with their subtypes.
    ``lines`` are the original lines, so that multi-word ranges, empty nodes, enhanced
    graphs and comments can be written back untouched.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    lines: tuple[str, ...] = ()
    where: str = field(default="", compare=False, repr=False, metadata={"stored": False})
    """File and number of the first line, for messages; not stored."""


Label = str | tuple[str, ...] | float
"""One label, those that hold (maybe none), or a number; "" where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """Two texts and their label (XNLI: premise, hypothesis; PAWS-X: two sentences)."""

    id: str
    first: str
    second: str
    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledText:
    """One text and its label (a topic, an intent), its labels (emotions), or a number."""

    id: str
    text: str
    label: Label


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A context and two or more options (XCOPA, Belebele).

    ``label`` is the index of the right option, None for an unlabelled item. ``question`` is a text of the
    language; ``prompt`` is what a corpus asks in a code of its own, the same in every language (XCOPA: cause,
    effect), and is not translated. Either may be empty.
    """

    id: str
    context: str
    options: tuple[str, ...]
    label: int | None
    question: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """One sentence or paragraph of raw text; ``document`` counts from 0."""

    id: str
    text: str
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A text in two languages; ``links`` are 0-based word pairs (first, second) where gold ones exist.

    ``possible`` are further links that an aligner may give but need not. ``words`` are those of both texts
    where they are given, by a treebank or by gold links; ``word_links.pair_words`` tokenizes all others.
    """

    id: str
    first: str
    second: str
    links: tuple[tuple[int, int], ...] | None = None
    possible: tuple[tuple[int, int], ...] = ()
    words: tuple[tuple[str, ...], tuple[str, ...]] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableText:
    """A text of two comparable corpora with its translation in the other, or empty there without one."""

    id: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a passage; ``answers`` are (character offset in the passage, text).

    ``language`` is that of the passage where answers are compared by its own articles and punctuation
    (MLQA); empty where they are compared as SQuAD's script does, whatever the language. ``title`` is that of
    the article. ``place`` is the position of the passage in its file, as indices of article and paragraph,
    for writing it back; ``repaired`` lists the reader's corrections of the answers. Questions that differ in
    these two alone are equal.
    """

    id: str
    passage: str
    question: str
    answers: tuple[tuple[int, str], ...]
    language: str = ""
    title: str = ""
    place: tuple[int, int] = field(default=(0, 0), compare=False)
    repaired: str = field(default="", compare=False)


Example = (
    TaggedSentence
    | ParsedSentence
    | SentencePair
    | LabelledText
    | Choice
    | TextLine
    | Translation
    | ComparableText
    | Question
)


def is_labelled(example: Example) -> bool:
    """Return whether an example has a label, tags or answers; it may have a set of labels that is empty.

    An example of a class of another package has what that package gives it.
    """
    if type(example) not in KINDS.values():
        return True
    texts = [getattr(example, name, ()) for name in ("tags", "answers")]
    return any(texts) or getattr(example, "label", None) not in (None, "")


KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Example)}
"""Every kind of example, by its name."""


def write_examples(path: Path, examples: Iterable[Example]) -> None:
    """Write a file of examples atomically."""
    with atomic_file(path.parent, path.name) as file:
        file.writelines(f"{line}\n" for line in map(example_line, examples))


def read_examples(path: Path) -> Iterator[Example]:
    """Read a file of examples, one at a time; StorageError, with the line, where it is damaged."""
    try:
        with TextIOWrapper(
            BufferedReader(open_file(path.parent, path.name)), encoding="utf-8", newline="\n"
        ) as file:
            for number, line in enumerate(file, start=1):
                yield _example(line, path, number)
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(path, f"cannot be read ({' '.join(str(error).split())})") from error


def example_line(example: Example) -> str:
    """Return an example as one line of JSON, without fields at their default."""
    stored = (member for member in fields(example) if member.metadata.get("stored", True))
    values = ((member, getattr(example, member.name)) for member in stored)
    body = {member.name: value for member, value in values if value != member.default}
    line = json.dumps({"kind": type(example).__name__, **body}, ensure_ascii=False)
    # Half a surrogate pair is no character that a file can hold; its escape is.
    return line if is_unicode(line) else json.dumps({"kind": type(example).__name__, **body})


def _example(line: str, path: Path, number: int) -> Example:
    try:
        body = parse_json(line, finite=False, unicode=False)
        kind = KINDS[body.pop("kind")]
        example: Example = kind(**{name: _frozen(value) for name, value in body.items()})
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(path, f"line {number} is no example ({one_line(error):.120})") from error
    for member in fields(kind):
        if not _fits(value := getattr(example, member.name), member.type):
            raise _damaged(path, f"line {number} is no example ({member.name} is {value!r:.60})")
    return example


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def _fits(value: object, kind: object) -> bool:
    """Return whether a value is of a field's type: a text, a number, or tuples of such."""
    parts = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_fits(value, part) for part in parts)
    if not parts:
        return type(value) is (NoneType if kind is None else kind)
    if not isinstance(value, tuple):
        return False
    if parts[-1] is ...:
        return all(_fits(item, parts[0]) for item in value)
    return len(value) == len(parts) and all(map(_fits, value, parts))


def _damaged(path: Path, what: str) -> StorageError:
    return StorageError(
        f"{path}: {what}. Delete the record.json of its folder and run again; only this run is repeated."
    )


Kind = TypeVar("Kind", bound=Example)
Item = TypeVar("Item")
Per = Literal["all", "label"]


def shots(examples: Iterable[Kind], count: int, *, seed: int, per: Per = "all") -> list[Kind]:
    """Choose ``count`` examples of all, or of each label, first in rank first; DataError if there are fewer.

    With ``per="label"`` every label that occurs counts, and examples must have one label each (texts, pairs;
    of choices, the place of the right option).
    """
    if count < 0:
        raise ConfigError(f"shots: {count} examples; expected 0 or more. Give how many to choose.")
    ranked = sorted(examples, key=lambda example: (derive(seed, "shots", example.id), example.id))
    if per == "all":
        if len(ranked) < count:
            raise _too_few(count, len(ranked), "the split has")
        return ranked[:count]
    labels = [_label(example) for example in ranked]
    for label, available in sorted(Counter(labels).items()):
        if available < count:
            raise _too_few(count, available, f"label {label!r} has")
    numbers: Counter[str] = Counter()
    chosen = []
    for example, label in zip(ranked, labels, strict=True):
        if numbers[label] < count:
            numbers[label] += 1
            chosen.append(example)
    return chosen


def _label(example: Example) -> str:
    if isinstance(example, SentencePair | LabelledText) and isinstance(example.label, str) and example.label:
        return example.label
    if isinstance(example, Choice) and example.label is not None:
        return str(example.label)
    raise DataError(
        f"shots: example {example.id!r} ({type(example).__name__}) has no label of its own; expected texts, "
        f"pairs or choices with labels. Choose shots of all examples instead of each label (per = 'all')."
    )


def _too_few(needed: int, available: int, owner: str) -> DataError:
    return DataError(
        f"shots: {needed} examples requested, but {owner} {available}. Choose at most {available}."
    )


def subsample(lines: Iterable[Item], count: int, *, seed: int) -> list[Item]:
    """Return ``count`` (1 or more) lines (or examples) at random (all where there are fewer), in their order.

    Every line draws a random number, and the smallest are chosen: with one seed, a smaller choice is part of
    a larger one.
    """
    draw = random.Random(seed)
    return _lowest(((draw.random(), line) for line in lines), count)


def limited(examples: Iterable[Kind], count: int) -> list[Kind]:
    """Return ``count`` (1 or more) examples at random (all where there are fewer), in their order.

    The draw follows from the ids alone: it is the same in every run, under every seed and in any order of
    the file, and parallel corpora have the same examples in every language. A smaller choice is part of a
    larger one.
    """
    return _lowest(((derive(0, "limit", example.id), example) for example in examples), count)


def _lowest(ranked: Iterable[tuple[float, Item]], count: int) -> list[Item]:
    """Return the items of lowest rank in their order; no more than ``count`` are held."""
    numbered = ((rank, number, item) for number, (rank, item) in enumerate(ranked))
    return [item for _, _, item in sorted(heapq.nsmallest(count, numbered), key=itemgetter(1))]
