"""Arms of the study of own adapters: `python docs/results/interference/own_adapters/table.py [RUNS]`.

With the folder of the runs, arms.csv and cka.csv are written from their records first. The table is computed
from these and from the scores of ../twice. The unit is the pretraining seed. Differences are paired by seed,
with a 95 % t interval and an uncorrected p.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from scipy.stats import t, ttest_1samp

HERE = Path(__file__).parent
TWICE = HERE.parent / "twice" / "rows-scores.csv"
AS_TRAINED = "own adapters"
"""The arm that every other arm is compared with."""

EARLIER_TRAINED = "own adapters of the earlier study"
"""Baseline of joint encoders and shared adapters, because a seed is a different draw on a different CPU."""

PAIRS = {"qaa+qad": "far", "qaa+qab": "near"}
NAMES = {"source-only": AS_TRAINED, "changed-modules": "stripped"}
EARLIER = {
    "joint, twice": "joint",
    "shared-adapter, twice": "shared adapters",
    "adapter, twice": EARLIER_TRAINED,
}


def write(runs: Path) -> None:
    """Write scores and agreement of each arm, and the CKA of translations in it, from the records of runs."""
    from isogloss.reports.measurements import read_measurements

    m = read_measurements(runs)
    keys = ["model", "task", "pair", "encoder.seed", "arm", "language"]
    scores = with_arm(m.frame("modules-at-test"))
    stripped_rows = with_arm(m.frame("scores"))
    stripped_rows = stripped_rows[
        stripped_rows["main"].eq(True) & (stripped_rows["arm"] == "stripped")
    ].assign(change="none")
    arms = pd.concat([scores, stripped_rows])[[*keys[1:], "change", "score", "agreement"]]
    arms.drop_duplicates().sort_values([*keys[1:], "change"]).round(6).to_csv(HERE / "arms.csv", index=False)
    cka = with_arm(m.frame("cka"))
    cka[["task", "pair", "encoder.seed", "arm", "layer", "cka"]].round(4).to_csv(
        HERE / "cka.csv", index=False
    )


def with_arm(rows: pd.DataFrame) -> pd.DataFrame:
    """Name the arm of each model and the pair of its encoder. Without a task, the arm is "before"."""
    arm = rows["method"].map(NAMES).fillna("before")
    arm = rows["method.arm"].where(rows["method"] == "changed-modules", arm)
    return rows.assign(arm=arm, pair=rows["encoder.languages"].map(PAIRS))


def scores() -> pd.DataFrame:
    """Return percent [task pair arm language, seed], the earlier study included."""
    rows = pd.read_csv(HERE / "arms.csv")
    arm_names = rows["arm"] + rows["change"].map(
        lambda change: "" if change == "none" else f", {change} at the test"
    )
    rows = rows.assign(arm=arm_names, seed=rows["encoder.seed"])
    earlier = pd.read_csv(TWICE)
    earlier = earlier[earlier["encoder"].isin([*EARLIER]) & (earlier["method"] == "qaa-qad")]
    earlier = earlier[earlier["task"].isin(rows["task"])].assign(
        arm=earlier["encoder"].map(EARLIER), pair="far"
    )
    again = rows[(rows["arm"] == AS_TRAINED)].merge(
        earlier[earlier["arm"] == EARLIER_TRAINED],
        on=["task", "pair", "language", "seed"],
        suffixes=("", " earlier"),
    )
    apart = (again["score"] - again["score earlier"]).abs().groupby(again["seed"]).max()
    print(f"encoders made again: largest difference in points by seed: {(100 * apart).round(2).to_dict()}")
    return 100 * pd.concat([earlier, rows]).pivot_table(
        index=["task", "pair", "arm", "language"], columns="seed", values="score"
    )


def lines() -> Iterator[str]:
    """Yield a line for each arm and language."""
    table = scores()
    for (task, pair, arm, language), row in table.iterrows():
        arm_trained = EARLIER_TRAINED if arm in EARLIER.values() else AS_TRAINED
        apart = (row - table.loc[task, pair, arm_trained, language]).dropna()
        text = f"{pair} {task} {language}: {arm}: {row.mean():.1f} ± {row.std():.1f} (n = {row.count()})"
        if arm != arm_trained and len(apart) > 1:
            half = t.ppf(0.975, len(apart) - 1) * apart.sem()
            low, high, p = apart.mean() - half, apart.mean() + half, ttest_1samp(apart, 0).pvalue
            text += f", {apart.mean():+.1f} [{low:.1f}, {high:.1f}], p = {p:.2g}, n = {len(apart)}"
        yield text


if __name__ == "__main__":
    if sys.argv[1:]:
        write(Path(sys.argv[1]))
    print("\n".join(lines()))
