"""The verbs of the command line, which convert options and call the functions that do the work."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from isogloss.cli.display import show_line
from isogloss.cli.model_verbs import model_verbs
from isogloss.cli.options import (
    SETUP,
    STUDY,
    ExecutionGroup,
    HelpfulGroup,
    OutputOptions,
    RecipeGroup,
    show_list,
    verb,
    with_groups,
)
from isogloss.cli.recipe_verbs import recipe_verbs, recipes_app
from isogloss.core import VERSION
from isogloss.core.errors import ConfigError, check_named
from isogloss.core.plug_ins import find_plug_in, package_named, plugged_names
from isogloss.core.registry import Registry
from isogloss.recipes.recipe_text import QUICKSTART


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"isogloss {VERSION}")
        raise typer.Exit


app = typer.Typer(
    name="isogloss",
    cls=HelpfulGroup,
    pretty_exceptions_enable=False,
    suggest_commands=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(model_verbs)
app.add_typer(recipes_app, name="recipes", rich_help_panel=SETUP)
claims_app = typer.Typer(
    cls=HelpfulGroup, help="The papers' claims.", invoke_without_command=True, suggest_commands=False
)
app.add_typer(claims_app, name="claims", rich_help_panel=STUDY)
app.add_typer(recipe_verbs)

VERBS: Registry[typer.Typer] = Registry({}, features="verbs")
"""Commands of features."""

for _name in VERBS:
    app.add_typer(VERBS[_name])


@app.callback()
def options_of_all(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", help="Print the version.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """Measure cross-lingual transfer: how well a model transfers, how reliably, and why."""


@verb(app, STUDY, "isogloss quickstart")
@with_groups
def quickstart(out: str | None = QUICKSTART, jobs: int = 0, *, output: OutputOptions) -> None:
    """Reproduce Wu et al. (2022) on the built-in languages (3 min): transfer, its reliability, and why."""
    from isogloss.cli.runs import run_and_report

    setup = RecipeGroup(out=out)
    execution = ExecutionGroup(jobs=jobs)
    run_and_report(["quickstart"], setup, execution, output, command="isogloss quickstart")


@verb(app, STUDY, "isogloss run quickstart --set grid.seeds=[0,1] --out runs/mine")
@with_groups
def run(
    recipes: list[str],
    setup: RecipeGroup,
    execution: ExecutionGroup,
    dry_run: bool = False,
    speed: float = 0,
    write_report: bool = True,
    *,
    output: OutputOptions,
) -> None:
    """Run a recipe, skipping finished runs, and write the report.

    Start the same command in other shells, or on machines that share the folder, to share the work.

    Exit codes: 0 all is done, 1 some runs failed, 2 invalid input, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP.
    """
    from isogloss.cli import runs
    from isogloss.engine.engines import parse_execution

    options = parse_execution(**execution.options())
    if dry_run:
        runs.print_plan(recipes, setup, speed=speed, as_json=output.as_json)
        return
    if speed:
        raise ConfigError("--speed estimates hours and needs --dry-run. Add --dry-run, or remove --speed.")
    make = runs.run_together if runs.were_started_together(options) else runs.run_and_report
    command = f"isogloss {' '.join(sys.argv[1:])}"
    make(recipes, setup, execution, output, report=write_report, command=command)


@verb(app, STUDY, "isogloss report runs/quickstart --open")
@with_groups
def report(
    folder: str,
    open_it: bool = False,
    style: str = "",
    *,
    output: OutputOptions,
) -> None:
    """Rewrite the report of a folder of runs from its records."""
    from isogloss import api
    from isogloss.cli.results import show_report
    from isogloss.reports.report import draw_figures

    with output.events as display:
        result = api.report(folder, on_progress=display.on_progress)
        if style:
            draw_figures(result.html.parent, style, display.on_progress)
    show_report(result, as_json=output.as_json)
    if open_it:
        import webbrowser

        webbrowser.open(result.html.resolve().as_uri())


@claims_app.callback()
@with_groups
def claims(context: typer.Context, as_json: bool = False) -> None:
    """List the papers' claims and the rules that judge them."""
    show_list(context, "claims", as_json=as_json)


@verb(claims_app, STUDY, "isogloss claims diff runs/first runs/second")
@with_groups
def diff(
    first: Path,
    second: Path,
    *,
    output: OutputOptions,
) -> None:
    """Compare the verdicts of two reports: which claims and which checks differ."""
    from isogloss.cli.display import Display
    from isogloss.reports.verdicts import changed_verdicts

    rows = [tuple(change.values()) for change in changed_verdicts(first, second)]
    if not rows and not output.as_json:
        show_line("No verdict differs.")
        return
    Display(as_json=output.as_json).table(("claim", "before", "after", "why"), rows)


@verb(app, STUDY, "isogloss show 0f2a --in runs/quickstart")
@with_groups
def show(
    identity: str,
    folder: str = QUICKSTART,
    *,
    output: OutputOptions,
) -> None:
    """Show a finished run: its title, its dependencies and its results."""
    from isogloss.cli.display import show_record
    from isogloss.cli.lists import scores_of
    from isogloss.core.records import read_record
    from isogloss.store import local_folder
    from isogloss.store.store import Store

    with output.progress as display:
        store = Store(local_folder(folder, display.on_progress))
        record = read_record(store.find(identity, display.on_progress))
        scores = [] if output.as_json else scores_of(store.root, record, display.on_progress)
    path = store.root / record.id
    uses = [f"isogloss predict {path} FILE", f"isogloss evaluate {path} --corpus NAME --language CODE"]
    steps = [*(uses if (path / "model").is_dir() else ()), f"isogloss report {folder}"]
    show_record(record, scores=scores, next_steps=steps, as_json=output.as_json)


@verb(app, SETUP, "isogloss list methods", "list")
@with_groups
def list_(
    what: str,
    folder: str = QUICKSTART,
    language: list[str] | None = None,
    *,
    output: OutputOptions,
) -> None:
    """List methods, tasks, corpora and other names for recipes and options, or the runs of a folder."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import LISTS, OF_A_FOLDER, corpora_in, list_runs
    from isogloss.cli.options import show_listing
    from isogloss.store import local_folder

    check_named("list", "list", LISTS, what)
    if what not in OF_A_FOLDER and folder != QUICKSTART:
        raise ConfigError(f"--in applies to the lists {' and '.join(OF_A_FOLDER)}, not to {what}. Remove it.")
    if language and what != "corpora":
        raise ConfigError(f"--language applies to the list corpora, not to {what}. Remove it.")
    if language:
        Display(as_json=output.as_json).table(*corpora_in(language))
        return
    with output.progress as display:
        heads, rows = (
            list_runs(local_folder(folder, display.on_progress), display.on_progress)
            if what == "runs"
            else LISTS[what](Path(folder))
        )
    show_listing(what, heads, rows, as_json=output.as_json)


@verb(app, SETUP, "isogloss doctor --data data")
@with_groups
def doctor(as_json: bool = False, data: str | None = None) -> None:
    """Check the installation and the hardware: devices, precision, threads, corpora."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import machine

    Display(as_json=as_json).table(("what", "found"), machine(data))


def _add_command(name: str) -> None:
    """Add a command of a plug-in package, which is imported when the command is called."""
    package = package_named("commands", name)

    @app.command(
        name,
        help=f"A command of the package {package}.",
        rich_help_panel="From other packages",
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def call(context: typer.Context) -> None:
        if status := find_plug_in("commands", name, ())(context.args):
            raise typer.Exit(status)


OWN_COMMANDS = frozenset(str(command.name) for command in app.registered_commands)
"""Names of the commands of isogloss, which packages cannot replace."""

for _name in plugged_names("commands"):
    if _name not in OWN_COMMANDS:
        _add_command(_name)
