"""Test claims for false verdicts: frames with an effect that is absent, or present, by design.

If its effect is absent, a claim is exactly at the bound of its rule, or at zero. Scores have the noise of
examples: all seeds answer the same examples, and at each point of a path some answers are redrawn. `python
benchmarks/court.py` prints levels and powers of some hundred draws.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from isogloss.data.result_files import StoredPredictions, measure_at
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.reports.verdicts import Verdict, judge
from made_up_rows import Row, delta, make_measurements, path, plane, score

EXAMPLES = 200
"""Examples of a development set."""

REDRAWN = 0.1
"""Share of examples that are redrawn at a point of a path."""

DIFFICULTY = np.random.default_rng(0).permutation(np.arange(EXAMPLES) + 0.5) / EXAMPLES
"""Examples from the easiest, 0, to the hardest, 1: a model is right on those below its accuracy."""

ALPHAS = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0)

Rng = np.random.Generator
Frames = Mapping[str, list[Row]]


@dataclass(frozen=True)
class Trial:
    """A claim with frames in which its effect is absent or present, drawn for a number of seeds."""

    claim: str
    absent: Callable[[Rng, int], Frames]
    present: Callable[[Rng, int], Frames]
    seeds: int = 6
    """Number of seeds with which at least half of the draws detect the effect."""


def verdict(claim: str, frames: Frames) -> Verdict:
    """Judge one claim."""
    measurements = make_measurements(answers_of(frames), **frames)
    (outcome,) = judge([example for example in CLAIMS if example.id == claim], measurements)
    return outcome.verdict


ANSWERS = "answers"
"""Column of the rows of paths and planes: which examples were right at a point."""

IDS = tuple(str(index) for index in range(EXAMPLES))

COORDINATES = {"interpolation": ("alpha",), "plane": ("alpha_first", "alpha_second")}


def answers_of(frames: Frames) -> dict[str, dict[str, StoredPredictions]]:
    """Return the records that paths and planes keep of their examples."""
    stored_value: dict[str, dict[str, StoredPredictions]] = {}
    for name, coordinates in COORDINATES.items():
        for row in frames.get(name, ()):
            if ANSWERS in row:
                key = measure_at(row["metric"], [row[coordinate] for coordinate in coordinates])
                run_value = stored_value.setdefault(row["run"], {})
                right = row[ANSWERS]
                examples = run_value.setdefault(row["language"], StoredPredictions(ids=IDS[: len(right)]))
                examples.measures[key] = (right, np.ones_like(right))
    return stored_value


def answer_along(rng: Rng, curve: Iterable[float]) -> list[npt.NDArray[np.float64]]:
    """Return the right examples along a curve of true scores. Some are redrawn at each point."""
    points = []
    for accuracy in curve:
        again = rng.random(EXAMPLES) < REDRAWN
        points.append((np.where(again, rng.random(EXAMPLES), DIFFICULTY) < accuracy).astype(float))
    return points


def paths(
    rng: Rng, seeds: int, curve: Callable[[float], float], spread: float = 0.01, **facts: object
) -> list[Row]:
    """Return a path for each seed along a curve, moved up or down from seed to seed."""
    rows: list[Row] = []
    for seed in range(seeds):
        moved_samples = rng.normal(0, spread)
        rows += path_of(
            answer_along(rng, (curve(alpha) + moved_samples for alpha in ALPHAS)), seed=seed, **facts
        )
    return rows


def path_of(answers: list[npt.NDArray[np.float64]], **facts: Any) -> list[Row]:
    """Return the path of a run whose models answer so at each α."""
    scores = {alpha: float(right.mean()) for alpha, right in zip(ALPHAS, answers, strict=True)}
    return with_answers(path(scores, **facts), answers)


def with_answers(points: list[Row], answers: Iterable[npt.NDArray[np.float64]]) -> list[Row]:
    """Return points of a path or plane with their answers, as in a separate run."""
    texts = ("encoder", "role", "part", "seed", "start", "first")
    run = " ".join(str(points[0].get(name)) for name in texts)
    return [{**row, "run": run, ANSWERS: right} for row, right in zip(points, answers, strict=True)]


def planes(rng: Rng, seeds: int, slope: float, start: float, **facts: object) -> list[Row]:
    """Return a plane for each seed that rises from the source-only model at (1, 0) to the bilingual one."""
    grid = (0.0, 0.25, 0.5, 0.75, 1.0)
    rows = []
    for seed in range(seeds):
        points = [(first_part, second) for first_part in grid for second in grid]
        true_value = (min(0.99, start + slope * (1 - first_point)) for first_point, _ in points)
        answers = answer_along(rng, true_value)
        scores = {point: float(right.mean()) for point, right in zip(points, answers, strict=True)}
        result = plane(
            lambda first_part, second, scores=scores: scores[first_part, second],
            grid=grid,
            seed=seed,
            **facts,
        )
        rows += with_answers(result, answers)
    return rows


def spreads(rng: Rng, seeds: int, source: float, target: float) -> Frames:
    """Return scores of source-only models that vary over seeds by two standard deviations."""
    rows = []
    for seed in range(seeds):
        rows.append(score(0.8 + rng.normal(0, source), language="qaa", seed=seed))
        rows.append(score(0.5 + rng.normal(0, target), language="qad", seed=seed))
    return {"scores": rows}


def ends(rng: Rng, seeds: int, first_item: float, last_value: float) -> Frames:
    """Return paths whose ends vary over seeds by two standard deviations."""
    rows = []
    for seed in range(seeds):
        start = 0.4 + rng.normal(0, first_item)
        end = 0.7 + rng.normal(0, last_value)
        rows += path({alpha: start + alpha * (end - start) for alpha in ALPHAS}, seed=seed)
    return {"interpolation": rows}


def deltas(rng: Rng, seeds: int, ratio: float, angle: float) -> Frames:
    """Return ways to the bilingual model with a mean ratio and angle."""
    return {
        "deltas": [
            delta(ratio + rng.normal(0, 0.02), angle + rng.normal(0, 1), seed=seed) for seed in range(seeds)
        ]
    }


def parts(rng: Rng, seeds: int, encoder: float, head: float) -> Frames:
    """Return the gains of the whole model, the encoder and the head, whose paths begin at one model."""
    gains = {"all": 0.2, "encoder": encoder, "head": head}
    rows = []
    for seed in range(seeds):
        start = 0.5 + rng.normal(0, 0.01)
        first_points = answer_along(rng, [start])
        for part, gain in gains.items():
            other_points = answer_along(rng, (start + gain * alpha for alpha in ALPHAS[1:]))
            rows += path_of([*first_points, *other_points], seed=seed, part=part)
    return {"interpolation": rows}


def encoders(rng: Rng, seeds: int, better: float, worse: float, make: Callable[..., list[Row]]) -> list[Row]:
    """Return the target's slope on two encoders, with better transfer in the first."""
    options = {"source": "qaa"}
    rows = []
    for name, start, slope in (("better", 0.6, better), ("worse", 0.45, worse)):
        if make is paths:
            curve = lambda position, start=start, slope=slope: start + slope * position  # noqa: E731
            rows += paths(rng, seeds, curve, about={**options, "encoder": name})
        else:
            rows += planes(rng, seeds, slope, start, encoder=name)
    return rows


def make_paths(rng: Rng, seeds: int, drop: float, rise: float, **facts: object) -> Frames:
    """Return paths of Eq. 2: the target drops by a share of the last score, the source rises."""
    last_value = 0.8
    stays = paths(
        rng,
        seeds,
        lambda position: last_value * (1 + drop * (1 - position)),
        0.005,
        start="target-only",
        **facts,
    )
    rises = paths(
        rng, seeds, lambda position: 0.5 + rise * position, role="source", start="target-only", **facts
    )
    return {"interpolation": stays + rises}


def slopes(rng: Rng, seeds: int, target: float) -> Frames:
    """Return paths and planes of a flat source and a target that rises."""
    flat = (0.97, 0.0)
    rising = (0.6, target)
    rows = {"interpolation": [], "plane": []}
    for role, (start, slope) in (("source", flat), ("target", rising)):
        rows["interpolation"] += paths(
            rng, seeds, lambda position, start=start, slope=slope: start + slope * position, 0.003, role=role
        )
        rows["plane"] += planes(rng, seeds, slope, start, role=role)
    return rows


TRIALS = (
    Trial(
        "1a",
        lambda rng, n: {
            "interpolation": paths(
                rng, n, lambda position: 0.9 * (1 + 0.03 * (1 - position)), 0.005, role="source"
            )
        },
        lambda rng, n: {"interpolation": paths(rng, n, lambda _: 0.9, 0.005, role="source")},
    ),
    Trial(
        "1b",
        lambda rng, n: {"interpolation": paths(rng, n, lambda _: 0.7)},
        lambda rng, n: {"interpolation": paths(rng, n, lambda position: 0.5 + 0.3 * position)},
    ),
    Trial("1c", lambda rng, n: spreads(rng, n, 0.01, 0.03), lambda rng, n: spreads(rng, n, 0.001, 0.05)),
    Trial("1d", lambda rng, n: deltas(rng, n, 1.25, 55), lambda rng, n: deltas(rng, n, 1.0, 55)),
    Trial(
        "1e",
        lambda rng, n: {"interpolation": encoders(rng, n, 0.2, 0.2, paths)},
        lambda rng, n: {"interpolation": encoders(rng, n, 0.1, 0.4, paths)},
    ),
    Trial(
        "1f",
        lambda rng, n: {"interpolation": paths(rng, n, lambda position: 0.5 + 0.3 * (position > 0.5))},
        lambda rng, n: {"interpolation": paths(rng, n, lambda position: 0.5 + 0.3 * position)},
    ),
    Trial("1g", lambda rng, n: deltas(rng, n, 1, 65), lambda rng, n: deltas(rng, n, 1, 55)),
    Trial("1h", lambda rng, n: ends(rng, n, 0.02, 0.02), lambda rng, n: ends(rng, n, 0.05, 0.005), seeds=9),
    Trial("1i", lambda rng, n: parts(rng, n, 0.17, 0.03), lambda rng, n: parts(rng, n, 0.2, 0.0), seeds=10),
    Trial("1j", lambda rng, n: make_paths(rng, n, 0.03, 0.0), lambda rng, n: make_paths(rng, n, 0.0, 0.3)),
    Trial("1k", lambda rng, n: slopes(rng, n, 0.0), lambda rng, n: slopes(rng, n, 0.3)),
    Trial(
        "1l",
        lambda rng, n: {"plane": encoders(rng, n, 0.2, 0.2, planes)},
        lambda rng, n: {"plane": encoders(rng, n, 0.05, 0.4, planes)},
    ),
)


@dataclass(frozen=True)
class Tally:
    """Shares of draws: supported or contradicted (or mixed) where that is wrong, and rightly supported.

    Where its effect is absent a claim is at the bound of its range, which contradicts it no more than it
    supports it.
    """

    supported_absent: float
    contradicted_absent: float
    contradicted_present: float
    power: float


BLOCK = 20
"""Draws of one generator, so that a longer trial begins with a shorter one."""


def generators(trial: Trial, seeds: int, draws: int) -> Iterator[Rng]:
    """Yield a generator for each pair of draws, one with the effect and one without."""
    for block in range(0, draws, BLOCK):
        rng = np.random.default_rng([int(trial.claim[0]), ord(trial.claim[1]), seeds, block])
        yield from repeat(rng, min(BLOCK, draws - block))


def try_draws(trial: Trial, seeds: int, draws: int) -> Tally:
    """Judge draws of a claim's frames, each once with its effect and once without."""
    pairs = [
        tuple(verdict(trial.claim, make(rng, seeds)) for make in (trial.absent, trial.present))
        for rng in generators(trial, seeds, draws)
    ]
    absent, present = zip(*pairs, strict=True)
    shares = [
        absent.count("supported"),
        *(verdicts.count("contradicted") + verdicts.count("mixed") for verdicts in (absent, present)),
        present.count("supported"),
    ]
    return Tally(*(share / draws for share in shares))
