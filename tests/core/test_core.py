import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core import errors
from isogloss.core.errors import ConfigError, did_you_mean, unknown_name
from isogloss.core.identity import derive
from isogloss.core.languages import (
    NAMES,
    canonical_language,
    check_language,
    is_built_in,
    language_name,
    spellings,
)

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]

# Errors


@given(st.sampled_from(["source-only", "bilingual", "target-only"]), st.integers(0, 20))
def test_a_name_with_one_wrong_letter_finds_the_right_one(name, place):
    wrong = name[: place % len(name)] + "#" + name[place % len(name) + 1 :]
    assert did_you_mean(wrong, ["source-only", "bilingual", "target-only"]) == f" Did you mean {name!r}?"


@given(st.text(max_size=2000), st.integers(0, 100_000))
def test_a_message_keeps_its_ends_and_is_never_endless(text, size):
    message = str(ConfigError(f"recipe.toml: found {'x' * size}{text}; do this."))
    assert message.startswith("recipe.toml: found ")
    assert message.endswith("do this.") or "x" * 290 in message
    assert len(message) <= 1403
    short_text = f"recipe.toml: {text[:40]}"
    assert str(ConfigError(short_text)) == " ".join(short_text.splitlines())


def test_a_quoted_value_of_70000_letters_is_cut_and_the_advice_stays():
    text = str(ConfigError(f"--set {'x' * 70_000}: expected key=value, as in --set grid.seeds=[0,1]."))
    assert text == f"--set {'x' * 300}… expected key=value, as in --set grid.seeds=[0,1]."


def test_a_name_like_no_other_suggests_nothing():
    assert did_you_mean("zzz", ["source-only"]) == ""
    assert did_you_mean("zzz", []) == ""


def test_an_unknown_name_says_where_what_and_what_is_known():
    error = unknown_name("recipe.toml", "method", "bilingal", iter(["source-only", "bilingual"]))
    assert str(error) == (
        "recipe.toml: no method 'bilingal'. Did you mean 'bilingual'? Known: bilingual, source-only."
    )


def test_every_error_is_in_the_drawn_tree_with_an_exit_code():
    for kind in ALL:
        assert kind.__name__ in (errors.__doc__ or "")
        assert kind.exit_code == (2 if issubclass(kind, errors.InputError) else 1)


# Seeds


@pytest.mark.slow
@given(st.integers(0, 2**63 - 1), st.lists(st.text(max_size=5) | st.integers(), max_size=3))
def test_a_seed_is_a_63_bit_number_that_follows_from_its_purpose(seed, purpose):
    assert derive(seed, *purpose) == derive(seed, *purpose)
    assert 0 <= derive(seed, *purpose) < 2**63


def test_purposes_and_seeds_do_not_collide():
    samples = [derive(seed, purpose, step) for seed in range(20) for purpose in "ab" for step in range(50)]
    assert len(set(samples)) == len(samples)
    assert derive(1, "ab") != derive(1, "a", "b")
    assert derive(1, 2) != derive(12)


def test_seeds_are_golden():
    """Results on other machines and in other versions hang on these."""
    assert derive(0, "head") == 7529542473631059979
    assert derive(1, "step", 7) == 8266204450203334332


# Languages


@given(st.from_regex(r"[a-z]{2,3}", fullmatch=True))
def test_every_code_of_two_or_three_letters_is_a_language(language):
    assert check_language(language, "here") == language
    assert language_name(language) == NAMES.get(language, language)


@given(
    st.text().filter(
        lambda text: "_" not in text and not (text.isascii() and text.isalpha() and text.islower())
    )
)
def test_anything_else_is_no_language_and_the_message_says_what_is(language):
    with pytest.raises(ConfigError, match=r"recipe: .*ISO 639-1"):
        check_language(language, "recipe")


@pytest.mark.parametrize("language", ["en\n", "EN", "e", "engl", "e1", ""])
def test_near_misses_are_no_languages(language):
    with pytest.raises(ConfigError):
        check_language(language, "here")


@pytest.mark.parametrize(
    ("tag", "language"),
    [
        *[("zh-Hant", "zh_Hant"), ("sr-Latn", "sr_Latn"), ("eng_Latn", "en"), ("pt-BR", "pt_BR")],
        *[("aaa", "aaa"), ("en-sw", "en-sw"), ("qaa-qab-qaa", "qaa-qab-qaa"), ("zh_Hant", "zh_Hant")],
        *[("tgl_Latn", "tl"), ("tl-PH", "tl_PH"), ("fil-PH", "fil_PH")],
        *[("yor_Latn", "yo"), ("kor_Hang", "ko"), ("zho_Hans", "zh"), ("sr-Cyrl", "sr"), ("arb_Arab", "ar")],
        *[
            ("yor", "yo"),
            ("swa", "sw"),
            ("swh", "sw"),
            ("ger", "de"),
            ("nob", "nb"),
            ("npi", "ne"),
            ("prs", "fa_AF"),
        ],
        *[("eng-yor", "en-yo"), ("arb+swh_Latn", "ar+sw"), ("zsm-zho-Hant", "ms-zh_Hant"), ("tgl", "tl")],
        *[
            ("yue", "yue"),
            ("ary", "ary"),
            ("quy", "quy"),
            ("fat", "fat"),
            ("twi", "tw"),
            ("no", "no"),
            ("kzj", "kzj"),
        ],
        *[("als_Latn", "sq"), ("als", "als")],  # Wikipedia's als is Alemannic.
        *[
            ("uz_Cyrl", "uz_Cyrl"),
            ("knc_Arab", "kr_Arab"),
            ("azb_Arab", "azb_Arab"),
            ("tlh_Latn", "tlh_Latn"),
        ],
        *[("zh_Hant_TW", "zh_Hant_TW"), ("pt_Latn_BR", "pt_BR"), ("eng_Latn-yor_Latn", "en-yo")],
        *[
            ("iw", "he"),
            ("in", "id"),
            ("ji", "yi"),
            ("jw", "jv"),
            ("mo", "ro"),
            ("sh", "sh"),
            ("en-iw", "en-he"),
        ],
        *[
            ("spa-latn-mx", "es_MX"),
            ("zh-hant", "zh_Hant"),
            ("zh_hant", "zh_Hant"),
            ("zh-hant-tw", "zh_Hant_TW"),
        ],
        *[("sr-latn-en", "sr_Latn-en"), ("en-sr-latn", "en-sr_Latn"), ("en+sr-latn", "en+sr_Latn")],
        *[("en-zh-Hant", "en-zh_Hant"), ("zho_Hant-eng_Latn", "zh_Hant-en"), ("ar+zh-Hant", "ar+zh_Hant")],
    ],
)
def test_tags_of_bcp_47_are_languages_and_leave_the_hyphen_to_pairs(tag, language):
    assert canonical_language(tag) == language
    assert canonical_language(language) == language
    assert all(check_language(part, "here") == part for part in language.replace("+", "-").split("-"))


@pytest.mark.parametrize("language", ["he", "id", "yi", "jv", "ro"])
def test_files_may_spell_a_language_by_its_retired_code(language):
    assert {"iw", "in", "ji", "jw", "mo"} & set(spellings(language))


@pytest.mark.parametrize("tag", ["zh-Hant", "sr-Latn", "pt-Latn-BR", "eng-Latn", "en-zh-Hant", "spa-Latn-MX"])
def test_case_of_scripts_and_regions_does_not_count(tag):
    assert canonical_language(tag.lower()) == canonical_language(tag)


@pytest.mark.parametrize("text", ["English", "", "EN", "zh-", "x_", "a-b-c-d", "Foo-Bar!"])
def test_what_is_no_tag_is_left_to_the_check(text):
    assert canonical_language(text) == text
    with pytest.raises(ConfigError):
        check_language(text, "here")


def test_a_script_is_part_of_the_name():
    assert language_name("zh_Hant") == "Chinese (Hant)"
    assert language_name("yue_Hant") == "yue_Hant"


def test_the_built_in_languages_are_nine_codes_of_the_private_range():
    letters = "abcdefghijklmnopqrstuvwxyz"
    result = [a + b + c for a in letters for b in letters for c in letters if is_built_in(a + b + c)]
    assert (result[0], result[-1], len(result)) == ("qaa", "qai", 9)
    assert not any(
        is_built_in(value) for value in ("qa", "qaj", "qtd", "qfn", "qhe", "qpm", "qte", "qti", "qtz")
    )
    assert not any(is_built_in(language) for language in NAMES)
