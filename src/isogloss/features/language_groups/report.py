"""Scores averaged over the target languages of a family, a script, a class of resources, and over all.

A mean is taken over languages within each unit (a seed) first, then over units: the languages are those that
were measured, no sample of their group.
"""

from collections.abc import Sequence
from itertools import product

import pandas as pd

from isogloss.core.languages import UNKNOWN, is_built_in, language_facts
from isogloss.metrics.estimates import mean_std
from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import SYSTEM
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import list_languages, percent, slug, test_set_name
from isogloss.reports.parts import Part
from isogloss.reports.scores import ScoredSet, key_of, mean_scores, scored_sets
from isogloss.reports.tables import Table, TableCell, cells

GROUPED_BY = ("family", "script", "resources")
"""The facts by which languages are grouped."""

ALL = ("all", "")

Groups = dict[tuple[str, str], tuple[str, ...]]
"""The languages of each group, by what they are grouped by and its name: ``("family", "Uralic")``."""


def group_tables(measurements: Measurements) -> list[Table]:
    """Return a table per test set with several real target languages, by the task's own metric."""
    tables = []
    for test_set in scored_sets(measurements):
        targets = [language_code for language_code in test_set.targets if not is_built_in(language_code)]
        if len(targets) > 1 and test_set.rows[["main", "best"]].all(axis=None):
            groups = language_groups(targets)
            data = _data(test_set, groups)
            tables += [_group_table(test_set, groups, data)] if len(data) else []
    return tables


def language_groups(codes: Sequence[str]) -> Groups:
    """Return the languages of each group: by family, script and resources, unknown last, then all."""
    groups: Groups = {}
    facts = [language_facts(language_code) for language_code in codes]
    for property_name in GROUPED_BY:
        kinds = [getattr(fact, property_name) for fact in facts]
        for name in sorted(set(kinds), key=lambda name: (name == UNKNOWN, name)):
            groups[property_name, name] = tuple(
                language_code for language_code, kind in zip(codes, kinds, strict=True) if kind == name
            )
    return {**groups, ALL: tuple(codes)}


def _group_table(test_set: ScoredSet, groups: Groups, data: pd.DataFrame) -> Table:
    names = data["name"].drop_duplicates()
    group_columns = [data["by"], data["group"]]
    rounded_means = data["mean"].round(3)
    is_best = (rounded_means == rounded_means.groupby(group_columns).transform("max")) & (len(names) > 1)
    columns = (data[name] for name in ("by", "group", "name", "mean", "low", "high"))
    table_cells = {
        (property_name, group, name): TableCell(percent(mean, low, high), "best" if is_first else "")
        for property_name, group, name, mean, low, high, is_first in zip(*columns, is_best, strict=True)
    }
    lines = []
    for (property_name, group), codes in groups.items():
        numbers = (table_cells.get((property_name, group, name), TableCell("–")) for name in names)
        lines.append((*cells(property_name, group, str(len(codes))), *numbers))
    title = test_set_name(test_set.about) + (
        f", source {test_set.about['source']}" if test_set.sources else ""
    )
    return Table(
        name=slug("language-groups", *test_set.about.values()),
        title=f"{title}: mean {test_set.about['metric']} on {test_set.about['split']}, by kind of language",
        caption=_caption(test_set, data, groups),
        header=cells("by", "group", "languages", *names),
        align="ll" + "r" * (1 + len(names)),
        rows=tuple(lines),
        data=data,
        folded=len(lines) > 12,
    )


def _data(test_set: ScoredSet, groups: Groups) -> pd.DataFrame:
    system_scores = dict(iter(mean_scores(test_set, groups).groupby(SYSTEM)))
    systems = [system for system in test_set.systems if key_of(system) in system_scores]
    lines = []
    for facts, ((property_name, group), codes) in product(systems, groups.items()):
        values = system_scores[key_of(facts)][property_name, group].dropna()
        if len(values):
            summary = mean_std(list(values))
            columns = {**test_set.about, **{name: facts[name] for name in ("name", *SYSTEM)}}
            counts = {"by": property_name, "group": group, "languages": len(codes), "codes": " ".join(codes)}
            numbers = {"mean": summary.mean, "std": summary.std, "low": summary.low, "high": summary.high}
            lines.append({**columns, **counts, **numbers, "units": summary.n})
    return pd.DataFrame(lines)


def _caption(test_set: ScoredSet, data: pd.DataFrame, groups: Groups) -> str:
    unit = UNITS[test_set.unit]
    unit_text = test_set.units_of(data)
    unknown_texts = [
        f"{property_name} of {list_languages(codes)}"
        for (property_name, group), codes in groups.items()
        if group == UNKNOWN
    ]
    parts = {
        f"Percent: mean over a group's target languages with each {unit}, then over {unit_text}.": True,
        f"[95 % interval over {unit}s, Student's t]: it is about other {unit}s with these languages, not "
        "about other languages of the group.": data["low"].notna().any(),
        f"One {unit} has no interval.": not data["low"].notna().any(),
        "Family: Glottolog's; script: ISO 15924; resources: class 0 (hardly any) to 5 of Joshi et al. "
        "(2020).": True,
        f"Unknown: {'; '.join(unknown_texts)}.": unknown_texts,
        f"Not counted: {list_languages(test_set.unseen)}, for which no model was made.": (test_set.unseen),
    }
    return " ".join(text for text, applies in parts.items() if applies)


PARTS: Sequence[Part] = (("language-groups", group_tables),)
"""Figures and tables of this feature, by the section of a report that shows them."""
