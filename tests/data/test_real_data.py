"""Whole real corpora have the counts of their SOURCE.md, and writing loses nothing."""

import sys
from collections import Counter
from dataclasses import replace
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from each import each
from isogloss.core.errors import DataError
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.data.corpora.concatenated import join_corpora
from isogloss.data.corpora.texts_and_trees import Ud
from isogloss.data.corpus import every_split
from isogloss.data.formats.conllu import read_conllu, text_comment, with_tree, write_conllu
from isogloss.data.projection.parallel_examples import match_by_id, mixed_pairs, mixed_questions
from isogloss.data.projection.words import detokenize, tokenize
from isogloss.data.sources import Sources
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.parallel_text.bitext import Bitext
from isogloss.features.parsing.attachment import universal
from isogloss.features.parsing.dependency_trees import is_tree
from isogloss.features.parsing.task import PARSING
from isogloss.tasks.task import all_measures

XNLI = CORPORA["xnli"]
MLQA = CORPORA["mlqa"]

pytestmark = pytest.mark.data


@pytest.mark.slow
@pytest.mark.parametrize("place", ["ud-extra", "ud-pud"])
def test_treebanks_of_version_2_are_trees_of_its_relations(real_data, place):
    relations = set(PARSING.labels)
    files = real_data.find([f"{place}/*/*.conllu"])
    assert files
    for file in files:
        for sentence in read_conllu(file):
            assert is_tree(sentence.heads), (file.name, sentence.id)
            names = [universal(relation) for relation in sentence.relations]
            assert set(names) <= relations, (file.name, sentence.id)
            below_root = [name for head, name in zip(sentence.heads, names, strict=True) if head == 0]
            assert below_root == [name for name in names if name == "root"], (file.name, sentence.id)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["pre-v1.2_UD_Hindi", "v1.2_UD_Arabic", "v1.3_UD_Chinese"])
def test_treebanks_of_version_1_are_refused_as_such(real_data, folder, bert_folder):
    (file,) = real_data.find([f"ud-legacy/{folder}/*-ud-dev.conllu"])
    with pytest.raises(DataError, match="Universal Dependencies 1; version 2 has"):
        PARSING.encode(list(read_conllu(file)), load_tokenizer(bert_folder))


@pytest.mark.slow
def test_gold_trees_score_1_and_are_written_back_byte_for_byte(real_data):
    (file,) = real_data.find(["ud-pud/UD_English-PUD/*.conllu"])
    parsed_sentences = list(read_conllu(file))
    gold = PARSING.gold(parsed_sentences)
    assert set(all_measures(PARSING, gold, gold).values()) == {1.0}
    again = (
        with_tree(parsed_sentence, tree.heads, tree.relations)
        for parsed_sentence, tree in zip(parsed_sentences, gold, strict=True)
    )
    assert "".join(line + "\n" for line in write_conllu(again, "ud")) == "".join(file.read())


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("language", ["sw", "zh"])
def test_xnli_has_the_same_pairs_in_its_languages(real_data, language):
    gold = [pair.label for pair in XNLI.read(real_data, "en", "dev")]
    assert Counter(gold) == dict.fromkeys(XNLI.labels, 830)
    pairs = list(XNLI.read(real_data, language, "dev"))
    assert [pair.label for pair in pairs] == gold
    assert [pair.id for pair in pairs] == [str(index) for index in range(1, 2491)]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["ar", "en", "sw", "zh"])
def test_xtreme_s_layout_of_xnli_gives_the_same_pairs(real_data, language):
    xtreme = replace(XNLI, all_languages={}, layouts=every_split("xnli/xtreme-format/{split}-{language}.tsv"))
    assert list(xtreme.read(real_data, language, "dev")) == list(XNLI.read(real_data, language, "dev"))


@pytest.mark.nightly
@pytest.mark.slow
def test_joined_corpora_train_on_what_there_is(real_data):
    whole_corpora = join_corpora("snli[dev,test]+cad-nli+sick", CORPORA.__getitem__)
    for split, count in (("train", 9842 + 9824 + 8330 + 4500), ("dev", 1000 + 500), ("test", 2000 + 4927)):
        ids = [pair.id for pair in whole_corpora.read(real_data, "en", split)]
        assert len(set(ids)) == len(ids) == count


def test_parallel_test_sets_can_be_mixed(real_data):
    def both(corpus, language):
        return [
            list(CORPORA[corpus].read(real_data, language_code, "test")) for language_code in (language, "en")
        ]

    assert len(mixed_questions(*both("squad", "ar"))) == 1190
    assert len(match_by_id(*both("pawsx", "de"), names=("de", "en"), partial=True)) == 1994 - 8
    with pytest.raises(DataError, match="6 of the target are not in the source"):
        mixed_pairs(*both("pawsx", "de"))


@pytest.mark.slow
def test_pairs_of_languages_of_mlqa_are_read_by_a_name_of_their_own(real_data):
    sources = Sources(data=str(real_data.path))
    for arguments, context in each(product(MLQA.own_rules[:3], repeat=2)):
        questions = sources.examples(f"mlqa:{arguments}", context, "dev")
        same_questions = {
            example.id: example.question for example in sources.examples("mlqa", arguments, "dev")
        }
        assert all(
            question.question == same_questions[question.id] and question.language == context
            for question in each(questions)
        )


@pytest.mark.nightly
@pytest.mark.slow
def test_bible_holds_out_enough_verses_for_retrieval(real_data):
    assert 1100 < sum(1 for _ in Bitext(collection="bible").read(real_data, "en-vi", "test")) < 1400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "minimum"),
    [("de", 0.94), ("en", 0.95), ("es", 0.96), ("fr", 0.94), ("ru", 0.95), ("zh", 0.43)],
)
def test_words_of_running_text_are_mostly_those_of_the_treebank(real_data, language, minimum):
    sentences = list(Ud().read(real_data, language, "test"))
    words = [sentence.words for sentence in sentences]
    texts = [text_comment(sentence) for sentence in sentences]
    assert agreement([text.split() for text in texts], words) < minimum - 0.1
    assert agreement([tokenize(text) for text in texts], words) > minimum
    assert agreement([tokenize(detokenize(word)) for word in words], words) > minimum


def agreement(tokens, words):
    """Give F1 of words, sentence by sentence, whatever their order."""
    totals = sum((Counter(left) & Counter(right)).total() for left, right in zip(tokens, words, strict=True))
    return 2 * totals / (sum(len(token) for token in tokens) + sum(len(value) for value in words))


sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
corpora = import_module("corpora")
stated_module = import_module("stated")


QUICK = ("mlqa", "mrpc", "nli-train-en", "pawsx", "tydiqa-goldp", "ud-extra", "word-alignment", "xquad")
STRIDE = 12
"""In large folders this reads every twelfth file from the last; benchmarks/corpora.py reads all."""

AS_ON_DISK = {"ud", "ud-extra", "ud-legacy", "ud-pud", "panx", "udpos-xtreme", "rawtext"}
"""Formats that are written as read, except the number of empty lines between two sentences."""

PLACES = [
    pytest.param(place, marks=() if place in QUICK else pytest.mark.slow, id=place)
    for place in stated_module.CHECKS
]


WITHOUT_READER = {
    *("tokenizer", "afrisenti", "belebele", "flores-mt", "masakhanews"),
    *("nusax-senti", "sib200", "taxi1500", "xcopa", "xnli-ext", "layouts"),
}
"""Folders that no corpus reads yet."""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_counts_are_those_stated_and_what_is_written_is_what_was_read(real_data, place):
    if place not in stated_module.places(real_data):
        pytest.skip(f"no {place}/SOURCE.md in the folder")
    checks = [check for check in stated_module.checks(real_data, place) if check.is_there(real_data)]
    looked_values = [corpora.look(real_data, check) for check in checks[:: -1 if place in QUICK else -STRIDE]]
    assert looked_values
    for looked_value in looked_values:
        where = (place, looked_value.check.of, looked_value.check.language, looked_value.check.split)
        assert looked_value.read == looked_value.check.stated or not looked_value.check.stated, where
        assert looked_value.examples, where
        assert looked_value.written != "LOST", where
        assert looked_value.written.startswith("bytes") or place not in AS_ON_DISK, where


def test_every_folder_with_a_source_is_looked_at(real_data):
    names = {path.parent.name for path in real_data.path.glob("*/SOURCE.md")}
    assert names - WITHOUT_READER <= set(stated_module.CHECKS)


@pytest.mark.nightly
@pytest.mark.slow
def test_crossed_questions_of_mlqa_are_those_that_both_languages_have(real_data):
    fields = {
        (check.language, check.of.removeprefix("questions ")): {
            example.id for example in check.corpus.read(real_data, check.language, "dev")
        }
        for check in stated_module.checks(real_data, "mlqa")
    }
    assert len(fields) == 49
    for (passages, questions), ids in fields.items():
        assert ids == fields[passages, passages] & fields[questions, questions]
