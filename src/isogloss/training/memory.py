"""How much memory a training or a scoring takes at its peak, from shapes alone, without loading anything.

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

A backward pass frees activations, so that a step's peak is weights + states + best + moved + the larger of
activations and gradients; with accumulation it is their sum. On a CPU it is their sum and one layer's
activations more: the C library keeps freed blocks of less than 32 MB, into which others rarely fit. A
backward pass takes one layer's widest tensors in addition, twice. The numbers in LAYERS were measured (a test
compares them with autograd).
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch

from isogloss.core.run_parts import Updates
from isogloss.encoders.families import family_named
from isogloss.encoders.family import Config
from isogloss.encoders.initial import count_parameters

PROGRAM = 550_000_000
"""Bytes that `isogloss run` takes on a CPU without models: Python and all libraries."""


class LayerBytes(NamedTuple):
    """Bytes that a layer keeps for each subword and unit of width, feed-forward, and head times length."""

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
"""With explicit attention, on a CPU."""

FUSED = LayerBytes(4, 0, 0)
"""What a layer keeps of fused attention instead of its weights: its output. A GPU's dropout masks are bytes,
and left out."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The shape of a model."""

    parameters: int
    """In embeddings, layers, heads and modules of languages."""
    layers: int
    dim: int
    heads: int
    feed_forward: int
    """Width; of each half where it is gated."""
    vocabulary: int
    gated: bool = False
    """Whether the feed-forward is gated and norms precede sub-layers, as in ModernBERT."""
    distances: int = 0
    """Buckets of distances that attention weighs in each direction, in DeBERTa."""
    dropout: bool = True


def shape_of(config: Config) -> Shape:
    """Return the shape of an encoder with its masked-LM head; ModelError for an unknown family."""
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
    """A batch."""

    rows: int
    length: int
    """Subwords of the longest row."""
    predicted: int = 0
    """Subwords at which the whole vocabulary is scored."""

    @property
    def subwords(self) -> int:
        """Padding included."""
        return self.rows * self.length


class AddedCost(NamedTuple):
    """The cost that a part adds to a training."""

    rows: int = 0
    """Rows of a batch, as long as those of the training."""
    copies: float = 0.0
    """Numbers of four bytes for each parameter of the model: 1 for a second model in memory."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The cost of training an encoder: with its shape it determines memory and operations."""

    batch: Load
    steps: float
    updates: Updates
    dropout: bool = True
    copies: float = 0.0
    """Numbers of four bytes for each parameter of the model, besides its own: 1 for a second model."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The device and precision of a run."""

    half: bool = False
    """Whether in bfloat16."""
    gpu: bool = False

    @property
    def program(self) -> int:
        """Bytes without models; none in a GPU's memory."""
        return 0 if self.gpu else PROGRAM


SUBWORDS_PER_WORD = 1.5
"""For sentences whose length is known in words alone: between English and languages that are split more."""


def subwords_of(words: int) -> int:
    """Estimate the subwords of a sentence of so many words, special ones included."""
    return round(SUBWORDS_PER_WORD * words) + 2


def training_memory(
    shape: Shape, load: Load, updates: Updates, machine: Machine, *, best: bool, trained: int | None = None
) -> int:
    """Return the bytes of a training's peak.

    ``load`` is a full batch; with ``best`` evaluations select among weights; ``trained`` counts parameters
    that are not frozen, None for all.
    """
    count = shape.parameters if trained is None else trained
    gradients = 4 * count
    states = (2 if updates.optimizer_states else 8) * count
    parts = min(updates.accumulation or 1, load.rows)
    part = Load(rows=-(-load.rows // parts), length=load.length, predicted=-(-load.predicted // parts))
    forward = activations(shape, part, machine, recomputed=bool(updates.gradient_checkpointing))
    step = max(gradients, forward) if machine.gpu and parts == 1 else gradients + forward
    step += 0 if machine.gpu else layer_memory(shape, part, machine)
    copies = (gradients if best else 0) + (gradients if updates.sam_radius else 0)
    return machine.program + 4 * shape.parameters + states + copies + step


def activations(shape: Shape, load: Load, machine: Machine, *, recomputed: bool = False) -> int:
    """Return the bytes stored for the backward pass, with those of its first gradients."""
    layer = layer_memory(shape, load, machine)
    inputs = 4 * shape.dim * load.subwords
    layers = shape.layers * inputs + layer if recomputed else shape.layers * layer
    converted = 2 * (shape.parameters - shape.vocabulary * shape.dim) if machine.half else 0
    tied = 4 * shape.vocabulary * shape.dim if load.predicted else 0
    scores = 12 * load.predicted * shape.vocabulary
    return layers + 4 * inputs + converted + tied + max(scores, 2 * _widest(shape, load, machine))


def layer_memory(shape: Shape, load: Load, machine: Machine) -> int:
    """Return the bytes that autograd stores of one layer."""
    factors = LAYERS[shape.gated, machine.half, shape.dropout]
    fused = machine.gpu and not shape.distances
    width = LAYERS[shape.gated, machine.half, False].dim + FUSED.dim if fused else factors.dim
    attention = 0 if fused else factors.attention * shape.heads * load.length
    total = (width * shape.dim + factors.feed_forward * shape.feed_forward + attention) * load.subwords
    if shape.distances:  # Scores of all distances, and distances projected for each row.
        size = 2 if machine.half else 4
        total += size * load.subwords * shape.dim
        total += 4 * size * shape.distances * (shape.heads * load.subwords + shape.dim * load.rows)
    return round(total)


def scoring_memory(shape: Shape, load: Load, machine: Machine, *, models: int = 1) -> int:
    """Return the bytes of a scoring's peak, with so many models in memory."""
    passing = 3 * _widest(shape, load, machine) + 3 * 4 * shape.dim * load.subwords
    scores = 8 * load.predicted * shape.vocabulary
    converted = 2 * (shape.parameters - shape.vocabulary * shape.dim) if machine.half else 0
    return machine.program + 4 * shape.parameters * models + converted + max(passing, scores)


def _widest(shape: Shape, load: Load, machine: Machine) -> int:
    """Return the bytes of a layer's widest tensor."""
    attention = 0 if machine.gpu else shape.heads * load.length
    size = 2 if machine.half else 4
    return size * load.subwords * max((1 + shape.gated) * shape.feed_forward, attention)


STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
"""Linux reports a process's peak memory in the first, and resets it by "5" in the second."""


def restart_measurement() -> None:
    """Reset the peak memory of this process, if the system can."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with suppress(OSError):
        RESET.write_text("5", encoding="ascii")


def measured_peak() -> int | None:
    """Return the peak since the last reset, in bytes: of a GPU, else of the process; None if unmeasured."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    with suppress(OSError):
        peak = re.search(r"^VmHWM:\s*(\d+) kB$", STATUS.read_text(encoding="ascii"), re.MULTILINE)
        return int(peak[1]) * 1024 if peak else None
    return None
