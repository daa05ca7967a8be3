"""Files next to records, possibly written by others: the plan, and how a run was made."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from isogloss.core.foreign_json import parse_json, read_regular
from isogloss.core.identity import ID

RunId = Annotated[str, Field(pattern="^[0-9A-Za-z-]{1,64}$")]
"""The id of a run, which is the name of its folder."""


@dataclass(frozen=True)
class Published:
    """A number that a paper printed."""

    scale: str
    system: str
    encoder: str
    language: str
    measure: str
    value: float
    page: str


@dataclass(frozen=True)
class Plan:
    """The runs that the last recipe requested, and their labels in reports."""

    title: str = ""
    recipe: str = ""
    command: str = ""
    scale: str = ""
    asked: str = ""
    runs: tuple[RunId, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)
    published: tuple[Published, ...] = ()


@dataclass(frozen=True)
class Made:
    """In what time, on what and with which versions a run was made, as far as it is known."""

    seconds: float | None = None
    device: str | None = None
    threads: int | None = None
    precision: str | None = None
    peak_memory: int | None = None
    versions: dict[str, str] = field(default_factory=dict)


DIFFERENCE = "difference.json"
"""In a model's folder: what its weights are the difference from (``encoders.differences``)."""


def base_of(model: Path) -> str:
    """Return the id of the run in whose model a model's weights are a difference; empty for any other."""
    try:
        base = str(parse_json(read_regular(model / DIFFERENCE))["base"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    key = base.removeprefix("../../").removesuffix("/model")
    return key if ID.fullmatch(key) else ""
