"""Compare systems on eleven languages: `python table.py [RUNS [NAME]]` writes differences.csv.

It reads scores-*.csv. With RUNS, the folder of mixing.toml, its scores are written first, and the NAME of its
translations is good (default) or poor. A system is its model and its form of inputs. Differences are of the
mean over languages, paired by the seeds that both have, with 95 % t intervals. Systems are compared with the
same translations, and each with itself with different ones.
"""

import sys
from itertools import combinations
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent


def scores(measurements: Measurements) -> pd.DataFrame:
    """Return the test accuracy of each model in each language, in percent."""
    labels = {key: label for label, ids in measurements.methods.items() for key in ids}
    rows = measurements.frame("scores")
    rows = rows[rows["main"].eq(True)]
    rows = rows.assign(system=rows["model"].map(labels), score=(100 * rows["score"]).round(4))
    keys = ["system", "inputs", "seed", "language"]
    return rows[[*keys, "score"]].sort_values(keys)


def differences(table: pd.DataFrame) -> pd.DataFrame:
    """Return the difference of each two systems by the same translations, and of each by both."""
    table = table[table["language"] != "en"]
    wide = table.pivot_table(index="seed", columns=["translations", "system", "inputs"], values="score")
    rows = []
    for first_column, other_column in combinations(sorted(wide.columns), 2):
        if first_column[0] != other_column[0] and first_column[1:] != other_column[1:]:
            continue
        differences = (wide[first_column] - wide[other_column]).dropna()
        gain = crossed_estimate(list(differences))
        names = {
            "system": " ".join(first_column).strip(),
            "against": " ".join(other_column).strip(),
            "seeds": len(differences),
        }
        numbers = {"points": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p_value()}
        rows.append(names | numbers | {"seen": gain.smallest_seen()})
    table = pd.DataFrame(rows)
    table.insert(table.columns.get_loc("p") + 1, "p_holm", holm(list(table["p"])))
    return table.round(4)


if __name__ == "__main__":
    runs, name = [*sys.argv[1:], *["", "good"][len(sys.argv) - 1 :]]
    if runs:
        scores(read_measurements(Path(runs))).to_csv(HERE / f"scores-{name}.csv", index=False)
    read = [
        pd.read_csv(path, keep_default_na=False).assign(translations=path.stem.partition("-")[2])
        for path in sorted(HERE.glob("scores-*.csv"))
    ]
    differences(pd.concat(read)).to_csv(HERE / "differences.csv", index=False)
