"""Marks in tables of scores: which differences are more than chance, and the captions that say so."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from isogloss.core.records import Row
from isogloss.reports.comparison import LEVEL, TESTS, Baseline, Comparison, compare
from isogloss.reports.gather import Run
from isogloss.reports.kept_scores import Label, Place, kept_scores
from isogloss.reports.rows import Score
from isogloss.reports.tables import Table, cells
from isogloss.reports.words import count, joined, percent

METHOD, ENCODER = "*", "†"
"""The sign of a difference from the baseline method, and of one from the first encoder."""

PLAIN = "source-only"
"""The method that others are held against, where it is there; else the first."""


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The tests of a report, by sign, and what they were against."""

    tests: Mapping[str, Sequence[Comparison]] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    without: int = 0
    """Score runs that kept no predictions."""

    def signs(self) -> dict[tuple[Place, Label], str]:
        """Return the signs of each system in each place that has any."""
        found: dict[tuple[Place, Label], str] = {}
        for sign, tests in self.tests.items():
            for one in tests:
                if one.is_significant:
                    found[one.place, one.system] = found.get((one.place, one.system), "") + sign
        return found

    def caption(self, places: Collection[Place], systems: Collection[Label]) -> str:
        """Say which tests the signs of these systems in these places come from, or why there are none."""
        said = []
        for sign, tests in self.tests.items():
            names = {one.test: None for one in tests if one.place in places and one.system in systems}
            if names:
                how = joined(TESTS[name] for name in names)
                said.append(f"{sign} p < {LEVEL} against {self.against[sign]} ({how}; Holm over languages).")
        if not said and self.without and len(systems) > 1:
            return "No marks: these scores were recorded without predictions, which tests need."
        return " ".join(said)


def marks_of(runs: Sequence[Run], scores: Sequence[Score]) -> tuple[Marks, list[str]]:
    """Test every system against the baseline method and the first encoder; also say what could not be."""
    methods = list(dict.fromkeys(score.method for score in scores))
    encoders = list(dict.fromkeys(score.encoder for score in scores))
    baselines = {}
    if len(methods) > 1:
        method = PLAIN if PLAIN in methods else methods[0]
        baselines[METHOD] = (Baseline(method=method), method)
    if len(encoders) > 1:
        baselines[ENCODER] = (Baseline(encoder=encoders[0]), f"the same method on {encoders[0]}")
    kept = kept_scores(runs if baselines else ())
    tests, notes = {}, list(kept.notes)
    for sign, (baseline, _) in baselines.items():
        tests[sign], more = compare(kept, baseline)
        notes += more
    against = {sign: words for sign, (_, words) in baselines.items()}
    return Marks(tests=tests, against=against, without=len(kept.without)), list(dict.fromkeys(notes))


def difference_tables(marks: Marks) -> list[Table]:
    """Return every test in one table: difference, interval, effect, p, and what so many seeds can see."""
    tests = [one for several in marks.tests.values() for one in several]
    table = Table(
        name="significance",
        title=f"Tests of differences ({count(len(tests), 'comparison')})",
        caption=(
            "Difference of means over seeds in percentage points with its 95 % interval (bootstrap over "
            "examples and seeds), Cohen's d, p of the test named in the table of scores, and p after Holm's "
            "correction over languages. A mark speaks about other examples, an interval about other seeds "
            "too. Seen: the least difference a paired t-test over so many seeds sees with 80 % power."
        ),
        header=cells(*_HEADS),
        align="lllllrrrrrrr",
        rows=tuple(cells(*_texts(one)) for one in tests),
        data=[row_of(one) for one in tests],
        folded=True,
    )
    return [table] if tests else []


_HEADS = (
    *("task", "system", "against", "measure", "language", "difference", "interval"),
    *("d", "p", "p (Holm)", "seeds", "seen"),
)


def row_of(one: Comparison) -> Row:
    """Return a comparison as a flat row."""
    place, system, baseline = one.place, one.system, one.baseline
    return {
        **{
            name: getattr(place, name)
            for name in ("corpus", "task", "source", "split", "measure", "language")
        },
        **{"encoder": system.encoder, "method": system.method},
        **{"baseline_encoder": baseline.encoder, "baseline_method": baseline.method},
        **{"seeds": one.seeds, "examples": one.examples},
        **{"score": one.score, "baseline_score": one.baseline_score, "difference": one.difference},
        **{"low": one.low, "high": one.high, "effect": one.effect, "std": one.std},
        **{"test": one.test, "p_value": one.p_value, "p_holm": one.p_holm},
        **{"significant": one.is_significant, "smallest_seen": one.smallest_seen},
    }


def p_text(value: float) -> str:
    """Write a p-value."""
    return "<0.0001" if value < 0.0001 else f"{value:.4f}"


def _texts(one: Comparison) -> list[str]:
    place = one.place
    return [
        *(f"{place.corpus} {place.task} {place.split}", str(one.system), str(one.baseline)),
        *(place.measure, place.language),
        f"{100 * one.difference:+.1f}{' ' + METHOD if one.is_significant else ''}",
        f"{100 * one.low:+.1f} … {100 * one.high:+.1f}",
        *(f"{one.effect:.2f}", p_text(one.p_value), p_text(one.p_holm), str(one.seeds)),
        "–" if one.smallest_seen == float("inf") else percent(one.smallest_seen),
    ]
