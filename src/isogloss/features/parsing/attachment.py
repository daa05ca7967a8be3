"""Attachment scores of trees: UAS, LAS and CLAS."""

from collections.abc import Collection, Sequence
from itertools import chain

from isogloss.core.rows.models import Contributions
from isogloss.metrics.labels import Tree

NOT_SCORED = frozenset({"PUNCT", "SYM"})
"""Tags of words that the interpolation paper does not score (its Appendix A)."""

FUNCTIONAL = frozenset({"aux", "case", "cc", "clf", "cop", "det", "mark"})
"""Relations of function words, which CLAS ignores, like punct."""


def universal(relation: str) -> str:
    """Return a relation without its subtype: nmod for nmod:poss."""
    return relation.partition(":")[0]


def attachment_contributions(
    gold: Sequence[Tree],
    predictions: Sequence[Tree],
    *,
    unscored_tags: Collection[str] = NOT_SCORED,
    word_limit: int | None = None,
) -> tuple[Contributions, Contributions]:
    """Return the number of correct words of each sentence, for UAS and for LAS, and of scored words.

    Words are scored whose gold tag is not in ``unscored_tags``; with ``word_limit``, only that many words of
    each sentence. Relations are compared without their subtypes. ValueError where lengths of trees differ.
    """
    _check_trees(gold, predictions)
    right_heads, right_arcs, words = [], [], []
    for gold_tree, predicted_tree in zip(gold, predictions, strict=True):
        tags = gold_tree.tags or ("",) * len(gold_tree.heads)
        scored_words = [
            word for word in range(len(gold_tree.heads[:word_limit])) if tags[word] not in unscored_tags
        ]
        right = [word for word in scored_words if gold_tree.heads[word] == predicted_tree.heads[word]]
        equal = [
            universal(gold_tree.relations[word]) == universal(predicted_tree.relations[word])
            for word in right
        ]
        words.append(float(len(scored_words)))
        right_heads.append(float(len(right)))
        right_arcs.append(float(sum(equal)))
    return Contributions(right_heads, words), Contributions(right_arcs, words)


def content_contributions(gold: Sequence[Tree], predictions: Sequence[Tree]) -> Contributions:
    """Return for each sentence twice the right content words, and gold plus predicted ones: F1, called CLAS.

    Content words are those whose relation is neither a function word's nor punct. A word may be one in the
    gold tree and not in the predicted one, so precision and recall differ. Relations are compared without
    subtypes. ValueError where lengths of trees differ.
    """
    _check_trees(gold, predictions)
    matches, totals = [], []
    for gold_tree, predicted_tree in zip(gold, predictions, strict=True):
        relations = [universal(relation) for relation in gold_tree.relations]
        predicted_relations = [universal(relation) for relation in predicted_tree.relations]
        arcs = zip(gold_tree.heads, relations, strict=True)
        guesses = zip(predicted_tree.heads, predicted_relations, strict=True)
        right = sum(arc == guess and _has_content(arc[1]) for arc, guess in zip(arcs, guesses, strict=True))
        matches.append(2.0 * right)
        totals.append(float(sum(_has_content(name) for name in (*relations, *predicted_relations))))
    return Contributions(matches, totals)


def _has_content(relation: str) -> bool:
    return relation not in FUNCTIONAL and relation != "punct"


def _check_trees(gold: Sequence[Tree], predictions: Sequence[Tree]) -> None:
    lengths = [[(len(tree.heads), len(tree.relations)) for tree in trees] for trees in (gold, predictions)]
    uneven_trees = [heads for heads, relations in chain(*lengths) if heads != relations]
    if lengths[0] != lengths[1] or uneven_trees:
        raise ValueError("gold and predicted trees differ in number or length, or lack heads or relations.")
