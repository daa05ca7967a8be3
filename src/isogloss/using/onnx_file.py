"""A model as an ONNX file, for programs without torch; compared with the model before it gets its name."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, RunError
from isogloss.encoders import family_of
from isogloss.encoders.language_modules import modules_of
from isogloss.using.fine_tuned import FineTuned

NEEDED = ("onnx", "onnxscript", "onnxruntime")

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "AutoModelForTokenClassification": ("logits",),
    "AutoModelForSequenceClassification": ("logits",),
    "AutoModelForQuestionAnswering": ("start_logits", "end_logits"),
}
"""What comes out, by the class of transformers that loads the head."""

LARGEST_DIFFERENCE = 1e-4
"""Between a number of the file and the model's; float32 sums in another order differ by about 1e-6."""

SHAPES = ((1, 2), (1, 9), (2, 7), (3, 33), (5, 64), (8, 128))
"""Batches and lengths that are compared; lengths beyond the encoder's positions are cut to them."""

EXAMPLE = (2, 7)
"""Batch and length of the inputs the model is followed with."""


def check_possible(model: FineTuned) -> None:
    """Raise ConfigError unless the model can be written and everything that this needs is installed."""
    if model.kind.auto_class not in OUTPUTS:
        raise ConfigError(f"--onnx: the head of task {model.task.name} cannot be written. Leave --onnx away.")
    if modules_of(model.network) is not None:
        raise ConfigError(
            "--onnx: the encoder has modules for each language, and the file would hold those of one. Leave "
            "--onnx away."
        )
    lacking = [name for name in NEEDED if find_spec(name) is None]
    if lacking:
        raise ConfigError(
            f'--onnx: {" and ".join(lacking)} not installed. Install: pip install "isogloss[onnx]"'
        )


def write_onnx(model: FineTuned, path: Path) -> float:
    """Write the file and return the largest difference to the model; RunError where it is too large."""
    kind = model.kind.auto_class
    network = deepcopy(model.network).cpu().float().eval()
    names = tuple(model.tokenizer.model_input_names)
    forward = _Forward(network, names, OUTPUTS[kind])
    inputs = _Inputs(network, model.tokenizer.pad_token_id, names)
    length = torch.export.Dim.DYNAMIC
    with _quiet():
        torch.onnx.export(
            forward,
            inputs.of(*EXAMPLE),
            path,
            dynamo=True,
            input_names=list(names),
            output_names=list(OUTPUTS[kind]),
            dynamic_shapes=(tuple({0: length, 1: length} for _ in names),),
            external_data=False,
            verbose=False,
        )
    found = max(_difference(forward, path, inputs.of(*shape)) for shape in SHAPES)
    if not found < LARGEST_DIFFERENCE:
        raise RunError(
            f"{path.name}: the numbers of the ONNX file differ from the model's by up to {found:.2g} (at "
            f"most {LARGEST_DIFFERENCE:.0e} is expected), so it was not kept. Export without --onnx."
        )
    return found


class _Forward(nn.Module):
    """A model called by position, that returns tensors."""

    def __init__(self, network: Any, names: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.network, self.names, self.outputs = network, tuple(names), tuple(outputs)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(self.names, inputs, strict=True))
        output = self.network(**given)
        return tuple(output[name] for name in self.outputs)


class _Inputs:
    """Random batches whose rows have several lengths."""

    def __init__(self, network: Any, padding: int, names: Sequence[str]) -> None:
        self.network, self.padding, self.names = network, padding, names
        self.longest = family_of(network).longest_text(network.config)

    def of(self, batch: int, length: int) -> tuple[Tensor, ...]:
        """Return subwords, mask and segments, as far as the tokenizer has them; rows 2, 3 … are padded."""
        length = min(length, self.longest)
        draw = torch.Generator().manual_seed(batch * 1000 + length)
        subwords = torch.randint(self.network.config.vocab_size, (batch, length), generator=draw)
        subwords[subwords == self.padding] += 1 if self.padding == 0 else -1
        lengths = torch.tensor([max(1, length - 2 * row) for row in range(batch)]).unsqueeze(1)
        real = torch.arange(length).unsqueeze(0) < lengths
        whole = {
            "input_ids": subwords.masked_fill(~real, self.padding),
            "attention_mask": real.long(),
            "token_type_ids": self._segments(real),
        }
        return tuple(whole[name] for name in self.names)

    def _segments(self, real: Tensor) -> Tensor:
        """Return 1 in the second half of each row, as for pairs, where the encoder has segments."""
        second = torch.arange(real.shape[1]).unsqueeze(0) >= real.sum(dim=1, keepdim=True) // 2
        return (second & real).long() * (getattr(self.network.config, "type_vocab_size", 0) > 1)


def _difference(forward: _Forward, path: Path, inputs: tuple[Tensor, ...]) -> float:
    """Return the largest difference between the file's numbers and the model's at real subwords."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = {name: tensor.numpy() for name, tensor in zip(forward.names, inputs, strict=True)}
    found = session.run(list(forward.outputs), given)
    with torch.inference_mode():
        expected = forward(*inputs)
    differences = [
        float((one - torch.from_numpy(other)).abs().max()) for one, other in zip(expected, found, strict=True)
    ]
    return max(differences)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks from the terminal: what matters is checked afterwards."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
