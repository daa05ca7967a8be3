from dataclasses import replace

import pytest

from each import each
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError
from isogloss.data.examples import Translation
from isogloss.features.alignment.encoder_aligner import EncoderSimilarity
from made_up import TEXT

WORDS = TEXT.split()


def pairs(*texts):
    return [
        Translation(id=f"{n}", first=first_text, second=second)
        for n, (first_text, second) in enumerate(texts)
    ]


@pytest.fixture
def align(bert_folder):
    def align(align_setting, **fields):
        setting = AlignSetting(pairs=align_setting, encoder=str(bert_folder), precision="float32")
        return EncoderSimilarity(**fields).align(setting)

    return align


SAME = pairs(*((text, text) for text in (" ".join(WORDS[:7]), " ".join(WORDS[7:20]), "cat", "on the mat")))
MIXED = [
    *SAME,
    *pairs(("the cat sat on", "a dog ran"), ("", "a dog"), ("unbelievable things happened", "slowly there")),
]


@pytest.mark.slow
@pytest.mark.parametrize("matching", ["argmax", "itermax", "match"])
@pytest.mark.parametrize("unit", ["subword", "word"])
def test_a_sentence_and_itself_are_linked_word_by_word(align, matching, unit):
    for pair, aligned_link in zip(SAME, align(SAME, matching=matching, unit=unit), strict=True):
        assert aligned_link.links == tuple((n, n) for n in range(len(pair.first.split())))
        assert aligned_link.scores == pytest.approx([1.0] * len(aligned_link.links), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("matching", ["argmax", "itermax", "match"])
def test_other_pairs_in_the_batch_change_nothing(align, matching):
    joint_links = align(MIXED, matching=matching)
    for pair, aligned_joint_link in zip(MIXED, joint_links, strict=True):
        (single_link,) = align([pair], matching=matching)
        assert single_link.links == aligned_joint_link.links
        assert single_link.scores == pytest.approx(aligned_joint_link.scores, abs=1e-5)


def test_links_count_given_words_else_those_of_the_tokenizer(align):
    (pair,) = pairs(("cat\t\u3000 mat.", "cat \xa0 mat."))
    inputs = replace(pair, words=(("cat", "mat."), ("cat", "mat.")))
    assert [len(align([item], unit="word")[0].links) for item in (pair, inputs)] == [3, 2]


def test_exchanged_languages_give_exchanged_links(align):
    turned_translations = [Translation(id=pair.id, first=pair.second, second=pair.first) for pair in MIXED]
    for left, right in each(zip(align(MIXED), align(turned_translations), strict=True)):
        assert sorted((j, i) for i, j in right.links) == list(left.links)


def test_a_side_without_words_has_no_links(align):
    assert [link.links for link in align(pairs(("", "a dog"), ("a dog", " "), ("", "")))] == [(), (), ()]


def test_links_are_sorted_each_once_and_within_the_sentences(align):
    for pair, aligned_link in zip(MIXED, align(MIXED, matching="itermax", rounds=4), strict=True):
        assert list(aligned_link.links) == sorted(set(aligned_link.links))
        assert len(aligned_link.scores) == len(aligned_link.links)
        assert all(
            i < len(pair.first.split()) and j < len(pair.second.split()) for i, j in aligned_link.links
        )


def test_every_family_aligns(encoder_folder):
    links = EncoderSimilarity().align(AlignSetting(pairs=SAME, encoder=str(encoder_folder)))
    assert [len(link.links) for link in links] == [7, 13, 1, 3]


def test_no_encoder_and_no_such_layer_are_said(align):
    with pytest.raises(ConfigError, match=r"aligner encoder: .*encoder"):
        EncoderSimilarity().align(AlignSetting(pairs=SAME))
    with pytest.raises(ConfigError, match=r"no layer 9: .*encoder.*3"):
        align(SAME, layer=9)
