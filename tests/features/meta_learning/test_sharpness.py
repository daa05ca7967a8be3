"""Sharpness-aware minimization: its update by hand, the neutral radius, resuming, parts and refusals."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.identity import content
from isogloss.core.run_parts import Optimization, Updates, with_fields
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Callbacks, fit
from isogloss.training.memory import Load, Machine, Shape, training_memory
from isogloss.training.optimizer import move_uphill
from toys import UPDATES, Drawn, accuracy, loss, no_time, toy
from trained import equal, weights

RADIUS = 0.2


def train_toy(**changes):
    model = toy()
    rows = fit(model, Drawn(), loss, updates=replace(UPDATES, **changes), seed=0)
    return model, rows


@pytest.mark.parametrize("clip", [1.0, 0.0])
def test_an_update_is_made_by_the_gradient_uphill(clip):
    """The oracle is Algorithm 1 in plain torch, without dropout."""
    ours = toy()
    theirs = toy()
    ours[2].p = 0.0
    theirs[2].p = 0.0
    fit(ours, Drawn(), loss, updates=replace(UPDATES, sam_radius=RADIUS, clip=clip), seed=0)
    groups = [
        {"params": [weight for weight in theirs.parameters() if weight.dim() > 1], "weight_decay": 0.01},
        {"params": [weight for weight in theirs.parameters() if weight.dim() < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.05, fused=True)
    curve = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step + 1, (12 - step) / 12))
    for step in range(12):
        parameters = list(theirs.parameters())
        first_gradients = torch.autograd.grad(loss(theirs, Drawn()[step]), parameters)
        norm = torch.cat([gradient.flatten() for gradient in first_gradients]).norm()
        start = [weight.detach().clone() for weight in parameters]
        with torch.no_grad():
            for weight, gradient in zip(parameters, first_gradients, strict=True):
                weight.add_(RADIUS * gradient / norm)
        optimizer.zero_grad()
        loss(theirs, Drawn()[step]).backward()
        with torch.no_grad():
            for weight, value in zip(parameters, start, strict=True):
                weight.copy_(value)
        if clip:
            nn.utils.clip_grad_norm_(parameters, clip)
        optimizer.step()
        curve.step()
    for our_weight, their_weight in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(our_weight, their_weight, atol=1e-5)
    assert not equal(ours, toy())


def test_a_radius_of_0_is_the_training_without_it_to_the_bit():
    plain_model, plain_rows = train_toy()
    neutral, rows = train_toy(sam_radius=0.0)
    assert equal(neutral, plain_model)
    assert rows == plain_rows
    assert Updates(sam_radius=0.0) == Updates()
    assert content(with_fields(Optimization(), sam_radius=0.0)) == content(Optimization())
    assert not equal(train_toy(sam_radius=RADIUS)[0], plain_model)


def test_weights_are_restored_to_the_bit_after_an_error_too():
    model = toy()
    old_weights = weights(model)
    loss(model, Drawn()[0]).backward()
    with pytest.raises(KeyboardInterrupt), move_uphill(model.parameters(), RADIUS):
        distance = torch.cat(
            [(now - old_weights[name]).flatten() for name, now in weights(model).items()]
        ).norm()
        assert float(distance) == pytest.approx(RADIUS, rel=1e-5)
        assert all(weight.grad is None for weight in model.parameters())
        raise KeyboardInterrupt
    assert equal(model, old_weights)


def test_gradients_of_0_move_nothing():
    model = toy()
    old_weights = weights(model)
    for weight in model.parameters():
        weight.grad = torch.zeros_like(weight)
    with move_uphill(model.parameters(), RADIUS):
        assert equal(model, old_weights)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_a_training_in_parts_resumes_to_the_bit(precision, tmp_path):
    def train(name, stop=-1):
        model = toy()
        callbacks = Callbacks(
            evaluate=lambda _: [{"score": accuracy(model)}],
            evaluate_at=(6, 12),
            checkpoints=Checkpoints(tmp_path / name, 3, no_time),
        )
        updates = replace(UPDATES, precision=precision, sam_radius=RADIUS, accumulation=2)
        rows = fit(model, Drawn(stop=stop), loss, updates=updates, seed=5, callbacks=callbacks)
        return model, rows

    whole_model, rows = train("whole")
    with pytest.raises(KeyboardInterrupt):
        train("again", stop=8)
    again, again_rows = train("again")
    assert equal(again, whole_model)
    assert again_rows == rows


def test_parts_of_a_batch_share_one_gradient():
    whole_model = toy()
    parts = toy()
    for model, accumulation in ((whole_model, 1), (parts, 3)):
        model[2].p = 0.0
        updates = replace(UPDATES, sam_radius=RADIUS, accumulation=accumulation, epsilon=0.1)
        fit(model, Drawn(), loss, updates=updates, seed=0)
    for whole_weight, part_weight in zip(whole_model.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(whole_weight, part_weight, rtol=1e-4, atol=1e-5)


def test_what_cannot_be_made_twice_is_refused():
    with pytest.raises(ConfigError, match="sam_radius"):
        Updates(capture=True, sam_radius=RADIUS)
    with pytest.raises(ConfigError, match=r"meta-learning: sam_radius cannot be 0\.2"):
        with_fields(MetaLearning(), sam_radius=RADIUS)


def test_the_weights_that_are_restored_take_memory():
    shape = Shape(parameters=1000, layers=1, dim=8, heads=1, feed_forward=8, vocabulary=10)
    load = Load(rows=2, length=4)
    plain_memory, sam_memory = (
        training_memory(shape, load, updates, Machine(), best_weights=True)
        for updates in (Updates(), Updates(sam_radius=RADIUS))
    )
    assert sam_memory - plain_memory == 4 * 1000
