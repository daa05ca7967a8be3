"""Span F1: precision and recall of whole spans, as in CoNLL-2003 and seqeval's default ``f1_score``."""

from collections.abc import Sequence

from isogloss.core.contributions import Contributions, total
from isogloss.metrics.bio import spans


def span_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return micro F1 over all sentences, in [0, 1]; a span counts only with both borders and its type right.

    Invalid BIO is read as in ``bio.repair``. Where there are no spans at all, neither gold nor predicted,
    the score is 0, as in seqeval.
    """
    return total(span_contributions(gold, predicted))


def span_contributions(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> Contributions:
    """Return for each sentence twice its right spans, and its gold and predicted ones together."""
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise ValueError("gold and predicted sentences differ in number or length.")
    part, whole = [], []
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        wanted, found = set(spans(gold_tags)), set(spans(predicted_tags))
        part.append(2.0 * len(wanted & found))
        whole.append(float(len(wanted) + len(found)))
    return Contributions(part, whole)
