"""The verbs about recipes: listing and copying packaged ones, their schema, and a first one of one's own."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from isogloss.cli.display import show_line
from isogloss.cli.options import Data, Debug, Json, Quiet
from isogloss.core.errors import ConfigError, unknown_name

recipe_verbs = typer.Typer()
recipes_app = typer.Typer(help="The packaged recipes.", invoke_without_command=True, suggest_commands=False)

DIALECT = "https://json-schema.org/draft/2020-12/schema"

Force = Annotated[bool, typer.Option("--force", help="Replace the file.")]


@recipes_app.callback()
def recipes(context: typer.Context, as_json: Json = False, debug: Debug = False) -> None:  # noqa: ARG001
    """List the recipes that come with the package."""
    if context.invoked_subcommand is None:
        from isogloss.cli.display import Display
        from isogloss.cli.lists import LISTS

        Display(as_json=as_json).table(*LISTS["recipes"](Path()))


@recipes_app.command()
def copy(
    name: Annotated[str, typer.Argument(help="A packaged recipe; isogloss recipes lists them.")],
    to: Annotated[Path | None, typer.Option("--to", help="The file; default NAME.toml.")] = None,
    force: Force = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Copy a packaged recipe, with its comments, to start one of your own from it."""
    from isogloss.experiments.recipe_text import packaged_recipes

    packaged = packaged_recipes()
    if name not in packaged:
        raise unknown_name("recipes copy", "recipe", name, packaged)
    _write(to or Path(f"{name}.toml"), packaged[name], force=force)


@recipe_verbs.command()
def schema(
    what: Annotated[str, typer.Argument(help="recipe, or corpus: a description of one.")] = "recipe",
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Print the JSON schema of recipes, or of descriptions of corpora, for editors."""
    show_line(json.dumps(schema_of(what), indent=1, ensure_ascii=False))


def schema_of(what: str) -> dict[str, Any]:
    """Return a JSON schema: pydantic's, with the help text of every field.

    Tables of a recipe may have fields from what it extends, or from [pretrain]: none is required. The fields
    of methods, diagnostics and the like are checked by a plan alone, as plug-ins add to them.
    """
    from isogloss.experiments.checking import adapter
    from isogloss.experiments.descriptions import Description
    from isogloss.experiments.recipe import Recipe

    kinds: dict[str, type[Any]] = {"recipe": Recipe, "corpus": Description}
    if what not in kinds:
        raise unknown_name("schema", "schema", what, kinds)
    found: dict[str, Any] = {"$schema": DIALECT, **adapter(kinds[what]).json_schema()}  # type: ignore[arg-type]
    if what == "recipe":
        found["anyOf"] = [{"required": found.pop("required")}, {"required": ["extends"]}]
        for table in found["$defs"].values():
            table.pop("required", None)
    return found


@recipe_verbs.command()
def init(
    file: Annotated[Path, typer.Argument(help="The recipe to write.")] = Path("recipe.toml"),
    corpus: Annotated[str, typer.Option("--corpus", help="A corpus with labels, or a TOML file.")] = "",
    task: Annotated[str, typer.Option("--task", help="Where the corpus has several.")] = "",
    source: Annotated[str, typer.Option("--source", help="The language trained on.")] = "",
    target: Annotated[
        list[str] | None, typer.Option("--target", help="Languages: --target sw,de or one at a time.")
    ] = None,
    encoder: Annotated[str, typer.Option("--encoder", help="shipped, a folder, or a hub name.")] = "",
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Methods: --method source-only,bilingual.")
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many.")] = 3,
    data: Data = None,
    force: Force = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a first recipe, with comments, that plans as it is; a terminal is asked for what is not given.

    Without any option the recipe is about the built-in languages.
    """
    from isogloss.experiments.starting import Answers, first_recipe

    _refuse_existing(file, force=force)
    usual = Answers()
    asks = _is_terminal() and not quiet

    def answer(given: str, question: str, default: str) -> str:
        return given or (typer.prompt(question, default=default, err=True) if asks else default)

    answers = Answers(
        corpus=answer(corpus, "Corpus with labels", usual.corpus),
        task=task,
        source=answer(source, "Language to train on", usual.source),
        targets=_several(answer(",".join(target or ()), "Languages to transfer to", ",".join(usual.targets))),
        encoder=answer(encoder, "Encoder", usual.encoder),
        methods=_several(",".join(method or ())) or usual.methods,
        seeds=seeds,
    )
    text = first_recipe(answers)
    _check_plan(text, file, data)
    _write(file, text, force=force)


def _check_plan(text: str, file: Path, data: str | None) -> None:
    """Raise ConfigError or DataError unless a recipe can be planned where its file will be."""
    from isogloss.core.errors import InputError
    from isogloss.core.records import write_text
    from isogloss.experiments.plan import plan_recipe

    trial = file.with_name(f".{file.stem}-trial.toml")
    try:
        write_text(trial, text)
        plan_recipe(str(trial), out=file.parent / "runs", data=data)
    except InputError as error:
        said = str(error).replace(trial.name, file.name)
        raise type(error)(f"init: nothing is written, for it could not be planned: {said}") from error
    finally:
        trial.unlink(missing_ok=True)


def _several(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _write(file: Path, text: str, *, force: bool) -> None:
    from isogloss.core.records import write_text

    _refuse_existing(file, force=force)
    write_text(file, text)
    show_line(file)


def _refuse_existing(file: Path, *, force: bool) -> None:
    if file.exists() and not force:
        raise ConfigError(f"{file}: this file is there already. Name another, or replace it by --force.")


def _is_terminal() -> bool:
    return sys.stdin.isatty()
