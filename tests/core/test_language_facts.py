"""Facts of languages are found by any code, come only from the table, and agree with papers."""

import re

import pytest
from langcodes import Language, standardize_tag

from isogloss.core.languages import UNKNOWN, LanguageFacts, all_language_facts, language_facts

TABLE_1 = {
    "0": "wbp",
    "1": "chr fij kal bho nav",
    "2": "zul kok lao mlt gle",
    "3": "ind ukr ceb afr heb",
    "4": "rus hun vie nld kor",
    "5": "eng spa deu jpn fra",
}
"""The languages that Table 1 of Joshi et al. (2020) names for each class, as far as they are in the table."""

CODES = {
    "sw swa swh swh_Latn swh-Latn": ("Atlantic-Congo", "Latn", "2"),
    "zh zho cmn zho_Hans zh-CN": ("Sino-Tibetan", "Hans", "5"),
    "ar ara arb arb_Arab": ("Afro-Asiatic", "Arab", "5"),
    "fa fas pes pes_Arab": ("Indo-European", "Arab", "4"),
    "et est ekk est_Latn": ("Uralic", "Latn", "3"),
    "tl tgl fil tgl_Latn": ("Austronesian", "Latn", "3"),
    "he iw heb_Hebr": ("Afro-Asiatic", "Hebr", "3"),
    "eu": ("Basque", "Latn", "4"),
    "grc": ("Indo-European", "Grek", UNKNOWN),
    "ary ary_Arab": ("Afro-Asiatic", "Arab", UNKNOWN),
    "zh_Hant zho-Hant": ("Sino-Tibetan", "Hant", "5"),
    "sr": ("Indo-European", "Cyrl", "4"),
    "sr-Latn srp_Latn": ("Indo-European", "Latn", "4"),
    "arb_Latn": ("Afro-Asiatic", "Latn", "5"),
    "en-sw": ("Atlantic-Congo", "Latn", "2"),
}


@pytest.mark.parametrize("codes", CODES)
def test_any_code_of_a_language_finds_its_facts(codes):
    facts = {language_facts(language) for language in codes.split()}
    assert {fact[:3] for fact in facts} == {CODES[codes]} and len(facts) == 1


@pytest.mark.parametrize("language", ["qaa", "xx", "zz_", "", "de+en", "tlh"])
def test_what_is_not_in_the_table_is_unknown(language):
    assert language_facts(language) == LanguageFacts(UNKNOWN, UNKNOWN, UNKNOWN)


def test_a_script_is_known_from_the_code_of_an_unknown_language():
    assert language_facts("tlh_Latn") == LanguageFacts(UNKNOWN, "Latn", UNKNOWN)


def test_classes_are_those_of_the_paper():
    for resources, codes in TABLE_1.items():
        assert {language_facts(language).resources for language in codes.split()} == {resources}
    sizes = {"2": 19, "3": 28, "4": 18, "5": 7}  # Table 1, which lists only a part of the lower classes
    result = [language_fact.resources for language_fact in all_language_facts().values()]
    assert {resources: result.count(resources) for resources in sizes} == sizes


@pytest.mark.parametrize(
    ("order", "codes"),
    [
        ("SVO", "en fr sw id th zh"),
        ("SOV", "ja ko hi tr ta eu"),
        ("VSO", "cy ga tl mi"),
        (UNKNOWN, "de nl hu"),
    ],
)
def test_orders_are_those_of_wals(order, codes):
    assert {language_facts(language).order for language in codes.split()} == {order}


def test_the_table_has_one_well_formed_row_a_language():
    facts = all_language_facts()
    assert 300 < len(facts) < 500
    assert list(facts) == sorted(facts)
    for language, (family, script, resources, order) in facts.items():
        assert order in {UNKNOWN, "SVO", "SOV", "VSO"}
        assert Language.get(standardize_tag(language, macro=True)).to_alpha3() == language, (
            "else it is never found"
        )
        assert family != UNKNOWN and re.fullmatch(r"[A-Z][A-Za-z -]+", family)
        assert script == UNKNOWN or re.fullmatch("[A-Z][a-z]{3}", script)
        assert resources in {UNKNOWN, *"012345"}
