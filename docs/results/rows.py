"""Write the scores of a folder of runs for differences.py: `python docs/results/rows.py RUNS ROWS.csv`."""

import sys
from pathlib import Path

from isogloss.reports.measurements import read_measurements

KEYS = ["corpus", "task", "encoder", "source", "seed", "method", "language", "split", "metric"]


def main(runs: Path, path: Path) -> None:
    """Write a row for each model, test set and language, by the labels of the recipe."""
    measurements = read_measurements(runs)
    labels = {key: label for label, ids in measurements.methods.items() for key in ids}
    rows = measurements.frame("scores")
    rows = rows[rows["main"].eq(True)]
    rows = rows.assign(
        corpus=(rows["corpus"] + " " + rows["inputs"].fillna("")).str.strip(),
        encoder=rows["encoder.run"].map(measurements.labels),
        method=rows["model"].map(labels),
        score=rows["score"].round(6),
    )
    rows[[*KEYS, "score", "examples"]].sort_values(KEYS).to_csv(path, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
