"""The device and precision of computations, and the release of freed memory.

Whether bfloat16 is faster is measured by multiplying matrices, not derived from a processor's name.
"""

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache
from time import perf_counter
from typing import get_args

import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Precision
from isogloss.training.distributed import is_sharded

PRECISIONS: tuple[Precision, ...] = get_args(Precision)
TF32 = "tf32"
"""Precision of the matrix units of NVIDIA's GPUs from Ampere on: float32 with factors rounded to 10 bits."""

AMPERE = (8, 0)
"""CUDA's number for the oldest GPUs with TF32."""

MIN_SPEEDUP = 1.5
"""bfloat16 must multiply this many times faster to be chosen, because conversions reduce the gain."""

_WIDTHS = (256, 1024)
"""Widths of the trial product: the feed-forward layer of a small encoder."""

_ROWS = {"cpu": 256}
_ROWS_ELSEWHERE = 2048
"""A processor multiplies only few rows before other programs interrupt it. A GPU is idle with few rows."""


def device() -> torch.device:
    """Return the GPU if one is available, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def resolved_precision(name: str, device: torch.device) -> str:
    """Resolve "auto" on a device. Other names stay the same."""
    return measured_precision(device.type) if name == "auto" else name


@cache
def measured_precision(device: str) -> str:
    """Return bfloat16 if it multiplies at least ``MIN_SPEEDUP`` times as fast as float32, else float32."""
    return faster(matrix_speeds(device))


def computes(device: torch.device, precision: str) -> bool:
    """Return whether a device has units for a precision. Older GPUs only emulate bfloat16."""
    if precision == TF32:
        return (
            device.type == "cuda"
            and torch.version.hip is None
            and torch.cuda.get_device_capability(device) >= AMPERE
        )
    if precision != "bfloat16" or device.type != "cuda":
        return True
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def faster(speeds: Mapping[str, float]) -> str:
    """Return the precision to use, given the speeds of both."""
    return "bfloat16" if speeds["bfloat16"] >= MIN_SPEEDUP * speeds["float32"] else "float32"


@contextmanager
def scoring(model: nn.Module, precision: str) -> Iterator[torch.device]:
    """Score without gradients, in bfloat16 if that was chosen, and yield the model's device.

    No other thread may use the model meanwhile: in bfloat16 its weights are converted. A model that others
    may use is scored through a copy (``evaluation_copy``).
    """
    device = next(model.parameters()).device
    with ExitStack() as contexts:
        contexts.enter_context(torch.inference_mode())
        contexts.enter_context(tf32_products(device, precision))
        if resolved_precision(precision, device) == "bfloat16":
            contexts.enter_context(matrices_converted(model, torch.bfloat16))
        contexts.enter_context(autocast(device, precision))
        yield device


@contextmanager
def matrices_converted(model: nn.Module, dtype: torch.dtype) -> Iterator[None]:
    """Convert the weights of a model's linear layers to a different type in this context (see ``scoring``).

    Autocast gives the same numbers, but converts every weight again in every batch. Sharded weights are
    gathered in every batch anyway, and stay the same.
    """
    linear = [part for part in model.modules() if type(part) is nn.Linear]
    layers = [part for part in linear if type(part.weight) is nn.Parameter]
    original = [(layer.weight, layer.bias) for layer in layers]
    for layer, parts in zip(layers, original, strict=True):
        layer.weight, layer.bias = (
            None if part is None else nn.Parameter(part.detach().to(dtype), requires_grad=False)
            for part in parts
        )
    try:
        yield
    finally:
        for layer, parts in zip(layers, original, strict=True):
            layer.weight, layer.bias = parts


@contextmanager
def tf32_products(device: torch.device, precision: str) -> Iterator[None]:
    """Multiply float32 matrices in TF32 in this context if ``precision`` is tf32.

    torch has one setting for the whole process, so other threads also multiply in TF32 meanwhile. Raises
    ConfigError on a device without TF32.
    """
    if precision != TF32:
        yield
        return
    if not computes(device, TF32):
        raise ConfigError(
            f'precision = "{TF32}": only GPUs from NVIDIA\'s Ampere on compute in it, and this device is '
            f'{device.type}. Set precision = "float32", or "auto".'
        )
    products = torch.backends.cuda.matmul
    precision_before = products.fp32_precision
    products.allow_tf32 = True  # Sets both names of the setting, so that others can read either.
    try:
        yield
    finally:
        products.allow_tf32 = precision_before == TF32
        products.fp32_precision = precision_before


def autocast(device: torch.device, precision: str) -> torch.autocast:
    """Return the context in which a model is trained or scored, in bfloat16 if that was chosen.

    Converted weights are cached unless they are sharded, because all of them together are too large.
    """
    uses_bfloat16 = resolved_precision(precision, device) == "bfloat16"
    return torch.autocast(device.type, torch.bfloat16, enabled=uses_bfloat16, cache_enabled=not is_sharded())


def matrix_speeds(
    device: str, *, rounds: int = 56, clock: Callable[[], float] = perf_counter
) -> dict[str, float]:
    """Measure floating-point operations per second of a linear layer, in float32 and in bfloat16.

    Other programs make some rounds longer and none shorter. So rounds are short, both precisions take turns,
    and the best round of each counts.
    """
    width, units = _WIDTHS
    rows = _ROWS.get(device, _ROWS_ELSEWHERE)
    sides = {
        name: [torch.ones(size, width, device=device, dtype=getattr(torch, name)) for size in (rows, units)]
        for name in ("float32", "bfloat16")
    }
    min_seconds = dict.fromkeys(sides, float("inf"))
    with torch.inference_mode():
        for name, (x, weight) in list(sides.items()) * rounds:
            start = clock()
            nn.functional.linear(x, weight)
            if x.is_cuda:
                torch.cuda.synchronize()
            min_seconds[name] = min(min_seconds[name], clock() - start)
    return {name: 2 * rows * width * units / seconds for name, seconds in min_seconds.items()}


def release_memory() -> None:
    """Return freed memory to the system, if the C library supports it."""
    _trim()(0)


@cache
def _trim() -> Callable[[int], int]:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # A different C library or system has none.
        return lambda _: 0
    return trim
