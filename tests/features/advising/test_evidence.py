"""Files of gains: broken cells are refused with their line, and forms of the same table read equal."""

import gzip
from pathlib import Path

import pytest

from isogloss import advise, read_gains
from isogloss.core.errors import DataError
from isogloss.features.advising.evidence import REQUIRED, SHIPPED, Gain

HEAD = "task,encoder,option,language,gain,seeds,labels,hours,needs"
ROWS = [
    "upos,made,zero head,de,4.5,3,0,0.1,",
    'upos,made,"labels, twenty",de,-1,3,20,0.2,"an annotator, paid"',
]
VALUES = ("upos", "made", "option", "sw", "1.5", "3", "20", "0.2", "labels")
BROKEN = {
    "gain": ["", "much", "nan", "inf", "1,5", "--1"],
    "seeds": ["", "0", "-1", "2.5", "three", "1e3", "9" * 5000, "٣"],
    "labels": ["", "-20", "many", "0.5"],
    "hours": ["", "-0.1", "nan", "inf", "an hour"],
    **{name: ["", "  "] for name in ("task", "encoder", "option", "language")},
}
CASES = [(name, value) for name, values in BROKEN.items() for value in values]


def write(folder: Path, *lines: str, name: str = "gains.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_is_read_as_it_is_written(tmp_path):
    first_gain, second_gain = read_gains(write(tmp_path, HEAD, *ROWS))
    assert first_gain == Gain("upos", "made", "zero head", "de", 4.5, 3, 0, 0.1, "")
    assert (second_gain.option, second_gain.gain, second_gain.labels) == ("labels, twenty", -1, 20)
    assert second_gain.needs == "an annotator, paid"


@pytest.mark.parametrize(("column", "value"), CASES)
def test_a_broken_cell_is_refused_with_file_and_line(column: str, value: str, tmp_path: Path) -> None:
    cells = list(VALUES)
    cells[HEAD.split(",").index(column)] = f'"{value}"'
    path = write(tmp_path, HEAD, ROWS[0], ",".join(cells))
    with pytest.raises(DataError, match=rf"gains\.csv:3: .*{column}"):
        read_gains(path)


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_named(column: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"gains\.csv:1: .*{column}"):
        read_gains(write(tmp_path, HEAD.replace(column, "other"), *ROWS))


@pytest.mark.parametrize("line", ['upos,made,"option,sw,1,3,0,0.1,', f"{ROWS[0]},1,2", ROWS[0] + 'a"b"c\rd'])
def test_a_line_that_is_no_csv_is_refused_with_its_number(line: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gains\.csv:3: "):
        read_gains(write(tmp_path, HEAD, ROWS[1], line))


def test_a_repeated_row_is_refused_with_both_lines(tmp_path):
    with pytest.raises(DataError, match=r"gains\.csv:4: .*line 2"):
        read_gains(write(tmp_path, HEAD, *ROWS, ROWS[0]))


def test_languages_are_read_under_any_of_their_codes(tmp_path):
    gains = read_gains(write(tmp_path, HEAD, ROWS[0].replace(",de,", ",deu_Latn,")))
    assert [gain.language for gain in gains] == ["de"]
    with pytest.raises(DataError, match=r"gains\.csv:3: .*line 2"):
        read_gains(write(tmp_path, HEAD, ROWS[0], ROWS[0].replace(",de,", ",deu,")))


def test_a_file_without_rows_is_refused(tmp_path):
    for lines in ((HEAD,), (HEAD, ""), ("",)):
        with pytest.raises(DataError, match=r"gains\.csv"):
            read_gains(write(tmp_path, *lines))


def test_other_forms_of_the_same_table_read_equal(tmp_path):
    expected = read_gains(write(tmp_path, HEAD, *ROWS))
    text = "\n".join((HEAD, *ROWS)) + "\n"
    forms = {
        "bom.csv": b"\xef\xbb\xbf" + text.encode(),
        "crlf.csv": text.replace("\n", "\r\n").encode(),
        "blank.csv": text.replace("\nupos", "\n\nupos").encode(),
        "packed.csv.gz": gzip.compress(text.encode()),
        "spaces.csv": text.replace(",de,", ", de ,").encode(),
        "no_end.csv": text.rstrip("\n").encode(),
    }
    for name, content in forms.items():
        (tmp_path / name).write_bytes(content)
        assert read_gains(tmp_path / name) == expected, name
    columns = HEAD.split(",")
    turned = [",".join(reversed(columns)), ",".join(reversed(ROWS[0].split(",")))]
    assert read_gains(write(tmp_path, *turned)) == expected[:1]


def test_the_shipped_gains_are_those_of_the_results():
    results = Path(__file__).parents[3] / "docs" / "results" / "advice" / "gains.csv"
    assert SHIPPED.read_bytes() == results.read_bytes()


def test_the_shipped_gains_are_of_three_tasks_and_several_languages():
    gains = read_gains()
    for task in ("upos", "ner", "text-classification"):
        advice = advise(task, gains=gains)
        assert max(len(option.languages) for option in advice.options) >= 4
        assert min(gain.seeds for gain in advice.gains) >= 1
