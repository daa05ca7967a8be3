"""Spaces of values that a search draws from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isogloss.core.errors import ConfigError, add_location

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

from isogloss.recipes.request import toml_or_text

DIGITS = 4
"""Significant digits of a number drawn from a range: recipes are read by people."""

EXPECTED = "as in optimization.learning_rate=1e-5..1e-3:log or optimization.epochs=2,4,8"


@dataclass(frozen=True)
class Choices:
    """Values a field may have."""

    values: tuple[object, ...]

    @property
    def ends(self) -> tuple[object, ...]:
        """The values that are planned before any run starts."""
        return self.values

    def distribution(self) -> "BaseDistribution":
        """Return Optuna's distribution of the index of a value."""
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(range(len(self.values)))

    def value(self, index: int) -> object:
        """Return the value at a place."""
        return self.values[index]


@dataclass(frozen=True)
class Range:
    """A range of numbers, including both ends. It has only whole numbers if both ends are whole."""

    low: float
    high: float
    log: bool = False

    @property
    def ends(self) -> tuple[float, ...]:
        """The values that are planned before any run starts."""
        return self.low, self.high

    def distribution(self) -> "BaseDistribution":
        """Return Optuna's distribution of the numbers."""
        from optuna.distributions import FloatDistribution, IntDistribution

        kind = IntDistribution if isinstance(self.low, int) else FloatDistribution
        return kind(self.low, self.high, log=self.log)

    def value(self, number: float) -> float:
        """Return a number as recipes have it."""
        if isinstance(number, int):
            return number
        return min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)


Space = Choices | Range


def parse_over(text: str) -> tuple[str, str]:
    """Read one --over key=values."""
    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise ConfigError(f"--over {text}: expected key=values, {EXPECTED}.")
    return key.strip(), values.strip()


def space_of(key: str, text: str | Sequence[object]) -> Space:
    """Parse the values of a field from a text or a list. Raises ConfigError for fewer than two."""
    with add_location(f"--over {key}={text}"):
        return _read_space(text)


def _read_space(text: str | Sequence[object]) -> Space:
    if isinstance(text, str) and ".." in text and "," not in text:
        return _read_range(text)
    values = tuple(toml_or_text(part) for part in text.split(",")) if isinstance(text, str) else tuple(text)
    if len(values) < 2 or any(values.count(value) > 1 for value in values):
        raise ConfigError(
            f"expected at least two different values, {EXPECTED}. Set a single value with --set."
        )
    return Choices(values)


def _read_range(text: str) -> Range:
    log = text.endswith(":log")
    ends = [toml_or_text(text) for text in text.removesuffix(":log").split("..")]
    if len(ends) == 2 and all(type(end) in (int, float) for end in ends) and ends[0] < ends[1]:
        low, high = ends if all(isinstance(end, int) for end in ends) else map(float, ends)
        if low > 0 or not log:
            return Range(low, high, log)
    raise ConfigError(
        f"expected a range from a number{' above 0' if log else ''} up to a larger one, {EXPECTED}."
    )
