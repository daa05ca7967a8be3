"""The oracles are new implementations of the papers and official scripts of SQuAD v1.1 and MLQA."""

import unicodedata
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.rows.models import total
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.metrics.texts import (
    GoldAnswers,
    answer_f1_contributions,
    exact_match_contributions,
    normalize_answer,
)

ASCII_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
ARTICLES = {
    "": "a an the",
    "en": "a an the",
    "es": "un una unos unas el la los las",
    "de": "ein eine einen einem eines einer der die das den dem des",
    "vi": "của là cái chiếc những",
    "hi": "",
    "zh": "",
    "ar": "",
}
LETTERS = (
    "aAnNtThHeEuUlLsSbBxXäßéñİıſK019_ \t\n\u00a0\u3000"
    "ABab.,-!?\"'()[]$+<=>^`|~“”«»…¿¡—،؟؛।॥。，、《》（）·"
    "الالبيتأإةمنहिंदीकख़ग।中国人民一龥𠀀ไทยก่ป็ế́ḉ😀👍🏽\u200b\u0301"
)
WORDS = [
    "the", "The", "a", "an", "der", "die", "das", "los", "un", "của", "là", "ال", "البيت", "中国", "1887",
]  # fmt: skip
texts = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text(st.sampled_from(LETTERS), max_size=6), st.text(max_size=3)),
    max_size=6,
).flatmap(lambda parts: st.sampled_from([" ".join(parts), "".join(parts)]))


def is_word_character(letter):
    """Return whether regular expressions count it as a word character, which an article must not touch."""
    return letter == "_" or letter.isalnum()


def words_of(text, language):
    text = "".join(
        letter
        for letter in text.lower()
        if letter not in ASCII_PUNCTUATION and not (language and unicodedata.category(letter)[0] == "P")
    )
    articles = ARTICLES[language].split()
    parts = ["".join(run) for _, run in groupby(text, key=is_word_character)]
    text = "".join(" " if part in articles else part for part in parts)
    if language == "ar":
        text = " ".join(text.split("ال"))
    if language == "zh":
        text = "".join(f" {item} " if 0x4E00 <= ord(item) <= 0x9FA5 else item for item in text)
    return text.split()


def exact_match(gold, predicted_texts):
    return total(exact_match_contributions(gold, predicted_texts))


def answer_f1(gold, predicted_texts):
    return total(answer_f1_contributions(gold, predicted_texts))


def f1(left_parts, right):
    left = list(right)
    shared = 0
    for word in left_parts:
        if word in left:
            left.remove(word)
            shared += 1
    if not shared:
        return 0.0
    precision = shared / len(right)
    recall = shared / len(left_parts)
    return 2 * precision * recall / (precision + recall)


@given(texts, st.sampled_from(sorted(ARTICLES)))
def test_answers_are_normalised_as_the_scripts_define(text, language):
    assert normalize_answer(text, language) == words_of(text, language)


@given(
    st.lists(st.tuples(st.lists(texts, min_size=1, max_size=3), texts), min_size=1, max_size=5),
    st.sampled_from(sorted(ARTICLES)),
)
def test_scores_are_those_of_the_scripts(samples, language):
    gold = [GoldAnswers(tuple(answers), language) for answers, _ in samples]
    predicted_answers = [answer for _, answer in samples]
    exact = [
        max(words_of(item, language) == words_of(answer, language) for item in answers)
        for answers, answer in samples
    ]
    best_f1_scores = [
        max(f1(words_of(item, language), words_of(answer, language)) for item in answers)
        for answers, answer in samples
    ]
    assert exact_match(gold, predicted_answers) == pytest.approx(sum(exact) / len(samples))
    assert answer_f1(gold, predicted_answers) == pytest.approx(sum(best_f1_scores) / len(samples))


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("The U.S. of A.", "", ["us", "of"]),
        ("„Die Mauer“ – am 9. Nov.", "", ["„die", "mauer“", "–", "am", "9", "nov"]),
        ("„Die Mauer“ – am 9. Nov.", "de", ["mauer", "am", "9", "nov"]),
        ("¿La casa?", "es", ["casa"]),
        ("مدينة البيت،", "ar", ["مدينة", "بيت"]),
        ("1946 年《中国》ABC", "zh", ["1946", "年", "中", "国", "abc"]),
        ("1946 年《中国》ABC", "", ["1946", "年《中国》abc"]),
        ("हिन्दी।", "hi", ["हिन्दी"]),
        ("những con mèo", "vi", ["con", "mèo"]),
        ("", "", []),
    ],
)
def test_known_answers_are_normalised_as_known(text, language, expected):
    assert normalize_answer(text, language) == expected


def test_nothing_equals_nothing_but_has_no_f1():
    # Both scripts: two answers that normalise to nothing are equal, yet share no word.
    gold = [GoldAnswers(("the",))]
    assert exact_match(gold, ["a"]) == 1.0
    assert answer_f1(gold, ["a"]) == 0.0
    assert exact_match([], []) == answer_f1([], []) == 0.0


def test_the_best_gold_answer_counts_for_each_measure():
    gold = [GoldAnswers(("in 1887", "1887")), GoldAnswers(("x y", "z"))]
    assert exact_match(gold, ["1887", "y"]) == 0.5
    assert answer_f1(gold, ["1887", "y"]) == pytest.approx((1 + 2 / 3) / 2)


def test_what_cannot_be_scored_is_refused():
    with pytest.raises(ValueError, match=r"1 questions.*0"):
        answer_f1([GoldAnswers(("a",))], [])
    with pytest.raises(ValueError, match=r"question.*gold"):
        exact_match([GoldAnswers(())], ["a"])
    with pytest.raises(ValueError, match=r"MLQA's.*de, en,.*'fr'"):
        answer_f1([GoldAnswers(("a",), "fr")], ["a"])


@pytest.mark.nightly
@pytest.mark.data
@pytest.mark.slow
def test_real_answers_are_scored_as_the_scripts_define(real_data):
    languages = {
        "squad": ("test", "ar de el en es hi ro ru th tr vi zh"),
        "mlqa": ("dev", "ar de en es hi vi zh"),
    }
    for corpus, (split, codes) in languages.items():
        for language in each(codes.split()):
            questions = list(CORPORA[corpus].read(real_data, language, split))
            gold = [
                GoldAnswers(tuple(text for _, text in question.answers), question.language)
                for question in questions
            ]
            predicted_passages = [
                question.passage[max(0, start - index % 9) : start + len(text) + index % 5]
                for index, question in enumerate(questions)
                for start, text in question.answers[:1]
            ]
            compared_parts = [
                (words_of(text, row.language), words_of(answer, row.language))
                for row, answer in zip(gold, predicted_passages, strict=True)
                for text in row.texts
            ]
            assert len(compared_parts) == len(questions)  # both corpora have one answer to a question
            assert exact_match(gold, predicted_passages) == pytest.approx(
                sum(left == right for left, right in compared_parts) / len(compared_parts)
            )
            assert answer_f1(gold, predicted_passages) == pytest.approx(
                sum(f1(left, right) for left, right in compared_parts) / len(compared_parts)
            )
