"""Columns that contain no words are refused, in corpora and predictions alike."""

import pytest

from isogloss.core.errors import DataError
from isogloss.data.files import File
from isogloss.data.formats.word_columns import describe_other_column
from isogloss.features.described_corpora.contents import inspect_splits
from isogloss.tasks import find_task
from isogloss.using.formats import format_of
from isogloss.using.kinds import kind_of

SENTENCES = (("Ana", "Li", "ran", "home", "now", "."), ("Oslo", "is", "a", "big", "old", "city"))
TAGS = (("B-PER", "I-PER", "O", "O", "O", "O"), ("B-LOC", "O", "O", "O", "O", "O"))
OTHER_COLUMNS = {
    "from 0": lambda sentence, word, running: word,
    "running": lambda sentence, word, running: running + 5,
    "sentence number": lambda sentence, word, running: sentence,
    "1-1": lambda sentence, word, running: f"{sentence + 1}-{word + 1}",
    "1.1": lambda sentence, word, running: f"{sentence + 1}.{word + 1}",
    "t1": lambda sentence, word, running: f"t{word + 1}",
    "01": lambda sentence, word, running: f"{word + 1:02}",
    "s1w1": lambda sentence, word, running: f"s{sentence + 1}w{word + 1}",
    "offsets": lambda sentence, word, running: f"{3 * running}-{3 * running + 2}",
    "document": lambda sentence, word, running: "doc7",
    "language": lambda sentence, word, running: "en",
    "nothing": lambda sentence, word, running: "_",
    "tags": lambda sentence, word, running: TAGS[sentence][word],
}
"""First columns that contain no words, from the numbers of sentence and word."""


def file_with(column):
    """Write sentences with a first column before words and tags."""
    lines = list[str]()
    running = 0
    for sentence, (words, tags) in enumerate(zip(SENTENCES, TAGS, strict=True)):
        for word, (text, tag) in enumerate(zip(words, tags, strict=True)):
            lines.append(f"{column(sentence, word, running)}\t{text}\t{tag}")
            running += 1
        lines.append("")
    return "\n".join(lines) + "\n"


def text_file(text):
    return File("input", lambda: iter(text.splitlines(keepends=True)), str)


@pytest.mark.parametrize("name", OTHER_COLUMNS)
def test_a_first_column_without_words_is_refused_by_corpora_and_predictions(name, own_corpus, put_files):
    text = file_with(OTHER_COLUMNS[name])
    put_files({"test.conll": text})
    corpus = 'kind = "tagging"\nfiles = { test = "test.conll" }\nlanguages = ["en"]\n'
    with pytest.raises(DataError, match=r"test\.conll:1: .*0.*\{.*1.*2 \}"):
        list(own_corpus(corpus).read(None, "en", "test"))
    choice, file = format_of(text_file(text), kind_of(find_task("ner")), "ner", "columns")
    with pytest.raises(DataError, match=r"input:1: .*0.*--column 1"):
        list(choice.read(file, ""))
    words = [entry.example.words for entry in choice.read(text_file(text), "", column=1) if entry.example]
    assert words == list(SENTENCES)


@pytest.mark.parametrize(
    "sentences",
    [
        SENTENCES,
        [("in", "1990", "and", "1991")],
        [("3", "m"), ("5", "km")],
        [("COVID-19", "spread")],
        [("北", "京"), ("東", "京")],
        [("B-52", "flew")],
    ],
)
def test_words_are_words(sentences):
    assert describe_other_column(sentences) == ""


HIPE = "\n".join([
    "TOKEN\tNE\tNEL\tMISC", "# language = en", "# date = 1790",
    "Ana\tB-PER\t_\t_", "Li\tI-PER\t_\tEndOfLine", "ran\tO\t_\t_\n",
])  # fmt: skip


def test_a_header_and_comments_below_it_are_no_words(own_corpus, put_files):
    put_files({"test.tsv": HIPE})
    (contents,) = inspect_splits(
        own_corpus(
            'kind = "tagging"\nformat = "conll"\ncolumns = { word = 0, label = 1 }\n'
            'files = { test = "test.tsv" }\nlanguages = ["en"]\n'
        )
    )
    assert (contents.examples, contents.labels, contents.errors) == (1, {"PER": 1}, ())
    assert "the header in line 1 skipped, 2 comment lines skipped" in contents.remarks[0]
    choice, file = format_of(text_file(HIPE), kind_of(find_task("ner")), "ner", "columns")
    assert [entry.example.words for entry in choice.read(file, "") if entry.example] == [("Ana", "Li", "ran")]


TREE = (
    "1\tAna\t_\tPROPN\t_\tCase=Nom\t0\troot\t_\tSpaceAfter=No|NER=B-PER\n"
    "2\tLi\t_\tPROPN\t_\t_\t1\tflat\t_\tNER=I-PER\n3\tran\t_\tVERB\t_\t_\t1\tx\t_\tNER=O\n\n"
)


def test_keys_of_misc_and_feats_are_labels(own_corpus, put_files):
    put_files({"test.conllu": TREE})
    body = 'kind = "tagging"\nfiles = { test = "test.conllu" }\nlanguages = ["en"]\n'
    (sentence,) = own_corpus(f'{body}columns = {{ label = "MISC:NER" }}\n').read(None, "en", "test")
    assert sentence.tags == ("B-PER", "I-PER", "O")
    (sentence,) = own_corpus(f'{body}columns = {{ label = "FEATS:Case" }}\nscheme = "words"\n').read(
        None, "en", "test"
    )
    assert sentence.tags == ("Nom", "_", "_")
    with pytest.raises(DataError, match=r"test\.conllu:1: .*MISC;.*MISC:NER"):
        own_corpus(f'{body}columns = {{ label = "MISC" }}\n')


def test_a_hash_that_is_a_label_of_the_description_is_no_comment(own_corpus, put_files):
    put_files({"test.conll": "#win\t#\nnow\tR\n\n#x\t#\nHello\t^\n"})
    body = 'kind = "tagging"\nfiles = { test = "test.conll" }\nlanguages = ["en"]\nlabels = ["#", "R", "^"]\n'
    assert [example.words[0] for example in own_corpus(body).read(None, "en", "test")] == ["#win", "#x"]


def test_bitext_of_unequal_length_is_an_error_whatever_bad_rows_says(own_corpus, put_files):
    put_files({"test.en": "one\ntwo\nthree\n", "test.sw": "moja\ntatu\n"})
    body = 'kind = "bitext"\nformat = "lines"\nfiles = "{split}.{language}"\nlanguages = ["en", "sw"]\n'
    (contents,) = inspect_splits(own_corpus(f'{body}bad_rows = "skip"\n'))
    assert (contents.examples, contents.is_readable) == (0, False)
    assert "test.sw:2: the last line; expected as many lines as" in contents.errors[0]
