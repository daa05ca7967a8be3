"""Options shared by several verbs, and groups of them that a verb takes as one parameter.

An option of a group is declared once, as a field of its dataclass: its default, its help, and the name under
which ``isogloss.run`` takes it. ``with_groups`` shows a verb's groups to the command line as their options.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from isogloss.cli.display import Display
from isogloss.core.errors import ConfigError
from isogloss.engine.engines import ENGINES, ExecutionOptions
from isogloss.recipes.request import parse_change, unique_keys

STUDY, MODELS, DATA, SETUP = "Study", "Models", "Data", "Setup"
"""Groups of verbs in the help."""

STANDARD_OUTPUT = Path("-")
"""The name of standard output as a file to write."""

Out = Annotated[
    str | None,
    typer.Option(
        "--out", help="Folder for runs and report, or a URL: s3://bucket/study; default runs/<recipe>."
    ),
]
Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the real corpora, or hub: Hugging Face datasets."
    ),
]
Jobs = Annotated[
    int, typer.Option("--jobs", min=0, help="Number of runs at a time; 0: one per GPU, or per core.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON lines, for programs.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
Folder = Annotated[str, typer.Option("--in", help="The folder of runs, or their URL.")]
Model = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A finished fine-tuning run's folder or URL, or an exported model's: its folder or hub name.",
    ),
]


@dataclass(frozen=True)
class Output:
    """Options of printing progress and results."""

    quiet: Quiet = False
    as_json: Json = False

    @property
    def events(self) -> Display:
        """A display of progress, as bars and lines or as JSON lines."""
        return Display(quiet=self.quiet, as_json=self.as_json)

    @property
    def progress(self) -> Display:
        """A display of progress for people alone, silent where results are JSON lines."""
        return Display(quiet=self.quiet or self.as_json)

    def warn(self, text: str) -> None:
        """Print a warning on standard error, unless quiet."""
        Display(quiet=self.quiet).say(f"isogloss: {text}")


@dataclass(frozen=True)
class RecipeGroup:
    """The folder of a recipe's runs, its data and its changes."""

    out: Out = None
    data: Data = None
    scale: Annotated[str, typer.Option("--scale", help="A named size of the recipe.")] = ""
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Change a field: --set grid.seeds=[0,1].")
    ] = None

    def options(self) -> dict[str, Any]:
        """Return the options of ``isogloss.run`` and ``plan_recipes``."""
        changes = unique_keys("--set", map(parse_change, self.change or ()))
        return {"out": self.out, "data": self.data, "scale": self.scale, "changes": changes}


@dataclass(frozen=True)
class ExecutionGroup:
    """Options of executing runs: the fields of ``engine.engines.Execution``."""

    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            help="; ".join(f"{name}: {engine_class.about}" for name, engine_class in ENGINES.items()) + ".",
        ),
    ] = "processes"
    jobs: Jobs = 0
    devices: Annotated[
        str,
        typer.Option(
            "--devices", help="GPUs to use: all, a list (0,1 or UUIDs), or cpu for none. Default: all."
        ),
    ] = ""
    threads: Annotated[
        int,
        typer.Option("--threads", min=1, help="Threads per run; the last digits of results depend on it."),
    ] = 1
    address: Annotated[
        str,
        typer.Option(
            "--address",
            help="Address of a Ray cluster; auto: the cluster of this machine. Default: start one here.",
        ),
    ] = ""
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            "--slurm",
            metavar="KEY=VALUE",
            help="For Slurm jobs, as submitit has them: --slurm partition=gpu.",
        ),
    ] = None
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Repeat runs that failed in an earlier call.")
    ] = False
    track: Annotated[
        list[str] | None,
        typer.Option(
            "--track",
            help="Follow training in a tracker such as mlflow or wandb; repeat the option for several.",
        ),
    ] = None

    def options(self) -> ExecutionOptions:
        """Return the options of ``isogloss.run``; ConfigError for a --slurm that is malformed or repeated."""
        slurm = unique_keys("--slurm", map(_slurm_parameter, self.slurm or ()))
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return cast("ExecutionOptions", {**values, "slurm": slurm, "track": self.track or ()})


def verb(
    app: typer.Typer, group: str, example: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb of a group, with an example at the end of its help."""
    return app.command(name, rich_help_panel=group, epilog=f"Example: {example}")


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace a verb's parameters that are dataclasses by the options of their fields, and add ``--debug``.

    ``--debug`` is read by ``main``, from the command line itself.
    """
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for name, parameter in signature(verb).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = parameter.annotation
            options += [
                Parameter(field.name, parameter.kind, default=field.default, annotation=field.type)
                for field in fields(parameter.annotation)
            ]
        else:
            options.append(parameter)
    options.append(Parameter("debug", options[-1].kind, default=False, annotation=Debug))

    @wraps(verb)
    def call(**values: Any) -> None:
        del values["debug"]
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    call.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return call


def show_list(context: typer.Context, what: str, *, as_json: bool) -> None:
    """Print the list of a group of verbs, unless one of them is invoked; --json is for the list alone."""
    from isogloss.cli.lists import LISTS

    if as_json and context.invoked_subcommand:
        raise ConfigError(f"--json is for the list, not for {context.invoked_subcommand}. Leave it out.")
    if context.invoked_subcommand is None:
        Display(as_json=as_json).table(*LISTS[what](Path()))


def _slurm_parameter(text: str) -> tuple[str, object]:
    """Read one --slurm key=value; the value is TOML or, as for 4G and gpu, a text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--slurm {text}: expected key=value, as in --slurm partition=gpu.")
    try:
        return key, tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key, value
