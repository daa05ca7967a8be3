from itertools import islice, permutations

import pytest

from isogloss.core.errors import ConfigError
from isogloss.data.languages import LANGUAGES, Translator, count_lost, examples, translated

PAIRS = [("qaa", other) for other in LANGUAGES if other != "qaa"] + [("qae", "qah"), ("qad", "qai")]


def first(found, count=60):
    return list(islice(found, count))


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad", "ud", "wikiann"])
def test_dev_in_perfect_translation_is_the_other_language_s_dev(corpus, one, other):
    assert first(translated(corpus, f"{one}-{other}", "dev")) == first(examples(corpus, other, "dev"))


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), list(permutations(LANGUAGES, 2)))
def test_every_answer_is_found_again_in_every_perfect_translation(one, other):
    assert list(translated("squad", f"{one}-{other}", "test")) == list(examples("squad", other, "test"))


@pytest.mark.parametrize("corpus", ["xnli", "pawsx", "squad", "ud", "wikiann"])
def test_perfect_translation_there_and_back_is_what_it_was(corpus):
    assert first(translated(corpus, "qaa-qad-qaa", "train")) == first(examples(corpus, "qaa", "train"))


def test_noisy_translations_keep_ids_and_labels():
    source = first(examples("xnli", "qaa", "train"))
    noisy = first(translated("xnli", "qaa-qab", "train", noise=0.2))
    assert [(one.id, one.label) for one in noisy] == [(one.id, one.label) for one in source]
    assert noisy != first(translated("xnli", "qaa-qab", "train"))
    assert noisy == first(translated("xnli", "qaa-qab", "train", noise=0.2))


def test_answers_of_noisy_translations_stand_in_the_passage_and_lost_ones_are_counted():
    there = {one.id: one for one in examples("squad", "qaa", "dev")}
    found = list(translated("squad", "qaa-qab", "dev", noise=0.2))
    assert len(there) - len(found) == count_lost("qaa-qab", "dev", noise=0.2) > 0
    assert count_lost("qaa-qab", "dev") == 0
    for one in found:
        assert one.id in there
        for start, text in one.answers:
            assert text
            assert one.passage[start : start + len(text)] == text


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("languages", ["qaa-qab", "qaa-qai", "qaa-qab-qaa"])
def test_noisy_translations_of_sentences_are_trees_with_a_tag_for_each_word(languages, noise):
    source = first(examples("ud", "qaa", "train"), 80)
    found = first(translated("ud", languages, "train", noise=noise), 80)
    assert [one.id for one in found] == [one.id for one in source]
    for one in found:
        assert len(one.words) == len(one.tags) == len(one.heads) == len(one.relations)
        assert [head == 0 for head in one.heads] == [name == "root" for name in one.relations]
        assert one.heads.count(0) == 1
        for word in range(1, len(one.words) + 1):
            above = [word]
            while above[-1]:
                above.append(one.heads[above[-1] - 1])
                assert len(above) <= len(one.words) + 1


def test_noisy_translations_of_entities_keep_their_kinds():
    source = first(examples("wikiann", "qaa", "train"), 80)
    found = first(translated("wikiann", "qaa-qab", "train", noise=0.1), 80)
    assert [one.id for one in found] == [one.id for one in source]
    for one, other in zip(source, found, strict=True):
        assert len(other.words) == len(other.tags)
        assert {tag[2:] for tag in other.tags} <= {tag[2:] for tag in one.tags}


def test_linked_translation_is_the_translation_and_its_places_are_words():
    translator = Translator("qaa", "qai", noise=0.1)
    for question in first(examples("squad", "qaa", "dev"), 20):
        text, links = translator.translate_linked(question.passage)
        assert text == translator.translate(question.passage)
        words = set(question.passage.replace(",", " ,").replace(".", " .").split())
        assert links
        for (start, stop), (begin, end) in links:
            assert question.passage[start:stop] in words
            assert 0 <= begin < end <= len(text)


@pytest.mark.parametrize(
    ("corpus", "languages", "said"),
    [
        ("text", "qaa-qab", "no corpus 'text'.*Known: pawsx, squad, ud, wikiann, xnli"),
        ("xnli", "qaa", "'qaa' is no pair; expected two as in qaa-qab"),
        ("xnli", "qaa-qtz", "qtz"),
    ],
)
def test_what_cannot_be_translated_is_refused(corpus, languages, said):
    with pytest.raises(ConfigError, match=said):
        list(translated(corpus, languages, "dev"))
