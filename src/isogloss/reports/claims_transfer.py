"""What the first paper claims of the landscape between models, each claim with the rule it is judged by.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 3 to 5, Appendices B, C.
Only what the paper did counts: encoders as published or pretrained, paths between its three kinds of models.
Nothing is averaged over tasks, sources, encoders or ways of training: each has a check of its own. A seed is
worth the mean of all targets; seeds that lack one do not count.
"""

import math
from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.metrics.estimates import LEVEL, POWER
from isogloss.reports.comparison import PLACE, best_split, boards
from isogloss.reports.measurements import Measurements, once
from isogloss.reports.verdicts import HELPS, Bounds, Check, Found, Test, check_of, not_measured

HARDLY = 0.03
"""A score that "hardly moves" does so by less than three points."""

SMOOTH = 0.9
"""Rank correlation of α and score from which a rise is smooth, and R² from which it is linear."""

FAR_LARGER = 3.0
"""A standard deviation that is "far larger" is this many times the other."""

FEWEST_SEEDS = 3

DIGITS = 6
"""α is compared after rounding, so that 0.1 + 0.2 meets 0.3."""

WHERE = ["corpus", "treebank", "language", "split", "metric"]

ON_PATH = [*PLACE, "encoder", "way", "start.way"]

NOTHING: Mapping[str, str] = {}
PLAIN: Bounds = {"scale": 1, "digits": 2}
SOURCE, TARGET = {"role": "source"}, {"role": "target"}
WHOLE = {"part": "all"}
EQ_1, EQ_2 = ({"start.method": start, **WHOLE} for start in ("source-only", "target-only"))

Part = Callable[[str, pd.DataFrame], list[Check]]
"""One thing a claim says of what was trained in one way: it is given words for this, and the rows."""


def target_varies_more(m: Measurements) -> list[Check]:
    """Claim 1c: over seeds of fine-tuning on one encoder the target varies far more than the source."""
    rows = m.frame("scores")
    rows = rows[_published(rows) & rows["main"].eq(True) & (rows["method"] == "source-only")]
    found = []
    several = rows.groupby("encoder")["encoder.run"].nunique() > 1
    for about, own in boards(m, best_split(rows), [*PLACE, "encoder", "way", "encoder.run"]):
        first = own.iloc[0]
        which = f" pretraining seed {first['encoder.seed']}" if several[first["encoder"]] else ""
        table = own.pivot_table(index="seed", columns="language", values="score")
        sources = [code for code in table if code in own["source"].iloc[0].split("+")]
        targets = table.drop(columns=sources).dropna(axis="columns")
        if targets.columns.size and sources:
            words = f"{about}{which}: std of targets / std of the source"
            found.append(_stds(words, targets, table[sources], FAR_LARGER))
    return found


def encoder_is_the_path(m: Measurements) -> list[Check]:
    """Claim 1i: the encoder alone moves the target as the whole does, the head alone does not."""
    rows = _of(_paths(m), {"start.method": "source-only", **TARGET})
    near = {"above": -HARDLY, "below": HARDLY}
    less = _mean("gain of the whole − of the encoder", "gain", near, WHOLE, {"part": "encoder"})
    head = _mean("gain of the head", "gain", near, {"part": "head"})
    return _each(m, rows, less, head) if {"all"} < {*rows["part"]} else []


def swapped(m: Measurements) -> list[Check]:
    """Claim 1j: along Eq. 2 source and target have changed places."""
    stays, rises = (_of(_paths(m), EQ_2 | role) for role in (TARGET, SOURCE))
    return [*_each(m, stays, lambda about, own: _fall(f"{about} targets", own)), *_each(m, rises, *RISES)]


def _published(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Tell which rows are of the paper: encoders that nothing was added to, inputs as they are."""
    return (rows[["encoder.adjusted", "encoder.modules", "inputs"]] == "").all(axis=1)


def _of(rows: pd.DataFrame, wanted: Mapping[str, str]) -> pd.DataFrame:
    for name, value in wanted.items():
        rows = rows[rows[name] == value]
    return rows


@once
def _paths(m: Measurements) -> pd.DataFrame:
    """Return one row a path to the bilingual model: its facts and its shape over α in [0, 1]."""
    rows = m.frame("interpolation")
    rows = rows[_published(rows) & (rows["method"] == "bilingual")]
    rows = rows.assign(alpha=rows["alpha"].astype(float).round(DIGITS))
    paths = rows[rows["alpha"].between(0, 1)].groupby(["start", "end", "part", "role", *WHERE], dropna=False)
    found = [{**own.iloc[0], **_shape(own.groupby("alpha")["score"].mean())} for _, own in paths]
    return pd.DataFrame(found) if found else rows


def _shape(scores: "pd.Series[float]") -> dict[str, float]:
    """Say what scores do along a path, by α in [0, 1]; nan where its points do not tell."""
    line = rho = 0.0 if len(scores) > 2 else math.nan
    if len(scores) > 2 and scores.max() > scores.min():
        line = np.corrcoef(scores.index, scores)[0, 1]
        rho = spearman([*scores.index], [*scores]).rho
    first, last = scores.get(0.0, math.nan), scores.get(1.0, math.nan)
    way = scores.index[-1] - scores.index[0]
    return {
        "points": len(scores),
        "highest": scores.max(),
        "fall": scores.max() - scores.min(),
        "first": first,
        "last": last,
        "gain": last - first,
        "rho": rho,
        "straight": line**2,
        "slope": np.abs(np.diff(scores)).sum() / way if way else math.nan,
    }


def _triples(m: Measurements, frame: str) -> pd.DataFrame:
    """Keep what was measured of the paper's three whole models."""
    names = {"method": "bilingual", "first.method": "source-only", "second.method": "target-only"}
    rows = m.frame(frame)
    rows = _of(rows[_published(rows)], names | WHOLE)
    return rows.assign(**{"start.way": rows["first.way"] + rows["second.way"]})


def _deltas(m: Measurements) -> pd.DataFrame:
    return _triples(m, "deltas").assign(split="", metric="")


@once
def _planes(m: Measurements) -> pd.DataFrame:
    """Return one row a plane: zero-shot score and slope."""
    rows, found = _triples(m, "plane"), []
    for _, own in rows.groupby(["origin", "first", "second", "role", *WHERE], dropna=False):
        grid = own.round(dict.fromkeys(("alpha_first", "alpha_second"), DIGITS)).pivot_table(
            index="alpha_first", columns="alpha_second", values="score"
        )
        found.append({**own.iloc[0], "points": grid.size, **_surface(grid)})
    return pd.DataFrame(found) if found else rows


def _surface(grid: pd.DataFrame) -> dict[str, float]:
    """Return the score at the source-only model, and the mean |dscore/dα| between neighbours in [0, 1]²."""
    inner = grid.loc[0:1, 0:1]
    down = np.diff(inner, axis=0) / np.diff(inner.index)[:, None]
    across = np.diff(inner, axis=1) / np.diff(inner.columns)[None, :]
    slopes = np.abs([*down.ravel(), *across.ravel()])
    known = 1.0 in grid.index and 0.0 in grid.columns
    return {
        "slope": float(slopes.mean()) if len(slopes) else math.nan,
        "first": float(grid.loc[1.0, 0.0]) if known else math.nan,
    }


def _each(m: Measurements, rows: pd.DataFrame, *parts: Part) -> list[Check]:
    """Check the parts of a claim on each task, source, encoder and way of training by itself."""
    return [one for about, own in boards(m, rows, ON_PATH) for part in parts for one in part(about, own)]


def _mean(
    words: str,
    name: str,
    bounds: Bounds,
    of: Mapping[str, str] = NOTHING,
    minus: Mapping[str, str] = NOTHING,
) -> Part:
    """Make the check of a column's mean over seeds: of some rows, minus that of others if they are named."""

    def check(about: str, own: pd.DataFrame) -> list[Check]:
        values, less = (_of(own, of).groupby(["seed", "target"])[name].mean() for of in (of, minus))
        return _check(f"{about}: {words}", values - less if minus else values, bounds)

    return check


def _check(about: str, values: "pd.Series[float]", bounds: Bounds) -> list[Check]:
    """Check the mean over seeds of values by seed and target."""
    means = values.dropna().unstack("target").dropna().mean(axis=1)
    return [check_of(means, about, {"scale": 100, "digits": 1, **bounds})]


def _fall(about: str, own: pd.DataFrame) -> list[Check]:
    if not own["highest"].max() > 0:
        return [Check(about=f"{about}: every score is 0, nothing was learned")]
    return _mean("fall", "fall", {"below": HARDLY})(about, own)


def _variances(about: str, own: pd.DataFrame) -> list[Check]:
    starts, ends = (own.pivot_table(index="seed", columns="target", values=at) for at in ("first", "last"))
    known = starts.columns.size and ends.columns.size
    return [_stds(f"{about}: std of targets at α = 0 / at α = 1", starts, ends, 1.0)] if known else []


def _flatter(m: Measurements, rows: pd.DataFrame) -> list[Check]:
    """Hold each encoder's slope against that of the next better one, where both know the same paths."""
    if rows["encoder"].nunique() < 2:
        return []
    found = []
    for about, own in boards(m, rows, [*PLACE, "way", "start.way", "points"]):
        first, slope = (
            own.pivot_table(index=["seed", "target"], columns="encoder", values=name).dropna()
            for name in ("first", "slope")
        )
        names = dict(zip(own["encoder"], own["encoder.label"], strict=True))
        order = first.mean().sort_values(kind="stable").index if len(first) else []
        for worse, better in pairwise(order):
            said = f"{about}: slope of {names[worse]} − of {names[better]}, which transfers better"
            found += _check(said, slope[worse] - slope[better], HELPS)
        found += [not_measured(f"{about}: no paths that two encoders share")] if len(order) < 2 else []
    return found


def _stds(about: str, above: pd.DataFrame, below: pd.DataFrame, least: float) -> Check:
    """Hold the standard deviation over seeds of some columns against that of others, by an F-test.

    Variances are averaged over columns [seed column]. Columns share their models, so that many bring no more
    freedom than one, and the degrees of freedom are those of one: the test is on the safe side.
    """
    from scipy.special import fdtr, fdtri

    if len(seeds := above.dropna().index.intersection(below.dropna().index)) < FEWEST_SEEDS:
        return Check(about=f"{about}: fewer than {FEWEST_SEEDS} seeds, not measured")
    large, small = (float(one.loc[seeds].var().mean()) for one in (above, below))
    stds = f"{100 * math.sqrt(large):.1f} / {100 * math.sqrt(small):.1f}"
    if small == 0:
        return Check(about=f"{about} ({stds}): every seed scores the same, there is no ratio, not tested")
    n, ratio = len(seeds) - 1, large / small
    low, high, usual = (float(fdtri(n, n, share)) for share in (LEVEL / 2, 1 - LEVEL / 2, 1 - POWER))

    def p_value(bound: float) -> float:
        share = float(fdtr(n, n, ratio / bound**2)) if bound else 1.0
        return 2 * min(share, 1 - share)

    found = Found(
        mean=math.sqrt(ratio),
        low=math.sqrt(ratio / high),
        high=math.sqrt(ratio / low),
        test=p_value,
        smallest_seen=least * math.sqrt(high / usual),
    )
    words = f"{about} ({stds}, F-test with {n} and {n} degrees of freedom)"
    return Check(about=words, values=(ratio,) * len(seeds), found=found, above=least, scale=1)


RISES = (
    _mean("ρ of α and score", "rho", {"above": SMOOTH, **PLAIN}),
    _mean("gain", "gain", HELPS),
)

STRAIGHT = _mean("R² of a line", "straight", {"above": SMOOTH, **PLAIN})

RATIO = _mean("‖δ_S‖ / ‖δ_T‖", "ratio", {"above": 0.8, "below": 1.25, **PLAIN})
"""Norms that are about equal."""

ANGLE = _mean("angle in degrees", "angle", {"above": 45, "below": 65, "scale": 1, "digits": 0})
"""About 55 degrees."""

STEEPER = _mean("slope, target − source", "slope", HELPS, TARGET, SOURCE)

TESTS: Mapping[str, Test] = {
    "1a": lambda m: _each(m, _of(_paths(m), EQ_1 | SOURCE), _fall),
    "1b": lambda m: _each(m, _of(_paths(m), EQ_1 | TARGET), *RISES),
    "1c": target_varies_more,
    "1d": lambda m: _each(m, _deltas(m), RATIO),
    "1e": lambda m: _flatter(m, _of(_paths(m), EQ_1 | TARGET)),
    "1f": lambda m: _each(m, _of(_paths(m), EQ_1 | TARGET), STRAIGHT),
    "1g": lambda m: _each(m, _deltas(m), ANGLE),
    "1h": lambda m: _each(m, _of(_paths(m), EQ_1 | TARGET), _variances),
    "1i": encoder_is_the_path,
    "1j": swapped,
    "1k": lambda m: _each(m, _planes(m), STEEPER),
    "1l": lambda m: _flatter(m, _of(_planes(m), TARGET)),
}
