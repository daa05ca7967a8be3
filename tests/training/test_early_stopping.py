"""A training with patience is the first part of the one without, wherever it is interrupted."""

from dataclasses import replace

import pytest

from each import each
from isogloss.core.identity import identity
from isogloss.core.run_parts import Optimization
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fine_tuning import fine_tune
from isogloss.training.fit import Callback, Callbacks, fit
from made_up import on
from toys import UPDATES, Drawn, loss, no_time, toy
from trained import equal, weights

SCORES = {2: 0.1, 4: 0.5, 6: 0.5, 8: 0.2, 10: 0.9, 12: 0.3}
"""Dev scores after these steps: with patience 2, step 8 is the last and step 4 the best."""


def train(patience=2, *, checkpoints=None, stop=-1, on_progress=lambda _: None):
    """Train the toy. Return its weights, rows, and the steps with requested batches."""

    class Asked(Drawn):
        def __getitem__(self, step):
            steps.append(step)
            return super().__getitem__(step)

    model = toy()
    steps = []
    callbacks = Callbacks(
        evaluate=lambda step: [{"step": step, "score": SCORES[step]}],
        evaluate_at=tuple(SCORES),
        patience=patience,
        periodic=(Callback(rows=lambda step: [{"step": step, "seen": True}], every=5),),
        checkpoints=checkpoints,
        on_progress=on_progress,
    )
    rows = fit(model, Asked(stop=stop), loss, updates=UPDATES, seed=5, callbacks=callbacks)
    return weights(model), rows, steps


@pytest.mark.parametrize(("patience", "updates"), [(0, 12), (1, 6), (2, 8), (3, 12), (9, 12)])
def test_a_training_stops_after_so_many_evaluations_without_gain(patience, updates):
    _, rows, training = train(patience)
    assert training == list(range(updates))
    assert [row["step"] for row in rows if "loss" in row][-1] == updates
    assert [row["step"] for row in rows if "seen" in row][-1] == updates  # Observers see the last step.


def test_what_is_trained_is_the_beginning_of_the_whole_training():
    _, rows, _ = train(2)
    _, whole_training, _ = train(0)
    begun = [row for row in whole_training if row["step"] <= 8]
    assert [row for row in rows if row != {"step": 8, "seen": True}] == begun
    calls = {}
    model = toy()
    keep = Callbacks(
        evaluate=lambda step: calls.update({step: weights(model)}) or [{"score": SCORES[step]}],
        evaluate_at=tuple(SCORES),
    )
    fit(model, Drawn(), loss, updates=UPDATES, seed=5, callbacks=keep)
    assert equal(train(2)[0], calls[4])


@pytest.mark.slow
@pytest.mark.parametrize("interval", [1, 3, 4])
def test_an_interrupted_training_stops_where_it_would_have(tmp_path, interval):
    whole_training, rows, _ = train(checkpoints=Checkpoints(tmp_path / "whole", interval, no_time))
    for stop in range(8):
        checkpoints = Checkpoints(tmp_path / str(stop), interval, no_time)
        with pytest.raises(KeyboardInterrupt):
            train(checkpoints=checkpoints, stop=stop)
        again, rows_again, _ = train(checkpoints=checkpoints)
        assert equal(again, whole_training)
        assert rows_again == rows


def test_a_training_that_had_stopped_already_does_nothing_more(tmp_path):
    checkpoints = Checkpoints(tmp_path, 8, no_time)
    first_training = train(checkpoints=checkpoints)
    again = train(checkpoints=checkpoints)
    assert equal(again[0], first_training[0])
    assert (again[1], again[2]) == (first_training[1], [])


def test_progress_ends_where_the_training_does():
    messages = []
    train(on_progress=messages.append)
    assert (messages[-1].done, messages[-1].total) == (8, 8)
    assert messages[-1].remark == "stopped after 2 evaluations without a higher score"


def test_no_patience_is_no_part_of_an_id():
    assert identity(Optimization(patience=0)) == identity(Optimization())
    assert identity(Optimization(patience=1)) != identity(Optimization())
    assert replace(Optimization(patience=2), patience=0) == Optimization()


@pytest.mark.nightly
@pytest.mark.slow
def test_fine_tuning_records_where_it_stopped(make_setting, tmp_path):
    def train_named(name, **options):
        setting = make_setting(
            folder=tmp_path / name, epochs=5, learning_rate=1e-12, batch_size=40, **options
        )
        return fine_tune(setting, on("en")).rows

    patient = train_named("patient", patience=1)
    plain_result = train_named("plain")
    (stopping,) = [row for row in patient if "planned" in row]
    assert stopping == {"updates": 2, "planned": 5, "last_epoch": 2, "chosen_epoch": 1}
    assert [row for row in patient if row != stopping] == [
        row for row in plain_result if row.get("step", 0) <= 2
    ]
    assert not any("planned" in row for row in plain_result)


def test_a_training_without_a_step_has_no_end_to_record(make_setting):
    setting = make_setting(epochs=0, patience=1)
    assert not any("planned" in row for row in each(fine_tune(setting, on("en")).rows))
