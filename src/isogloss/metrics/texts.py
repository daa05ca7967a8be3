"""Scores of texts: answers to questions, translations and their word alignments.

Answers are scored by exact match and F1 as in the official scripts of SQuAD and MLQA. Rajpurkar et al.
(2016), Section 6.1: answers are compared without case, punctuation, English articles and extra space. XQuAD
and TyDi QA's gold passage task are scored by that script whatever their language. Lewis et al. (2020),
Section 4, compare by the language of the passage instead: its articles, all punctuation in Unicode, and each
Chinese character as a word.

Translations have corpus chrF and BLEU as sacrebleu computes them: Popović (2015), "chrF: character n-gram
F-score for automatic MT evaluation"; Papineni et al. (2002), "BLEU: a method for automatic evaluation of
machine translation"; Post (2018) on signatures, which name the settings.

Alignments have precision on possible and recall on sure gold links, F1 and AER (Och & Ney 2003, Sec. 5). An
aligner may, but need not, find links that are only possible. Sure links are also possible links.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isogloss.core.rows.models import Contributions

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF


_ASCII_PUNCTUATION = frozenset(string.punctuation)
_SQUAD_ARTICLES = re.compile(r"\b(a|an|the)\b")

_MLQA_ARTICLES = {
    "ar": re.compile("ال"),  # wherever it stands: of the script's two alternatives one can never match
    "de": re.compile(r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b"),
    "en": _SQUAD_ARTICLES,
    "es": re.compile(r"\b(un|una|unos|unas|el|la|los|las)\b"),
    "hi": None,
    "vi": re.compile(r"\b(của|là|cái|chiếc|những)\b"),
    "zh": None,
}

WITH_OWN_RULES = tuple(_MLQA_ARTICLES)
"""The languages for which MLQA's script has rules."""

_CHINESE = re.compile("([\u4e00-\u9fa5])")
"""The characters that MLQA's script treats as words."""


@dataclass(frozen=True, slots=True)
class GoldAnswers:
    """All right answers to one question.

    ``language`` is the passage's under MLQA's rules, and empty under SQuAD's.
    """

    texts: tuple[str, ...]
    language: str = ""


def has_own_rules(language: str) -> bool:
    """Return whether MLQA's script has rules for a language."""
    return language in _MLQA_ARTICLES


def _are_equal(gold_words: list[str], words: list[str]) -> float:
    return float(gold_words == words)


def exact_match_contributions(gold: Sequence[GoldAnswers], predictions: Sequence[str]) -> Contributions:
    """Return for each question 1 where its answer equals a gold answer, else 0."""
    return _score_best(_are_equal, gold, predictions)


def answer_f1_contributions(gold: Sequence[GoldAnswers], predictions: Sequence[str]) -> Contributions:
    """Return for each question the best F1, in words, with a gold answer."""
    return _score_best(_word_f1, gold, predictions)


def normalize_answer(answer: str, language: str = "") -> list[str]:
    """Return an answer's normalised words. Raises ValueError for a language that MLQA has no rules for."""
    lower_answer = answer.lower()
    if not language:
        return _SQUAD_ARTICLES.sub(" ", _without_punctuation(lower_answer, removes_unicode=False)).split()
    if not has_own_rules(language):
        raise ValueError(f"MLQA's rules know {', '.join(_MLQA_ARTICLES)}, not {language!r}.")
    articles = _MLQA_ARTICLES[language]
    text = _without_punctuation(lower_answer, removes_unicode=True)
    text = text if articles is None else articles.sub(" ", text)
    return (_CHINESE.sub(r" \1 ", text) if language == "zh" else text).split()


def _score_best(
    compare: Callable[[list[str], list[str]], float], gold: Sequence[GoldAnswers], predictions: Sequence[str]
) -> Contributions:
    """Return for each question the highest score against a gold answer."""
    if len(gold) != len(predictions):
        raise ValueError(f"{len(gold)} questions but {len(predictions)} predicted answers.")
    scores: list[float] = []
    for answers, answer in zip(gold, predictions, strict=True):
        if not answers.texts:
            raise ValueError("a question without gold answers cannot be scored.")
        words = normalize_answer(answer, answers.language)
        scores.append(max(compare(normalize_answer(text, answers.language), words) for text in answers.texts))
    return Contributions(scores, [1.0] * len(scores))


def _word_f1(gold: list[str], prediction: list[str]) -> float:
    shared = sum((Counter(gold) & Counter(prediction)).values())
    return 2 * shared / (len(gold) + len(prediction)) if shared else 0.0


def _without_punctuation(text: str, *, removes_unicode: bool) -> str:
    """Remove ASCII punctuation, or all punctuation with ``removes_unicode``."""
    return "".join(
        letter
        for letter in text
        if letter not in _ASCII_PUNCTUATION
        and not (removes_unicode and unicodedata.category(letter).startswith("P"))
    )


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
