"""Generated splits, trees, running text and bitext of the built-in languages."""

import json
from collections import Counter
from itertools import islice
from pathlib import Path
from time import process_time

import pytest
from golden_languages import digests

from each import each
from isogloss.features.built_in_languages import (
    LANGUAGES,
    SIZES,
    BuiltInTranslator,
    examples,
    split_size,
    translations,
)
from isogloss.features.built_in_languages.lexicon import lexicon
from isogloss.features.built_in_languages.parsing import NAME, items_of, sentences_in
from trees import is_tree

PARALLEL = ["ud", "wikiann", "xnli", "pawsx", "squad"]


@pytest.mark.slow
def test_data_are_those_of_the_golden_fingerprints():
    golden = json.loads(Path(__file__).with_name("golden.json").read_text())
    assert digests() == golden


def test_seed_changes_the_examples():
    item, other_item = (list(islice(examples("text", "qab", "train", seed=seed), 20)) for seed in (0, 1))
    assert item != other_item


@pytest.mark.each_value
@pytest.mark.parametrize("corpus", [corpus for corpus in SIZES if not corpus.startswith("bitext")])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_splits_have_the_size_of_the_table_and_unique_ids(corpus, split):
    result = list(examples(corpus, "qac", split))
    assert len(result) == SIZES[corpus][split] == len({example.id for example in result})


def test_low_resource_language_has_less_to_train_on():
    assert len(list(examples("ud", "qag", "train"))) == 300 == split_size("ud", "qag", "train")
    assert len(list(translations("qaa", "qag", "train"))) == 2000


def test_large_bitext_begins_as_bitext_does():
    assert split_size("bitext-large", "qad", "train") == 100_000
    large_value = islice(translations("qaa", "qad", "train", corpus="bitext-large"), 200)
    assert list(large_value) == list(islice(translations("qaa", "qad", "train"), 200))


def test_generation_is_lazy():
    def cost(count):
        begin = process_time()
        list(islice(examples("text", "qaa", "train"), count))
        return process_time() - begin

    assert min(cost(10) for _ in range(3)) < cost(2000) / 5


@pytest.mark.parametrize("corpus", PARALLEL)
def test_train_dev_and_test_say_different_things(corpus):
    splits = [list(islice(examples(corpus, "qaa", split), 50)) for split in ("train", "dev", "test")]
    assert splits[0] != splits[1] != splits[2] != splits[0]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("corpus", ["xnli", "pawsx"])
def test_labels_of_dev_sets_are_the_same_in_every_language(corpus):
    per_language = [
        [(example.id, example.label) for example in examples(corpus, language, "dev")]
        for language in LANGUAGES
    ]
    assert all(labels == per_language[0] for labels in per_language)


def test_training_splits_and_running_text_are_not_parallel():
    first_item = [list(islice(examples("wikiann", language, "train"), 50)) for language in ("qaa", "qab")]
    assert [sentence.tags for sentence in first_item[0]] != [sentence.tags for sentence in first_item[1]]
    texts = [list(islice(examples("text", language, "dev"), 50)) for language in ("qaa", "qac")]
    assert [text.document for text in texts[0]] != [text.document for text in texts[1]]


def test_documents_have_four_to_ten_sentences():
    lines = list(examples("text", "qaa", "dev"))
    counts = Counter(line.document for line in lines)
    del counts[lines[-1].document]  # The last one ends where the split does.
    assert sorted(counts) == list(range(len(counts))) and set(counts.values()) == set(range(4, 11))


def list_concepts(text, words):
    """Concepts of the nouns and names of a text."""
    items = [item for sentence in sentences_in(text, words) for item in items_of(sentence, words)]
    return {item.readings[tag].concept for item in items for tag in ("NOUN", NAME) if tag in item.readings}


def test_persons_places_and_things_recur_in_a_document():
    words = lexicon(LANGUAGES["qaa"])
    documents = {}
    for line in examples("text", "qaa", "dev"):
        documents.setdefault(line.document, Counter()).update(list_concepts(line.text, words))
    again = sum(count for counts in documents.values() for count in counts.values() if count > 1)
    total = sum(counts.total() for counts in documents.values())
    assert again / total > 0.4  # 0.1 where the same sentences are shuffled between documents


RELATIONS = {
    "root", "nsubj", "obj", "obl", "nmod", "case", "det", "nummod", "amod", "acl:relcl", "cc", "conj",
    "advcl", "mark", "advmod", "aux", "punct", "flat",
}  # fmt: skip
LEAVES = {"det", "case", "punct", "cc", "mark", "aux", "nummod", "amod", "flat"}


def dev(corpus, language):
    return list(examples(corpus, language, "dev"))


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_tree_has_one_root_and_no_cycle(language):
    for sentence in each(dev("ud", language)):
        assert is_tree(sentence.heads)
        assert [relation == "root" for relation in sentence.relations] == [
            head == 0 for head in sentence.heads
        ]


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_function_words_are_leaves_and_relations_universal(language):
    for sentence in each(dev("ud", language)):
        assert set(sentence.relations) <= RELATIONS
        for place, relation in enumerate(sentence.relations, start=1):
            assert relation not in LEAVES or place not in sentence.heads


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_lines_are_conllu_that_agrees_with_the_fields_and_spells_the_text(language):
    for sentence in each(dev("ud", language)):
        rows = [line.split("\t") for line in sentence.lines if not line.startswith("#")]
        assert sentence.lines[0] == f"# sent_id = {sentence.id}"
        assert all(len(row) == 10 and all(row) for row in rows)
        assert tuple(row[0] for row in rows) == tuple(str(n) for n in range(1, len(rows) + 1))
        columns = list(zip(*rows, strict=True))
        assert (columns[1], columns[3], columns[7]) == (sentence.words, sentence.tags, sentence.relations)
        assert tuple(int(value) for value in columns[6]) == sentence.heads
        text = "".join(row[1] + ("" if row[9] == "SpaceAfter=No" else " ") for row in rows).rstrip()
        assert sentence.lines[1] == f"# text = {text}"
        for row in rows:
            names = [feature.split("=")[0] for feature in row[5].split("|") if row[5] != "_"]
            assert names == sorted(set(names))


@pytest.mark.nightly
@pytest.mark.slow
def test_sentences_are_three_to_25_words_about_nine_on_average():
    for language in LANGUAGES:
        lengths = [len(sentence.words) for sentence in dev("ud", language)]
        assert min(lengths) >= 3 and max(lengths) <= 25
        assert 8 <= sum(lengths) / len(lengths) <= 12


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_entity_tags_are_valid_bio_of_all_kinds(language):
    tags = set()
    for sentence in dev("wikiann", language):
        assert len(sentence.tags) == len(sentence.words)
        text_before = "O"
        for tag in sentence.tags:
            assert not tag.startswith("I-") or text_before[2:] == tag[2:]
            text_before = tag
        tags.update(sentence.tags)
    assert tags == {"O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", LANGUAGES)
def test_dev_sets_say_the_same_in_every_language(language):
    translator = BuiltInTranslator("qaa", language)
    for corpus in ("ud", "wikiann"):
        for ours, theirs in each(zip(dev(corpus, "qaa"), dev(corpus, language), strict=True)):
            assert ours.id == theirs.id
            assert translator.translate_words(ours.words)[0] == theirs.words


CONTENT_TAGS = {"NOUN", "VERB", "ADJ", "ADV", "NUM", "PROPN", "PRON"}


@pytest.mark.sample(3)
@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "qaa"])
def test_links_are_in_range_and_cover_every_content_word(language):
    tables = [lexicon(LANGUAGES["qaa"]).readings, lexicon(LANGUAGES[language]).readings]
    for pair in each(translations("qaa", language, "dev")):
        for side, text in enumerate((pair.first, pair.second)):
            words = text.split()
            links = {link[side] for link in pair.links}
            assert links <= set(range(len(words)))
            for place, word in enumerate(words):
                assert place in links or not CONTENT_TAGS & set(tables[side].get(word, ()))


@pytest.mark.parametrize("language", ["qad", "qah", "qai"])
def test_links_join_words_that_mean_the_same(language):
    ours = lexicon(LANGUAGES["qaa"]).readings
    theirs = lexicon(LANGUAGES[language]).readings
    linked_words = [
        (ours.get(pair.first.split()[left], {}), theirs.get(pair.second.split()[right], {}))
        for pair in translations("qaa", language, "dev")
        for left, right in pair.links
    ]
    unambiguous = [
        (reading[tag].concept, other_linked_word[tag].concept)
        for reading, other_linked_word in linked_words
        for tag in {"NOUN", "ADJ", "NUM"} & set(reading) & set(other_linked_word)
        if len(reading) == len(other_linked_word) == 1
    ]
    assert all(concept == other_item for concept, other_item in each(unambiguous))


def test_links_turn_round_with_the_languages():
    folder = list(islice(translations("qab", "qai", "train"), 100))
    back = list(islice(translations("qai", "qab", "train"), 100))
    for left, right in each(zip(folder, back, strict=True)):
        assert (left.first, left.second) == (right.second, right.first)
        assert {link[::-1] for link in left.links} == set(right.links)


def test_bitext_of_a_language_with_itself_is_the_identity():
    for pair in each(translations("qad", "qad", "dev")):
        assert pair.first == pair.second
        assert {left for left, right in pair.links if left == right} == set(range(len(pair.first.split())))


def test_running_text_attaches_punctuation_and_han_has_no_spaces():
    assert not any(" ." in line.text or " ," in line.text for line in each(examples("text", "qaa", "dev")))
    assert not any(" " in line.text for line in each(examples("text", "qai", "dev")))
