"""Attachment scores: the share of words with the right head (UAS), and with the right relation too (LAS).

The CoNLL 2018 shared task (Zeman et al. 2018) defines them as F1 over all words, and CLAS over content words
alone; here the words are given, so gold and predicted words are the same.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain

from isogloss.core.contributions import Contributions

NOT_SCORED = frozenset({"PUNCT", "SYM"})
"""Tags of words that the interpolation paper does not score (its Appendix A)."""

FUNCTIONAL = frozenset({"aux", "case", "cc", "clf", "cop", "det", "mark"})
"""Relations of function words, which CLAS leaves out together with punct."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A dependency tree: for each word its head (counted from 1, 0 for the root), relation and gold tag."""

    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...] = ()
    """Empty in predicted trees: the gold tag decides whether a word is scored."""


def universal(relation: str) -> str:
    """Return a relation without its subtype: nmod for nmod:poss."""
    return relation.partition(":")[0]


def attachment_contributions(
    gold: Sequence[Tree],
    predicted: Sequence[Tree],
    *,
    without: Collection[str] = NOT_SCORED,
    first: int | None = None,
) -> tuple[Contributions, Contributions]:
    """Return the number of correct words of each sentence, for UAS and for LAS, and of scored words.

    Words are scored whose gold tag is not in ``without``; with ``first``, only that many words of each
    sentence. Relations are compared without their subtypes. ValueError where lengths of trees differ.
    """
    _check(gold, predicted)
    right_heads, labelled, words = [], [], []
    for gold_tree, predicted_tree in zip(gold, predicted, strict=True):
        tags = gold_tree.tags or ("",) * len(gold_tree.heads)
        counted = [word for word in range(len(gold_tree.heads[:first])) if tags[word] not in without]
        right = [word for word in counted if gold_tree.heads[word] == predicted_tree.heads[word]]
        same = [
            universal(gold_tree.relations[word]) == universal(predicted_tree.relations[word])
            for word in right
        ]
        words.append(float(len(counted)))
        right_heads.append(float(len(right)))
        labelled.append(float(sum(same)))
    return Contributions(right_heads, words), Contributions(labelled, words)


def content_contributions(gold: Sequence[Tree], predicted: Sequence[Tree]) -> Contributions:
    """Return for each sentence twice the right content words, and gold plus predicted ones: F1, called CLAS.

    Content words are those whose relation is neither a function word's nor punct. A word may be one in the
    gold tree and not in the predicted one, so precision and recall differ. Relations are compared without
    subtypes. ValueError where lengths of trees differ.
    """
    _check(gold, predicted)
    matches, totals = [], []
    for gold_tree, predicted_tree in zip(gold, predicted, strict=True):
        relations = [universal(relation) for relation in gold_tree.relations]
        guessed = [universal(relation) for relation in predicted_tree.relations]
        arcs, guesses = (
            zip(gold_tree.heads, relations, strict=True),
            zip(predicted_tree.heads, guessed, strict=True),
        )
        right = sum(arc == guess and _has_content(arc[1]) for arc, guess in zip(arcs, guesses, strict=True))
        matches.append(2.0 * right)
        totals.append(float(sum(map(_has_content, (*relations, *guessed)))))
    return Contributions(matches, totals)


def _has_content(relation: str) -> bool:
    return relation not in FUNCTIONAL and relation != "punct"


def _check(gold: Sequence[Tree], predicted: Sequence[Tree]) -> None:
    lengths = [[(len(tree.heads), len(tree.relations)) for tree in trees] for trees in (gold, predicted)]
    uneven = [heads for heads, relations in chain(*lengths) if heads != relations]
    if lengths[0] != lengths[1] or uneven:
        raise ValueError("gold and predicted trees differ in number or length, or lack heads or relations.")
