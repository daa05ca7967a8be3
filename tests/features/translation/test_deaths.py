"""A process that dies with a run counts only if the run got no further."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.errors import RunError
from isogloss.core.identity import identity
from isogloss.core.processes import host
from isogloss.data.sources import Sources
from isogloss.engine import work as module
from isogloss.engine.work import DEATHS, Work
from isogloss.features.built_in_languages.translator import BuiltIn
from isogloss.features.translation.run import Translate
from isogloss.runs.run import RunContext
from isogloss.store.leases import LEASES, FolderBoard
from isogloss.store.resume_points import find_resume_point
from isogloss.store.store import WORK, Store
from says import check_wording

RUN = Translate(corpus="xnli", languages="qaa-qad", translator=BuiltIn(), examples=9)
KEY = identity(RUN)
MADE = "it was made again, up to here"


def step(start: int) -> str:
    """Return the progress of a run with a checkpoint of a step."""
    return find_resume_point([f"checkpoint-{start:09d}/state.json"] if start else [])


def outcome(root: Path, leases: list[tuple[int, bool]], now: int) -> list[object]:
    """Return the state of a run with leases, each with the step it began at and whether it died."""
    (root / LEASES).mkdir()
    board = FolderBoard(root / LEASES)
    for index, (start, died_lease) in enumerate(leases, 1):
        holder = {"process": f"{host()}-99999999-1", "machine": "there", "pid": index}
        lease = {**holder, "token": str(index), "beat": 1, "held": died_lease, "resume_point": step(start)}
        board.create(f"{KEY}.{index}", json.dumps(lease).encode())
    if now:
        checkpoint = root / KEY / WORK / f"checkpoint-{now:09d}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "state.json").touch()
    events: list[object] = []
    context = RunContext(store=Store(root), sources=Sources(), precision="float32")
    Work(context, [RUN], events.append).work()
    return events


@pytest.fixture
def interrupted_making(monkeypatch):
    """Make every run fail at once, to see which runs start."""

    def make(*_):
        raise RunError(MADE)

    monkeypatch.setattr(module, "make", make)


LEASES_OF_A_RUN = st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=8)


@pytest.mark.slow
@given(LEASES_OF_A_RUN, st.integers(0, 3))
def test_a_run_fails_after_three_deaths_since_its_last_checkpoint(tmp_path_factory, leases, now):
    steps = sorted(start for start, _ in leases)  # A run never goes back.
    leases = [(min(start, now), died_lease) for start, (_, died_lease) in zip(steps, leases, strict=True)]
    died_here = sum(died_lease for start, died_lease in leases if start == now)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "make", lambda *_: (_ for _ in ()).throw(RunError(MADE)))
        *_, last_event = outcome(tmp_path_factory.mktemp("runs"), leases, now)
    assert last_event.state == "failed"
    assert (last_event.message == MADE) == (died_here < DEATHS)
    if died_here >= DEATHS:
        assert f"{died_here} times" in last_event.message
        assert (f"step {now}" if now else "before its first checkpoint") in last_event.message


def test_a_run_that_got_further_each_time_is_resumed_however_often_it_was_killed(
    tmp_path, interrupted_making
):
    events = outcome(tmp_path, [(60 * index, True) for index in range(9)], 540)
    (died_message,) = [event.message for event in events if event.state == "died"]
    check_wording(died_message, "ended without giving the run back", "9 on there", "resumed after step 540")
    assert events[-1].message == MADE


def test_a_run_that_dies_three_times_at_a_step_fails_and_no_cause_is_claimed(tmp_path, interrupted_making):
    leases = [(0, True), (60, True), (60, False), (60, True), (60, True)]
    *_, last_event = outcome(tmp_path, leases, 60)
    check_wording(last_event.message, "3 times after step 60", "5 on there", "not known", "--retry-failed")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([], ""),
        (["mask.safetensors", "tokenizer.json"], ""),
        (["checkpoint-000000060/state.json", "checkpoint-000000060", "checkpoint-000000120"], "step 120"),
        (
            ["teacher/checkpoint-000000002/x", "student/checkpoint-000000001/x"],
            "student step 1, teacher step 2",
        ),
        (["chunk-aa.jsonl", "chunk-bb.jsonl"], "2 pieces"),
        ([".checkpoint-000000009.host-1-2.tmp/state.json", "damaged-checkpoint-000000009/state.json"], ""),
    ],
)
def test_how_far_a_run_got_follows_from_names(names, expected):
    assert find_resume_point(names) == expected
