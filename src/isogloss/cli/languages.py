"""The verbs about the built-in languages."""

from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli.display import show_line
from isogloss.cli.options import Debug, Json, Quiet

languages_app = typer.Typer(
    help="The built-in languages.", invoke_without_command=True, suggest_commands=False
)


@languages_app.callback()
def languages(
    context: typer.Context,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the built-in languages."""
    if context.invoked_subcommand is None:
        from isogloss.cli.display import Display
        from isogloss.cli.lists import LISTS

        Display(as_json=as_json).table(*LISTS["languages"](Path()))


@languages_app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="Where the files go.")],
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the built-in languages as files, each corpus in its native format."""
    from isogloss.cli.display import Display
    from isogloss.data.built_in import BuiltInFolder

    with Display(quiet=quiet) as display:
        BuiltInFolder().export(folder, display.tell)
    show_line(folder)
