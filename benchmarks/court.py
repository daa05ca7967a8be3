"""Measure how often each claim gets a wrong verdict: `python benchmarks/court.py [TABLE [WORLD …]]`.

Writes a row for each claim, world in which one of its statements is false, and number of seeds: how often its
rule finds it supported, and contradicted. 100 draws, and 500 where 4 % or more are supported. A file with
`-power` in its name has, for each claim and number of seeds, how often it is supported where all is true, and
the effect that is seen in 80 % of draws. The draws are stored next to the table (`.draws.json`): a second run
continues, and a rule that has changed needs this file deleted. With names of worlds only their rows are
drawn, and the table keeps all others.
"""

import csv
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "features" / "claims")]

from court_worlds import PARTS, Part, Rates, World, rates, worlds_of  # noqa: E402

TABLE = ROOT / "benchmarks" / "results" / "court.csv"
SEEDS = (3, 6)
FEW = 100
MANY = 500
HIGH = 0.04
POWER_DRAWS = 100
POWER = 0.8
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
            drawn_rates = rates(part, world, seeds, draws, strength)
            self.kept[key] = [drawn_rates.supported, drawn_rates.contradicted]
            self.file.write_text(json.dumps(self.kept), encoding="utf-8")
        return Rates(*self.kept[key])


def false_rates(
    samples: Drawn, claim: str, stored_value: Mapping[tuple[str, str], Sequence[Row]]
) -> Iterator[Row]:
    """Yield how often a claim is supported in each world where one of its statements is false.

    ``stored`` has the rows of a claim and a world that are not drawn again.
    """
    parts = dict.fromkeys(PARTS[claim])
    worlds = dict.fromkeys(world for part in parts for world in worlds_of(part))
    for world in worlds:
        if rows := stored_value.get((claim, world.name)):
            yield from rows
            continue
        for seeds in SEEDS:
            draws = FEW
            shares = [samples.rates(part, world, seeds, FEW) for part in parts]
            if max(share.supported for share in shares) >= HIGH:
                draws = MANY
                shares = [samples.rates(part, world, seeds, MANY) for part in parts]
            supported_value, contradicted_value = (
                max(getattr(share, name) for share in shares) for name in ("supported", "contradicted")
            )
            row = {"claim": claim, "world": world.name, "seeds": seeds, "draws": draws}
            yield {**row, "supported": supported_value, "contradicted": contradicted_value}


def powers(samples: Drawn, claim: str) -> Iterator[Row]:
    """Yield the power of a claim by the number of seeds, and the effect that is seen in 80 % of draws."""
    parts = PARTS[claim]
    for seeds in SEEDS:

        def power(strength: float, seeds: int = seeds) -> float:
            return math.prod(
                samples.rates(part, World, seeds, POWER_DRAWS, part.cap(strength)).supported for part in parts
            )

        strength = first(lambda minimum: power(minimum) >= POWER, STRENGTHS)
        detected_value = math.nan if strength is None else parts[0].value(parts[0].cap(strength))
        row = {"claim": claim, "seeds": seeds, "draws": POWER_DRAWS, "power": round(power(1.0), 3)}
        yield {**row, "true": parts[0].true, "false": parts[0].false, "detected": detected_value}


def first(condition: Callable[[float], bool], values: Sequence[float]) -> float | None:
    """Return the first value for which a condition holds."""
    return next((value for value in values if condition(value)), None)


def write(table: Path, rows: Sequence[Row]) -> None:
    """Write a table."""
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_others(table: Path, worlds: Sequence[str]) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of a table by claim and world, without rows of some worlds."""
    other_items: dict[tuple[str, str], list[Row]] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["world"] not in worlds:
                other_items.setdefault((row["claim"], row["world"]), []).append({**row})
    return other_items


def main() -> None:
    """Write both tables, or the rows of some worlds."""
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    samples = Drawn(table.with_suffix(".draws.json"))
    worlds = sys.argv[2:]
    stored_value = read_others(table, worlds) if worlds else {}
    write(table, [row for claim in PARTS for row in false_rates(samples, claim, stored_value)])
    if not worlds:
        power_rows = [row for claim in PARTS for row in powers(samples, claim)]
        write(table.with_stem(f"{table.stem}-power"), power_rows)


if __name__ == "__main__":
    main()
