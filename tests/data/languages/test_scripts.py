from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.languages.family import CODAS, CONSONANTS, VOWELS, spell, syllables

SCRIPTS = ["latin", "cyrillic", "greek", "devanagari", "arabic", "han"]
syllable = st.tuples(st.sampled_from(CONSONANTS), st.sampled_from(VOWELS), st.sampled_from(CODAS)).map(
    "".join
)
words = st.lists(syllable, min_size=1, max_size=4)


@given(words)
def test_syllables_split_a_word_as_it_was_built(parts):
    assert syllables("".join(parts)) == parts


@pytest.mark.parametrize("script", SCRIPTS)
@given(one=words, other=words)
def test_spelling_keeps_different_words_different(script, one, other):
    assert (spell("".join(one), script) == spell("".join(other), script)) == (one == other)


@pytest.mark.parametrize("script", SCRIPTS)
@given(parts=words)
def test_spelling_is_normal_unicode_and_joins_like_its_parts(script, parts):
    spelled = spell("".join(parts), script)
    assert spelled == "".join(spell(part, script) for part in parts)
    assert normalize("NFKC", spelled) == spelled == normalize("NFC", spelled)
    assert spelled == spelled.lower()
