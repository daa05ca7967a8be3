"""Which differences between systems are more than chance: each against a baseline, language by language.

Paper: "The Impact of Cross-Lingual Adjustment …", Section 5. Tests are corrected for the number of languages
(Holm); intervals draw examples and seeds anew.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from isogloss.metrics.bootstrap import bootstrap
from isogloss.metrics.paired import Pair, cohens_d, per_example
from isogloss.metrics.power import seeds_needed, smallest_seen
from isogloss.metrics.significance import holm, paired_test
from isogloss.metrics.spread import spread
from isogloss.oldreports.kept_scores import KeptScores, Label, Models, Place, Seed, one_per_seed, system_of
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.words import count, joined

LEVEL = 0.05
"""Differences with a corrected p below it are marked (the paper's)."""

TESTS = {
    "paired t": "paired t-test on values averaged over seeds",
    "permutation": "permutation test that swaps whole sentences of all seeds, 1,000 rounds",
    "McNemar": "McNemar's exact test",
}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What systems are held against: a method, an encoder or both; what is None is the system's own."""

    encoder: str | None = None
    method: str | None = None

    def of(self, system: Label) -> Label:
        """Return the system that this one is held against."""
        return Label(
            system.encoder if self.encoder is None else self.encoder,
            system.method if self.method is None else self.method,
        )

    def __str__(self) -> str:
        """Write it as ``--against`` takes it."""
        return " / ".join(part for part in (self.encoder, self.method) if part is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A system against a baseline in one place; scores are means over the seeds that both have."""

    place: Place
    system: Label
    baseline: Label
    seeds: int
    examples: int
    score: float
    baseline_score: float
    low: float
    high: float
    """95 % interval of the difference, over examples and seeds."""
    effect: float
    """Cohen's d of what each example adds to the difference, averaged over seeds."""
    std: float
    """Standard deviation of the difference over seeds; nan for one."""
    test: str
    p_value: float
    p_holm: float = math.nan
    """Corrected for the number of languages."""

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.score - self.baseline_score

    @property
    def is_significant(self) -> bool:
        """Tell whether the difference gets a mark."""
        return self.p_holm < LEVEL

    def seeds_to_see(self, difference: float) -> int | None:
        """Return how many seeds a paired t-test over seeds needs; None where nobody can say or pay."""
        return None if math.isnan(self.std) else seeds_needed(difference, self.std)

    @property
    def smallest_seen(self) -> float:
        """The least difference that a paired t-test over these seeds sees with 80 % power."""
        return math.inf if math.isnan(self.std) else smallest_seen(self.std, self.seeds)


def compare(
    kept: KeptScores, against: Baseline, *, wanted: Callable[[Place, Label], bool] = lambda *_: True
) -> tuple[list[Comparison], list[str]]:
    """Hold every wanted system against its baseline wherever both were scored; also say what could not be."""
    found, notes = [], dict[str, None]()
    for place, models in kept.models.items():
        for system in models:
            baseline = against.of(system)
            if system == baseline or baseline not in models or not wanted(place, system):
                continue
            pair, note = pair_of(place, models, system, baseline)
            notes |= {note: None} if note else {}
            if pair is not None:
                found.append(_tested(pair, place, system, baseline))
    return _corrected(found), list(notes)


def pair_of(place: Place, models: Models, system: Label, baseline: Label) -> tuple[Pair | None, str]:
    """Return both systems on the seeds they share, and what there is to say about that."""
    ours, theirs = one_per_seed(models[system]), one_per_seed(models[baseline])
    where = f"{place.corpus} {place.task} {place.language}, {system} against {baseline}"
    if ours is None or theirs is None or not _same_examples(ours, theirs):
        return None, f"{where}: not compared, for they were not scored on the same examples."
    common = sorted(ours.keys() & theirs.keys())
    if not common:
        return None, f"{where}: not compared, for they share no seed ({_seeds(ours)}; {_seeds(theirs)})."
    left_out = sorted(ours.keys() ^ theirs.keys())
    note = f"{where}: seeds {joined(map(str, left_out))} left out, which one of the two lacks."
    return Pair(system_of(ours, common), system_of(theirs, common)), note if left_out else ""


def _same_examples(ours: dict[int, Seed], theirs: dict[int, Seed]) -> bool:
    return len({one.ids for one in (*ours.values(), *theirs.values())}) == 1


def _seeds(models: dict[int, Seed]) -> str:
    return f"{count(len(models), 'seed')} {joined(map(str, sorted(models)))}"


def _tested(pair: Pair, place: Place, system: Label, baseline: Label) -> Comparison:
    interval, test = bootstrap(pair), paired_test(pair)
    return Comparison(
        place=place,
        system=system,
        baseline=baseline,
        seeds=pair.seeds,
        examples=pair.examples,
        score=float(pair.system.scores().mean()),
        baseline_score=float(pair.baseline.scores().mean()),
        low=interval.low,
        high=interval.high,
        effect=cohens_d(per_example(pair)),
        std=spread(pair.differences().tolist()).std,
        test=test.name,
        p_value=test.p_value,
    )


def family(one: Comparison) -> tuple[object, ...]:
    """Name what is corrected together, and stands in one table: a comparison in all languages."""
    place = one.place
    return (place.corpus, place.task, place.source, place.split, place.measure, one.system, one.baseline)


def _corrected(found: Iterable[Comparison]) -> list[Comparison]:
    groups = grouped(found, family).values()
    return [
        replace(one, p_holm=p_value)
        for group in groups
        for one, p_value in zip(group, holm([one.p_value for one in group]), strict=True)
    ]
