"""Threads that predict, measure and train with one model do not change it for each other.

The model is checked inside each computation, by hooks that its copies share, and afterwards.
"""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import pytest
import torch

from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from shared_models import (
    LOSSES,
    MEASUREMENTS,
    batches,
    differences,
    equal,
    list_changes,
    list_state,
    mean_square,
    numbers,
    observe,
    random_states,
    train,
)  # fmt: skip

FAMILIES = (
    "bert", "xlm-roberta", "distilbert", "deberta-v2", "modernbert", "xlm-roberta-xl", "rembert", "eurobert",
    "xmod", "llama", "qwen3", "gemma3_text", "mt5", "m2m_100",
)  # fmt: skip
WITHOUT_PASSES = ("deltas", "average", "plane")
THREADS = 8
SECONDS = 600
"""Seconds of all families together in the nightly run."""


class Case:
    """A model whose modules are in different modes and partly frozen, another, a tokenizer and batches."""

    def __init__(self, folder):
        self.model = load_model(folder)
        self.other = load_model(folder)
        self.tokenizer = load_tokenizer(folder)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for weight in self.other.parameters():
                weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
        self.model.train()
        child_modules = [module for module in self.model.modules() if isinstance(module, torch.nn.Dropout)]
        for module in child_modules[::2]:
            module.eval()
        next(iter(self.model.parameters())).requires_grad_(False)
        self.batches = batches(self.tokenizer)
        mean_square(self.model, self.batches["en"][0]).backward()

    def __call__(self, name, model=None):
        return {**MEASUREMENTS, **LOSSES}[name](model or self.model, self.tokenizer, self.other, self.batches)


@pytest.fixture
def case(bert_folder):
    """A tiny BERT."""
    return Case(bert_folder)


@pytest.fixture(params=FAMILIES)
def any_case(request):
    """The case of each family in turn."""
    return Case(request.getfixturevalue(f"{request.param.replace('-', '_')}_folder"))


def check_untouched(case, name):
    """Run a measurement. Check the model after each computation of it or of a copy, and at the end."""
    values = numbers(case.model)
    gradients = gradients_of(case.model)
    looks = []
    state_before = None

    def look():
        looks.append(
            (
                differences(state_before, list_state(case.model)),
                name in LOSSES or random_states() == drawn_random_states,
            )
        )

    with observe(case.model, look):
        state_before = list_state(case.model)
        drawn_random_states = random_states()
        result = case(name)
        look()
    assert [results for results in looks if results != ([], True)] == []
    assert list_changes(values, case.model) == []
    assert all(map(same_gradient, gradients, gradients_of(case.model)))
    return len(looks), result


def gradients_of(model):
    return [weight.grad if weight.grad is None else weight.grad.clone() for weight in model.parameters()]


def same_gradient(left, right):
    return left is right is None or torch.equal(left, right)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*MEASUREMENTS, *LOSSES])
def test_a_measurement_changes_nothing_of_a_model_at_any_moment(case, name):
    looks, result = check_untouched(case, name)
    assert looks > 1 or name in WITHOUT_PASSES
    assert name in LOSSES or equal(result, case(name))


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*MEASUREMENTS, *LOSSES])
def test_a_measurement_changes_nothing_of_a_model_of_any_family(any_case, name):
    check_untouched(any_case, name)


class Stopped(BaseException):
    """Raised in the middle of a computation, as an interruption by the keyboard."""


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in MEASUREMENTS if name not in WITHOUT_PASSES])
def test_an_interrupted_measurement_changes_nothing_of_a_model(case, name):
    check_interrupted(case, name)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [name for name in MEASUREMENTS if name not in WITHOUT_PASSES])
def test_an_interrupted_measurement_changes_nothing_of_a_model_of_any_family(any_case, name):
    check_interrupted(any_case, name)


def check_interrupted(case, name):
    values = numbers(case.model)
    gradients = gradients_of(case.model)
    looks = []

    def stop():
        looks.append(1)
        if len(looks) > 1:
            raise Stopped

    with observe(case.model, stop):
        state_before = list_state(case.model)
        drawn_random_states = random_states()
        with pytest.raises(Stopped):
            case(name)
        assert differences(state_before, list_state(case.model)) == []
    assert random_states() == drawn_random_states
    assert list_changes(values, case.model) == []
    assert all(map(same_gradient, gradients, gradients_of(case.model)))
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def check_threads(case, *, seconds):
    """Let threads measure a model that stays and one that this thread trains in the meantime."""
    expected = {name: case(name) for name in MEASUREMENTS}
    single_training, joint_trainings = (deepcopy(case.model).train() for _ in range(2))
    state_before = list_state(case.model)
    values = numbers(case.model)
    trained_state = list_state(joint_trainings)
    until = time.monotonic() + seconds
    wrong = []
    turns = iter(list(MEASUREMENTS) * 10**6)
    last_count = itertools.count(len(MEASUREMENTS), -1)

    def measure(_):
        for name in turns:
            try:
                if not equal(case(name), expected[name]):
                    wrong.append(name)
                case(name, joint_trainings)
            except Exception as error:
                wrong.append((name, repr(error)))
            if next(last_count) <= THREADS and time.monotonic() > until:
                return

    with ThreadPoolExecutor(THREADS) as pool:
        measuring = [pool.submit(measure, index) for index in range(THREADS)]
        going_on = itertools.takewhile(lambda _: not all(t.done() for t in measuring), itertools.count())
        modes = list(train(joint_trainings, case.batches["en"], going_on))
    assert wrong == []
    assert modes == list(train(single_training, case.batches["en"], range(len(modes))))
    assert list_changes(numbers(single_training), joint_trainings) == []
    assert differences(trained_state, list_state(joint_trainings)) == []
    assert differences(state_before, list_state(case.model)) == []
    assert list_changes(values, case.model) == []


@pytest.mark.nightly
@pytest.mark.slow
def test_threads_measure_models_while_one_is_trained(case):
    check_threads(case, seconds=0)


@pytest.mark.nightly
def test_threads_measure_models_of_any_family_for_minutes_while_one_is_trained(any_case):
    check_threads(any_case, seconds=SECONDS / len(FAMILIES))
