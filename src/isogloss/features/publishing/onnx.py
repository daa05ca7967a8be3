"""The ONNX files of a model, for programs without torch, checked against the model as they are written."""

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, RunError
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.families import family_of
from isogloss.encoders.family import Model as Network
from isogloss.encoders.subwords import for_causal
from isogloss.features.publishing.onnx_model import (
    CAUSAL_ENTRY,
    ONNX_FILES,
    WEIGHTS_ENTRY,
    OnnxModel,
    checksum_of_weights,
    load_onnx_model,
)
from isogloss.using.fine_tuned import FineTuned

ONNX_PACKAGES = ("onnx", "onnxscript", "onnxruntime")

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "AutoModelForTokenClassification": ("logits",),
    "AutoModelForSequenceClassification": ("logits",),
    "AutoModelForQuestionAnswering": ("start_logits", "end_logits"),
}
"""Names of the outputs, by the class of transformers that loads the head."""

LARGEST_DIFFERENCE = 1e-4
"""Maximum difference between outputs of file and model. Float32 sums differ by about 1e-6 by their order."""

CHECKED_SHAPES = ((1, 2), (1, 9), (2, 7), (3, 33), (5, 64), (8, 128))
"""Batch sizes and lengths that are compared. Lengths are limited to the encoder's positions."""

LARGEST_FILE = 1_900_000_000
"""Largest number of bytes of weights in the ONNX file, whose format allows 2 GB. More weights are in a
separate file."""

TRACED_SHAPE = (2, 7)
"""Batch size and length of the inputs the model is traced with."""


def check_possible(model: FineTuned) -> None:
    """Raise ConfigError unless the model can be written as ONNX and the packages for it are installed."""
    kind = model.kind.auto_class
    if kind not in OUTPUTS or kind in family_of(model.network).own_heads:
        raise ConfigError(f"--onnx: the head of task {model.task.name} cannot be written. Remove --onnx.")
    if modules_of(model.network) is not None or family_of(model.network).languages(model.network.config):
        raise ConfigError(
            "--onnx: the encoder has modules for each language, and the file would hold those of one. "
            "Remove --onnx."
        )
    lacking = [name for name in ONNX_PACKAGES if find_spec(name) is None]
    if lacking:
        raise ConfigError(
            f'--onnx: {" and ".join(lacking)} not installed. Install: pip install "isogloss[onnx]"'
        )


def write_onnx(model: FineTuned, folder: Path, *, largest_file: int = LARGEST_FILE) -> OnnxModel:
    """Write the ONNX file into the folder of an exported model, and return the model that predicts with it.

    RunError if its numbers differ from the model's. Weights of more than ``largest_file`` bytes are in a
    separate file.
    """
    path = folder / ONNX_FILES["float32"]
    kind = model.kind.auto_class
    network = deepcopy(model.network).cpu().float().eval()
    names = tuple(model.tokenizer.model_input_names)
    forward = _Forward(network, names, OUTPUTS[kind])
    with _quiet():
        torch.onnx.export(
            forward,
            _random_inputs(model, *TRACED_SHAPE),
            path,
            dynamo=True,
            input_names=list(names),
            output_names=list(OUTPUTS[kind]),
            dynamic_shapes=(tuple({0: "batch", 1: "sequence"} for _ in names),),
            external_data=weight_bytes(network) > largest_file,
            verbose=False,
        )
    difference = max(_difference(forward, path, _random_inputs(model, *shape)) for shape in CHECKED_SHAPES)
    if not difference < LARGEST_DIFFERENCE:
        raise RunError(
            f"{path.name}: the numbers of the ONNX file differ from the model's by up to {difference:.2g} "
            f"(at most {LARGEST_DIFFERENCE:.0e} is expected), so it was not kept. Export without --onnx."
        )
    _add_entries(model, folder, path)
    return load_onnx_model(folder)


def write_int8(model: FineTuned, folder: Path, *, largest_file: int = LARGEST_FILE) -> OnnxModel:
    """Quantise the ONNX file of an exported model, and return the model that predicts with the result.

    Weights are rounded to 8 bits with a scale for each output, states when they are computed.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    path = folder / ONNX_FILES["int8"]
    with _quiet():
        quantize_dynamic(
            folder / ONNX_FILES["float32"],
            path,
            weight_type=QuantType.QInt8,
            per_channel=True,
            use_external_data_format=weight_bytes(model.network) > largest_file,
        )
    _add_entries(model, folder, path)
    return load_onnx_model(folder, "int8")


def weight_bytes(network: nn.Module) -> int:
    """Return the bytes of a model's weights in float32."""
    return 4 * sum(weight.numel() for weight in network.parameters())


def _add_entries(model: FineTuned, folder: Path, path: Path) -> None:
    """Add the entries that ``load_onnx_model`` reads to an ONNX file, with the checksum of the weights.

    The exporter also declares the shapes of weights. Rounding to int8 transposes some of them, and onnx would
    refuse the file, so these declarations are removed.
    """
    import onnx

    proto = onnx.load(path, load_external_data=False)
    entries = {
        WEIGHTS_ENTRY: checksum_of_weights(folder),
        CAUSAL_ENTRY: str(int(for_causal(model.tokenizer))),
    }
    onnx.helper.set_model_props(proto, entries)
    weights = {weight.name for weight in proto.graph.initializer}
    states = [info for info in proto.graph.value_info if info.name not in weights]
    del proto.graph.value_info[:]
    proto.graph.value_info.extend(states)
    onnx.save(proto, path)


class _Forward(nn.Module):
    """A model that takes inputs by position and returns tensors."""

    def __init__(self, network: Network, names: Sequence[str], outputs: Sequence[str]) -> None:
        super().__init__()
        self.network, self.names, self.outputs = network, tuple(names), tuple(outputs)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        arguments = dict(zip(self.names, inputs, strict=True))
        output = self.network(**arguments)
        return tuple(output[name] for name in self.outputs)


def _random_inputs(model: FineTuned, size: int, length: int) -> tuple[Tensor, ...]:
    """Return random subwords, mask and segments [size, length], those that the tokenizer has.

    Rows 2, 3 … are shorter and padded; segment 1 is the second half of a row, as for pairs.
    """
    config, padding = model.network.config, model.tokenizer.pad_token_id
    length = min(length, family_of(model.network).longest_text(config))
    draw = torch.Generator().manual_seed(size * 1000 + length)
    subwords = torch.randint(config.vocab_size, (size, length), generator=draw)
    subwords[subwords == padding] += 1 if padding == 0 else -1
    lengths = torch.tensor([max(1, length - 2 * row) for row in range(size)]).unsqueeze(1)
    is_text = torch.arange(length).unsqueeze(0) < lengths
    is_second = torch.arange(length).unsqueeze(0) >= is_text.sum(dim=1, keepdim=True) // 2
    values = {
        "input_ids": subwords.masked_fill(~is_text, padding),
        "attention_mask": is_text.long(),
        "token_type_ids": (is_second & is_text).long() * (getattr(config, "type_vocab_size", 0) > 1),
    }
    return tuple(values[name] for name in model.tokenizer.model_input_names)


def _difference(forward: _Forward, path: Path, inputs: tuple[Tensor, ...]) -> float:
    """Return the largest difference between the outputs of a model and of its file."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    arguments = {name: tensor.numpy() for name, tensor in zip(forward.names, inputs, strict=True)}
    outputs = session.run(list(forward.outputs), arguments)
    with torch.inference_mode():
        expected = forward(*inputs)
    is_text = inputs[forward.names.index("attention_mask")].bool()
    differences = []
    for torch_output, onnx_output in zip(expected, outputs, strict=True):
        difference = (torch_output - torch.from_numpy(onnx_output)).abs()
        is_of_subwords = difference.shape[:2] == is_text.shape
        # Outputs at padding are never read, and some kinds of attention leave them undefined.
        differences.append(float((difference[is_text] if is_of_subwords else difference).max()))
    return max(differences)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter: its result is checked afterwards."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
