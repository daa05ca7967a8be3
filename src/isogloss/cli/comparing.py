"""Printing comparisons: a table for each pair of systems, or JSON lines."""

import math
import sys
from collections.abc import Sequence
from itertools import groupby
from statistics import stdev
from typing import Any

from isogloss.cli.compared_runs import Compared, Request, compare_runs
from isogloss.cli.display import Display, show_line
from isogloss.core.plain_text import plain
from isogloss.metrics.power import MOST_SEEDS, seeds_needed
from isogloss.reports.comparison import ON_EXAMPLES, SURE, TESTS
from isogloss.reports.names import count, percent
from isogloss.reports.scored_sets import key_of
from isogloss.reports.scores import UNITS, numbers_of
from isogloss.reports.verdicts import p_text

HEADS = (
    *("language", "baseline", "system", "difference", "interval", "d"),
    *("p (seeds)", "p (examples)", "p", "p (Holm)", "seeds", "needed"),
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
    for _, group in groupby(found, key=_pair):
        own = list(group)
        show_line(_title(own))
        display.table(HEADS, [_row(one, points) for one in own])
    show_line(_legend(found, points))
    for note in notes:
        print(plain(f"isogloss: {note}"), file=sys.stderr)


def _pair(one: Compared) -> tuple[object, ...]:
    return (*one.where.about.values(), key_of(one.system), key_of(one.baseline))


def _title(group: Sequence[Compared]) -> str:
    one, examples = group[0], [each.comparison.examples for each in group]
    about = one.where.about
    same = one.system["encoder"] == one.baseline["encoder"]
    system, baseline = (
        part["system"] if same else f"{part['encoder.label']} / {part['system']}"
        for part in (one.system, one.baseline)
    )
    encoder = f", {one.system['encoder.label']}" if same else ""
    source = f", source {about['source']}" if about["source"] else ""
    where = " ".join(about[name] for name in ("corpus", "treebank", "mixed", "task") if about[name])
    many = count(examples[0], "example") if len(set(examples)) == 1 else f"{min(examples)} examples or more"
    measure = f"{about['metric']} on {about['split']}"
    return f"{where}{encoder}{source}: {system} against {baseline}, {measure}, {many}"


def _row(one: Compared, points: float) -> tuple[str, ...]:
    test, estimate = one.comparison, one.comparison.estimate
    interval = "–" if math.isnan(estimate.low) else f"{100 * estimate.low:+.1f} … {100 * estimate.high:+.1f}"
    needed = _needed(one, points)
    return (
        one.column,
        percent(test.baseline_score),
        percent(test.score),
        f"{100 * test.difference:+.1f} {test.mark}".rstrip(),
        interval,
        "–" if math.isnan(test.effect) else f"{test.effect:.2f}",
        *(p_text(p) for p in (test.p_units, test.p_examples, test.p_value, test.p_holm)),
        str(len(test.values)),
        "–" if len(test.values) < 2 else f">{MOST_SEEDS}" if needed is None else str(needed),
    )


def _legend(found: Sequence[Compared], points: float) -> str:
    unit = UNITS[found[0].where.unit]
    tests = " or ".join(TESTS[name] for name in dict.fromkeys(one.comparison.test for one in found) if name)
    lines = [
        f"{SURE} stands on {unit}s and examples: p < 0.05 by the test that crosses both, after Holm's "
        f"correction over all of a test set. {ON_EXAMPLES} stands on the examples of these {unit}s alone"
        f"{f' ({tests})' if tests else ''}. Scores and differences in percent, means over {unit}s; the "
        f"interval (95 %) is over both; d is Cohen's over examples. p: over {unit}s, over examples, over "
        f"both, and that corrected.",
        f"needed: the {unit}s with which a paired t-test over them would see a difference of "
        f"{points:g} point{'' if points == 1 else 's'} with 80 % power, at the spread found here.",
    ]
    if all(len(one.comparison.values) < 2 for one in found):
        lines.append(f"No {SURE} is possible: one {unit} says nothing about others. Train more.")
    return "\n".join(lines)


def _needed(one: Compared, points: float) -> int | None:
    """Return how many seeds would see so many points; None for one seed, and where too many would not."""
    values = one.comparison.values
    return seeds_needed(points / 100, stdev(values)) if len(values) > 1 else None


def _event(one: Compared, points: float) -> dict[str, Any]:
    """Return a comparison as flat JSON; what is no finite number is null."""
    about, test = one.where.about, one.comparison
    body = {
        **{name: about[name] for name in ("corpus", "treebank", "mixed", "task", "source", "split")},
        **{"measure": about["metric"], "language": one.column, "languages": list(test.languages)},
        **{"encoder": one.system["encoder.label"], "method": one.system["system"]},
        **{"baseline_encoder": one.baseline["encoder.label"], "baseline_method": one.baseline["system"]},
        **numbers_of(test),
        **{"seeds": len(test.values), "std": stdev(test.values) if len(test.values) > 1 else None},
        **{
            "unit": UNITS[one.where.unit],
            "significant": test.mark == SURE,
            "seeds_needed": _needed(one, points),
        },
    }
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in body.items()
    }
