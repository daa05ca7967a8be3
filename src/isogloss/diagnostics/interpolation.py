"""Paths and planes between models: how does the score change as the weights are mixed?

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1, Eqs 1 to 3.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from isogloss.core.errors import ConfigError, ModelError, did_you_mean
from isogloss.core.progress import Progress
from isogloss.core.rows import PathPoint, PlanePoint
from isogloss.diagnostics.setting import MeasureSetting, role_of
from isogloss.diagnostics.weights import PARTS, Weights, chosen_parameters, standing_in, weights_of

COARSE = tuple(step / 10 for step in range(-5, 16))
"""-0.5, -0.4 … 1.5 (Section 4)."""

FINE = (0.025, 0.05, 0.075, 0.125, 0.15, 0.175, 0.825, 0.85, 0.875, 0.925, 0.95, 0.975)
"""Additional values on paths (footnote 5)."""

Point = TypeVar("Point")
"""A place on a path, or on a plane."""


def on_path(start: Float[Tensor, "..."], end: Float[Tensor, "..."], alpha: float, *, out: Tensor) -> None:
    """Write αθ_end + (1-α)θ_start (Eqs 1, 2) into ``out``; at 0 and 1 the models themselves, to the bit."""
    torch.lerp(start, end, alpha, out=out)


def on_plane(
    origin: Float[Tensor, "..."], corners: tuple[Tensor, Tensor], alphas: tuple[float, float], *, out: Tensor
) -> None:
    """Write θ_ST + α₁(θ_S-θ_ST) + α₂(θ_T-θ_ST) (Eq. 3) into ``out``; on both axes it is a path."""
    first, second = corners
    if alphas[0] == 0:
        torch.lerp(origin, second, alphas[1], out=out)
        return
    torch.lerp(origin, first, alphas[0], out=out)
    if alphas[1] != 0:
        out.add_(second - origin, alpha=alphas[1])


@dataclass(frozen=True, kw_only=True)
class Interpolation:
    """Scores along the line between two models (Eqs 1 and 2)."""

    name: ClassVar[str] = "interpolation"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("source-only", "bilingual")
    """Methods at α = 0 and α = 1."""

    part: str = "all"
    """What is mixed: all, encoder or head; the rest stays as in the first model."""

    alphas: tuple[float, ...] = tuple(sorted((*COARSE, *FINE)))
    """Where the path is scored."""

    def __post_init__(self) -> None:
        """Refuse what cannot be walked."""
        _check_part(self.part, self.name)
        _check_count(self.between, 2, self.name, "between")

    def measure(self, setting: MeasureSetting) -> list[PathPoint]:
        """Score every point on the dev data of every language."""
        start, end = (setting.load(subject) for subject in setting.subjects)
        names = chosen_parameters(start, self.part)
        a, b = weights_of(start, names), weights_of(end, names)

        def go(alpha: float, out: Weights) -> None:
            for x, y, mixed in zip(a, b, out, strict=True):
                on_path(x, y, alpha, out=mixed)

        first, last = (one.id for one in setting.subjects)
        return [
            PathPoint(start=first, end=last, part=self.part, alpha=alpha, **about)
            for alpha, about in _scored(setting, start, names, self.alphas, go)
        ]


@dataclass(frozen=True, kw_only=True)
class Plane:
    """Scores on the plane through three models (Eq. 3)."""

    name: ClassVar[str] = "plane"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("bilingual", "source-only", "target-only")
    """Methods at the origin, at α₁ = 1 and at α₂ = 1."""

    part: str = "all"
    """What is mixed: all, encoder or head; the rest stays as in the first model."""

    alphas: tuple[float, ...] = COARSE
    """Where each axis is scored."""

    def __post_init__(self) -> None:
        """Refuse what cannot be walked."""
        _check_part(self.part, self.name)
        _check_count(self.between, 3, self.name, "between")

    def measure(self, setting: MeasureSetting) -> list[PlanePoint]:
        """Score every point of the grid on the dev data of every language."""
        models = [setting.load(subject) for subject in setting.subjects]
        names = chosen_parameters(models[0], self.part)
        origin, first, second = (weights_of(model, names) for model in models)

        def go(alphas: tuple[float, float], out: Weights) -> None:
            for o, x, y, mixed in zip(origin, first, second, out, strict=True):
                on_plane(o, (x, y), alphas, out=mixed)

        points = [(one, two) for one in self.alphas for two in self.alphas]
        ids: dict[str, Any] = dict(
            zip(("origin", "first", "second"), (one.id for one in setting.subjects), strict=True)
        )
        return [
            PlanePoint(**ids, part=self.part, alpha_first=one, alpha_second=two, **about)
            for (one, two), about in _scored(setting, models[0], names, points, go)
        ]


def _scored(
    setting: MeasureSetting,
    model: nn.Module,
    names: list[str],
    points: Sequence[Point],
    go: Callable[[Point, Weights], None],
) -> Iterator[tuple[Point, dict[str, Any]]]:
    """Move one resident model from point to point; give each with its scores, a language's at a time."""
    sources = setting.source or setting.languages[:1]
    evaluations = {language: setting.evaluation(language) for language in setting.languages}
    home = weights_of(model, names)
    kept = [weight.clone() for weight in home]
    moving = {
        name: nn.Parameter(weight.clone(), requires_grad=False)
        for name, weight in zip(names, home, strict=True)
    }
    with standing_in(model, moving), torch.no_grad():
        for number, point in enumerate(points, start=1):
            go(point, list(moving.values()))
            for language, evaluation in evaluations.items():
                role = role_of(language, sources)
                where = {
                    "language": language,
                    "role": role,
                    "split": setting.split,
                    "metric": evaluation.metric,
                }
                yield point, {**where, "score": evaluation.score(model)}
            setting.on_progress(Progress("path", number, len(points)))
    if not all(torch.equal(weight, before) for weight, before in zip(home, kept, strict=True)):
        raise ModelError("a path changed the model it started from; please report this.")


def _check_part(part: str, where: str) -> None:
    if part not in PARTS:
        raise ConfigError(f"{where}: no part {part!r}.{did_you_mean(part, PARTS)} Known: {', '.join(PARTS)}.")


def _check_count(values: tuple[str, ...], count: int, where: str, field: str) -> None:
    if len(values) != count:
        raise ConfigError(
            f"{where}: {field} names {len(values)} methods, but {count} are needed: {list(values)}."
        )
