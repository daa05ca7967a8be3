"""The verbs of the command line; each turns words into values and calls what does the work."""

import sys
import traceback
from pathlib import Path
from typing import Annotated

import typer

from isogloss.core.errors import IsoglossError, unknown_name

app = typer.Typer(
    name="isogloss",
    help="Cross-lingual transfer: how well a model transfers, how reliably, and why.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
languages_app = typer.Typer(help="The built-in languages.", invoke_without_command=True)
app.add_typer(languages_app, name="languages")

Out = Annotated[Path | None, typer.Option("--out", help="Folder for runs and report; default runs/<recipe>.")]
Data = Annotated[Path | None, typer.Option("--data", help="Folder with the real corpora.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, for machines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Jobs = Annotated[int, typer.Option("--jobs", min=0, help="Runs made side by side; 0: one for each core.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")]
Scale = Annotated[str, typer.Option("--scale", help="A named size of the recipe.")]
Set = Annotated[list[str] | None, typer.Option("--set", help="Change a field: --set grid.seeds=[0,1].")]
Engine = Annotated[
    str, typer.Option("--engine", help="serial: one run after the other; processes: side by side.")
]


def main() -> None:
    """Run the command line: 0 done, 1 some runs failed, 2 the input is wrong."""
    debug = "--debug" in sys.argv
    try:
        app(standalone_mode=True)
    except IsoglossError as error:
        _explain(str(error), debug)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _explain("interrupted. Finished runs are kept; the same command goes on where it stopped.", debug)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        _explain(
            f"this should not have happened ({type(error).__name__}: {error}). "
            f"Run again with --debug and report what it prints.",
            debug,
        )
        sys.exit(1)


@app.command()
def quickstart(
    out: Out = Path("runs/quickstart"),
    jobs: Jobs = 0,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001 (main looks at it)
) -> None:
    """Show the main job on the built-in languages: transfer, its reliability, and why; about five minutes."""
    from isogloss.cli.runs import run_and_report

    run_and_report(
        "quickstart", out=out, jobs=jobs, quiet=quiet, as_json=as_json, command="isogloss quickstart"
    )


@app.command()
def run(
    recipe: Annotated[str, typer.Argument(help="A TOML file, or the name of a packaged recipe.")],
    out: Out = None,
    data: Data = None,
    scale: Scale = "",
    engine: Engine = "processes",
    jobs: Jobs = 0,
    dry_run: DryRun = False,
    change: Set = None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Make the runs of a recipe that have no record yet, then write the report."""
    from isogloss.cli.runs import print_plan, run_and_report

    if engine not in ENGINES:
        raise unknown_name("--engine", "engine", engine, ENGINES)
    if dry_run:
        print_plan(
            recipe, out=out, data=data, scale=scale, changes=change or [], quiet=quiet, as_json=as_json
        )
        return
    run_and_report(
        recipe,
        out=out,
        data=data,
        scale=scale,
        changes=change or [],
        jobs=1 if engine == "serial" else jobs,
        quiet=quiet,
        as_json=as_json,
        command=f"isogloss {' '.join(sys.argv[1:])}",
    )


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder of runs.")],
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write the report of a folder of runs again, from its records alone."""
    from isogloss.cli.runs import show_report
    from isogloss.reports import write_report

    written = write_report(folder)
    show_report(written, as_json=as_json)
    if open_it:
        import webbrowser

        webbrowser.open(written.html.resolve().as_uri())


@app.command()
def show(
    run_id: Annotated[str, typer.Argument(help="The id of a run, or how it begins.")],
    folder: Annotated[Path, typer.Option("--in", help="The folder of runs.")] = Path("runs/quickstart"),
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show what a finished run was, what it needed and the rows it made."""
    from isogloss.cli.runs import show_run

    show_run(folder, run_id, as_json=as_json)


@app.command(name="list")
def list_(
    what: Annotated[
        str,
        typer.Argument(help="tasks, corpora, languages, encoders, methods, diagnostics, recipes or runs."),
    ],
    folder: Annotated[Path, typer.Option("--in", help="The folder of runs.")] = Path("runs/quickstart"),
    as_json: Json = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List what there is."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import LISTS

    if what not in LISTS:
        raise unknown_name("list", "list", what, LISTS)
    heads, rows = LISTS[what](folder)
    Display(as_json=as_json).table(heads, rows)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="The folder of a finished fine-tuning run.")],
    file: Annotated[
        Path, typer.Argument(help="Text, one sentence a line, words separated by spaces; pairs by a tab.")
    ],
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Predict a label for each word of each sentence, or for each pair of texts."""
    from isogloss.cli.runs import predict_file

    predict_file(model, file)


@app.command()
def doctor(as_json: Json = False, data: Data = None, debug: Debug = False) -> None:  # noqa: ARG001
    """Say what this machine has: devices, the precision worth using, threads, corpora."""
    from isogloss.cli.display import Display
    from isogloss.cli.lists import machine

    Display(as_json=as_json).table(("what", "found"), machine(data))


@languages_app.callback()
def languages(context: typer.Context, as_json: Json = False) -> None:
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
    print(folder)


ENGINES = ("serial", "processes")


def _explain(message: str, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    print(f"isogloss: {message}", file=sys.stderr)
