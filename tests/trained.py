"""Comparing what was trained, weight by weight, and interrupting a training as Ctrl-C does."""

from contextlib import contextmanager

import pytest
import torch
from torch import nn


def weights(trained):
    """Copy the weights of a model, or of what a training returned."""
    model = trained if isinstance(trained, nn.Module) else trained.model
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def equal(one, other):
    """Compare models, or their weights, to the bit."""
    one, other = (each if isinstance(each, dict) else weights(each) for each in (one, other))
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@contextmanager
def interrupt_batches(batches, monkeypatch, *, at):
    """Let batches of a class end the process at a step, counted from the end where it is below 0."""
    made = batches.__getitem__

    def stopping(self, step):
        if step == at % len(self):
            raise KeyboardInterrupt
        return made(self, step)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(batches, "__getitem__", stopping)
        yield
