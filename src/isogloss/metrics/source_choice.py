"""Choose a source language for a target without labels, by one rule that is fixed beforehand.

Candidates c for a target t have signals s_k that rise with the similarity of both languages.

    R(c, t) = mean over k of (s_k(c, t) - mean over c) / std over c

The signals are of the kinds of Lin et al. (2019), "Choosing Transfer Languages for Cross-Lingual Learning":
one family, one script and one order of words (``core.languages``), and what texts have in common, here the
cosine of counts of character trigrams. A signal that is unknown for a candidate counts as the mean.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from math import nan, prod, sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isogloss.core.errors import ConfigError
from isogloss.core.languages import UNKNOWN, language_facts


class SourceCandidate(NamedTuple):
    """A candidate for the source of a target; signals are nan where nothing is known."""

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
    """Mean of the standardised signals, by which candidates are ranked."""


def rank_sources(
    target: str, candidates: Sequence[str], texts: Mapping[str, Iterable[str]] | None = None
) -> list[SourceCandidate]:
    """Rank candidates for the source language of a target, the best first; equals keep their order.

    ``texts`` are unlabelled texts by language, a few hundred sentences each. Without texts of the target,
    only facts decide. Raises ConfigError without a candidate other than the target.

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
    rule = _standardised(signals).mean(axis=1)
    ranked = sorted(zip(others, signals.tolist(), rule.tolist(), strict=True), key=lambda entry: -entry[2])
    return [
        SourceCandidate(code, family, script, order, trigrams, score)
        for code, (family, script, order, trigrams), score in ranked
    ]


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
    """Return the cosine of two languages' counts; nan where one has no text."""
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
