"""Peak memory of a training or a scoring, computed from shapes without loading anything.

P parameters, R of them trained, n layers of width d with a heads and f wide feed-forwards, a vocabulary of V;
T subwords of the largest part of a batch, in rows of L; M of them predicted. In bytes:

    weights      4P
    gradients    4R
    states       8R of Adam's two moments; 2R in 8 bits
    best         4R where the weights of the best evaluation are stored
    moved        4R where sharpness is minimized
    converted    2(P - Vd) in bfloat16: the matrices that linear layers use
    activations  T(c_d·d + c_f·f + c_a·a·L) a layer, with c from LAYERS: stored by autograd
    recomputed   4Td a layer, and the activations of one layer, with gradient checkpointing
    vocabulary   12MV of the predictions' scores, and 4Vd of the first gradient

A backward pass frees activations, so a step's peak is weights + states + best + moved + the larger of
activations and gradients. With accumulation it is their sum. On a CPU it is their sum and one layer's
activations more: the C library keeps freed blocks of less than 32 MB, into which others rarely fit. A
backward pass also takes one layer's widest tensors twice. The numbers in LAYERS were measured (a test
compares them with autograd).
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from isogloss.core.run_parts import Updates
from isogloss.encoders.families import family_named
from isogloss.encoders.family import Config
from isogloss.encoders.stored_configs import count_parameters

PROGRAM = 550_000_000
"""Bytes that `isogloss run` takes on a CPU without models, for Python and all libraries."""


class LayerBytes(NamedTuple):
    """Bytes per subword that a layer stores, by unit of width, of feed-forward width, and heads × length."""

    dim: float
    feed_forward: float
    attention: float


LAYERS = {
    # gated, in bfloat16, with dropout
    (False, False, True): LayerBytes(40, 8, 12),
    (False, False, False): LayerBytes(32, 8, 4),
    (False, True, True): LayerBytes(28, 4, 10),
    (False, True, False): LayerBytes(24, 4, 6),
    (True, False, True): LayerBytes(36, 20, 12),
    (True, False, False): LayerBytes(32, 16, 4),
    (True, True, True): LayerBytes(22, 10, 10),
    (True, True, False): LayerBytes(20, 8, 6),
}
"""Bytes with explicit attention, on a CPU."""

FUSED = LayerBytes(4, 0, 0)
"""Bytes that a layer stores for the output of fused attention, instead of attention weights. A GPU's dropout
masks are bytes, and are ignored."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a model."""

    parameters: int
    """Number of parameters in embeddings, layers, heads and language modules."""
    layers: int
    dim: int
    heads: int
    feed_forward: int
    """Width of the feed-forward, or of each half if it is gated."""
    vocabulary: int
    gated: bool = False
    """Whether the feed-forward is gated and norms precede sub-layers, as in ModernBERT."""
    distances: int = 0
    """Number of distance buckets of attention in each direction, in DeBERTa."""
    dropout: bool = True


def shape_of(config: Config) -> Shape:
    """Return the shape of an encoder with its masked-LM head. Raises ModelError for an unknown family."""
    family = family_named(config.model_type, "memory")
    sizes = ("layers", "dim", "heads", "feed_forward")
    buckets = getattr(config, "position_buckets", 0)
    distances = buckets if buckets >= 0 else config.max_position_embeddings
    return Shape(
        parameters=count_parameters(config),
        vocabulary=config.vocab_size,
        gated="post-norm" in family.lacks,
        distances=distances,
        dropout=any(getattr(config, field) for field in family.dropouts),
        **{name: getattr(config, family.architecture[name]) for name in sizes},
    )


@dataclass(frozen=True, kw_only=True)
class Load:
    """The size of a batch."""

    rows: int
    length: int
    """Subwords of the longest row."""
    predicted: int = 0
    """Number of subwords at which the whole vocabulary is scored."""

    @property
    def subwords(self) -> int:
        """Number of subwords, padding included."""
        return self.rows * self.length


class AddedCost(NamedTuple):
    """The cost that a part adds to a training."""

    rows: int = 0
    """Additional rows per batch, of the training's length."""
    copies: float = 0.0
    """Additional numbers of four bytes per parameter of the model, such as 1 for a second model in memory."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of training an encoder. With the encoder's shape it determines memory and operations."""

    batch: Load
    steps: float
    updates: Updates
    dropout: bool = True
    copies: float = 0.0
    """Additional numbers of four bytes per parameter of the model, such as 1 for a second model in memory."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The device and precision of a run."""

    half: bool = False
    """Whether computations are in bfloat16."""
    gpu: bool = False

    @property
    def program(self) -> int:
        """Bytes without models. 0 on a GPU, since the program is in host memory."""
        return 0 if self.gpu else PROGRAM


SUBWORDS_PER_WORD = 1.5
"""Estimate for sentences whose length is only known in words, between English and languages with longer
splits."""


def subwords_of(words: int) -> int:
    """Estimate the subwords of a sentence of ``words`` words, special ones included."""
    return round(SUBWORDS_PER_WORD * words) + 2


def training_memory(
    shape: Shape,
    load: Load,
    updates: Updates,
    machine: Machine,
    *,
    best_weights: bool,
    trained_parameters: int | None = None,
) -> int:
    """Return the peak memory of a training in bytes.

    ``load`` is a full batch. With ``best_weights``, evaluations select among weights. ``trained_parameters``
    is the number of parameters that are not frozen. Default: all.
    """
    count = shape.parameters if trained_parameters is None else trained_parameters
    gradients = 4 * count
    states = (2 if updates.optimizer_states else 8) * count
    parts = min(updates.accumulation or 1, load.rows)
    part = Load(rows=-(-load.rows // parts), length=load.length, predicted=-(-load.predicted // parts))
    forward = activations(shape, part, machine, recomputes=bool(updates.gradient_checkpointing))
    step = max(gradients, forward) if machine.gpu and parts == 1 else gradients + forward
    step += 0 if machine.gpu else layer_memory(shape, part, machine)
    copies = (gradients if best_weights else 0) + (gradients if updates.sam_radius else 0)
    return machine.program + 4 * shape.parameters + states + copies + step


def activations(shape: Shape, load: Load, machine: Machine, *, recomputes: bool = False) -> int:
    """Return the bytes stored for the backward pass, including its first gradients."""
    layer = layer_memory(shape, load, machine)
    inputs = 4 * shape.dim * load.subwords
    layers = shape.layers * inputs + layer if recomputes else shape.layers * layer
    matrices = 2 * (shape.parameters - shape.vocabulary * shape.dim) if machine.half else 0
    embeddings = 4 * shape.vocabulary * shape.dim if load.predicted else 0
    scores = 12 * load.predicted * shape.vocabulary
    return layers + 4 * inputs + matrices + embeddings + max(scores, 2 * _widest(shape, load, machine))


def layer_memory(shape: Shape, load: Load, machine: Machine) -> int:
    """Return the bytes that autograd stores for one layer."""
    factors = LAYERS[shape.gated, machine.half, shape.dropout]
    is_fused = machine.gpu and not shape.distances
    width = LAYERS[shape.gated, machine.half, False].dim + FUSED.dim if is_fused else factors.dim
    attention = 0 if is_fused else factors.attention * shape.heads * load.length
    total = (width * shape.dim + factors.feed_forward * shape.feed_forward + attention) * load.subwords
    if shape.distances:  # Scores of all distances, and distances projected for each row.
        size = 2 if machine.half else 4
        total += size * load.subwords * shape.dim
        total += 4 * size * shape.distances * (shape.heads * load.subwords + shape.dim * load.rows)
    return round(total)


def scoring_memory(shape: Shape, load: Load, machine: Machine, *, models: int = 1) -> int:
    """Return the peak memory of a scoring in bytes, with ``models`` models in memory."""
    passing = 3 * _widest(shape, load, machine) + 3 * 4 * shape.dim * load.subwords
    scores = 8 * load.predicted * shape.vocabulary
    matrices = 2 * (shape.parameters - shape.vocabulary * shape.dim) if machine.half else 0
    return machine.program + 4 * shape.parameters * models + matrices + max(passing, scores)


def _widest(shape: Shape, load: Load, machine: Machine) -> int:
    """Return the bytes of a layer's widest tensor."""
    attention = 0 if machine.gpu else shape.heads * load.length
    size = 2 if machine.half else 4
    return size * load.subwords * max((1 + shape.gated) * shape.feed_forward, attention)


STATUS = Path("/proc/self/status")
"""File in which Linux reports a process's peak memory."""

RESET = Path("/proc/self/clear_refs")
"""File to which "5" is written to reset the peak."""


def restart_measurement() -> None:
    """Reset the peak memory of this process, if the system supports it."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        RESET.write_text("5", encoding="ascii")


def measured_peak() -> int | None:
    """Return the peak memory in bytes since the last reset, of any available GPU, else of the process.

    The result is None on systems without this measurement.
    """
    import torch

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    with suppress(OSError):
        peak = re.search(r"^VmHWM:\s*(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
        return int(peak[1]) * 1024 if peak else None
    return None


def ran_out(error: BaseException) -> bool:
    """Return whether an error reports that a GPU's memory ran out, in torch or a library it calls."""
    import torch

    message = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, torch.OutOfMemoryError) or bool(
        re.search("out of memory|_ALLOC_FAILED", message)
    )


def find_memory_error(error: BaseException) -> BaseException | None:
    """Return the error that a GPU's memory ran out, among an error and those during which it was raised."""
    current: BaseException | None = error
    while current is not None and not ran_out(current):
        current = current.__context__
    return current
