"""The JSON schemas of recipes and of descriptions of corpora, for editors that check and complete TOML."""

from typing import Any

from isogloss.core.errors import unknown_name
from isogloss.experiments.checking import adapter
from isogloss.experiments.descriptions import Description
from isogloss.experiments.recipe import Recipe

SCHEMAS: dict[str, type[Any]] = {"recipe": Recipe, "corpus": Description}

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(what: str = "recipe") -> dict[str, Any]:
    """Return a JSON schema: pydantic's, with the help text of every field.

    Tables of a recipe may have fields from what it extends, or from [pretrain]: none is required. The fields
    of methods, diagnostics and the like are checked by a plan alone, as plug-ins add to them.
    """
    if what not in SCHEMAS:
        raise unknown_name("schema", "schema", what, SCHEMAS)
    own = adapter(SCHEMAS[what])  # type: ignore[arg-type]
    found: dict[str, Any] = {"$schema": DIALECT, **own.json_schema()}
    if what == "recipe":
        found["anyOf"] = [{"required": found.pop("required")}, {"required": ["extends"]}]
        for table in found["$defs"].values():
            table.pop("required", None)
    return found
