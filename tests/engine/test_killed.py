"""Killed at any moment and started again, a recipe comes to the records of one that was not disturbed."""

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import isogloss
from forked import Forked
from isogloss.store.leases import leases_in
from isogloss.store.store import WORK
from killed import (
    ALONE,
    PATIENCE,
    command,
    count_runs,
    descendants,
    folders,
    is_alive,
    left,
    records,
    wait_until,
)
from says import check_wording
from tiny import as_precise_as


def is_in_training(path: Path) -> bool:
    """Tell whether a model is half trained."""
    return any(path.glob(f"*/{WORK}/checkpoint-*"))


def is_in_path(path: Path) -> bool:
    """Tell whether both models are there, and the path between them has begun."""
    return len(list(path.glob("*/model"))) == 2 and len(folders(path)) == 3


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(("engine", "moment"), [("processes", is_in_training), ("serial", is_in_path)])
def test_killed_and_started_again_it_comes_to_the_same(
    undisturbed_study, engine: str, moment: Callable[[Path], bool]
):
    folder, undisturbed_fields = undisturbed_study
    field = folder / f"{engine}-{moment.__name__}"
    running = Forked(command(folder, field.name, engine), stdout=subprocess.DEVNULL)
    wait_until(lambda: moment(field) or running.poll() is not None)
    child_descendants = descendants(running.pid)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL, "it was done before it could be killed"
    wait_until(lambda: not any(is_alive(child_descendant) for child_descendant in child_descendants))
    assert records(field) != undisturbed_fields
    begun = records(field)
    if engine == "processes":  # Who outlives the killed one gives its runs back: none has died with a run.
        assert not any(leases_in(field).history(path.name).deaths for path in folders(field))

    isogloss.run(folder / "r.toml", out=field, jobs=1, report=False)
    assert records(field) == undisturbed_fields
    assert begun.items() <= undisturbed_fields.items()
    assert left(field) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_what_another_process_left_unfinished_is_taken_over(undisturbed_study):
    folder, undisturbed_value = undisturbed_study
    out_folder = folder / "taken"
    first_item = Forked(command(folder, "taken", "serial"), stdout=subprocess.DEVNULL)
    wait_until(lambda: is_in_training(out_folder))
    first_item.send_signal(signal.SIGSTOP)
    second = Forked(command(folder, "taken", "serial"), stdout=subprocess.DEVNULL)
    wait_until(lambda: records(out_folder))  # All that does not need the stopped one's model.
    assert second.poll() is None
    first_item.kill()
    first_item.wait()
    assert second.wait(timeout=PATIENCE) == 0
    assert records(out_folder) == undisturbed_value
    assert count_runs(out_folder) == dict.fromkeys(undisturbed_value, 1)
    assert left(out_folder) == []


@pytest.mark.slow
def test_asked_to_end_it_writes_a_checkpoint_and_leaves(undisturbed_study):
    folder, _ = undisturbed_study
    field = folder / "asked"
    (folder / "alone.toml").write_text(ALONE)
    words = command(folder, field.name, "processes", "alone.toml")
    running = Forked(words, stderr=subprocess.PIPE)
    wait_until(lambda: is_in_training(field))
    child_descendants = descendants(running.pid)
    running.terminate()
    _, output = running.communicate(timeout=PATIENCE)
    assert running.returncode == 143
    assert output.startswith("isogloss:")
    wait_until(lambda: not any(is_alive(child_descendant) for child_descendant in child_descendants))
    steps = [int(path.name.rpartition("-")[2]) for path in field.glob(f"*/{WORK}/checkpoint-*")]
    assert steps
    assert any(step % 30 for step in steps)
    isogloss.run(folder / "alone.toml", out=field, jobs=1, report=False)
    undisturbed_folder = as_precise_as(folder, folder / "alone")
    isogloss.run(folder / "alone.toml", out=undisturbed_folder, jobs=1, report=False)
    assert records(field) == records(undisturbed_folder)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_terminal_that_is_closed_is_heeded_as_a_request_to_end(undisturbed_study):
    """The terminal's end, and whatever it had started, get SIGHUP. What is printed to it then is an error."""
    folder, _ = undisturbed_study
    out_folder = folder / "closed"
    with hangups(signal.SIG_DFL):  # Whatever runs the tests may ignore them.
        running, terminal = on_a_terminal(folder, out_folder)
    child_descendants = descendants(running.pid)
    os.close(terminal)
    assert running.wait(timeout=PATIENCE) == 128 + signal.SIGHUP
    wait_until(lambda: not any(is_alive(child_descendant) for child_descendant in child_descendants))
    assert any(out_folder.glob(f"*/{WORK}/checkpoint-*"))
    assert not list(out_folder.glob("*/failed.json"))


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_that_ignores_hangups_goes_on_though_its_terminal_is_closed(undisturbed_study):
    folder, _ = undisturbed_study
    out_folder = folder / "disowned"
    with hangups(signal.SIG_IGN):
        running, terminal = on_a_terminal(folder, out_folder)
    os.close(terminal)
    assert running.wait(timeout=PATIENCE) == 0
    assert len(records(out_folder)) == 1
    assert left(out_folder) == []


@contextmanager
def hangups(handlers: signal.Handlers) -> Iterator[None]:
    """Let what is started meanwhile take SIGHUP so."""
    signal_before = signal.signal(signal.SIGHUP, handlers)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, signal_before)


def on_a_terminal(folder: Path, path: Path) -> tuple[Forked, int]:
    """Start a run on a separate terminal, and return it with the terminal's other end during training."""
    (folder / "alone.toml").write_text(ALONE)
    words = command(folder, path.name, "processes", "alone.toml")
    words.remove("--quiet")
    ours, theirs = pty.openpty()
    running = Forked(words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    wait_until(lambda: any(path.glob(f"*/{WORK}")) and is_in_batches(ours))
    return running, ours


def is_in_batches(terminal: int) -> bool:
    """Tell whether a training has said how far it is. Whoever prints must be read."""
    return b"fine-tuning" in os.read(terminal, 100_000)


@pytest.mark.nightly
@pytest.mark.slow
def test_an_interruption_is_one_line_and_leaves_no_process(undisturbed_study):
    folder, undisturbed_fields = undisturbed_study
    words = command(folder, "interrupted", "processes")
    running = Forked(words, stderr=subprocess.PIPE, start_new_session=True)
    wait_until(lambda: is_in_training(folder / "interrupted"))
    child_descendants = descendants(running.pid)
    os.killpg(running.pid, signal.SIGINT)  # What a terminal does at Ctrl-C.
    _, output = running.communicate(timeout=PATIENCE)
    assert running.returncode == 130
    assert output.count("\n") == 1
    check_wording(output, "isogloss: interrupted")
    wait_until(lambda: not any(is_alive(child_descendant) for child_descendant in child_descendants))
    assert records(folder / "interrupted").items() <= undisturbed_fields.items()
