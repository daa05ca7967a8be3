import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.training import precision
from isogloss.training.precision import autocast, check_precision, measured_precision, resolved_precision

CPU = torch.device("cpu")


@pytest.fixture
def speeds(monkeypatch):
    """Pretend how fast each type multiplies."""
    pretended = {}
    monkeypatch.setattr(precision, "matrix_speed", lambda device, dtype: pretended[dtype])
    precision.measured_precision.cache_clear()
    yield pretended
    precision.measured_precision.cache_clear()


@pytest.mark.parametrize(
    ("half", "chosen"), [(1.0, "float32"), (1.49, "float32"), (1.5, "bfloat16"), (9, "bfloat16")]
)
def test_bfloat16_must_be_worth_it(speeds, half, chosen):
    speeds |= {torch.float32: 1.0, torch.bfloat16: half}
    assert measured_precision("cpu") == chosen
    assert resolved_precision("auto", CPU) == chosen


def test_what_is_named_is_not_measured(speeds):
    assert resolved_precision("bfloat16", CPU) == "bfloat16"
    assert resolved_precision("float32", CPU) == "float32"


def test_autocast_multiplies_in_the_precision_that_was_chosen():
    x = torch.ones(2, 2)
    with autocast(CPU, "bfloat16"):
        assert (x @ x).dtype == torch.bfloat16
        with autocast(CPU, "float32"):
            assert (x @ x).dtype == torch.float32


def test_measuring_draws_no_random_number():
    before = torch.get_rng_state()
    assert precision.matrix_speed("cpu", torch.float32, rounds=1) > 0
    assert torch.equal(torch.get_rng_state(), before)


def test_an_unknown_precision_is_an_error_with_the_nearest():
    assert check_precision("auto", "here") == "auto"
    with pytest.raises(
        ConfigError, match=r"^recipe: no precision 'bfloat61'. Did you mean 'bfloat16'\? Known: "
    ):
        check_precision("bfloat61", "recipe")
