"""Choose a source language for a target without labels, by one rule that is fixed beforehand.

Candidates c for a target t have signals s_k that rise with the similarity of both languages.

    R(c, t) = mean over k of (s_k(c, t) - mean over c) / std over c

The signals are of the kinds of Lin et al. (2019), "Choosing Transfer Languages for Cross-Lingual Learning":
one family, one script and one order of words (``core.languages``), and what texts have in common, here the
cosine of counts of character trigrams. A signal that is unknown for a candidate counts as the mean. A
candidate of which no signal is known is ranked last, and its rule is nan.

``describe_doubt`` states why the first candidate is no choice, as where another one is as good.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import isclose, isnan, nan, prod, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isogloss.core.arguments import checks_arguments
from isogloss.core.errors import ConfigError
from isogloss.core.languages import UNKNOWN, language_facts

MIN_COSINE = 0.02
"""The smallest cosine of trigrams that can decide.

Languages of two scripts share digits, punctuation and foreign names: 0.02 at most in SIB-200, where languages
of one script have 0.09 and more.
"""


class SourceCandidate(NamedTuple):
    """A candidate for the source of a target. Unknown signals are nan."""

    language: str
    family: float
    """1 if both are of one family, else 0."""
    script: float
    """1 if both are usually written in one script, else 0."""
    order: float
    """1 if both have one dominant order of subject, verb and object, else 0."""
    trigrams: float
    """Cosine of the counts of character trigrams, 0 to 1."""
    rule: float
    """Mean of the standardised signals, by which candidates are ranked. nan if none is known."""

    @property
    def is_known(self) -> bool:
        """Whether any signal is known."""
        return not isnan(self.rule)


@checks_arguments
def rank_sources(
    target: str, candidates: Sequence[str], texts: Mapping[str, Iterable[str]] | None = None
) -> list[SourceCandidate]:
    """Rank candidates for the source language of a target, best first. Equal candidates keep their order.

    Candidates without any known signal are last. ``describe_doubt`` returns why the first is no choice.
    ``texts`` are unlabelled texts by language, a few hundred sentences each. Without texts of the target,
    only facts decide. Raises ConfigError without a candidate other than the target.

    Device: none. Cost: with ``texts`` one pass over them.

    >>> [candidate.language for candidate in rank_sources("pt", ["en", "hi", "es"], {
    ...     "pt": ["uma casa nova"], "es": ["una casa nueva"], "en": ["a new house"], "hi": ["एक नया घर"]})]
    ['es', 'en', 'hi']
    """
    other_languages = [language for language in candidates if language != target]
    if not other_languages:
        raise ConfigError(
            f"no source can be chosen for {target}: no other language is a candidate. Name some."
        )
    counts = {language: trigram_counts(lines) for language, lines in (texts or {}).items()}
    signals = np.array(
        [
            (*_facts_in_common(target, language), trigram_cosine(counts.get(target), counts.get(language)))
            for language in other_languages
        ]
    )
    rule = np.where(np.isnan(signals).all(axis=1), nan, _standardise(signals).mean(axis=1))
    results = [
        SourceCandidate(language, family, script, order, trigrams, score)
        for language, (family, script, order, trigrams), score in zip(
            other_languages, signals.tolist(), rule.tolist(), strict=True
        )
    ]
    return sorted(results, key=_rank_of)


def _rank_of(candidate: SourceCandidate) -> tuple[bool, float]:
    return not candidate.is_known, -candidate.rule if candidate.is_known else 0


def describe_doubt(ranking: Sequence[SourceCandidate]) -> str:
    """Return why the first of ranked candidates cannot be chosen. Empty if it can.

    >>> describe_doubt(rank_sources("sr", ["en", "pl"]))
    'en and pl are equal by the rule'
    """
    candidates = [candidate for candidate in ranking if candidate.is_known]
    if not candidates:
        return "no signal is known of any candidate"
    if len(candidates) == 1:
        unknown_languages = [candidate.language for candidate in ranking if not candidate.is_known]
        return (
            f"nothing is known of {' and '.join(unknown_languages)}"
            if unknown_languages
            else "only one candidate is given"
        )
    equal = [candidate.language for candidate in candidates if _are_equal(candidate.rule, candidates[0].rule)]
    if len(equal) > 1:
        return f"{' and '.join(equal)} are equal by the rule"
    cosines = [candidate.trigrams for candidate in candidates if not isnan(candidate.trigrams)]
    if cosines and max(cosines) < MIN_COSINE and not _do_facts_decide(candidates):
        return f"texts have less than {MIN_COSINE:.0%} of trigrams in common, and facts decide otherwise"
    return ""


def _do_facts_decide(ranking: Sequence[SourceCandidate]) -> bool:
    """Return whether the first candidate is the best only by facts."""
    facts = np.array([[candidate.family, candidate.script, candidate.order] for candidate in ranking])
    best_mean, *other_means = _standardise(facts).mean(axis=1).tolist()
    return all(best_mean > mean and not _are_equal(best_mean, mean) for mean in other_means)


def _are_equal(x: float, y: float) -> bool:
    return isclose(x, y, abs_tol=1e-9)


def _facts_in_common(target: str, candidate: str) -> list[float]:
    """Return whether two languages have one family, one script and one order of words, as 1 and 0."""
    facts = [language_facts(language) for language in (target, candidate)]
    pairs = zip(*((fact.family, fact.script, fact.order) for fact in facts), strict=True)
    return [nan if UNKNOWN in pair else float(pair[0] == pair[1]) for pair in pairs]


def trigram_counts(texts: Iterable[str]) -> Counter[str]:
    """Count the character trigrams of texts in lower case, with a space at either end of each."""
    lines = (f" {text.casefold()} " for text in texts)
    return Counter(
        chain.from_iterable((text[start : start + 3] for start in range(len(text) - 2)) for text in lines)
    )


def trigram_cosine(target: Counter[str] | None, candidate: Counter[str] | None) -> float:
    """Return the cosine of two languages' counts. nan if one has no text."""
    if not target or not candidate:
        return nan
    product = sum(count * candidate[trigram] for trigram, count in target.items())
    lengths = (sqrt(sum(count * count for count in counts.values())) for counts in (target, candidate))
    return product / prod(lengths)


def _standardise(signals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    is_known = ~np.isnan(signals)
    count = np.maximum(is_known.sum(axis=0), 1)
    deviations = np.where(is_known, signals - np.where(is_known, signals, 0).sum(axis=0) / count, 0)
    std = np.sqrt((deviations**2).sum(axis=0) / count)
    scores: npt.NDArray[np.float64] = deviations / np.where(std > 0, std, 1)
    return scores
