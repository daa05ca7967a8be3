"""How good word links are: precision on possible, recall on sure links, F1 and AER (Och & Ney 2003, Sec. 5).

Gold links are sure, or only possible: an aligner may give those but need not. Sure links are possible too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Link = tuple[int, int]


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """Shares in [0, 1]; of ``aer``, the alignment error rate, less is better."""

    precision: float
    recall: float
    f1: float
    aer: float


def alignment_scores(
    sure: Sequence[Iterable[Link]], possible: Sequence[Iterable[Link]], predicted: Sequence[Iterable[Link]]
) -> AlignmentScores:
    """Compare the links of all sentence pairs together; a link counts once a pair.

    With A predicted, S sure and P possible links (S within P): precision |A∩P|/|A|, recall |A∩S|/|S|, AER
    1 − (|A∩S|+|A∩P|)/(|A|+|S|). Where nothing is predicted precision is 0, where nothing is sure recall is;
    where neither is anything, AER is 0. ValueError for other numbers of pairs.
    """
    if not len(sure) == len(possible) == len(predicted):
        raise ValueError(
            f"{len(sure)} pairs with sure, {len(possible)} with possible and {len(predicted)} with predicted "
            f"links: give them for the same pairs."
        )
    found = wanted = right_sure = right_possible = 0
    for some_sure, some_possible, some_predicted in zip(sure, possible, predicted, strict=True):
        gold, links = set(some_sure), set(some_predicted)
        found += len(links)
        wanted += len(gold)
        right_sure += len(links & gold)
        right_possible += len(links & (gold | set(some_possible)))
    precision = right_possible / found if found else 0.0
    recall = right_sure / wanted if wanted else 0.0
    return AlignmentScores(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        aer=1 - (right_sure + right_possible) / (found + wanted) if found + wanted else 0.0,
    )
