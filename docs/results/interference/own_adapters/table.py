"""Arms of the study of own adapters: `python docs/results/interference/own_adapters/table.py [RUNS]`.

With the folder of the runs arms.csv and cka.csv are written from their records first; the table is made of
these and of the scores of ../twice. Unit: the pretraining seed. Differences are paired by it, with a 95 % t
interval, p, and p after Holm's correction over all differences.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import Estimate, crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
TWICE = HERE.parent / "twice" / "rows-scores.csv"
AS_TRAINED = "own adapters"
"""Arm that every other arm is compared with."""

EARLIER_TRAINED = "own adapters of the earlier study"
"""Arm that joint encoders and shared adapters are compared with. Each processor draws differently."""

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

    measurements = read_measurements(runs)
    keys = ["model", "task", "pair", "encoder.seed", "arm", "language"]
    scores = with_arm(measurements.frame("modules-at-test"))
    stripped_table = with_arm(measurements.frame("scores"))
    stripped_table = stripped_table[
        stripped_table["main"].eq(True) & (stripped_table["arm"] == "stripped")
    ].assign(change="none")
    arms = pd.concat([scores, stripped_table])[[*keys[1:], "change", "score", "agreement"]]
    arms.drop_duplicates().sort_values([*keys[1:], "change"]).round(6).to_csv(HERE / "arms.csv", index=False)
    cka = with_arm(measurements.frame("cka"))
    cka[["task", "pair", "encoder.seed", "arm", "layer", "cka"]].round(4).to_csv(
        HERE / "cka.csv", index=False
    )


def with_arm(rows: pd.DataFrame) -> pd.DataFrame:
    """Name the arm of each model and the pair of its encoder. Without a task the arm is "before"."""
    arm = rows["method"].map(NAMES).fillna("before")
    arm = rows["method.arm"].where(rows["method"] == "changed-modules", arm)
    return rows.assign(arm=arm, pair=rows["encoder.languages"].map(PAIRS))


def scores() -> pd.DataFrame:
    """Return percent [task pair arm language, seed], including the earlier study."""
    rows = pd.read_csv(HERE / "arms.csv")
    changed_arm = rows["arm"] + rows["change"].map(
        lambda change: "" if change == "none" else f", {change} at the test"
    )
    rows = rows.assign(arm=changed_arm, seed=rows["encoder.seed"])
    earlier = pd.read_csv(TWICE)
    earlier = earlier[earlier["encoder"].isin(list(EARLIER)) & (earlier["method"] == "qaa-qad")]
    earlier = earlier[earlier["task"].isin(rows["task"])].assign(
        arm=earlier["encoder"].map(EARLIER), pair="far"
    )
    again = rows[(rows["arm"] == AS_TRAINED)].merge(
        earlier[earlier["arm"] == EARLIER_TRAINED],
        on=["task", "pair", "language", "seed"],
        suffixes=("", " earlier"),
    )
    distance = (again["score"] - again["score earlier"]).abs().groupby(again["seed"]).max()
    print(f"encoders made again: largest difference in points by seed: {(100 * distance).round(2).to_dict()}")
    return 100 * pd.concat([earlier, rows]).pivot_table(
        index=["task", "pair", "arm", "language"], columns="seed", values="score"
    )


def lines() -> Iterator[tuple[str, Estimate | None]]:
    """Yield a line for each arm and language."""
    table = scores()
    for (task, pair, arm, language), row in table.iterrows():
        earlier_models = EARLIER_TRAINED if arm in EARLIER.values() else AS_TRAINED
        distance = (row - table.loc[task, pair, earlier_models, language]).dropna()
        text = f"{pair} {task} {language}: {arm}: {row.mean():.1f} ± {row.std():.1f} (n = {row.count()})"
        if arm != earlier_models and len(distance) > 1:
            yield f"{text}, ", crossed_estimate(list(distance))
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
