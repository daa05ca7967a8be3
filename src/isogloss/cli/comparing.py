"""Printing comparisons: a table for each pair of systems, or JSON lines."""

import math
import sys
from collections.abc import Sequence
from statistics import median
from typing import Any

from isogloss.cli.display import Display
from isogloss.metrics.power import MOST_SEEDS
from isogloss.reports.compared_runs import Request, compare_runs
from isogloss.reports.comparison import TESTS, Comparison, family
from isogloss.reports.marks import p_text, row_of
from isogloss.reports.paths import grouped
from isogloss.reports.words import count, percent

HEADS = (
    "language",
    "baseline",
    "system",
    "difference",
    "95 % interval",
    "d",
    "p",
    "p (Holm)",
    "seeds",
    "needed",
)


def print_comparisons(request: Request, *, points: float, as_json: bool) -> None:
    """Print every comparison with its marks, and how many seeds a difference of so many points needs."""
    found, notes = compare_runs(request)
    display = Display(as_json=as_json)
    if as_json:
        for one in found:
            display.emit(_event(one, points))
        for note in notes:
            display.emit({"note": note})
        return
    for group in grouped(found, family).values():
        print(_title(group))
        display.table(HEADS, [_row(one, points) for one in group])
    print(_legend(found, points))
    for note in notes:
        print(f"isogloss: {note}", file=sys.stderr)


def _title(group: Sequence[Comparison]) -> str:
    one, examples = group[0], [each.examples for each in group]
    same = one.system.encoder == one.baseline.encoder
    system, baseline = (one.system.method, one.baseline.method) if same else (one.system, one.baseline)
    encoder = f", {one.system.encoder}" if same else ""
    place = one.place
    source = f", source {place.source}" if place.source else ""
    many = count(examples[0], "example") if len(set(examples)) == 1 else f"{min(examples)} examples or more"
    return (
        f"{place.corpus} {place.task}{encoder}{source}: {system} against {baseline}, "
        f"{place.measure} on {place.split}, {many}"
    )


def _row(one: Comparison, points: float) -> tuple[str, ...]:
    mark = " *" if one.is_significant else ""
    return (
        one.place.language,
        percent(one.baseline_score),
        percent(one.score),
        f"{100 * one.difference:+.1f}{mark}",
        f"{100 * one.low:+.1f} … {100 * one.high:+.1f}",
        f"{one.effect:.2f}",
        p_text(one.p_value),
        p_text(one.p_holm),
        str(one.seeds),
        _needed(one, points),
    )


def _legend(found: Sequence[Comparison], points: float) -> str:
    tests = " or ".join(TESTS[name] for name in dict.fromkeys(one.test for one in found))
    lines = [
        f"* p < 0.05 after Holm's correction over the languages of a table ({tests}). Scores and differences "
        f"in percent, means over seeds; the interval draws examples and seeds anew; d is Cohen's. A mark "
        f"speaks about other examples, the interval about other seeds too.",
        f"needed: the seeds with which a paired t-test over seeds would see a difference of "
        f"{points:g} point{'' if points == 1 else 's'} with 80 % power, at the spread over seeds found here.",
    ]
    seen = [one.smallest_seen for one in found if math.isfinite(one.smallest_seen)]
    seeds = {one.seeds for one in found}
    if seen:
        with_ = count(min(seeds), "seed") if len(seeds) == 1 else f"{min(seeds)} to {max(seeds)} seeds"
        lines.append(f"With {with_} such a test sees differences of {percent(median(seen))} points (median).")
    else:
        lines.append("One seed says nothing about the spread over seeds: train more.")
    return "\n".join(lines)


def _needed(one: Comparison, points: float) -> str:
    if math.isnan(one.std):
        return "–"
    seeds = one.seeds_to_see(points / 100)
    return f">{MOST_SEEDS}" if seeds is None else str(seeds)


def _event(one: Comparison, points: float) -> dict[str, Any]:
    """Return a comparison as flat JSON; what is no finite number is null."""
    body = {**row_of(one), "seeds_needed": one.seeds_to_see(points / 100)}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in body.items()
    }
