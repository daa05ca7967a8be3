"""The paths that open a page."""

import math
from collections.abc import Iterator
from typing import cast

import pandas as pd

from isogloss.core.languages import language_name
from isogloss.features.landscapes.path_sentences import compare_seeds, sentences_of_seeds, shown_sentences
from isogloss.features.landscapes.report import ENDS, SETTING, path_points
from isogloss.reports.comparison import row_keys
from isogloss.reports.measurements import Measurements
from isogloss.reports.opening_figure import Curve, OpeningPaths, PathFigure, PathPanel, Side
from isogloss.reports.run_facts import ZERO_SHOT

MOST_PANELS = 4
"""Maximum number of pairs of languages whose paths open a page. The section on paths has all."""


def _merged_paths(measurements: Measurements) -> pd.DataFrame:
    """Return the points of paths on which encoder and head move together."""
    points = path_points(measurements)
    return points.loc[points["part"] == "all"] if len(points) else points


def _first_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the first setting and ends, preferably from source-only models."""
    preferred_rows = rows[rows["start.reference"] == ZERO_SHOT]
    rows = preferred_rows if len(preferred_rows) else rows
    keys = row_keys(rows, [*SETTING, *ENDS])
    setting_rows: pd.DataFrame = rows[keys == keys.iloc[0]]
    return setting_rows


def _figure_of(measurements: Measurements, rows: pd.DataFrame) -> PathFigure | None:
    """Return the figure of paths, lowest target first. None without points."""
    if rows.empty:
        return None
    alphas = sorted(rows["alpha"].unique())
    first_row = rows.iloc[0]
    zero = min(alphas, key=abs)
    pair_groups = [group for _, group in rows.groupby(["source", "target"], sort=False)]
    pairs = sorted(pair_groups, key=lambda pair: _target_score(pair, zero))[:MOST_PANELS]
    scores = pd.concat(pairs)["score"]
    return PathFigure(
        **{name: first_row[f"{name}.name"] for name in ("start", "end")},
        **{name: first_row[name] for name in ("metric", "split")},
        alphas=alphas,
        zero=zero,
        low=10 * math.floor(10 * min(0.9, scores.min())),
        high=10 * math.ceil(10 * max(0.1, scores.max())),
        pairs=len(pair_groups),
        panels=[_make_panel(pair) for pair in pairs],
        sentences=shown_sentences(measurements, pairs, alphas),
        of_seeds=sentences_of_seeds(measurements, pairs, alphas),
        compared=compare_seeds(measurements, pairs, alphas),
    )


def _target_score(pair: pd.DataFrame, alpha: float) -> float:
    """Return the mean score in the target at a point. Infinite without a measurement."""
    scores = pair[(pair["alpha"] == alpha) & (pair["role"] == "target")]["score"]
    return float(scores.mean()) if len(scores) else math.inf


def _make_panel(pair: pd.DataFrame) -> PathPanel:
    """Return the curves of a pair of languages."""
    curves = pair.assign(curve=row_keys(pair, ["seed", "encoder.run"]))
    scores = curves.groupby(["role", "language", "curve", "alpha"])["score"].mean()
    groups = cast("Iterator[tuple[tuple[str, str], pd.Series[float]]]", iter(scores.groupby(level=[0, 1])))
    sides = [_side(role, language_code, side_scores) for (role, language_code), side_scores in groups]
    sides = sorted(sides, key=lambda side: list(side.means.values())[-1], reverse=True)
    names = [
        language_name(language_code) for language_code in pair.iloc[0][["source", "target"]] if language_code
    ]
    texts = [f"{side.name} ({side.role}) {_ends(side)}" for side in sides]
    alt = f"Line plot, a line per seed and language: {'; '.join(texts)}."
    return PathPanel(title=" → ".join(names), alt=alt, sides=sides)


def _side(role: str, language_code: str, scores: "pd.Series[float]") -> Side:
    """Return the curves in one language from its scores by curve and α."""
    wide = scores.droplevel([0, 1]).unstack("alpha")
    curves = [
        Curve(list(curve.index), list(100 * curve)) for curve in (row.dropna() for _, row in wide.iterrows())
    ]
    return Side(
        role=role,
        name=language_name(language_code),
        curves=curves,
        means=cast("dict[float, float]", wide.mean().to_dict()),
    )


def _ends(side: Side) -> str:
    """Write the means at both models, or at the ends of a path that reaches neither."""
    end_alphas = [alpha for alpha in (0.0, 1.0) if alpha in side.means]
    alphas = end_alphas or [min(side.means), max(side.means)]
    return ", ".join(f"{side.mean_at(alpha)} at α {alpha:g}" for alpha in alphas)


PATHS = OpeningPaths(points=_merged_paths, choose=_first_setting, draw=_figure_of)
"""The paths of this feature, for the opening of a page."""
