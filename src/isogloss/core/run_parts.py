"""What fields of runs are made of: numbers with a range, and values that have a name in some table."""

from typing import Annotated, Protocol, runtime_checkable

from pydantic import Field

Whole = Annotated[int, Field(strict=True)]
"""A whole number; a truth value or a text is none."""

Count = Annotated[int, Field(strict=True, ge=0)]
"""A number of things, possibly none."""

Positive = Annotated[int, Field(strict=True, ge=1)]
"""A number of things, at least one."""

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
"""A part of a whole."""

Rate = Annotated[float, Field(strict=True, gt=0)]
"""A step's size."""

Weight = Annotated[float, Field(strict=True, ge=0)]
"""A factor that may be 0."""


@runtime_checkable
class Named(Protocol):
    """A frozen dataclass that stands in one of the tables (METHODS, DIAGNOSTICS …)."""

    @property
    def name(self) -> str:
        """Name in the table, in kebab-case."""
        ...
