"""Two languages, told apart by the sign of their labels: a shared layer, and one of each language's own."""

from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import nn

from isogloss.features.meta_learning.algorithm import (
    INNER_STEPS,
    SECOND_ORDER,
    Learning,
    MetaBatch,
    MetaLearningModel,
    functional_loss,
    plain_step,
)
from isogloss.features.meta_learning.hypergradient import exact, hypergradient
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.fit import Callbacks, fit
from isogloss.training.optimizer import EPSILON, rate_schedule
from toys import UPDATES, no_time
from trained import equal, weights

LANGUAGES = ("en", "sw")
LEARNING = Learning(own_rate=0.05, inner_rate=0.05)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.shared = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Dropout(0.1))
            self.own = nn.ModuleDict({language: nn.Linear(12, 12) for language in LANGUAGES})
            self.head = nn.Linear(12, 2)

    def forward(self, batch):
        return self.head(torch.tanh(self.own[batch.language](self.shared(batch.x))))

    def language_parameters(self):
        return {
            language: {
                f"own.{language}.{name}": parameter
                for name, parameter in self.own[language].named_parameters()
            }
            for language in LANGUAGES
        }


@dataclass(frozen=True)
class Text:
    language: str
    x: torch.Tensor
    y: torch.Tensor

    def to(self, device):
        return Text(self.language, self.x.to(device), self.y.to(device))


def text(language, seed):
    x = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed))
    return Text(language, x, ((x.sum(dim=1) > 0) ^ (language == "sw")).long())


def loss(model, batch):
    return nn.functional.cross_entropy(model(batch).float(), batch.y)


@dataclass
class Steps:
    updates: object = UPDATES
    steps: int = 12
    stop: int = -1

    def __len__(self):
        return self.steps

    def __getitem__(self, step):
        if step == self.stop:
            raise KeyboardInterrupt
        return MetaBatch(
            language=LANGUAGES[step % 2],
            train=text(LANGUAGES[step % 2], step),
            validation=[text(language, 1000 + step) for language in LANGUAGES],
            pace=rate_schedule(self.updates, self.steps)(step) / self.updates.learning_rate,
        )


def learner(learning=LEARNING, updates=UPDATES):
    model = Model()
    return MetaLearningModel(model, model.language_parameters(), loss, learning=learning, updates=updates)


def call(learner, batch):
    return learner(batch)


def train_learner(learning=LEARNING, *, steps=None, updates=UPDATES, **callbacks):
    meta_learning_model = learner(learning, updates)
    rows = fit(
        meta_learning_model,
        steps or Steps(updates),
        call,
        updates=updates,
        seed=0,
        callbacks=Callbacks(**callbacks),
    )
    meta_learning_model.restore_requires_grad()
    return meta_learning_model.model, rows


# Algorithm 1


@pytest.mark.slow
@pytest.mark.parametrize("second_order", SECOND_ORDER)
@pytest.mark.parametrize("inner_step", INNER_STEPS)
def test_own_parameters_that_never_move_leave_plain_training_of_the_shared_ones(second_order, inner_step):
    still = replace(LEARNING, own_rate=0.0, second_order=second_order, inner_step=inner_step)
    ours, _ = train_learner(still)
    theirs = Model()
    theirs.own.requires_grad_(False)
    plainly = [batch.train for batch in (Steps().__getitem__(index) for index in range(12))]
    fit(theirs, plainly, loss, updates=UPDATES, seed=0)
    assert equal(weights(ours), weights(theirs))


def test_a_step_is_algorithm_1_written_out():
    updates = replace(UPDATES, clip=0.0, weight_decay=0.0)
    exactly = replace(LEARNING, second_order="exact", own_rate=0.2)
    ours = learner(exactly, updates).train()
    theirs = Model().train()
    batch = Steps(updates)[6]
    own_fields = theirs.language_parameters()["en"]
    torch.manual_seed(0)
    value = ours(batch)

    torch.manual_seed(0)
    shared = {name: parameter for name, parameter in theirs.named_parameters() if not name.startswith("own.")}
    result = hypergradient(
        functional_loss(theirs, loss, batch.train),
        [functional_loss(theirs, loss, item) for item in batch.validation],
        shared,
        own_fields,
        step=plain_step(batch.pace * 0.05),
        second_order=exact,
    )
    with torch.no_grad():
        for name, own_field in own_fields.items():  # Adam's first step has the length of its rate everywhere.
            gradient = result.total()[name]
            own_field.sub_(batch.pace * 0.2 * gradient / (gradient.abs() + EPSILON))
    assert value.detach() == pytest.approx(float(loss(theirs, batch.train).detach()), abs=1e-6)
    for name, own_field in ours.model.named_parameters():
        assert torch.allclose(own_field, theirs.get_parameter(name), atol=1e-6)


def test_a_step_moves_the_own_parameters_of_its_language_alone():
    meta_learning_model = learner()
    weights_before = weights(meta_learning_model.model)
    meta_learning_model(Steps()[1]).backward()
    moved_names = {
        name
        for name, now in meta_learning_model.model.named_parameters()
        if not torch.equal(now, weights_before[name])
    }
    assert moved_names == set(meta_learning_model.model.language_parameters()["sw"])
    names = {name for name, now in meta_learning_model.model.named_parameters() if now.grad is not None}
    assert names == {name for name in weights_before if not name.startswith("own.")}


def test_own_parameters_that_the_training_loss_moves_too_are_trained_plainly_where_the_others_are_0():
    ours, _ = train_learner(replace(LEARNING, own_rate=0.0, own_on_train=True))
    theirs = Model()
    fit(
        theirs,
        [batch.train for batch in (Steps().__getitem__(index) for index in range(12))],
        loss,
        updates=UPDATES,
        seed=0,
    )
    assert equal(weights(ours), weights(theirs))


@pytest.mark.parametrize("moves_shared", [True, False])
def test_the_training_loss_moves_own_parameters_from_where_the_validation_losses_put_them(moves_shared):
    single_meta_learning_model, meta_learning_models = (
        learner(replace(LEARNING, own_on_train=too, moves_shared=moves_shared)) for too in (False, True)
    )
    for learning_model in (single_meta_learning_model, meta_learning_models):
        learning_model.eval()(Steps()[1]).backward()
    assert equal(weights(single_meta_learning_model.model), weights(meta_learning_models.model))
    theirs = Model().eval()
    theirs.load_state_dict(meta_learning_models.model.state_dict())
    loss(theirs, Steps()[1].train).backward()
    for name in theirs.language_parameters()["sw"]:
        assert torch.equal(
            meta_learning_models.model.get_parameter(name).grad, theirs.get_parameter(name).grad
        )
        assert single_meta_learning_model.model.get_parameter(name).grad is None


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("second_order", SECOND_ORDER)
@pytest.mark.parametrize("inner_step", INNER_STEPS)
def test_what_is_meta_learned_lowers_the_loss_of_both_languages(second_order, inner_step):
    learning = replace(LEARNING, second_order=second_order, inner_step=inner_step)
    model, _ = train_learner(learning, steps=Steps(steps=60))
    unseen_texts = [text(language, 10**6) for language in LANGUAGES]
    assert all(float(loss(model, unseen_text).detach()) < 0.35 for unseen_text in unseen_texts)
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("precision", "inner_step"), [*product(["float32"], INNER_STEPS), ("bfloat16", "plain")]
)
@pytest.mark.parametrize("stop", [0, 3, 7])
def test_a_training_that_was_interrupted_ends_as_if_it_was_not(tmp_path, stop, inner_step, precision):
    updates = replace(UPDATES, precision=precision)
    learning = replace(LEARNING, inner_step=inner_step)
    checkpoints = Checkpoints(tmp_path / "work", 3, no_time)
    whole_learner, rows = train_learner(
        learning, updates=updates, checkpoints=Checkpoints(tmp_path / "whole", 3, no_time)
    )
    with pytest.raises(KeyboardInterrupt):
        train_learner(learning, updates=updates, steps=Steps(updates, stop=stop), checkpoints=checkpoints)
    again, rows_again = train_learner(learning, updates=updates, checkpoints=checkpoints)
    assert equal(weights(again), weights(whole_learner))
    assert rows_again == rows


def test_in_bfloat16_the_training_loss_sees_own_parameters_as_they_are_after_their_step():
    """Autocast keeps the weights it converts, which would be outdated."""
    meta_learning_model = learner(replace(LEARNING, own_rate=0.5))
    batch = Steps()[5]
    meta_learning_model.model.shared[2].p = 0.0
    values = []
    for arguments in (loss, lambda _, __: meta_learning_model(batch), loss):
        with torch.autocast("cpu", torch.bfloat16):
            values.append(float(arguments(meta_learning_model.model, batch.train).detach()))
    assert values[0] != values[1] == values[2]
