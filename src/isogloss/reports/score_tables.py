"""Tables of scores (a row per system, a column per test language) and of all other measures of a test set."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from operator import attrgetter, itemgetter
from string import ascii_lowercase

import numpy as np
import pandas as pd

from isogloss.reports.checks import UNITS
from isogloss.reports.comparison import NUMBERS, ON_EXAMPLES, SURE, SYSTEM, TESTS
from isogloss.reports.comparison_cells import MEANING, references_of, tests_table
from isogloss.reports.frames import list_columns, split_by
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import (
    and_list,
    count,
    language,
    list_languages,
    percent,
    plus_minus,
    slug,
    test_set_name,
)
from isogloss.reports.scores import GAP, ScoredSet, compare_with_references, key_of, scored_sets, values_of
from isogloss.reports.tables import Table, TableCell, cells


def score_tables(measurements: Measurements) -> list[Table]:
    """Return a table per test set, a folded one of all other measures of each, and one of all tests."""
    sets_by_test: dict[tuple[str, ...], list[ScoredSet]] = {}
    for test_set in scored_sets(measurements):
        metric = test_set.about["metric"] if test_set.rows["main"].all() else ""
        columns = {**test_set.about, "metric": metric}
        sets_by_test.setdefault(tuple(columns.values()), []).append(test_set)
    tables = [
        _score_table(measurements, *test_sets)
        if len(test_sets) == 1
        else _measures_table(measurements, test_sets)
        for test_sets in sets_by_test.values()
    ]
    if not tables:
        return []
    data = pd.concat([table.data for table in tables])
    return [*sorted(tables, key=attrgetter("folded")), *tests_table(data[data["difference"].notna()])]


def _score_table(measurements: Measurements, test_set: ScoredSet) -> Table:
    values = values_of(test_set)
    columns = test_set.about
    rows = test_set.rows
    data = _data(measurements, test_set, values)
    title, heads = _heading(test_set)
    encoders = heads.pop("encoder.label", "")
    letters = _letters(data) if data["against"].nunique() > 1 else {}
    against = ["vs."] if letters else []
    axis = _axis(values.drop(columns=GAP, errors="ignore"))
    lines = _lines(data, values, letters, axis)
    width = 1 + len(values.columns) + len(against)
    table_rows: list[tuple[TableCell, ...]] = []
    for encoder, encoder_lines in lines.items():
        if encoders:
            table_rows.append((TableCell(encoder, "group"), *[TableCell("")] * (width - 1)))
        table_rows += [line if against else line[:-1] for line in encoder_lines]
    majority = rows.dropna(subset=["baseline"]).groupby("language")["baseline"].first().map(percent)
    if len(majority):
        texts = ["majority", *(majority.get(name, "–") for name in values), *[""] * len(against)]
        table_rows.append(tuple(TableCell(text, "baseline") for text in texts))
    low, high = (f"{100 * end:.0f}" for end in axis)
    baselines = "; ".join(f"{letter}: {name}" for name, letter in letters.items())
    return Table(
        name=slug("scores", *columns.values()),
        title=f"{title}: {columns['metric']} on {columns['split']}",
        caption=(
            f"{columns['metric']} in percent, mean ± standard deviation over {test_set.units_of(data)}. A "
            f"dot for each {UNITS[test_set.unit]}, on an axis from {low} to {high}."
            f"{references_of(data)}{f' Differences are tested against {baselines}.' if letters else ''}"
        ),
        notes=_notes(test_set, data),
        header=(
            *cells("method"),
            *(_head(test_set, name) for name in list_columns(values)),
            *cells(*against),
        ),
        align="l" + "r" * len(values.columns) + "l" * len(against),
        rows=tuple(table_rows),
        data=data,
        folded=not rows[["main", "best"]].all(axis=None),
    )


def _letters(data: pd.DataFrame) -> dict[str, str]:
    """Return a letter for each baseline, in order of appearance."""
    names = dict.fromkeys(data["against"].dropna())
    return {name: _letter(index) for index, name in enumerate(names)}


def _letter(index: int) -> str:
    prefix_index, letter_index = divmod(index, len(ascii_lowercase))
    return ascii_lowercase[letter_index] * (prefix_index + 1)


def _axis(values: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of the axis of all scores: multiples of ten percent, at least ten apart."""
    low = math.floor(10 * float(np.nanmin(values.to_numpy()))) / 10
    return low, max(math.ceil(10 * float(np.nanmax(values.to_numpy()))) / 10, low + 0.1)


def _measures_table(measurements: Measurements, test_sets: Sequence[ScoredSet]) -> Table:
    """Return the table of several measures of one test set: a row for each language and system."""
    first_set, *_ = test_sets
    data = pd.concat(
        [_data(measurements, test_set, values_of(test_set)) for test_set in test_sets], ignore_index=True
    )
    title, heads = _heading(first_set)
    measures = list(dict.fromkeys(data["metric"]))
    against = ["compared with"] if data["against"].nunique() > 1 else []
    lines = []
    for column, column_data in data.assign(cell=_format_cells(data)).groupby("column", sort=False):
        for _, group in column_data.groupby(SYSTEM, sort=False):
            numbers = dict(zip(group["metric"], group["cell"], strict=True))
            measure_cells = (numbers.get(measure, TableCell("–")) for measure in measures)
            references = [TableCell(next(iter(group["against"].dropna()), "")) for _ in against]
            lines.append(
                (
                    _head(first_set, str(column)),
                    *cells(*group[list(heads)].iloc[0]),
                    *measure_cells,
                    *references,
                )
            )
    return Table(
        name=slug("measures", *{**first_set.about, "metric": ""}.values()),
        title=f"{title}: {and_list(measures)} on {first_set.about['split']}",
        caption=(
            f"{and_list(measures)} in percent, mean ± standard deviation over {first_set.units_of(data)}."
            f"{references_of(data)}"
        ),
        notes=_notes(first_set, data),
        header=cells("language", *heads.values(), *measures, *against),
        align="l" * (1 + len(heads)) + "r" * len(measures) + "l" * len(against),
        rows=tuple(lines),
        data=data,
        folded=True,
    )


def _heading(test_set: ScoredSet) -> tuple[str, dict[str, str]]:
    """Return the name of a test set and its source, and the heads of the columns that name a system."""
    rows, heads = test_set.rows, {"encoder.label": "encoder", "system": "method"}
    source = list_languages(test_set.sources)
    title = [test_set_name(test_set.about), *[f"source {source}"] * bool(source)]
    if rows["encoder"].nunique() == 1:
        title.append(rows["encoder.label"].iloc[0])
        del heads["encoder.label"]
    return ", ".join(title), heads


def _data(measurements: Measurements, test_set: ScoredSet, values: pd.DataFrame) -> pd.DataFrame:
    scores = dict(split_by(values, SYSTEM))
    systems = [system for system in test_set.systems if key_of(system) in scores]
    against = {key: reference for key, reference in test_set.references.items() if key in scores}
    tests = compare_with_references(
        measurements, test_set, {key: key_of(reference) for key, reference in against.items()}
    )
    columns = ("encoder.label", "system", "method", *SYSTEM, "encoder.adjusted", "encoder.size", "name")
    lines = []
    for facts, column in product(systems, list_columns(values)):
        key = key_of(facts)
        numbers = scores[key][column].dropna()
        if len(numbers):
            line = {**test_set.about, **{name: facts[name] for name in columns}, "column": column}
            line |= {"mean": numbers.mean(), "std": numbers.std(), "units": len(numbers)}
            test = tests.get((key, column))
            if test:
                line |= {"against": against[key]["name"], **test.numbers()}
            lines.append(line)
    return pd.DataFrame(lines).reindex(columns=list(dict.fromkeys([*lines[0], "against", *NUMBERS])))


def _lines(
    data: pd.DataFrame, values: pd.DataFrame, letters: Mapping[str, str], axis: tuple[float, float]
) -> dict[str, list[tuple[TableCell, ...]]]:
    """Return the rows by encoder: systems by falling mean, each with letters of itself and its baseline."""
    lines: dict[str, list[tuple[float, tuple[TableCell, ...]]]] = {}
    system_values = dict(split_by(values, SYSTEM))
    for key, group in split_by(data.assign(cell=_format_cells(data)), SYSTEM, sort=False):
        system, first_row = system_values[tuple(str(part) for part in key)], group.iloc[0]
        cells_by_column = dict(zip(group["column"], group["cell"], strict=True))
        numbers = [
            _with_dots(cells_by_column[name], system[name], axis)
            if name in cells_by_column
            else TableCell("–")
            for name in list_columns(values)
        ]
        reference_text = f" ({letters[first_row['name']]})" if first_row["name"] in letters else ""
        baseline = next(iter(group["against"].dropna()), "")
        against = TableCell(letters.get(baseline, ""), note=baseline)
        means = group.loc[group["column"] != GAP, "mean"]
        line = (TableCell(f"{first_row['system'] or first_row['name']}{reference_text}"), *numbers, against)
        lines.setdefault(first_row["encoder.label"], []).append((-float(means.mean()), line))
    return {
        encoder: [line for _, line in sorted(encoder_lines, key=itemgetter(0))]
        for encoder, encoder_lines in lines.items()
    }


def _with_dots(cell: TableCell, values: "pd.Series[float]", axis: tuple[float, float]) -> TableCell:
    """Add a dot for each unit to the cell of a mean.

    The gap has no dots, because it is on no axis of scores.
    """
    if values.name == GAP:
        return cell
    low, high = axis
    known_values = values.dropna()
    units = ", ".join(
        f"{unit} {percent(value)}" for unit, value in zip(_units(known_values), known_values, strict=True)
    )
    note = f"{cell.note}; {units}" if cell.note else units
    return replace(cell, dots=tuple((value - low) / (high - low) for value in known_values), note=note)


def _units(values: "pd.Series[float]") -> list[str]:
    """Return the names of the units in the last level of an index: seed 0, seed 1."""
    unit = UNITS.get(str(values.index.names[-1]), str(values.index.names[-1]))
    return [f"{unit} {key}" for key in values.index.get_level_values(-1)]


def _format_cells(data: pd.DataFrame) -> pd.Series:
    """Return the cell of each number. The best of several systems in a column is highlighted."""
    rounded_means = data["mean"].round(3)
    groups = rounded_means.groupby([data["metric"], data["column"]])
    is_best = (
        (rounded_means == groups.transform("max")) & (groups.transform("size") > 1) & (data["column"] != GAP)
    )
    cells_of = zip(data["mean"], data["std"], data["mark"].astype(object).fillna(""), is_best, strict=True)
    table_cells = [
        TableCell(
            f"{plus_minus(mean, std)} {mark}".strip(),
            "best" if is_first else "",
            MEANING[mark].format(unit="seed") if mark else "",
        )
        for mean, std, mark, is_first in cells_of
    ]
    return pd.Series(table_cells, data.index, dtype=object)


def _head(test_set: ScoredSet, column: str) -> TableCell:
    text = language(column) if test_set.columns.get(column) == (column,) else column
    return (
        TableCell(f"{text} ★", "source", "the source language")
        if column in test_set.sources
        else TableCell(text)
    )


def _notes(test_set: ScoredSet, data: pd.DataFrame) -> str:
    """Explain the marks and columns that a table of scores has."""
    unit, tests = UNITS[test_set.unit], data[data["difference"].notna()]
    crossed_count = max(tests.groupby("metric")["p_value"].count(), default=0)
    scope = "in this table" if data["metric"].nunique() == 1 else "of each measure"
    targets, unseen_languages = (list_languages(codes) for codes in (test_set.targets, test_set.unseen))
    names = [TESTS[name] for name in tests["test"].unique() if name]
    parts = {
        "Bold: best of a column. ★: the source. Each target column has the models trained for that target, "
        "or for none.": True,
        f"Gap: source minus mean of {targets}.": GAP in set(data["column"]),
        f"Unseen: {unseen_languages}, for which no model here was trained.": test_set.unseen,
        "· paired: each input next to its translation; · translated: the translation alone.": (
            (test_set.rows["inputs"] != test_set.about["mixed"]).any()
        ),
        "Majority: the score of the most frequent label.": test_set.rows["baseline"].notna().any(),
        f"{SURE} {MEANING[SURE].format(unit=unit)}: p < 0.05 by the test that crosses {unit}s and examples, "
        f"after Holm's correction over {count(crossed_count, 'test')} {scope}.": SURE in set(data["mark"]),
        f"{ON_EXAMPLES} {MEANING[ON_EXAMPLES].format(unit=unit)} ({and_list(names)}; Holm too).": (
            ON_EXAMPLES in set(data["mark"])
        ),
        f"One {unit} cannot show what other {unit}s would give: no {SURE} is possible.": (
            len(tests) and not crossed_count
        ),
        f"No predictions were kept: tests are over {unit}s alone.": len(tests) and not names,
    }
    return " ".join([*(text for text, applies in parts.items() if applies), *_describe_unmatched(test_set)])


def _describe_unmatched(test_set: ScoredSet) -> list[str]:
    """Name the systems without a baseline, with the reason: several are possible, or none is."""
    names = {key_of(system): system["name"] for system in test_set.systems}
    candidate_names = {
        names[key]: [candidate["name"] for candidate in candidates]
        for key, candidates in test_set.candidates.items()
        if len(candidates) > 1
    }
    references = {key_of(system) for system in test_set.systems if system["reference"]}
    names_without = [
        names[key] for key, others in test_set.candidates.items() if not others and key not in references
    ]
    remark = (
        f"Compared with none, since no baseline has equal hyper-parameters: {and_list(names_without)}. Their "
        "tables of the recipe can name one (against)."
    )
    return [
        *([remark] if names_without and references else []),
        *(
            f"{name} is compared with none: {and_list(names_of_baselines)} differ from it in their method "
            f"alone. Name one in its table of the recipe (against)."
            for name, names_of_baselines in candidate_names.items()
        ),
    ]
