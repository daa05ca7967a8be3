"""Every benchmark works, and all sides of one do the same work: each is run here at its smallest size.

They run in this process, as scripts: what is proved is what they print, not what they measure.
"""

import json
import runpy
import subprocess
import sys
from math import log
from pathlib import Path

import pytest
import torch

from forked import run_to_end
from isogloss.store.leases import LEASES

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
WAY = """
import json, sys
print("loading")
print(json.dumps({"options": sys.argv[1:]}))
"""

STAND_IN = """
import fcntl, json, os, sys, time
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
log = out / FOLDER / "log" / str(os.getpid())
log.parent.mkdir(parents=True, exist_ok=True)
fcntl.flock(os.open(out, os.O_RDONLY), fcntl.LOCK_EX)
for run in ("first", "second"):
    folder = out / run
    folder.mkdir(exist_ok=True)
    if not (folder / "record.json").exists():
        time.sleep(0.2)
        text, times = run, 1
        (folder / ".record.tmp").write_text(text)
        (folder / ".record.tmp").rename(folder / "record.json")
        log.open("a").write(times * (json.dumps({"event": "finished", "run": run}) + "\\n"))
"""
"""Makes two runs as isogloss does, in the time that a process takes that imports nothing."""

pytestmark = pytest.mark.slow


@pytest.fixture
def script(monkeypatch, capsys):
    """Run a benchmark and return what it prints."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in ("OMP_NUM_THREADS", "TOKENIZERS_PARALLELISM"):  # Scripts set them, for their own process.
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr(subprocess, "run", run_to_end)  # A separate Python takes seconds to import torch.
    threads = torch.get_num_threads()

    def run(name, *arguments, exit_code=0):
        path = BENCHMARKS / f"{name}.py"
        monkeypatch.setattr(sys, "argv", [str(path), *(str(argument) for argument in arguments)])
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            assert (end.code or 0) == exit_code
        return capsys.readouterr().out

    yield run
    torch.set_num_threads(threads)


def numbers(run, width):
    """Return the table rows of this width whose second cell is a number, by their first cell."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.splitlines()]
    return {row[0]: row[1:] for row in rows if len(row) == width and row[1][:1].isdigit()}


@pytest.mark.nightly
def test_adjustment_comes_to_the_same_loss_both_ways(script):
    rows = numbers(script("adjustment", "--quick"), 4)
    losses = [float(cells[-1]) for way, cells in rows.items() if "," in way]
    assert len(losses) == 4 and max(losses) < 1.2 * min(losses)  # Dropout and the order of batches differ.
    assert [rows[precision][1] for precision in ("float32", "bfloat16")] == ["1.8", "1.8"]


@pytest.mark.nightly
def test_many_runs_are_made_once_and_reported_on(script):
    (row,) = numbers(script("many_runs", "--runs", 20), 9).values()
    assert row[6] == "26"  # 20 runs, and six for leases, precision, plan and report.


@pytest.mark.nightly
def test_finished_runs_are_planned_looked_at_and_reported_on(script, tmp_path):
    file = tmp_path / "scale.json"
    options = ("--runs", 20, "--grid", 10, "--out", file, "--as", "now")
    (cells,) = numbers(script("finished_runs", *options), 7).values()
    assert all(int(peak) > 0 for peak in cells[3:])
    data = json.loads(file.read_text("utf-8"))
    assert (data["now"][0]["runs"], "a grid of 10, now" in data) == (20, True)


@pytest.fixture
def cells_after_kills(script, monkeypatch, tmp_path):
    """Kill the substitute for isogloss twice. Return the cells of the results."""

    def run(stand_in, exit_code):
        package = tmp_path / "stand_in" / "isogloss"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(stand_in.replace("FOLDER", repr(LEASES)))
        monkeypatch.setenv("PYTHONPATH", str(package.parent))
        options = ("--kills", 2, "--each", 1, "--engine", "serial", "--folder", tmp_path)
        (cells,) = numbers(script("kills", *options, exit_code=exit_code), 10).values()
        return cells

    return run


@pytest.mark.nightly
def test_kills_find_nothing_where_all_is_made_once(cells_after_kills):
    kills, whom, rounds, restarts, *cell = cells_after_kills(STAND_IN, 0)
    assert (kills, whom, cell) == ("2", "main 2", ["0"] * 5)
    assert int(rounds) >= int(restarts) == 2


def test_kills_find_what_is_made_twice_or_differs_or_is_left(cells_after_kills):
    fault = 'text, times = str(out), 2; (folder / ".weights.tmp").touch()'
    _, _, rounds, _, *cell = cells_after_kills(STAND_IN.replace("text, times = run, 1", fault), 1)
    assert cell == [rounds, str(2 * int(rounds)), f"temporary files {2 * int(rounds)}", "0", "0"]


@pytest.mark.nightly
def test_a_soak_compares_what_is_left_with_an_undisturbed_process(script, tmp_path):
    options = ("--seconds", 5, "--runs", 1, "--compared", 1, "--processes", 2, "--folder", tmp_path)
    run = script("soak", *options)
    result = json.loads(run[run.index("{") :])
    faults = ("lost", "changed", "twice", "outside", "failed", "differing")
    assert [result[name] for name in faults] == [0] * len(faults)
    assert sum(result["signals"].values()) + sum(result["planted"].values()) > 0


@pytest.mark.nightly
def test_every_form_of_meta_learning_costs_more_than_joint_training(script):
    rows = numbers(script("meta_learning", "--quick"), 5)
    ratios = {form: float(cells[1]) for form, cells in rows.items()}
    assert ratios.keys() == {"joint", "first-order", "finite-difference", "exact"}
    assert ratios.pop("joint") == 1
    assert all(ratio > 1 for ratio in ratios.values())


@pytest.mark.nightly
def test_the_memory_of_a_training_is_about_what_is_estimated(script):
    options = ("--shapes", "tiny", "--rows", 8, "--how", "checkpointing")
    rows = [line.split("|")[1:-1] for line in script("training_memory", *options).splitlines()[2:]]
    assert [row[0].strip() for row in rows] == ["fine-tune", "pretrain"]
    assert all(0.75 < float(row[-2]) < 1.25 for row in rows)


@pytest.mark.nightly
def test_encoders_are_trained_at_some_speed_of_the_plan(script):
    run = script("paper_encoders", "--quick")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in run.splitlines()[4:]]
    assert [row[:2] for row in rows[:3]] == [
        ["tiny, tagging", "4 × 128"],
        ["tiny, tagging", "4 × 36"],
        ["8 layers, masked LM", "4 × 128"],
    ]
    assert len(rows) == 6 and {row[2] for row in rows} == {"bfloat16", "float32"}
    for _, length, _, _, _, row, planned_row, *_ in rows:
        # A row of 36 counts as one of 128, but for attention, which takes fewer operations in short ones.
        ratio = 1 if length.endswith("128") else pytest.approx(128 / 36, rel=0.3)
        assert float(planned_row) / float(row) == ratio


GPU_SECTIONS = "peaks,equality,dropout,checkpoint,usual,captured,float32,feeding,rest"
"""Sections of gpu_check.py that take less than a second each at the smallest size."""


def rows_of(path):
    """Return the rows that gpu_check.py wrote, by section."""
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return {
        name: [row for row in rows if row["section"] == name] for name in {row["section"] for row in rows}
    }


@pytest.mark.nightly
def test_claims_about_gpus_are_checked_in_sections(script, tmp_path):
    path = tmp_path / "rows.json"
    run = script("gpu_check", "--quick", "--out", path, "--sections", GPU_SECTIONS)
    rows = rows_of(path)
    assert list(rows) and set(rows) == set(GPU_SECTIONS.split(","))
    assert [row["holds"] for row in (*rows["equality"], *rows["dropout"])] == [True, True]
    assert not [row for section in rows.values() for row in section if row["holds"] is False]
    again = script("gpu_check", "--table", path)
    assert again.strip() and run.endswith(again)
    assert again.count("| usual |") == len(rows["usual"]) == 4  # Speed and memory of two encoders.


def test_a_section_that_fails_is_a_row_and_the_next_one_runs(script, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise ValueError("no model today")

    monkeypatch.setattr("training_memory.new_model", fail)
    path = tmp_path / "rows.json"
    script("gpu_check", "--quick", "--out", path, "--sections", "dropout,rest", exit_code=1)
    rows = rows_of(path)
    (failed_dropout,) = rows["dropout"]
    assert failed_dropout["holds"] is False and "ValueError: no model today" in failed_dropout["measured"]
    assert rows["rest"]


def test_a_section_is_left_out_when_the_budget_is_spent(script, tmp_path):
    path = tmp_path / "rows.json"
    script("gpu_check", "--quick", "--out", path, "--sections", "peaks", "--budget", 1, exit_code=1)
    (row,) = rows_of(path)["peaks"]
    assert row["measured"].startswith("left out") and row["holds"] is False


@pytest.mark.nightly
def test_all_claims_about_gpus_are_checked(script, tmp_path):
    path = tmp_path / "rows.json"
    script("gpu_check", "--quick", "--out", path)
    assert not [row for section in rows_of(path).values() for row in section if row["holds"] is False]


@pytest.mark.nightly
def test_pretraining_comes_to_the_same_loss_every_way(script):
    run = script("pretraining", "--quick")
    losses = {way: float(cells[-1]) for way, cells in numbers(run, 4).items()}
    assert losses.keys() == {"isogloss", "Trainer, blocks", "Trainer, lines"}
    assert all(abs(loss - log(12000)) < 0.5 for loss in losses.values())  # One step: as good as a guess.
    assert numbers(run, 3).keys() == {"isogloss : Trainer, blocks", "isogloss : Trainer, lines"}


@pytest.mark.nightly
def test_every_way_of_mixing_is_compared_with_translate_train(script):
    rows = numbers(script("x_mixup", "--quick"), 6)
    cells = {way: [float(cell) for cell in cells] for way, cells in rows.items()}
    assert cells.keys() == {"translate-train", "pairs alone", "constant ratio", "x-mixup"}
    assert cells["translate-train"][1] == cells["translate-train"][3] == 1
    assert all(cells[0] > 0 and cells[2] > 0 for cells in cells.values())
    assert cells["pairs alone"][-1] == pytest.approx(cells["translate-train"][-1], abs=0.1)


@pytest.mark.nightly
def test_fine_tuning_and_paths_find_the_same_as_trainer(script, tmp_path):
    run = script("bench", "--quick", "--out", tmp_path)
    (path,) = tmp_path.iterdir()
    data = json.loads(path.read_text(encoding="utf-8"))
    losses = [row["mean_loss"] for row in data["training"]]
    assert len(losses) == 5 and max(losses) - min(losses) < 0.05
    first_scores, *other_scores = [row["scores"] for row in data["path"]]
    assert len(first_scores) == 2 and other_scores
    for other_score in other_scores:
        assert other_score == pytest.approx(
            first_scores, abs=0.03
        )  # In bfloat16 a word in a hundred may differ.
    ratios = {name: cells[0] for name, cells in numbers(run, 3).items()}
    assert ratios == {ratio["name"]: f"{ratio['measured']:.2f}" for ratio in data["ratios"]}


@pytest.mark.nightly
def test_a_point_and_a_step_are_divided_into_their_parts(script, tmp_path):
    rows = numbers(script("point_parts", "--examples", 4, "--points", 2), 8)
    assert rows.keys() == {"upos", "parsing", "ner", "nli"}
    script("step_parts", "--shape", "tiny", "--kinds", "tagging", "--out", tmp_path / "steps.json")
    (step,) = json.loads((tmp_path / "steps.json").read_text(encoding="utf-8"))["kinds"].values()
    assert step.pop("milliseconds") > 0
    assert sum(step.values()) == pytest.approx(1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="it would measure")
def test_processes_on_a_gpu_are_compared_only_where_there_is_one(script):
    assert script("devices", "--quick").startswith("There is no GPU here")


@pytest.mark.nightly
def test_predicting_says_how_much_memory_each_file_took(script):
    assert script("predict_memory", "--lines", "20", "--mixed").startswith("20 lines: peak ")


@pytest.mark.nightly
def test_each_way_is_a_process_of_its_own_in_every_round(script, tmp_path):
    from turns import run_in_turns

    (tmp_path / "ways.py").write_text(WAY)
    result = run_in_turns(str(tmp_path / "ways.py"), ("a", "b"), 2, ["--shape", "tiny"])
    assert result == {way: [{"options": ["--way", way, "--shape", "tiny"]}] * 2 for way in ("a", "b")}


def test_the_page_of_layouts_has_every_small_layout_counted_as_by_hand(script):
    rows = [line.split(" | ") for line in script("layouts").splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 40
    assert {row[3] for row in rows} == {"equal"}


def test_speed_is_compared_with_trainer(script, tmp_path):
    run = script("bench", "--quick", "--out", tmp_path)
    assert {"isogloss, float32 : Trainer, padded to 128"} <= numbers(run, 3).keys()
    assert "| Trainer, grouped by length |" in run
    assert len(list(tmp_path.glob("*.json"))) == 1
