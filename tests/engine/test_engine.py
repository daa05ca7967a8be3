"""Records are equal to the byte, serial or parallel, interrupted or not, and runs are never repeated."""

import errno
import json
import multiprocessing
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import isogloss
from each import each
from forked import Forked
from isogloss.core.checksums import CHECKSUMS
from isogloss.core.errors import ConfigError, DataError, DivergedError, ModelError, StorageError
from isogloss.core.progress import Progress
from isogloss.core.records import PLAN, PREDICTIONS, RECORD, read_record
from isogloss.engine import work
from isogloss.engine.engines import Execution
from isogloss.runs.fine_tune import FineTune
from isogloss.store.leases import LEASES, leases_in
from tiny import RUNS, TINY, as_precise_as, tiny

DIVERGING = TINY.replace('name = "bilingual"', 'name = "bilingual"\nlearning_rate = 1e30')
HEIRS = 2 + 2 + 2
"""The two diverging models, their scores, the paths to them."""


def records(folder: Path) -> dict[str, bytes]:
    return {path.parent.name: path.read_bytes() for path in sorted(folder.glob(f"*/{RECORD}"))}


@pytest.fixture(scope="module")
def failed_study(tmp_path_factory):
    """The tiny recipe with one method that diverges."""
    folder = tmp_path_factory.mktemp("failed")
    recipe = tiny(folder, DIVERGING)
    return recipe, isogloss.run(recipe, out=folder / "runs", jobs=1, report=False)


@pytest.mark.slow
def test_a_second_call_makes_nothing(tiny_runs, monkeypatch):
    monkeypatch.setattr(work, "make", None)
    outcome = isogloss.run(tiny_runs.parent / "tiny.toml", out=tiny_runs, jobs=2, report=False).outcome
    assert (outcome.made, len(outcome.done), outcome.failed) == ([], RUNS, {})


def test_records_hold_no_place_name_or_day_of_this_machine(tiny_runs):
    text = b"".join(records(tiny_runs).values()).decode()
    for mark in (str(tiny_runs), str(Path.home()), isogloss.__file__, socket.gethostname(), '"seconds"'):
        assert mark not in text


def test_a_finished_run_leaves_no_checkpoint_or_half_written_file(tiny_runs):
    for path in each(tiny_runs.glob("*/")):
        left = {file.name for file in path.iterdir()} - {"model", "made.json", CHECKSUMS, RECORD, PREDICTIONS}
        assert not left or path.name in {"figures", "tables", LEASES}


def test_made_json_says_how_it_was_made(tiny_runs):
    for path in each(tiny_runs.glob("*/made.json")):
        data = json.loads(path.read_text())
        assert (data["threads"], data["precision"] in {"float32", "bfloat16"}) == (1, True)
        assert data["seconds"] >= 0


def test_an_error_of_who_is_told_is_not_taken_for_a_folder_that_went_away(tmp_path):
    def close_terminal(*_):
        raise OSError(errno.EIO, "the terminal was closed")

    with pytest.raises(OSError, match="terminal"):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", jobs=1, report=False, announce=close_terminal)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_failed_run_fails_its_heirs_and_nobody_else(failed_study):
    _, result = failed_study
    outcome = result.outcome
    assert len(outcome.failed) == HEIRS
    assert len(outcome.made) == len(result.records) == RUNS - HEIRS
    reasons = [json.loads((result.out / key / "failed.json").read_text())["error"] for key in outcome.failed]
    assert reasons == list(outcome.failed.values())
    own_reasons = [reason for reason in reasons if not reason.startswith("needs run ")]
    assert len(own_reasons) == 2
    assert all(re.search(r"the loss is nan .*Lower learning_rate", reason) for reason in own_reasons)


@pytest.mark.nightly
@pytest.mark.slow
def test_a_second_call_tells_of_the_failed_ones_and_tries_them_again_if_asked(failed_study, monkeypatch):
    recipe, first_failed_study = failed_study
    contents_before = records(first_failed_study.out)
    runs = []
    monkeypatch.setattr(work, "make", lambda _, run: runs.append(run))
    again = isogloss.run(recipe, out=first_failed_study.out, jobs=1, report=False).outcome
    assert (runs, len(again.made), len(again.done)) == ([], 0, RUNS - HEIRS)
    assert again.failed.keys() == first_failed_study.outcome.failed.keys()
    assert all(
        why.startswith(first_failed_study.outcome.failed[key]) for key, why in each(again.failed.items())
    )
    assert sum("--retry-failed makes it again" in why for why in again.failed.values()) == 2
    monkeypatch.undo()
    again = isogloss.run(recipe, out=first_failed_study.out, jobs=1, report=False, retry_failed=True).outcome
    assert (len(again.made), len(again.done)) == (0, RUNS - HEIRS)
    assert again.failed == first_failed_study.outcome.failed
    assert records(first_failed_study.out) == contents_before


@pytest.mark.nightly
@pytest.mark.slow
def test_a_failed_run_may_succeed_later(tmp_path, monkeypatch):
    recipe = tiny(tmp_path)
    right = FineTune.make

    def wrong(run, context):
        raise DivergedError("not today")

    monkeypatch.setattr(FineTune, "make", wrong)
    failures = isogloss.run(recipe, out=tmp_path / "runs", jobs=1, scale="least", report=False).outcome.failed
    monkeypatch.setattr(FineTune, "make", right)
    later = isogloss.run(
        recipe, out=tmp_path / "runs", jobs=1, scale="least", report=False, retry_failed=True
    ).outcome
    assert sorted(later.made) == sorted(failures)
    assert not list((tmp_path / "runs").glob("*/failed.json"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        ConfigError,
        *(pytest.param(data_error, marks=pytest.mark.slow) for data_error in (DataError, ModelError)),
    ],
)
def test_an_input_error_of_one_run_leaves_the_others_running(tmp_path, monkeypatch, kind):
    right = work.make

    def wrong(context, run):
        if run.name == "fine-tune" and run.method.name == "bilingual":
            raise kind("not this one")
        right(context, run)

    monkeypatch.setattr(work, "make", wrong)
    outcome = isogloss.run(tiny(tmp_path), out=tmp_path / "runs", jobs=1, scale="least", report=False).outcome
    assert len(outcome.failed) == HEIRS / 2
    assert len(outcome.made) == (RUNS - HEIRS) / 2
    assert "not this one" in outcome.failed.values()


def test_an_error_that_is_every_runs_ends_everything(tmp_path, monkeypatch):
    def wrong(run, context):
        raise StorageError("the disk was unplugged")

    monkeypatch.setattr(FineTune, "make", wrong)
    with pytest.raises(StorageError):
        isogloss.run(tiny(tmp_path), out=tmp_path / "runs", jobs=1, report=False)
    assert not records(tmp_path / "runs")


@pytest.mark.slow
def test_a_damaged_record_is_made_again_when_it_is_deleted_and_nothing_else(tiny_runs, tmp_path):
    runs = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    whole_contents = records(runs)
    victim = next(key for key in whole_contents if read_record(runs / key).kind == "fine-tune")
    (runs / victim / RECORD).unlink()
    outcome = isogloss.run(tiny(tmp_path), out=runs, jobs=1, report=False).outcome
    assert outcome.made == [victim]
    assert records(runs) == whole_contents


@pytest.mark.nightly
@pytest.mark.slow
def test_a_damaged_model_is_set_aside_and_made_again_with_what_needs_it(tiny_runs, tmp_path):
    runs = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    whole_contents = records(runs)
    model = min(key for key in whole_contents if read_record(runs / key).kind == "fine-tune")
    needing = min(key for key in whole_contents if model in read_record(runs / key).needs)
    (runs / needing / RECORD).unlink()
    weights = runs / model / "model" / "model.safetensors"
    content = weights.read_bytes()
    middle_count = len(content) // 2
    weights.write_bytes(
        content[:middle_count] + bytes([content[middle_count] ^ 1]) + content[middle_count + 1 :]
    )
    outcome = isogloss.run(tiny(tmp_path), out=runs, jobs=1, report=False).outcome
    assert outcome.made == [model, needing]
    assert list(outcome.damaged) == [model]
    assert f"{weights}: damaged (checksum " in outcome.damaged[model]
    assert "Set aside as damaged-model, and made again." in outcome.damaged[model]
    assert (runs / model / "damaged-model" / "model.safetensors").exists()
    assert (records(runs), weights.read_bytes()) == (whole_contents, content)


@pytest.mark.slow
def test_a_damaged_checkpoint_is_set_aside_and_the_training_starts_over(tiny_runs, tmp_path):
    runs = Path(shutil.copytree(tiny_runs, tmp_path / "runs"))
    whole_contents = records(runs)
    model = min(key for key in whole_contents if read_record(runs / key).kind == "fine-tune")
    (runs / model / RECORD).unlink()
    checkpoint = runs / model / "work" / "deep" / "checkpoint-000000001"
    checkpoint.mkdir(parents=True)
    (checkpoint / CHECKSUMS).write_text("{")
    outcome = isogloss.run(tiny(tmp_path), out=runs, jobs=1, report=False).outcome
    assert (outcome.made, outcome.failed) == ([model], {})
    assert f"{checkpoint}:" in outcome.damaged[model]
    assert f"({CHECKSUMS} " in outcome.damaged[model]
    assert records(runs) == whole_contents


SCRIPT = """
from pathlib import Path

import isogloss
import mine
from isogloss.methods import METHODS
from isogloss.methods.plain import SourceOnly
OWN

if __name__ == "__main__":
    for kind, jobs in ((Mine, 2), (Mine, 0), (mine.Mine, 2)):
        METHODS.places["mine"] = f"{kind.__module__}:Mine"
        out = Path("runs", f"{kind.__module__}-{jobs}")
        try:
            outcome = isogloss.run("tiny.toml", out=out, jobs=jobs, scale="least", report=False).outcome
            print(len(outcome.made), outcome.failed)
        except isogloss.IsoglossError as error:
            print(error)
"""
OWN = """
from dataclasses import dataclass
from typing import ClassVar
from isogloss.methods.plain import SourceOnly


@dataclass(frozen=True, kw_only=True)
class Mine(SourceOnly):
    name: ClassVar[str] = "mine"
"""


@pytest.mark.nightly
@pytest.mark.slow
def test_a_method_of_the_users_own_is_made_or_refused_at_once(tmp_path):
    """Other processes find a class in a module. A class of the script runs only in its process."""
    models = TINY.partition("[[measure]]")[0].replace('name = "source-only"', 'name = "mine"')
    tiny(tmp_path, models + TINY[TINY.index("[scale.least]") :])
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "script.py").write_text(SCRIPT.replace("OWN", OWN))
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path)}
    words = [sys.executable, "script.py"]
    output, _ = Forked(words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE).communicate()
    refused_line, single_line, side_by_side = output.splitlines()
    assert refused_line.startswith("Mine:")
    assert single_line == side_by_side == "2 {}"


@pytest.mark.nightly
@pytest.mark.slow
def test_runs_are_announced_with_their_titles_and_numbers(tmp_path):
    messages = []
    result = isogloss.run(
        tiny(tmp_path),
        out=tmp_path / "runs",
        jobs=1,
        scale="least",
        announce=messages.append,
        report=False,
    )
    assert [message.number for message in messages] == list(range(1, len(messages) + 1))
    assert {message.total for message in messages} == {len(messages)} == {len(result.records)}
    assert {(message.run, message.title) for message in messages} == {
        (record.id, record.title) for record in result.records
    }


@pytest.mark.nightly
@pytest.mark.slow
def test_scores_come_before_further_trainings(tmp_path):
    """And they are reported as soon as they are there, in percent."""
    begun = []
    scores = []
    isogloss.run(
        tiny(tmp_path),
        out=tmp_path / "runs",
        jobs=1,
        announce=lambda event: begun.append(event.title.partition(":")[0]),
        on_progress=lambda progress: scores.extend([progress.remark] * progress.what.startswith("scores: ")),
        report=False,
    )
    assert begun[:2] == ["source-only", "scores"]
    assert begun.count("source-only") > 1
    assert [remark for remark in scores if remark.startswith("span_f1 qaa ")]


@pytest.mark.nightly
@pytest.mark.slow
def test_the_number_of_threads_is_given_back(tmp_path):
    import torch

    num_threads_before = torch.get_num_threads()
    isogloss.run(tiny(tmp_path), out=tmp_path / "runs", jobs=1, scale="least", threads=1, report=False)
    assert torch.get_num_threads() == num_threads_before


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_whose_memory_runs_out_fails_alone(tmp_path):
    def hungry(progress):
        if progress.what == "fine-tuning on qaa+qab":
            torch.empty(1 << 50)

    folder = tmp_path / "runs"
    outcome = isogloss.run(
        tiny(tmp_path), out=folder, jobs=1, scale="least", report=False, on_progress=hungry
    ).outcome
    assert (len(outcome.failed), len(outcome.made)) == (HEIRS / 2, (RUNS - HEIRS) / 2)
    (why,) = (why for why in outcome.failed.values() if not why.startswith("needs run "))
    assert "DefaultCPUAllocator: can't allocate memory" in why
    assert "Lower batch_size or raise accumulation" in why


def killing(path: Path, method: str, times: int) -> tuple[Callable[[Progress], None], list[str]]:
    """Return a callback that kills the training process of a method ``times`` times, and its ids."""
    killed_keys: list[str] = []
    pids: set[str] = set()

    def kill(progress: Progress) -> None:
        if len(killed_keys) == times or not progress.what.startswith("fine-tuning"):
            return
        for key in killed_keys[:1] or json.loads((path / PLAN).read_text())["methods"][method]:
            maker = leases_in(path).holder(key).partition(" ")[0]
            if maker and maker not in pids:
                os.kill(int(maker), signal.SIGKILL)
                pids.add(maker)
                killed_keys.append(key)
                return

    return kill, killed_keys


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_whose_process_dies_is_made_again_by_another(tiny_runs, tmp_path):
    folder = as_precise_as(tiny_runs, tmp_path / "runs")
    kill, kills = killing(folder, "source-only", 1)
    outcome = isogloss.run(tiny(tmp_path), out=folder, jobs=2, report=False, on_progress=kill).outcome
    (key,) = kills
    assert list(outcome.died) == [key]
    assert re.fullmatch(
        r"its process ended without giving the run back \(\d+ on [^;]+; .+\); it was made again\.",
        outcome.died[key],
    )
    assert (len(outcome.made) + len(outcome.done), outcome.failed) == (RUNS, {})
    assert records(folder) == records(tiny_runs)
    assert not multiprocessing.active_children()


@pytest.mark.nightly
@pytest.mark.slow
def test_a_run_with_which_three_processes_die_has_failed_and_the_others_go_on(tmp_path):
    recipe = tiny(tmp_path, TINY.replace('name = "bilingual"', 'name = "bilingual"\nepochs = 60'))
    kill, kills = killing(tmp_path / "runs", "bilingual", 3)
    outcome = isogloss.run(
        recipe, out=tmp_path / "runs", jobs=2, scale="least", report=False, on_progress=kill
    ).outcome
    (key,) = set(kills)
    why = outcome.failed[key]
    assert re.match(
        r"its process ended without .+ 3 times before its first .+\(the last one: \d+ on .+\)", why
    )
    assert len(outcome.made) + len(outcome.failed) == RUNS / 2
    assert all(key == failures or "needs run" in why for failures, why in each(outcome.failed.items()))
    assert outcome.made
    assert json.loads((tmp_path / "runs" / key / "failed.json").read_text())["error"] == why
    assert not list((tmp_path / "runs" / LEASES).glob(f"{key}.*"))
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("fields", [{"jobs": -1}, {"jobs": "2"}, {"threads": 0}])
def test_numbers_of_jobs_and_threads_are_whole_and_not_too_small(fields):
    ((name, value),) = fields.items()
    with pytest.raises(ConfigError, match=f"^{name}: .*{value!r}.*[01]"):
        Execution(**fields)
