"""Corpus, split and treebank determine parallel examples, not equal ids. And mixtures of two languages."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.examples import Choice, Question, SentencePair
from isogloss.data.projection.parallel_examples import (
    check_parallel,
    match_by_id,
    mixed_pairs,
    mixed_questions,
)
from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import BuiltInLanguages
from says import says


@pytest.mark.parametrize(
    ("corpus", "split", "languages", "treebanks"),
    [
        ("xnli", "dev", "en de", {}),
        ("pawsx", "test", "en de ja", {}),
        ("mlqa:en", "test", "en de", {}),
        ("squad", "test", "en ru", {}),
        ("ud", "test", "en de", {"en": "PUD", "de": "ud-pud/UD_German-PUD"}),
        ("wikiann", "dev", "qaa qab", {}),
        ("ud", "test", "qaa qad", {}),
    ],
)
def test_parallel_test_sets_are_known(corpus, split, languages, treebanks):
    assert check_parallel(corpus, split, languages.split(), treebanks) is None


@pytest.mark.parametrize(
    ("corpus", "split", "languages", "treebanks"),
    [
        ("xnli", "train", "en de", {}),
        ("squad", "dev", "en de", {}),
        ("wikiann", "test", "en de", {}),
        ("xnli", "train", "qaa qab", {}),
        ("ud", "test", "en de", {}),
        ("ud", "test", "ja de", {"ja": "GSD", "de": "GSD"}),
        ("ud", "test", "en de", {"en": "PUD"}),
    ],
)
def test_others_are_refused_with_what_is_there(corpus, split, languages, treebanks):
    with pytest.raises(ConfigError, match=rf"'{corpus}': the {split} split is not .*parallel in .* xnli"):
        check_parallel(corpus, split, languages.split(), treebanks)


def test_built_in_and_other_languages_have_nothing_in_common():
    with pytest.raises(ConfigError, match=r"^languages en qaa: "):
        check_parallel("xnli", "test", ["en", "qaa"], {})


@pytest.mark.parametrize("corpus", ["ud", "wikiann", "xnli", "pawsx", "squad"])
def test_built_in_test_sets_have_the_same_ids_in_every_language(corpus):
    first_examples, second = (
        Sources().examples(corpus, language, "dev", examples=20) for language in ("qaa", "qae")
    )
    assert [first_example.id for first_example in first_examples] == [example.id for example in second]


NAMES = "sw", "en"
LABELS = ("entailment", "neutral", "contradiction")


def pair(index, language, label=None):
    label = LABELS[index % 3] if label is None else label
    return SentencePair(
        id=str(index), first=f"{language} p{index}", second=f"{language} h{index}", label=label
    )


def question(number, language):
    passage = f"{language} passage {number}"
    return Question(
        id=str(number),
        passage=passage,
        question=f"{language} question {number}",
        answers=((passage.index(str(number)), str(number)),),
        language=language,
    )


ENGLISH, SWAHILI = ([pair(index, language) for index in range(200)] for language in ("en", "sw"))


@pytest.mark.parametrize(
    ("side", "back", "stays"), [("first", "first", "second"), ("second", "second", "first")]
)
def test_chosen_side_is_back_in_the_source_language_and_nothing_else_changes(side, back, stays):
    for mixed_pair, english, swahili in zip(
        mixed_pairs(SWAHILI, ENGLISH, side=side), ENGLISH, SWAHILI, strict=True
    ):
        assert getattr(mixed_pair, back) == getattr(english, back)
        assert getattr(mixed_pair, stays) == getattr(swahili, stays)
        assert (mixed_pair.id, mixed_pair.label) == (swahili.id, swahili.label)


@given(st.permutations(ENGLISH[:20]))
def test_random_side_depends_on_the_id_alone(order):
    assert mixed_pairs(SWAHILI[:20], order) == mixed_pairs(SWAHILI, ENGLISH)[:20]


def test_each_pair_has_one_text_of_each_language_about_half_of_them_the_first():
    mixed_result = mixed_pairs(SWAHILI, ENGLISH)
    for item in each(mixed_result):
        assert sorted((item.first[:2], item.second[:2])) == ["en", "sw"]
    assert 70 < sum(first_item.first.startswith("en") for first_item in mixed_result) < 130


def test_target_languages_share_the_side():
    german = [pair(index, "de") for index in range(200)]
    swahili_mixed_pairs, german_mixed_pairs = (mixed_pairs(target, ENGLISH) for target in (SWAHILI, german))
    assert [swahili_mixed_pair.first[:2] == "en" for swahili_mixed_pair in swahili_mixed_pairs] == [
        german_mixed_pair.first[:2] == "en" for german_mixed_pair in german_mixed_pairs
    ]


def test_question_or_passage_is_back_in_the_source_language_with_the_passage_s_answers():
    english, swahili = ([question(index, language) for index in (1, 2)] for language in ("en", "sw"))
    (item, _), (other_mixed_questions, _) = (
        mixed_questions(swahili, english, part=part) for part in ("question", "passage")
    )
    assert (item.question, item.passage, item.language) == ("en question 1", "sw passage 1", "sw")
    assert (
        other_mixed_questions.question,
        other_mixed_questions.passage,
        other_mixed_questions.language,
    ) == ("sw question 1", "en passage 1", "en")
    for mixed_question in (item, other_mixed_questions):
        ((start, text),) = mixed_question.answers
        assert mixed_question.passage[start : start + len(text)] == text


def test_what_does_not_match_is_named():
    with pytest.raises(DataError, match=r"sw and en are not parallel: 2 of sw are not in en \(ids 0, 1\)"):
        match_by_id(SWAHILI, ENGLISH[2:], names=NAMES)
    with says(DataError, "199"):
        match_by_id(SWAHILI[:-1], ENGLISH, names=NAMES)


def test_partial_leaves_out_what_does_not_match():
    both_parts = list(zip(SWAHILI[5:9], ENGLISH[5:9], strict=True))
    assert match_by_id(SWAHILI, ENGLISH[5:9], names=NAMES, partial=True) == both_parts
    with says(DataError, "sw and en:"):
        match_by_id(SWAHILI[:2], ENGLISH[5:9], names=NAMES, partial=True)


def test_partial_leaves_out_a_few_labels_that_differ_but_not_many():
    sample = [replace(example, label="entailment") if example.id == "7" else example for example in ENGLISH]
    with says(DataError, "200"):
        mixed_pairs(SWAHILI, sample)
    assert [example.id for example, _ in match_by_id(SWAHILI, sample, names=NAMES, partial=True)] == [
        str(index) for index in range(200) if index != 7
    ]
    moved_sentence_pairs = [pair(index, "en", LABELS[(index + 1) % 3]) for index in range(200)]
    with says(DataError, "200"):
        match_by_id(SWAHILI, moved_sentence_pairs, names=NAMES, partial=True)


def test_pairs_without_labels_match_any():
    assert len(match_by_id([pair(1, "sw", "")], [pair(1, "en")], names=("sw", "en"))) == 1


def test_choices_match_where_label_and_number_of_options_are_the_same():
    item = Choice(id="1", context="a", options=("b", "c"), label=0)
    for other_item in (item, replace(item, label=None), replace(item, context="d", options=("e", "f"))):
        assert match_by_id([item], [other_item], names=("en", "sw")) == [(item, other_item)]
    for other_item in (replace(item, label=1), replace(item, options=("b", "c", "d"))):
        with pytest.raises(DataError, match=r"1 of 1 examples .* label"):
            match_by_id([item], [other_item], names=("en", "sw"))


def test_id_that_is_there_twice_is_an_error():
    with says(DataError, "en:", "'3'"):
        match_by_id(SWAHILI, [*ENGLISH, pair(3, "en")], names=("sw", "en"))


@pytest.mark.parametrize("corpus", ["xnli", "pawsx"])
def test_built_in_test_sets_can_be_mixed(corpus):
    target, source = (
        list(CORPORA[corpus].read(BuiltInLanguages(), language, "dev")) for language in ("qad", "qaa")
    )
    mixed_result = mixed_pairs(target, source)
    assert all(
        (item.first == two.first) != (item.second == two.second)
        for item, two in zip(mixed_result, source, strict=True)
    )
