"""XTREME's score for part-of-speech tagging: seqeval's span F1 applied to tags that mark no spans.

seqeval (1.2.2, default mode) takes the first letter of a tag for B, I, E, S or O and the rest for a type. Of
bare tags such as NOUN only "OUN" is left, neighbours of one type merge to one span, and a span counts only
when it is right as a whole: so one wrong tag of five can cost two thirds of the score, and ADJ after SCONJ or
CCONJ is judged otherwise than ADJ after NOUN. Published XTREME numbers are of this kind; accuracy is not.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from isogloss.core.contributions import Contributions, total


class Chunk(NamedTuple):
    """Places ``first`` to ``last`` of the tags of all sentences, one after the other, are of one type."""

    type: str
    first: int
    last: int


def seqeval_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return the micro F1 that ``seqeval.metrics.f1_score`` gives for any tags, in [0, 1]."""
    return total(chunk_contributions(gold, predicted))


def chunk_contributions(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Contributions:
    """Return for each sentence twice its right spans, and its gold and predicted ones together.

    A span belongs to the sentence it ends in: seqeval lets a few begin in the one before.
    """
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise ValueError("gold and predicted sentences differ in number or length.")
    ends = list(accumulate(len(tags) + 1 for tags in gold))
    part, whole = [0.0] * len(gold), [0.0] * len(gold)
    wanted, found = set(chunks(gold)), set(chunks(predicted))
    for counts, weight, spans in ((part, 2.0, wanted & found), (whole, 1.0, wanted), (whole, 1.0, found)):
        for chunk in spans:
            counts[bisect_right(ends, chunk.last)] += weight
    return Contributions(part, whole)


def chunks(sentences: Sequence[Sequence[str]]) -> Iterator[Chunk]:
    """List the spans that seqeval sees, its oddities included: a span may begin where the last one did."""
    begin, last_mark, last_type = 0, "O", ""
    tags = (tag for sentence in sentences for tag in (*sentence, "O"))
    for place, tag in enumerate(tags):
        mark, type_ = tag[0], tag[1:].split("-", maxsplit=1)[-1] or "_"
        if _ends(last_mark, mark) or (last_mark not in "O." and last_type != type_):
            yield Chunk(last_type, begin, place - 1)
        if _begins(last_mark, mark) or (mark not in "O." and last_type != type_):
            begin = place
        last_mark, last_type = mark, type_


def _ends(last: str, mark: str) -> bool:
    return last in "ES" or (last in "BI" and mark in "BSO")


def _begins(last: str, mark: str) -> bool:
    return mark in "BS" or (last in "ESO" and mark in "EI")
