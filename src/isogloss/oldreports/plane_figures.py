"""The plane through three models as lines of equal score: Figs. 3 and 10 of the paper.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Eq. 3.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isogloss.core.records import Row
from isogloss.metrics.spread import spread
from isogloss.oldreports.drawing import (
    MARK,
    Figure,
    Words,
    axis_labels,
    drawn,
    half_steps,
    head,
    legend,
    panels,
)
from isogloss.oldreports.paths import DIGITS, grouped
from isogloss.oldreports.rows import PlanePoint
from isogloss.oldreports.words import count, joined, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Canvas

MODELS = (((0.0, 0.0), "bilingual", "o"), ((1.0, 0.0), "source-only", "s"), ((0.0, 1.0), "target-only", "^"))
"""Where the three models lie in Eq. 3, by (α₁, α₂)."""

LEVELS = 12
PANELS = 16


@dataclass(frozen=True, slots=True)
class Surface:
    """The mean score over seeds on the grid of one pair and role."""

    about: tuple[str, ...]
    pair: str
    role: str
    seeds: int
    scores: dict[tuple[float, float], float]
    bilingual: float | None

    def values(self) -> tuple[list[float], list[float], npt.NDArray[np.float64]]:
        """Return both axes and the grid of scores over the bilingual one's; nan where unmeasured."""
        across = sorted({x for x, _ in self.scores})
        up = sorted({y for _, y in self.scores})
        scale = self.bilingual or 1.0
        grid = [[self.scores.get((x, y), np.nan) / scale for x in across] for y in up]
        return across, up, np.array(grid)

    def data(self) -> list[Row]:
        """Return the surface as flat rows."""
        names = ("corpus", "task", "encoder", "part", "split", "metric")
        about = {**dict(zip(names, self.about, strict=True)), "pair": self.pair, "role": self.role}
        return [
            {
                **about,
                "alpha_source": x,
                "alpha_target": y,
                "seeds": self.seeds,
                "mean": score,
                "normalised_mean": score / self.bilingual if self.bilingual else None,
            }
            for (x, y), score in sorted(self.scores.items())
        ]


def plane_figures(points: Sequence[PlanePoint]) -> list[Figure]:
    """Draw one panel per pair and role; one figure per corpus, task, encoder and part."""
    surfaces = [
        _surface(key, members)
        for key, members in grouped(points, lambda p: (_about(p), f"{p.source} → {p.target}", p.role)).items()
    ]
    drawable = [surface for surface in surfaces if min(surface.values()[2].shape) > 1]
    found = []
    for about, group in grouped(drawable, lambda surface: surface.about).items():
        ordered = sorted(group, key=lambda surface: (surface.pair, surface.role))
        for first in range(0, len(ordered), PANELS):
            found.append(_figure(about, ordered[first : first + PANELS], first // PANELS))
    return found


def _about(point: PlanePoint) -> tuple[str, ...]:
    return point.corpus, point.task, point.encoder, point.part, point.split, point.metric


def _surface(key: tuple[tuple[str, ...], str, str], members: Sequence[PlanePoint]) -> Surface:
    about, pair, role = key
    at = grouped(members, lambda p: (round(p.alpha_source, DIGITS), round(p.alpha_target, DIGITS)))
    scores = {place: spread([p.score for p in there]).mean for place, there in at.items()}
    return Surface(about, pair, role, len({p.seed for p in members}), scores, scores.get((0.0, 0.0)) or None)


def _figure(about: tuple[str, ...], surfaces: Sequence[Surface], number: int) -> Figure:
    corpus, task, encoder, part, split, metric = about
    seeds = max(surface.seeds for surface in surfaces)
    words = Words(
        name=slug("plane", corpus, task, encoder, part, split, metric, str(number + 1)),
        title=f"{corpus} {task}, {encoder}: the plane through three models",
        caption=(
            f"{metric} on the {split} sets of θ(α₁, α₂) = θ_ST + α₁δ_S + α₂δ_T (Eq. 3, the directions "
            f"as they are; {part} weights), mean over {count(seeds, 'seed')}, divided by "
            f"the score of the bilingual model. All panels share one scale; lines that lie close "
            f"together mean a steep surface."
        ),
        alt=_alt(surfaces),
    )

    def paint() -> "Canvas":
        canvas, axes = panels(len(surfaces), height=2.0)
        levels = _levels(surfaces)
        for axis, surface in zip(axes, surfaces, strict=True):
            _draw(axis, surface, levels)
        legend(canvas, axes[:1])
        places = [place for surface in surfaces for place in surface.scores]
        half_steps((axis.xaxis for axis in axes), [x for x, _ in places])
        half_steps((axis.yaxis for axis in axes), [y for _, y in places])
        axis_labels(canvas, "α₁: towards the source-only model", "α₂: towards the target-only model")
        return canvas

    return drawn(words, [row for surface in surfaces for row in surface.data()], paint)


def _levels(surfaces: Sequence[Surface]) -> npt.NDArray[np.float64]:
    """Return round levels that cover every surface of a figure."""
    from matplotlib.ticker import MaxNLocator

    low = min(float(np.nanmin(surface.values()[2])) for surface in surfaces)
    high = max(float(np.nanmax(surface.values()[2])) for surface in surfaces)
    widened = high if high > low else low + 0.01
    return np.asarray(MaxNLocator(LEVELS).tick_values(low, widened))


def _draw(axis: "Axes", surface: Surface, levels: npt.NDArray[np.float64]) -> None:
    across, up, grid = surface.values()
    masked = np.ma.masked_invalid(grid)
    axis.contourf(across, up, masked, levels=levels, cmap=_light_map())
    crossed = [level for level in levels if masked.min() < level < masked.max()]
    if crossed:
        lines = axis.contour(across, up, masked, levels=crossed, colors=MARK, linewidths=0.4)
        axis.clabel(lines, crossed[:: max(1, len(crossed) // 5)], fontsize=6, fmt="%.2f", inline_spacing=2)
    for (x, y), name, marker in MODELS:
        axis.plot(x, y, marker, color="white", markeredgecolor=MARK, markersize=6, label=f"{name} model")
    head(axis, f"{surface.pair}, {surface.role} language")
    axis.grid(visible=False)


def _light_map() -> "Colormap":
    """Return the lighter part of a map even to colour-blind readers: dark numbers stay readable."""
    import matplotlib as mpl
    from matplotlib.colors import ListedColormap

    return ListedColormap(mpl.colormaps["cividis"](np.linspace(0.35, 1.0, 256)))


def _alt(surfaces: Sequence[Surface]) -> str:
    parts = []
    for surface in surfaces:
        scores = [
            f"{100 * surface.scores[place]:.1f} at the {name} model"
            for place, name, _ in MODELS
            if place in surface.scores
        ]
        parts.append(f"{surface.pair} {surface.role} language: {joined(scores) or 'no model on the grid'}")
    return f"Contour plots. {'; '.join(parts)}."
