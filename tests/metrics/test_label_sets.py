"""Scores of label sets equal scikit-learn's, and a text's influence on macro F1 is the jackknife's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score
from sklearn.preprocessing import MultiLabelBinarizer

from isogloss.core.rows.models import total
from isogloss.metrics.labels import label_set_contributions

LABELS = ("anger", "joy", "fear")
SET = st.sets(st.sampled_from(LABELS)).map(tuple)


@given(st.lists(st.tuples(SET, SET), min_size=1, max_size=12))
def test_measures_equal_scikit_learn(rows):
    gold, predictions = zip(*rows, strict=True)
    binary = MultiLabelBinarizer(classes=LABELS)
    sides = binary.fit_transform(gold), binary.fit_transform(predictions)
    totals = {
        name: total(set_contribution)
        for name, set_contribution in label_set_contributions(gold, predictions, LABELS).items()
    }
    assert totals == pytest.approx(
        {
            "micro_f1": f1_score(*sides, average="micro", zero_division=0),
            "macro_f1": f1_score(*sides, average="macro", zero_division=0),
            "weighted_f1": f1_score(*sides, average="weighted", zero_division=0),
            "exact_match": accuracy_score(*sides),
        },
        abs=1e-12,
    )


def test_no_texts_add_nothing():
    assert {
        total(set_contribution) for set_contribution in label_set_contributions([], [], LABELS).values()
    } == {0.0}


@pytest.mark.parametrize("measure", ["macro_f1", "weighted_f1"])
def test_the_influence_of_a_text_is_that_of_leaving_it_out(measure):
    rng = np.random.default_rng(0)
    gold, predicted_labels = (
        [tuple(label for label in LABELS if rng.random() < 0.5) for _ in range(100)] for _ in range(2)
    )
    rows = range(len(gold))

    def score(kept_numbers):
        sides = ([side[n] for n in kept_numbers] for side in (gold, predicted_labels))
        return total(label_set_contributions(*sides, LABELS)[measure])

    plain_differences = [100 * score(rows) - 99 * score([n for n in rows if n != left]) for left in rows]
    part, _ = label_set_contributions(gold, predicted_labels, LABELS)[measure]
    np.testing.assert_allclose(part, plain_differences, atol=0.05)
