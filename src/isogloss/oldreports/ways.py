"""Ways to use translations, as systems of one test set: what was trained how, and how its inputs came.

A record calls a test set whose inputs are translated, or stand beside translations, by another name. Here
they are one test set again, and how inputs came is part of the system: "x-mixup · paired".
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from isogloss.core.records import Row
from isogloss.metrics.over_languages import verdict_over_languages
from isogloss.metrics.paired import per_example
from isogloss.metrics.significance import paired_t_test
from isogloss.oldreports.comparison import LEVEL, Baseline, Comparison, compare, pair_of
from isogloss.oldreports.gather import Gathered, run_rows
from isogloss.oldreports.kept_scores import KeptScores, Label, Models, Place, kept_scores, one_per_seed
from isogloss.oldreports.marks import PLAIN
from isogloss.oldreports.rows import Score

BY, HOW = " by ", " · "
"""What stands in a system's name before the translator, and before how its inputs came."""

TRANSLATED, PAIRED = "translated", "paired"

TRANSLATE_TRAIN = "translate-train"


@dataclass(frozen=True)
class MeanComparison:
    """A system against a baseline on the mean of the target languages."""

    place: Place
    """Without a language."""
    system: Label
    baseline: Label
    languages: tuple[str, ...]
    seeds: int
    score: float
    baseline_score: float
    p_value: float
    """Over examples, averaged over seeds; what is parallel is one example."""
    p_seeds: float | None
    """Over seeds: a paired t-test on their means of the languages; None for one seed."""

    @property
    def difference(self) -> float:
        """System minus baseline."""
        return self.score - self.baseline_score

    @property
    def is_significant(self) -> bool:
        """Tell whether the difference gets a mark."""
        return self.p_value < LEVEL

    def row(self) -> Row:
        """Return it as the numbers of a flat row."""
        return {"difference": self.difference, "p_value": self.p_value, "p_seeds": self.p_seeds}


@dataclass(frozen=True)
class Ways:
    """The scores of all systems on plain names of test sets, and what they kept."""

    scores: Sequence[Score] = ()
    kept: KeptScores = field(default_factory=lambda: KeptScores({}))

    def languages(self, place: Place) -> tuple[str, ...]:
        """Return the targets of a test set: those that models were made for, else all but the source."""
        own = [one for one in self.scores if place_of(one) == place and not one.on_source]
        made_for = {one.language for one in own if one.on_own_target}
        return tuple(sorted(made_for or {one.language for one in own}))

    def means(self, place: Place, baseline: Label, systems: Iterable[Label]) -> list[MeanComparison]:
        """Hold systems against a baseline on the mean of the targets, where both kept all of them."""
        tested = (self._mean(place, system, baseline) for system in systems if system != baseline)
        return [one for one in tested if one is not None]

    def tests(self, place: Place, baseline: Label) -> list[Comparison]:
        """Hold all systems on the baseline's encoder against it, language by language."""

        def wanted(where: Place, system: Label) -> bool:
            return replace(where, language="") == place and system.encoder == baseline.encoder

        return compare(self.kept, Baseline(baseline.encoder, baseline.method), wanted=wanted)[0]

    def _mean(self, place: Place, system: Label, baseline: Label) -> MeanComparison | None:
        pairs, differences, languages = [], {}, self.languages(place)
        for code in languages:
            where = replace(place, language=code)
            models = self.kept.models.get(where, {})
            if system not in models or baseline not in models:
                return None
            pair, _ = pair_of(where, models, system, baseline)
            if pair is None:
                return None
            ids = next(iter((one_per_seed(models[system]) or {}).values())).ids
            pairs.append(pair)
            differences[code] = ids, per_example(pair)
        if not pairs or len({pair.seeds for pair in pairs}) > 1:
            return None
        ours, theirs = (
            sum(getattr(pair, side).scores() for pair in pairs) / len(pairs)
            for side in ("system", "baseline")
        )
        return MeanComparison(
            place,
            system,
            baseline,
            languages,
            pairs[0].seeds,
            float(ours.mean()),
            float(theirs.mean()),
            verdict_over_languages(differences).p_value,
            paired_t_test(ours, theirs).p_value if len(ours) > 1 else None,
        )


def ways_of(gathered: Gathered, scores: Sequence[Score]) -> Ways:
    """Put test sets that differ in how inputs came together; nothing where none came in translation."""
    came = inputs_of(gathered)
    if not any(how.startswith((TRANSLATED, PAIRED)) for _, how in came.values()):
        return Ways()
    wanted = {name: one for name, one in came.items() if one[1].startswith((TRANSLATED, PAIRED))}
    plain = {name for name, _ in wanted.values()}
    renamed = []
    for one in scores:
        corpus, how = wanted.get(one.corpus, (one.corpus, ""))
        if corpus in plain:
            renamed.append(replace(one, corpus=corpus, method=_named(one.method, how)))
    found: dict[Place, Models] = {}
    kept = kept_scores(gathered.runs)
    for place, systems in kept.models.items():
        corpus, how = wanted.get(place.corpus, (place.corpus, ""))
        if corpus in plain:
            into = found.setdefault(replace(place, corpus=corpus), {})
            into |= {replace(label, method=_named(label.method, how)): own for label, own in systems.items()}
    return Ways(renamed, replace(kept, models=found))


def inputs_of(gathered: Gathered) -> dict[str, tuple[str, str]]:
    """Return the test sets whose inputs do not come as they are: each one's plain name, and how they come."""
    found: dict[str, tuple[str, str]] = {}
    for run in gathered.runs:
        inputs = str(run.record.run.get("inputs") or "") if run.record else ""
        if inputs and run.diagnostic == Score.diagnostic:
            for name in {row.corpus for row in run_rows(run, Score)[0]}:
                plain, _, tail = name.partition(f" {inputs}")
                found[name] = plain, f"{inputs}{tail}"
    return found


def place_of(score: Score) -> Place:
    """Return where a score stands, for all languages."""
    return Place(score.corpus, score.task, score.source, score.split, score.metric, "")


def translator(method: str) -> str:
    """Return who translated what a system was trained on or reads; "" where files did."""
    return method.partition(BY)[2].partition(HOW)[0]


def plain_reference(method: str, methods: Iterable[str]) -> str:
    """Return what a system is held against: translate-train by its translator, else source-only; or "".

    Of several translate-trains the one that has most fields in common with it: its learning rate, say.
    """
    known = list(dict.fromkeys(methods))
    trained = [one for one in known if one.startswith(TRANSLATE_TRAIN) and HOW not in one]
    same = [one for one in trained if translator(one) == translator(method)]
    same.sort(key=lambda one: -len(_fields(one) & _fields(method)))
    found = same or (trained if len(trained) == 1 else [])
    return (found or [one for one in known if one == PLAIN and not trained] or [""])[0]


def _fields(method: str) -> set[str]:
    return set(re.findall(r"\w+=[^,()]+", method))


def _named(method: str, how: str) -> str:
    """Name a system; who translated is not said twice."""
    inputs, by, who = how.partition(BY)
    if not how:
        return method
    return f"{method}{HOW}{inputs if method.endswith(by + who) else how}"
