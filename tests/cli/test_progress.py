"""Verbs that read whole folders of runs report progress, unless it is turned off."""

import pytest

from isogloss.cli import display
from isogloss.core.records import RECORD

SECONDS = display.FIRST_LINE_SECONDS

VERBS = {
    "compare": (("compare", "FOLDER", "--against", "source-only"), ("records", "comparisons")),
    "choose": (("choose", "FOLDER"), ("records",)),  # It reads all, and then finds nothing to choose among.
    "show": (("show", "RUN", "--in", "FOLDER"), ("runs",)),
    "list": (("list", "runs", "--in", "FOLDER"), ("records",)),
}
"""Commands and their expected progress."""


@pytest.fixture(params=VERBS)
def verb_and_progress(request, study_folder):
    folder = study_folder("transfer")
    words, verb = VERBS[request.param]
    places = {"FOLDER": folder, "RUN": min(path.parent.name for path in folder.glob(f"*/{RECORD}"))}
    return [places.get(word, word) for word in words], verb


def test_what_takes_over_two_seconds_tells_progress(command, verb_and_progress, monkeypatch):
    words, messages = verb_and_progress
    quiet = command(*words, "--quiet")
    monkeypatch.setattr(display, "FIRST_LINE_SECONDS", SECONDS)
    seconds = iter(range(1, 10_000))
    monkeypatch.setattr(display.time, "monotonic", lambda: next(seconds))
    result = command(*words)
    assert (result.status, result.out) == (quiet.status, quiet.out)
    first_line = result.err.splitlines()[0]
    assert first_line.startswith(f"  {messages[0]}: 2/")
    assert SECONDS == 2


@pytest.mark.usefixtures("impatient")
def test_all_that_is_read_or_computed_is_told(command, verb_and_progress):
    words, messages = verb_and_progress
    lines = command(*words).err.splitlines()
    assert {line.strip().partition(":")[0] for line in lines} >= set(messages)


@pytest.mark.each_value
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("option", ["--quiet", "--json"])
def test_quiet_verbs_and_machines_are_told_nothing(command, verb_and_progress, option):
    words, _ = verb_and_progress
    result = command(*words, option)
    assert result.err == "" or result.message
    assert "progress" not in result.out
