"""The tables of scores: systems down, test languages across; and one of all other measures of a test set."""

from collections.abc import Sequence
from itertools import product

import pandas as pd

from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import NUMBERS, ON_EXAMPLES, SURE, SYSTEM, TESTS
from isogloss.reports.comparison_cells import MEANING, references_of, tests_table
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import and_list, count, language, percent, plus_minus, slug, test_set_name
from isogloss.reports.scores import GAP, ScoredSet, key_of, scored_sets, tested, values_of
from isogloss.reports.tables import Table, TableCell, cells


def score_tables(measurements: Measurements) -> list[Table]:
    """Return a table per test set, a folded one of all other measures of each, and one of all tests."""
    by_test_set: dict[tuple[str, ...], list[ScoredSet]] = {}
    for test_set in scored_sets(measurements):
        metric = test_set.about["metric"] if test_set.rows["main"].all() else ""
        columns = {**test_set.about, "metric": metric}
        by_test_set.setdefault(tuple(columns.values()), []).append(test_set)
    tables = [
        _score_table(measurements, *test_sets)
        if len(test_sets) == 1
        else _measures_table(measurements, test_sets)
        for test_sets in by_test_set.values()
    ]
    if not tables:
        return []
    data = pd.concat([table.data for table in tables])
    return [*sorted(tables, key=lambda table: table.folded), *tests_table(data[data["difference"].notna()])]


def _score_table(measurements: Measurements, test_set: ScoredSet) -> Table:
    values = values_of(test_set)
    columns = test_set.about
    rows = test_set.rows
    data = _data(measurements, test_set, values)
    (title, heads) = _heading(test_set)
    against = ["compared with"] if data["against"].nunique() > 1 else []
    lines = [line if against else line[:-1] for line in _lines(data, [*heads], [*values])]
    majority = rows.dropna(subset=["baseline"]).groupby("language")["baseline"].first().map(percent)
    if len(majority):
        majority_cells = ["majority", *[""] * (len(heads) - 1), *(majority.get(name, "–") for name in values)]
        majority_cells += [""] * len(against)
        lines.append(tuple(TableCell(text, "baseline") for text in majority_cells))
    return Table(
        name=slug("scores", *columns.values()),
        title=f"{title}: {columns['metric']} on {columns['split']}",
        caption=(
            f"{columns['metric']} in percent, mean ± standard deviation over {test_set.units_of(data)}."
            f"{references_of(data)}"
        ),
        notes=_notes(test_set, data),
        header=(*cells(*heads.values()), *(_head(test_set, name) for name in values), *cells(*against)),
        align="l" * len(heads) + "r" * len(values.columns) + "l" * len(against),
        rows=tuple(lines),
        data=data,
        folded=not rows[["main", "best"]].all(axis=None),
    )


def _measures_table(measurements: Measurements, test_sets: Sequence[ScoredSet]) -> Table:
    """Return the table of several measures of one test set: a row for each language and system."""
    first, *_ = test_sets
    data = pd.concat(
        [_data(measurements, test_set, values_of(test_set)) for test_set in test_sets], ignore_index=True
    )
    (title, heads) = _heading(first)
    measures = list(dict.fromkeys(data["metric"]))
    against = ["compared with"] if data["against"].nunique() > 1 else []
    lines = []
    for column, of_column in data.assign(cell=_shown(data)).groupby("column", sort=False):
        for _, group in of_column.groupby(SYSTEM, sort=False):
            numbers = dict(zip(group["metric"], group["cell"], strict=True))
            measure_cells = (numbers.get(measure, TableCell("–")) for measure in measures)
            references = [TableCell(next(iter(group["against"].dropna()), "")) for _ in against]
            lines.append(
                (_head(first, str(column)), *cells(*group[[*heads]].iloc[0]), *measure_cells, *references)
            )
    return Table(
        name=slug("measures", *{**first.about, "metric": ""}.values()),
        title=f"{title}: {and_list(measures)} on {first.about['split']}",
        caption=(
            f"{and_list(measures)} in percent, mean ± standard deviation over {first.units_of(data)}."
            f"{references_of(data)}"
        ),
        notes=_notes(first, data),
        header=cells("language", *heads.values(), *measures, *against),
        align="l" * (1 + len(heads)) + "r" * len(measures) + "l" * len(against),
        rows=tuple(lines),
        data=data,
        folded=True,
    )


def _heading(test_set: ScoredSet) -> tuple[str, dict[str, str]]:
    """Return the name of a test set and its source, and the heads of the columns that name a system."""
    rows = test_set.rows
    heads = {"encoder.label": "encoder", "system": "method"}
    source = and_list(map(language, test_set.sources))
    title = [test_set_name(test_set.about), *[f"source {source}"] * bool(source)]
    if rows["encoder"].nunique() == 1:
        title.append(rows["encoder.label"].iloc[0])
        del heads["encoder.label"]
    return ", ".join(title), heads


def _data(measurements: Measurements, test_set: ScoredSet, values: pd.DataFrame) -> pd.DataFrame:
    scores = dict(iter(values.groupby(SYSTEM)))
    systems = [system for system in test_set.systems if key_of(system) in scores]
    against = {key: other for key, other in test_set.references.items() if key in scores}
    tests = tested(measurements, test_set, {key: key_of(other) for key, other in against.items()})
    fact_names = ("encoder.label", "system", "method", *SYSTEM, "encoder.adjusted", "encoder.size", "name")
    lines = []
    for facts, column in product(systems, values):
        key = key_of(facts)
        numbers = scores[key][column].dropna()
        if len(numbers):
            line = {**test_set.about, **{name: facts[name] for name in fact_names}, "column": column}
            line |= {"mean": numbers.mean(), "std": numbers.std(), "units": len(numbers)}
            test = tests.get((key, column))
            lines.append(line | ({"against": against[key]["name"], **test.numbers()} if test else {}))
    return pd.DataFrame(lines).reindex(columns=list(dict.fromkeys([*lines[0], "against", *NUMBERS])))


def _lines(data: pd.DataFrame, heads: list[str], columns: Sequence[str]) -> list[tuple[TableCell, ...]]:
    lines = []
    for _, group in data.assign(cell=_shown(data)).groupby(SYSTEM, sort=False):
        line = dict(zip(group["column"], group["cell"], strict=True))
        against = group["against"].dropna()
        numbers = (line.get(name, TableCell("–")) for name in columns)
        lines.append((*cells(*group[heads].iloc[0]), *numbers, TableCell(next(iter(against), ""))))
    return lines


def _shown(data: pd.DataFrame) -> list[TableCell]:
    """Return the cell of each number; the best of several systems in a column is highlighted."""
    rounded_means = data["mean"].round(3)
    by = rounded_means.groupby([data["metric"], data["column"]])
    best = (rounded_means == by.transform("max")) & (by.transform("size") > 1) & (data["column"] != GAP)
    cells_of = zip(data["mean"], data["std"], data["mark"].astype(object).fillna(""), best, strict=True)
    return [
        TableCell(
            f"{plus_minus(mean, std)} {mark}".strip(),
            "best" if first else "",
            MEANING[mark].format(unit="seed") if mark else "",
        )
        for mean, std, mark, first in cells_of
    ]


def _head(test_set: ScoredSet, column: str) -> TableCell:
    text = language(column) if test_set.columns.get(column) == (column,) else column
    return (
        TableCell(f"{text} ★", "source", "the source language")
        if column in test_set.sources
        else TableCell(text)
    )


def _notes(test_set: ScoredSet, data: pd.DataFrame) -> str:
    """Explain the marks and columns that a table of scores has."""
    unit = UNITS[test_set.unit]
    tests = data[data["difference"].notna()]
    test_count = max(tests.groupby("metric")["p_value"].count(), default=0)
    scope = "in this table" if data["metric"].nunique() == 1 else "of each measure"
    targets, unseen_names = (and_list(map(language, codes)) for codes in (test_set.targets, test_set.unseen))
    names = [TESTS[name] for name in tests["test"].unique() if name]
    parts = {
        "Bold: best of a column. ★: the source. Each target column has the models trained for that target, "
        "or for none.": True,
        f"Gap: source minus mean of {targets}.": GAP in set(data["column"]),
        f"Unseen: {unseen_names}, for which no model here was trained.": test_set.unseen,
        "· paired: each input next to its translation; · translated: the translation alone.": (
            (test_set.rows["inputs"] != test_set.about["mixed"]).any()
        ),
        "Majority: the score of the most frequent label.": test_set.rows["baseline"].notna().any(),
        f"{SURE} {MEANING[SURE].format(unit=unit)}: p < 0.05 by the test that crosses {unit}s and examples, "
        f"after Holm's correction over {count(test_count, 'test')} {scope}.": SURE in set(data["mark"]),
        f"{ON_EXAMPLES} {MEANING[ON_EXAMPLES].format(unit=unit)} ({and_list(names)}; Holm too).": (
            ON_EXAMPLES in set(data["mark"])
        ),
        f"One {unit} cannot show what other {unit}s would give: no {SURE} is possible.": (
            len(tests) and not test_count
        ),
        f"No predictions were kept: tests are over {unit}s alone.": len(tests) and not names,
    }
    return " ".join([*(text for text, applies in parts.items() if applies), *_undecided(test_set)])


def _undecided(test_set: ScoredSet) -> list[str]:
    """Name the systems without a baseline, with the reason: several are possible, or none is."""
    names = {key_of(system): system["name"] for system in test_set.systems}
    undecided_baselines = {
        names[key]: [other["name"] for other in candidates]
        for key, candidates in test_set.candidates.items()
        if len(candidates) > 1
    }
    references = {key_of(system) for system in test_set.systems if system["reference"]}
    alone = [
        names[key] for key, others in test_set.candidates.items() if not others and key not in references
    ]
    without = (
        f"Compared with none, since no baseline has equal hyper-parameters: {and_list(alone)}. Their tables "
        "of the recipe can name one (against)."
    )
    return [
        *([without] if alone and references else []),
        *(
            f"{name} is compared with none: {and_list(baselines)} differ from it in their method alone. Name "
            "one in its table of the recipe (against)."
            for name, baselines in undecided_baselines.items()
        ),
    ]
