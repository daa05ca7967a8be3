"""Sentences with dependency trees as rows: the first words that fit, and their heads among them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from isogloss.core.errors import DataError, did_you_mean
from isogloss.data.examples import ParsedSentence, TaggedSentence
from isogloss.encoders.subwords import SplitWords, special_subwords, split_words
from isogloss.metrics.attachment import Tree, universal
from isogloss.tasks.batch import EncodedRow
from isogloss.tasks.labels import numbering
from isogloss.tasks.sentences import SPECIAL
from isogloss.tasks.spanning_tree import is_tree

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

CUT_OFF = -1
"""In the place of a head that is not in the row; nothing is learned from its word."""

VERSION_1 = {
    "auxpass": "aux:pass", "csubjpass": "csubj:pass", "dobj": "obj", "foreign": "flat:foreign",
    "mwe": "fixed", "name": "flat:name", "neg": "advmod", "nsubjpass": "nsubj:pass", "remnant": "orphan",
}  # fmt: skip
"""Relations that only version 1 of Universal Dependencies has, and what version 2 has in their place."""


Sentence = ParsedSentence | TaggedSentence
"""A sentence in words; one that is tagged only, or has no heads, is without labels here."""


def gold_tree(example: Sentence) -> Tree:
    """Return a sentence's tree, with the tags that say what counts in scores; empty without labels."""
    if isinstance(example, ParsedSentence) and (example.heads or example.relations):
        return Tree(example.heads, example.relations, example.tags)
    return Tree((), ())


def tree_rows(
    examples: Sequence[Sentence],
    labels: Sequence[str],
    tokenizer: "PreTrainedTokenizerFast",
    *,
    words: int,
    limit: int,
) -> list[EncodedRow]:
    """Encode each sentence with words as one row: its first ``words`` words that begin within ``limit``.

    ``limit`` counts subwords with the special ones. A relation with a subtype is its universal part where
    the labels do not have it whole. DataError at one they have not, and at heads that are no tree.
    """
    if limit <= SPECIAL:
        raise ValueError(f"rows of {limit} subwords hold no word: use a limit of at least {SPECIAL + 1}.")
    ends, numbers = special_subwords(tokenizer), numbering(labels)
    rows = []
    splits = split_words([example.words for example in examples], tokenizer)
    for number, (example, split) in enumerate(zip(examples, splits, strict=True)):
        heads, gold = _labels(example, numbers)
        if example.words:
            rows.append(_row(number, split, heads, gold, ends=ends, most=(words, limit - SPECIAL)))
    return rows


def _row(
    example: int,
    split: SplitWords,
    heads: tuple[int, ...],
    gold: tuple[int, ...],
    *,
    ends: tuple[int, int],
    most: tuple[int, int],
) -> EncodedRow:
    first = split.first()
    stop = min([most[1], *first[most[0] : most[0] + 1]])  # where the first word that is too many begins
    places = [1 + place for place in first if place < stop]
    return EncodedRow(
        example=example,
        subwords=(ends[0], *split.subwords[:stop], ends[1]),
        positions=tuple(places),
        words=range(len(places)),
        gold=gold[: len(places)],
        heads=tuple(head if head <= len(places) else CUT_OFF for head in heads[: len(places)]),
    )


def _labels(example: Sentence, numbers: Mapping[str, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return heads and relation numbers; DataError where they are not those of a tree."""
    tree = gold_tree(example)
    if not tree.heads and not tree.relations:
        return (), ()
    lengths = {len(example.words), len(tree.heads), len(tree.relations), len(tree.tags or example.words)}
    if len(lengths) > 1:
        raise DataError(
            f"example {example.id!r}: {len(tree.heads)} heads, {len(tree.relations)} relations and "
            f"{len(tree.tags)} tags for {len(example.words)} words. Give one of each for every word."
        )
    if not is_tree(tree.heads):
        raise DataError(
            f"example {example.id!r}: the heads {list(tree.heads)} are no tree: one word must have head 0, "
            f"and every other lead there. Correct the heads, or leave the sentence out."
        )
    return tree.heads, tuple(
        _number(relation, numbers, f"example {example.id!r}, word {place}")
        for place, relation in enumerate(tree.relations, start=1)
    )


def _number(relation: str, numbers: Mapping[str, int], where: str) -> int:
    name = relation if relation in numbers else universal(relation)
    if name in numbers:
        return numbers[name]
    advice = did_you_mean(name, numbers)
    if name in VERSION_1:
        advice = (
            f" It looks like Universal Dependencies version 1, where version 2 has {VERSION_1[name]!r}: take "
            f"a later release of this treebank."
        )
    raise DataError(f"{where}: parsing has no relation {name!r}.{advice} Allowed: {', '.join(numbers)}.")
