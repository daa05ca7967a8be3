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
"""The smallest cosine of trigrams that decides alone.

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
    others = [code for code in candidates if code != target]
    if not others:
        raise ConfigError(
            f"no source can be chosen for {target}: no other language is a candidate. Name some."
        )
    counts = {code: trigram_counts(lines) for code, lines in (texts or {}).items()}
    signals = np.array(
        [
            (*_facts_in_common(target, code), trigram_cosine(counts.get(target), counts.get(code)))
            for code in others
        ]
    )
    rule = np.where(np.isnan(signals).all(axis=1), nan, _standardised(signals).mean(axis=1))
    ranked = [
        SourceCandidate(code, family, script, order, trigrams, score)
        for code, (family, script, order, trigrams), score in zip(
            others, signals.tolist(), rule.tolist(), strict=True
        )
    ]
    return sorted(ranked, key=_rank_of)


def _rank_of(candidate: SourceCandidate) -> tuple[bool, float]:
    return not candidate.is_known, -candidate.rule if candidate.is_known else 0


def describe_doubt(ranked: Sequence[SourceCandidate]) -> str:
    """Return why the first of ranked candidates cannot be chosen. Empty if it can.

    >>> describe_doubt(rank_sources("sr", ["en", "pl"]))
    'en and pl are equal by the rule'
    """
    candidates = [candidate for candidate in ranked if candidate.is_known]
    if not candidates:
        return "no signal is known of any candidate"
    if len(candidates) == 1:
        unknown = [candidate.language for candidate in ranked if not candidate.is_known]
        return f"nothing is known of {' and '.join(unknown)}" if unknown else "only one candidate is given"
    equal = [candidate.language for candidate in candidates if _are_equal(candidate.rule, candidates[0].rule)]
    if len(equal) > 1:
        return f"{' and '.join(equal)} are equal by the rule"
    cosines = [candidate.trigrams for candidate in candidates if not isnan(candidate.trigrams)]
    if cosines and max(cosines) < MIN_COSINE and not _do_facts_decide(candidates):
        return f"texts have less than {MIN_COSINE:.0%} of trigrams in common, and facts decide otherwise"
    return ""


def _do_facts_decide(ranked: Sequence[SourceCandidate]) -> bool:
    """Return whether the first candidate is the best by facts alone."""
    facts = np.array([[candidate.family, candidate.script, candidate.order] for candidate in ranked])
    best, *others = _standardised(facts).mean(axis=1).tolist()
    return all(best > other and not _are_equal(best, other) for other in others)


def _are_equal(first: float, second: float) -> bool:
    return isclose(first, second, abs_tol=1e-9)


def _facts_in_common(first: str, second: str) -> list[float]:
    """Return whether two languages have one family, one script and one order of words, as 1 and 0."""
    facts = [language_facts(code) for code in (first, second)]
    pairs = zip(*((fact.family, fact.script, fact.order) for fact in facts), strict=True)
    return [nan if UNKNOWN in pair else float(pair[0] == pair[1]) for pair in pairs]


def trigram_counts(texts: Iterable[str]) -> Counter[str]:
    """Count the character trigrams of texts in lower case, with a space at either end of each."""
    padded = (f" {text.casefold()} " for text in texts)
    return Counter(
        chain.from_iterable((text[start : start + 3] for start in range(len(text) - 2)) for text in padded)
    )


def trigram_cosine(first: Counter[str] | None, second: Counter[str] | None) -> float:
    """Return the cosine of two languages' counts. nan if one has no text."""
    if not first or not second:
        return nan
    product = sum(count * second[trigram] for trigram, count in first.items())
    lengths = (sqrt(sum(count * count for count in counts.values())) for counts in (first, second))
    return product / prod(lengths)


def _standardised(signals: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    measured = ~np.isnan(signals)
    count = np.maximum(measured.sum(axis=0), 1)
    centred = np.where(measured, signals - np.where(measured, signals, 0).sum(axis=0) / count, 0)
    std = np.sqrt((centred**2).sum(axis=0) / count)
    standardised: npt.NDArray[np.float64] = centred / np.where(std > 0, std, 1)
    return standardised
