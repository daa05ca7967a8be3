"""Warnings of finished runs are printed at the end of ``run``, each kind once."""

from types import SimpleNamespace

import pytest

from isogloss.cli.display import Display
from isogloss.cli.runs import _show_outcome
from isogloss.store.store import Outcome
from tiny import tiny


def shown_warnings(capsys, *warnings, **display) -> list[str]:
    records = [SimpleNamespace(id=f"run{n}", warnings=warning) for n, warning in enumerate(warnings)]
    _show_outcome(SimpleNamespace(outcome=Outcome(), records=records), Display(**display))
    return capsys.readouterr().err.splitlines()[1:]


def test_a_warning_names_its_run(capsys):
    assert shown_warnings(capsys, (), ("all the same",)) == ["isogloss: run run1: all the same"]


def test_warnings_that_differ_in_their_numbers_alone_are_one_line_with_their_count(capsys):
    lines = shown_warnings(capsys, ("stuck: 0.31", "few en"), ("stuck: 0.334",), ("stuck: 12",), ("few de",))
    assert lines == [
        "isogloss: run run0 and 2 more: stuck: 0.31",
        "isogloss: run run0: few en",
        "isogloss: run run3: few de",
    ]


def test_a_run_that_warns_twice_of_one_kind_counts_once(capsys):
    assert shown_warnings(capsys, ("few 1", "few 2")) == ["isogloss: run run0: few 1"]


def test_quiet_prints_none(capsys):
    assert shown_warnings(capsys, ("all the same",), quiet=True) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_a_model_stuck_at_chance_is_told_of_when_it_is_made_and_when_it_was_there(command, tmp_path):
    texts = ("--out", tmp_path / "runs", "--jobs", 1, "--no-report", "--scale", "least")
    stuck = ("--set", "grid.optimization.learning_rate=1e-9")
    for _ in range(2):
        lines = command("run", tiny(tmp_path), *texts, *stuck).err.splitlines()
        messages = [line for line in lines if "stuck at chance" in line]
        assert len(messages) == 1
        assert messages[0].startswith("isogloss: run ")
