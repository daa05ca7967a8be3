"""Layers of single languages: adapters, a switch over copies of a module, and closed-form maps of states.

Adapters: Houlsby et al. (2019), "Parameter-Efficient Transfer Learning for NLP", Section 2.1; as in "On
Negative Interference in Multilingual Models", Appendix A, Eqs 6 and 7: o = W_h·g(W_z·z) + z. Invertible ones:
Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer".

Switch: a batch may hold several languages. Each language's rows then run as a separate batch, in one
pass, and are put back in their order: the output of a row does not depend on other rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive

_FUNCTIONS: Mapping[str | None, Callable[[Tensor], Tensor]] = {
    None: nn.functional.gelu,
    "relu": nn.functional.relu,
    "swish": nn.functional.silu,
}
"""The functions of ``module_settings.ACTIVATIONS``."""


class Adapter(nn.Module):
    """A bottleneck with a residual connection, which is initially the identity to the bit.

    Only the projection down is drawn, from N(0, ``spread``²): the one back up is zero.
    """

    def __init__(
        self, dim: int, bottleneck: int, *, spread: float, seed: int, activation: str | None = None
    ) -> None:
        super().__init__()
        self.activation = _FUNCTIONS[activation]
        # Made without numbers, or torch would draw random ones.
        self.down = nn.Linear(dim, bottleneck, device="meta").to_empty(device="cpu")
        self.up = nn.Linear(bottleneck, dim, device="meta").to_empty(device="cpu")
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self.down.weight.normal_(0.0, spread, generator=generator)
            for zero in (self.down.bias, self.up.weight, self.up.bias):
                zero.zero_()

    def forward(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the states with the bottleneck's output added."""
        return states + self.delta(states)

    def delta(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the bottleneck's output."""
        delta: Tensor = self.up(self.activation(self.down(states)))
        return delta


@dataclass(frozen=True)
class BehindNorm:
    """An adapter's bottleneck that reads the states behind a norm and is added to those before it.

    With s before the norm, the norm is given s + A(norm(s)). AdapterHub's Pfeiffer adapters are placed so:
    Pfeiffer et al. (2021), "AdapterFusion: Non-Destructive Task Composition for Transfer Learning", Fig. 5.
    """

    norm: nn.Module
    adapter: Adapter

    def __call__(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the states for the norm, which may be connected to other adapters already."""
        norm_output: Tensor = type(self.norm).forward(self.norm, states)
        return states + self.adapter.delta(norm_output)


class LanguageEmbedding(nn.Module):
    """A vector, initially 0, that is added to every state.

    Lample & Conneau (2019), "Cross-lingual Language Model Pretraining" (XLM), Fig. 1.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the sums."""
        return states + self.weight


class InvertibleAdapter(nn.Module):
    """Add to each half of a state a bottleneck of the other half, initially the identity.

    Pfeiffer et al. (2020), Section 3.3, Eqs 4 and 5 (the coupling of NICE, Dinh et al. 2015), with the
    bottlenecks of half the width of their inputs, as there.
    """

    def __init__(self, dim: int, *, spread: float, seed: int, activation: str | None = None) -> None:
        super().__init__()
        width = dim // 2
        self.f, self.g = (
            Adapter(width, width // 2, spread=spread, seed=derive(seed, name), activation=activation)
            for name in ("f", "g")
        )

    def forward(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return o₁ = F(e₂) + e₁ and o₂ = G(o₁) + e₂, joined."""
        left, right = states.chunk(2, dim=-1)
        left = left + self.f.delta(right)
        return torch.cat((left, right + self.g.delta(left)), dim=-1)

    def inverse(self, states: Float[Tensor, "*place dim"]) -> Float[Tensor, "*place dim"]:
        """Return the states that ``forward`` makes these of, within rounding."""
        left, right = states.chunk(2, dim=-1)
        right = right - self.g.delta(left)
        return torch.cat((left - self.f.delta(right), right), dim=-1)


Run = Callable[..., object]

MIN_ROW_DIMENSIONS = 3
"""Fewest dimensions of a tensor with a part for each row, such as states [row subword dim].

Tensors of two dimensions, such as DeBERTa's distances, are shared by all rows. A vector has a number for each
row, such as X-MOD's languages.
"""


@dataclass
class ActiveLanguage:
    """The active language, shared by all switches of a model."""

    languages: tuple[str, ...] = ()
    """None, one for the whole batch, or one for each row."""


@dataclass(frozen=True)
class LanguageSwitch:
    """Replaces a module's forward function by the active language's."""

    runs: Mapping[str, Run]
    """The function for the rows of each language, all equal in shape but not in weights."""

    speaking: ActiveLanguage = field(default_factory=ActiveLanguage)

    def __call__(self, *inputs: object, **keywords: object) -> object:
        """Run a batch.

        Raises ConfigError if the language is unspecified or has no module.
        """
        return run_by_language(self._run, self.speaking, inputs, keywords)

    def _run(self, language: str) -> Run:
        if language in self.runs:
            return self.runs[language]
        available = ", ".join(sorted(self.runs))
        if language:
            raise ConfigError(
                f"this encoder has modules for each language, and none for {language!r}. Known: {available}."
            )
        raise ConfigError(
            f"this encoder has modules for each language, but the language it reads is unspecified. "
            f"Known: {available}. Name it (--language, or language=; in a loop, run the model within "
            f"language(code) of MetaLearner)."
        )


def run_by_language(
    run: Callable[[str], Run], speaking: ActiveLanguage, inputs: Sequence[Any], keywords: Mapping[str, object]
) -> object:
    """Run a batch through ``run(language)``.

    With several languages, the rows of each run as a separate batch, and outputs are put back in order. The
    first input, positional or by keyword, contains all rows. Raises ValueError unless there are as many
    languages as rows.
    """
    languages = speaking.languages
    if len(set(languages)) < 2:
        return run(languages[0] if languages else "")(*inputs, **keywords)
    row_input = next(iter((*inputs, *keywords.values())))
    count = len(row_input)
    if count != len(languages):
        raise ValueError(f"{len(languages)} languages for {count} rows: give one for each row.")
    rows_of, order = _rows(languages, row_input.device)
    parts = [
        run(language)(
            *(_select_rows(value, rows, count) for value in inputs),
            **{name: _select_rows(value, rows, count) for name, value in keywords.items()},
        )
        for language, rows in rows_of.items()
    ]
    return _join_parts(parts, [len(rows) for rows in rows_of.values()], order)


@lru_cache(maxsize=8)
def _rows(languages: tuple[str, ...], device: torch.device) -> tuple[dict[str, Tensor], Tensor]:
    """Return each language's row numbers, in order of appearance, and the position of each row among them.

    Kept for the other switches of a pass: a GPU would wait for every one of these numbers.
    """
    rows_of: dict[str, list[int]] = {}
    for row, language in enumerate(languages):
        rows_of.setdefault(language, []).append(row)
    with torch.inference_mode(mode=False):  # Or no training could use them later.
        numbers = {language: torch.tensor(rows, device=device) for language, rows in rows_of.items()}
        return numbers, torch.cat(list(numbers.values())).argsort()


def _select_rows(value: Any, rows: Tensor, count: int) -> object:
    """Select rows of an input, or return an input without a row dimension unchanged."""
    if isinstance(value, tuple):  # Rotations: cosines and sines.
        return tuple(_select_rows(part, rows, count) for part in value)
    has_rows = (
        torch.is_tensor(value)
        and (value.ndim >= MIN_ROW_DIMENSIONS or value.ndim == 1)
        and len(value) == count
    )
    return value.index_select(0, rows) if has_rows else value


def _join_parts(parts: Sequence[Any], sizes: Sequence[int], order: Tensor) -> object:
    """Put the outputs of all languages' rows together in the order of the rows.

    What a language has once for its rows, as mT5's weights of distances, is repeated for each.
    """
    if isinstance(parts[0], tuple):
        return tuple(_join_parts(tensors, sizes, order) for tensors in zip(*parts, strict=True))
    if not torch.is_tensor(parts[0]):
        return parts[0]
    tensors = [part.expand(size, *part.shape[1:]) for part, size in zip(parts, sizes, strict=True)]
    return torch.cat(tensors).index_select(0, order)


@dataclass(frozen=True)
class _Chain:
    """A function and its successor. Unlike a closure, it is copied with its module."""

    first: Run
    then: Run

    def __call__(self, *inputs: object, **keywords: object) -> object:
        return self.then(self.first(*inputs, **keywords))


def run_instead(module: nn.Module, run: Run) -> None:
    """Replace a module's forward function. The module keeps its name and hooks."""
    vars(module)["forward"] = run


def run_after(module: nn.Module, run: Run) -> None:
    """Pass a module's outputs through a function."""
    run_instead(module, _Chain(module.forward, run))


def run_before(module: nn.Module, run: Run) -> None:
    """Pass a module's inputs through a function."""
    run_instead(module, _Chain(run, module.forward))


def disconnect(model: nn.Module) -> None:
    """Restore the forward functions of all modules that were replaced or wrapped."""
    for module in model.modules():
        if isinstance(vars(module).get("forward"), _Chain | LanguageSwitch):
            del vars(module)["forward"]


@dataclass(frozen=True, eq=False)
class LanguageMap:
    """x ↦ x·matrix + shift."""

    matrix: Float[Tensor, "dim dim"]
    shift: Float[Tensor, "dim"]

    def __call__(self, states: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        """Map states, in their own precision and on their device."""
        with torch.autocast(states.device.type, enabled=False):
            return states @ self.matrix.to(states) + self.shift.to(states)
