"""How often each claim gets a wrong verdict: `python benchmarks/court.py [TABLE [CLAIM…]]`.

Writes a row for each claim, world in which it is false, and number of seeds: how often its rule finds it
supported, and contradicted. 100 draws, and 500 where 4 % or more are supported. Rows that the table has are
kept, so a second run continues. A file with `-power` in its name has, for each claim and number of seeds, how
often it is supported where it is true, and the effect that is seen in 80 % of draws.
"""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "reports")]

from court_worlds import PARTS, World, detectable, power, rates, worlds_of  # noqa: E402

TABLE = ROOT / "benchmarks" / "results" / "court.csv"
SEEDS = (3, 6)
FEW, MANY, HIGH = 100, 500, 0.04
POWER_DRAWS = 60

Row = dict[str, object]
KEYS = ("claim", "world", "seeds")


def measured_rates(claim: str, kept: set[tuple[str, ...]]) -> Iterator[Row]:
    """Yield the rows of a claim that are not kept."""
    for world in worlds_of(claim):
        for seeds in SEEDS:
            key = {"claim": claim, "world": world.name, "seeds": seeds}
            if tuple(map(str, key.values())) in kept:
                continue
            draws, found = FEW, rates(claim, world, seeds, FEW)
            if found.supported >= HIGH:
                draws, found = MANY, rates(claim, world, seeds, MANY)
            yield {**key, "draws": draws, "supported": found.supported, "contradicted": found.contradicted}


def measured_power(claim: str, kept: set[tuple[str, ...]]) -> Iterator[Row]:
    """Yield the power of a claim, for numbers of seeds that are not kept."""
    part = PARTS[claim][0]
    for seeds in SEEDS:
        key = {"claim": claim, "world": World.name, "seeds": seeds}
        if tuple(map(str, key.values())) not in kept:
            strength = detectable(claim, World, seeds, POWER_DRAWS)
            share = power(claim, World, seeds, POWER_DRAWS, 1.0)
            detected = {"false": part.false, "detected": part.value(strength)}
            yield {**key, "draws": POWER_DRAWS, "power": share, **detected}


def extend(table: Path, rows: Iterator[Row]) -> None:
    """Append rows to a table, each as soon as it is measured."""
    for row in rows:
        begins = not table.exists()
        with table.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, [*row], lineterminator="\n")
            if begins:
                writer.writeheader()
            writer.writerow(row)


def kept_rows(table: Path) -> set[tuple[str, ...]]:
    """Return the keys of the rows of a table."""
    if not table.exists():
        return set()
    with table.open(encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in KEYS) for row in csv.DictReader(file)}


def main() -> None:
    """Measure what the tables lack."""
    table = Path(sys.argv[1]) if len(sys.argv) > 1 else TABLE
    claims = sys.argv[2:] or [*PARTS]
    powers = table.with_stem(f"{table.stem}-power")
    for claim in claims:
        extend(table, measured_rates(claim, kept_rows(table)))
        extend(powers, measured_power(claim, kept_rows(powers)))


if __name__ == "__main__":
    main()
