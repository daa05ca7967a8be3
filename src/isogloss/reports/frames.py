"""Rows, column names and groups of tables, with the types that our tables have."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import pandas as pd


def list_rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as dicts by column name."""
    return cast("list[dict[str, Any]]", table.to_dict("records"))


def list_columns(table: pd.DataFrame) -> list[str]:
    """Return the column names of a table in order."""
    return [str(name) for name in table.columns]


def split_by(
    table: pd.DataFrame, columns: Sequence[str], *, sort: bool = True, dropna: bool = True
) -> Iterator[tuple[tuple[str, ...], pd.DataFrame]]:
    """Yield each combination of values of columns with texts, and the rows that have it."""
    groups = table.groupby(list(columns), sort=sort, dropna=dropna)
    return cast("Iterator[tuple[tuple[str, ...], pd.DataFrame]]", iter(groups))


def add_map_languages(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the languages of each map: the more, the larger the share of variance between them."""
    columns = ["run", "model", "layer"]
    centroids = rows[rows["what"] == "centroid"]
    codes = centroids.sort_values("language").groupby(columns)["language"].agg(" ".join)
    return rows.join(codes.rename("languages"), on=columns)
