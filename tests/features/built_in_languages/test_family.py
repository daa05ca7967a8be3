"""The dials of the family, its scripts, its random draws and its words."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.languages import BUILT_IN_NAMES, is_built_in, language_name
from isogloss.features.built_in_languages import LANGUAGES, Language, card, examples
from isogloss.features.built_in_languages import concepts as c
from isogloss.features.built_in_languages.concepts import Draws, Weighted, zipf
from isogloss.features.built_in_languages.family import CODAS, CONSONANTS, VOWELS, spell, syllables
from isogloss.features.built_in_languages.lexicon import CONTENT, HOMONYMS, all_forms, lexicon
from says import says


def test_codes_are_of_the_private_range():
    assert len(LANGUAGES) >= 7
    assert all(
        is_built_in(language_code) and language.code == language_code
        for language_code, language in LANGUAGES.items()
    )


def test_family_has_a_far_a_poor_and_an_unrelated_language():
    languages = LANGUAGES.values()
    assert {language.script for language in languages} == {
        "latin", "cyrillic", "greek", "devanagari", "arabic", "han",
    }  # fmt: skip
    assert {language.order for language in languages} == {"SVO", "SOV", "VSO"}
    assert any(language.size < 1 for language in languages)
    assert any(language.shared == 0 for language in languages)
    assert (LANGUAGES["qad"].order, LANGUAGES["qad"].script, LANGUAGES["qad"].shared) == ("SOV", "latin", 0.1)


def test_card_describes_every_dial_of_every_language():
    cards = [card(language) for language in LANGUAGES]
    assert len({tuple(fields.items()) for fields in cards}) == len(LANGUAGES)
    assert card("qai")["script"] == "Han, no spaces"
    assert card("qad")["adpositions"] == "postpositions"
    assert card("qag")["training data"] == "low-resource, 10% of full size"


def test_language_is_content_of_a_run():
    assert identity(LANGUAGES["qaa"]) != identity(replace(LANGUAGES["qaa"], order="VSO"))


def test_language_with_an_impossible_dial_is_refused_with_what_is_allowed():
    with says(ConfigError, "'SVX'", "Did you mean 'SVO'"):
        replace(LANGUAGES["qaa"], order="SVX")
    with says(ConfigError, "[0, 1]"):
        replace(LANGUAGES["qaa"], shared=1.5)
    with says(ConfigError, "'han'", "'particle'"):
        replace(LANGUAGES["qaa"], script="han")


def test_unknown_names_are_errors_with_the_nearest_match():
    with says(ConfigError, "'qaz'", "qaa, qab"):
        examples("ud", "qaz", "dev")
    with says(ConfigError, "'xnil'", "Did you mean 'xnli'"):
        examples("xnil", "qaa", "dev")
    with says(ConfigError, "'tets'", "Did you mean 'test'"):
        examples("ud", "qaa", "tets")


def test_language_of_ones_own_works_wherever_a_code_does():
    mine_language = Language(
        code="qaq", name="Mine", order="SOV", adjective="after", adposition="after", relative="before",
        script="greek", number="prefix", case="prefix", tense="suffix", negation="suffix", shared=0.5, seed=3,
    )  # fmt: skip
    assert len(list(examples("wikiann", mine_language, "dev"))) == len(
        list(examples("wikiann", "qaa", "dev"))
    )


SOURCE = lexicon(LANGUAGES["qaa"])


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "qaa"])
def test_share_of_words_shared_with_the_source_is_as_the_dial_says(language):
    words = lexicon(LANGUAGES[language])
    shared = [concept for concept in CONTENT if words.roots[concept] == SOURCE.roots[concept]]
    assert len(shared) == round(LANGUAGES[language].shared * len(CONTENT))


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_are_ambiguous_only_where_a_verb_sounds_like_a_noun(language):
    words = lexicon(LANGUAGES[language])
    ambiguous = {form: tags for form, tags in words.readings.items() if len(tags) > 1}
    assert ambiguous and all(set(tags) == {"NOUN", "VERB"} for tags in ambiguous.values())
    pairs = [(n, v) for v in c.VERBS for n in c.NOUNS if words.roots[n] == words.roots[v]]
    assert HOMONYMS <= len(pairs) <= HOMONYMS + len(CONTENT) // 10


@pytest.mark.parametrize("language", LANGUAGES)
def test_forms_lead_back_to_their_concept(language):
    words = lexicon(LANGUAGES[language])
    assert all(
        words.readings[form.text][form.tag].concept == reading.concept
        for form, reading in each(all_forms(words))
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_content_words_have_several_syllables(language):
    words = lexicon(LANGUAGES[language])
    assert all(len(syllables(words.roots[concept])) >= 2 for concept in CONTENT)


def test_no_word_begins_another_in_a_script_without_spaces():
    words = lexicon(LANGUAGES["qai"])
    forms = sorted(words.readings)
    assert not any(later.startswith(form) for form, later in each(pairwise(forms)))


def test_names_are_one_to_three_words_spelled_in_the_script():
    names = c.world().names
    assert {len(name) for name in names.values()} == {1, 2, 3}
    assert len(set(names.values())) == len(names) == 200 + 60 + 60
    for language in LANGUAGES.values():
        spelled_names = lexicon(language).names
        for concept, name in names.items():
            assert tuple(form.text for form in spelled_names[concept]) == tuple(
                spell(w, language.script) for w in name
            )


def test_all_words_may_be_shared_and_where_they_cannot_it_is_said():
    twin = lexicon(replace(LANGUAGES["qac"], code="qay", shared=1.0))
    assert all(twin.roots[concept] == SOURCE.roots[concept] for concept in CONTENT)
    with pytest.raises(ConfigError, match=r"language qaz: .*1\.0.*0\.9\d"):
        lexicon(replace(LANGUAGES["qai"], code="qaz", shared=1.0))


SCRIPTS = ["latin", "cyrillic", "greek", "devanagari", "arabic", "han"]
syllable = st.tuples(st.sampled_from(CONSONANTS), st.sampled_from(VOWELS), st.sampled_from(CODAS)).map(
    "".join
)
words = st.lists(syllable, min_size=1, max_size=4)


@given(words)
def test_syllables_split_a_word_as_it_was_built(parts):
    assert syllables("".join(parts)) == parts


@pytest.mark.parametrize("script", SCRIPTS)
@given(left=words, right=words)
def test_spelling_keeps_different_words_different(script, left, right):
    assert (spell("".join(left), script) == spell("".join(right), script)) == (left == right)


@pytest.mark.parametrize("script", SCRIPTS)
@given(parts=words)
def test_spelling_is_normal_unicode_and_joins_like_its_parts(script, parts):
    spelled_text = spell("".join(parts), script)
    assert spelled_text == "".join(spell(part, script) for part in parts)
    assert normalize("NFKC", spelled_text) == spelled_text == normalize("NFC", spelled_text)
    assert spelled_text == spelled_text.lower()


def test_sequence_is_the_same_on_every_machine():
    draws = Draws(42)
    assert [draws.whole_number(1000) for _ in range(6)] == [639, 25, 275, 223, 736, 676]


@given(st.integers(0, 2**62), st.lists(st.integers(), max_size=30))
def test_shuffling_keeps_every_item(seed, items):
    assert sorted(Draws(seed).shuffle(items)) == sorted(items)


@given(st.integers(0, 2**62))
def test_items_without_weight_are_never_drawn(seed):
    draws = Draws(seed)
    table = Weighted([("never", 0), ("often", 3), ("nor", 0), ("seldom", 1)])
    assert {draws.draw(table) for _ in range(30)} <= {"often", "seldom"}


def test_zipf_falls_with_rank():
    draws = Draws(1)
    table = zipf(range(8))
    counts = Counter(draws.draw(table) for _ in range(20000))
    assert all(counts[left] > counts[right] for left, right in pairwise(range(8)))
    assert abs(counts[0] / counts[1] - 2**0.8) < 0.15


def test_core_names_the_languages_as_the_family_does() -> None:
    assert {language_code: language.name for language_code, language in LANGUAGES.items()} == BUILT_IN_NAMES
    assert language_name("qad") == "Dunar"
