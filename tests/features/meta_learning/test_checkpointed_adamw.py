from dataclasses import replace

import torch

from isogloss.features.meta_learning.algorithm import CheckpointedAdamW
from isogloss.training.checkpoints import Checkpoints, State
from isogloss.training.optimizer import adamw
from toys import UPDATES, Drawn, loss, toy
from trained import equal, weights

CLIPPED = replace(UPDATES, clip=0.5, weight_decay=0.1)


def gradients(model, step):
    model[2].p = 0.0
    request = [parameter.detach().requires_grad_() for parameter in model.parameters()]
    names = [name for name, _ in model.named_parameters()]
    value = torch.func.functional_call(model, dict(zip(names, request, strict=True)), (Drawn()[step].x,))
    grad = torch.autograd.grad(torch.nn.functional.cross_entropy(value, Drawn()[step].y), request)
    return list(zip(model.parameters(), grad, strict=True))


def test_updates_are_those_of_adamw_to_the_bit():
    ours = toy()
    theirs = toy()
    theirs[2].p = 0.0
    kept_checkpointed_adam_w = CheckpointedAdamW(ours.parameters(), CLIPPED)
    optimizer = adamw(theirs, CLIPPED)
    for step in range(5):
        kept_checkpointed_adam_w.update(gradients(ours, step), rate=0.05)
        loss(theirs, Drawn()[step]).backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), CLIPPED.clip)
        optimizer.step()
        optimizer.zero_grad()
    assert equal(weights(ours), weights(theirs))


def test_only_what_is_given_a_gradient_moves_and_counts():
    model = toy()
    kept_checkpointed_adam_w = CheckpointedAdamW(model.parameters(), UPDATES)
    weights_before = weights(model)
    first_gradient = gradients(model, 0)[0]
    kept_checkpointed_adam_w.update([first_gradient], rate=0.05)
    moved_names = {
        name
        for name, parameter in model.named_parameters()
        if not torch.equal(parameter, weights_before[name])
    }
    assert moved_names == {"0.weight"}
    assert [float(update) for update in kept_checkpointed_adam_w.updates] == [1.0] + [0.0] * (
        len(weights_before) - 1
    )


def test_its_parameters_belong_to_no_other_optimizer_until_they_are_given_back():
    model = toy()
    kept_checkpointed_adam_w = CheckpointedAdamW(model[0].parameters(), UPDATES)
    kept_checkpointed_adam_w.update(
        [(parameter, torch.ones_like(parameter)) for parameter in model[0].parameters()], rate=0.05
    )
    other_id_lists = {id(param) for group in adamw(model, UPDATES).param_groups for param in group["params"]}
    assert not other_id_lists & {id(parameter) for parameter in model[0].parameters()}
    assert all(parameter.grad is None for parameter in model.parameters())
    kept_checkpointed_adam_w.restore_requires_grad()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_checkpoint_holds_its_moments(tmp_path):
    """Three updates, a checkpoint, two more: the same as five."""

    def start_training():
        model = toy()
        whole_module_dict = torch.nn.ModuleDict(
            {"model": model, "kept": CheckpointedAdamW(model.parameters(), UPDATES)}
        )
        return whole_module_dict, torch.optim.SGD([torch.zeros(1, requires_grad=True)])

    def move(whole_row, steps):
        for step in steps:
            whole_row["kept"].update(gradients(whole_row["model"], step), rate=0.05)

    whole_training, other_training = start_training()
    again, another = start_training()
    move(whole_training, range(3))
    Checkpoints(tmp_path, 1).save(whole_training, other_training, State(3, {}, None))
    move(whole_training, range(3, 5))
    assert Checkpoints(tmp_path, 1).load(again, another).step == 3
    move(again, range(3, 5))
    assert equal(weights(again), weights(whole_training))
