"""Translating from the command line: a line for a line, and corpora with their labels."""

from pathlib import Path

import pytest

from isogloss.data.sources import Sources
from isogloss.features.built_in_languages import BuiltInTranslator
from isogloss.features.translation.example_files import read_examples

BETWEEN = ("--from", "qaa", "--into", "qad", "--translator", "built-in")


@pytest.fixture
def text(tmp_path):
    lines = [example.text for example in Sources().examples("rawtext", "qaa", "dev", examples=3)]
    path = tmp_path / "text.txt"
    path.write_text("\n".join([lines[0], "", *lines[1:], "  "]) + "\n", encoding="utf-8")
    return path, [lines[0], "", *lines[1:], "  "]


def test_every_line_gives_one_line_and_an_empty_one_an_empty_one(command, text):
    path, lines = text
    translator = BuiltInTranslator("qaa", "qad")
    expected = [translator.translate(line) if line.strip() else "" for line in lines]
    perfect = (*BETWEEN, "--set", "noise=0.0")
    assert command("translate", "--text", path, *perfect).out.splitlines() == expected
    piped_result = command(
        "translate", "--text", "-", *perfect, "--out", "-", stdin=path.read_text(encoding="utf-8")
    )
    assert piped_result.out.splitlines() == expected
    as_json = command("translate", "--text", path, *perfect, "--json")
    assert [line["text"] for line in as_json.lines] == expected
    folder = path.with_name("out.txt")
    result = command("translate", "--text", path, *perfect, "--out", folder, "--quiet")
    assert (result.status, result.out) == (0, "")
    assert folder.read_text(encoding="utf-8").splitlines() == expected
    assert sorted(field.name for field in folder.parent.iterdir()) == ["out.txt", "text.txt"]


def test_a_split_is_translated_with_its_labels_and_once(command, tmp_path):
    texts = ("translate", "xnli", *BETWEEN, "--split", "dev", "--examples", 5, "--out", tmp_path / "runs")
    (row,) = command(*texts, "--json").lines
    assert (row["examples"], row["translated"], row["lost"], row["warnings"]) == (5, 5, 0, [])
    file = Path(row["file"])
    examples = list(read_examples(file))
    assert examples == Sources().examples("xnli", "qaa-qad", "dev", examples=5)
    time_before = file.stat().st_mtime_ns
    again = command(*texts)
    assert again.out.splitlines()[-1] == row["file"]
    assert "built-in" in again.out
    assert file.stat().st_mtime_ns == time_before
    assert command(*texts, "--quiet").out == row["file"] + "\n"


@pytest.mark.slow
def test_bitext_is_scored_and_what_is_lost_is_told(command, tmp_path):
    texts = ("--examples", 20, "--split", "dev", "--out", tmp_path)
    (row,) = command("translate", "bitext", *BETWEEN, *texts, "--json").lines
    assert row["metric"] == "chrf"
    assert 0.5 < row["score"] <= 1
    result = command("translate", "squad", *BETWEEN, *texts, "--set", "noise=0.4")
    assert "examples" in result.err


@pytest.mark.nightly
@pytest.mark.slow
def test_a_translator_that_a_run_trained_is_named_by_its_folder(command, tmp_path, text):
    recipe = tmp_path / "small.toml"
    recipe.write_text(
        'title = "Small"\n[translate]\nname = "seq2seq"\n[translate.train]\nbitext = "bitext"\n'
        'pairs = ["qaa-qad"]\nexamples = 30\nsteps = 2\nbatch_subwords = 128\nlayers = 1\n'
        "dim = 16\nheads = 2\nfeed_forward = 16\nvocabulary = 200\nlongest = 40\n"
    )
    single_texts = ("--engine", "serial", "--quiet", "--no-report")
    assert command("run", recipe, "--out", tmp_path / "runs", *single_texts).status == 0
    (record,) = (tmp_path / "runs").glob("*/record.json")
    path, lines = text
    texts = ("--from", "qaa", "--into", "qad", "--model", record.parent, "--set", "longest=16")
    result = command("translate", "--text", path, *texts)
    assert result.status == 0, result
    assert len(result.out.splitlines()) == len(lines)
    refused_result = command(
        "translate", "--text", path, "--from", "qaa", "--into", "qab", "--model", record.parent
    )
    assert "'qab'" in refused_result.message


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("xnli --from qaa", "--into"),
        ("xnli --into qab", "--from is missing"),
        ("--from qaa --into qab", "corpus '' and --text ''"),
        ("xnli --text x.txt --from qaa --into qab", "corpus 'xnli' and --text 'x.txt'"),
        ("xnil --from qaa --into qab --translator built-in", "no corpus 'xnil'. Did you mean 'xnli'?"),
        (
            "xnli --from qaa --into qab --translator bulit-in",
            "no translator 'bulit-in'. Did you mean 'built-in'?",
        ),
        ("xnli --from qaa --into qab", "or take the translator of these languages, built-in."),
        ("xnli --from en --into sw --translator built-in", "built-in"),
        ("xnli --from English --into sw --translator built-in", "--from:"),
        (
            "xnli --from qaa --into qab --translator built-in --split tset",
            "--split: no split 'tset'. Did you mean 'test'",
        ),
        (
            "xnli --from qaa --into qab --translator built-in --set nosie=1",
            "nosie:",
        ),
        ("xnli --from qaa --into qab --set name=built-in", "--set name=…"),
        (
            "xnli --from qaa --into qab --translator built-in --set noise=[0.1,0.2]",
            "--set: several translators",
        ),
        (
            "--text nothere.txt --from qaa --into qab --translator built-in",
            "nothere.txt:",
        ),
        ("--text x --from eng_Latn --into en --translator built-in", "--into:"),
        ("--text x --from qaa --into qab --model ./nothere", "nothere:"),
        (
            "--text x --from qaa --into qab --translator built-in --examples 1",
            "whole",
        ),
        ("--text x --from qaa --into qab --translator built-in --out y.gz", "output"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(command, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").write_text("a\n")
    assert message in command("translate", *arguments.split()).message
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_a_text_of_another_language_is_refused_and_leaves_no_file(command, tmp_path):
    (tmp_path / "x").write_text("hello there\n")
    result = command("translate", "--text", tmp_path / "x", *BETWEEN, "--out", tmp_path / "y")
    assert "hello" in result.message
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
