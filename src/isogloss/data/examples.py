"""Classes of examples, files of stored examples, and random choices of examples.

Examples are frozen and independent of file formats. Every example has an ``id`` that is unique within its
corpus, language and split and identifies it in the file (UD's sent_id, or a running number where the format
has none).

Stored examples are JSON lines: one object per example, its ``kind`` first. Reading returns what was written.

Few-shot examples are the first k by a rank drawn from the seed and the example's id. The order of the files
does not matter, the shots of k = 5 are among the shots of k = 10, and parallel corpora (equal ids in all
languages) have the same shots in every language.
"""

import heapq
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Literal, TypeVar, get_args

from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedSentence:
    """Words with one tag each (WikiANN, XTREME's udpos).

    ``links`` are 0-based word pairs (word of the original sentence, word of this one) if the sentence is a
    translation and its links are known. They do not count when sentences are compared.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSentence:
    """A sentence of a treebank: words, universal tags and a tree.

    ``heads`` are 1-based word numbers, 0 for the root. ``relations`` are UD relations with their subtypes.
    ``lines`` are the original lines, so that multi-word ranges, empty nodes, enhanced graphs and comments can
    be written back unchanged.
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    lines: tuple[str, ...] = ()
    where: str = field(default="", compare=False, repr=False, metadata={"stored": False})
    """File and number of the first line, for messages. Not stored."""


Label = str | tuple[str, ...] | float
"""One label, a set of labels (possibly empty), or a number. "" if it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentencePair:
    """Two texts and their label, such as premise and hypothesis of XNLI or two sentences of PAWS-X."""

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

    ``label`` is the index of the right option, None for an unlabelled item. ``question`` is a text in the
    language. ``prompt`` is a keyword of the corpus, the same in every language (XCOPA: cause, effect), and is
    not translated. Either may be empty.
    """

    id: str
    context: str
    options: tuple[str, ...]
    label: int | None
    question: str = ""
    prompt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """One sentence or paragraph of raw text, with its document counted from 0."""

    id: str
    text: str
    document: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """A text in two languages, with word links where gold ones exist.

    ``links`` are 0-based word pairs (first, second). ``possible`` are further pairs that an aligner may
    predict without an error. ``words`` are the words of both texts if a treebank or gold links state them;
    otherwise ``word_links.pair_words`` tokenizes the texts.
    """

    id: str
    first: str
    second: str
    links: tuple[tuple[int, int], ...] | None = None
    possible: tuple[tuple[int, int], ...] = ()
    words: tuple[tuple[str, ...], tuple[str, ...]] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparableText:
    """A text of one of two comparable corpora with its translation, or with an empty text if it has none."""

    id: str
    first: str
    second: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question about a passage, with answers as (character offset in the passage, text).

    ``language`` is the language of the passage where answers are compared by its articles and punctuation
    (MLQA). It is empty where SQuAD's script compares them, whatever the language. ``title`` is the title of
    the article. ``place`` is the position of the passage in its file, as indices of article and paragraph,
    for writing it back; ``repaired`` lists the reader's corrections of the answers. Neither ``place`` nor
    ``repaired`` counts when questions are compared.
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
    """Return whether an example has a non-empty label, tags or answers, or any set of labels.

    Examples of classes from plug-ins always count as labelled.
    """
    if type(example) not in KINDS.values():
        return True
    texts = [getattr(example, name, ()) for name in ("tags", "answers")]
    return any(texts) or getattr(example, "label", None) not in (None, "")


SHOWN = 3
"""Number of repairs that a message shows in full."""


def repairs_message(examples: Iterable[Example], split: str) -> str:
    """Return a message on the answers of a split that were relocated while reading, or "" for none."""
    questions = [question for question in examples if isinstance(question, Question) and question.repaired]
    if not questions:
        return ""
    facts = "; ".join(f"question {question.id}: {question.repaired}" for question in questions[:SHOWN])
    remainder = f"; and {len(questions) - SHOWN} more" if len(questions) > SHOWN else ""
    return f"{split}: answers relocated from wrong offsets: {len(questions)} ({facts}{remainder})."


KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Example)}
"""Every kind of example, by its name."""


Kind = TypeVar("Kind", bound=Example)
Item = TypeVar("Item")
Per = Literal["all", "label"]


def shots(examples: Iterable[Kind], count: int, *, seed: int, per: Per = "all") -> list[Kind]:
    """Choose ``count`` examples of all, or of each label, in the order of their ranks.

    With ``per="label"`` every label that occurs counts, and examples must have one label each (texts, pairs,
    and choices, whose label is the index of the right option).

    Raises DataError for fewer than ``count``, and ConfigError for a negative ``count``.
    """
    if count < 0:
        raise ConfigError(f"shots: {count} examples; expected 0 or more. Give how many to choose.")
    examples_by_rank = sorted(examples, key=lambda example: (derive(seed, "shots", example.id), example.id))
    if per == "all":
        if len(examples_by_rank) < count:
            raise _too_few(count, len(examples_by_rank), "the split has")
        return examples_by_rank[:count]
    labels = [_label(example) for example in examples_by_rank]
    for label, available in sorted(Counter(labels).items()):
        if available < count:
            raise _too_few(count, available, f"label {label!r} has")
    label_counts: Counter[str] = Counter()
    selection = []
    for example, label in zip(examples_by_rank, labels, strict=True):
        if label_counts[label] < count:
            label_counts[label] += 1
            selection.append(example)
    return selection


def _label(example: Example) -> str:
    if isinstance(example, SentencePair | LabelledText) and isinstance(example.label, str) and example.label:
        return example.label
    if isinstance(example, Choice) and example.label is not None:
        return str(example.label)
    raise DataError(
        f"shots: example {example.id!r} ({type(example).__name__}) has no single label; expected texts, "
        f"pairs or choices with one label each. Choose shots from all examples (per = 'all')."
    )


def _too_few(count: int, available: int, owner: str) -> DataError:
    return DataError(
        f"shots: {count} examples requested, but {owner} {available}. Choose at most {available}."
    )


def subsample(lines: Iterable[Item], count: int, *, seed: int) -> list[Item]:
    """Return ``count`` (1 or more) random lines or examples, in their order.

    All are returned if they are fewer. Every line draws a random number, and the smallest are chosen, so
    with the same seed a smaller choice is part of a larger one.
    """
    draw = random.Random(seed)
    return _lowest(((draw.random(), line) for line in lines), count)


def limit_examples(examples: Iterable[Kind], count: int) -> list[Kind]:
    """Return ``count`` (1 or more) random examples, in their order.

    All are returned if they are fewer. The draw depends only on the ids: it is the same in every run, under
    every seed and in any order of the file, and parallel corpora have the same examples in every language. A
    smaller choice is part of a larger one. Use ``subsample`` for a draw that depends on a seed.
    """
    return _lowest(((derive(0, "limit", example.id), example) for example in examples), count)


def _lowest(ranks_and_items: Iterable[tuple[float, Item]], count: int) -> list[Item]:
    """Return the ``count`` items with the lowest ranks, in their order.

    At most ``count`` items are in memory.
    """
    numbered_items = ((rank, index, item) for index, (rank, item) in enumerate(ranks_and_items))
    return [item for _, _, item in sorted(heapq.nsmallest(count, numbered_items), key=itemgetter(1))]
