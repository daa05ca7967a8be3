"""The five claims of the first paper, each tested on the rows at hand.

Paper: "Zero-shot Cross-lingual Transfer is Under-specified Optimization", Sections 3 to 5, Appendices B, C.
Every function is pure: typed rows in, a verdict with its numbers out. Nothing measured is "not tested".
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from isogloss.metrics.correlation import spearman
from isogloss.metrics.spread import spread
from isogloss.oldreports.paths import DIGITS, Curve, curve_of, grouped
from isogloss.oldreports.rows import Delta, PathPoint, Score, SeedSpread
from isogloss.oldreports.seeds import seed_spreads

Verdict = Literal["supported", "refuted", "not tested"]

LARGEST_FALL = 0.03
"""(a) The source score "hardly moves" when it falls by at most three points."""

SMOOTH = 0.9
"""(b) The target score "rises smoothly" from this mean rank correlation on."""

FAR_LARGER = 3.0
"""(c) "Far larger": at least this many times the standard deviation of the source."""

ABOUT_EQUAL = (0.8, 1.25)
"""(d) The range of norm ratios that counts as about equal."""

PAPER_ANGLE = 55
"""(d) Degrees between the two deltas in the paper (Appendix B)."""

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of the paper, the number found here, what follows, and how it was computed."""

    letter: str
    sentence: str
    number: str
    verdict: Verdict
    how: str


@dataclass(frozen=True, slots=True)
class Path:
    """One role's scores from the single-language model (alpha 0) to the bilingual one, of one seed."""

    curve: Curve
    seed: int
    alphas: tuple[float, ...]
    scores: tuple[float, ...]


def claims(
    points: Sequence[PathPoint],
    scores: Sequence[Score],
    variances: Sequence[SeedSpread],
    deltas: Sequence[Delta],
) -> tuple[Claim, ...]:
    """Test all five claims."""
    return (
        source_stays(points),
        target_rises(points),
        target_varies_more(scores, variances),
        norms_equal(deltas),
        better_is_flatter(points),
    )


def source_stays(points: Sequence[PathPoint]) -> Claim:
    """Claim (a): the source score hardly moves along Eq. 1."""
    sentence = "The source score hardly moves on the way from the source-only to the bilingual model."
    how = (
        "For each pair and seed, the highest minus the lowest source score over α in [0, 1] of Eq. 1 "
        "(encoder and head together); the largest of these falls; supported up to 3 points."
    )
    paths = _paths(points, "source")
    if not paths:
        return Claim("a", sentence, "no path from a source-only model", "not tested", how)
    if not any(max(path.scores) > 0 for path in paths):
        return Claim("a", sentence, "every source score is 0: nothing was learned", "not tested", how)
    falls = source_falls(points)
    largest = max(falls)
    where = paths[falls.index(largest)]
    number = (
        f"largest fall {_points(largest)} ({where.curve.source}–{where.curve.target}, seed {where.seed}), "
        f"mean {_points(spread(falls).mean)}, {_count(len(paths), 'path')}"
    )
    return Claim("a", sentence, number, _verdict(largest <= LARGEST_FALL + ROUNDING), how)


def target_rises(points: Sequence[PathPoint]) -> Claim:
    """Claim (b): the target score rises smoothly from the source-only to the bilingual model."""
    sentence = "The target score rises smoothly on the way from the source-only to the bilingual model."
    how = (
        "Spearman's ρ of α and the target score over α in [0, 1] of Eq. 1 for each pair and seed (a constant "
        "score counts as 0); gain is the score at the end minus the score at the start; R² of a straight "
        "line. Supported when the mean ρ is at least 0.9 and the mean gain is above 0."
    )
    paths = [path for path in _paths(points, "target") if len(path.alphas) > 2]
    if not paths:
        return Claim("b", sentence, "no path from a source-only model", "not tested", how)
    rhos = [_zero_if_nan(spearman(path.alphas, path.scores).rho) for path in paths]
    gain = spread(target_gains(points)).mean
    straight = spread([_straightness(path) for path in paths]).mean
    mean = spread(rhos).mean
    number = (
        f"ρ {mean:.2f} on average (lowest {min(rhos):.2f}), gain {_points(gain, sign=True)}, "
        f"R² {straight:.2f}, {_count(len(paths), 'path')}"
    )
    return Claim("b", sentence, number, _verdict(mean >= SMOOTH - ROUNDING and gain > 0), how)


def target_varies_more(scores: Sequence[Score], variances: Sequence[SeedSpread]) -> Claim:
    """Claim (c): over seeds, the target varies far more than the source."""
    sentence = "Over seeds, the target score varies far more than the source score."
    how = (
        "Standard deviation over seeds of the source-only model's score, for each language; mean over the "
        "targets divided by mean over the sources; supported from a ratio of 3 on. Needs two seeds or more."
    )
    rows = [row for row in seed_spreads(scores, variances) if row.method == "source-only" and row.seeds > 1]
    target, source = _stds(rows, "target"), _stds(rows, "source")
    if not target or not source:
        return Claim("c", sentence, "fewer than two seeds of a source-only model", "not tested", how)
    above, below = spread(target).mean, spread(source).mean
    fewest, most = min(row.seeds for row in rows), max(row.seeds for row in rows)
    seeds = f"n = {fewest} seeds" if fewest == most else f"n = {fewest} to {most} seeds"
    stds = f"std {_points(above)} target, {_points(below)} source, {seeds}, {rows[0].split}"
    if below < ROUNDING:
        number = f"no ratio: every seed has the same source score (is it saturated?); {stds}"
        return Claim("c", sentence, number, "not tested", how)
    return Claim(
        "c", sentence, f"ratio {above / below:.1f} ({stds})", _verdict(above / below >= FAR_LARGER), how
    )


def norms_equal(deltas: Sequence[Delta]) -> Claim:
    """Claim (d): both single-language models are about equally far from the bilingual one."""
    sentence = "The source-only and the target-only model lie about equally far from the bilingual model."
    how = (
        "Mean of ‖δ_S‖ / ‖δ_T‖ over pairs and seeds, δ_S = θ_S − θ_ST and δ_T = θ_T − θ_ST of encoder "
        "and head together; supported within 0.8 to 1.25."
    )
    rows = [row for row in deltas if row.part == "all"]
    if not rows:
        return Claim("d", sentence, "no deltas of whole models", "not tested", how)
    ratio, angle = spread([row.ratio for row in rows]), spread([row.angle for row in rows])
    number = (
        f"mean ratio {ratio.mean:.2f} (from {min(row.ratio for row in rows):.2f} "
        f"to {max(row.ratio for row in rows):.2f}), "
        f"mean angle {angle.mean:.0f}° (paper: about {PAPER_ANGLE}°), n = {len(rows)}"
    )
    low, high = ABOUT_EQUAL
    return Claim("d", sentence, number, _verdict(low <= ratio.mean <= high), how)


def better_is_flatter(points: Sequence[PathPoint]) -> Claim:
    """Claim (e): the encoder that transfers better has the flatter target surface."""
    sentence = "The better encoder has the flatter target surface."
    how = (
        "Flatness: mean |dscore/dα| of the target over α in [0, 1] of Eq. 1; better: higher target score at "
        "α = 0 (zero-shot). Means (± standard deviation) over the pairs, tasks and seeds all encoders share. "
        "Supported when every better encoder is flatter, however little. The two are not independent: a high "
        "start leaves less to climb."
    )
    paths = [path for path in _paths(points, "target") if len(path.alphas) > 1]
    by_encoder = grouped(paths, lambda path: path.curve.encoder)
    if len(by_encoder) < 2:
        return Claim("e", sentence, f"{_count(len(by_encoder), 'encoder')}, needs two", "not tested", how)
    shared = set.intersection(*({_about(path) for path in group} for group in by_encoder.values()))
    if not shared:
        return Claim("e", sentence, "the encoders share no pair and task", "not tested", how)
    found = []
    for encoder, group in by_encoder.items():
        alike = [path for path in group if _about(path) in shared]
        start, slope = spread([path.scores[0] for path in alike]), spread([_slope(path) for path in alike])
        tail = f" ± {slope.std:.3f}" if slope.n > 1 else ""
        text = f"{encoder}: zero-shot {100 * start.mean:.1f}, slope {slope.mean:.3f}{tail}"
        found.append((start.mean, slope.mean, text))
    number = "; ".join(text for _, _, text in sorted(found))
    flatter = all(worse[1] > better[1] for worse, better in pairwise(sorted(found)))
    return Claim("e", sentence, number, _verdict(flatter), how)


def source_falls(points: Sequence[PathPoint]) -> list[float]:
    """Return, for each path of Eq. 1 between the two models, the highest minus the lowest source score."""
    return [max(path.scores) - min(path.scores) for path in _paths(points, "source")]


def target_gains(points: Sequence[PathPoint]) -> list[float]:
    """Return, for each path of Eq. 1 with three points or more, the last minus the first target score."""
    return [path.scores[-1] - path.scores[0] for path in _paths(points, "target") if len(path.alphas) > 2]


def _paths(points: Iterable[PathPoint], role: str) -> list[Path]:
    """Return each seed's path of Eq. 1 over alpha in [0, 1], for whole models."""
    wanted = [
        point
        for point in points
        if (point.start, point.part, point.role) == ("source-only", "all", role)
        and 0 <= round(point.alpha, DIGITS) <= 1
    ]
    found = []
    for (curve, seed), members in grouped(wanted, lambda point: (curve_of(point), point.seed)).items():
        ordered = sorted(members, key=lambda point: point.alpha)
        alphas, scores = tuple(p.alpha for p in ordered), tuple(p.score for p in ordered)
        found.append(Path(curve, seed, alphas, scores))
    return found


def _about(path: Path) -> tuple[str, ...]:
    about = path.curve
    return about.corpus, about.task, about.source, about.target, about.language, about.split, about.metric


def _slope(path: Path) -> float:
    """Return the mean of |dscore/dalpha|: all ups and downs, divided by the way."""
    way = path.alphas[-1] - path.alphas[0]
    return float(np.abs(np.diff(path.scores)).sum()) / way if way else 0.0


def _straightness(path: Path) -> float:
    """Return R² of a straight line through the path; a constant score has none, counted as 0."""
    together = np.corrcoef(path.alphas, path.scores)[0, 1] if max(path.scores) > min(path.scores) else 0.0
    return float(together) ** 2


def _stds(rows: Iterable[SeedSpread], role: str) -> list[float]:
    return [row.std for row in rows if row.role == role]


def _zero_if_nan(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _verdict(holds: bool) -> Verdict:
    return "supported" if holds else "refuted"


def _points(value: float, *, sign: bool = False) -> str:
    return f"{100 * value:{'+' if sign else ''}.1f} points"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
