"""Span F1: precision and recall of whole spans, as in CoNLL-2003 and seqeval's default ``f1_score``."""

from collections.abc import Sequence

from isogloss.metrics.bio import spans


def span_f1(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> float:
    """Return micro F1 over all sentences, in [0, 1]; a span counts only with both borders and its type right.

    Invalid BIO is read as in ``bio.repair``. Where there are no spans at all, neither gold nor predicted,
    the score is 0, as in seqeval.
    """
    if [len(tags) for tags in gold] != [len(tags) for tags in predicted]:
        raise ValueError("gold and predicted sentences differ in number or length.")
    right = found = wanted = 0
    for gold_tags, predicted_tags in zip(gold, predicted, strict=True):
        gold_spans, predicted_spans = set(spans(gold_tags)), set(spans(predicted_tags))
        right += len(gold_spans & predicted_spans)
        wanted += len(gold_spans)
        found += len(predicted_spans)
    return 2 * right / (wanted + found) if wanted + found else 0.0
