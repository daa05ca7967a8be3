"""advise: a table, what would change the advice and its regret; JSON lines; one line where it is refused."""

import csv
from pathlib import Path

import pytest
from gain_tables import gains_of

from isogloss import advise, held_out_regret
from isogloss.features.advising.evidence import Gain
from made_up_runs import small_study

GAINS = gains_of(
    {"many labels": [20, 21, 22, 21, 20], "few labels": [12, 13, 14, 13, 12], "free": [5, 6, 7, 6, 5]},
    labels={"many labels": 100, "few labels": 20},
)


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    path = tmp_path / "gains.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([Gain._fields, *GAINS])
    return path


def test_the_table_has_every_option_and_the_lines_below_state_the_advice(command, evidence):
    result = command("advise", "--evidence", evidence, "--language", "sw", "--hours", 2, "--minutes", 3)
    assert (result.status, result.err) == (0, "")
    text = " ".join(result.out.split())
    for part in ("upos in Swahili (sw), within 2.0 hours", "do this", "takes 5.1 hours", "few labels +12.8"):
        assert part in text
    assert "Measured in Swahili (sw) itself: many labels +20.0, few labels +12.0 and free +5.0" in text
    assert "with 5.1 hours: many labels (+20.8)" in text
    assert "best option in 5 of 5 languages" in text and "always free 7.0" in text
    assert "assumption" not in text
    assert "2 minutes to label an example, an assumption" in command("advise", "--evidence", evidence).out


def test_json_lines_have_what_the_functions_return(command, evidence):
    lines = command("advise", "--evidence", evidence, "--hours", 2, "--json").lines
    advice = advise("upos", hours=2, gains=GAINS)
    options = [line for line in lines if "verdict" in line]
    assert [(line["name"], line["gain"]) for line in options] == [
        (option.name, pytest.approx(option.gain)) for option in advice.options
    ]
    assert [line["name"] for line in options if line["advised"]] == ["few labels"]
    [stated] = [line for line in lines if "advice" in line]
    assert stated["advice"] == repr(advice) and stated["changes"] == advice.changes()
    regrets = [line for line in lines if "rule" in line]
    assert [(line["rule"], line["regret"]) for line in regrets] == [
        (regret.rule, pytest.approx(regret.regret))
        for regret in held_out_regret("upos", hours=2, gains=GAINS)
    ]


def test_the_corpus_gives_the_task_and_labels_that_exist(command, evidence, tmp_path):
    for language, sentences in (("sw", 20), ("yo", 3)):
        folder = tmp_path / "data" / "masakhapos" / language
        folder.mkdir(parents=True)
        (folder / "train.txt").write_text("\n".join(["nyumba NOUN\n"] * sentences), encoding="utf-8")
    request = ("advise", "--evidence", evidence, "--corpus", "masakhapos", "--data", tmp_path / "data")
    text = " ".join(command(*request, "--language", "sw", "--hours", 0.5).out.split())
    assert "20 examples of masakhapos have labels" in text and "sw: few labels" in text
    assert "yo: free" in " ".join(command(*request, "--language", "yo", "--hours", 0.5).out.split())
    assert "hi: free" in " ".join(command(*request, "--language", "hi", "--hours", 0.5).out.split())


def test_a_broken_split_of_the_corpus_is_an_error(command, evidence, tmp_path):
    folder = tmp_path / "data" / "masakhapos" / "sw"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text("nyumba NOUN\nnyumba\n", encoding="utf-8")
    request = ("advise", "--evidence", evidence, "--corpus", "masakhapos", "--data", tmp_path / "data")
    assert "train.txt:2" in command(*request, "--language", "sw").message


def test_runs_are_evidence_too(command, tmp_path):
    small_study(tmp_path)
    text = " ".join(command("advise", tmp_path).out.split())
    assert "bilingual +20.0" in text and "1 of 4" in text and "Regret is not known" in text


def test_unclear_requests_are_refused_in_a_line(command, evidence, tmp_path):
    small_study(tmp_path)
    assert "Give either" in command("advise", tmp_path, "--evidence", evidence).message
    assert "Name one with --task" in command("advise").message
    assert "'upo'" in command("advise", "--task", "upo").message
    assert "--task" in command("advise", "--corpus", "xnli", "--evidence", evidence).message
    for options in (("--hours", -1), ("--hours", "nan"), ("--minutes", "inf")):
        assert "found" in command("advise", "--evidence", evidence, *options).message
    assert "no_such.csv" in command("advise", "--evidence", tmp_path / "no_such.csv").message
    assert "'qqqq'" in command("advise", "--evidence", evidence, "--encoder", "qqqq").message
    assert "de, fr" in command("advise", "--evidence", evidence, "--language", "de,fr").message
