"""Layers of single languages: adapters, a switch over copies of a module, and closed-form maps of states.

Adapters: Houlsby et al. (2019), "Parameter-Efficient Transfer Learning for NLP", Section 2.1; as in "On
Negative Interference in Multilingual Models", Appendix A, Eqs 6 and 7: o = W_h·g(W_z·z) + z. Invertible ones:
Pfeiffer et al. (2020), "MAD-X: An Adapter-Based Framework for Multi-Task Cross-Lingual Transfer".

Switch: a batch may hold several languages. Each language's rows then run as a separate batch, in one
pass, and are put back in their order: the output of a row does not depend on other rows.

Maps (a rotation, a shift, a change of scale) follow from a few moments of matched states, so that states can
be read in batches.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

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


Kind = Literal["rotation", "centring", "normalisation"]
"""The kinds of language maps.

- rotation: the orthogonal map with the least squared distance about the means (Procrustes; Schönemann 1966)
- centring: the target's mean becomes the source's
- normalisation: the target's mean and the scale of each dimension become the source's
"""

MIN_SCALE = 1e-6
"""A dimension that varies less than this is left at its scale."""


@dataclass(frozen=True, eq=False)
class LanguageMap:
    """x ↦ x·matrix + shift."""

    matrix: Float[Tensor, "dim dim"]
    shift: Float[Tensor, "dim"]

    def __call__(self, states: Float[Tensor, "... dim"]) -> Float[Tensor, "... dim"]:
        """Map states, in their own precision and on their device."""
        with torch.autocast(states.device.type, enabled=False):
            return states @ self.matrix.to(states) + self.shift.to(states)


class Moments:
    """Sums over matched states of two languages, in float64."""

    def __init__(self, dim: int) -> None:
        self.count = 0
        self.sums = torch.zeros(2, dim, dtype=torch.float64)
        self.squares = torch.zeros(2, dim, dtype=torch.float64)
        self.products = torch.zeros(dim, dim, dtype=torch.float64)

    def add(self, source: Float[Tensor, "item dim"], target: Float[Tensor, "item dim"]) -> None:
        """Add matched states."""
        sides = torch.stack((source, target)).to("cpu", torch.float64)
        self.count += sides.size(1)
        self.sums += sides.sum(dim=1)
        self.squares += sides.square().sum(dim=1)
        self.products += sides[1].T @ sides[0]

    def means(self) -> Float[Tensor, "side dim"]:
        """Return the mean of the source and of the target."""
        return self.sums / max(1, self.count)

    def scales(self) -> Float[Tensor, "side dim"]:
        """Return the standard deviation of each dimension, of the source and of the target."""
        variance = self.squares / max(1, self.count) - self.means().square()
        return variance.clamp(min=0).sqrt()

    def covariance(self) -> Float[Tensor, "dim dim"]:
        """Return Σ(t−t̄)(s−s̄)ᵀ."""
        source, target = self.means()
        return self.products - self.count * torch.outer(target, source)


def language_map(moments: Moments, kind: Kind) -> LanguageMap:
    """Return the map of the target's states onto the source's."""
    source, target = moments.means()
    dim = len(source)
    if kind == "rotation":
        left, _, right = torch.linalg.svd(moments.covariance())
        matrix = left @ right
    elif kind == "normalisation":
        source_scale, target_scale = moments.scales()
        varying = (source_scale > MIN_SCALE) & (target_scale > MIN_SCALE)
        matrix = torch.diag(torch.where(varying, source_scale / target_scale.clamp(min=MIN_SCALE), 1.0))
    else:
        matrix = torch.eye(dim, dtype=torch.float64)
    return LanguageMap(matrix.float(), (source - target @ matrix).float())
