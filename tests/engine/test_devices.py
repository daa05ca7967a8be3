"""Each process has one GPU, or a share of one with enough memory. The GPUs are simulated."""

import json
import os
import shutil
import subprocess
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.processes import host
from isogloss.core.records import FAILED, MADE, RECORD
from isogloss.engine import devices, engine, work
from isogloss.engine.devices import (
    CONTEXT,
    CPU,
    RESERVED,
    Device,
    MemoryNeeds,
    Room,
    assign_devices,
    choose_device,
    choose_devices,
    choose_share,
    compute_in_new_process,
    number_gpus,
    precision_on,
    starting,
)
from isogloss.engine.engine import default_jobs, make_planned
from isogloss.engine.engines import Execution
from isogloss.engine.work import RunEvent, Work
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.run import RunContext, peak_memory
from isogloss.store.leases import LEASES, FolderBoard, Leases
from isogloss.store.store import PRECISION, Store
from isogloss.training.memory import Machine
from says import says
from tiny import tiny

GB = 10**9
FOUR = tuple(Device(str(n), "Made-up 80", 80 * GB, n, here=True) for n in range(4))
UUID = Device("GPU-5ea1", "Made-up 80", 80 * GB)
VARIABLE = "HIP_VISIBLE_DEVICES" if torch.version.hip else "CUDA_VISIBLE_DEVICES"


def chosen_devices(selection, gpus=FOUR):
    return choose_devices(selection, gpus, {UUID.visible: UUID}.get)


def test_devices_are_those_named_and_all_where_none_is():
    assert chosen_devices("") == chosen_devices("all") == FOUR
    assert chosen_devices("2, 0,2") == (FOUR[2], FOUR[0])
    assert chosen_devices(f"1,{UUID.visible}") == (FOUR[1], UUID)
    assert chosen_devices("cpu") == (CPU,)
    assert chosen_devices("", ()) == chosen_devices("cpu", ()) == ()


@pytest.mark.parametrize("selection", ["7", "0,7", "0,cpu", "0,", "GPU-lost"])
def test_a_gpu_that_is_not_there_is_refused_with_those_that_are(selection):
    wrong = selection.rpartition(",")[2]
    gpus = r"0 \(Made-up 80, 75 GiB\), 1.*3 \(Made-up 80, 75 GiB\)"
    pattern = rf"^devices {selection}: .*GPU '{wrong}'.*{gpus}.*UUID.*cpu"
    with pytest.raises(ConfigError, match=pattern):
        chosen_devices(selection)


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_where_there_is_no_gpu_cpu_alone_can_be_named(tmp_path):
    for device_choice, text in (("all", "all"), ([0, 1], "0,1")):
        with pytest.raises(ConfigError, match=f"^devices {text}: .*GPU.*cpu"):
            isogloss.run(tiny(tmp_path), out=tmp_path / "runs", devices=device_choice)


def test_gpus_are_numbered_among_those_that_this_process_was_given():
    def list_devices(*values):
        return [
            Device(value, name, GB) for value in values for name in ("A", "B")[: 1 if "MIG" in value else 2]
        ]

    assert [gpu.visible for gpu in number_gpus("", list_devices)] == ["0", "1"]
    gpus = number_gpus("6,3", list_devices)
    assert [(gpu.visible, gpu.number, str(gpu)) for gpu in gpus] == [("6", 0, "GPU 0"), ("3", 1, "GPU 1")]
    with pytest.raises(ConfigError, match="found no GPU '6'"):
        choose_devices("6", gpus, lambda _: None)
    parts = number_gpus("MIG-a,MIG-b", list_devices)  # Each is seen only by a process that sees no other.
    assert [(part.visible, part.here) for part in parts] == [("MIG-a", True), ("MIG-b", False)]
    assert choose_devices("MIG-b,0", parts, lambda _: None) == parts[::-1]


def test_processes_get_gpus_in_turn_and_take_memory_of_theirs():
    assigned_devices = assign_devices(FOUR[:2], 3)
    assert [device.visible for device in assigned_devices] == ["0", "1", "0"]
    assert [device.memory for device in assigned_devices] == [
        80 * GB - count * CONTEXT for count in (2, 1, 2)
    ]
    assert assign_devices([CPU], 2) == [CPU, CPU]


def test_a_run_is_started_where_the_fewest_are_and_there_is_room():
    first_gpu, second_gpu = FOUR[:2]
    assert choose_device(50 * GB, {first_gpu: [], second_gpu: []}) == first_gpu
    assert choose_device(50 * GB, {first_gpu: [GB], second_gpu: []}) == second_gpu
    assert choose_device(50 * GB, {first_gpu: [40 * GB], second_gpu: [20 * GB, 10 * GB]}) == second_gpu
    assert choose_device(50 * GB, {first_gpu: [40 * GB], second_gpu: [31 * GB]}) is None
    assert choose_device(50 * GB, {}) is None


def test_a_run_that_fits_nowhere_or_whose_size_is_unknown_is_alone_on_a_gpu():
    first_gpu, second_gpu = FOUR[:2]
    for need in (500 * GB, None):
        assert choose_device(need, {first_gpu: [1], second_gpu: []}) == second_gpu
        assert choose_device(need, {first_gpu: [1]}) is None
        assert choose_device(1, {first_gpu: [need]}) is None
    assert choose_device(None, {CPU: [None, 5]}) == CPU


@pytest.fixture
def context_of():
    return lambda plan: RunContext(store=plan.store, sources=plan.sources, precision="float32")


def test_a_run_takes_what_was_measured_of_runs_of_its_sizes_on_such_a_gpu(plan_changed, context_of):
    plan_changed = plan_changed()
    first_run, second_run, *_ = [run for run in plan_changed.runs if isinstance(run, FineTune)]
    needs = MemoryNeeds(context_of(plan_changed))
    estimate = peak_memory(first_run, plan_changed.sources.encoders, device_type=Machine(gpu=True))
    assert needs.find_need(first_run) == needs.find_need(second_run) == round(RESERVED * estimate)
    folder = plan_changed.store.start(first_run)
    for device, peak in (("Other", 7), ("Made-up 80", 1000), ("Made-up 80", 900)):
        (folder / MADE).write_text(json.dumps({"device": device, "peak_memory": peak}))
        needs.learn(first_run, "Made-up 80")
        needs.learn(second_run, "Made-up 80")
    assert needs.find_need(first_run) == needs.find_need(second_run) == round(RESERVED * 1000)
    wider = replace(second_run, optimization=replace(second_run.optimization, batch_size=999))
    assert needs.find_need(wider) != needs.find_need(second_run)


@pytest.mark.parametrize(("second", "precision"), [("float32", "float32"), ("bfloat16", "bfloat16")])
def test_different_gpus_compute_in_one_precision(tmp_path, monkeypatch, second, precision):
    answers = {"0": "bfloat16", "4": second}

    def measure_later(visible, _):
        future = Future()
        future.set_result(answers[visible])
        return future

    monkeypatch.setattr(devices, "compute_in_new_process", measure_later)
    store = Store(tmp_path)
    assert precision_on([FOUR[0], Device("4", "Old", GB)], store) == precision
    assert precision_on([FOUR[0]], store) == precision


@pytest.mark.parametrize("precision", ["auto", "bfloat16", "tf32"])
def test_a_machine_refuses_runs_in_a_precision_that_it_cannot_compute(plan_changed, monkeypatch, precision):
    plan_changed = plan_changed(grid__optimization__precision=precision)
    if precision != "tf32":  # No processor has it.
        monkeypatch.setattr(engine, "computes", lambda *_: False)
    with pytest.raises(ConfigError) as error:
        make_planned(plan_changed, Execution(jobs=1))
    decided_by_folder = precision == "auto"
    assert (str(plan_changed.store.root / PRECISION) in str(error.value)) == decided_by_folder
    assert (f'precision = "{precision}"' in str(error.value)) == (not decided_by_folder)
    assert 'set precision = "float32"' in str(error.value)


def test_a_worker_leaves_runs_in_a_precision_that_it_cannot_compute_to_others(
    plan_changed, context_of, monkeypatch
):
    """In a cluster, where others can."""
    plan_changed = plan_changed()
    monkeypatch.setattr(work, "computes", lambda *_: False)
    events = []
    worker = Work(context_of(plan_changed), plan_changed.runs, events.append)
    first_run = plan_changed.runs[0]
    assert worker.attempt(first_run) == RunEvent(identity(first_run), "elsewhere")
    assert events == []


@pytest.mark.parametrize(
    ("need", "memory", "share"),
    [
        (3 * GB, 80 * GB, 1 / 21),  # With a context of .7 GB each.
        (39 * GB, 80 * GB, 1 / 2),
        (40 * GB, 80 * GB, 1),
        (90 * GB, 80 * GB, 1),
        (None, 80 * GB, 1),
        (3 * GB, None, 1),
        (0, 80 * GB, 1 / 114),
    ],
)
def test_as_many_processes_share_a_gpu_as_its_memory_holds(need, memory, share):
    assert choose_share(need, memory) == pytest.approx(share)


@pytest.mark.parametrize("share", [-0.1, 1.5, 2, "half"])
def test_a_share_of_a_gpu_is_a_number_from_0_to_1(share):
    with says(ConfigError, "gpu_share", repr(share), "0 to 1"):
        Execution(engine="ray", gpu_share=share)


def test_each_gpu_makes_one_run_at_a_time_unless_more_are_asked_for(plan):
    runs = plan()
    assert default_jobs(runs, 1, FOUR) == 4
    assert default_jobs(runs, 64, FOUR[:1]) == 1
    assert default_jobs(runs[:1], 1, FOUR) == 1
    assert default_jobs(runs, 1, (CPU,)) == default_jobs(runs, 1)


def test_what_new_processes_see_is_not_left_in_this_one(monkeypatch):
    for old_devices in (None, "5"):
        monkeypatch.delenv(VARIABLE, raising=False) if old_devices is None else monkeypatch.setenv(
            VARIABLE, old_devices
        )
        for visible, inside in (("MIG-a", "MIG-a"), ("", old_devices)):
            with starting(visible):
                assert os.environ.get(VARIABLE) == inside
            assert os.environ.get(VARIABLE) == old_devices


def test_a_question_about_gpus_is_answered_by_a_process_that_sees_them_alone():
    assert compute_in_new_process("MIG-a", partial(os.getenv, VARIABLE)).result() == "MIG-a"


@dataclass(frozen=True)
class Scarce(Store):
    """A store of made-up machines: notes on which GPU a run begins and ends, and lets memory run out."""

    once: str = ""
    """The run for which it runs out the first time."""
    always: str = ""
    error: str = "CUDA out of memory."

    def start(self, run):
        key = identity(run)
        self.note("start", key)
        again = self.log().count(("start", os.environ.get(VARIABLE, ""), key)) > 1
        if key == self.always or (key == self.once and not again):
            self.note("end", key)
            raise torch.OutOfMemoryError(self.error) if "CUDA" in self.error else RuntimeError(self.error)
        return super().start(run)

    def finish(self, record, made):
        super().finish(record, made)
        self.note("end", record.id)

    def note(self, event, key):
        with (self.root / "log.txt").open("a") as file:
            file.write(f"{event} {os.environ.get(VARIABLE, '')} {key}\n")

    def log(self):
        return [tuple(line.split(" ")) for line in (self.root / "log.txt").read_text().splitlines()]


@pytest.mark.parametrize("error", ["CUDA out of memory.", "cuBLAS: CUBLAS_STATUS_ALLOC_FAILED", "no luck"])
def test_a_run_fails_for_want_of_memory_unless_it_shared_its_gpu(plan_changed, context_of, error):
    """A run that shared its GPU is released, and repeated on an idle GPU."""
    plan_changed, events = plan_changed(scale="least"), []
    run = plan_changed.runs[0]
    store = Scarce(plan_changed.store.root, always=identity(run), error=error)
    (store.root / LEASES).mkdir(parents=True)
    context = replace(context_of(plan_changed), store=store)
    gpu = Device("5", "Small", 80 * GB)
    room = Room(str(store.root), gpu, (gpu,), MemoryNeeds(context))
    for states in (["begun", "died", "elsewhere"], ["begun", "failed"]):
        events.clear()
        with pytest.raises(RuntimeError, match="no luck") if error == "no luck" else nullcontext():
            events.append(Work(context, [run], events.append, room).attempt(run))
            assert [event.state for event in events] == states
            assert error in events[1].message
            assert (store.folder(run) / FAILED).exists() == ("failed" in states)
            assert store.leases.history(identity(run)).out_of_memory == ("died" in states)


@dataclass(frozen=True)
class Takes:
    """Bytes needed by runs, by name."""

    bytes_of: dict[str, int | None]

    def find_need(self, run: str) -> int | None:
        return self.bytes_of[run]


def test_processes_take_room_for_a_run_as_far_as_there_is_and_all_for_one_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first_gpu, second_gpu = FOUR[:2]
    needs = Takes({"large": 50 * GB, "small": 20 * GB, "unknown": None})
    process = iter(range(1000))
    monkeypatch.setattr(devices, "has_ended", lambda _: False)

    leases = Leases(FolderBoard(tmp_path / "leases"))
    monkeypatch.setattr(devices, "identity", str)

    @contextmanager
    def take_seat(device, run, alone=False, folder="runs"):
        """Reserve memory as a separate process."""
        name = f"process-{next(process)}"
        with monkeypatch.context() as patch:
            patch.setattr(devices, "this_process", lambda: name)
            with Room(folder, device, (first_gpu, second_gpu), needs).reserve(
                run, leases, is_exclusive=alone
            ) as seat:
                patch.undo()
                yield seat
                patch.setattr(devices, "this_process", lambda: name)

    with take_seat(second_gpu, "large") as seat:
        assert seat == ""  # The first GPU is as empty, and first in the list.
    with take_seat(first_gpu, "large") as seat, take_seat(second_gpu, "large") as second_seat:
        assert (seat, second_seat) == ("shared", "shared")
        with take_seat(first_gpu, "large") as third, take_seat(second_gpu, "unknown") as fourth:
            assert (third, fourth) == ("", "")
        with take_seat(first_gpu, "small") as third, take_seat(first_gpu, "small", alone=True) as fourth:
            assert (third, fourth) == ("shared", "")
        with take_seat(first_gpu, "small", alone=True, folder="others") as third:
            assert third == "alone"
    with take_seat(first_gpu, "small", alone=True) as seat, take_seat(second_gpu, "small") as second_seat:
        assert (seat, second_seat) == ("alone", "")
    with take_seat(first_gpu, "unknown") as seat:
        assert seat == "alone"


def test_a_process_that_has_ended_or_lost_its_lease_takes_no_room(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(devices, "identity", str)
    process = subprocess.Popen(["true"])
    process.wait()
    leases, room = Leases(FolderBoard(tmp_path / "leases")), Room("runs")
    with leases.lease_run("held"):
        for name, run, age, expected in (
            (f"{host()}-{process.pid}-1", "held", 0, "alone"),
            ("another-1-1", "held", 0, ""),
            ("another-1-1", "held", 100, ""),
            ("another-1-1", "lost", 0, ""),  # It will have its lease in a moment.
            ("another-1-1", "lost", 100, "alone"),
        ):
            with monkeypatch.context() as patch:
                now = devices.monotonic()
                patch.setattr(devices, "this_process", lambda name=name: name)
                patch.setattr(devices, "monotonic", lambda now=now, age=age: now - age)
                taking = room.reserve(run, leases, is_exclusive=True)
                taking.__enter__()
            with room.reserve("next", leases, is_exclusive=True) as seat:
                assert seat == expected, (name, run, age)
            with monkeypatch.context() as patch:
                patch.setattr(devices, "this_process", lambda name=name: name)
                taking.__exit__(None, None, None)


@pytest.fixture
def plan_on_scarce_gpus(plan_changed, tiny_runs, monkeypatch):
    """Return the plan of the tiny recipe in a store with simulated GPUs, its trainings and precision."""
    plan_changed = plan_changed()
    fine_tunings = [run for run in plan_changed.runs if isinstance(run, FineTune)]
    store = Scarce(plan_changed.store.root, once=identity(fine_tunings[0]), always=identity(fine_tunings[1]))
    (store.root / LEASES).mkdir(parents=True)
    precision = json.loads((tiny_runs / PRECISION).read_text())["auto"]
    shutil.copy(tiny_runs / PRECISION, store.root)
    monkeypatch.delenv(VARIABLE, raising=False)
    return replace(plan_changed, store=store), fine_tunings, precision


@pytest.mark.nightly
@pytest.mark.slow
def test_two_share_a_gpu_as_far_as_they_have_room_and_those_for_which_they_had_not_are_made_again(
    plan_on_scarce_gpus, context_of, tiny_runs, monkeypatch
):
    """No two trainings fit together. One of them does not even fit on an idle GPU."""
    plan, fine_tunings, precision = plan_on_scarce_gpus
    store = plan.store
    need = max(map(MemoryNeeds(replace(context_of(plan), precision=precision)).of, fine_tunings))
    monkeypatch.setattr(engine, "devices_of", lambda _: [Device("5", "Small", 2 * CONTEXT + need)])
    outcome = make_planned(plan, Execution(jobs=2))

    for key in (store.once, store.always):
        assert outcome.died[key] == (
            "the memory of the GPU that it shared ran out (CUDA out of memory.); it was made again."
        )
    heirs = {key for key, why in outcome.failed.items() if why.startswith("needs run")}
    assert outcome.failed.keys() - heirs == {store.always}
    assert outcome.failed[store.always].startswith("the memory ran out (CUDA out of memory.). Lower ")
    assert {*outcome.made, *outcome.failed} == set(map(identity, plan.runs))
    assert store.once in outcome.made
    for folder in (store.root / key for key in outcome.made):
        assert (folder / RECORD).read_bytes() == (tiny_runs / folder.name / RECORD).read_bytes()

    running = set()
    trainings = {identity(run) for run in fine_tunings}
    for event, gpu, key in store.log():
        assert gpu == "5"
        if key in trainings:
            running = running | {key} if event == "start" else running - {key}
            assert len(running) <= 1


@pytest.mark.slow
def test_each_process_sees_one_gpu_alone_and_its_progress_says_which(plan_on_scarce_gpus, monkeypatch):
    plan, fine_tunings, _ = plan_on_scarce_gpus
    plan = replace(plan, runs=fine_tunings[2:4])
    two = (Device("3", "Small", GB, 0), Device("MIG-a", "Small", GB))
    monkeypatch.setattr(engine, "devices_of", lambda _: two)
    progress_events = []
    assert len(make_planned(plan, Execution(), on_progress=progress_events.append).made) == 2
    assert {gpu for _, gpu, _ in plan.store.log()} == {"3", "MIG-a"}
    assert {event.what.rpartition(" on ")[2] for event in progress_events} == {"GPU 0", "GPU MIG-a"}
    assert VARIABLE not in os.environ


@pytest.mark.nightly
@pytest.mark.slow
def test_a_script_of_ones_own_is_told_why_it_cannot_compute_on_a_device_elsewhere(plan_changed, monkeypatch):
    plan_changed = plan_changed(scale="least")
    monkeypatch.setattr(engine, "devices_of", {"cpu": (CPU,)}.get)
    monkeypatch.setattr(type(plan_changed.runs[0]), "__module__", "__main__")
    with pytest.raises(ConfigError, match=r"\(jobs=1"):
        make_planned(plan_changed, Execution(devices="cpu"))
