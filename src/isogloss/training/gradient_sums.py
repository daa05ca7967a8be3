"""Sums of gradients over all processes, computed while the backward pass goes on.

Parameters are divided into buckets in the order in which a backward pass usually reaches them, the last
layers first. As soon as all gradients of a bucket are computed, its sum begins, so that a network is busy
during the backward pass instead of after it, and sends a few large messages instead of one per parameter (Li
et al. 2020, Section 3.2). All processes must begin sums in the same order: a bucket waits for the buckets
before it, and buckets with parameters that a batch does not use are summed at the end.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

BUCKET_BYTES = 25 * 2**20
"""Size of a bucket: a message large enough to use the whole bandwidth of a network."""


@contextmanager
def gradients_summed(weights: Sequence[nn.Parameter], *, during_pass: bool) -> Iterator[None]:
    """Replace the gradients of parameters by their sums over all processes when the context ends.

    With ``during_pass``, the context contains one backward pass, whose loss starts no sums itself, and
    sums begin during it. Gradients from earlier passes are included. Parameters that have no gradient in any
    process keep none.
    """
    sums = _Sums(weights)
    handles = [
        weight.register_post_accumulate_grad_hook(sums.add)  # type: ignore[no-untyped-call]
        for weight in weights
        if during_pass
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    sums.finish()


def divide_into_buckets(weights: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Divide parameters into buckets of one type and device, the last parameters first."""
    buckets: list[list[nn.Parameter]] = []
    size = 0
    for weight in reversed(weights):
        is_alike = buckets and (weight.dtype, weight.device) == (buckets[-1][0].dtype, buckets[-1][0].device)
        if not is_alike or size >= BUCKET_BYTES:
            buckets.append([])
            size = 0
        buckets[-1].append(weight)
        size += weight.nbytes
    return buckets


class _Sums:
    """The sums of one update."""

    def __init__(self, weights: Sequence[nn.Parameter]) -> None:
        self._buckets = divide_into_buckets(weights)
        self._bucket_of = {weight: index for index, bucket in enumerate(self._buckets) for weight in bucket}
        self._missing = [len(bucket) for bucket in self._buckets]
        """Number of gradients that the pass has not computed yet, by bucket."""
        self._begun: list[tuple[Tensor, Any]] = []
        """Flat gradients of the first buckets, and the sums over processes that are under way."""

    def add(self, weight: Tensor) -> None:
        """Note that the pass has computed a gradient, and begin the sums that can begin."""
        index = self._bucket_of[weight]  # type: ignore[index]
        self._missing[index] -= 1
        if self._missing[index] < 0 or index < len(self._begun):
            raise RuntimeError(
                "A loss has computed the gradient of a parameter twice in one backward pass, so it cannot be "
                "summed over processes. Use one process."
            )
        while len(self._begun) < len(self._buckets) and self._missing[len(self._begun)] == 0:
            self._begin_next()

    def _begin_next(self) -> None:
        bucket = self._buckets[len(self._begun)]
        parts = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in bucket]
        flat = torch.cat([part.flatten() for part in parts])
        self._begun.append((flat, torch.distributed.all_reduce(flat, async_op=True)))

    def finish(self) -> None:
        """Begin the remaining sums, wait for all, and make them the gradients."""
        weights = list(self._bucket_of)
        has_gradient = [weight.grad is not None for weight in weights]
        while len(self._begun) < len(self._buckets):
            self._begin_next()
        counts = torch.tensor([float(value) for value in has_gradient], device=weights[0].device)
        torch.distributed.all_reduce(counts)
        # A GPU is not waited for if the answer is known.
        is_used = has_gradient if all(has_gradient) else [count > 0 for count in counts.tolist()]
        uses = dict(zip(weights, is_used, strict=True))
        for bucket, (flat, work) in zip(self._buckets, self._begun, strict=True):
            work.wait()
            sums = torch.split(flat, [weight.numel() for weight in bucket])
            for weight, total in zip(bucket, sums, strict=True):
                weight.grad = total.view_as(weight) if uses[weight] else None
