"""Own adapters by pair, steps and rival: `python docs/results/interference/own_adapters/others.py [RUNS]`.

With the folder of the runs of others.toml others.csv is written from their records first. The table comes
from it, from the scores of ../built-in (1,400 steps) and ../twice (2,800), and from arms.csv. Unit: the
pretraining seed. On a different kind of core a seed is a different draw: embeddings are compared with the own
adapters of arms.csv ("adapter again") from the same kinds of core, all others with adapters of their study.
Differences are paired by it, with a 95 % t interval, p, and p after Holm's correction over all of them.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import Estimate, crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
PAIRS = {"qaa+qad": "far", "qaa+qab": "near"}
EARLIER = {
    ("built-in", "joint"): ("far", "joint", 1400),
    ("built-in", "adapter"): ("far", "adapter", 1400),
    ("twice", "joint, twice"): ("far", "joint", 2800),
    ("twice", "adapter, twice"): ("far", "adapter", 2800),
}
"""Encoders of earlier studies, and what they are called here."""

AGAIN = "adapter again"
"""The own adapters of arms.csv: far ones of seeds 3 to 5 and near ones are of the second kind of core."""

KEYS = ["pair", "modules", "steps", "language", "seed"]


def write(runs: Path) -> None:
    """Write the scores of source-only models by pair, modules and steps, from the records of runs."""
    from isogloss.reports.measurements import read_measurements

    rows = read_measurements(runs).frame("scores")
    rows = rows[rows["main"].eq(True) & (rows["method"] == "source-only")]
    rows = rows.assign(
        pair=rows["encoder.languages"].map(PAIRS),
        modules=rows["encoder.modules"].replace("", "joint"),
        steps=rows["encoder.method.steps"].astype(int),
        seed=rows["encoder.seed"].astype(int),
        score=rows["score"].round(6),
    )
    rows[[*KEYS, "score"]].drop_duplicates(KEYS).sort_values(KEYS).to_csv(HERE / "others.csv", index=False)


def scores() -> pd.DataFrame:
    """Return percent [pair modules steps language, seed], including earlier studies."""
    tables = [pd.read_csv(HERE / "others.csv")]
    for (study, encoder), system in EARLIER.items():
        rows = pd.read_csv(HERE.parent / study / "rows-scores.csv")
        rows = rows[(rows["encoder"] == encoder) & (rows["task"] == "upos") & (rows["method"] == "qaa-qad")]
        tables.append(rows.assign(**dict(zip(KEYS[:3], system, strict=True)))[[*KEYS, "score"]])
    arms = pd.read_csv(HERE / "arms.csv").rename(columns={"encoder.seed": "seed"})
    arms = arms[(arms["task"] == "upos") & (arms["arm"] == "own adapters") & (arms["change"] == "none")]
    tables.append(arms.assign(modules=AGAIN, steps=2800)[[*KEYS, "score"]])
    rows = pd.concat(tables)
    distance = rows.groupby(KEYS)["score"].agg(lambda group: group.max() - group.min()).max()
    print(f"encoders made again: their scores differ by {distance:.6f} at most")
    return 100 * rows.drop_duplicates(KEYS).pivot_table(index=KEYS[:-1], columns="seed", values="score")


def lines() -> Iterator[tuple[str, Estimate | None]]:
    """Yield a line for each system and language, with what own adapters are above it at equal steps."""
    table = scores()
    for (pair, modules, steps, language), row in table.iterrows():
        text = f"{pair} {steps} {language}: {modules}: {row.mean():.1f} ± {row.std():.1f} (n = {row.count()})"
        adapters = (pair, AGAIN if modules == "embedding" else "adapter", steps, language)
        distance = (table.loc[adapters] - row).dropna() if adapters in table.index else row[:0]
        if modules not in ("adapter", AGAIN) and len(distance) > 1:
            yield f"{text}; own adapters ", crossed_estimate(list(distance))
        else:
            yield text, None


def print_lines(lines: Sequence[tuple[str, Estimate | None]]) -> None:
    """Print lines, each with its difference, corrected for all differences."""
    corrected_p_values = iter(holm([gain.p_value() for _, gain in lines if gain]))
    for text, gain in lines:
        if gain:
            interval = f"{gain.mean:+.1f} [{gain.low:.1f}, {gain.high:.1f}]"
            p = f"p = {gain.p_value():.2g} (Holm {next(corrected_p_values):.2g})"
            print(f"{text}{interval}, {p}, n = {gain.units}")
        else:
            print(text)


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    print_lines(list(lines()))
