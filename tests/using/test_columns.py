"""In a file with one word per line the right column is read. Comments and tabs are preserved."""

from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.data.files import byte_stream
from isogloss.using.formats import Prediction, format_of
from isogloss.using.predicting import PredictOptions, predict_file
from isogloss.using.words import INSPECTED_LINES, layout_of
from used import KINDS, join_lines, text_file

UNER = (
    "# sent_id = a-1\n# text = Muhammadu ya\n1\tMuhammadu\tB-PER\t-\t-\n2\tya\tO\t-\tanna\n\n1\tya\tO\t-\t-\n"
)
XSID = "# id: 1\n# text: Is O\n# text = O\n1\tIs\tweather/find\tO\n2\tja\tweather/find\tB-datetime\n"
GERMEVAL = "#\thttp://a.de/x\t[2009-10-17]\n1\tAnna\tB-PER\tO\n2\t#\tO\tO\n\n#\thttp://b.de\t[2010-01-16]\n1\tda\tO\tO\n"


def words_in(text, task="ner", name="input", request="", **option):
    """Read the words of each sentence of a text."""
    chosen_field, file = format_of(text_file(text, name), KINDS[task], task, request)
    return chosen_field.name, [
        entry.example.words for entry in chosen_field.read(file, "", **option) if entry.example is not None
    ]


def number_words(text, task="ner", request=""):
    """Read a text and write it with a number as each word's label."""
    kind = KINDS[task]
    choice, file = format_of(text_file(text), kind, task, request)
    entries = (
        (entry, entry.example and Prediction(tuple(f"L{n}" for n in range(len(entry.example.words)))))
        for entry in choice.read(file, "")
    )
    return join_lines(choice.write(entries))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (UNER, [("Muhammadu", "ya"), ("ya",)]),
        (XSID, [("Is", "ja")]),
        (GERMEVAL, [("Anna", "#"), ("da",)]),
        (XSID.replace("\t", " "), [("Is", "ja")]),
    ],
    ids=["uner", "xsid", "germeval", "spaces"],
)
def test_words_after_running_numbers_are_found_without_an_option(text, expected):
    assert words_in(text) == ("columns", expected)
    assert words_in(text, request="columns") == ("columns", expected)


def test_running_numbers_are_seen_in_a_file_called_tsv():
    assert words_in(GERMEVAL, name="dev.tsv") == ("tsv", [("Anna", "#"), ("da",)])


def test_a_column_of_labels_is_added_and_nothing_else_changes():
    for text in (UNER, XSID, GERMEVAL):
        lines_before = text.splitlines()
        lines_after = number_words(text).splitlines()
        assert len(lines_before) == len(lines_after)
        rows = [pair for pair in zip(lines_before, lines_after, strict=True) if pair[0][:1] not in ("#", "")]
        assert all(
            new_value == old_value
            for old_value, new_value in zip(lines_before, lines_after, strict=True)
            if old_value[:1] in ("#", "")
        )
        assert rows and all(new_row.startswith(f"{old_row}\tL") for old_row, new_row in rows)


@pytest.mark.parametrize("name", ["columns", "tsv"])
@pytest.mark.parametrize(
    ("text", "line"),
    [("1\tO\n2\tO\n", 1), ("7\tO\n12\tO\n", 1), ("1\tB-PER\n\n1\tO\n", 1), ("# id 1\n\n1984\tO\n", 3)],
)
def test_a_first_column_of_numbers_alone_is_refused(name, text, line):
    message = f"input:{line}: .*0.*--column"
    with pytest.raises(DataError, match=message):
        words_in(text, request=name)
    firsts = [row.partition("\t")[0] for row in text.splitlines() if "\t" in row]
    assert [word for words in words_in(text, request=name, column=0)[1] for word in words] == firsts


def test_some_numbers_among_words_are_words():
    text = "In\tO\n1984\tO\n\n3\tO\n2\tO\nAnna\tB-PER\n\n1\tO\n2\tO\n"
    assert words_in(text)[1] == [("In", "1984"), ("3", "2", "Anna"), ("1", "2")]
    assert words_in("1\n2\n", request="columns")[1] == [("1", "2")]


def test_numbers_that_stop_running_are_named_with_their_line():
    broken_corpus = UNER + "\n" * INSPECTED_LINES + "1\tda\tO\t-\t-\n3\tja\tO\t-\t-\n"
    with pytest.raises(DataError, match=r"input:10008: .*'3.*2"):
        words_in(broken_corpus)
    assert words_in(broken_corpus, column=1)[1][-1] == ("da", "ja")


@pytest.mark.parametrize(("column", "expected"), [(1, ("b", "e")), (-1, ("c", "f")), (-3, ("a", "d"))])
def test_a_column_is_counted_from_0_or_backwards(column, expected):
    assert words_in("a\tb\tc\nd\te\tf\n", request="columns", column=column)[1] == [expected]
    assert words_in("a b c\nd e f\n", request="columns", column=column)[1] == [expected]


def test_a_column_that_a_line_lacks_is_named(make_model):
    with pytest.raises(DataError, match=r"input:2: .*'b'.*1"):
        words_in("a O\nb\n", request="columns", column=1)
    with pytest.raises(ConfigError, match=r"--column: .*--format tsv"):
        predict_file(make_model("ner"), text_file("a b\n"), PredictOptions(column=1))
    with pytest.raises(ConfigError, match=r"--column: .*tsv.*--column"):
        predict_file(make_model("nli"), text_file("a\tb\n"), PredictOptions(column=1))


def test_the_column_of_words_is_an_option_of_predict(make_model):
    model = make_model("ner")
    text = "x\tAnna\nx\tsaw\n"
    ours = join_lines(
        predict_file(model, text_file(text), PredictOptions(column=1, format="tsv", as_json=True))
    )
    assert '"words": ["Anna", "saw"]' in ours
    labels = [
        line.rpartition("\t")[2]
        for line in join_lines(predict_file(model, text_file(UNER), PredictOptions())).splitlines()
        if line[:1].isdigit()
    ]
    plain_lines = join_lines(predict_file(model, text_file("Muhammadu ya\nya\n"), PredictOptions()))
    assert labels == [label for line in plain_lines.splitlines() for label in line.partition("\t")[2].split()]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "# id",
            "# sent 1",
            "# key: value",
            "# key = value",
            "#\thttp://a.de\t[2009-10-17]",
            "# text = B O",
        ),
        *("-DOCSTART- O", "-DOCSTART-\tO", "# newdoc", "## Title"),
    ],
)
@pytest.mark.parametrize("row", ["{} {}", "{}\t{}", "{}\t_\t_\t{}", "{} NN I-NP {}"])
def test_comments_before_a_sentence_are_never_tagged(line, row):
    sentence = [row.format("Rome", "B-LOC"), row.format("#", "O"), row.format("was", "O"), ""]
    text = join_lines([line, *sentence, line, line, *sentence])
    assert words_in(text, request="columns")[1] == [("Rome", "#", "was")] * 2
    if "\t" in row:
        assert words_in(text, request="tsv")[1] == [("Rome", "#", "was")] * 2
    assert [row for row in number_words(text, request="columns").splitlines() if row.startswith(line)] == [
        line
    ] * 3


@pytest.mark.parametrize("word", ["#", "#Rome", "##"])
@pytest.mark.parametrize("row", ["{} {}", "{}\t{}", "{}\t_\t{}", "{} NN I-NP {}", "{}\t{}\t_"])
@pytest.mark.parametrize("tags", [("O", "B-LOC"), ("SYM", "NOUN"), ("$", "NE")])
def test_a_hash_that_is_a_word_stays_one(word, row, tags):
    text = join_lines([row.format(word, tags[0]), row.format("Rome", tags[1]), "", row.format("a", tags[0])])
    assert words_in(text, request="columns")[1] == [(word, "Rome"), ("a",)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ana\tweather/find\tB-PER\nna\tweather/find\tO\n", "\t"),
        ("Ana x y\tB-PER\tB-PER\nna\tO\tO\n", "\t"),
        ("Anna\tO\nran O\n", "\t"),
        ("Ana weather/find B-PER\nna weather/find O\n", " "),
        ("Ana\u00a0na O\nna O\n", " "),
    ],
)
def test_what_parts_the_cells_parts_the_label(text, expected):
    rows = zip(text.splitlines(), number_words(text, request="columns").splitlines(), strict=True)
    assert [other_row for _, other_row in rows] == [
        f"{line}{expected}L{index}" for index, line in enumerate(text.splitlines())
    ]


def test_a_part_of_speech_that_comes_late_is_one():
    text = "A DET\nthe DET\n\n" * INSPECTED_LINES + "# SYM\n5 NUM\n"
    assert words_in(text, task="upos", request="columns")[1][-1] == ("#", "5")


def test_a_no_break_space_stands_inside_a_word():
    assert words_in("10\u00a0000 O\nna O\n")[1] == [("10\u00a0000", "na")]


def test_a_carriage_return_is_no_white_space():
    assert words_in("a O\r\nb O\r\n") == ("columns", [("a", "b")])
    (columns,) = (form for form in KINDS["ner"].formats if form.name == "columns")
    with pytest.raises(DataError, match="input:1:"):
        list(columns.read(byte_stream("input", [b"a O\rb O\n", b"c O\n"]), ""))


def test_a_layout_says_where_words_and_tags_are():
    layout = layout_of(UNER.splitlines())
    assert (layout.separator, layout.tags, layout.indexed, layout.numbers) == ("\t", (2,), True, 0)
    layout = layout_of([])
    assert (layout.separator, layout.tags, layout.indexed, layout.numbers) == (" ", (), False, 0)


def test_the_page_says_from_how_many_lines_a_layout_is_decided():
    page = Path(__file__).parents[2] / "docs" / "use.md"
    assert f"decided from the first {INSPECTED_LINES:,} lines" in page.read_text(encoding="utf-8")
