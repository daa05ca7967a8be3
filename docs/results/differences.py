"""Print the scores of a study and their differences: `python differences.py ROWS.csv SYSTEM [LANGUAGE…]`.

Each system (encoder, method, how the test set is read) as mean ± standard deviation over seeds, and its
difference from SYSTEM with the seed in common: mean, 95 % t interval, p of a paired t-test, and p after
Holm's correction over all differences printed. Stored rows have no answers to examples, so the error is over
seeds only.
With languages, their mean is what is compared. Percent.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import Estimate, crossed_estimate
from isogloss.metrics.significance import holm

ABOUT = ["corpus", "task", "source", "language"]


def scores(path: Path) -> pd.DataFrame:
    """Read the rows, with a column for the system: encoder, method and inputs."""
    rows = pd.read_csv(path, keep_default_na=False)
    inputs = rows["corpus"].str.partition(" ")
    rows["corpus"] = inputs[0]
    names = zip(rows["encoder"], rows["method"], inputs[2], strict=True)
    rows["system"] = [" / ".join(part for part in parts if part) for parts in names]
    return rows.assign(score=rows["score"] * 100)


def main(path: Path, against: str, languages: list[str]) -> None:
    """Print a line for each test set and system."""
    rows = scores(path)
    if languages:
        rows = rows[rows["language"].isin(languages)].assign(language="+".join(languages))
    if against not in set(rows["system"]):
        sys.exit(f"{path} has no system {against!r}; it has:\n" + "\n".join(sorted(set(rows["system"]))))
    pivot_table = rows.pivot_table(index=[*ABOUT, "system"], columns="seed", values="score")
    lines: list[tuple[str, Estimate | None]] = []
    for (*keys, system), seeds in pivot_table.iterrows():
        where = " ".join(value for value in keys if value)
        text = f"{where}: {system}: {seeds.mean():.1f} ± {seeds.std():.1f} (n = {seeds.count()})"
        key = (*keys, against)
        distance = (
            (seeds - pivot_table.loc[key]).dropna()
            if system != against and key in pivot_table.index
            else seeds[:0]
        )
        lines.append((text, crossed_estimate(list(distance)) if len(distance) > 1 else None))
    corrected_p_values = iter(holm([gain.p_value() for _, gain in lines if gain]))
    for text, gain in lines:
        print(f"{text}, {describe(gain, next(corrected_p_values))}" if gain else text)


def describe(gain: Estimate, corrected_p_value: float) -> str:
    """Write a difference with its interval and p, before and after correction."""
    interval = f"{gain.mean:+.1f} [{gain.low:.1f}, {gain.high:.1f}]"
    return f"{interval}, p = {gain.p_value():.3g} (Holm {corrected_p_value:.3g}), n = {gain.units}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
