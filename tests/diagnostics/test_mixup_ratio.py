"""The ratio's numbers are numpy's, for the target languages alone, and none where nothing is mixed."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from measuring import measure_setting, subject

from isogloss.diagnostics.mixup_ratio import MixupRatio, ratio_summary

SHARES = st.lists(st.floats(0, 1), min_size=2, max_size=30)


@given(SHARES)
def test_the_summary_is_numpys(values):
    found = ratio_summary(torch.tensor(values, dtype=torch.float64))
    assert found["examples"] == len(values)
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["std"] == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    for name, share in (("lowest", 0), ("q05", 5), ("median", 50), ("q95", 95), ("highest", 100)):
        assert found[name] == pytest.approx(np.percentile(values, share))


def test_one_example_has_no_spread():
    assert np.isnan(ratio_summary(torch.tensor([0.25]))["std"])


def test_examples_without_a_translation_are_not_counted():
    some = ratio_summary(torch.tensor([0.1, float("nan"), 0.3]))
    assert (some["examples"], some["mean"], some["highest"]) == (2, pytest.approx(0.2), pytest.approx(0.3))
    none = ratio_summary(torch.tensor([float("nan")]))
    assert none.pop("examples") == 0 and all(map(np.isnan, none.values()))


class Paired:
    def __init__(self, language):
        self.language = language

    def ratios(self, model):
        return torch.tensor([0.1, 0.3]) if (model, self.language) == ("m", "fr") else torch.tensor([0.5, 0.5])


def test_every_target_language_has_a_row():
    setting = measure_setting(["m"], languages=("en", "de", "fr"))
    rows = MixupRatio().measure(replace(setting, paired=Paired))
    model = subject("0").id
    assert [(row.model, row.language, row.split) for row in rows] == [
        (model, "de", "dev"),
        (model, "fr", "dev"),
    ]
    assert [row.mean for row in rows] == pytest.approx([0.5, 0.2])
    assert [row.std for row in rows] == pytest.approx([0, 0.1 * 2**0.5])


def test_a_language_without_any_translation_is_warned_of_and_has_no_row():
    class Alone:
        def __init__(self, language):
            pass

        def ratios(self, model):
            return torch.full((2,), torch.nan)

    said = []
    setting = replace(measure_setting(["m"]), paired=Alone, warn=said.append)
    assert MixupRatio().measure(setting) == []
    assert said == ["mixup-ratio: no example of de has a translation, so none has a ratio."]


def test_a_model_that_mixes_nothing_has_no_rows():
    assert MixupRatio().measure(measure_setting(["m"])) == []
