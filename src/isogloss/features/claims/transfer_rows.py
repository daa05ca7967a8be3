"""Rows for the claims of the first paper: paths, planes and deltas in its setting, each with its shape."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from isogloss.features.claims.comparisons import drop_pilots, drop_strays, replicates
from isogloss.features.claims.path_examples import ExampleTerms, Weights, examples_of
from isogloss.metrics.ranks import spearman
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import FEWEST, rows_of
from isogloss.reports.frames import list_rows
from isogloss.reports.measurements import Measurements, cache_result

NEAR = 0.25
"""Points within this α of the source-only model count as near it in Eq. 1, and within this distance of (1, 0)
in Eq. 3."""

DIGITS = 6
"""α is compared after rounding, so that 0.1 + 0.2 equals 0.3."""

MEASURED_ON = ["corpus", "treebank", "language", "split", "metric"]

SYSTEM = ["corpus", "task", "source", "encoder", "way", "start.way", "part", "role"]
TEST_SET = ["treebank", "language", "split", "metric"]
"""Columns that identify a system and its test set, to find measurements of only a few seeds."""

WHOLE = {"part": "all"}


def is_paper_setting(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Return a mask of rows as in the paper: unmodified encoders, trained whole, on unmixed inputs."""
    is_trained_whole = rows["peft"].isna() | (rows["peft"] == "") if "peft" in rows else True
    return (rows[["encoder.adjusted", "encoder.modules", "inputs"]] == "").all(axis=1) & is_trained_whole


@cache_result
def path_rows(measurements: Measurements) -> pd.DataFrame:
    """Return one row per path to the bilingual model: its facts and its shape over α in [0, 1]."""
    rows = measurements.frame("interpolation")
    rows = rows[is_paper_setting(rows) & (rows["method"] == "bilingual")]
    rows = rows.assign(alpha=rows["alpha"].astype(float).round(DIGITS))
    paths = rows[rows["alpha"].between(0, 1)].groupby(
        ["start", "end", "part", "role", *MEASURED_ON], dropna=False
    )
    shapes = [_path_row(measurements, path) for _, path in paths]
    return _with_unit(drop_strays(pd.DataFrame(shapes), SYSTEM, TEST_SET) if shapes else rows)


def _path_row(measurements: Measurements, path: pd.DataFrame) -> dict[str, object]:
    """Return facts and shape of a path, and what examples add to its slope, gain and drop."""
    first_row = path.iloc[0]
    scores = path.groupby("alpha")["score"].mean()
    examples = examples_of(measurements, first_row)
    return {
        **first_row,
        **_shape(scores),
        "examples": examples,
        "added": examples.list_terms(_linear(scores)),
    }


def _linear(scores: "pd.Series[float]") -> dict[str, Weights]:
    """Return the weights of the scores in the statistics of a path that are sums of them."""
    last_score = scores.get(1.0)
    near_alphas = [alpha for alpha in scores.index if 0 < alpha <= NEAR]
    weights: dict[str, Weights] = {"gain": {(0.0,): -1.0, (1.0,): 1.0}}
    if near_alphas:
        alpha = near_alphas[-1]
        weights["slope"] = {(0.0,): -1 / alpha, (alpha,): 1 / alpha}
    if last_score:
        weights["drop"] = {(0.0,): 1 / last_score, (1.0,): -1 / last_score}
    return weights


def _with_unit(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the unit of replication: the pretraining seed of an encoder with FEWEST or more, else the seed.

    For an encoder with fewer, the pretraining seed with most models counts. Ways to train with fewer than
    FEWEST units are dropped if a further way has more.
    """
    if rows.empty:
        return rows.assign(unit=pd.Series(dtype=object), units=pd.Series(dtype=object))
    parts = []
    for _, encoder in rows.groupby("encoder"):
        unit, (unit_rows,) = replicates(encoder)
        parts.append(unit_rows.assign(unit=unit_rows[unit].astype(object), units=UNITS[unit]))
    with_units = pd.concat(parts).sort_index()
    return drop_pilots(with_units, ["corpus", "task", "source", "encoder"], ["way"], "unit")


def _shape(scores: "pd.Series[float]") -> dict[str, object]:
    """Return statistics of scores along a path, by α in [0, 1], or nan for too few points.

    ``below_line`` is the distance of the score at each α below the line between the ends (Frankle et al.
    2020). ``drop`` is the first score minus the last. Both are shares of the bilingual model's score.
    ``slope`` is the gain in score per unit of α within NEAR of the first model.
    """
    line = rho = 0.0 if len(scores) >= FEWEST else math.nan
    if len(scores) >= FEWEST and scores.max() > scores.min():
        line = np.corrcoef(scores.index, scores)[0, 1]
        rho = spearman(list(scores.index), list(scores)).rho
    first_score = scores.get(0.0, math.nan)
    last_score = scores.get(1.0, math.nan)
    near_alphas = [alpha for alpha in scores.index if 0 < alpha <= NEAR]
    line_between = first_score + (last_score - first_score) * scores.index.to_numpy()
    return {
        "points": len(scores),
        "highest": scores.max(),
        "below_line": (line_between - scores) / last_score if last_score else scores * math.nan,
        "drop": (first_score - last_score) / last_score if last_score else math.nan,
        "first": first_score,
        "last": last_score,
        "gain": last_score - first_score,
        "rho": rho,
        "straight": line**2,
        "slope": (scores[near_alphas[-1]] - first_score) / near_alphas[-1] if near_alphas else math.nan,
    }


def _triples(measurements: Measurements, frame: str) -> pd.DataFrame:
    """Return the rows about the paper's three whole models."""
    names = {"method": "bilingual", "first.method": "source-only", "second.method": "target-only"}
    rows = measurements.frame(frame)
    rows = rows_of(rows[is_paper_setting(rows)], names | WHOLE)
    return rows.assign(**{"start.way": rows["first.way"] + rows["second.way"]})


def delta_rows(measurements: Measurements) -> pd.DataFrame:
    """Return the deltas between the paper's three whole models."""
    return _with_unit(_triples(measurements, "deltas").assign(split="", metric=""))


@cache_result
def plane_rows(measurements: Measurements) -> pd.DataFrame:
    """Return one row per plane: zero-shot score and the slope there."""
    rows = _triples(measurements, "plane")
    surfaces = []
    for _, group in rows.groupby(["origin", "first", "second", "role", *MEASURED_ON], dropna=False):
        grid = group.round(dict.fromkeys(("alpha_first", "alpha_second"), DIGITS)).pivot_table(
            index="alpha_first", columns="alpha_second", values="score"
        )
        nearest = _nearest(grid)
        scale = 1 / (1 - nearest)
        slope: Weights = {(1.0, 0.0): -scale, (nearest, 0.0): scale}
        terms = examples_of(measurements, group.iloc[0]).list_terms({"slope": slope})
        surfaces.append({**group.iloc[0], "points": grid.size, **_surface(grid), "added": terms})
    return _with_unit(drop_strays(pd.DataFrame(surfaces), SYSTEM, TEST_SET) if surfaces else rows)


def _surface(grid: pd.DataFrame) -> dict[str, float]:
    """Return the score at the source-only model, at (1, 0), and its slope there.

    The slope is the gain per unit towards the bilingual model, at (0, 0), up to a point within NEAR.
    """
    nearest = _nearest(grid)
    first_score = _score_at(grid, 1.0)
    return {
        "gain": _score_at(grid, 0.0) - first_score,
        "slope": (_score_at(grid, nearest) - first_score) / (1 - nearest),
        "first": first_score,
    }


def _score_at(grid: pd.DataFrame, alpha: float) -> float:
    """Return the score at (α₁, 0), or nan if it was not measured."""
    if alpha not in grid.index or 0.0 not in grid.columns:
        return math.nan
    return float(grid[0.0].to_dict()[alpha])


def _nearest(grid: pd.DataFrame) -> float:
    """Return the farthest point towards the bilingual model within NEAR of the source-only one, or nan.

    It is the same as on the path of Eq. 1, where (α₁, 0) is the point at α = 1 - α₁.
    """
    return min((float(alpha) for alpha in grid.index if 1 - NEAR <= alpha < 1), default=math.nan)


def barrier_rows(group: pd.DataFrame) -> tuple["pd.Series[float]", pd.DataFrame]:
    """Return by unit and target the largest distance of scores below the line between the ends.

    The other units determine its position, so that noise is not counted as a barrier; a single unit
    determines its own. Contributions of examples are returned with the rows.
    """
    curves = pd.DataFrame(
        {index_of_row: pd.Series(row) for index_of_row, row in group["below_line"].items()}
    ).T
    means = curves.groupby([group["unit"], group["target"]]).mean().dropna(axis=1)
    units = means.index.get_level_values("unit")
    inner = [alpha for alpha in means.columns.astype(float) if 0 < alpha < 1]
    lowest: dict[tuple[object, ...], float] = {}
    places: dict[object, float] = {}
    for unit in set(units) if inner else ():
        other_means = means[inner][units != unit] if len(set(units)) > 1 else means[inner]
        alpha = inner[int(other_means.mean().argmax())]
        places[unit] = alpha
        distances = means[alpha].to_dict()
        lowest |= {key: float(distances[key]) for key in means.index[units == unit]}
    index = pd.MultiIndex.from_tuples(lowest, names=["unit", "target"]) if lowest else means.index[:0]
    barriers = pd.Series(lowest.values(), index=index, dtype=float)
    contributions = [_terms_below_line(row, places) for row in list_rows(group)]
    return barriers, group.assign(added=pd.Series(contributions, group.index, dtype=object))


def _terms_below_line(row: Mapping[str, Any], places: Mapping[object, float]) -> dict[str, ExampleTerms]:
    """Return contributions of examples to the distance below the line between the ends, at the unit's α."""
    place = places.get(row["unit"])
    last_score = row["last"]
    if place is None or not last_score:
        return {}
    weights = {(0.0,): (1 - place) / last_score, (1.0,): place / last_score, (place,): -1 / last_score}
    terms: dict[str, ExampleTerms] = row["examples"].list_terms({"barrier": weights})
    return terms
