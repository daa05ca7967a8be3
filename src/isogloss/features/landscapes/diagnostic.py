"""Diagnostics of paths, planes and distances between models. ``weight_space`` has the equations.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Section 3.1 and Appendix B.
"""

from dataclasses import dataclass
from typing import ClassVar

from isogloss.core.errors import ConfigError, check_named
from isogloss.core.run_parts import Positive
from isogloss.diagnostics.mixed_parts import FACTORS, MODEL_PARTS
from isogloss.diagnostics.setting import Diagnostic, MeasureSetting
from isogloss.features.landscapes.rows import DeltaRow, PathPointRow, PlanePointRow

COARSE = tuple(step / 10 for step in range(-5, 16))
"""-0.5, -0.4 … 1.5 (Section 4)."""

FINE = (0.025, 0.05, 0.075, 0.125, 0.15, 0.175, 0.825, 0.85, 0.875, 0.925, 0.95, 0.975)
"""Additional values on paths (footnote 5)."""


@dataclass(frozen=True)
class Deltas(Diagnostic):
    """Norms of δ_S and δ_T, their ratio, and the angle between them."""

    name: ClassVar[str] = "deltas"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("bilingual", "source-only", "target-only")
    """The origin, and the two models whose differences from it are compared."""

    def __post_init__(self) -> None:
        """Refuse a wrong number of models."""
        _check(self.name, "all", self.between, count=3)

    def measure(self, setting: MeasureSetting) -> list[DeltaRow]:
        """Return a row for all parameters, one for the encoder's and one for the head's."""
        from isogloss.diagnostics.weight_space import parameter_names
        from isogloss.features.landscapes.deltas import delta_between

        models = [setting.load(subject) for subject in setting.subjects]
        ids = [subject.id for subject in setting.subjects]
        return [delta_between(models, parameter_names(models[0], part), part, ids) for part in MODEL_PARTS]


@dataclass(frozen=True, kw_only=True)
class Interpolation(Diagnostic):
    """Scores along the line between two models (Eqs 1 and 2)."""

    name: ClassVar[str] = "interpolation"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("source-only", "bilingual")
    """Methods at α = 0 and α = 1."""

    part: str = "all"
    """Mixed weights: all (merged weights), encoder or head, with the rest from the first model. factors mixes
    the adapters of models with LoRA, and the head. If only the head is mixed, the encoder's states are
    computed once."""

    alphas: tuple[float, ...] = tuple(sorted((*COARSE, *FINE)))
    """Points at which the path is scored."""

    sentences: Positive | None = None
    """Number of examples stored per language, with text, gold labels and the prediction at each α. They are
    the examples whose predictions change most from start to end. The report shows some. Default: none."""

    def __post_init__(self) -> None:
        """Refuse an unknown part or a wrong number of models."""
        _check(self.name, self.part, self.between, count=2)

    def measure(self, setting: MeasureSetting) -> list[PathPointRow]:
        """Return a row for each point and language, scored on dev data."""
        from isogloss.diagnostics.weight_space import moves_on_path
        from isogloss.features.landscapes.scored_points import load_corners, score_points

        models, ends = load_corners(setting, self.part)
        start_id, end_id = (subject.id for subject in setting.subjects)
        return [
            PathPointRow(start=start_id, end=end_id, part=self.part, alpha=alpha, **scores)
            for alpha, scores in score_points(
                setting, self.part, models, self.alphas, moves_on_path(*ends), self.sentences
            )
        ]


@dataclass(frozen=True, kw_only=True)
class Plane(Diagnostic):
    """Scores on the plane through three models (Eq. 3)."""

    name: ClassVar[str] = "plane"
    subject: ClassVar[str] = "cell"
    version: ClassVar[int] = 2

    between: tuple[str, ...] = ("bilingual", "source-only", "target-only")
    """Methods at the origin, at α₁ = 1 and at α₂ = 1."""

    part: str = "all"
    """Mixed weights: all (merged weights), encoder or head, with the rest from the first model. factors mixes
    the adapters of models with LoRA, and the head."""

    alphas: tuple[float, ...] = COARSE
    """Points at which each axis is scored."""

    def __post_init__(self) -> None:
        """Refuse an unknown part or a wrong number of models."""
        _check(self.name, self.part, self.between, count=3)

    def measure(self, setting: MeasureSetting) -> list[PlanePointRow]:
        """Return a row for each point of the grid and language, scored on dev data."""
        from isogloss.diagnostics.weight_space import moves_on_plane
        from isogloss.features.landscapes.scored_points import load_corners, score_points

        moved, corners = load_corners(setting, self.part)
        points = [(alpha_x, alpha_y) for alpha_x in self.alphas for alpha_y in self.alphas]
        ids = zip(("origin", "first", "second"), (subject.id for subject in setting.subjects), strict=True)
        models: dict[str, str] = dict(ids)
        return [
            PlanePointRow(**models, part=self.part, alpha_first=alpha_x, alpha_second=alpha_y, **scores)
            for (alpha_x, alpha_y), scores in score_points(
                setting, self.part, moved, points, moves_on_plane(*corners)
            )
        ]


def _check(where: str, part: str, methods: tuple[str, ...], *, count: int) -> None:
    check_named(where, "part", (*MODEL_PARTS, FACTORS), part)
    if len(methods) != count:
        raise ConfigError(
            f"{where}: between names {len(methods)} methods, but {count} are needed: {list(methods)}."
        )
