"""chrF and BLEU are sacrebleu's, and follow their formulas."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.translation.scores import bleu, chrf, signature

TEXTS = st.text(alphabet="abcd éж中 ", max_size=20)


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_chrf_is_the_f2_of_its_n_grams(pairs: list[tuple[str, str]]) -> None:
    references, translations = zip(*pairs, strict=True)
    assert chrf(references, translations) == pytest.approx(compute_chrf(pairs))


def compute_chrf(pairs: list[tuple[str, str]]) -> float:
    """Compute chrF, without orders of n-grams for which a reference is too short."""
    shares = []
    for length in range(1, 7):
        grams = [tuple(n_grams(text, length) for text in pair) for pair in pairs]
        total = sum(gram.total() for gram, _ in grams)
        inputs = sum(text.total() for gram, text in grams if gram)
        if total and inputs:
            common = sum((gram & text).total() for gram, text in grams)
            shares.append((common / inputs, common / total))
    if not shares:
        return 0.0
    precision, recall = (sum(side) / len(shares) for side in zip(*shares, strict=True))
    return 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


def n_grams(text: str, length: int) -> Counter[str]:
    letters = "".join(text.split())
    return Counter(letters[start : start + length] for start in range(len(letters) - length + 1))


def test_the_reference_itself_has_all_and_nothing_has_nothing() -> None:
    for metric in (chrf, lambda *texts: bleu(*texts, "de")):
        assert metric(["ein alter Baum steht da"], ["ein alter Baum steht da"]) == pytest.approx(1)
        assert metric(["ein alter Baum steht da"], [""]) == 0


def test_bleu_counts_words_and_characters_where_there_are_no_spaces() -> None:
    # Precisions 4/5, 2/4, 1/3 and, smoothed, 1/(2·2) of n-grams of 1 to 4 words.
    ratio = (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25
    assert bleu(["a b c d e"], ["a b c x e"], "de") == pytest.approx(ratio)
    for language in ("zh", "zh_Hant", "cmn"):
        assert bleu(["一二三四五"], ["一二三六五"], language) == pytest.approx(ratio)


def test_signatures_say_how_and_leave_the_version_to_the_machine() -> None:
    assert signature("de").split() == [
        "chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no",
        "BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp",
    ]
    assert "tok:zh" in signature("zh")
