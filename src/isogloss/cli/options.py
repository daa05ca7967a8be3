"""Options shared by several verbs."""

from pathlib import Path
from typing import Annotated

import typer

from isogloss.core.errors import ConfigError
from isogloss.engine.engines import ENGINES

Out = Annotated[
    str | None,
    typer.Option(
        "--out", help="Folder for runs and report, or a URL: s3://bucket/study; default runs/<recipe>."
    ),
]
STANDARD_OUTPUT = Path("-")
"""What a file to write may be called that is none."""

Data = Annotated[
    str | None,
    typer.Option(
        "--data", metavar="DIR", help="Folder with the real corpora, or hub: Hugging Face datasets."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but results and errors.")]
Json = Annotated[bool, typer.Option("--json", help="Write JSON lines, for machines.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Make runs again that failed in an earlier call.")
]
Jobs = Annotated[
    int, typer.Option("--jobs", min=0, help="Runs made side by side; 0: one for each GPU, or core.")
]
Devices = Annotated[
    str, typer.Option("--devices", help="GPUs to use: all, some (0,1, or UUIDs), or none: cpu. Default: all.")
]
Threads = Annotated[
    int,
    typer.Option("--threads", min=1, help="Threads of each run; records depend on it in the last digits."),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the plan, what is done, what it takes, and stop.")
]
Speed = Annotated[
    float,
    typer.Option(
        "--speed",
        min=0,
        max=1e9,
        help="With --dry-run: teraflops a second, to say how many hours it takes.",
    ),
]
Scale = Annotated[str, typer.Option("--scale", help="A named size of the recipe.")]
Track = Annotated[
    list[str] | None,
    typer.Option(
        "--track", help="Show runs while they train: tensorboard, mlflow, wandb; several, if again."
    ),
]
Set = Annotated[list[str] | None, typer.Option("--set", help="Change a field: --set grid.seeds=[0,1].")]
Engine = Annotated[
    str,
    typer.Option("--engine", help="; ".join(f"{name}: {one.about}" for name, one in ENGINES.items()) + "."),
]
Address = Annotated[
    str,
    typer.Option(
        "--address", help="Of a Ray cluster; auto: the one of this machine. Else one is started here."
    ),
]
Slurm = Annotated[
    list[str] | None,
    typer.Option(
        "--slurm", metavar="KEY=VALUE", help="For Slurm jobs, as submitit has them: --slurm partition=gpu."
    ),
]
Model = Annotated[
    str,
    typer.Argument(
        metavar="RUN",
        help="A finished fine-tuning run's folder or URL, or an exported model's: its folder or hub name.",
    ),
]
QUICKSTART = "runs/quickstart"
"""Where ``isogloss quickstart`` leaves its runs, and others look for some unless told otherwise."""

Folder = Annotated[str, typer.Option("--in", help="The folder of runs, or their URL.")]


def of_the_list(context: typer.Context, *, as_json: bool) -> None:
    """Raise ConfigError where --json stands before a verb of a group: it is for the group's list alone."""
    if as_json and context.invoked_subcommand:
        raise ConfigError(f"--json is for the list, not for {context.invoked_subcommand}. Leave it out.")
