from dataclasses import replace

import torch
from toys import UPDATES, Drawn, loss, toy

from isogloss.training.checkpoints import Checkpoints, State
from isogloss.training.meta_learning import CheckpointedAdamW
from isogloss.training.optimizer import adamw
from trained import equal, weights

CLIPPED = replace(UPDATES, clip=0.5, weight_decay=0.1)


def gradients(model, step):
    model[2].p = 0.0
    wanted = [one.detach().requires_grad_() for one in model.parameters()]
    names = [name for name, _ in model.named_parameters()]
    value = torch.func.functional_call(model, dict(zip(names, wanted, strict=True)), (Drawn()[step].x,))
    found = torch.autograd.grad(torch.nn.functional.cross_entropy(value, Drawn()[step].y), wanted)
    return list(zip(model.parameters(), found, strict=True))


def test_updates_are_those_of_adamw_to_the_bit():
    ours, theirs = toy(), toy()
    theirs[2].p = 0.0
    kept, optimizer = CheckpointedAdamW(ours.parameters(), CLIPPED), adamw(theirs, CLIPPED)
    for step in range(5):
        kept.update(gradients(ours, step), rate=0.05)
        loss(theirs, Drawn()[step]).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIPPED.clip)
        optimizer.step()
        optimizer.zero_grad()
    assert equal(weights(ours), weights(theirs))


def test_only_what_is_given_a_gradient_moves_and_counts():
    model = toy()
    kept, before = CheckpointedAdamW(model.parameters(), UPDATES), weights(model)
    first = gradients(model, 0)[0]
    kept.update([first], rate=0.05)
    moved = {name for name, one in model.named_parameters() if not torch.equal(one, before[name])}
    assert moved == {"0.weight"}
    assert [float(one) for one in kept.updates] == [1.0] + [0.0] * (len(before) - 1)


def test_its_parameters_belong_to_no_other_optimizer_until_they_are_given_back():
    model = toy()
    kept = CheckpointedAdamW(model[0].parameters(), UPDATES)
    kept.update([(one, torch.ones_like(one)) for one in model[0].parameters()], rate=0.05)
    others = {id(one) for group in adamw(model, UPDATES).param_groups for one in group["params"]}
    assert not others & {id(one) for one in model[0].parameters()}
    assert all(one.grad is None for one in model.parameters())
    kept.restore_requires_grad()
    assert all(one.requires_grad for one in model.parameters())


def test_a_checkpoint_holds_its_moments(tmp_path):
    """Three updates, a checkpoint, two more: the same as five."""

    def start_training():
        model = toy()
        whole = torch.nn.ModuleDict({"model": model, "kept": CheckpointedAdamW(model.parameters(), UPDATES)})
        return whole, torch.optim.SGD([torch.zeros(1, requires_grad=True)])

    def move(whole, steps):
        for step in steps:
            whole["kept"].update(gradients(whole["model"], step), rate=0.05)

    (whole, other), (again, another) = start_training(), start_training()
    move(whole, range(3))
    Checkpoints(tmp_path, 1).save(whole, other, State(3, {}, None))
    move(whole, range(3, 5))
    assert Checkpoints(tmp_path, 1).load(again, another).step == 3
    move(again, range(3, 5))
    assert equal(weights(again), weights(whole))
