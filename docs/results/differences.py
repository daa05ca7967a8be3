"""Print the scores of a study and their differences: `python differences.py ROWS.csv SYSTEM [LANGUAGE…]`.

Each system (encoder, method, how the test set is read) as mean ± standard deviation over seeds, and its
difference from SYSTEM with the seed in common: mean, 95 % t interval, p of a paired t-test, not corrected.
With languages, their mean is what is compared. Percent.
"""

import sys
from pathlib import Path

import pandas as pd
from scipy.stats import t, ttest_1samp

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
    by = rows.pivot_table(index=[*ABOUT, "system"], columns="seed", values="score")
    for (*keys, system), seeds in by.iterrows():
        where = " ".join(filter(None, keys))
        text = f"{where}: {system}: {seeds.mean():.1f} ± {seeds.std():.1f} (n = {seeds.count()})"
        key = (*keys, against)
        if system != against and key in by.index:
            apart = (seeds - by.loc[key]).dropna()
            if len(apart) > 1:
                half = t.ppf(0.975, len(apart) - 1) * apart.sem()
                low, high = apart.mean() - half, apart.mean() + half
                p = ttest_1samp(apart, 0).pvalue
                text += f", {apart.mean():+.1f} [{low:.1f}, {high:.1f}], p = {p:.3g}, n = {len(apart)}"
        print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
