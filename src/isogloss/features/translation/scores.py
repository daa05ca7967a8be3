"""Corpus chrF and BLEU of translations, as sacrebleu computes them.

Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation"; Papineni et al. (2002), "BLEU: a
method for automatic evaluation of machine translation"; Post (2018) on signatures, which name the settings.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF

SACREBLEU_TOKENIZERS = {
    **dict.fromkeys(("zh", "cmn"), "zh"),
    **dict.fromkeys(("ja", "th", "lo", "km", "my", "bo", "dz", "wuu", "yue"), "char"),
}
"""sacrebleu's tokenizers of languages written without spaces. Other languages use 13a."""


def chrf(references: Sequence[str], translations: Sequence[str]) -> float:
    """Return corpus chrF2 in [0, 1]: n-grams of 1 to 6 characters, without white space."""
    return _score(_chrf(), references, translations)


def bleu(references: Sequence[str], translations: Sequence[str], language: str) -> float:
    """Return corpus BLEU in [0, 1], tokenised as is usual for the language."""
    return _score(_bleu(language), references, translations)


def signature(language: str) -> str:
    """Return sacrebleu's signatures of both, without its version, which ``made.json`` of a run has."""
    metrics = (("chrF2", _chrf()), ("BLEU", _bleu(language)))
    return " ".join(f"{name}|{_read_signature(metric)}" for name, metric in metrics)


def _score(metric: "BLEU | CHRF", references: Sequence[str], translations: Sequence[str]) -> float:
    return float(metric.corpus_score(list(translations), [list(references)]).score) / 100


def _read_signature(metric: "BLEU | CHRF") -> str:
    # The signature includes the number of references, known only after scoring.
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature()).rpartition("|version:")[0]


def _chrf() -> "CHRF":
    from sacrebleu.metrics import CHRF

    return CHRF()


def _bleu(language: str) -> "BLEU":
    from sacrebleu.metrics import BLEU

    return BLEU(tokenize=SACREBLEU_TOKENIZERS.get(language.partition("_")[0], "13a"), force=True)
