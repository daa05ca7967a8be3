"""compare: a table for each pair of systems, JSON lines for machines, one line where it is refused."""

import shutil

import pytest

import isogloss
from isogloss.core.records import PREDICTIONS


def test_compare_prints_a_table_with_marks_interval_effect_and_power(command, tiny_runs):
    result = command("compare", tiny_runs, "--against", "source-only")
    assert (result.status, result.err) == (0, "")
    assert "wikiann ner, shipped, source qaa: bilingual against source-only, span_f1 on dev" in result.out
    for head in ("language", "baseline", "difference", "interval", "p (Holm)", "needed"):
        assert head in result.out
    assert "permutation test that swaps whole sentences of all seeds" in result.out
    assert "1 point with 80 % power" in result.out.replace("\n", " ")
    assert "equivalent" not in result.out


def test_compare_gives_machines_a_line_a_comparison(command, tiny_runs):
    lines = command("compare", tiny_runs, "--against", "source-only", "--points", 5, "--json").lines
    assert [line["language"] for line in lines] == ["qaa", "qab"]
    for line in lines:
        assert (line["method"], line["baseline_method"]) == ("bilingual", "source-only")
        assert (line["seeds"], line["examples"]) == (2, 8)
        assert 0 < line["p_value"] <= line["p_holm"] <= 1
        assert line["p_units"] <= line["p_value"]
        assert 0 < line["p_examples"] <= line["p_examples_holm"] <= 1
        assert line["low"] <= line["difference"] <= line["high"]


def test_compare_tests_equivalence_at_a_margin_in_points(command, tiny_runs):
    request = ("compare", tiny_runs, "--against", "source-only")
    expected = isogloss.compare_runs(tiny_runs, against="source-only", margin=0.3).frame
    lines = command(*request, "--margin", 30, "--json").lines
    assert [line["p_equivalence"] for line in lines] == pytest.approx(list(expected["p_equivalence"]))
    assert {line["margin"] for line in lines} == {0.3}
    output = command(*request, "--margin", 30).out
    assert "p (equivalent)" in output and "less than 30 points" in " ".join(output.split())
    assert "--margin: found 0;" in command(*request, "--margin", 0).message


def test_compare_takes_a_measure_beside_the_metric(command, tiny_runs):
    texts = ("compare", tiny_runs, "--against", "source-only", "--measure", "word_f1", "--json")
    assert {line["measure"] for line in command(*texts).lines} == {"word_f1"}


@pytest.mark.slow
def test_compare_refuses_what_it_does_not_know_with_the_nearest(command, tiny_runs):
    message = command("compare", tiny_runs, "--against", "bilinguall").message
    assert "no method, encoder, system or run 'bilinguall'. Did you mean 'bilingual'?" in message
    assert "nothing" in command("compare", tiny_runs.parent, "--against", "x").message
    assert "missing option '--against'" in command("compare", tiny_runs).message


def test_compare_of_runs_without_predictions_tests_seeds_and_says_which(command, tiny_runs, tmp_path):
    shutil.copytree(tiny_runs, tmp_path / "old")
    for path in (tmp_path / "old").glob(f"*/{PREDICTIONS}"):
        path.unlink()
    *lines, note = command("compare", tmp_path / "old", "--against", "source-only", "--json").lines
    assert {(line["examples"], line["p_examples"]) for line in lines} == {(0, None)}
    assert all(0 < line["p_value"] <= 1 for line in lines)
    assert "4 score runs without predictions" in note["note"]
    assert "Delete record.json in these folders and run the recipe again" in note["note"]


def test_compare_explains_every_p(study, command):
    folder = study("transfer").runs[0].folder.parent
    result = command("compare", folder, "--against", "source-only")
    text = " ".join(result.out.split())
    for message in (
        "(95 %)",
        "ud upos, shipped, source qaa: bilingual against source-only, accuracy on test",
    ):
        assert message in text
    assert "1 point with 80 % power" in text


def test_runs_that_are_not_finished_are_named_where_something_is_missing(command, tiny_runs, tmp_path):
    shutil.copytree(tiny_runs, tmp_path / "part")
    records = sorted((tmp_path / "part").glob("*/record.json"))
    for record in records:
        record.unlink()
    message = command("compare", tmp_path / "part", "--against", "source-only").message
    assert records[0].parent.name in message and f"{len(records) - 3} more" in message
    message = command("results", tmp_path / "part", "--to", tmp_path / "results").message
    assert records[0].parent.name in message
