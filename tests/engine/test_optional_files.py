"""No call below the user's cache that fails ends a run, changes a record or prints a line."""

import errno
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from failing_files import Faults, failing
from isogloss import cli
from isogloss.core.untrusted import user_cache
from isogloss.data.sources import Sources
from isogloss.engine import work
from isogloss.engine.devices import Room
from isogloss.engine.work import Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.described_corpora.python_rows import write_rows
from isogloss.features.fetching import hub_address
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES
from isogloss.store.store import Store
from killed import records
from tiny import tiny

RECIPE = """
title = "Optional"
encoder = "shipped"

[grid]
corpus = "wikiann"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 4
dev_examples = 4
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 4, precision = "float32" }

[[grid.method]]
name = "source-only"
"""
ERRORS = ("ENOSPC", "EDQUOT", "EIO", "EACCES", "EROFS", "ESTALE", "ENOLCK")

COMMIT = "0123456789" * 4


def run(folder: Path) -> object:
    """Make the runs of a recipe on the command line."""
    out_folder = folder / "runs"
    shutil.rmtree(out_folder, ignore_errors=True)
    words = ["run", str(tiny(folder, RECIPE)), "--out", str(out_folder), "--engine", "serial", "--no-report"]
    with pytest.raises(SystemExit) as end:
        cli.main([*words, "--quiet"])
    return end.value.code, records(out_folder)


def pin(_: Path) -> object:
    """Resolve the commit of a dataset, and store it."""
    return hub_address.pin_commit("somebody/something@main", user_cache() / "hub")


def write(_: Path) -> object:
    """Write rows that were given in memory, and read them."""
    rows = {"en": {"train": [{"text": "good", "label": "pos"}, {"text": "bad", "label": "neg"}]}}
    return write_rows({"kind": "text"}, rows)


def place(folder: Path) -> object:
    """Run in parallel to other runs of this machine, as in one of several processes."""
    root = folder / "placed"
    shutil.rmtree(root, ignore_errors=True)
    (root / LEASES).mkdir(parents=True)
    context = RunContext(store=Store(root), sources=Sources(), precision="float32")
    states = []
    Work(context, [RUN], lambda event: states.append(event.state), Room(str(root))).work()
    return states, records(root)


RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
ACTS: tuple[Callable[[Path], object], ...] = (place, pin, write)


def content(answer: object) -> object:
    """Return the contents of the files next to a written one, wherever it is."""
    if not isinstance(answer, Path):
        return answer
    return {file.name: file.read_bytes() for file in answer.parent.iterdir()}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(hub_address, "_commit", lambda *_: COMMIT)
    monkeypatch.setattr(work, "CHECK_EVERY", 0.001)
    monkeypatch.setattr(work, "PATIENCE", 0.01)
    return tmp_path / "home"


def calls_of(act: Callable[[Path], object], folder: Path, cache: Path) -> tuple[object, list[str]]:
    """Return the answer of an undisturbed act, and its calls below the cache."""
    act(folder)  # Modules are loaded by now.
    shutil.rmtree(cache)
    with failing(Faults(cache)) as faults:
        answer = act(folder)
    return content(answer), faults.calls


def check(act, index: int, kind: str, tmp_path: Path, cache: Path, expected: object, capsys, *, stays: bool):
    shutil.rmtree(cache, ignore_errors=True)
    capsys.readouterr()
    with failing(Faults(cache, index, getattr(errno, kind), stays)) as faults:
        answer = act(tmp_path)
    assert content(answer) == expected, (faults.calls[index - 1], kind)
    assert tuple(capsys.readouterr()) == ("", "")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("stays", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("act", [run, *ACTS])
def test_a_call_below_the_cache_may_fail(act, stays, tmp_path, cache, capsys):
    expected, calls = calls_of(act, tmp_path, cache)
    assert calls
    for index, kind in ((1, "EIO"), (len(calls) // 2, "ENOSPC")):
        check(act, index, kind, tmp_path, cache, expected, capsys, stays=stays)


@pytest.mark.nightly
@pytest.mark.parametrize("stays", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("kind", ERRORS)
@pytest.mark.parametrize("act", [run, *ACTS])
def test_every_call_below_the_cache_may_fail(act, kind, stays, tmp_path, cache, capsys):
    if act is run and kind not in ("ENOSPC", "EIO"):
        pytest.skip("a whole run takes long, and does what the others do")
    expected, calls = calls_of(act, tmp_path, cache)
    wrong = []
    for index in range(1, len(calls) + 1):
        try:
            check(act, index, kind, tmp_path, cache, expected, capsys, stays=stays)
        except Exception as error:
            wrong.append(f"{index} {calls[index - 1]}: {type(error).__name__} {error!s:.200}")
    assert not wrong, f"{len(wrong)} of {len(calls)}: {wrong}"
