"""Whatever part of an outdated checkpoint is gone when its process dies, nothing is called damaged."""

import re
import shutil
from pathlib import Path

import pytest
import torch

from isogloss.core.errors import StorageError
from isogloss.core.identity import identity
from isogloss.data.sources import Sources
from isogloss.engine.damage import quarantine_checkpoints
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.store import WORK, Store
from isogloss.training.checkpoints import Checkpoints, State
from toys import toy

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "checksums.json")


class Killed(BaseException):
    """Raised where a process dies."""


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / identity(RUN) / WORK, 1)


def save(checkpoints: Checkpoints, step: int) -> None:
    model = toy()
    checkpoints.save(model, torch.optim.AdamW(model.parameters()), State(step, {}, None))


def damage(checkpoints: Checkpoints) -> str:
    root = checkpoints.folder.parents[1]
    context = RunContext(store=Store(root), sources=Sources(), precision="float32")
    return quarantine_checkpoints(context.store, RUN)


def test_a_process_that_dies_while_it_removes_the_last_but_one_leaves_no_damage(checkpoints):
    save(checkpoints, 1)

    remove = shutil.rmtree

    def die(path: str | Path, **options: object) -> None:
        if "checkpoint-000000001" in str(path):
            raise Killed
        remove(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", die)
        with pytest.raises(Killed):
            save(checkpoints, 2)
    assert {path.name for path in checkpoints.folder.iterdir() if path.name[0] != "."} == {
        "checkpoint-000000002"
    }
    assert damage(checkpoints) == ""


@pytest.mark.parametrize("removed_files", [FILES[:index] for index in range(1, len(FILES) + 1)], ids=len)
def test_an_older_checkpoint_that_is_half_removed_is_not_looked_at(checkpoints, removed_files):
    """Earlier versions removed it in its place."""
    save(checkpoints, 1)
    shutil.copytree(checkpoints.folder / "checkpoint-000000001", checkpoints.folder / "old")
    save(checkpoints, 2)
    (checkpoints.folder / "old").rename(checkpoints.folder / "checkpoint-000000001")
    for name in removed_files:
        (checkpoints.folder / "checkpoint-000000001" / name).unlink(missing_ok=True)
    assert damage(checkpoints) == ""


def test_the_last_but_one_is_used_where_the_last_is_damaged(checkpoints):
    save(checkpoints, 1)
    shutil.copytree(checkpoints.folder / "checkpoint-000000001", checkpoints.folder / "old")
    save(checkpoints, 2)
    (checkpoints.folder / "old").rename(checkpoints.folder / "checkpoint-000000001")
    (checkpoints.folder / "checkpoint-000000002" / "state.json").write_text("{}")
    assert re.search(r"checkpoint-000000002: .*\(state\.json: 2 bytes", damage(checkpoints))
    assert checkpoints.notes() == {}


@pytest.mark.parametrize("kind", [OSError(5, "Input/output error"), ValueError("(os error 5)")])
def test_a_checkpoint_that_the_disk_does_not_give_is_not_called_damaged(checkpoints, kind, monkeypatch):
    save(checkpoints, 1)

    def fail(*_: object, **__: object) -> str:
        raise kind

    monkeypatch.setattr("isogloss.training.checkpoints.read_file", fail)
    with pytest.raises(StorageError) as error:
        checkpoints.notes()
    assert "cannot read (Input/output error)" in str(error.value)
    assert "damaged" not in str(error.value)
