"""Word alignment scores: precision on possible, recall on sure links, F1 and AER (Och & Ney 2003, Sec. 5).

Gold links are sure or only possible, which an aligner may but need not find. Sure links are possible too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """Scores in [0, 1]; for ``aer``, the alignment error rate, lower is better."""

    precision: float
    recall: float
    f1: float
    aer: float


def alignment_scores(
    sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]], predicted: Sequence[Iterable[Link]]
) -> AlignmentScores:
    """Compute micro-averaged scores over all sentence pairs; a link counts once a pair.

    With A predicted, S sure and P possible links (S within P): precision |A∩P|/|A|, recall |A∩S|/|S|, AER
    1 − (|A∩S|+|A∩P|)/(|A|+|S|). Precision is 0 without predicted links, recall without sure ones, AER without
    either. ValueError where the numbers of pairs differ.
    """
    if not len(sure) == len(possible) == len(predicted):
        raise ValueError(
            f"{len(sure)} pairs with sure, {len(possible)} with possible and {len(predicted)} with predicted "
            f"links: give them for the same pairs."
        )
    proposed = expected = right_sure = right_possible = 0
    for some_sure, some_possible, some_predicted in zip(sure, possible, predicted, strict=True):
        gold, links = set(some_sure), set(some_predicted)
        proposed += len(links)
        expected += len(gold)
        right_sure += len(links & gold)
        right_possible += len(links & (gold | set(some_possible)))
    precision = right_possible / proposed if proposed else 0.0
    recall = right_sure / expected if expected else 0.0
    return AlignmentScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        aer=1 - (right_sure + right_possible) / (proposed + expected) if proposed + expected else 0.0,
    )
