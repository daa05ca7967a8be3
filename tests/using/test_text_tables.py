"""Tables of texts come out with a column more, and with every other character as it was."""

import csv
import io

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.using.predicting import PredictOptions, predict_file
from used import join_lines, read_and_write, text_file

TEXTS = "text-classification"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";"])
def test_a_table_of_texts_keeps_quotes_and_line_ends(separator, end):
    rows = [
        'id{}"text"{}source', '7{}"a ""b"", c; d"{}x', '8{}"two\nlines"{}""', '9{}plain{}', '10{}" "{}y'
    ]  # fmt: skip
    text = "".join(row.replace("{}", separator).replace("\n", end) + end for row in rows)
    folder = read_and_write(TEXTS, text, ["A", "B", 'C "c"'], wanted="csv")
    added_texts = ["label", "A", "B", '"C ""c"""', ""]
    lines = [row.replace("{}", separator).replace("\n", end) for row in rows]
    assert folder == "".join(
        f"{line}{separator}{cell}{end}" for line, cell in zip(lines, added_texts, strict=True)
    )
    read = list(csv.DictReader(io.StringIO(folder, newline=""), delimiter=separator))
    assert [row["label"] for row in read] == ["A", "B", 'C "c"', ""]


def test_a_tab_separated_table_knows_no_quotes():
    text = 'id\tsentence\tlabel\n1\t"a\tx\n\n2\t \ty\n3\tb"\tz'
    folder = read_and_write(TEXTS, text, ["A", "B"], name="a.tsv", scores=[{"A": 0.75, "B": 0.25}] * 2)
    assert folder.splitlines() == [
        "id\tsentence\tlabel\tpredicted\tscores",
        '1\t"a\tx\tA\tA=0.7500 B=0.2500',
        "",
        "2\t \ty\t\t",
        '3\tb"\tz\tB\tA=0.7500 B=0.2500',
    ]


def test_a_blank_row_before_the_first_text_stays_below_the_header():
    assert read_and_write(TEXTS, "text\n \na\n", ["A"], wanted="csv") == "text,label\n \na,A\n"
    assert read_and_write(TEXTS, 'text\n" "\na\n', ["A"], wanted="csv") == 'text,label\n" ",\na,A\n'
    assert read_and_write(TEXTS, "text\n", [], wanted="csv") == "text,label\n"
    assert read_and_write(TEXTS, "", [], wanted="csv") == ""


def test_several_labels_are_one_cell():
    folder = read_and_write("multi-label-classification", "text\na\nb\n", [("x", "y"), ()], wanted="csv")
    assert folder == 'text,label\na,"x,y"\nb,\n'


@pytest.mark.parametrize("names", ["first,second", "premise,hypothesis", "sentence1,sentence2"])
def test_pairs_are_found_by_usual_names(names):
    text = f'{names},label\n"a, a",b,x\n'
    expected = f'{names},label,predicted\n"a, a",b,x,neutral\n'
    assert read_and_write("nli", text, ["neutral"], name="a.csv") == expected


def test_columns_of_texts_are_named_by_an_option(make_model):
    model = make_model(TEXTS)
    text = "Tweet,claim\nAnna saw,a b\n"
    options = PredictOptions(format="csv", text="Tweet", as_json=True)
    (line,) = predict_file(model, text_file(text), options)
    assert '"text": "Anna saw"' in line
    options = PredictOptions(text="claim, Tweet", as_json=True)
    (line,) = predict_file(make_model("nli"), text_file(text, "a.csv"), options)
    assert '"texts": ["a b", "Anna saw"]' in line
    same_lines = [
        join_lines(predict_file(model, text_file(body), PredictOptions(format=form, text=name)))
        for body, form, name in ((text, "csv", "Tweet"), ("Anna saw\n", "lines", ""))
    ]
    assert same_lines[0].splitlines()[1].rpartition(",")[2] == same_lines[1].strip().rpartition("\t")[2]
    with pytest.raises(ConfigError, match=r"--text: .*--format csv.*tsv"):
        predict_file(model, text_file("a\n"), PredictOptions(text="Tweet"))


def test_columns_are_numbered_where_there_is_no_header(make_model):
    lines = predict_file(make_model(TEXTS), text_file("7,Anna saw\n", "a.csv"), PredictOptions(text="1"))
    assert [line.rpartition(",")[0] for line in lines] == ["7,Anna saw"]
    options = PredictOptions(text="2,0", as_json=True)
    (line,) = predict_file(make_model("nli"), text_file("a,b,c\n", "a.csv"), options)
    assert '"texts": ["c", "a"]' in line
    with pytest.raises(DataError, match=r"input:1: .*7"):
        list(predict_file(make_model(TEXTS), text_file("a,b\n"), PredictOptions(text="7", format="csv")))


@pytest.mark.parametrize("name", ["Text", "review", "tweet"])
def test_names_that_init_knows_are_known(name):
    assert (
        read_and_write(TEXTS, f"{name},Label\na,x\n", ["A"], name="a.csv")
        == f"{name},Label,predicted\na,x,A\n"
    )


@pytest.mark.parametrize("names", ["first", "first,second,third"])
def test_pairs_have_two_columns(names, make_model):
    lines = predict_file(make_model("nli"), text_file("first,second\n", "a.csv"), PredictOptions(text=names))
    with pytest.raises(ConfigError, match=r"--text '.*':"):
        list(lines)


@pytest.mark.parametrize(
    ("task", "text", "message"),
    [
        (TEXTS, "Said,id\na,b\n", "input:1:"),
        ("nli", "claim,second\na,b\n", "input:1: .*sentence1"),
        (TEXTS, "text,label,predicted\n", "input:1:"),
        (TEXTS, 'text,id\n"a\nb",1\nc\n', "input:4: .*'c'.*2"),
        (TEXTS, 'text,id\n"a"b,1\n', "input:2: ',' expected after '\"'"),
        ("nli", 'first,second\na," "\n', "input:2:"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_named_with_its_line(task, text, message):
    with pytest.raises(DataError, match=message):
        read_and_write(task, text, ["x"] * 3, wanted="csv")
