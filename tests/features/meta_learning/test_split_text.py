import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import DataError
from isogloss.features.meta_learning.algorithm import BLOCKS, split_text
from isogloss.tasks.masked_lm import TextStream


def text(total, line):
    return TextStream(np.arange(total), np.arange(0, total, line))


def read(view, length):
    return {int(item) for place in range(len(view.starts)) for item in view.block(place, length)}


@given(st.integers(60, 4000), st.integers(3, 40), st.integers(4, 20), st.floats(0.02, 0.5))
def test_no_subword_is_in_both(total, line, length, share):
    try:
        kept_text, distance = split_text(text(total, line), share=share, length=length, language="en")
    except DataError:
        return
    assert not read(kept_text, length) & read(distance, length)


def test_about_the_share_is_set_apart_in_stretches_from_the_whole_text():
    kept_text, distance = split_text(text(100_000, 7), share=0.05, length=10, language="en")
    examples = sorted(read(distance, 10))
    assert 0.045 < len(examples) / 100_000 < 0.05
    assert 0.9 < len(read(kept_text, 10)) / 100_000 < 0.95
    stretches = np.split(examples, np.flatnonzero(np.diff(examples) > 1) + 1)
    assert len(stretches) == 100_000 * 0.05 // (BLOCKS * 10)
    assert np.ptp(np.diff([stretch[0] for stretch in stretches])) <= 7


def test_a_short_text_gives_its_end():
    kept_text, distance = split_text(text(100, 10), share=0.01, length=20, language="en")
    assert read(kept_text, 20) == set(range(80))
    assert read(distance, 20) == set(range(80, 100))


@pytest.mark.parametrize("total", [1, 20, 39])
def test_a_text_too_short_for_both_is_refused(total):
    with pytest.raises(DataError, match=f"en: .*{total}"):
        split_text(text(total, 10), share=0.05, length=20, language="en")
