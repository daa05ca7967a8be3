"""What the first paper claims of the landscape between models, each claim with the rule it is judged by.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 3 to 5, Appendices B, C.
Only what the paper did counts: encoders as published or pretrained, paths between its three kinds of models.
Nothing is averaged over tasks, sources, encoders or ways of training: each has a check of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.correlation import spearman
from isogloss.metrics.crossed import LEVEL, POWER
from isogloss.reports.comparison import PLACE, best_split, boards
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Check, Claim, Found

HARDLY = 0.03
"""A score that "hardly moves" does so by less than three points."""

SMOOTH = 0.9
"""Rank correlation of α and score from which a rise is smooth, and R² from which it is linear."""

FAR_LARGER = 3.0
"""A standard deviation that is "far larger" is this many times the other."""

ABOUT_EQUAL = (0.8, 1.25)
"""Ratios of norms that count as about equal."""

ABOUT_55 = (45.0, 65.0)
"""Angles that count as about 55 degrees."""

FEWEST_SEEDS = 3

DIGITS = 6
"""α is compared after rounding, so that 0.1 + 0.2 meets 0.3."""

WHERE = ["corpus", "treebank", "language", "split", "metric"]

ON_PATH = [*PLACE, "encoder", "way", "start.way"]

PATH = "interpolation"

F_TEST = f"F-test over {FEWEST_SEEDS} seeds or more, root of the mean variance over targets"

OF_SEEDS = "t-test over seeds, each the mean of all targets; seeds that lack a target do not count"


def source_stays(m: Measurements) -> list[Check]:
    """Claim 1a: along Eq. 1 the source hardly moves."""
    return [_fall(about, own) for about, own in boards(m, _paths(m, role="source"), ON_PATH)]


def target_rises(m: Measurements) -> list[Check]:
    """Claim 1b: along Eq. 1 the target rises, and smoothly."""
    return _rises(m, _paths(m, role="target"))


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


def target_is_linear(m: Measurements) -> list[Check]:
    """Claim 1f: the target rises on a straight line."""
    return [
        _over_seeds(f"{about}: R² of a line", own, "straight", above=SMOOTH, scale=1, digits=2)
        for about, own in boards(m, _paths(m, role="target"), ON_PATH)
    ]


def variance_falls(m: Measurements) -> list[Check]:
    """Claim 1h: on the monolingual side of the path the target varies more than at its bilingual end."""
    found = []
    for about, own in boards(m, _paths(m, role="target"), ON_PATH):
        starts, ends = (
            own.pivot_table(index="seed", columns="target", values=at) for at in ("first", "last")
        )
        if starts.columns.size and ends.columns.size:
            found.append(_stds(f"{about}: std of targets at α = 0 / at α = 1", starts, ends, 1.0))
    return found


def encoder_is_the_path(m: Measurements) -> list[Check]:
    """Claim 1i: the encoder alone moves the target as the whole does, the head alone does not."""
    kinds = {part: _paths(m, role="target", part=part) for part in ("all", "encoder", "head")}
    if kinds["all"].empty or (kinds["encoder"].empty and kinds["head"].empty):
        return []
    found = []
    for about, own in boards(m, pd.concat(kinds.values()), ON_PATH):
        gain = own.pivot_table(index=["seed", "target"], columns="part", values="gain").reindex(
            columns=[*kinds]
        )
        near = {"above": -HARDLY, "below": HARDLY}
        found += [
            _check(f"{about}: gain of the whole − of the encoder", gain["all"] - gain["encoder"], **near),
            _check(f"{about}: gain of the head", gain["head"], **near),
        ]
    return found


def swapped(m: Measurements) -> list[Check]:
    """Claim 1j: along Eq. 2 source and target have changed places."""
    stays = boards(m, _paths(m, start="target-only", role="target"), ON_PATH)
    rises = _rises(m, _paths(m, start="target-only", role="source"))
    return [*(_fall(f"{about} targets", own) for about, own in stays), *rises]


def target_is_steeper(m: Measurements) -> list[Check]:
    """Claim 1k: over the plane the target's surface is steeper than the source's."""
    rows = pd.concat([_planes(m, "target"), _planes(m, "source")])
    found = []
    for about, own in boards(m, rows, ON_PATH):
        slope = own.pivot_table(index=["seed", "target"], columns="role", values="slope")
        slope = slope.reindex(columns=["target", "source"])
        found.append(_check(f"{about}: slope, target − source", slope["target"] - slope["source"], above=0))
    return found


def _published(rows: pd.DataFrame) -> "pd.Series[bool]":
    """Tell which rows are of the paper: encoders that nothing was added to, inputs as they are."""
    return (rows[["encoder.adjusted", "encoder.modules", "inputs"]] == "").all(axis=1)


def _paths(m: Measurements, *, role: str, start: str = "source-only", part: str = "all") -> pd.DataFrame:
    """Return one row a path from a single-language to the bilingual model: its facts and its shape."""
    rows = m.frame("interpolation")
    wanted = {"start.method": start, "method": "bilingual", "part": part, "role": role}
    rows = rows[_published(rows) & _are(rows, wanted) & rows["alpha"].round(DIGITS).between(0, 1)]
    return pd.DataFrame([
        {**own.iloc[0], **_shape(own.groupby(own["alpha"].round(DIGITS))["score"].mean())}
        for _, own in rows.groupby(["start", "end", *WHERE], dropna=False)
    ])  # fmt: skip


def _shape(scores: "pd.Series[float]") -> dict[str, float]:
    """Say what scores do along a path, by α in [0, 1]; nan where its points do not tell."""
    several, flat = len(scores) > 2, scores.max() == scores.min()
    line = 0.0 if flat else np.corrcoef(scores.index, scores)[0, 1] if several else math.nan
    rho = 0.0 if flat else spearman([*scores.index], [*scores]).rho if several else math.nan
    first, last = scores.get(0.0, math.nan), scores.get(1.0, math.nan)
    way = scores.index[-1] - scores.index[0]
    return {
        "points": len(scores),
        "highest": scores.max(),
        "fall": scores.max() - scores.min(),
        "first": first,
        "last": last,
        "gain": last - first,
        "rho": rho if several else math.nan,
        "straight": line**2 if several else math.nan,
        "slope": np.abs(np.diff(scores)).sum() / way if way else math.nan,
    }


def _planes(m: Measurements, role: str) -> pd.DataFrame:
    """Return one row a plane through the paper's three models: zero-shot score and slope."""
    rows = m.frame("plane")
    names = {"method": "bilingual", "first.method": "source-only", "second.method": "target-only"}
    rows = rows[_published(rows) & _are(rows, {**names, "part": "all", "role": role})]
    rows = rows.assign(**{"start.way": rows["first.way"] + rows["second.way"]})
    found = []
    for _, own in rows.groupby(["origin", "first", "second", *WHERE], dropna=False):
        grid = own.round(dict.fromkeys(("alpha_first", "alpha_second"), DIGITS)).pivot_table(
            index="alpha_first", columns="alpha_second", values="score"
        )
        found.append({**own.iloc[0], "points": grid.size, **_surface(grid)})
    return pd.DataFrame(found)


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


def _are(rows: pd.DataFrame, wanted: Mapping[str, str]) -> "pd.Series[bool]":
    return (rows[[*wanted]] == pd.Series(wanted)).all(axis=1)


def _check(about: str, values: "pd.Series[float]", **bounds: Any) -> Check:
    """Check a mean over seeds of values by seed and target; seeds that lack a target do not count."""
    table = values.dropna().unstack("target").dropna()
    means = tuple(float(one) for one in table.mean(axis=1))
    return Check(about=about if means else f"{about}: not measured", values=means, **bounds)


def _over_seeds(about: str, rows: pd.DataFrame, name: str, **bounds: Any) -> Check:
    return _check(about, rows.groupby(["seed", "target"])[name].mean(), **bounds)


def _fall(about: str, own: pd.DataFrame) -> Check:
    if not own["highest"].max() > 0:
        return Check(about=f"{about}: every score is 0, nothing was learned")
    return _over_seeds(f"{about}: fall", own, "fall", below=HARDLY)


def _rises(m: Measurements, rows: pd.DataFrame) -> list[Check]:
    found = []
    for about, own in boards(m, rows, ON_PATH):
        found.append(_over_seeds(f"{about}: ρ of α and score", own, "rho", above=SMOOTH, scale=1, digits=2))
        found.append(_over_seeds(f"{about}: gain", own, "gain", above=0))
    return found


def _deltas(name: str, words: str, bounds: tuple[float, float], digits: int, m: Measurements) -> list[Check]:
    rows = m.frame("deltas")
    names = {"method": "bilingual", "first.method": "source-only", "second.method": "target-only"}
    rows = rows[_published(rows) & _are(rows, {**names, "part": "all"})]
    by = ["corpus", "treebank", "task", "source", "encoder", "way", "first.way", "second.way"]
    near: dict[str, Any] = dict(zip(("above", "below"), bounds, strict=True))
    return [
        _over_seeds(f"{about}: {words}", own, name, **near, scale=1, digits=digits)
        for about, own in boards(m, rows, by)
    ]


def _flatter(m: Measurements, rows: pd.DataFrame) -> list[Check]:
    """Hold each encoder's slope against that of the next better one, where both know the same paths."""
    if rows.empty or rows["encoder"].nunique() < 2:
        return []
    found = []
    for about, own in boards(m, rows, [*PLACE, "way", "start.way", "points"]):
        first, slope = (
            own.pivot_table(index=["seed", "target"], columns="encoder", values=name).dropna()
            for name in ("first", "slope")
        )
        names = dict(zip(own["encoder"], own["encoder.label"], strict=True))
        order = first.mean().sort_values(kind="stable").index
        if len(order) < 2 or first.empty:
            found.append(Check(about=f"{about}: no paths that two encoders share: not measured"))
        for worse, better in pairwise(order if len(first) else ()):
            said = f"{about}: slope of {names[worse]} − of {names[better]}, which transfers better"
            found.append(_check(said, slope[worse] - slope[better], above=0))
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


def _claim(
    name: str, where: str, test: Callable[[Measurements], list[Check]], *needs: str, says: str, rule: str
) -> Claim:
    return Claim(id=name, paper=1, where=where, says=says, rule=rule, test=test, needs=needs or (PATH,))


# fmt: off
CLAIMS: Sequence[Claim] = (
    _claim("1a", "Fig. 2, Figs 6–9", source_stays,
           says="The source score hardly moves on the way from the source-only to the bilingual model.",
           rule="Highest minus lowest source score over α in [0, 1] of Eq. 1 of whole models, below .03; "
                f"{OF_SEEDS}."),
    _claim("1b", "Fig. 2, Figs 6–9", target_rises,
           says="The target score rises smoothly on the way from the source-only to the bilingual model.",
           rule="Spearman's ρ of α and target score over α in [0, 1] of Eq. 1 above .9 (a level score counts "
                f"as 0), and the gain from α = 0 to α = 1 above 0; {OF_SEEDS}."),
    _claim("1c", "Sections 1 and 3, Fig. 5 at α = 0", target_varies_more, "scores",
           says="Over seeds, the target score varies far more than the source score.",
           rule="Standard deviation of source-only models' scores over seeds, of targets over the source's, "
                f"above 3;  {F_TEST}. Near 100 % scores have little room to vary, which makes this ratio "
                "large."),
    _claim("1d", "Fig. 4, footnote 3", partial(_deltas, "ratio", "‖δ_S‖ / ‖δ_T‖", ABOUT_EQUAL, 2), "deltas",
           says="The source-only and the target-only model lie about equally far from the bilingual model.",
           rule=f"‖δ_S‖ / ‖δ_T‖ of whole models within .8 and 1.25; {OF_SEEDS}."),
    _claim("1e", "Section 5, Fig. 2", lambda m: _flatter(m, _paths(m, role="target")),
           says="The better encoder has the flatter target surface, on the path.",
           rule="Mean |dscore/dα| of the target over α in [0, 1] of Eq. 1: an encoder's minus that of the "
                f"next better one at α = 0 (zero-shot), above 0; {OF_SEEDS}. A high start leaves less to "
                "climb."),
    _claim("1f", "Abstract, Section 5, Fig. 2", target_is_linear,
           says="The target score rises linearly.",
           rule=f"R² of a straight line through the target score over α in [0, 1] of Eq. 1 above .9; "
                f"{OF_SEEDS}."),
    _claim("1g", "Fig. 4, footnote 3", partial(_deltas, "angle", "angle in degrees", ABOUT_55, 0), "deltas",
           says="The ways to both single-language models span about 55 degrees.",
           rule=f"Angle of δ_S and δ_T of whole models within 45 and 65 degrees; {OF_SEEDS}."),
    _claim("1h", "Fig. 5", variance_falls,
           says="The target score varies more over seeds at the source-only than at the bilingual model.",
           rule="Standard deviation of the target score over seeds at α = 0 of Eq. 1 over that at α = 1, "
                f"above 1; {F_TEST}."),
    _claim("1i", "Footnote 2", encoder_is_the_path,
           says="The encoder alone moves the target as the whole model does, the head alone hardly.",
           rule="Gain of the target from α = 0 to α = 1 of Eq. 1: whole minus encoder, and head, both within "
                f".03 of 0; {OF_SEEDS}."),
    _claim("1j", "Eq. 2, Fig. 2", swapped,
           says="From the target-only model on, the source score rises and the target score hardly moves.",
           rule=f"As 1a and 1b along Eq. 2, with source and target swapped; {OF_SEEDS}."),
    _claim("1k", "Section 5, Fig. 3", target_is_steeper, "plane",
           says="The target's surface is steeper than the source's.",
           rule="Mean |dscore/dα| over the grid of Eq. 3 within [0, 1]: target minus source, above 0; "
                f"{OF_SEEDS}."),
    _claim("1l", "Section 5, Figs 3 and 10", lambda m: _flatter(m, _planes(m, "target")), "plane",
           says="The better encoder has the flatter target surface, in the plane.",
           rule=f"As 1e, with the mean |dscore/dα| over the grid of Eq. 3 within [0, 1]; {OF_SEEDS}."),
)
# fmt: on
