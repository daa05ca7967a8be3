"""The mean cosine of different sentences."""

import pytest
import torch

from isogloss.core.errors import DataError
from isogloss.features.representations.anisotropy import Anisotropy
from isogloss.features.representations.geometry import mean_cosine
from isogloss.training.states import sentence_states
from measuring import load, measure_setting, translations

TEXTS = ["ba du", "du", "ba ba du du"]


def test_it_is_the_mean_over_all_pairs_of_different_rows():
    states = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    cosines = torch.nn.functional.cosine_similarity(states[:, None], states[None], dim=2)
    expected = cosines[~torch.eye(7, dtype=torch.bool)].mean()
    assert mean_cosine(states) == pytest.approx(float(expected), abs=1e-6)


def test_one_direction_is_1_and_opposite_ones_cancel():
    assert mean_cosine(torch.tensor([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]])) == pytest.approx(1)
    assert mean_cosine(torch.tensor([[1.0, 0.0], [-1.0, 0.0]])) == pytest.approx(-1)


def test_each_language_is_measured_on_its_own_sentences(bert_folder):
    loaded_data = load(bert_folder)
    pairs = translations(TEXTS, TEXTS[::-1])
    setting = measure_setting([loaded_data], bitext=lambda _: pairs)
    rows = Anisotropy(layers=(0, 2, -2)).measure(setting)  # -2 is 2 again.
    assert [(row.language, row.layer, row.sentences) for row in rows] == [
        (language, layer, 3) for language in setting.languages for layer in (0, 2)
    ]
    for row in rows:
        (states,) = sentence_states(*loaded_data, TEXTS, layers=(row.layer,), precision=setting.precision)
        assert row.mean_cosine == pytest.approx(mean_cosine(states), abs=1e-6)


def test_one_sentence_cannot_be_compared(bert_folder):
    loaded_data = load(bert_folder)
    setting = measure_setting([loaded_data], bitext=lambda _: translations(["ba"], ["du"]))
    with pytest.raises(DataError, match=r"1.*en; 2"):
        Anisotropy().measure(setting)
