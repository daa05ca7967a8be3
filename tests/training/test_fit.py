import math
import re
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

from each import each
from forked import Forked
from isogloss.core import processes
from isogloss.core.errors import ConfigError, DivergedError
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Callback, Callbacks, fit
from isogloss.training.optimizer import adamw
from toys import UPDATES, Drawn, accuracy, loss, no_time, toy
from trained import equal, weights

# What a training does


@pytest.mark.slow
def test_fit_learns_eight_examples_by_heart():
    points = Drawn()[0]
    model = toy()
    rows = fit(model, [points] * 150, loss, updates=UPDATES, seed=0)
    with torch.inference_mode():
        assert torch.equal(model(points.x).argmax(dim=1), points.y)
        assert float(loss(model, points)) < 0.05
    assert rows[-1]["step"] == 150


def test_every_batch_is_used_once_and_in_order():
    class Asked(Drawn):
        def __getitem__(self, step):
            steps.append(step)
            return super().__getitem__(step)

    steps = []
    fit(toy(), Asked(7), loss, updates=UPDATES, seed=0)
    assert steps == list(range(7))


def test_a_training_is_plain_torch():
    """The oracle is the loop anybody would write, without dropout."""
    ours = toy()
    theirs = toy()
    ours[2].p = theirs[2].p = 0.0
    fit(ours, Drawn(), loss, updates=UPDATES, seed=0)
    groups = [
        {"params": [w for w in theirs.parameters() if w.dim() > 1], "weight_decay": 0.01},
        {"params": [w for w in theirs.parameters() if w.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.05, fused=True)
    curve = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step + 1, (12 - step) / 12))
    for step in range(12):
        optimizer.zero_grad()
        loss(theirs, Drawn()[step]).backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        optimizer.step()
        curve.step()
    for left, right in each(zip(ours.parameters(), theirs.parameters(), strict=True)):
        assert torch.allclose(left, right, atol=1e-6)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_the_same_seed_gives_the_same_weights_and_another_seed_others(precision):
    def train_seed(seed):
        model = toy()
        fit(model, Drawn(), loss, updates=replace(UPDATES, precision=precision), seed=seed)
        return weights(model)

    assert equal(train_seed(0), train_seed(0))
    assert not equal(train_seed(0), train_seed(1))


def test_precisions_differ_and_weights_stay_float32():
    trained_weights = {}
    for precision in ("float32", "bfloat16"):
        model = toy()
        fit(model, Drawn(), loss, updates=replace(UPDATES, precision=precision), seed=0)
        trained_weights[precision] = weights(model)
        assert {weight.dtype for weight in trained_weights[precision].values()} == {torch.float32}
    assert not equal(trained_weights["float32"], trained_weights["bfloat16"])


def test_dropout_is_active_in_training_and_off_afterwards():
    modes = []

    def watch_points(model, points):
        modes.append(model[2].training)
        return loss(model, points)

    def note_step(done):
        modes.append(model[2].training)
        return [{"score": 0.0}]

    model = toy().eval()
    fit(
        model,
        Drawn(4),
        watch_points,
        updates=UPDATES,
        seed=0,
        callbacks=Callbacks(evaluate=note_step, evaluate_at=(2,)),
    )
    assert modes == [True, True, False, True, True]
    assert not model.training


@pytest.mark.parametrize(("clip", "largest"), [(0.5, 0.5), (0.0, math.inf)])
def test_clipping_bounds_the_gradient_and_0_switches_it_off(monkeypatch, clip, largest):
    def step(optimizer, *args):
        gradients = [weight.grad.norm() for group in optimizer.param_groups for weight in group["params"]]
        norms.append(float(torch.stack(gradients).norm()))
        return update(optimizer, *args)

    norms = []
    update = torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", step)
    updates = replace(UPDATES, clip=clip)
    fit(toy(), Drawn(3), lambda model, points: 100 * loss(model, points), updates=updates, seed=0)
    assert all(min(0.5, largest) - 1e-4 < norm <= largest + 1e-4 for norm in each(norms))


def test_the_model_stays_usable_and_unwrapped():
    model = toy()
    named_modules_before = list(model.named_modules())
    fit(model, Drawn(3), loss, updates=replace(UPDATES, precision="bfloat16"), seed=0)
    assert [(name, id(named_module)) for name, named_module in model.named_modules()] == [
        (name, id(item)) for name, item in named_modules_before
    ]
    assert "forward" not in vars(model)
    assert model(Drawn()[0].x).dtype == torch.float32
    assert all(not module._forward_hooks for module in model.modules())
    fit(model, Drawn(3), loss, updates=UPDATES, seed=1)


def test_the_random_numbers_of_the_process_are_given_back():
    rng_state_before = torch.get_rng_state()
    fit(toy(), Drawn(3), loss, updates=UPDATES, seed=0)
    assert torch.equal(torch.get_rng_state(), rng_state_before)
    with pytest.raises(KeyboardInterrupt):
        fit(toy(), Drawn(3, stop=1), loss, updates=UPDATES, seed=0)
    assert torch.equal(torch.get_rng_state(), rng_state_before)


def test_the_environment_does_not_change_a_training(monkeypatch):
    plain_toy = toy()
    other_toy = toy()
    fit(plain_toy, Drawn(), loss, updates=UPDATES, seed=0)
    monkeypatch.setenv("ACCELERATE_GRADIENT_ACCUMULATION_STEPS", "4")
    monkeypatch.setenv("ACCELERATE_MIXED_PRECISION", "bf16")
    fit(other_toy, Drawn(), loss, updates=UPDATES, seed=0)
    assert equal(weights(plain_toy), weights(other_toy))


def test_frozen_weights_stay():
    model = toy()
    model[0].weight.requires_grad_(False)
    weights_before = weights(model)
    fit(model, Drawn(), loss, updates=UPDATES, seed=0)
    changed_names = {
        name for name, weight in weights(model).items() if not torch.equal(weight, weights_before[name])
    }
    assert changed_names == weights_before.keys() - {"0.weight"}


# Batches computed in parts


def trained_in_parts(accumulation, dropout=0.0, batches=None):
    model = toy()
    model[2].p = dropout
    updates = replace(UPDATES, accumulation=accumulation)
    rows = fit(model, batches or Drawn(), loss, updates=updates, seed=0)
    return weights(model), rows


@pytest.mark.parametrize("accumulation", [2, 3, 4])
def test_a_batch_in_parts_is_the_whole_batch_within_rounding(accumulation):
    whole_result, rows = trained_in_parts(1)
    parts, rows_of_parts = trained_in_parts(accumulation)
    assert not equal(whole_result, parts)
    assert all(torch.allclose(whole_result[name], parts[name], atol=1e-5) for name in whole_result)
    assert [row["loss"] for row in rows_of_parts] == pytest.approx([row["loss"] for row in rows], abs=1e-5)


def test_parts_drop_for_themselves_and_again_alike():
    item = trained_in_parts(3, dropout=0.5)
    again = trained_in_parts(3, dropout=0.5)
    assert equal(item[0], again[0])
    assert not all(torch.allclose(w, trained_in_parts(1, dropout=0.5)[0][n]) for n, w in item[0].items())


def test_a_batch_that_has_no_parts_is_refused_with_accumulation():
    class Whole:
        x = Drawn()[0].x
        y = Drawn()[0].y

    with pytest.raises(ConfigError, match="training:"):
        trained_in_parts(2, batches=[Whole()])


# Observers


def test_observers_look_every_so_many_steps_and_after_the_last():
    looked_value = []

    def look(done):
        looked_value.append((done, model.training))
        torch.rand(3)
        return [{"step": done, "score": -done}]

    model = toy()
    callbacks = Callbacks(periodic=(Callback(rows=look, every=5), Callback(rows=look, every=20)))
    rows = fit(model, Drawn(), loss, updates=UPDATES, seed=0, callbacks=callbacks)
    assert looked_value == [(5, False), (10, False), (12, False), (12, False)]
    assert [row["step"] for row in rows if "score" in row] == [5, 10, 12, 12]


# Results of a training other than its weights


def test_rows_tell_the_mean_loss_and_the_rate():
    messages = []
    rows = fit(
        toy(), Drawn(45), loss, updates=UPDATES, seed=0, callbacks=Callbacks(on_progress=messages.append)
    )
    assert [row["step"] for row in rows] == [20, 40, 45]
    assert all(0 < row["loss"] < 2 and 0 < row["rate"] <= 0.05 for row in rows)
    assert [(message.what, message.done, message.total) for message in messages] == [
        ("training", n, 45) for n in (20, 40, 45)
    ]


def test_the_best_epochs_weights_are_left_in_the_model():
    scores = {3: [0.2, 0.4], 6: [0.9, 0.1], 9: [0.4, 0.6], 12: [0.3, 0.1]}
    calls = {}

    def evaluate(done):
        calls[done] = weights(model)
        return [{"step": done, "score": score} for score in scores[done]]

    model = toy()
    rows = fit(
        model,
        Drawn(),
        loss,
        updates=UPDATES,
        seed=0,
        callbacks=Callbacks(evaluate=evaluate, evaluate_at=tuple(scores)),
    )
    assert equal(weights(model), calls[6])  # 6 and 9 are equally good: the earlier one.
    assert [row["score"] for row in rows if "score" in row] == [x for two in scores.values() for x in two]


def test_progress_has_the_dev_scores_of_each_epoch():
    def evaluate(done):
        row = {"split": "dev", "metric": "accuracy"}
        return [{**row, "language": language, "score": done / 100} for language in ("qaa", "qab")]

    progress_events = []
    callbacks = Callbacks(evaluate=evaluate, evaluate_at=(6, 12), on_progress=progress_events.append)
    fit(toy(), Drawn(), loss, updates=UPDATES, seed=0, callbacks=callbacks)
    scores = [progress.remark.partition(", ")[2] for progress in progress_events]
    assert scores == ["dev accuracy qaa 6.0, qab 6.0", "dev accuracy qaa 12.0, qab 12.0"]


def test_without_evaluation_the_last_weights_are_left():
    item = toy()
    other_toy = toy()
    fit(item, Drawn(), loss, updates=UPDATES, seed=0)
    worse = iter([1.0, 0.0])
    callbacks = Callbacks(evaluate=lambda _: [{"score": next(worse)}], evaluate_at=(6, 12))
    fit(other_toy, Drawn(), loss, updates=UPDATES, seed=0, callbacks=callbacks)
    assert not equal(weights(item), weights(other_toy))


# When numbers stop making sense


@pytest.mark.parametrize("bad_value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("step", [0, 4, 11])
def test_a_loss_that_is_no_number_is_an_error_with_the_step(bad_value, step):
    def breaking(model, points):
        calls.append(1)
        return loss(model, points) * (bad_value if len(calls) == step + 1 else 1.0)

    calls = []
    with pytest.raises(DivergedError) as error:
        fit(toy(), Drawn(), breaking, updates=UPDATES, seed=0, callbacks=Callbacks(what="fine-tuning on en"))
    text = str(error.value)
    assert f"fine-tuning on en: the loss is {bad_value} in step {step + 1} of 12." in text
    assert "learning_rate" in text


def test_a_last_update_that_breaks_the_weights_is_found():
    def breaking(model, points):
        value = loss(model, points)
        return value + (value - value).sqrt() if len(calls) == 3 else calls.append(1) or value

    calls = []
    with pytest.raises(DivergedError, match=r"step 4.*4"):
        fit(toy(), Drawn(4), breaking, updates=UPDATES, seed=0)


# Interruptions


def train_with_scores(model, folder, interval):
    def evaluate(done):
        return [{"step": done, "score": accuracy(model)}]

    callback = Callback(rows=lambda step: [{"step": step, "seen": accuracy(model)}], every=5)
    return Callbacks(
        evaluate=evaluate,
        evaluate_at=(4, 8, 12),
        periodic=(callback,),
        checkpoints=Checkpoints(folder, interval, no_time),
    )


def train(folder, *, interval=3, precision="float32", stop=-1, accumulation=1):
    model = toy()
    updates = replace(UPDATES, precision=precision, accumulation=accumulation)
    rows = fit(
        model,
        Drawn(stop=stop),
        loss,
        updates=updates,
        seed=5,
        callbacks=train_with_scores(model, folder, interval),
    )
    return weights(model), rows


def wide(seed=0):
    """A model with a matrix of more than 4096 numbers."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 3000), nn.Dropout(0.3), nn.ReLU(), nn.Linear(3000, 2))


@pytest.mark.nightly
@pytest.mark.slow
def test_8_bit_states_are_a_quarter_learn_alike_and_resume_to_the_bit(tmp_path):
    pytest.importorskip("bitsandbytes")

    def train(name, stop=-1, **options):
        model = wide()
        updates = replace(UPDATES, learning_rate=0.01, **options)
        callbacks = Callbacks(checkpoints=Checkpoints(tmp_path / name, 3, no_time))
        rows = fit(model, Drawn(40, stop=stop), loss, updates=updates, seed=5, callbacks=callbacks)
        (kept_path,) = (tmp_path / name).glob("checkpoint-*/optimizer.safetensors")
        return weights(model), rows, kept_path.stat().st_size

    exact, rows, size = train("exact")
    coarse, training, less = train("coarse", optimizer_states="8-bit")
    assert not equal(coarse, exact)
    assert training[-1]["loss"] == pytest.approx(rows[-1]["loss"], abs=0.05)
    assert less < 0.5 * size
    with pytest.raises(KeyboardInterrupt):
        train("again", optimizer_states="8-bit", stop=10)
    assert equal(train("again", optimizer_states="8-bit")[0], coarse)


def test_8_bit_states_without_their_package_or_on_other_devices_are_refused(monkeypatch):
    from isogloss.training import optimizer as module

    updates = replace(UPDATES, optimizer_states="8-bit")
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=r'"isogloss\[eight-bit\]"'):
        adamw(toy(), updates)
    monkeypatch.setattr(module, "find_spec", lambda _: "there")
    with pytest.raises(ConfigError, match=r"device.*cpu"):
        adamw(toy().to("meta"), updates)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [*({"interval": interval} for interval in (1, 3, 4, 5)), {"precision": "bfloat16"}, {"accumulation": 3}],
    ids=str,
)
def test_a_training_stopped_at_any_step_ends_as_if_it_was_not(tmp_path, options):
    whole_training, rows = train(tmp_path / "whole", **options)
    for stop in range(12) if options == {"every": 4} else (0, 5, 8, 11):
        folder = tmp_path / str(stop)
        with pytest.raises(KeyboardInterrupt):
            train(folder, **options, stop=stop)
        again, rows_again = train(folder, **options)
        assert equal(again, whole_training)
        assert rows_again == rows


def test_a_training_stopped_again_and_again_ends_as_if_it_was_not(tmp_path):
    whole_training, rows = train(tmp_path / "whole")
    for stop in (2, 4, 4, 7, 11):
        with pytest.raises(KeyboardInterrupt):
            train(tmp_path / "x", stop=stop)
    again, rows_again = train(tmp_path / "x")
    assert equal(again, whole_training)
    assert rows_again == rows


def test_a_training_asked_to_leave_keeps_a_checkpoint_of_the_step_and_ends_as_if_it_was_not(tmp_path):
    class Asking(Drawn):
        def __getitem__(self, step):
            if step == stop:
                processes.request_interruption()
            return super().__getitem__(step)

    whole_training, rows = train(tmp_path / "whole")
    for stop in (0, 4, 6, 10):
        model = toy()
        folder = tmp_path / str(stop)
        with processes.interruptible(), pytest.raises(processes.Interrupted):
            fit(model, Asking(), loss, updates=UPDATES, seed=5, callbacks=train_with_scores(model, folder, 3))
        assert [path.name for path in folder.iterdir()] == [f"checkpoint-{stop + 1:09d}"]
        assert not processes.interruption_requested()
        again, rows_again = train(folder)
        assert equal(again, whole_training)
        assert rows_again == rows


def test_a_training_asked_to_leave_while_it_is_scored_ends_that_first_and_keeps_it(tmp_path):
    model = toy()
    callbacks = train_with_scores(model, tmp_path, 3)

    def evaluate(done):
        processes.request_interruption()
        assert processes.interruption_requested()
        assert not processes.should_stop()  # A report of progress would end it here.
        return callbacks.evaluate(done)

    asking = replace(callbacks, evaluate=evaluate)
    with processes.interruptible(), pytest.raises(processes.Interrupted):
        fit(model, Drawn(), loss, updates=UPDATES, seed=5, callbacks=asking)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000004"]
    again, rows_again = train(tmp_path)
    whole_training, rows = train(tmp_path / "whole")
    assert equal(again, whole_training)
    assert rows_again == rows


def test_a_training_asked_to_leave_in_its_last_step_ends(tmp_path):
    class Asking(Drawn):
        def __getitem__(self, step):
            if step == len(self) - 1:
                processes.request_interruption()
            return super().__getitem__(step)

    model = toy()
    with processes.interruptible():
        rows = fit(
            model, Asking(), loss, updates=UPDATES, seed=5, callbacks=train_with_scores(model, tmp_path, 3)
        )
    whole_training, rows = train(tmp_path / "whole")
    assert equal(model, whole_training)
    assert rows == rows


def test_a_resumed_training_does_only_what_is_left(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path, stop=8)
    steps = []

    class Asked(Drawn):
        def __getitem__(self, step):
            steps.append(step)
            return super().__getitem__(step)

    model = toy()
    fit(model, Asked(), loss, updates=UPDATES, seed=5, callbacks=train_with_scores(model, tmp_path, 3))
    assert steps == list(range(6, 12))


def test_a_resumed_training_keeps_the_precision_it_began_with(tmp_path, monkeypatch):
    from isogloss.training import precision

    monkeypatch.setattr(precision, "measured_precision", lambda _: "bfloat16")
    whole_training, _ = train(tmp_path / "whole", precision="auto")
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "x", precision="auto", stop=5)
    monkeypatch.setattr(precision, "measured_precision", lambda _: "float32")
    again, _ = train(tmp_path / "x", precision="auto")
    assert equal(again, whole_training)


KILLED = """
import os, signal, sys
from dataclasses import replace
from pathlib import Path
import torch
from test_fit import train
from toys import Drawn

class Killed(Drawn):
    def __getitem__(self, step):
        if step == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(step)

import test_fit
test_fit.Drawn = Killed
train(Path(sys.argv[1]))
"""


@pytest.mark.slow
def test_a_killed_process_loses_nothing_but_time(tmp_path):
    whole_training, rows = train(tmp_path / "whole")
    place = {"PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"}
    assert Forked([sys.executable, "-c", KILLED, str(tmp_path / "x")], env=place).wait() == -9
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["checkpoint-000000009"]
    again, rows_again = train(tmp_path / "x")
    assert equal(again, whole_training)
    assert rows_again == rows


def test_every_error_message_is_one_line():
    with pytest.raises(DivergedError) as error:
        fit(toy(), Drawn(1), lambda *_: torch.tensor(math.nan, requires_grad=True), updates=UPDATES, seed=0)
    assert re.fullmatch(r"[^\n]+", str(error.value))


# Observation


def train_observed(model, interval=5, folder=None, stop=-1):
    """Train with a callback that draws random numbers, derives and reads the mode."""

    def look(done):
        torch.rand(7)
        points = Drawn()[0]
        value = loss(model, points)
        value.backward()
        kept_trainings.append(model.training)
        return [{"step": done, "seen": float(value.detach())}]

    kept_trainings = []
    checkpoints = Checkpoints(folder, 3, no_time) if folder else None
    callbacks = train_with_scores(model, folder, 3) if folder else Callbacks()
    callbacks = replace(callbacks, periodic=(Callback(rows=look, every=interval),), checkpoints=checkpoints)
    rows = fit(model, Drawn(stop=stop), loss, updates=UPDATES, seed=5, callbacks=callbacks)
    return weights(model), rows, kept_trainings


def test_an_observer_changes_no_weight_and_its_rows_join_the_others():
    plain_toy = toy()
    calls = toy()
    single_fit = fit(plain_toy, Drawn(), loss, updates=UPDATES, seed=5)
    trained_model, rows, modes = train_observed(calls)
    assert equal(trained_model, weights(plain_toy))
    assert [row for row in rows if "seen" not in row] == single_fit
    assert [row["step"] for row in rows if "seen" in row] == [5, 10, 12]
    assert modes == [False] * 3


@pytest.mark.nightly
@pytest.mark.slow
def test_an_observed_training_stopped_at_any_step_ends_as_if_it_was_not(tmp_path):
    whole_result, rows, _ = train_observed(toy(), folder=tmp_path / "whole")
    for stop in range(12):
        folder = tmp_path / str(stop)
        with pytest.raises(KeyboardInterrupt):
            train_observed(toy(), folder=folder, stop=stop)
        again, rows_again, _ = train_observed(toy(), folder=folder)
        assert equal(again, whole_result)
        assert rows_again == rows
