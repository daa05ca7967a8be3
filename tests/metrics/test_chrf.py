"""chrF equals sacrebleu's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.metrics.chrf import chrf

TEXTS = st.text(alphabet="abcd éж中 ", max_size=20)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_chrf_equals_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    references, translations = zip(*pairs, strict=True)
    theirs = sacrebleu.corpus_chrf(list(translations), [list(references)]).score
    assert chrf(references, translations) == pytest.approx(theirs / 100)


def test_chrf_of_the_reference_itself_is_one() -> None:
    assert chrf(["ein alter Baum"], ["ein alter Baum"]) == 1.0
    assert chrf(["ein alter Baum"], [""]) == 0.0
