"""Contributions of labels, tag sequences and trees to accuracy, F1 of spans and words, and attachment scores.

BIO tags mark spans of words: B-X begins a span of type X, I-X continues it, O is outside. Predicted tags may
be invalid; as in the CoNLL-2000 scorer, an I- tag that continues no span begins one.

- span F1: whole spans, as in CoNLL-2003 and seqeval's default ``f1_score``.
- word F1: single words inside entities of the right type, B- and I- being equal ("The Impact of
  Cross-Lingual Adjustment …", Table 3: token-level F1, micro-averaged).
- seqeval's F1: XTREME's score for part-of-speech tagging, seqeval's span F1 (1.2.2, default mode) of tags
  that mark no spans. Seqeval takes the first letter of a tag for B, I, E, S or O and the rest for a type.
  NOUN becomes "OUN", and neighbours of one type merge to one span. So one wrong tag of five can cost two
  thirds of the score. Published XTREME numbers are of this kind; accuracy is not.
- macro F1, weighted F1, MCC: measures of classes in benchmark suites, as in scikit-learn.
- attachment: the share of words with the right head (UAS), or with the right head and relation (LAS). The
  CoNLL 2018 shared task (Zeman et al. 2018) defines them as F1 over all words, and CLAS over only content
  words. Here gold and predicted words are the same, because the words are given.
"""

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isogloss.core.rows.models import ByMeasure, Contributions
from isogloss.core.tag_schemes import OUTSIDE, Span, find_spans
from isogloss.metrics.ranks import normalized_influences

Tags = Sequence[Sequence[str]]
"""The tags of each sentence."""


def label_contributions(
    gold: Sequence[Sequence[object]], predictions: Sequence[Sequence[object]]
) -> Contributions:
    """Return for each example the number of right labels, and of labels.

    Raises ValueError if numbers differ.
    """
    _check(gold, predictions)
    right = [
        float(sum(label == guess for label, guess in zip(labels, guesses, strict=True)))
        for labels, guesses in zip(gold, predictions, strict=True)
    ]
    return Contributions(right, [float(len(labels)) for labels in gold])


def lemma_contributions(gold: Tags, predictions: Tags, no_lemma: str) -> Contributions:
    """Return for each sentence the number of right lemmas, and of words.

    As in the evaluation of the CoNLL 2018 shared task (Zeman et al. 2018), case counts, and the word of a
    treebank whose gold lemma is ``no_lemma`` is right whatever is predicted.
    """
    _check(gold, predictions)
    counted_lemmas = [
        [no_lemma if lemma == no_lemma else guess for lemma, guess in zip(*side, strict=True)]
        for side in zip(gold, predictions, strict=True)
    ]
    return label_contributions(gold, counted_lemmas)


def class_contributions(
    gold: Sequence[Sequence[Hashable]], predictions: Sequence[Sequence[Hashable]]
) -> dict[str, Contributions]:
    """Compute the contribution of each example to accuracy, macro F1, weighted F1 and MCC.

    Classes are those that are gold or predicted anywhere. F1 of each class is averaged, equally or by its
    share of gold labels. MCC is Matthews' correlation for several classes (Gorodkin 2004, "Comparing two
    K-category assignments", Equation 8), and 0 if one side has only one class. None of them is a sum over
    labels: a label adds its influence (Efron & Tibshirani 1993, Chapter 21), so that the mean over labels is
    the score. Raises ValueError if the numbers of labels differ.
    """
    accuracy = label_contributions(gold, predictions)
    names = list(dict.fromkeys(chain(*gold, *predictions)))
    ids = {name: index for index, name in enumerate(names)}
    right, guesses = (
        np.array([ids[label] for label in chain(*side)], dtype=np.intp) for side in (gold, predictions)
    )
    ends = np.cumsum([0, *(len(labels) for labels in gold)])

    def sum_by_example(influence: npt.NDArray[np.float64]) -> Contributions:
        sums = np.concatenate(([0.0], np.cumsum(influence)))
        return Contributions(np.diff(sums[ends]).tolist(), accuracy.whole)

    return {
        "accuracy": accuracy,
        **{
            name: sum_by_example(values)
            for name, values in _class_influences(right, guesses, len(names)).items()
        },
    }


def _class_influences(
    gold: npt.NDArray[np.intp], predictions: npt.NDArray[np.intp], classes: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Return each label's influence on each measure of classes, whose mean is the measure."""
    labels = max(1, len(gold))
    right = gold == predictions
    gold_share, share, hits = (
        np.bincount(side, minlength=classes) / labels for side in (gold, predictions, gold[right])
    )
    f1 = 2 * hits / (gold_share + share)

    def average_influence(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        class_weights = weights / (gold_share + share)
        losses = f1 * class_weights
        return np.asarray(
            2 * right * class_weights[gold] - losses[gold] - losses[predictions], dtype=np.float64
        )

    macro = np.full(classes, 1 / max(1, classes))
    return {
        "macro_f1": average_influence(macro) + f1 @ macro,
        "weighted_f1": average_influence(gold_share) + f1[gold],
        "mcc": normalized_influences(
            right - share[gold] - gold_share[predictions] + gold_share @ share,
            1 - 2 * gold_share[gold] + gold_share @ gold_share,
            1 - 2 * share[predictions] + share @ share,
        ),
    }


def span_contributions(gold: Tags, predictions: Tags) -> Contributions:
    """Return for each sentence twice the right spans, and gold plus predicted spans.

    Both borders and the type of a span must be right. Invalid BIO is read as in ``repair``. Without any span,
    gold or predicted, the total is 0, as in seqeval.
    """
    _check(gold, predictions)
    pairs = zip(map(set, map(spans, gold)), map(set, map(spans, predictions)), strict=True)
    return _f1_parts((len(expected & guesses), len(expected) + len(guesses)) for expected, guesses in pairs)


def word_contributions(gold: Tags, predictions: Tags) -> Contributions:
    """Return for each sentence twice the right words, and gold plus predicted words inside entities."""
    _check(gold, predictions)
    types = [[[tag.partition("-")[2] for tag in tags] for tags in side] for side in (gold, predictions)]
    sentences = [list(zip(*sides, strict=True)) for sides in zip(*types, strict=True)]
    return _f1_parts(
        (
            sum(expected == guess != "" for expected, guess in words),
            sum((expected != "") + (guess != "") for expected, guess in words),
        )
        for words in sentences
    )


def chunk_contributions(gold: Tags, predictions: Tags) -> Contributions:
    """Return for each sentence twice the right chunks, and gold plus predicted ones.

    The total is the micro F1 that ``seqeval.metrics.f1_score`` gives for any tags. A chunk belongs to the
    sentence it ends in: seqeval lets a few begin in the one before.
    """
    _check(gold, predictions)
    sentence = np.repeat(np.arange(len(gold)), [len(tags) + 1 for tags in gold])
    types = dict[str, int]()
    first = _find_chunks(gold, types)
    second = _find_chunks(predictions, types)
    same = first.ends & second.ends & (first.begin == second.begin) & (first.type == second.type)
    right, of_gold, of_predictions = (
        np.bincount(sentence[places], minlength=len(gold)).tolist()
        for places in (same, first.ends, second.ends)
    )
    return _f1_parts(
        (number, expected + guessed)
        for number, expected, guessed in zip(right, of_gold, of_predictions, strict=True)
    )


def repair(tags: Sequence[str]) -> tuple[str, ...]:
    """Turn every I-X that does not follow B-X or I-X of the same type into B-X.

    The result is valid, has the same spans, and repairing it again changes nothing. ValueError for a tag that
    is not BIO.
    """
    types = [_type(tag) for tag in tags]
    return tuple(
        f"B-{type_}" if tag[0] == "I" and previous_type != type_ else tag
        for tag, type_, previous_type in zip(tags, types, ["", *types], strict=False)
    )


def spans(tags: Sequence[str]) -> list[Span]:
    """List the spans of BIO tags from left to right. Raises ValueError for a tag that is not BIO."""
    for tag in tags:
        _type(tag)
    return find_spans(tags)


def chunks(sentences: Tags) -> list[Span]:
    """List the chunks that seqeval sees in sentences joined by O. Two chunks may begin at the same word."""
    types = dict[str, int]()
    found = _find_chunks(sentences, types)
    names = list(types)
    return [
        Span(names[found.type[word]], int(found.begin[word]), int(word) + 1)
        for word in np.flatnonzero(found.ends)
    ]


class _Chunks(NamedTuple):
    """The chunks that seqeval sees in joined sentences, at their last words."""

    ends: npt.NDArray[np.bool_]
    """Whether a chunk ends here. Two may begin at the same word, but no two end there."""
    begin: npt.NDArray[np.intp]
    type: npt.NDArray[np.intp]


def _find_chunks(sentences: Tags, types: dict[str, int]) -> _Chunks:
    """Find the chunks of sentences joined by O, by the rules of ``find_spans_of_marks``.

    ``types`` numbers the types of chunks, and receives new ones.
    """
    marks = dict[str, tuple[int, int]]()
    for tag in {OUTSIDE}.union(*sentences):
        type_name = tag[1:].split("-", maxsplit=1)[-1] or "_"
        marks[tag] = ord(tag[0]), types.setdefault(type_name, len(types))
    joined = [marks[tag] for sentence in sentences for tag in (*sentence, OUTSIDE)]
    letters, kinds = np.array(joined, dtype=np.intp).reshape(-1, 2).T
    last_letters = np.concatenate(([ord(OUTSIDE)], letters))[:-1]
    changes = kinds != np.concatenate(([-1], kinds))[:-1]
    ends = _is_any(last_letters, "ES") | (_is_any(last_letters, "BI") & _is_any(letters, "BSO"))
    ends |= ~_is_any(last_letters, "O.") & changes
    begins = _is_any(letters, "BS") | (_is_any(last_letters, "ESO") & _is_any(letters, "EI"))
    begins |= ~_is_any(letters, "O.") & changes
    begin = np.maximum.accumulate(np.where(begins, np.arange(len(letters)), 0))
    return _Chunks(np.append(ends, values=False)[1:], begin, kinds)


def _is_any(letters: npt.NDArray[np.intp], of_these: str) -> npt.NDArray[np.bool_]:
    """Return which letters are any of these."""
    return np.isin(letters, [ord(letter) for letter in of_these])


def _f1_parts(counts: Iterable[tuple[int, int]]) -> Contributions:
    """Return contributions to F1 from the right items and all items, gold and predicted, of each sentence."""
    pairs = list(counts)
    return Contributions([2.0 * right for right, _ in pairs], [float(items) for _, items in pairs])


def _check(gold: Sequence[Sequence[object]], predictions: Sequence[Sequence[object]]) -> None:
    if [len(tags) for tags in gold] != [len(tags) for tags in predictions]:
        raise ValueError("gold and predicted sentences differ in number or length.")


def _type(tag: str) -> str:
    """Return the type of a BIO tag, "" for O."""
    if tag == OUTSIDE:
        return ""
    prefix, _, name = tag.partition("-")
    if prefix not in ("B", "I") or not name:
        raise ValueError(f"{tag!r} is not a BIO tag. Use O, B-TYPE and I-TYPE.")
    return name


LabelSets = Sequence[Collection[Hashable]]
"""The labels of each text."""


def label_set_contributions(gold: LabelSets, predictions: LabelSets, labels: Sequence[Hashable]) -> ByMeasure:
    """Compute the contribution of each text to micro, macro and weighted F1 and to exact match.

    Macro and weighted F1 over ``labels`` are means of ratios, not sums over texts, so a text contributes its
    influence (Efron & Tibshirani 1993, Chapter 21), so that the mean over texts is the score. A label that is
    neither gold nor predicted has F1 0; weights are the shares of gold labels. MCC needs one label per text.
    """
    gold_marks, predicted_marks = (_indicators(side, labels) for side in (gold, predictions))
    matches, totals = 2 * gold_marks * predicted_marks, gold_marks + predicted_marks
    scores, spread = (
        np.divide(numerators, denominators, out=np.zeros_like(numerators), where=denominators > 0)
        for numerators, denominators in (
            (matches.sum(axis=0), totals.sum(axis=0)),
            (np.ones(len(labels)), totals.mean(axis=0) if len(totals) else np.zeros(len(labels))),
        )
    )
    label_influences = (matches - scores * totals) * spread
    unit_weights = [1.0] * len(gold)
    equal = [
        float(set(gold_labels) == set(guesses))
        for gold_labels, guesses in zip(gold, predictions, strict=True)
    ]
    return {
        "micro_f1": Contributions(matches.sum(axis=1).tolist(), totals.sum(axis=1).tolist()),
        "macro_f1": Contributions((label_influences + scores).mean(axis=1).tolist(), unit_weights),
        "weighted_f1": Contributions(
            _weigh_influences(gold_marks, label_influences, scores).tolist(), unit_weights
        ),
        "exact_match": Contributions(equal, unit_weights),
    }


def _weigh_influences(
    gold: npt.NDArray[np.float64], influences: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return each text's influence on weighted F1.

    ``gold`` are the labels of texts [text label], ``scores`` the F1 of each label, and ``influences`` the
    influence of texts on them [text label].
    """
    mean = gold.mean(axis=0) if len(gold) else np.zeros(len(scores))
    labels = mean.sum() or 1.0
    mean_score = mean @ scores / labels
    influence: npt.NDArray[np.float64] = gold @ scores - mean_score * gold.sum(axis=1) + influences @ mean
    return influence / labels + mean_score


def _indicators(side: LabelSets, labels: Sequence[Hashable]) -> npt.NDArray[np.float64]:
    rows = [[label in present for label in labels] for present in side]
    return np.array(rows, dtype=np.float64).reshape(-1, len(labels))


@dataclass(frozen=True, slots=True)
class Tree:
    """A dependency tree: for each word its head (counted from 1, 0 for the root), relation and gold tag."""

    heads: tuple[int, ...]
    relations: tuple[str, ...]
    tags: tuple[str, ...] = ()
    """Empty in predicted trees: the gold tag decides whether a word is scored."""
