"""Tables of a recipe that features plan, such as [align]."""

from isogloss.core.errors import missing_feature
from isogloss.core.registry import Registry

RECIPE_TABLES: Registry[object] = Registry({}, features="recipe-tables")
"""Planners of the tables of a recipe, by the name of the table. Each has an interface of its own, stated in
the module of ``planning`` that asks for it."""


def find_planner(table: str) -> object:
    """Return what plans a table of a recipe. Raises ConfigError if its feature is missing."""
    if table not in RECIPE_TABLES:
        raise missing_feature(
            f"[{table}]", "Install isogloss again, or remove what needs it from the recipe."
        )
    return RECIPE_TABLES[table]
