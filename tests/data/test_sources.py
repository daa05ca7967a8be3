"""Splits read again: from memory while nothing changed, within a limit."""

import pytest

from isogloss.core.errors import DataError
from isogloss.data.sources import RecentExamples, Sources


def counted(calls, *examples):
    def read():
        calls.append(examples)
        return iter(examples)

    return read


def test_a_split_is_read_once_and_given_as_a_list_of_its_own():
    recent, calls = RecentExamples(10), []
    first = recent.examples("a", counted(calls, 1, 2))
    first.clear()
    assert recent.examples("a", counted(calls, 1, 2)) == [1, 2]
    assert len(calls) == 1


def test_the_split_not_asked_for_longest_is_forgotten_when_there_are_too_many_examples():
    recent, calls = RecentExamples(5), []
    for name in ("a", "b", "a", "c"):
        recent.examples(name, counted(calls, name, name))
    assert len(calls) == 3
    recent.examples("a", counted(calls, "a", "a"))
    assert len(calls) == 3
    recent.examples("b", counted(calls, "b", "b"))
    assert len(calls) == 4


def test_a_split_longer_than_the_limit_is_not_kept_and_drives_nothing_out():
    recent, calls = RecentExamples(3), []
    recent.examples("short", counted(calls, 1))
    for _ in range(2):
        assert recent.examples("long", counted(calls, 1, 2, 3, 4)) == [1, 2, 3, 4]
    recent.examples("short", counted(calls, 1))
    assert len(calls) == 3


def test_a_file_that_changed_is_read_anew(tmp_path):
    folder = tmp_path / "rawtext" / "en"
    folder.mkdir(parents=True)
    file = folder / "train.txt"
    file.write_text("one\ntwo\n", encoding="utf-8")
    sources = Sources(str(tmp_path))
    assert [one.text for one in sources.examples("rawtext", "en", "train")] == ["one", "two"]
    file.write_text("three\n", encoding="utf-8")
    assert [one.text for one in sources.examples("rawtext", "en", "train")] == ["three"]
    file.unlink()
    with pytest.raises(DataError):
        sources.examples("rawtext", "en", "train")
