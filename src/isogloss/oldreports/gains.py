"""When systems gain over others: the rule that claims go by, and how gains are written."""

from collections.abc import Mapping, Sequence
from statistics import fmean

from isogloss.oldreports.comparison import LEVEL, Comparison
from isogloss.oldreports.marks import PLAIN

RULE = (
    f"A gain: the mean difference over languages is above 0, at least one language gains with p < {LEVEL} "
    "(corrected, as in the tables) and none loses so; what is within chance is none."
)


def is_a_gain(tests: Sequence[Comparison]) -> bool:
    """Tell whether systems gain: on average, somewhere more than by chance, and nowhere the other way."""
    sure = [one.difference for one in tests if one.is_significant]
    return fmean(one.difference for one in tests) > 0 and bool(sure) and min(sure) > 0


def is_a_loss(tests: Sequence[Comparison]) -> bool:
    """Tell whether systems lose, by the same rule the other way round."""
    sure = [one.difference for one in tests if one.is_significant]
    return fmean(one.difference for one in tests) < 0 and bool(sure) and max(sure) < 0


def gains_text(by_task: Mapping[str, Sequence[Comparison]]) -> str:
    """Write the gains of each task, language by language, with a star where more than chance."""
    parts = []
    for task, tests in by_task.items():
        several = len({one.system for one in tests}) > 1
        gains = [
            f"{one.place.language} {gain(one)}"
            + (f" ({one.system.method})" if several and one.system.method != PLAIN else "")
            for one in tests
        ]
        parts.append(f"{task}: {', '.join(gains)}")
    return "; ".join(parts).replace("-", "−")


def gain(one: Comparison) -> str:
    """Write one difference in points, with a star where it is more than chance."""
    return f"{100 * one.difference:+.1f}{'*' if one.is_significant else ''}".replace("-", "−")
