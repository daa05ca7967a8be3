"""Macro F1, weighted F1 and MCC are scikit-learn's. A label adds its influence, as the jackknife has it."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from isogloss.core.rows.models import total
from isogloss.metrics.labels import class_contributions

LABEL = st.sampled_from("NVAP")
WORDS = st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=5)

# Two sentences: gold N N V V A, predicted N V V V N.
GOLD = (["N", "N", "V"], ["V", "A"])
PREDICTED = (["N", "V", "V"], ["V", "N"])


def measures(gold, predicted_tags):
    return {name: total(parts) for name, parts in class_contributions(gold, predicted_tags).items()}


def test_measures_by_hand():
    """F1 of N is 2·1 of 2 + 2, of V 2·2 of 2 + 3, of A 0. See Gorodkin (2004) for 15 - 10 of √(16·12)."""
    expected = {
        "accuracy": 3 / 5,
        "macro_f1": (1 / 2 + 4 / 5 + 0) / 3,
        "weighted_f1": (2 * 1 / 2 + 2 * 4 / 5) / 5,
        "mcc": (5 * 3 - (2 * 2 + 2 * 3)) / np.sqrt((25 - (4 + 4 + 1)) * (25 - (4 + 9))),
    }
    assert measures(GOLD, PREDICTED) == pytest.approx(expected, abs=1e-15)


@pytest.mark.filterwarnings("ignore:A single label")
@given(st.lists(WORDS, min_size=1, max_size=6))
def test_measures_equal_scikit_learn(sentences):
    gold, predicted_pairs = ([[pair[side] for pair in words] for words in sentences] for side in (0, 1))
    flat = list(chain(*gold)), list(chain(*predicted_pairs))
    expected = {
        "accuracy": accuracy_score(*flat),
        "macro_f1": f1_score(*flat, average="macro", zero_division=0),
        "weighted_f1": f1_score(*flat, average="weighted", zero_division=0),
        "mcc": matthews_corrcoef(*flat),
    }
    assert measures(gold, predicted_pairs) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("gold", "predictions"), [([], []), ([[]], [[]]), ([["N"], ["N"]], [["V"], ["V"]]), ([["N"]], [["N"]])]
)
def test_nothing_to_correlate_is_no_correlation(gold, predictions):
    assert measures(gold, predictions)["mcc"] == 0


@pytest.mark.parametrize("measure", ["macro_f1", "weighted_f1", "mcc"])
def test_the_influence_of_a_sentence_is_that_of_leaving_it_out(measure):
    rng = np.random.default_rng(0)
    gold = [list(rng.choice(list("NVAP"), 4, p=[0.4, 0.3, 0.2, 0.1])) for _ in range(200)]
    predicted_tags = [[tag if rng.random() < 0.7 else "N" for tag in tags] for tags in gold]
    whole_total = measures(gold, predicted_tags)[measure]
    parts, words = class_contributions(gold, predicted_tags)[measure]
    plain_differences = [
        800 * whole_total
        - 796
        * measures(gold[:left] + gold[left + 1 :], predicted_tags[:left] + predicted_tags[left + 1 :])[
            measure
        ]
        for left in range(200)
    ]
    assert words == [4.0] * 200
    np.testing.assert_allclose(parts, plain_differences, atol=0.06)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("measure", ["macro_f1", "weighted_f1", "mcc"])
def test_the_spread_of_influences_is_the_standard_error_of_the_bootstrap(measure):
    rng = np.random.default_rng(1)
    gold = rng.choice(list("NVA"), 400, p=[0.5, 0.3, 0.2])
    predicted_place = np.where(rng.random(400) < 0.7, gold, rng.choice(list("NVA"), 400))
    parts, _ = class_contributions(gold[:, None].tolist(), predicted_place[:, None].tolist())[measure]
    draws = (rng.integers(400, size=400) for _ in range(1000))
    drawn_totals = [
        measures(gold[draw][:, None].tolist(), predicted_place[draw][:, None].tolist())[measure]
        for draw in draws
    ]
    assert np.std(parts) / 20 == pytest.approx(np.std(drawn_totals), rel=0.1)
