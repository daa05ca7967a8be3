"""Tests and scores equal statsmodels and sacrebleu on random inputs."""

import math
import random

import numpy as np
import pytest

from each import each
from isogloss.features.translation.scores import bleu, chrf
from isogloss.metrics.significance import holm, mcnemar_test, power_of, seeds_needed

pytestmark = pytest.mark.nightly


def test_mcnemars_test_is_that_of_statsmodels():
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    numbers = np.random.default_rng(0)
    for pair, ours, theirs, none in each(numbers.integers(1, 60, (200, 4))):
        system = np.repeat([1.0, 1.0, 0.0, 0.0], [pair, ours, theirs, none])
        baseline = np.repeat([1.0, 0.0, 1.0, 0.0], [pair, ours, theirs, none])
        expected = tables.mcnemar([[pair, ours], [theirs, none]], exact=True).pvalue
        assert mcnemar_test(system, baseline).p_value == pytest.approx(expected)


def test_holms_correction_is_that_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    numbers = np.random.default_rng(1)
    for size in range(1, 40):
        p_values = numbers.random(size) ** 3
        assert holm(list(p_values)) == pytest.approx(multitest.multipletests(p_values, method="holm")[1])


@pytest.mark.parametrize("effect", [0.2, 0.5, 1.0, 2.0])
def test_power_and_the_seeds_needed_are_those_of_statsmodels(effect):
    power = pytest.importorskip("statsmodels.stats.power").TTestPower()
    for seeds in (3, 5, 10, 50):
        assert power_of(effect, 1.0, seeds) == pytest.approx(power.power(effect, seeds, 0.05), abs=1e-6)
    assert seeds_needed(effect, 1.0) == math.ceil(power.solve_power(effect, None, 0.05, 0.8))


TEXTS = [
    *("The cat sat on the mat.", "Ein Haus, zwei Häuser!", "a", "北京是中国的首都。", "我喜欢 New York。"),
    *("ตัวอย่างภาษาไทย", "日本語の文です。", "$5.00 & 3%", "l'homme", "U.S.A.", "“quoted”", "  spaces  ", ""),
]
SACREBLEU_TOKENIZERS = {"en": "13a", "de": "13a", "zh": "zh", "zh_Hant": "zh", "ja": "char", "th": "char"}


@pytest.mark.parametrize("language", SACREBLEU_TOKENIZERS)
def test_bleu_and_chrf_are_those_of_sacrebleu(language):
    sacrebleu = pytest.importorskip("sacrebleu")
    draw = random.Random(language)
    for _ in range(40):
        choices, gold = (draw.choices(TEXTS, k=4) for _ in range(2))
        tokenizer = SACREBLEU_TOKENIZERS[language]
        expected = sacrebleu.corpus_bleu(choices, [gold], tokenize=tokenizer, force=True).score / 100
        assert bleu(gold, choices, language) == pytest.approx(expected)
        assert chrf(gold, choices) == pytest.approx(sacrebleu.corpus_chrf(choices, [gold]).score / 100)
