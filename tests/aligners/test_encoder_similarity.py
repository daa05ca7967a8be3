from dataclasses import replace

import pytest

from each import each
from isogloss.aligners.encoder import EncoderSimilarity
from isogloss.aligners.setting import AlignSetting
from isogloss.core.errors import ConfigError
from isogloss.data.examples import Translation
from made_up import TEXT

WORDS = TEXT.split()


def pairs(*texts):
    return [Translation(id=f"{n}", first=first, second=second) for n, (first, second) in enumerate(texts)]


@pytest.fixture
def align(bert_folder):
    def align(given, **fields):
        setting = AlignSetting(pairs=given, encoder=str(bert_folder), precision="float32")
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
    for pair, aligned in zip(SAME, align(SAME, matching=matching, unit=unit), strict=True):
        assert aligned.links == tuple((n, n) for n in range(len(pair.first.split())))
        assert aligned.scores == pytest.approx([1.0] * len(aligned.links), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("matching", ["argmax", "itermax", "match"])
def test_other_pairs_in_the_batch_change_nothing(align, matching):
    together = align(MIXED, matching=matching)
    for pair, aligned in zip(MIXED, together, strict=True):
        (alone,) = align([pair], matching=matching)
        assert alone.links == aligned.links
        assert alone.scores == pytest.approx(aligned.scores, abs=1e-5)


def test_links_count_given_words_else_those_of_the_tokenizer(align):
    (pair,) = pairs(("cat\t\u3000 mat.", "cat \xa0 mat."))
    given = replace(pair, words=(("cat", "mat."), ("cat", "mat.")))
    assert [len(align([one], unit="word")[0].links) for one in (pair, given)] == [3, 2]


def test_exchanged_languages_give_exchanged_links(align):
    turned = [Translation(id=pair.id, first=pair.second, second=pair.first) for pair in MIXED]
    for one, other in each(zip(align(MIXED), align(turned), strict=True)):
        assert sorted((j, i) for i, j in other.links) == list(one.links)


def test_a_side_without_words_has_no_links(align):
    assert [one.links for one in align(pairs(("", "a dog"), ("a dog", " "), ("", "")))] == [(), (), ()]


def test_links_are_sorted_each_once_and_within_the_sentences(align):
    for pair, aligned in zip(MIXED, align(MIXED, matching="itermax", rounds=4), strict=True):
        assert list(aligned.links) == sorted(set(aligned.links))
        assert len(aligned.scores) == len(aligned.links)
        assert all(i < len(pair.first.split()) and j < len(pair.second.split()) for i, j in aligned.links)


def test_every_family_aligns(encoder_folder):
    made = EncoderSimilarity().align(AlignSetting(pairs=SAME, encoder=str(encoder_folder)))
    assert [len(one.links) for one in made] == [7, 13, 1, 3]


def test_no_encoder_and_no_such_layer_are_said(align):
    with pytest.raises(ConfigError, match=r"aligner encoder: .*encoder"):
        EncoderSimilarity().align(AlignSetting(pairs=SAME))
    with pytest.raises(ConfigError, match=r"no layer 9: .*encoder.*3"):
        align(SAME, layer=9)
