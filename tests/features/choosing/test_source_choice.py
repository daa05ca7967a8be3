"""The ranking of source languages: its signals by hand, what is unknown, no candidates, and pure noise."""

import runpy
from collections import Counter
from math import isnan, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss import rank_sources
from isogloss.core.errors import ConfigError
from isogloss.features.choosing.source_choice import describe_doubt, trigram_cosine, trigram_counts
from isogloss.metrics.estimates import mean_std

CHOOSING = Path(__file__).parents[3] / "docs" / "results" / "choosing"


def test_trigrams_are_counted_with_the_edges_of_texts():
    assert trigram_counts(["Aba", "ab"]) == Counter({" ab": 2, "aba": 1, "ba ": 1, "ab ": 1})
    assert trigram_counts([""]) == Counter()


def test_the_cosine_is_that_of_the_counts():
    first_item = Counter({"abc": 3, "bcd": 4})
    second = Counter({"abc": 5, "xyz": 12})
    assert trigram_cosine(first_item, second) == pytest.approx(15 / (5 * 13))
    assert trigram_cosine(first_item, first_item) == pytest.approx(1)
    assert isnan(trigram_cosine(first_item, Counter())) and isnan(trigram_cosine(None, second))


def test_the_rule_is_the_mean_of_standardised_signals():
    texts = {"pt": ["abc"], "es": ["abc"], "en": ["abx"], "hi": ["xyz"]}
    ranked_sources = rank_sources("pt", ["hi", "en", "es"], texts)
    assert [candidate.language for candidate in ranked_sources] == ["es", "en", "hi"]
    spanish, english, hindi = ranked_sources
    assert [candidate.family for candidate in ranked_sources] == [1, 1, 1]  # All three are Indo-European.
    assert (
        [candidate.script for candidate in ranked_sources]
        == [candidate.order for candidate in ranked_sources]
        == [1, 1, 0]
    )
    assert [candidate.trigrams for candidate in ranked_sources] == pytest.approx([1, 1 / 3, 0])
    script = order = [1 / sqrt(2), 1 / sqrt(2), -sqrt(2)]
    text = (np.array([1, 1 / 3, 0]) - 4 / 9) / np.std([1, 1 / 3, 0])
    expected = (
        np.array(script) + order + text
    ) / 4  # No candidate differs in family: that signal adds nothing.
    assert [spanish.rule, english.rule, hindi.rule] == pytest.approx(expected.tolist())


def test_what_is_unknown_counts_as_the_mean_and_without_signals_the_order_stays():
    texts = {"pt": ["ka la"], "es": ["ka la"], "fr": ["mi no"]}
    ranked_sources = rank_sources("pt", ["fr", "es", "it"], texts)
    assert [candidate.language for candidate in ranked_sources] == ["es", "it", "fr"]
    assert ranked_sources[1].rule == 0 and isnan(ranked_sources[1].trigrams)
    texts = {"qaa": ["ka la"], "qab": ["ka la"], "qac": ["mi no"]}
    ranked_sources = rank_sources("qaa", ["qac", "qad", "qab"], texts)
    assert [candidate.language for candidate in ranked_sources] == ["qab", "qac", "qad"]
    assert all(isnan(fact) for candidate in ranked_sources for fact in candidate[1:4])
    assert isnan(ranked_sources[2].rule) and not ranked_sources[2].is_known
    assert [candidate.language for candidate in rank_sources("qaa", ["qad", "qab"])] == ["qad", "qab"]


def test_the_order_of_candidates_does_not_decide():
    texts = {language: [language * 3, "a b c"] for language in ("de", "en", "fi", "hi", "nl")}
    first_candidates, *other_candidates = (
        {candidate.language: candidate for candidate in rank_sources("de", order, texts)}
        for order in (["en", "fi", "hi", "nl"], ["nl", "hi", "en", "fi"], ["hi", "de", "nl", "fi", "en"])
    )
    rules = [
        {language: candidate.rule for language, candidate in ranked_first_candidates.items()}
        for ranked_first_candidates in (first_candidates, *other_candidates)
    ]
    assert rules[1:] == [pytest.approx(rules[0])] * 2


CODES = ["sw", "sr", "pl", "en", "fr", "pcm", "th", "hi", "zh", "ko", "he", "am", "qaa", "qab", "xx", "qya"]
WORDS = {"th": "กรุงเทพ 12", "en": "the house 12", "hi": "घर 12", "zh": "家 12", "fr": "la maison"}


@given(
    st.sampled_from(CODES),
    st.lists(st.sampled_from(CODES), min_size=1, max_size=5, unique=True),
    st.sets(st.sampled_from(list(WORDS))),
)
def test_a_first_candidate_without_doubt_is_better_than_every_other(target, candidates, with_texts):
    if candidates == [target]:
        return
    ranked_sources = rank_sources(
        target, candidates, {language: [WORDS[language]] for language in with_texts}
    )
    best_row, *other_items = ranked_sources
    if not describe_doubt(ranked_sources):
        known_values = [other_item for other_item in other_items if other_item.is_known]
        assert known_values
        assert all(best_row.rule > other_known_value.rule for other_known_value in known_values)
        assert all(best_row[1:5] != other_known_value[1:5] for other_known_value in known_values)
    turned_sources = rank_sources(
        target, candidates[::-1], {language: [WORDS[language]] for language in with_texts}
    )
    assert bool(describe_doubt(turned_sources)) == bool(describe_doubt(ranked_sources))
    assert describe_doubt(ranked_sources) or turned_sources[0].language == best_row.language


@pytest.mark.parametrize(
    ("target", "candidates", "texts", "reason"),
    [
        ("sw", ["en"], {}, "one candidate"),
        ("sw", ["xx", "en"], {}, "nothing is known of xx"),
        ("sw", ["xx", "qaa"], {}, "no signal"),
        ("sr", ["en", "pl"], {}, "en and pl"),
        ("pcm", ["en", "fr"], {}, "en and fr"),
        ("th", ["zh", "en"], {"th": ["ก 1"] * 99 + [" abc"], "en": [" abc"], "zh": ["家"]}, "2%"),
    ],
)
def test_the_reason_of_a_doubt_is_stated(target, candidates, texts, reason):
    assert reason in describe_doubt(rank_sources(target, candidates, texts))


def test_a_target_is_no_source_of_its_own():
    with pytest.raises(ConfigError, match=r"chosen.*sw:.*candidate"):
        rank_sources("sw", ["sw"])


@pytest.fixture(scope="module")
def study() -> dict[str, Any]:
    """Return the functions that make the tables of chosen sources."""
    return runpy.run_path(str(CHOOSING / "sources.py"))


def noise(
    study: dict[str, Any], draws: int, source_spread: float
) -> tuple[list[float], list[float], list[bool]]:
    """Return, for scores that have nothing to do with the signals, what the rule loses more than chance.

    A target has a level and a source a worth, which differ by ``source_spread``. With each draw go its p of
    chance, and whether the interval over targets says that the rule is better.
    """
    ranked_value = study["matrix"](pd.read_csv(CHOOSING / "sources-names.csv"), "rule")
    languages = len(ranked_value)
    random = np.random.default_rng(0)
    more = []
    p = []
    better = []
    for draw in range(draws):
        worth = source_spread * random.normal(size=languages)
        scores = random.normal(size=(languages, 1)) + worth + random.normal(size=(languages, languages))
        np.fill_diagonal(scores, np.nan)
        random_values = study["regret_of"](scores, np.zeros_like(scores))
        excess = mean_std(list(study["regret_of"](scores, ranked_value) - random_values))
        more.append(excess.mean)
        better.append(excess.high < 0)
        p.append(study["chance"](scores, ranked_value, permutations=99, seed=draw))
    return more, p, better


@pytest.mark.parametrize("source_spread", [0.0, 1.0])
def test_on_pure_noise_the_rule_loses_what_chance_does_and_is_not_called_better(study, source_spread):
    more, p, better = noise(study, 2000, source_spread)
    excess = mean_std(more)
    assert excess.low < 0 < excess.high
    assert np.mean(np.array(p) <= 0.05) <= 0.06
    assert source_spread or np.mean(better) <= 0.06


def test_what_the_signals_tell_is_found_and_the_target_is_not_fitted(study):
    rows = pd.read_csv(CHOOSING / "sources-names.csv")
    ranked_tensor = study["matrix"](rows, "rule")
    scores = ranked_tensor + 0.1 * np.random.default_rng(0).normal(size=ranked_tensor.shape)
    assert study["regret_of"](ranked_tensor, ranked_tensor).max() == 0
    assert study["chance"](scores, ranked_tensor, permutations=99) == 0.01
    signals = [study["matrix"](rows, name) for name in ("family", "script", "order", "trigrams")]
    scores = study["matrix"](rows, "score")
    changed_scores = scores.copy()
    changed_scores[3], changed_scores[:, 3] = (
        1 - scores[3],
        0.5,
    )  # A target's own labels, as target and as source.
    changed_scores[3, 3] = np.nan
    for make in (
        lambda values: study["fit_scores"](signals, values)[3],
        lambda values: study["mean_in_other_targets"](values)[3],
    ):
        state_before = make(scores)
        state_after = make(changed_scores)
        is_others = np.arange(len(scores)) != 3
        assert np.allclose(
            state_before[is_others] - state_before[is_others].mean(),
            state_after[is_others] - state_after[is_others].mean(),
            atol=0.05,
        )
