"""Gains of methods at each distance: `python docs/results/distance_dial/table.py [FOLDER]`.

It writes gains.csv from rows.csv. With FOLDER, where make_runs.py wrote the rows of each draw, it writes
rows.csv first. A gain is the score minus that of source-only in the same target and draw; intervals are 95 %
t intervals over draws. Tests compare at distance 1 (Holm over methods and dials) and in each negative
control (one-sided, Holm over its methods). A method that lacks draws is described, not tested.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
BASE = "source-only"
DIALS = {"Wrd": "words", "Ord": "order", "Scr": "script", "Wld": "world"}
PERMUTED = "permuted tags"
WORLD = "world"
BY_MEANING = ("adjusted", "alignment loss", "translate-train", "x-mixup")
SOURCE = "qaa"


def place(language: str) -> tuple[str, float]:
    """Return the dial and the distance of a language."""
    if language.startswith("qt"):
        return PERMUTED, 1.0
    _, dial, number = language.split("_")
    return DIALS[dial[:3]], int(number) / 100


def read_draws(folder: Path) -> pd.DataFrame:
    """Return the rows of all draws."""
    return pd.concat([pd.read_csv(path) for path in sorted(folder.glob("?.csv"))])


def gains(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the score and the gain of each method at each distance."""
    rows = rows[rows["language"] != SOURCE]
    rows = rows[rows["target"].isna() | (rows["target"] == rows["language"])]
    places = rows["language"].map(place)
    rows = rows.assign(dial=places.str[0], distance=places.str[1], score=100 * rows["score"])
    scores = rows.set_index(["dial", "distance", "method", "seed"])["score"].sort_index()
    table = []
    for (dial, distance, method), values in scores.groupby(level=[0, 1, 2], sort=True):
        draws = values.droplevel([0, 1, 2])
        base = scores.loc[dial, distance, BASE]
        level = crossed_estimate(list(draws))
        gain = crossed_estimate(list(draws - base.reindex(draws.index)))
        row = {"dial": dial, "distance": distance, "method": method, "draws": len(draws)}
        row |= {"score": level.mean, "score_low": level.low, "score_high": level.high}
        if method != BASE:
            row |= {"gain": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p_value()}
        table.append(row)
    return add_corrected(pd.DataFrame(table)).round(4)


def add_corrected(table: pd.DataFrame) -> pd.DataFrame:
    """Add p values corrected for all tests of a family. Rows that are described only have none."""
    is_test = table["distance"].eq(1) & table["gain"].notna() & table["draws"].eq(table["draws"].max())
    families = {
        "distance 1": is_test & ~table["dial"].isin([WORLD, PERMUTED]),
        "permuted tags": is_test & table["dial"].eq(PERMUTED),
        "unrelated world": is_test & table["dial"].eq(WORLD) & table["method"].isin(BY_MEANING),
    }
    for name, chosen in families.items():
        p_values = table.loc[chosen, "p"]
        if name != "distance 1":  # One-sided: is there a gain?
            halves = p_values / 2
            p_values = halves.where(table.loc[chosen, "gain"] > 0, 1 - halves)
        table.loc[chosen, "family"] = name
        table.loc[chosen, "p_holm"] = holm(list(p_values))
    return table


if __name__ == "__main__":
    if sys.argv[1:]:
        read_draws(Path(sys.argv[1])).to_csv(HERE / "rows.csv", index=False)
    gains(pd.read_csv(HERE / "rows.csv")).to_csv(HERE / "gains.csv", index=False)
