"""The ranking of source languages: its signals by hand, what is unknown, and nothing to choose by."""

from collections import Counter
from math import isnan, sqrt

import numpy as np
import pytest

from isogloss import rank_sources
from isogloss.core.errors import ConfigError
from isogloss.metrics.source_choice import trigram_cosine, trigram_counts


def test_trigrams_are_counted_with_the_edges_of_texts():
    assert trigram_counts(["Aba", "ab"]) == Counter({" ab": 2, "aba": 1, "ba ": 1, "ab ": 1})
    assert trigram_counts([""]) == Counter()


def test_the_cosine_is_that_of_the_counts():
    first, second = Counter({"abc": 3, "bcd": 4}), Counter({"abc": 5, "xyz": 12})
    assert trigram_cosine(first, second) == pytest.approx(15 / (5 * 13))
    assert trigram_cosine(first, first) == pytest.approx(1)
    assert isnan(trigram_cosine(first, Counter())) and isnan(trigram_cosine(None, second))


def test_the_rule_is_the_mean_of_standardised_signals():
    texts = {"pt": ["abc"], "es": ["abc"], "en": ["abx"], "hi": ["xyz"]}
    ranked = rank_sources("pt", ["hi", "en", "es"], texts)
    assert [candidate.language for candidate in ranked] == ["es", "en", "hi"]
    spanish, english, hindi = ranked
    assert [candidate.family for candidate in ranked] == [1, 1, 1]  # All three are Indo-European.
    assert (
        [candidate.script for candidate in ranked] == [candidate.order for candidate in ranked] == [1, 1, 0]
    )
    assert [candidate.trigrams for candidate in ranked] == pytest.approx([1, 1 / 3, 0])
    script = order = [1 / sqrt(2), 1 / sqrt(2), -sqrt(2)]
    text = (np.array([1, 1 / 3, 0]) - 4 / 9) / np.std([1, 1 / 3, 0])
    expected = (
        np.array(script) + order + text
    ) / 4  # No candidate differs in family: that signal adds nothing.
    assert [spanish.rule, english.rule, hindi.rule] == pytest.approx(expected.tolist())


def test_what_is_unknown_counts_as_the_mean_and_without_signals_the_order_stays():
    texts = {"qaa": ["ka la"], "qab": ["ka la"], "qac": ["mi no"]}
    ranked = rank_sources("qaa", ["qac", "qab", "qad"], texts)
    assert [candidate.language for candidate in ranked] == ["qab", "qad", "qac"]
    assert all(isnan(fact) for candidate in ranked for fact in candidate[1:4])
    assert ranked[1].rule == 0 and isnan(ranked[1].trigrams)
    assert [candidate.language for candidate in rank_sources("qaa", ["qad", "qab"])] == ["qad", "qab"]


def test_the_order_of_candidates_does_not_decide():
    texts = {code: [code * 3, "a b c"] for code in ("de", "en", "fi", "hi", "nl")}
    first, *others = (
        {candidate.language: candidate for candidate in rank_sources("de", order, texts)}
        for order in (["en", "fi", "hi", "nl"], ["nl", "hi", "en", "fi"], ["hi", "de", "nl", "fi", "en"])
    )
    rules = [{code: candidate.rule for code, candidate in ranked.items()} for ranked in (first, *others)]
    assert rules[1:] == [pytest.approx(rules[0])] * 2


def test_a_target_is_no_source_of_its_own():
    with pytest.raises(ConfigError, match="no source can be chosen for sw: no other language is a candidate"):
        rank_sources("sw", ["sw"])
