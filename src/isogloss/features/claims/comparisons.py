"""Comparisons of systems in the claims: replicates, nearest settings, and rows that belong together."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isogloss.metrics.ranks import spearman
from isogloss.reports.comparison import FEWEST, row_keys
from isogloss.reports.measurements import Measurements
from isogloss.reports.names import name_systems


def select_shared(name: str, *sides: pd.DataFrame) -> list[pd.DataFrame]:
    """Return of each side of a comparison the rows whose value in a column all sides have."""
    shared = set.intersection(*(set(side[name].astype(object).map(str)) for side in sides))
    return [side[side[name].astype(object).map(str).isin(shared)] for side in sides]


def replicates(*sides: pd.DataFrame) -> tuple[str, list[pd.DataFrame]]:
    """Return the unit of replication on one encoder, and each side's rows for the comparison.

    Units are the pretraining seeds that all sides have. With fewer than FEWEST of them, units are the
    fine-tuning seeds of the pretraining seed with most.
    """
    shared = select_shared("encoder.run", *sides)
    models = shared[0].groupby("encoder.run")["seed"].nunique()
    if len(models) >= FEWEST:
        return "encoder.seed", shared
    most_frequent = models.index[models == models.max()][:1]
    return "seed", [side[side["encoder.run"].isin(most_frequent)] for side in shared]


def drop_pilots(rows: pd.DataFrame, columns: Sequence[str], system: Sequence[str], unit: str) -> pd.DataFrame:
    """Return the rows of systems with FEWEST units or more, where a group has such a system, else all."""
    units = rows.groupby(row_keys(rows, [*columns, *system]))[unit].transform("nunique")
    most_units = units.groupby(row_keys(rows, columns)).transform("max")
    return rows[(units >= FEWEST) | (most_units < FEWEST)]


def drop_strays(rows: pd.DataFrame, columns: Sequence[str], measured_on: Sequence[str]) -> pd.DataFrame:
    """Return the rows without rare measurements: another language, split, corpus or layer of a few models.

    Within a group of equal ``columns``, values of ``measured_on`` need half as many rows as the most frequent
    values. A measurement that the other models of a comparison lack can decide nothing.
    """
    if rows.empty:
        return rows
    columns = [name for name in columns if name in rows]
    measured_on = [name for name in measured_on if name in rows]
    keys = row_keys(rows, [*columns, *measured_on])
    sizes = keys.groupby(keys).transform("size")
    largest_sizes = sizes.groupby(row_keys(rows, columns)).transform("max")
    return rows[2 * sizes >= largest_sizes]


def nearest(rows: pd.DataFrame, columns: Sequence[str], settings: Mapping[str, object]) -> pd.DataFrame:
    """Return the rows of each group with the fewest settings that differ from a paper's.

    A setting that is None in the paper must be missing.
    """
    unlike = unlike_settings(rows, settings)
    keys = row_keys(rows, columns)
    return rows[unlike == unlike.groupby(keys).transform("min")] if len(rows) else rows


def unlike_settings(rows: pd.DataFrame, settings: Mapping[str, Any]) -> "pd.Series[int]":
    """Count the settings of each row that differ from a paper's. None stands for a missing setting."""
    unlike = pd.Series(0, index=rows.index)
    for name, value in settings.items():
        if name in rows:
            column = rows[name].astype(object)
            unlike += column.notna() & (column != "") if value is None else column.fillna(value) != value
    return unlike


def rank_correlations(
    rows: pd.DataFrame, x: str, y: str, unit: Sequence[str], group_columns: Sequence[str]
) -> pd.Series:
    """Return Spearman's ρ of two columns for each unit, averaged over groups of other columns.

    Groups of fewer than FEWEST rows are skipped; ρ is 0 where a column is constant.
    """
    key_columns = [*unit, *group_columns]
    several = rows[rows.groupby(key_columns, dropna=False)[x].transform("size") >= FEWEST]
    if several.empty:
        return pd.Series(dtype=float)
    groups = several.groupby(key_columns, dropna=False)[[x, y]]
    rhos = groups.apply(lambda group: np.nan_to_num(spearman(list(group[x]), list(group[y])).rho))
    means: "pd.Series[float]" = rhos.groupby(level=list(unit)).mean()
    return means


def labelled_groups(
    measurements: Measurements, rows: pd.DataFrame, columns_of_group: Sequence[str]
) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield groups of rows in the order of some columns, each with words that distinguish it from the others.

    Rows have the names of ``names.name_systems`` added.
    """
    if rows.empty:
        return
    named_rows = name_systems(rows, measurements.display_names)
    label_columns = {"task": "task", "source": "source", "encoder": "encoder.label", "way": "system"}
    label_columns |= {name: name for name in ("corpus", "treebank", "split", "metric")}
    columns = [label_columns[name] for name in label_columns if name in columns_of_group]
    distinguishing = [
        name for name in columns if name in ("task", "source") or named_rows[name].nunique() > 1
    ]
    for _, group in named_rows.groupby(list(columns_of_group), dropna=False):
        yield " ".join(str(group[name].iloc[0]) for name in distinguishing if group[name].iloc[0]), group
