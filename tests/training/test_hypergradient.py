"""The model is a real encoder. Without language modules, a feed-forward replaces them."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from isogloss.core.run_parts import Architecture, Modules
from isogloss.encoders import FAMILIES
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.families import family_of
from isogloss.features.meta_learning.algorithm import functional_loss, plain_step, preconditioned_step
from isogloss.features.meta_learning.hypergradient import (
    exact,
    finite_difference,
    first_order,
    hypergradient,
    norm,
)
from isogloss.features.pretraining.starts import new_encoder
from isogloss.tasks.masked_lm import Masking, Vocabulary

WORDS = 40
VOCABULARY = Vocabulary(size=WORDS, first=2, last=3, padding=0, mask=4, special=(0, 1, 2, 3, 4))
SHAPE = {"dim": 16, "heads": 2, "feed_forward": 24, "vocabulary": WORDS, "positions": 24}


class Tokenizer:
    """The parts of a tokenizer that ``new_encoder`` uses."""

    pad_token_id = 0
    cls_token_id = 2
    sep_token_id = 3

    def __len__(self):
        return WORDS


def loss_in(language):
    """Masked LM in the precision of the weights: small differences are lost in the library's float32."""

    def loss(model, batch):
        with active_language(model, language):
            states = model.base_model(input_ids=batch.subwords).last_hidden_state
        scores = family_of(model).masked_lm_scores(model, states.flatten(0, 1)[batch.masked])
        return nn.functional.cross_entropy(scores.to(next(model.parameters()).dtype), batch.gold)

    return loss


@dataclass
class Problem:
    """A training text in one language, validation texts in the same and a second language."""

    family: str = "bert"
    layers: int = 2
    dropout: float = 0.0
    dtype: torch.dtype = torch.float64
    attention: str = "eager"
    modules: str = ""

    def __post_init__(self):
        shape = Architecture(family=self.family, layers=self.layers, **SHAPE)
        model = new_encoder(shape, Tokenizer(), seed=0).to(self.dtype).train()
        if self.attention != "eager":
            model.set_attn_implementation(self.attention)
        for part in model.modules():
            if isinstance(part, nn.Dropout):
                part.p = self.dropout
        if self.modules:
            add_modules(model, Modules(kind=self.modules), ("en", "sw"), seed=1)
            own_language_parameters = language_parameters(model, "en")
            torch.nn.utils.vector_to_parameters(
                0.1 * like({"": flat(own_language_parameters)}, 0)[""] + flat(own_language_parameters),
                own_language_parameters.values(),
            )
        else:
            site = family_of(model).sites(model)[0]
            own_language_parameters = {
                name: parameter
                for name, parameter in site.parameters(model, "feed_forward")
                if "norm" not in name.lower()
            }
        self.model = model
        self.own = own_language_parameters
        self.shared = {
            name: parameter
            for name, parameter in model.named_parameters()
            if name not in own_language_parameters
        }
        texts = [("en", 1, 5, 20), ("en", 2, 5, 20), ("sw", 3, 15, 40)]
        self.train, *self.validation = [
            functional_loss(model, loss_in(language), mask_rows(*text)) for language, *text in texts
        ]

    def solve(self, form, step):
        return hypergradient(self.train, self.validation, self.shared, self.own, step=step, second_order=form)

    def objective(self, own_parameters, step):
        """Return the validation loss after a step, whose slope is the whole matter."""
        shared = {name: part.detach().requires_grad_() for name, part in self.shared.items()}
        loss = self.train(shared, own_parameters)
        taken_step = step(dict(zip(shared, gradients(loss, shared), strict=True)))
        differences = {name: (part - taken_step[name]).detach() for name, part in shared.items()}
        return sum(float(item(differences, own_parameters)) for item in self.validation) / len(
            self.validation
        )


def flat(parameters):
    return torch.nn.utils.parameters_to_vector(parameters.values()).detach()


def mask_rows(seed, low, high):
    rng = np.random.Generator(np.random.PCG64(seed))
    rows = [[rng.integers(low, high, size=10)] for _ in range(6)]
    return Masking(vocabulary=VOCABULARY, share=0.3).batch(rows, seed=seed)


def gradients(value, parameters):
    return torch.autograd.grad(value, list(parameters.values()), materialize_grads=True)


def like(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    return {n: torch.randn(p.shape, generator=generator, dtype=p.dtype) for n, p in parameters.items()}


def plain(shared):
    return plain_step(0.5)


def precondition(shared):
    moments = {name: 1e-4 * part.square() for name, part in like(shared, 3).items()}
    return preconditioned_step(0.02, moments, updates=3, beta2=0.98, epsilon=1e-6)


STEPS = pytest.mark.parametrize("steps", [plain, precondition])


def apart(left, right):
    """Return the relative error of a gradient as an estimate of a reference gradient."""
    return float(norm({name: left[name] - right[name] for name in left}) / norm(right))


# Agreement


@pytest.mark.each_value
@STEPS
@pytest.mark.parametrize("modules", ["", "adapter", "feed-forward", "attention"])
def test_the_exact_gradient_is_the_slope_of_the_whole_objective(steps, modules):
    problem = Problem(modules=modules)
    step = steps(problem.shared)
    total = problem.solve(exact, step).total()
    for seed in range(3):
        way = like(problem.own, seed)
        little = 1e-5 / norm(way)
        own_parts = [
            {name: part.detach() + sign * little * way[name] for name, part in problem.own.items()}
            for sign in (1, -1)
        ]
        slope = float(
            (problem.objective(own_parts[0], step) - problem.objective(own_parts[1], step)) / (2 * little)
        )
        along_total = float(sum((total[name] * way[name]).sum() for name in way))
        assert along_total == pytest.approx(slope, rel=1e-4)


@STEPS
def test_the_exact_gradient_is_that_of_the_objective_differentiated_number_by_number(steps):
    problem = Problem(layers=1)
    name = min(problem.own, key=lambda name: problem.own[name].numel())
    problem.shared |= {other_name: part for other_name, part in problem.own.items() if other_name != name}
    problem.own = {name: problem.own[name].detach().clone()}
    step = steps(problem.shared)
    flat = problem.own[name].view(-1)
    slopes = torch.empty_like(flat)
    for place in range(len(flat)):
        ends = []
        for little in (1e-5, -1e-5):
            flat[place] += little
            ends.append(problem.objective(problem.own, step))
            flat[place] -= little
        slopes[place] = (ends[0] - ends[1]) / 2e-5
    assert apart(problem.solve(exact, step).total(), {name: slopes.view_as(problem.own[name])}) < 1e-4


@pytest.mark.each_value
@STEPS
@pytest.mark.parametrize(
    "family", [name for name, family in FAMILIES.items() if "new-encoders" not in family.lacks]
)
def test_finite_differences_agree_with_the_exact_gradient(family, steps):
    problem = Problem(family)
    step = steps(problem.shared)
    whole_solution = problem.solve(exact, step)
    near_solution = problem.solve(finite_difference, step)
    assert norm(whole_solution.second_order) > 0.1 * norm(
        whole_solution.direct
    )  # Else there would be nothing to agree on.
    assert apart(near_solution.second_order, whole_solution.second_order) < 1e-2
    assert apart(near_solution.total(), whole_solution.total()) < 1e-2


def test_both_forms_agree_where_dropout_drops():
    problem = Problem(dropout=0.3)
    whole_solution, near_solution = (
        problem.solve(form, plain_step(0.5)) for form in (exact, finite_difference)
    )
    assert apart(near_solution.second_order, whole_solution.second_order) < 1e-2
    assert not torch.equal(whole_solution.train, Problem().solve(exact, plain_step(0.5)).train)


def test_fused_attention_is_differentiated_twice_as_explicit_attention_is():
    explicit, fused_solution = (
        Problem(attention=kind).solve(exact, plain_step(0.5)) for kind in ("eager", "sdpa")
    )
    assert apart(fused_solution.total(), explicit.total()) < 1e-8


@pytest.mark.parametrize(
    ("form", "far_points"), [(exact, 0.1), (finite_difference, 0.1), (first_order, 0.05)]
)
def test_bfloat16_comes_near_what_float64_finds(form, far_points):
    fine = Problem().solve(form, plain_step(0.5))
    with torch.autocast("cpu", torch.bfloat16):
        coarse = Problem(dtype=torch.float32).solve(form, plain_step(0.5))
    assert {part.dtype for part in coarse.total().values()} == {torch.float32}
    assert apart(coarse.total(), fine.total()) < far_points


# What holds for any loss


@pytest.mark.slow
@given(st.lists(st.floats(-2, 2), min_size=6, max_size=6), st.floats(0.01, 0.5))
def test_the_gradient_of_quadratic_losses_is_the_one_on_paper(numbers, rate):
    """With L_train = ½|θ + Aφ|² and L_val = ½|θ − b|², d/dφ is −βAᵀ(θ' − b)."""
    theta, b, *remaining_tensors = (
        torch.tensor(pair, dtype=torch.float64) for pair in zip(numbers[::2], numbers[1::2], strict=True)
    )
    phi = remaining_tensors[0]
    a = torch.tensor([[1.0, 0.5], [-2.0, 3.0]], dtype=torch.float64)
    stepped_difference = theta - rate * (theta + a @ phi)
    product = -rate * a.T @ (stepped_difference - b)
    for form in (exact, finite_difference):
        result = hypergradient(
            lambda shared, own_row: (shared["θ"] + a @ own_row["φ"]).square().sum() / 2,
            [lambda shared, own_part: (shared["θ"] - b).square().sum() / 2],
            {"θ": theta},
            {"φ": phi},
            step=plain_step(rate),
            second_order=form,
        )
        assert torch.allclose(result.second_order["φ"], product, atol=1e-8)
        assert not result.direct["φ"].any()


def test_without_a_step_the_gradient_is_that_of_the_validation_loss():
    problem = Problem()
    solution = problem.solve(exact, plain_step(0.0))
    own_parts = {name: part.detach().requires_grad_() for name, part in problem.own.items()}
    mean = sum(item(problem.shared, own_parts) for item in problem.validation) / 2
    request = dict(zip(own_parts, gradients(mean, own_parts), strict=True))
    assert apart(solution.total(), request) < 1e-12
    assert not norm(solution.second_order)


def test_first_order_is_the_exact_gradient_without_its_second_term():
    whole_solution, part = (Problem().solve(form, plain_step(0.5)) for form in (exact, first_order))
    assert not norm(part.second_order)
    assert all(torch.equal(part.total()[name], whole_solution.direct[name]) for name in whole_solution.direct)


def test_losses_that_know_nothing_of_the_own_parameters_give_none_a_gradient():
    def far(shared, own_parameters):
        return shared["θ"].sum()

    for form in (exact, finite_difference, first_order):
        parts = {"θ": torch.ones(2)}, {"φ": torch.ones(3)}
        result = hypergradient(far, [far], *parts, step=plain_step(1.0), second_order=form)
        assert torch.equal(result.total()["φ"], torch.zeros(3))


@pytest.mark.parametrize("form", [exact, finite_difference, first_order])
def test_parameters_and_random_numbers_are_left_as_they_were(form):
    problem = Problem(dropout=0.3)
    parts_before = {name: part.detach().clone() for name, part in problem.model.named_parameters()}
    state = torch.random.get_rng_state()
    problem.solve(form, plain_step(0.5))
    assert torch.equal(torch.random.get_rng_state(), state)
    for name, part in problem.model.named_parameters():
        assert torch.equal(part, parts_before[name])
        assert part.grad is None
        assert part.requires_grad


# Inner steps


def test_the_preconditioned_step_is_the_one_adam_takes_without_its_memory():
    weight = torch.randn(5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    adam = torch.optim.Adam([weight], lr=0.1, betas=(0.0, 0.9), eps=1e-12)
    moments = {"w": torch.zeros_like(weight)}
    for update in range(4):
        gradient = like({"w": weight}, update)
        step = preconditioned_step(0.1, moments, updates=update, beta2=0.9, epsilon=1e-12)(gradient)["w"]
        weight_before = weight.clone()
        weight.grad = gradient["w"]
        adam.step()
        assert torch.allclose(weight_before - weight, step)
        moments = {"w": 0.9 * moments["w"] + 0.1 * gradient["w"].square()}


def test_the_first_preconditioned_step_has_the_length_of_the_rate_and_no_slope():
    gradient = torch.tensor([2.0, -1e-3, 0.0], dtype=torch.float64, requires_grad=True)
    moments = {"w": torch.zeros(3, dtype=torch.float64)}
    step = preconditioned_step(0.1, moments, updates=0, beta2=0.98, epsilon=1e-8)({"w": gradient})["w"]
    assert torch.allclose(step, torch.tensor([0.1, -0.1, 0.0], dtype=torch.float64))
    (slope,) = torch.autograd.grad(step.sum(), gradient)
    assert torch.allclose(slope, torch.zeros(3, dtype=torch.float64), atol=1e-6)
