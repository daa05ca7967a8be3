"""What several tables of a recipe have in common, said once: [pretrain] for every [encoder.pretrain]."""

from typing import Any, TypeGuard

from isogloss.core.errors import ConfigError

Table = dict[str, Any]


def with_shared(body: Table, where: str) -> Table:
    """Return a recipe's body with the fields of [pretrain] in every encoder.pretrain table that lacks them.

    A table within (architecture, method, modules, lines) is completed field by field. What is no table is
    left for the recipe's own checks to find.
    """
    shared: Any = body.get("pretrain")
    encoder: Any = body.get("encoder")
    if not shared or not isinstance(shared, dict):
        return body
    tables = encoder if isinstance(encoder, list) else [encoder]
    if not any(map(_is_pretrained_here, tables)):
        raise ConfigError(
            f"{where}: pretrain: it says what encoder.pretrain tables have in common, and there is none. "
            f"Write [encoder.pretrain] for one encoder, or [[encoder]] with pretrain for each of several."
        )
    filled = [
        {**one, "pretrain": completed(one["pretrain"], shared)} if _is_pretrained_here(one) else one
        for one in tables
    ]
    return {**body, "encoder": filled if isinstance(encoder, list) else filled[0]}


def completed(own: Table, shared: Table) -> Table:
    """Return a table with what it lacks taken from another, tables within likewise; its own value wins."""
    found = {**shared, **own}
    for key in own.keys() & shared.keys():
        if isinstance(own[key], dict) and isinstance(shared[key], dict):
            found[key] = completed(own[key], shared[key])
    return found


def _is_pretrained_here(table: object) -> TypeGuard[Table]:
    return isinstance(table, dict) and isinstance(table.get("pretrain"), dict)
