"""Compare averages with the averaged models: `python docs/results/averaging/table.py [RUNS]`.

With the folder of the runs, scores.csv is written from their records first. averages.csv follows from it.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import fdtr, fdtri

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
ONE = "one model"
SIZES = {"mean of 3": 3, "mean of 6": 6, "TIES of 3": 3}


def scores(runs: str) -> pd.DataFrame:
    """Return the test accuracy of each model, by language, in percent."""
    import isogloss

    rows = isogloss.read(runs).frame("scores")
    rows = rows[rows["main"].eq(True) & (rows["split"] == "test")]
    names = {0: ONE, 3: "mean of 3", 6: "mean of 6"}
    system = (
        rows["average.of.size"]
        .fillna(0)
        .astype(int)
        .map(names)
        .where(rows["method.density"].isna(), "TIES of 3")
    )
    rows = rows.assign(system=system, score=100 * rows["score"])
    table = rows.pivot_table(index=["system", "seed"], columns="language", values="score")
    return table.round(4).reset_index()


def compare_averages(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each average and language: gain on its own models, and ratio of variances over seeds.

    The gain is the average's score minus the mean score of the averaged models, with a t interval over
    averages. The ratio is the variance of single models over the variance of averages, with an interval by F.
    For "targets" variances are averaged over languages, with the degrees of freedom of one language.
    """
    table = table.set_index(["system", "seed"])
    targets = [str(language) for language in table if language != "qaa"]
    rows = []
    for system, size in SIZES.items():
        single_models = pd.DataFrame(table.loc[ONE])
        averages = pd.DataFrame(table.loc[system])
        members = single_models.groupby(np.arange(len(single_models)) // size * size).mean()
        gains = averages - members
        for name, codes in {
            "qaa": ["qaa"],
            "targets": targets,
            **{language: [language] for language in targets},
        }.items():
            gain = gains[codes].mean(axis=1)
            over_averages = crossed_estimate(list(gain))
            single, averaged_mean = (side[codes].var().mean() for side in (single_models, averages))
            freedom = len(single_models) - 1, len(averages) - 1
            ratio = single / averaged_mean
            share = fdtr(*freedom, single / averaged_mean)
            rows.append(
                {
                    "system": system,
                    "language": name,
                    "averages": len(averages),
                    "models": single_models[codes].mean(axis=1).mean(),
                    "average": averages[codes].mean(axis=1).mean(),
                    "gain": over_averages.mean,
                    "gain_low": over_averages.low,
                    "gain_high": over_averages.high,
                    "std_models": np.sqrt(single),
                    "std_average": np.sqrt(averaged_mean),
                    "variance_ratio": ratio,
                    "ratio_low": ratio / fdtri(*freedom, 0.975),
                    "ratio_high": ratio / fdtri(*freedom, 0.025),
                    "p": 2 * min(share, 1 - share),
                }
            )
    compared_rows = pd.DataFrame(rows)
    return compared_rows.assign(p_holm=holm(list(compared_rows["p"]))).round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        scores(sys.argv[1]).to_csv(HERE / "scores.csv", index=False)
    compare_averages(pd.read_csv(HERE / "scores.csv")).to_csv(HERE / "averages.csv", index=False)
