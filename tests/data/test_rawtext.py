import pytest

from isogloss.core.errors import DataError
from isogloss.data.examples import TextLine
from isogloss.data.text import RawText


def test_files_come_in_order_and_empty_lines_part_documents(fixtures):
    lines = list(RawText().read(fixtures, "sw", "train"))
    assert [(line.id, line.document) for line in lines] == [("a:1", 0), ("a:2", 0), ("a:5", 1), ("b:2", 2)]
    assert lines[2].text == "Hati ya pili."


def test_what_is_written_reads_back(again):
    documents = [("one", 0), ("two", 0), ("three", 1)]
    lines = [TextLine(id=str(i), text=text, document=n) for i, (text, n) in enumerate(documents)]
    assert [(line.text, line.document) for line in again(RawText(), lines)] == documents


def test_dev_text_is_no_training_text(put):
    folder = put({"rawtext/en/a.txt": "train\n", "rawtext/en/dev/a.txt": "dev\n"})
    assert [line.text for line in RawText().read(folder, "en", "train")] == ["train"]
    assert [line.text for line in RawText().read(folder, "en", "dev")] == ["dev"]


def test_missing_dev_text_says_what_there_is(fixtures):
    with pytest.raises(DataError, match=r"For 'sw' it has: train\."):
        RawText().read(fixtures, "sw", "dev")


def test_file_without_text_is_an_error(message):
    assert "en/a.txt:1: the split is empty" in message(RawText(), {"rawtext/en/a.txt": " \n\n"})


def test_text_that_would_end_a_document_is_not_written():
    with pytest.raises(DataError, match="its text is empty"):
        list(RawText().write([TextLine(id="1", text=" ")], "en"))
