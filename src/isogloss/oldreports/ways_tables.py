"""The table of ways to use translations: X-Mixup, Tables 1 and 5 (ablations), with gap and unseen languages.

One table for each encoder and test set; how inputs came is part of a row's name.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from isogloss.core.records import Row
from isogloss.metrics.spread import Spread, spread
from isogloss.oldreports.comparison import LEVEL, Comparison
from isogloss.oldreports.kept_scores import Label, Place
from isogloss.oldreports.model_tables import score_entries
from isogloss.oldreports.paths import grouped
from isogloss.oldreports.rows import Score
from isogloss.oldreports.systems import MARK, MEAN, target_mean
from isogloss.oldreports.tables import Cell, Table
from isogloss.oldreports.ways import MeanComparison, Ways, place_of, plain_reference
from isogloss.oldreports.words import count, joined, language, plus_minus, slug

GAP, UNSEEN = "gap", "unseen"


@dataclass(frozen=True)
class Line:
    """One system: its scores by column, over seeds, and its tests by column."""

    system: Label
    reference: str
    scores: dict[str, Spread]
    tests: dict[str, Comparison | MeanComparison]


def ways_tables(ways: Ways) -> list[Table]:
    """Return a table for each test set and encoder, the first method of the recipe first."""
    groups = grouped(ways.scores, lambda one: (place_of(one), one.encoder))
    return [_table(place, encoder, group, ways) for (place, encoder), group in groups.items() if place.source]


def unseen_mean(scores: Sequence[Score], targets: Sequence[str]) -> Spread | None:
    """Return the mean over languages that no model was made for, and over models, spread over seeds."""
    there = [one for one in scores if one.language not in targets and not one.on_source]
    by_seed = grouped(there, lambda one: one.seed).values()
    return spread([fmean(one.score for one in own) for own in by_seed]) if there else None


def _table(place: Place, encoder: str, scores: Sequence[Score], ways: Ways) -> Table:
    lines = _lines(place, encoder, scores, ways)
    sources, targets = tuple(place.source.split("+")), ways.languages(place)
    columns = [*sources, *targets, *(name for name in (MEAN, GAP, UNSEEN) if _any(lines, name))]
    best = {
        name: max(round(line.scores[name].mean, 3) for line in lines if name in line.scores)
        for name in columns
        if _any(lines, name) and name != GAP
    }
    heads = [_head(name, sources) for name in columns]
    return Table(
        name=slug("ways", place.corpus, place.task, encoder, place.source, place.split, place.measure),
        title=(
            f"{place.corpus} {place.task}, {encoder}: ways to use translations, {place.measure} on "
            f"{place.split}"
        ),
        caption=_caption(place, lines, targets),
        header=(Cell("method, inputs"), *heads),
        align="l" + "r" * len(columns),
        rows=tuple(
            (Cell(line.system.method), *(_cell(line, name, best) for name in columns)) for line in lines
        ),
        data=[row for line in lines for row in _rows(place, line, columns)],
    )


def _lines(place: Place, encoder: str, scores: Sequence[Score], ways: Ways) -> list[Line]:
    targets = ways.languages(place)
    methods = grouped(scores, lambda one: one.method)
    references = {method: plain_reference(method, methods) for method in methods}
    tests: dict[tuple[str, str], dict[str, Comparison | MeanComparison]] = {}
    for reference in dict.fromkeys(name for name in references.values() if name):
        baseline = Label(encoder, reference)
        systems = [Label(encoder, method) for method, name in references.items() if name == reference]
        for one in ways.tests(place, baseline):
            tests.setdefault((one.system.method, reference), {})[one.place.language] = one
        for mean in ways.means(place, baseline, systems):
            tests.setdefault((mean.system.method, reference), {})[MEAN] = mean
    return [
        Line(
            Label(encoder, method),
            references[method],
            _columns(own, targets),
            tests.get((method, references[method]), {}),
        )
        for method, own in methods.items()
    ]


def _columns(scores: Sequence[Score], targets: Sequence[str]) -> dict[str, Spread]:
    """Return one system's scores by language, the mean of the targets, the gap to it, and unseen ones."""
    found = {one.language: one.over for one in score_entries(scores) if one.over}
    mean = target_mean(scores, targets)
    if mean is not None:
        found[MEAN] = mean
    gaps = []
    for own in grouped(scores, lambda one: one.seed).values():
        source = [one.score for one in own if one.on_source]
        there = grouped(
            [one for one in own if one.language in targets and (not one.target or one.on_own_target)],
            lambda one: one.language,
        )
        if source and all(code in there for code in targets) and targets:
            gaps.append(fmean(source) - fmean(fmean(one.score for one in there[code]) for code in targets))
    if gaps:
        found[GAP] = spread(gaps)
    unseen = unseen_mean(scores, targets)
    return found if unseen is None else {**found, UNSEEN: unseen}


def _any(lines: Sequence[Line], name: str) -> bool:
    return any(name in line.scores for line in lines)


def _head(name: str, sources: Sequence[str]) -> Cell:
    if name in (MEAN, GAP, UNSEEN):
        return Cell(name)
    return Cell(f"{language(name)} ★", "source") if name in sources else Cell(language(name))


def _cell(line: Line, name: str, best: dict[str, float]) -> Cell:
    over = line.scores.get(name)
    if over is None:
        return Cell("–")
    test = line.tests.get(name)
    mark = f" {MARK}" if test is not None and test.is_significant else ""
    text = f"{plus_minus(over.mean, over.std)}{mark}"
    return Cell(text, "best" if round(over.mean, 3) == best.get(name) else "")


def _caption(place: Place, lines: Sequence[Line], targets: Sequence[str]) -> str:
    most = max((over.n for line in lines for over in line.scores.values()), default=0)
    references = dict.fromkeys(line.reference for line in lines if line.tests)
    against = (
        f"{MARK} p < {LEVEL} against {joined(references)}: in a language after Holm over languages, on "
        f"the mean of the targets by one test over examples, what is parallel being one example (the CSV has "
        f"the test over seeds beside it)."
        if references
        else "No marks: there is nothing to test, or no predictions were kept."
    )
    unseen = " Unseen: mean of the other languages scored, over models." if _any(lines, UNSEEN) else ""
    return (
        f"{place.measure} in percent, mean ± standard deviation over {count(most, 'seed')}. ★ marks the "
        f"source. In a target's column stands the model made for it. · paired: each input beside its "
        f"translation; · translated: the translation alone (translate-test); nothing said: the input alone, "
        f"unmixed. Gap: source minus mean of {joined(targets)}.{unseen} {against}"
    )


def _rows(place: Place, line: Line, columns: Sequence[str]) -> list[Row]:
    about = {name: getattr(place, name) for name in ("corpus", "task", "source", "split")}
    found: list[Row] = []
    for name in columns:
        over, test = line.scores.get(name), line.tests.get(name)
        if over is None:
            continue
        numbers: Row = dict.fromkeys(("difference", "p_value", "p_holm", "p_seeds"))
        if isinstance(test, MeanComparison):
            numbers = {**numbers, **test.row()}
        elif test is not None:
            tested = {"difference": test.difference, "p_value": test.p_value, "p_holm": test.p_holm}
            numbers = {**numbers, **tested}
            mean = line.tests.get(MEAN)
            if isinstance(mean, MeanComparison) and mean.languages == (name,):  # The only target is the mean.
                numbers["p_seeds"] = mean.p_seeds
        found.append(
            {
                **about,
                "metric": place.measure,
                "encoder": line.system.encoder,
                "method": line.system.method,
                "language": name,
                "seeds": over.n,
                "mean": over.mean,
                "std": over.std,
                "against": line.reference if test else "",
                **numbers,
            }
        )
    return found
