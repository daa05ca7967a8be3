"""Measure how often each claim gets a wrong verdict: `python benchmarks/court.py [TABLE]`.

Writes a row for each claim, world in which one of its statements is false, and number of seeds: how often its
rule finds it supported, and contradicted. 100 draws, and 500 where 4 % or more are supported. A file with
`-power` in its name has, for each claim and number of seeds, how often it is supported where all is true, and
the effect that is seen in 80 % of draws. The draws are stored next to the table (`.draws.json`): a second run
continues, and a rule that has changed needs this file deleted.
"""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reports")]

from court_worlds import PARTS, Part, Rates, World, rates, worlds_of  # noqa: E402

TABLE = ROOT / "benchmarks" / "results" / "court.csv"
SEEDS = (3, 6)
FEW, MANY, HIGH = 100, 500, 0.04
POWER_DRAWS, POWER = 100, 0.8
STRENGTHS = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)
"""Size of an effect, as a multiple of the effect in the trials of rows."""

Row = dict[str, object]


@dataclass
class Drawn:
    """Rates that were drawn, which are kept in a file."""

    file: Path
    kept: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file.exists():
            self.kept = json.loads(self.file.read_text(encoding="utf-8"))

    def rates(self, part: Part, world: type[World], seeds: int, draws: int, strength: float = 0.0) -> Rates:
        """Return the rates of a statement, drawn where they are not kept."""
        key = f"{part} {world.name} {seeds} {draws} {strength}"
        if key not in self.kept:
            shares = rates(part, world, seeds, draws, strength)
            self.kept[key] = [shares.supported, shares.contradicted]
            self.file.write_text(json.dumps(self.kept), encoding="utf-8")
        return Rates(*self.kept[key])


def false_rates(rates: Drawn, claim: str) -> Iterator[Row]:
    """Yield how often a claim is supported in each world where one of its statements is false."""
    parts = dict.fromkeys(PARTS[claim])
    worlds = dict.fromkeys(world for part in parts for world in worlds_of(part))
    for world in worlds:
        for seeds in SEEDS:
            draws = FEW
            shares = [rates.rates(part, world, seeds, FEW) for part in parts]
            if max(of.supported for of in shares) >= HIGH:
                draws = MANY
                shares = [rates.rates(part, world, seeds, MANY) for part in parts]
            supported_rate, contradicted_rate = (
                max(getattr(of, name) for of in shares) for name in ("supported", "contradicted")
            )
            row = {"claim": claim, "world": world.name, "seeds": seeds, "draws": draws}
            yield {**row, "supported": supported_rate, "contradicted": contradicted_rate}


def powers(draws: Drawn, claim: str) -> Iterator[Row]:
    """Yield the power of a claim by the number of seeds, and the effect that is seen in 80 % of draws."""
    parts = PARTS[claim]
    for seeds in SEEDS:

        def power(strength: float, seeds: int = seeds) -> float:
            return math.prod(
                draws.rates(part, World, seeds, POWER_DRAWS, part.capped(strength)).supported
                for part in parts
            )

        strength = first(lambda least: power(least) >= POWER, STRENGTHS)
        detected_strength = math.nan if strength is None else parts[0].value(parts[0].capped(strength))
        row = {"claim": claim, "seeds": seeds, "draws": POWER_DRAWS, "power": round(power(1.0), 3)}
        yield {**row, "true": parts[0].true, "false": parts[0].false, "detected": detected_strength}


def first(condition: Callable[[float], bool], values: Sequence[float]) -> float | None:
    """Return the first value for which a condition holds."""
    return next((value for value in values if condition(value)), None)


def write(table: Path, rows: Sequence[Row]) -> None:
    """Write a table."""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Write both tables."""
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    draws = Drawn(table.with_suffix(".draws.json"))
    write(table, [row for claim in PARTS for row in false_rates(draws, claim)])
    write(table.with_stem(f"{table.stem}-power"), [row for claim in PARTS for row in powers(draws, claim)])


if __name__ == "__main__":
    main()
