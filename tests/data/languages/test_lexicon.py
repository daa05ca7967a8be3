from dataclasses import replace
from itertools import pairwise

import pytest

from isogloss.core.errors import ConfigError
from isogloss.data.languages import LANGUAGES
from isogloss.data.languages import concepts as c
from isogloss.data.languages.family import spell, syllables
from isogloss.data.languages.lexicon import CONTENT, HOMONYMS, all_forms, lexicon

SOURCE = lexicon(LANGUAGES["qaa"])


@pytest.mark.parametrize("code", [code for code in LANGUAGES if code != "qaa"])
def test_share_of_words_shared_with_the_source_is_as_the_dial_says(code):
    words = lexicon(LANGUAGES[code])
    shared = [concept for concept in CONTENT if words.roots[concept] == SOURCE.roots[concept]]
    assert len(shared) == round(LANGUAGES[code].shared * len(CONTENT))


@pytest.mark.parametrize("code", LANGUAGES)
def test_forms_are_ambiguous_only_where_a_verb_sounds_like_a_noun(code):
    words = lexicon(LANGUAGES[code])
    ambiguous = {form: tags for form, tags in words.readings.items() if len(tags) > 1}
    assert ambiguous and all(set(tags) == {"NOUN", "VERB"} for tags in ambiguous.values())
    pairs = [(n, v) for v in c.VERBS for n in c.NOUNS if words.roots[n] == words.roots[v]]
    assert HOMONYMS <= len(pairs) <= HOMONYMS + len(CONTENT) // 10


@pytest.mark.parametrize("code", LANGUAGES)
def test_forms_lead_back_to_their_concept(code):
    words = lexicon(LANGUAGES[code])
    assert all(
        words.readings[form.text][form.tag].concept == reading.concept for form, reading in all_forms(words)
    )


@pytest.mark.parametrize("code", LANGUAGES)
def test_content_words_have_several_syllables(code):
    words = lexicon(LANGUAGES[code])
    assert all(len(syllables(words.roots[concept])) >= 2 for concept in CONTENT)


def test_no_word_begins_another_in_a_script_without_spaces():
    words = lexicon(LANGUAGES["qai"])
    forms = sorted(words.readings)
    assert not any(later.startswith(form) for form, later in pairwise(forms))


def test_names_are_one_to_three_words_spelled_in_the_script():
    names = c.world().names
    assert {len(name) for name in names.values()} == {1, 2, 3}
    assert len(set(names.values())) == len(names) == 200 + 60 + 60
    for language in LANGUAGES.values():
        spelled = lexicon(language).names
        for concept, name in names.items():
            assert tuple(form.text for form in spelled[concept]) == tuple(
                spell(w, language.script) for w in name
            )


def test_all_words_may_be_shared_and_where_they_cannot_it_is_said():
    twin = lexicon(replace(LANGUAGES["qac"], code="qay", shared=1.0))
    assert all(twin.roots[concept] == SOURCE.roots[concept] for concept in CONTENT)
    with pytest.raises(
        ConfigError, match=r"language qaz: shared is 1\.0, but .* Set shared to 0\.9\d or less"
    ):
        lexicon(replace(LANGUAGES["qai"], code="qaz", shared=1.0))
