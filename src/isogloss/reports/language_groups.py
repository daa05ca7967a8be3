"""Scores averaged over the target languages of a family, a script, a class of resources, and over all.

A mean is taken over languages within each unit (a seed) first, then over units: the languages are those that
were measured, no sample of their group.
"""

from collections.abc import Sequence
from itertools import product

import pandas as pd

from isogloss.core.language_facts import UNKNOWN, LanguageFacts, language_facts
from isogloss.core.languages import is_built_in
from isogloss.metrics.estimates import mean_std
from isogloss.reports.comparison import SYSTEM
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, language, percent, slug, test_set_name
from isogloss.reports.scores import UNITS, ScoredSet, key_of, mean_scores, scored_sets
from isogloss.reports.tables import Cell, Table, cells

ALL = ("all", "")

Groups = dict[tuple[str, str], tuple[str, ...]]
"""The languages of each group, by what they are grouped by and its name: ``("family", "Uralic")``."""


def group_tables(m: Measurements) -> list[Table]:
    """Return a table per test set with several real target languages, by the task's own metric."""
    found = []
    for one in scored_sets(m):
        targets = [code for code in one.targets if not is_built_in(code)]
        if len(targets) > 1 and one.rows[["main", "best"]].all(axis=None):
            groups = language_groups(targets)
            data = _data(one, groups)
            found += [_group_table(one, groups, data)] if len(data) else []
    return found


def language_groups(codes: Sequence[str]) -> Groups:
    """Return the languages of each group: by family, script and resources, unknown last, then all."""
    found: Groups = {}
    for by, kinds in zip(LanguageFacts._fields, zip(*map(language_facts, codes), strict=True), strict=True):
        for name in sorted({*kinds}, key=lambda one: (one == UNKNOWN, one)):
            found[by, name] = tuple(code for code, kind in zip(codes, kinds, strict=True) if kind == name)
    return {**found, ALL: tuple(codes)}


def _group_table(one: ScoredSet, groups: Groups, data: pd.DataFrame) -> Table:
    names = data["name"].drop_duplicates()
    by_group, rounded = [data["by"], data["group"]], data["mean"].round(3)
    best = (rounded == rounded.groupby(by_group).transform("max")) & (len(names) > 1)
    columns = (data[name] for name in ("by", "group", "name", "mean", "low", "high"))
    shown = {
        (by, group, name): Cell(percent(mean, low, high), "best" if first else "")
        for by, group, name, mean, low, high, first in zip(*columns, best, strict=True)
    }
    lines = []
    for (by, group), codes in groups.items():
        numbers = (shown.get((by, group, name), Cell("–")) for name in names)
        lines.append((*cells(by, group, str(len(codes))), *numbers))
    title = test_set_name(one.about) + (f", source {one.about['source']}" if one.sources else "")
    return Table(
        name=slug("language-groups", *one.about.values()),
        title=f"{title}: mean {one.about['metric']} on {one.about['split']}, by kind of language",
        caption=_caption(one, data, groups),
        header=cells("by", "group", "languages", *names),
        align="ll" + "r" * (1 + len(names)),
        rows=tuple(lines),
        data=data,
        folded=len(lines) > 12,
    )


def _data(one: ScoredSet, groups: Groups) -> pd.DataFrame:
    """Return a row per system and group: its languages, mean, standard deviation and interval over units."""
    by_system = dict(iter(mean_scores(one, groups).groupby(SYSTEM)))
    systems = [own for own in one.systems if key_of(own) in by_system]
    found = []
    for facts, ((by, group), codes) in product(systems, groups.items()):
        values = by_system[key_of(facts)][by, group].dropna()
        if len(values):
            over = mean_std([*values])
            about = {**one.about, **{name: facts[name] for name in ("name", *SYSTEM)}}
            told = {"by": by, "group": group, "languages": len(codes), "codes": " ".join(codes)}
            numbers = {"mean": over.mean, "std": over.std, "low": over.low, "high": over.high}
            found.append({**about, **told, **numbers, "units": over.n})
    return pd.DataFrame(found)


def _caption(one: ScoredSet, data: pd.DataFrame, groups: Groups) -> str:
    unit, over = UNITS[one.unit], one.units_of(data)
    unknown = [
        f"{by} of {and_list(map(language, codes))}"
        for (by, group), codes in groups.items()
        if group == UNKNOWN
    ]
    parts = {
        f"Percent: mean over a group's target languages with each {unit}, then over {over}.": True,
        f"[95 % interval over {unit}s, Student's t]: it is about other {unit}s with these languages, not "
        "about other languages of the group.": data["low"].notna().any(),
        f"One {unit} has no interval.": not data["low"].notna().any(),
        "Family: Glottolog's; script: ISO 15924; resources: class 0 (hardly any) to 5 of Joshi et al. "
        "(2020).": True,
        f"Unknown: {'; '.join(unknown)}.": unknown,
        f"Not counted: {and_list(map(language, one.unseen))}, for which no model was made.": one.unseen,
    }
    return " ".join(text for text, holds in parts.items() if holds)
