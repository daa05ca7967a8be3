"""A model together with the mixup of one of its layers, and the states that its head reads."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn

from isogloss.encoders.added.language_modules import encoder_of
from isogloss.encoders.family import Model, Output
from isogloss.encoders.mixup import Mixup


@contextmanager
def last_states(model: Model) -> Iterator[list[Tensor]]:
    """Record the last states [row subword dim] of each pass, as a head reads them.

    The list is filled when the context ends.
    """
    outputs: list[Output] = []
    states: list[Tensor] = []
    handle = encoder_of(model).register_forward_hook(lambda _, __, output: outputs.append(output))
    try:
        yield states
    finally:
        handle.remove()
        states += [output.last_hidden_state for output in outputs]  # Language maps have been applied by now.


class MixedModel(nn.Module):
    """A model and the mixup of one of its layers. Both are trained."""

    def __init__(self, network: Model, mixup: Mixup) -> None:
        super().__init__()
        self.network, self.mixup = network, mixup
        self.ratio = mixup.ratio_module if mixup.learned and mixup.ratio else None
