"""Options shared by several verbs, and groups of them that a verb takes as one parameter.

An option of a group is declared once, as a field of its dataclass: its type, its default, and the name under
which ``isogloss.run`` takes it. ``with_groups`` shows a verb's groups to the command line as their options.
Flags and help of all options and arguments are those of ``options.toml``.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from isogloss.cli import completion
from isogloss.cli.display import Display, show_line
from isogloss.core.errors import ConfigError
from isogloss.engine.engines import ENGINES, ExecutionOptions
from isogloss.recipes.request import parse_change, toml_or_text, unique_keys

STUDY, MODELS, DATA, SETUP = "Study", "Models", "Data", "Setup"
"""Groups of verbs in the help."""

STANDARD_OUTPUT = Path("-")
"""The name of standard output as a file to write."""

_SHOWN: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_name("options.toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True)
class OutputOptions:
    """Options of printing progress and results."""

    quiet: bool = False
    as_json: bool = False

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

    out: str | None = None
    data: str | None = None
    scale: str = ""
    change: list[str] | None = None

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
            help="; ".join(f"{name}: {ENGINES[name].about}" for name in ENGINES.places) + ".",
        ),
    ] = "processes"
    jobs: int = 0
    devices: str = ""
    threads: int = 1
    address: str = ""
    gpu_share: float | None = None
    slurm: list[str] | None = None
    retry_failed: bool = False
    track: list[str] | None = None

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
            owner = groups[name].__name__
            options += [
                _option(owner, field.name, parameter.kind, field.default, field.type)
                for field in fields(parameter.annotation)
            ]
        else:
            options.append(
                _option(verb.__name__, name, parameter.kind, parameter.default, parameter.annotation)
            )
    options.append(_option(verb.__name__, "debug", options[-1].kind, False, bool))

    @wraps(verb)
    def call(**values: Any) -> None:
        del values["debug"]
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        verb(**values)

    call.__signature__ = Signature(options)  # type: ignore[attr-defined]
    return call


def _option(owner: str, name: str, position: Any, default: object, kind: Any) -> Parameter:
    """Return a parameter with its flags and its help; one that no table has is as it was."""
    facts = {**_SHOWN["common"], **_SHOWN.get(owner, {})}.get(name)
    if facts is None:
        return Parameter(name, position, default=default, annotation=kind)
    facts = {"help": facts} if isinstance(facts, str) else dict(facts)
    if "complete" in facts:
        facts["autocompletion"] = getattr(completion, facts.pop("complete"))
    if "argument" in facts:
        shown = typer.Argument(help=facts.pop("argument"), **facts)
    else:
        flags = facts.pop("flags", [f"--{name.rstrip('_').replace('_', '-')}"])
        shown = typer.Option(*flags, **facts)
    return Parameter(name, position, default=default, annotation=Annotated[kind, shown])


def show_list(context: typer.Context, what: str, *, as_json: bool) -> None:
    """Print the list of a group of verbs, unless one of them is invoked; --json is for the list alone."""
    from isogloss.cli.lists import LISTS

    if as_json and context.invoked_subcommand:
        raise ConfigError(f"--json is for the list, not for {context.invoked_subcommand}. Leave it out.")
    if context.invoked_subcommand is None:
        show_listing(what, *LISTS[what](Path()), as_json=as_json)


def show_listing(what: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool) -> None:
    """Print a list: for programs with all columns, on a terminal page by page where it is longer."""
    from isogloss.cli.lists import FOR_PROGRAMS

    display = Display(as_json=as_json)
    if as_json:
        display.table(heads, rows)
        return
    shown = [number for number, head in enumerate(heads) if head not in FOR_PROGRAMS.get(what, ())]
    rows = [[row[number] for number in shown] for row in rows]
    display.table([heads[number] for number in shown], rows, paged=True)
    if len(shown) < len(heads):
        show_line(f"More ({', '.join(FOR_PROGRAMS[what])}): isogloss list {what} --json")


def _slurm_parameter(text: str) -> tuple[str, object]:
    """Read one --slurm key=value; the value is TOML or, as for 4G and gpu, a text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--slurm {text}: expected key=value, as in --slurm partition=gpu.")
    return key, toml_or_text(value)
