"""Comparing what was trained, weight by weight, and interrupting a training as Ctrl-C does."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn


def weights(trained_run):
    """Copy the weights of a model, or of what a training returned."""
    model = trained_run if isinstance(trained_run, nn.Module) else trained_run.model
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def equal(left, right):
    """Compare models, or their weights, to the bit."""
    left, right = (element if isinstance(element, dict) else weights(element) for element in (left, right))
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


@contextmanager
def interrupt_batches(batches, monkeypatch, *, at):
    """Let batches of a class end the process at a step, counted from the end where it is below 0."""
    result = batches.__getitem__

    def stopping(self, step):
        if step == at % len(self):
            raise KeyboardInterrupt
        return result(self, step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(batches, "__getitem__", stopping)
        yield
