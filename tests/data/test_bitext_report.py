from hypothesis import given
from hypothesis import strategies as st

from isogloss.data.bitext_report import check_bitext, own_share, scripts_in
from isogloss.data.examples import Translation


def pairs(*texts):
    return [Translation(id=f"{n}", first=first, second=second) for n, (first, second) in enumerate(texts)]


GOOD = pairs(*((f"one two three {n}", f"один два три {n}") for n in range(40)))


def test_report_counts_what_is_there():
    found = check_bitext(
        [*GOOD, *pairs(("one two three 0", "один два три 0"), ("a b c", "a b c"))], "en", "ru"
    )
    assert (found.pairs, found.duplicates, found.identical, found.length_outliers) == (42, 1, 1, 0)
    assert (found.first.mean_words, found.first.longest_words, found.first.empty) == ((41 * 4 + 3) / 42, 4, 0)
    assert found.second.other_script == 1


def test_good_bitext_has_no_warning():
    assert check_bitext(GOOD, "en", "ru").warnings == ()
    assert check_bitext(GOOD).warnings == ()


def test_exchanged_languages_are_noticed_by_their_scripts():
    found = check_bitext(GOOD, "ru", "en")
    assert [side.own_script for side in (found.first, found.second)] == [0.0, 0.0]
    assert "40 of 40 pairs (100.0%) are not in the script of Russian" in found.warnings[0]
    assert "English" in found.warnings[1]


def test_each_kind_of_suspicion_is_said():
    found = check_bitext(
        pairs(
            ("a b c d e f g h i j k l", "x"),
            ("a b", "a b"),
            ("a b", "a b"),
            ("", "x y"),
            *[("a b", "u v")] * 3,
        )
    )
    said = " ".join(found.warnings)
    for words in (
        "differ much in length",
        "were there before",
        "same text on both sides",
        "no words on one side",
    ):
        assert words in said
    assert found.first.empty == 1


def test_no_pair_is_said():
    assert check_bitext([]).warnings == ("There is no pair.",)


def test_a_language_that_is_longer_throughout_has_no_outliers():
    made = pairs(*(("a b c", "u v w x y z u v w x y z") for _ in range(9)))
    assert check_bitext(made).length_outliers == 0
    assert check_bitext([*made, *pairs(("a b c d e f", "u v"))]).length_outliers == 1


def test_scripts_are_those_of_letters_alone():
    assert scripts_in("Größe 12! вот") == {"LATIN": 5, "CYRILLIC": 3}
    assert own_share(scripts_in("東京タワーへ"), "ja") == 1.0
    assert own_share(scripts_in("12 !?"), "en") is None
    assert own_share(scripts_in("abc"), "xxx") is None


@given(st.text())
def test_every_letter_is_counted_once(text):
    assert scripts_in(text).total() == sum(map(str.isalpha, text))
    assert sum(map(str.isalpha, text)) == 0 or 0 <= own_share(scripts_in(text), "en") <= 1
