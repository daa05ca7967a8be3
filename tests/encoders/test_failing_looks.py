"""A disk that fails once while a model is loaded is an outage, never another model or a wrong name.

transformers asks with ``os.path.isfile`` whether a file is there. An error of the disk is a no.
"""

import builtins
import errno
import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from isogloss.core.errors import StorageError
from isogloss.encoders.folders import existing_folder, load_encoder_config, read_json
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer


class FailingDisk:
    """A disk on which one call below a folder fails: looking at a file, or opening one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = str(folder)
        self.calls = 0
        self.failing = 0
        stat = os.stat
        opening = io.open
        monkeypatch.setattr(
            os, "stat", lambda path, *remainder, **more: self.check(path) or stat(path, *remainder, **more)
        )
        for module in (builtins, io):
            monkeypatch.setattr(
                module,
                "open",
                lambda path, *remainder, **more: self.check(path) or opening(path, *remainder, **more),
            )

    def check(self, path: object) -> None:
        if str(path).startswith(self.folder):
            self.calls += 1
            if self.calls == self.failing:
                raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))


def read_tokenizer(folder: Path) -> object:
    tokenizer = load_tokenizer(folder)
    return tokenizer(["Abc déf ghi"])["input_ids"], tokenizer.special_tokens_map


def read_weights(folder: Path) -> object:
    return {
        name: float(weight.detach().double().sum()) for name, weight in load_model(folder).named_parameters()
    }


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize(
    "read",
    [
        read_tokenizer,
        read_weights,
        existing_folder,
        load_encoder_config,
        lambda path: read_json(path / "config.json"),
    ],
    ids=["tokenizer", "model", "folder", "config", "json"],
)
def test_one_failing_look_is_an_outage_or_changes_nothing(
    read: Callable[[Path], object], bert_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = read(bert_folder)
    disk = FailingDisk(monkeypatch, bert_folder)
    assert read(bert_folder) == expected
    calls = disk.calls
    assert calls
    outages = 0
    for failing in range(1, calls + 1):
        disk.calls = 0
        disk.failing = failing
        try:
            assert read(bert_folder) == expected, failing
        except (StorageError, OSError) as error:
            outages += 1
            assert str(bert_folder) in str(error)
    assert outages > calls // 2
    disk.failing = 0
    assert read(bert_folder) == expected
    assert os.stat.__name__ == "<lambda>"  # What was there before is back.
