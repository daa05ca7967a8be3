"""Errors that few run into: each is one line that says where, what was found, and what to do."""

import csv
import json
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError, DataError
from isogloss.recipes.recipe_text import PUBLISHED_COLUMNS, read_published

ROWS = "text\tlabel\na cat\tanimal\nan oak\tplant\na dog\tanimal\n"


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with files of labelled rows, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "few.tsv").write_text(ROWS)
    (tmp_path / "rows.tsv").write_text(ROWS + "".join(f"tree {n}\tplant\n" for n in range(60)))
    (tmp_path / "words.conllu").write_text("1\ta\ta\tDET\t_\t_\t0\troot\t_\t_\n\n")
    (tmp_path / "rows.xlsx").write_text(ROWS)
    (tmp_path / "codes.tsv").write_text("text\tlabel\tlanguage\na cat\tx\ten\nan oak\ty\teng\na dog\tx\ten\n")
    return tmp_path


FROM = ("init", "r.toml", "--from")
TO = ("--source", "en", "--target")
BEGUN = (*FROM, "rows.tsv", *TO)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("predict", "run", "file", "--model", "m"), "--translator"),
        (("compare", "runs"), "missing option '--against'"),
        ((*FROM, "rows.tsv", "--corpus", "x"), "--corpus"),
        ((*BEGUN, "de=rows.tsv", "--split", "8,1"), "--split 8,1:"),
        ((*BEGUN, "de=rows.tsv", "--split", "8,1,0"), "--split 8,1,0:"),
        ((*FROM, "few.tsv", *TO, "de=few.tsv"), "few.tsv:"),
        ((*BEGUN, "de=none.tsv"), "none.tsv:"),
        ((*BEGUN, "de=words.conllu"), "words.conllu: found tagging (conllu); expected text, as rows.tsv"),
        ((*FROM, "rows.xlsx", *TO, "de=rows.tsv"), "rows.xlsx:"),
        ((*FROM, "codes.tsv", "--source", "en"), "column 'language':"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, tuple) else "",
)
def test_options_and_files_that_cannot_be(command, files, words, message):
    names_before = sorted(path.name for path in files.iterdir())
    assert message in command(*words).message
    assert sorted(path.name for path in files.iterdir()) == names_before


@pytest.mark.parametrize(
    ("outputs", "gold", "message"),
    [
        ([{"id": "a", "label": "x"}, {"id": "b", "answer": "x"}], "xy", "answer"),
        ([{"id": "a", "label": "x"}, {"id": "c", "label": "x"}], "xy", ":2: example 'c', which "),
        ([{"id": "a", "label": ["x"]}, {"id": "b", "label": "y"}], [["x"], "y"], ":2: gold 'y'; expected "),
        (
            [{"id": "a", "label": "x"}, {"id": "b", "label": "y"}],
            ["x", 3.5],
            ":2: gold '3.5'; expected what ",
        ),
    ],
)
def test_outputs_that_do_not_fit_their_gold_answers(command, tmp_path, outputs, gold, message):
    paths = [tmp_path / name for name in ("ours.jsonl", "theirs.jsonl", "gold.jsonl")]
    answers = [{"id": key, "gold": item} for key, item in zip("ab", gold, strict=True)]
    for path, rows in zip(paths, (outputs, outputs, answers), strict=True):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("compare", "--predictions", paths[0], paths[1], "--gold", paths[2])
    assert message in command(*words).message


def test_samples_and_answers_in_one_file_are_refused(command, tmp_path):
    path = tmp_path / "mixed.jsonl"
    other_path = tmp_path / "other.jsonl"
    other_path.touch()
    path.write_text('{"doc_id": 1, "doc": {}, "target": "x", "acc": 1.0}\n{"id": "b", "label": "y"}\n')
    assert f"{path}:2: a line without " in command("compare", "--predictions", path, other_path).message


def test_runs_without_scores_or_another_system_are_not_compared(command, tiny_runs, tmp_path):
    (tmp_path / "empty").mkdir()
    message = command("compare", tmp_path / "empty", "--against", "source-only").message
    assert "scores" in message or "no " in message
    single_result = command("compare", tiny_runs, "--against", "source-only", "--task", "none")
    assert single_result.status == 2


def test_a_table_of_published_numbers_with_a_quote_inside_is_refused_with_its_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(",".join(PUBLISHED_COLUMNS) + '\n"a"b' + "," * (len(PUBLISHED_COLUMNS) - 1) + "\n")
    with pytest.raises(csv.Error):
        list(csv.reader(path.open(), strict=True))
    with pytest.raises(ConfigError, match=r"^table.csv:2: .*CSV"):
        read_published(path)


def test_a_label_without_a_name_is_refused():
    from isogloss.data.json_rows import with_label_names

    assert with_label_names({"tags": [1, None], "x": 9}, {"tags": ["a", "b"]}) == {
        "tags": ["b", None],
        "x": 9,
    }
    with pytest.raises(DataError, match=r"^label 2\b.*\(a, b\)"):
        with_label_names({"tags": [0, 2]}, {"tags": ["a", "b"]})
