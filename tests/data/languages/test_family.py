from dataclasses import replace

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.languages import is_built_in
from isogloss.data.languages import LANGUAGES, Language, card, examples


def test_codes_are_of_the_private_range():
    assert len(LANGUAGES) >= 7
    assert all(is_built_in(code) and language.code == code for code, language in LANGUAGES.items())


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
    cards = [card(code) for code in LANGUAGES]
    assert len({tuple(one.items()) for one in cards}) == len(LANGUAGES)
    assert card("qai")["script"] == "Han, no spaces"
    assert card("qad")["adpositions"] == "postpositions"
    assert card("qag")["training data"] == "low-resource, 10% of full size"


def test_language_is_content_of_a_run():
    assert identity(LANGUAGES["qaa"]) != identity(replace(LANGUAGES["qaa"], order="VSO"))


def test_language_with_an_impossible_dial_is_refused_with_what_is_allowed():
    with pytest.raises(ConfigError, match=r"language qaa: no order 'SVX'\. Did you mean 'SVO'\?"):
        replace(LANGUAGES["qaa"], order="SVX")
    with pytest.raises(ConfigError, match=r"shared must lie in \[0, 1\]"):
        replace(LANGUAGES["qaa"], shared=1.5)
    with pytest.raises(ConfigError, match=r"'han' writes no spaces.*Use 'particle'"):
        replace(LANGUAGES["qaa"], script="han")


def test_unknown_names_are_errors_with_the_nearest_match():
    with pytest.raises(ConfigError, match=r"no language 'qaz'.*Known: qaa, qab"):
        examples("ud", "qaz", "dev")
    with pytest.raises(ConfigError, match=r"no corpus 'xnil'\. Did you mean 'xnli'\?"):
        examples("xnil", "qaa", "dev")
    with pytest.raises(ConfigError, match=r"built-in ud: no split 'tets'\. Did you mean 'test'\?"):
        examples("ud", "qaa", "tets")


def test_language_of_ones_own_works_wherever_a_code_does():
    mine = Language(
        code="qaq", name="Mine", order="SOV", adjective="after", adposition="after", relative="before",
        script="greek", number="prefix", case="prefix", tense="suffix", negation="suffix", shared=0.5, seed=3,
    )  # fmt: skip
    assert len(list(examples("wikiann", mine, "dev"))) == len(list(examples("wikiann", "qaa", "dev")))
