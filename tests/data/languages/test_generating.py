import json
from collections import Counter
from itertools import islice
from pathlib import Path
from time import process_time

import pytest
from golden_languages import digests

from isogloss.data.languages import LANGUAGES, SIZES, examples, split_size, translations
from isogloss.data.languages.lexicon import lexicon
from isogloss.data.languages.parsing import NAME, items_of, sentences_in

PARALLEL = ["ud", "wikiann", "xnli", "pawsx", "squad"]


def test_data_are_those_of_the_golden_fingerprints():
    golden = json.loads(Path(__file__).with_name("golden.json").read_text())
    assert digests() == golden


def test_seed_changes_the_examples():
    one, other = (list(islice(examples("text", "qab", "train", seed=seed), 20)) for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("corpus", [corpus for corpus in SIZES if not corpus.startswith("bitext")])
@pytest.mark.parametrize("split", ["dev", "test"])
def test_splits_have_the_size_of_the_table_and_unique_ids(corpus, split):
    found = list(examples(corpus, "qac", split))
    assert len(found) == SIZES[corpus][split] == len({example.id for example in found})


def test_low_resource_language_has_less_to_train_on():
    assert len(list(examples("ud", "qag", "train"))) == 300 == split_size("ud", "qag", "train")
    assert len(list(translations("qaa", "qag", "train"))) == 2000


def test_large_bitext_begins_as_bitext_does():
    assert split_size("bitext-large", "qad", "train") == 100_000
    large = islice(translations("qaa", "qad", "train", corpus="bitext-large"), 200)
    assert list(large) == list(islice(translations("qaa", "qad", "train"), 200))


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


@pytest.mark.parametrize("corpus", ["xnli", "pawsx"])
def test_labels_of_dev_sets_are_the_same_in_every_language(corpus):
    per_language = [[(one.id, one.label) for one in examples(corpus, code, "dev")] for code in LANGUAGES]
    assert all(labels == per_language[0] for labels in per_language)


def test_training_splits_and_running_text_are_not_parallel():
    first = [list(islice(examples("wikiann", code, "train"), 50)) for code in ("qaa", "qab")]
    assert [one.tags for one in first[0]] != [one.tags for one in first[1]]
    texts = [list(islice(examples("text", code, "dev"), 50)) for code in ("qaa", "qac")]
    assert [one.document for one in texts[0]] != [one.document for one in texts[1]]


def test_documents_have_four_to_ten_sentences():
    lines = list(examples("text", "qaa", "dev"))
    counts = Counter(line.document for line in lines)
    del counts[lines[-1].document]  # The last one ends where the split does.
    assert sorted(counts) == list(range(len(counts))) and set(counts.values()) == set(range(4, 11))


def mentioned(text, words):
    """Concepts of the nouns and names of a text."""
    items = [item for sentence in sentences_in(text, words) for item in items_of(sentence, words)]
    return {item.readings[tag].concept for item in items for tag in ("NOUN", NAME) if tag in item.readings}


def test_persons_places_and_things_recur_in_a_document():
    words, documents = lexicon(LANGUAGES["qaa"]), {}
    for line in examples("text", "qaa", "dev"):
        documents.setdefault(line.document, Counter()).update(mentioned(line.text, words))
    again = sum(count for counts in documents.values() for count in counts.values() if count > 1)
    total = sum(counts.total() for counts in documents.values())
    assert again / total > 0.4  # 0.1 where the same sentences are shuffled between documents
