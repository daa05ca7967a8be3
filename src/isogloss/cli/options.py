"""Options shared by several verbs, and groups of them that a verb takes as one parameter.

An option of a group is declared once, as a field of its dataclass, with its type, its default, and its name
in ``isogloss.run``. ``with_groups`` presents a verb's groups to the command line as separate options. Flags
and help of all options and arguments are in ``options.toml``.
"""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, getdoc, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, cast, get_args

import typer
from typer.core import TyperCommand, TyperGroup

from isogloss.cli import completion
from isogloss.cli.display import Display, show_line
from isogloss.core.errors import ConfigError
from isogloss.core.registry import FEATURES
from isogloss.engine.engines import ENGINES, ExecutionOptions
from isogloss.recipes.request import parse_change, toml_or_text, unique_keys

STUDY = "Study"
MODELS = "Models"
DATA = "Data"
SETUP = "Setup"
"""Groups of verbs in the help."""

STANDARD_OUTPUT = Path("-")
"""The name of standard output as an output file."""

TYPE_NAMES = {bool: "", str: "TEXT", int: "INTEGER", float: "FLOAT", Path: "PATH"}
"""Names of the types of options in the help. Flags have none."""

OPTIONS = "options.toml"
"""File of the options of verbs: one of isogloss, and one in the folder of each feature with verbs."""

_ENTRIES: Mapping[str, Mapping[str, Any]] = {
    owner: entries
    for path in (Path(__file__).with_name(OPTIONS), *sorted(FEATURES.glob(f"*/{OPTIONS}")))
    for owner, entries in tomllib.loads(path.read_text(encoding="utf-8")).items()
}


@dataclass(frozen=True)
class OutputOptions:
    """Options for printing progress and results."""

    quiet: bool = False
    as_json: bool = False

    @property
    def events(self) -> Display:
        """A display of progress, as bars and lines or as JSON lines."""
        return Display(quiet=self.quiet, as_json=self.as_json)

    @property
    def progress(self) -> Display:
        """A display of progress for people, silent if results are JSON lines."""
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
        changes = unique_keys("--set", (parse_change(change) for change in self.change or ()))
        return {"out": self.out, "data": self.data, "scale": self.scale, "changes": changes}


@dataclass(frozen=True)
class ExecutionGroup:
    """Options of executing runs: the fields of ``engine.engines.Execution``."""

    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="ENGINE",
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
        """Return the options of ``isogloss.run``.

        Raises ConfigError if a --slurm is malformed or repeated.
        """
        slurm = unique_keys("--slurm", (_slurm_parameter(text) for text in self.slurm or ()))
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return cast("ExecutionOptions", {**values, "slurm": slurm, "track": self.track or ()})


def _hide_type(**_: object) -> str:
    return ""


def _without_types(parameters: Sequence[Any]) -> list[Any]:
    """Hide the types of arguments and flags, whose names are clear."""
    for parameter in parameters:
        if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
            vars(parameter)["display_type_rich"] = _hide_type
    return list(parameters)


class HelpfulCommand(TyperCommand):
    """A command whose help names the types of options, but not of arguments and flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the arguments and options, --help included."""
        return _without_types(super().get_params(ctx))


class HelpfulGroup(TyperGroup):
    """A group of commands with the same help."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options, --help included."""
        return _without_types(super().get_params(ctx))


def verb(
    app: typer.Typer, group: str, example: str, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a verb of a group, with an example at the end of its help."""
    return app.command(name, cls=HelpfulCommand, rich_help_panel=group, epilog=f"Example: {example}")


def with_groups(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace a verb's parameters that are dataclasses by options for their fields, and add ``--debug``.

    ``--debug`` is read by ``main``, directly from the command line.
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
    call.__doc__ = _join_lines(getdoc(verb) or "")
    return call


def _join_lines(text: str) -> str:
    """Join the lines of each paragraph, because the help would keep line breaks."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _option(owner: str, name: str, position: Any, default: object, kind: Any) -> Parameter:
    """Return a parameter with its flags and its help.

    A parameter without an entry in the table is unchanged.
    """
    facts = {**_ENTRIES["common"], **_ENTRIES.get(owner, {})}.get(name)
    if facts is None:
        return Parameter(name, position, default=default, annotation=kind)
    facts = {"help": facts} if isinstance(facts, str) else dict(facts)
    if "complete" in facts:
        facts["autocompletion"] = getattr(completion, facts.pop("complete"))
    if "argument" in facts:
        facts.setdefault("metavar", name.upper())
        entry = typer.Argument(help=facts.pop("argument"), **facts)
    else:
        flags = facts.pop("flags", [f"--{name.rstrip('_').replace('_', '-')}"])
        facts.setdefault("metavar", _type_name(kind))
        entry = typer.Option(*flags, **facts)
    return Parameter(name, position, default=default, annotation=Annotated[kind, entry])


def _type_name(kind: Any) -> str:
    """Return the name of an option's type in the help, such as TEXT, or "" for a flag."""
    kinds = [part for part in get_args(kind) if part is not NoneType]
    return _type_name(kinds[0]) if kinds else TYPE_NAMES[kind]


def show_list(context: typer.Context, listing: str, *, as_json: bool) -> None:
    """Print the list of a group of verbs, unless one of them is invoked.

    Raises ConfigError for --json with a verb, since it applies to the list only.
    """
    from isogloss.cli.lists import LISTS

    if as_json and context.invoked_subcommand:
        raise ConfigError(f"--json applies to the list, not to {context.invoked_subcommand}. Remove it.")
    if context.invoked_subcommand is None:
        show_listing(listing, *LISTS[listing](Path()), as_json=as_json)


def show_listing(listing: str, heads: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool) -> None:
    """Print a list: for programs with all columns, on a terminal page by page where it is longer."""
    from isogloss.cli.lists import FOR_PROGRAMS

    display = Display(as_json=as_json)
    if as_json:
        display.table(heads, rows)
        return
    columns = [index for index, head in enumerate(heads) if head not in FOR_PROGRAMS.get(listing, ())]
    rows = [[row[index] for index in columns] for row in rows]
    display.table([heads[index] for index in columns], rows, uses_pager=True)
    if len(columns) < len(heads):
        show_line(f"More ({', '.join(FOR_PROGRAMS[listing])}): isogloss list {listing} --json")


def _slurm_parameter(text: str) -> tuple[str, object]:
    """Parse one --slurm key=value, whose value is TOML or, as in 4G and gpu, a text."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ConfigError(f"--slurm {text}: expected key=value, as in --slurm partition=gpu.")
    return key, toml_or_text(value)


def recipe_table(changes: Sequence[str], fields: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    """Return a recipe's table from ``--set`` changes and from fields with own options: (option, value).

    Raises ConfigError if both set one field.
    """
    table: dict[str, object] = unique_keys("--set", (parse_change(change) for change in changes))
    for field, (option, _) in fields.items():
        if field in table:
            raise ConfigError(f"--set {field}=… and {option} both set this field. Remove one of them.")
    return {field: value for field, (_, value) in fields.items() if value or field == "name"} | table
