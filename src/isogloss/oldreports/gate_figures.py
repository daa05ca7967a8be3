"""Figures of gates: how alike two languages' masks are by layer, attention against feed-forward (Fig. 4a)."""

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from isogloss.oldreports.drawing import (
    Figure,
    Words,
    axis_labels,
    colours,
    drawn,
    head,
    legend,
    panels,
    whole_numbers,
)
from isogloss.oldreports.gate_tables import KINDS, Alike, MaskLikeness, alike_over_draws, with_encoder
from isogloss.oldreports.gradients import number
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.words import joined, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

PANELS = 12
"""Panels of one figure; what is more is in the CSV."""

MEASURES = {
    "cosine": "Cosine",
    "correlation": "Correlation (the cosine after each mask's mean is taken off)",
}


def gate_figures(rows: Sequence[MaskLikeness]) -> list[Figure]:
    """Draw likeness by layer for each encoder, by the paper's cosine and by correlation."""
    return [
        figure
        for encoder, own in grouped(rows, lambda row: row.encoder).items()
        for measure in MEASURES
        for figure in _layers(encoder, alike_over_draws(own), measure)
    ]


def _layers(encoder: str, alike: Sequence[Alike], measure: str) -> list[Figure]:
    over = [one for one in alike if one.layer and getattr(one, measure) is not None]
    between = [one for one in over if one.module in KINDS and one.first != one.second]
    pairs = list(grouped(between, lambda one: f"{one.first}–{one.second}").items())[:PANELS]
    if not pairs or len({one.layer for one in between}) < 2:
        return []
    kinds = [kind for kind in KINDS if any(one.module == kind for one in between)]
    own = {
        (one.first, one.module, one.layer): getattr(one, measure) for one in over if one.first == one.second
    }
    colour = colours(KINDS)
    words = Words(
        name=slug("gates-layers", measure, encoder),
        title=f"{measure.capitalize()} of masks by layer, {encoder}",
        caption=(
            f"{MEASURES[measure]} of the parameters π of the gates of two languages (solid), and the mean of "
            f"the two languages' own, of masks that were learned twice (dashed), which is what noise leaves "
            f"of 1; mean over draws. The farther solid lies below dashed, the less the layer is shared."
        ),
        alt=f"Line plots by layer; mean over layers: {'; '.join(_told(*pair, measure) for pair in pairs)}.",
    )

    def paint() -> "Canvas":
        canvas, axes = panels(len(pairs), labels=[*kinds, *(f"{kind}, within" for kind in kinds)])
        for axis, (name, members) in zip(axes, pairs, strict=True):
            for kind, line in grouped(members, lambda one: one.module).items():
                _draw(axis, line, measure, (kind, colour[kind]), own)
            head(axis, name)
        legend(canvas, axes)
        whole_numbers(axes)
        axis_labels(canvas, "layer", measure)
        return canvas

    return [drawn(words, with_encoder(encoder, over), paint)]


def _draw(
    axis: "Axes",
    line: Sequence[Alike],
    measure: str,
    kind: tuple[str, str],
    own: dict[tuple[str, str, int | None], float],
) -> None:
    name, colour = kind
    at = sorted(line, key=lambda one: one.layer or 0)
    layers = [one.layer or 0 for one in at]
    controls = [
        fmean(own.get((code, name, one.layer), np.nan) for code in (one.first, one.second)) for one in at
    ]
    axis.plot(layers, [getattr(one, measure) for one in at], "-o", ms=3, color=colour, label=name)
    if not np.isnan(controls).all():
        axis.plot(layers, controls, "--", color=colour, label=f"{name}, within")


def _told(name: str, members: Sequence[Alike], measure: str) -> str:
    kinds = grouped(members, lambda one: one.module)
    return f"{name} " + joined(
        f"{kind} {number(fmean(getattr(one, measure) for one in line))}" for kind, line in kinds.items()
    )
