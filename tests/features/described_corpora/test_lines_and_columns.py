"""Texts and labels in separate files, a line for each word in a table, and lines of documents."""

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import LabelledText, TaggedSentence
from isogloss.features.described_corpora.descriptions import describe_corpus

TEXTS = ["Nafurahi sana", 'Naogopa, "nalia"\tleo', "Saa sita"]
LABELS = ["pos", "neg", "neu"]


@pytest.fixture
def write(tmp_path):
    """Write files, and a description of them."""

    def write(files, description):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        (tmp_path / "own.toml").write_text(f'languages = ["sw"]\n{description}', encoding="utf-8")
        return describe_corpus(tmp_path / "own.toml")

    return write


def lines(texts):
    return "".join(f"{text}\n" for text in texts)


PARALLEL = 'kind = "text"\nfiles = "{split}_text.txt"\nlabel_files = "{split}_labels.txt"\n'
BY_LABEL = 'kind = "text"\nfiles = "{split}/{label}.txt"\nlabels = ["pos", "neg", "neu"]\n'


@pytest.mark.parametrize("more", ["", 'format = "lines"\n'])
@pytest.mark.parametrize("are_numbers", [False, True])
def test_parallel_files_of_texts_and_labels_are_read(write, more, are_numbers):
    labels = [str(index) for index in range(3)] if are_numbers else LABELS
    stated_text = 'labels = ["pos", "neg", "neu"]\n' if are_numbers else ""
    files = {"train_text.txt": lines(TEXTS), "train_labels.txt": lines(labels), "test_text.txt": lines(TEXTS)}
    corpus = write(files, PARALLEL + more + stated_text)
    expected = [
        LabelledText(id=str(index), text=text, label=label)
        for index, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    assert list(corpus.read(None, "sw", "train")) == expected
    assert corpus.lacks_labels(None, "sw", "test")
    assert len(list(corpus.read(None, "sw", "test"))) == 3


def test_parallel_files_of_unequal_length_are_an_error_with_the_line(write):
    files = {"train_text.txt": lines(TEXTS), "train_labels.txt": lines(LABELS[:2])}
    for more in ("", 'bad_rows = "skip"\n'):
        with pytest.raises(DataError, match=r"train_labels\.txt:2: .*train_text\.txt has \(3\)"):
            list(write(files, PARALLEL + more).read(None, "sw", "train"))


def test_a_wrong_label_in_a_parallel_file_is_an_error_with_its_line(write):
    files = {"train_text.txt": lines(TEXTS), "train_labels.txt": lines(["pos", "no", "neu"])}
    corpus = write(files, PARALLEL + 'labels = ["pos", "neg", "neu"]\n')
    with pytest.raises(DataError, match=r"train_text\.txt:2: label 'no'"):
        list(corpus.read(None, "sw", "train"))


def test_one_file_for_each_label_is_read(write):
    files = {f"train/{label}.txt": lines([text, text]) for text, label in zip(TEXTS, LABELS, strict=True)}
    corpus = write(files, BY_LABEL)
    examples = list(corpus.read(None, "sw", "train"))
    read = [(example.text, example.label) for example in examples]
    assert read == [pair for pair in zip(TEXTS, LABELS, strict=True) for _ in range(2)]
    assert len({example.id for example in examples}) == 6
    files["train/neg.txt"] = "a\n\nb\n"
    attempts = write(files, BY_LABEL).attempts(None, "sw", "train")
    (error,) = [attempt for attempt in attempts if isinstance(attempt, DataError)]
    assert "neg.txt:2" in str(error)


@pytest.mark.parametrize(
    ("description", "facts"),
    [
        (BY_LABEL.replace('labels = ["pos", "neg", "neu"]\n', ""), "labels:"),
        (PARALLEL.replace('"text"', '"pair"', 1), "label_files:"),
        (PARALLEL + 'format = "tsv"\n', "label_files:"),
        (PARALLEL.replace("{split}_text", "{split}_{label}"), r"label_files: .*\{label\}"),
        ('kind = "text"\nfiles = "{split}_text.txt"\nformat = "lines"\n', "label_files"),
    ],
)
def test_descriptions_of_lines_that_do_not_fit_are_refused(write, description, facts):
    with pytest.raises(ConfigError, match=facts):
        write({"train_text.txt": lines(TEXTS), "train_labels.txt": lines(LABELS)}, description)


KAGGLE = (
    'kind = "tagging"\nfiles = "ner.csv"\n'
    'columns = { sentence = "Sentence #", word = "Word", label = "Tag" }\n'
)
SENTENCES = [
    (["Ana", "lives", "in", "Oslo"], ["B-PER", "O", "O", "B-LOC"]),
    (['"', "Bo", "Li"], ["O", "B-PER", "I-PER"]),
]


@pytest.mark.parametrize("repeated_value", [False, True])
@pytest.mark.parametrize("suffix", ["csv", "tsv"])
def test_a_table_with_a_line_for_each_word_is_read(write, repeated_value, suffix):
    separator = {"csv": ",", "tsv": "\t"}[suffix]
    rows = [separator.join(["Sentence #", "Word", "POS", "Tag"])]
    for value, (words, tags) in enumerate(SENTENCES, start=1):
        for index, (word, tag) in enumerate(zip(words, tags, strict=True)):
            name = f"Sentence: {value}" if repeated_value or not index else ""
            cell = '""""' if word == '"' and suffix == "csv" else word
            rows.append(separator.join([name, cell, "X", tag]))
    corpus = write({f"ner.{suffix}": lines(rows)}, KAGGLE.replace("ner.csv", f"ner.{suffix}"))
    read = list(corpus.read(None, "sw", "train"))
    assert read == [
        TaggedSentence(id=str(position), words=tuple(words), tags=tuple(tags))
        for position, (words, tags) in enumerate(SENTENCES)
    ]
    assert corpus.tasks == ("span-tagging",)


def test_a_wrong_tag_in_such_a_table_is_an_error_with_its_line(write):
    text = "Sentence #,Word,POS,Tag\nSentence: 1,Ana,X,B-PER\n,Li,X,I-PER\n,ran,X,\n"
    with pytest.raises(DataError, match=r"ner\.csv:4: "):
        list(write({"ner.csv": text * 1}, KAGGLE + 'labels = ["PER"]\n').read(None, "sw", "train"))


def test_the_columns_of_such_a_table_are_all_named(write):
    with pytest.raises(ConfigError, match=r"columns: .*csv"):
        write(
            {"ner.csv": "Word,Tag\na,O\n"},
            'kind = "tagging"\nfiles = "ner.csv"\ncolumns = { word = "Word", label = "Tag" }\n',
        )


KPWR = (
    "-DOCSTART CONFIG FEATURES orth base ctag\n-DOCSTART FILE 00100518.xml\nAnna\tAnna\tsubst\tB-nam_liv\n"
    "Li\tLi\tsubst\tI-nam_liv\n\n-DOCSTART FILE 2.xml\nto\tto\tpred\tO\n"
)
CONLL_2012 = (
    "#begin document (bc/cctv/00/cctv_0000); part 000\n"
    "bc/cctv/00/cctv_0000   0   0          In    IN   (TOP(S(PP*    -    -   -   Speaker#1           *  -\n"
    "bc/cctv/00/cctv_0000   0   1        Oslo    NNP        (NP*))  -    -   -   Speaker#1       (GPE)  -\n"
    "\n"
    "bc/cctv/00/cctv_0000   0   0       Ana    NNP   (TOP(S(NP*   -    -   -   Speaker#1   (PERSON*  *  -\n"
    "bc/cctv/00/cctv_0000   0   1        Li    NNP         *)))   -    -   -   Speaker#1          *)  *  -\n"
    "\n"
    "#end document\n"
)


def test_lines_of_documents_of_kpwr_are_no_words(write):
    corpus = write({"train.tsv": KPWR}, 'kind = "tagging"\nformat = "conll"\nfiles = "train.tsv"\n')
    assert [example.words for example in corpus.read(None, "sw", "train")] == [("Anna", "Li"), ("to",)]


def test_conll_2012_is_read_by_its_columns_and_refused_with_them(write):
    description = 'kind = "tagging"\nformat = "conll"\nfiles = "train.txt"\n'
    corpus = write({"train.txt": CONLL_2012}, description + "columns = { word = 3, label = 10 }\n")
    assert [(example.words, example.tags) for example in corpus.read(None, "sw", "train")] == [
        (("In", "Oslo"), ("O", "B-GPE")),
        (("Ana", "Li"), ("B-PERSON", "I-PERSON")),
    ]
    with pytest.raises(DataError, match=r"train\.txt:1: .*3.*10"):
        list(write({"train.txt": CONLL_2012 * 3}, description).read(None, "sw", "train"))
