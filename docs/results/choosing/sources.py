"""The cost of a chosen source language: `python docs/results/choosing/sources.py NAME [RUNS [DATA]]`.

With the folder of the runs of `sources.toml` (NAME names) or `sources_built_in.toml` (NAME tags), NAME's
transfer rows are written first: for each target and source the signals and the score. Its regrets are made
of these rows alone.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import mean_std

HERE = Path(__file__).parent
CHOSEN_BY = ("rule", "family", "script", "order", "trigrams")
ALWAYS = {"names": "en", "tags": "qaa"}
TEXTS = 1000


def transfer(runs: str, data: str) -> pd.DataFrame:
    """Return for each target and source the signals, and the score as a mean over seeds."""
    import isogloss
    from isogloss.data.projection.label_projection import texts_of
    from isogloss.data.sources import Sources

    scores = isogloss.read(runs).frame("scores")
    scores = scores[scores["main"].eq(True)]
    corpus, languages = scores["corpus"].iloc[0], sorted(scores["source"].unique())
    texts = {
        code: [
            " ".join(texts_of(example))
            for example in Sources(data).examples(corpus, code, "train", examples=TEXTS)
        ]
        for code in languages
    }
    mean = scores.groupby(["language", "source"])["score"].mean()
    rows = [
        {"target": target, **candidate._asdict(), "score": mean[target, candidate.language]}
        for target in languages
        for candidate in isogloss.rank_sources(target, languages, texts)
    ]
    return pd.DataFrame(rows).rename(columns={"language": "source"}).round(6)


def regrets(rows: pd.DataFrame, always: str) -> pd.DataFrame:
    """Return the mean regret over targets of each way to choose, in points, and its excess over the rule's.

    Intervals are Student's over targets. Where several sources are equal by a signal, their mean regret
    counts. One source for all is compared on the other targets.
    """
    lost: dict[str, dict[str, float]] = {by: {} for by in (*CHOSEN_BY, f"always {always}", "random")}
    for target, candidates in rows.groupby("target"):
        regret = 100 * (candidates["score"].max() - candidates["score"])
        for by in CHOSEN_BY:
            values = candidates[by].fillna(0)
            lost[by][target] = regret[values == values.max()].mean()
        if target != always:
            lost[f"always {always}"][target] = regret[candidates["source"] == always].item()
        lost["random"][target] = regret.mean()
    table = []
    for by, values in lost.items():
        mean = mean_std([*values.values()])
        more = mean_std([value - lost["rule"][target] for target, value in values.items()])
        table.append(
            {
                "chosen by": by,
                "targets": mean.n,
                **{"regret": mean.mean, "low": mean.low, "high": mean.high, "worst": max(values.values())},
                "best chosen": sum(value == 0 for value in values.values()),
                **{"more than the rule": more.mean, "more low": more.low, "more high": more.high},
            }
        )
    return pd.DataFrame(table).round(2)


def main() -> None:
    """Write the rows, where runs are given, and the regrets."""
    name, *given = sys.argv[1:]
    rows = HERE / f"sources-{name}.csv"
    if given:
        transfer(given[0], given[1] if len(given) > 1 else "").to_csv(rows, index=False)
    table = regrets(pd.read_csv(rows), ALWAYS[name])
    table.to_csv(HERE / f"sources-{name}-regret.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
