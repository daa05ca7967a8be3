"""States that are computed once per batch, while only the head of a model changes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import torch
from torch import Tensor

from isogloss.encoders.family import Model

LARGEST = 2 * 1024**3
"""Maximum bytes of stored states. Further batches are computed each time."""

CACHE = "past_key_values"
"""Outputs of a decoder for generation, which no head reads."""


@dataclass
class RememberedStates:
    """The encoder's outputs for batches that it has seen.

    Use it while all weights of the encoder stay as they are: for points on a path along which the head moves.
    """

    largest: int = LARGEST
    """Bytes."""
    stored: int = 0
    """Bytes in use."""
    _outputs: dict[tuple[object, ...], Any] = field(default_factory=dict)

    @contextmanager
    def recall(self, model: Model, *, language: str = "") -> Iterator[None]:
        """Let a model's encoder return the stored output for a batch that it has seen in a language.

        ``language`` separates languages, because their modules differ. Outputs are stored and used in
        evaluation mode only: dropout would differ each time. The model must not be shared with other threads.
        """
        encoder = model.base_model
        compute = encoder.forward
        replaced = vars(encoder).get("forward")

        def forward(*arguments: object, **named: object) -> Any:
            inputs = (*enumerate(arguments), *sorted(named.items()))
            if encoder.training or not all(map(_is_comparable, dict(inputs).values())):
                return compute(*arguments, **named)
            key = (language, *((name, _content(value)) for name, value in inputs))
            if key in self._outputs:
                return self._outputs[key]
            output = _without_cache(compute(*arguments, **named))
            size = _bytes_of(output)
            if self.stored + size <= self.largest:
                self._outputs[key] = output
                self.stored += size
            return output

        encoder.forward = forward
        try:
            yield
        finally:
            if replaced is None:
                del encoder.forward
            else:
                encoder.forward = replaced


def _is_comparable(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str | Tensor)


def _content(value: object) -> object:
    """Return a value that is equal for equal inputs only."""
    if not isinstance(value, Tensor):
        return value
    numbers = value.detach().cpu().flatten()
    digest = blake2b(numbers.view(torch.uint8).numpy().data).digest()
    return (value.dtype, tuple(value.shape), digest)


def _without_cache(output: Any) -> Any:
    if not isinstance(output, Mapping) or CACHE not in output:
        return output
    return type(output)(**{name: value for name, value in output.items() if name != CACHE})


def _bytes_of(output: object) -> int:
    match output:
        case Tensor():
            return output.nbytes
        case Mapping():
            return sum(_bytes_of(part) for part in output.values())
        case tuple() | list():
            return sum(map(_bytes_of, output))
    return 0
