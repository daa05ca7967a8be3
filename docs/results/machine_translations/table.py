"""Compare consistency on machine translations with human ones.

`python docs/results/machine_translations/table.py` reads rows.csv, which predict.py writes. signals.csv has
the consistency of each kind of translation, and how well it predicts accuracies. intervals.csv has the 80 %
intervals of the expected score, each language held out with its family.
"""

from pathlib import Path

import pandas as pd
from scipy.stats import spearmanr

import isogloss
from isogloss.core.languages import language_facts
from isogloss.features.comparing.two_ways import two_way_estimate

HERE = Path(__file__).parent
BETTER = ("google", "nllb")
"""Systems that are the better of two by COMET. google is better than nllb."""

BASE = "human, same half"
KINDS = {"human": "human", "human, translated half": BASE, "shuffled": "shuffled"}
DIRECTIONS = ("into English", "from English")


def rank_system(translation: str) -> int:
    """Return 0 for the better system of a language, and more for the other one."""
    system = translation.partition(",")[0]
    return BETTER.index(system) if system in BETTER else len(BETTER)


def name_kinds(rows: pd.DataFrame) -> pd.DataFrame:
    """Name each translation by its direction and by the better or other system of its language."""
    kinds = [(language, name, kind) for language in rows["language"].unique() for name, kind in KINDS.items()]
    for language, group in rows.groupby("language"):
        for direction in DIRECTIONS:
            names = {name for name in group["translation"] if name.endswith(direction)}
            for name, system in zip(sorted(names, key=rank_system), ("better", "other"), strict=True):
                kinds.append((language, name, f"{system} system, {direction}"))
    table = pd.DataFrame(kinds, columns=["language", "translation", "kind"])
    return rows.merge(table, on=["language", "translation"])


def list_signals(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean consistency, its difference from human translations, and ρ with accuracy, by kind."""
    table = []
    base = rows[rows["kind"] == BASE].pivot_table(index="language", columns="seed", values="consistency")
    for kind, group in rows.groupby("kind", sort=False):
        grid = group.pivot_table(index="language", columns="seed", values="consistency")
        estimate = two_way_estimate(100 * (grid - base).to_numpy())
        correlations = [
            spearmanr(seed_rows["consistency"], seed_rows["accuracy"]).statistic
            for _, seed_rows in group.groupby("seed")
        ]
        table.append(
            {
                "kind": kind,
                "consistency": 100 * grid.to_numpy().mean(),
                "difference": estimate.mean,
                "low": estimate.low,
                "high": estimate.high,
                "lowest rho": min(correlations),
                "highest rho": max(correlations),
            }
        )
    return pd.DataFrame(table)


def list_intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the interval of the expected score of each language and seed, by kind of translation."""
    table = []
    families = {language: language_facts(language).family for language in rows["language"].unique()}
    for (seed, kind), group in rows.groupby(["seed", "kind"], sort=False):
        kind_rows = group.set_index("language")
        for target, row in kind_rows.iterrows():
            known = [language for language in kind_rows.index if families[language] != families[target]]
            scores = {language: float(kind_rows.loc[language, "accuracy"]) for language in known}
            scores["en"] = float(row["source_accuracy"])
            consistency = {
                language: float(kind_rows.loc[language, "consistency"]) for language in [*known, target]
            }
            answer = isogloss.expected_score(
                str(target), "en", scores, {"consistency": consistency}, pairs=int(row["pairs"])
            )
            accuracy = row["accuracy"]
            table.append(
                {
                    "seed": seed,
                    "kind": kind,
                    "language": target,
                    "accuracy": accuracy,
                    "expected": answer.value,
                    "low": answer.low,
                    "high": answer.high,
                    "covered": answer.low <= accuracy <= answer.high,
                    "covered without": answer.plain_low <= accuracy <= answer.plain_high,
                    "width": answer.high - answer.low,
                    "width without": answer.plain_high - answer.plain_low,
                    "doubts": "; ".join(answer.doubts),
                }
            )
    return pd.DataFrame(table)


if __name__ == "__main__":
    signals = name_kinds(pd.read_csv(HERE / "rows.csv"))
    list_signals(signals).round(3).to_csv(HERE / "signals.csv", index=False)
    list_intervals(signals).round(4).to_csv(HERE / "intervals.csv", index=False)
