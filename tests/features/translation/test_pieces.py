"""Pieces: short enough, complete, and cut where it hurts least."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from isogloss.features.translation.pieces import join_pieces, split_into_pieces


def letters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


@given(st.lists(st.text(alphabet="ab,. \n。中!A", max_size=60)), st.integers(1, 12), st.booleans())
def test_pieces_fit_and_leave_nothing_out(texts: list[str], longest: int, sentences: bool) -> None:
    for text, (pieces, cuts) in zip(
        texts, split_into_pieces(texts, letters, longest=longest, sentences=sentences), strict=True
    ):
        assert all(0 < len(piece) <= longest for piece in pieces)
        assert "".join("".join(pieces).split()) == "".join(text.split())
        assert (cuts > 0) <= (len(pieces) > 1)


def test_a_cut_is_made_at_sentence_ends_then_clauses_then_spaces() -> None:
    def pieces(text: str) -> list[str]:
        return split_into_pieces([text], letters, longest=20, sentences=False)[0][0]

    assert pieces("It, it rained. We stayed there.") == ["It, it rained.", "We stayed there."]
    assert pieces("when it rained, we stayed there") == ["when it rained,", "we stayed there"]
    assert pieces("a word and another one") == ["a word and", "another one"]


def test_a_text_that_fits_is_not_cut() -> None:
    assert split_into_pieces(["a b. C d.", " "], letters, longest=20, sentences=False) == [
        (["a b. C d."], 0),
        ([], 0),
    ]


def test_pieces_are_joined_as_the_language_is_written() -> None:
    assert join_pieces(["Ja.", "", "Nein."], "de") == "Ja. Nein."
    for language in ("zh", "zh_Hant", "cmn", "wuu"):
        assert join_pieces(["是。", "不。"], language) == "是。不。"
