"""Scores of word alignments on bitext with gold links.

Precision on possible and recall on sure gold links, F1 and AER (Och & Ney 2003, Sec. 5). An aligner may, but
need not, find links that are only possible. Sure links are also possible links.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """Scores in [0, 1]. For ``aer``, the alignment error rate, lower is better."""

    precision: float
    recall: float
    f1: float
    aer: float


def alignment_scores(
    sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]], predictions: Sequence[Iterable[Link]]
) -> AlignmentScores:
    """Compute micro-averaged scores over all sentence pairs. A repeated link of a pair counts once.

    With A predicted, S sure and P possible links (S within P): precision |A∩P|/|A|, recall |A∩S|/|S|, AER
    1 − (|A∩S|+|A∩P|)/(|A|+|S|). Precision is 0 without predicted links, recall without sure ones, AER without
    either. ValueError where the numbers of pairs differ.
    """
    if not len(sure) == len(possible) == len(predictions):
        raise ValueError(
            f"{len(sure)} pairs with sure, {len(possible)} with possible and {len(predictions)} with "
            f"predicted links: give them for the same pairs."
        )
    link_count = expected = right_sure = right_possible = 0
    for pair_sure, pair_possible, pair_predictions in zip(sure, possible, predictions, strict=True):
        gold = set(pair_sure)
        links = set(pair_predictions)
        link_count += len(links)
        expected += len(gold)
        right_sure += len(links & gold)
        right_possible += len(links & (gold | set(pair_possible)))
    precision = right_possible / link_count if link_count else 0.0
    recall = right_sure / expected if expected else 0.0
    return AlignmentScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        aer=1 - (right_sure + right_possible) / (link_count + expected) if link_count + expected else 0.0,
    )
