"""Sentences of running text: nothing is lost, and the usual traps are stepped over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.tokenization import sentences_in


@given(st.text(alphabet=' .!?。！ab A"”।\n', max_size=60))
def test_sentences_put_together_are_the_text(text: str) -> None:
    assert "".join("".join(sentences_in(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("It rained. We stayed! Why?", ["It rained.", "We stayed!", "Why?"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Dr. Smith met J. R. Jones in the U.S. Army.", ["Dr. Smith met J. R. Jones in the U.S. Army."]),
        ("It cost 3.14 and 2. more.", ["It cost 3.14 and 2. more."]),
        ("下雨了。我们留下！为什么？", ["下雨了。", "我们留下！", "为什么？"]),
        ("यह घर है। वह गया।", ["यह घर है।", "वह गया।"]),
        ("هل جاء؟ نعم.", ["هل جاء؟", "نعم."]),
        ("no end at all", ["no end at all"]),
        ("  ", []),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, sentences: list[str]) -> None:
    assert sentences_in(text) == sentences
