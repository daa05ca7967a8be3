"""Recorded wordings belong to existing tests. The helper misses neither facts nor wordings."""

import pytest

import says
from isogloss.core.errors import ConfigError


def test_every_wording_is_of_a_test():
    assert says.without_test() == set()


def test_a_fact_that_is_missing_is_named():
    with pytest.raises(AssertionError, match="'qab'"), says.says(ConfigError, "'qaa'", "'qab'"):
        raise ConfigError("no language 'qaa'")


def test_another_wording_is_missed():
    with pytest.raises(AssertionError, match="--record-messages"), says.says(ConfigError, "'qaa'"):
        raise ConfigError("no language 'qaa'")


def test_folders_of_the_day_are_no_part_of_a_wording(tmp_path, monkeypatch):
    monkeypatch.setattr(says, "RECORDED", {})
    monkeypatch.setattr(says, "WORDINGS", tmp_path / "messages.json")
    monkeypatch.setattr(says, "is_recorded_anew", True)
    says.check_wording(f"{tmp_path}/a.tsv:1: an empty line", "a.tsv:1")
    assert list(says.RECORDED.values()) == ["TMP/a.tsv:1: an empty line"]
