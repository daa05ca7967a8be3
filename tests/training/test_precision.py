"""Choice of the faster precision, scoring in it, and release of freed memory."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from isogloss.core.errors import ConfigError
from isogloss.encoders.loading import load_masked_lm
from isogloss.training import precision
from isogloss.training.fit import fit
from isogloss.training.precision import (
    PRECISIONS,
    _trim,
    autocast,
    faster,
    matrices_converted,
    matrix_speeds,
    measured_precision,
    release_memory,
    resolved_precision,
    scoring,
    tf32_products,
)
from toys import UPDATES, Drawn, loss, toy

CPU = torch.device("cpu")


class Machine(TorchFunctionMode):
    """Multiply nothing, and let seconds pass as on a machine that other programs slow down."""

    def __init__(self, full: float, half: float, load: Callable[[float], float] = lambda now: 1.0) -> None:
        super().__init__()
        self.seconds = {torch.float32: full, torch.bfloat16: half}
        self.load = load
        self.now = 0.0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is nn.functional.linear:
            self.now += self.seconds[args[0].dtype] * self.load(self.now)
            return args[0]
        return function(*args, **(kwargs or {}))

    def speeds(self) -> dict[str, float]:
        with self:
            return matrix_speeds("cpu", clock=lambda: self.now)


FAST = 0.001
SLOW = 0.004
BURSTS = {
    "none": lambda now: 1.0,
    "all the time": lambda now: 3.0,
    "the first half": lambda now: 5.0 if now < 0.14 else 1.0,
    "the second half": lambda now: 5.0 if now > 0.14 else 1.0,
    "ever more": lambda now: 1 + 10 * now,
    "6 of 12 ms": lambda now: 1.0 if now % 0.012 < 0.006 else 6.0,
}


@pytest.mark.parametrize("load", BURSTS.values(), ids=BURSTS)
def test_bursts_of_other_work_do_not_change_which_precision_pays(load):
    assert faster(Machine(SLOW, FAST, load).speeds()) == "bfloat16"
    assert faster(Machine(FAST, SLOW, load).speeds()) == "float32"
    assert faster(Machine(FAST, FAST, load).speeds()) == "float32"


@pytest.mark.parametrize(
    ("half_size", "chosen_name"), [(1.0, "float32"), (1.49, "float32"), (1.5, "bfloat16"), (9, "bfloat16")]
)
def test_bfloat16_must_be_worth_it(half_size, chosen_name):
    assert faster({"float32": 1.0, "bfloat16": half_size}) == chosen_name


def test_auto_is_what_is_measured_once():
    assert resolved_precision("auto", CPU) == measured_precision("cpu") == resolved_precision("auto", CPU)


def test_what_is_named_is_not_measured():
    assert resolved_precision("bfloat16", CPU) == "bfloat16"
    assert resolved_precision("float32", CPU) == "float32"


def test_autocast_multiplies_in_the_precision_that_was_chosen():
    x = torch.ones(2, 2)
    with autocast(CPU, "bfloat16"):
        assert (x @ x).dtype == torch.bfloat16
        with autocast(CPU, "float32"):
            assert (x @ x).dtype == torch.float32


def test_measuring_draws_no_random_number():
    rng_state_before = torch.get_rng_state()
    assert min(matrix_speeds("cpu", rounds=1).values()) > 0
    assert torch.equal(torch.get_rng_state(), rng_state_before)


IDS = torch.tensor([[2, 9, 10, 11, 3], [2, 12, 3, 0, 0]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def test_scores_in_bfloat16_are_those_of_autocast_to_the_bit(encoder_folder):
    model = load_masked_lm(encoder_folder)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        expected = model(input_ids=IDS, attention_mask=MASK).logits
    with scoring(model, "bfloat16") as device:
        logits = model(input_ids=IDS, attention_mask=MASK).logits
    assert device.type == "cpu"
    assert torch.equal(logits, expected)


def test_scores_in_float32_are_the_models_own(encoder_folder):
    model = load_masked_lm(encoder_folder)
    with torch.no_grad():
        expected = model(input_ids=IDS, attention_mask=MASK).logits
    with scoring(model, "float32"):
        logits = model(input_ids=IDS, attention_mask=MASK).logits
    assert torch.equal(logits, expected)


def test_weights_are_the_same_objects_afterwards(bert_folder):
    model = load_masked_lm(bert_folder)
    parameters_before = dict(model.named_parameters())
    with pytest.raises(ZeroDivisionError), matrices_converted(model, torch.bfloat16):
        assert model.bert.encoder.layer[0].output.dense.weight.dtype == torch.bfloat16
        assert model.bert.embeddings.word_embeddings.weight.dtype == torch.float32
        raise ZeroDivisionError
    assert all(weight is parameters_before[name] for name, weight in model.named_parameters())


def test_layers_without_bias_stay_without():
    model = nn.Sequential(nn.Linear(2, 2, bias=False))
    with matrices_converted(model, torch.bfloat16):
        assert model[0].bias is None
    assert model[0].bias is None and model[0].weight.dtype == torch.float32


KIBIBYTE = 1024


def resident():
    """Return the memory this process has, in KiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS")))


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc can be asked to give memory back")
def test_memory_that_was_freed_is_given_back():
    blocks = [bytearray(b"x") * (64 * KIBIBYTE) for _ in range(3000)]
    blocks, behind_block = [], blocks[-1]  # the last block keeps the heap from shrinking by itself
    full_part = resident()
    release_memory()
    assert full_part - resident() > 100 * KIBIBYTE
    assert len(behind_block) == 64 * KIBIBYTE


def test_another_c_library_is_no_error(monkeypatch):
    monkeypatch.setattr("ctypes.CDLL", lambda name: object())
    _trim.cache_clear()
    assert release_memory() is None
    _trim.cache_clear()


@pytest.fixture
def ampere(monkeypatch):
    """Let this machine's processor pass for a GPU with TF32."""
    monkeypatch.setattr(precision, "computes", lambda device, name: True)


def products_setting():
    return torch.backends.cuda.matmul.fp32_precision, torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("name", PRECISIONS)
def test_products_are_in_tf32_only_where_it_is_named_and_only_meanwhile(name, ampere):
    before = products_setting()
    with pytest.raises(ValueError, match="amid"), tf32_products(CPU, name):
        assert products_setting() == (("tf32", True) if name == "tf32" else before)
        raise ValueError("amid a training")
    assert products_setting() == before


def test_a_setting_of_the_caller_stays(ampere):
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        with tf32_products(CPU, "tf32"):
            pass
        assert products_setting() == ("tf32", True)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.fp32_precision = "none"


@pytest.mark.parametrize(
    ("device", "capability", "hip", "expected"),
    [
        ("cpu", (9, 0), None, False),
        ("cuda", (7, 5), None, False),
        ("cuda", (8, 0), None, True),
        ("cuda", (9, 0), None, True),
        ("cuda", (9, 0), "6.2", False),
    ],
)
def test_tf32_needs_a_gpu_from_ampere_on(device, capability, hip, expected, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    monkeypatch.setattr(torch.version, "hip", hip)
    assert precision.computes(torch.device(device), "tf32") is expected


def test_tf32_is_refused_on_a_processor_by_trainings_and_scores():
    advice = r'precision = "tf32".*this device is cpu.*"float32", or "auto"'
    with pytest.raises(ConfigError, match=advice):
        fit(toy(), Drawn(), loss, updates=replace(UPDATES, precision="tf32"), seed=0)
    with pytest.raises(ConfigError, match=advice), scoring(toy(), "tf32"):
        pass
    assert not torch.is_inference_mode_enabled()
