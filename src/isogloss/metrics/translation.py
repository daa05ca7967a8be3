"""Scores of translations and of word alignments.

Corpus chrF and BLEU as sacrebleu computes them: Popović (2015), "chrF: character n-gram F-score for automatic
MT evaluation"; Papineni et al. (2002), "BLEU: a method for automatic evaluation of machine translation"; Post
(2018) on signatures, which name the settings.

Alignments have precision on possible and recall on sure gold links, F1 and AER (Och & Ney 2003, Sec. 5). An
aligner may, but need not, find links that are only possible; sure links are possible too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF

SACREBLEU_TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn"), "zh"),
    **dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz", "wuu", "yue"), "char"),
}
"""sacrebleu's tokenizers of languages written without spaces; for others it is 13a."""


def chrf(references: Sequence[str], translations: Sequence[str]) -> float:
    """Return corpus chrF2 in [0, 1]: n-grams of 1 to 6 characters, without white space."""
    return _score(_chrf(), references, translations)


def bleu(references: Sequence[str], translations: Sequence[str], language: str) -> float:
    """Return corpus BLEU in [0, 1], tokenised as is usual for the language."""
    return _score(_bleu(language), references, translations)


def signature(language: str) -> str:
    """Return sacrebleu's signatures of both, without its version, which ``made.json`` of a run has."""
    metrics = (("chrF2", _chrf()), ("BLEU", _bleu(language)))
    return " ".join(f"{name}|{_signed(metric)}" for name, metric in metrics)


def _score(metric: "BLEU | CHRF", references: Sequence[str], translations: Sequence[str]) -> float:
    return float(metric.corpus_score(list(translations), [list(references)]).score) / 100


def _signed(metric: "BLEU | CHRF") -> str:
    # The signature includes the number of references, known only after scoring.
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature()).rpartition("|version:")[0]


def _chrf() -> "CHRF":
    from sacrebleu.metrics import CHRF

    return CHRF()


def _bleu(language: str) -> "BLEU":
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize=SACREBLEU_TOKENIZERS.get(language.partition("_")[0], "13a"), force=True)


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
