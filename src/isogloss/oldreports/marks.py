"""Marks in tables of scores: which differences are more than chance, and the captions that say so."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from isogloss.core.records import Row
from isogloss.oldreports.adjusted import Encoders
from isogloss.oldreports.comparison import LEVEL, TESTS, Baseline, Comparison, compare
from isogloss.oldreports.gather import Run
from isogloss.oldreports.kept_scores import Label, Place, kept_scores
from isogloss.oldreports.rows import Score
from isogloss.oldreports.tables import Table, cells
from isogloss.oldreports.words import count, joined, percent

METHOD, ENCODER, BOTH = "*", "†", "‡"
"""The sign of a difference from the baseline method, from the original (or first) encoder, and from both."""

PLAIN = "source-only"
"""The method that others are held against, where it is there; else the first."""

NONE_ADJUSTED = Encoders()


@dataclass(frozen=True, kw_only=True)
class Marks:
    """The tests of a report, by sign, and what they were against."""

    tests: Mapping[str, Sequence[Comparison]] = field(default_factory=dict)
    against: Mapping[str, str] = field(default_factory=dict)
    growth: Sequence[Comparison] = ()
    """Source-only on the encoder adjusted on the most translations, against the one on the fewest."""
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

    def pairs(self) -> dict[tuple[Place, Label, Label], Comparison]:
        """Return every test by place, system and baseline."""
        return {
            (one.place, one.system, one.baseline): one for several in self.tests.values() for one in several
        }

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


def marks_of(
    runs: Sequence[Run], scores: Sequence[Score], encoders: Encoders = NONE_ADJUSTED
) -> tuple[Marks, list[str]]:
    """Test every system against the baseline method and its original encoder; also say what could not be."""
    baselines = _baselines(scores, encoders)
    kept = kept_scores(runs if baselines else ())
    tests: dict[str, Sequence[Comparison]] = {}
    notes = list(kept.notes)

    def tested(against: Sequence[Against]) -> list[Comparison]:
        found = [compare(kept, baseline, wanted=wanted) for baseline, wanted in against]
        notes.extend(note for _, more in found for note in more)
        return [one for several, _ in found for one in several]

    for sign, (against, _) in baselines.items():
        tests[sign] = tested(against)
    growth = tested(_smallest(encoders)) if baselines else []
    words = {sign: said for sign, (_, said) in baselines.items()}
    marks = Marks(tests=tests, against=words, growth=growth, without=len(kept.without))
    return marks, list(dict.fromkeys(notes))


Against = tuple[Baseline, Callable[[Place, Label], bool]]
"""What systems are held against, and which of them."""


def _baselines(scores: Sequence[Score], encoders: Encoders) -> dict[str, tuple[list[Against], str]]:
    """Return, for each sign, the tests it stands for and what they are against, in words."""
    methods = list(dict.fromkeys(score.method for score in scores))
    labels = list(dict.fromkeys(score.encoder for score in scores))
    found: dict[str, tuple[list[Against], str]] = {}
    plain = PLAIN if PLAIN in methods else methods[0] if methods else ""
    if len(methods) > 1:
        found[METHOD] = ([(Baseline(method=plain), lambda *_: True)], plain)
    if len(labels) > 1:
        against, words = _references(labels, encoders)
        found[ENCODER] = (against, f"the same method on {words}")
        both = [(replace(one, method=plain), _other_method(plain, wanted)) for one, wanted in against]
        if len(methods) > 1:
            found[BOTH] = (both, f"{plain} on {words}")
    return found


def _references(labels: Sequence[str], encoders: Encoders) -> tuple[list[Against], str]:
    """Hold adjusted encoders against what they were made from, originals against the joint or the first."""
    originals = encoders.originals(labels) or list(labels[:1])
    reference = {label: encoders.base(label) for label in labels}
    reference = {
        label: base if base in labels and base != label else originals[0] for label, base in reference.items()
    }
    against: list[Against] = []
    for base in dict.fromkeys(reference.values()):
        own = {label for label, one in reference.items() if one == base and label != base}
        against.append((Baseline(encoder=base), _of(own)))
    bases = dict.fromkeys(reference.values())
    return against, next(iter(bases)) if len(bases) == 1 else "the original encoder"


def _of(labels: Collection[str]) -> Callable[[Place, Label], bool]:
    return lambda _, system: system.encoder in labels


def _other_method(plain: str, wanted: Callable[[Place, Label], bool]) -> Callable[[Place, Label], bool]:
    """Want what differs in the method as well; what differs in one thing has a sign of its own."""
    return lambda place, system: system.method != plain and wanted(place, system)


def _smallest(encoders: Encoders) -> list[Against]:
    """Hold the encoder adjusted on the most translations against the one adjusted on the fewest."""
    found: list[Against] = []
    for group in encoders.by_size():
        if len(group) > 1:
            largest = Label(group[-1].label, PLAIN)
            found.append((Baseline(group[0].label, PLAIN), lambda _, system, one=largest: system == one))  # type: ignore[misc]
    return found


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
