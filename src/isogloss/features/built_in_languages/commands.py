"""The commands about the built-in languages."""

from pathlib import Path

import typer

from isogloss.cli.display import Display, show_line
from isogloss.cli.options import DATA, HelpfulGroup, show_list, verb, with_groups

languages_app = typer.Typer(
    cls=HelpfulGroup, help="The built-in languages.", invoke_without_command=True, suggest_commands=False
)
verbs = typer.Typer()
verbs.add_typer(languages_app, name="languages", rich_help_panel=DATA)


@languages_app.callback()
@with_groups
def languages(context: typer.Context, as_json: bool = False) -> None:
    """List the built-in languages."""
    show_list(context, "languages", as_json=as_json)


@verb(languages_app, DATA, "isogloss languages export built-in")
@with_groups
def export(folder: Path, quiet: bool = False) -> None:
    """Write the corpora of the built-in languages as files in their native formats."""
    from isogloss.features.built_in_languages import BuiltInLanguages

    with Display(quiet=quiet) as display:
        BuiltInLanguages().export(folder, display.on_progress)
    show_line(folder)
