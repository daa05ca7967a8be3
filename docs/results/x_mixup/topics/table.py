"""Compare systems on eleven languages: `python table.py [RUNS]` writes differences.csv from scores.csv.

With RUNS, the folder of mixing.toml, scores.csv is written from its records first. A system is its model and
how it reads its inputs; differences are of the mean over languages, paired by seed, with 95 % t intervals.
"""

import sys
from itertools import combinations
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent


def scores(m: Measurements) -> pd.DataFrame:
    """Return the test accuracy of each model in each language, in percent."""
    labels = {key: label for label, ids in m.methods.items() for key in ids}
    rows = m.frame("scores")
    rows = rows[rows["main"].eq(True)]
    rows = rows.assign(system=rows["model"].map(labels), score=(100 * rows["score"]).round(4))
    keys = ["system", "inputs", "seed", "language"]
    return rows[[*keys, "score"]].sort_values(keys)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """Return the difference of each two systems, as they read their inputs."""
    table = table[table["language"] != "en"]
    wide = table.pivot_table(index="seed", columns=["system", "inputs"], values="score")
    rows = []
    for one, other in combinations(sorted(wide.columns), 2):
        found = crossed_estimate([*(wide[one] - wide[other])])
        row = {"system": " ".join(one).strip(), "against": " ".join(other).strip(), "seeds": len(wide)}
        numbers = {"points": found.mean, "low": found.low, "high": found.high, "p": found.p_value()}
        rows.append(row | numbers | {"seen": found.smallest_seen})
    return pd.DataFrame(rows).round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        scores(read_measurements(Path(sys.argv[1]))).to_csv(HERE / "scores.csv", index=False)
    read = pd.read_csv(HERE / "scores.csv", keep_default_na=False)
    differences(read).to_csv(HERE / "differences.csv", index=False)
