"""The verbs about recipes: listing and copying packaged ones, their schema, and writing a first one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from isogloss.cli.display import show_line
from isogloss.cli.options import (
    SETUP,
    HelpfulGroup,
    show_list,
    verb,
    with_groups,
)
from isogloss.core.errors import ConfigError, check_named

if TYPE_CHECKING:
    pass

recipe_verbs = typer.Typer()
recipes_app = typer.Typer(
    cls=HelpfulGroup, help="The packaged recipes.", invoke_without_command=True, suggest_commands=False
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"


@recipes_app.callback()
@with_groups
def recipes(context: typer.Context, as_json: bool = False) -> None:
    """List the recipes that come with the package."""
    show_list(context, "recipes", as_json=as_json)


@verb(recipes_app, SETUP, "isogloss recipes copy quickstart --to mine.toml")
@with_groups
def copy(
    name: str,
    to: Path | None = None,
    force: bool = False,
) -> None:
    """Copy a packaged recipe, with its comments, as the start of your recipe.

    The published numbers of a paper are copied with it.
    """
    import tomllib

    from isogloss.recipes.recipe_text import PUBLISHED, packaged_recipes, published_file

    paths = packaged_recipes()
    check_named("recipes copy", "recipe", paths, name)
    file = to or Path(paths[name].name)
    text = paths[name].read_text(encoding="utf-8")
    numbers = tomllib.loads(text).get(PUBLISHED)
    if numbers:
        refuse_existing(file, force=force)
        write_recipe(file.with_name(numbers), published_file(name, numbers).read_text("utf-8"), force=force)
    write_recipe(file, text, force=force)


@verb(recipe_verbs, SETUP, "isogloss schema recipe > recipe.schema.json")
@with_groups
def schema(
    what: str = "recipe",
) -> None:
    """Print the JSON schema of recipes, or of descriptions of corpora, for editors."""
    show_line(json.dumps(schema_of(what), indent=1, ensure_ascii=False))


def schema_of(subject: str) -> dict[str, object]:
    """Return pydantic's JSON schema of recipes or of corpora, with the help text of every field.

    No table of a recipe requires a field, because fields may come from the recipe it extends, or from
    [pretrain]. The fields of methods, diagnostics and other plug-in types are only checked by a plan.
    """
    from isogloss.data.corpora.own import DESCRIBERS
    from isogloss.recipes.checking import adapter
    from isogloss.recipes.recipe import Recipe

    kinds: dict[str, type[object]] = {"recipe": Recipe}
    kinds.update(("corpus", describer.fields) for describer in DESCRIBERS.values())
    check_named("schema", "schema", kinds, subject)
    schema_: dict[str, Any] = {"$schema": DIALECT, **adapter(kinds[subject]).json_schema()}  # type: ignore[arg-type]
    if subject == "recipe":
        schema_["anyOf"] = [{"required": schema_.pop("required")}, {"required": ["extends"]}]
        for table in schema_["$defs"].values():
            table.pop("required", None)
    return schema_


def write_recipe(file: Path, text: str, *, force: bool) -> None:
    """Write the file of a recipe, and print its path. Raises ConfigError for a file that exists."""
    from isogloss.core.atomic_files import write_text

    refuse_existing(file, force=force)
    write_text(file.parent, file.name, text)
    show_line(file)


def refuse_existing(file: Path, *, force: bool) -> None:
    """Raise ConfigError for a folder, or for a file that exists unless it may be replaced."""
    if file.is_dir():
        raise ConfigError(
            f"{file}: this is a folder, but a recipe is a file. Give one, as in {file}/my.toml."
        )
    if file.exists() and not force:
        raise ConfigError(f"{file}: this file exists. Choose a new name, or replace it with --force.")
