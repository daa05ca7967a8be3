"""Do systems add up? `python docs/results/combinations/table.py TASK [RUNS]` with TASK upos or ner.

It writes effects.csv from scores.csv in the task's folder, and correlations.csv from signals.csv. With RUNS,
the folder of examples/combinations.toml, it writes scores.csv (in each model's target and in the source),
paths.csv (points from the source-only model to every other model) and signals.csv (label-free measurements of
models) from its records first. Effects are paired by seed, on the mean of both targets, with 95 % t
intervals. Correlations are Spearman's, over models that saw no label of the target.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.metrics.significance import holm
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent
TARGETS = ["qad", "qab"]
BASE = "source-only"
AVERAGED = ", mean"
SIZE = 3
LABELLED = ("bilingual", "few-shot", f"few-shot{AVERAGED}")
SOURCE = "source score"


def labels(made_measurements: Measurements) -> dict[str, str]:
    """Return the recipe's label of each model."""
    return {key: label for label, ids in made_measurements.methods.items() for key in ids}


def scores(made_measurements: Measurements) -> pd.DataFrame:
    """Return the main test score of each model in a target and in the source, in percent."""
    rows = made_measurements.frame("scores")
    rows = rows[rows["main"].eq(True)]
    encoder = rows["encoder.adjusted"].map(lambda name: "adjusted" if name else "original")
    rows = rows.assign(system=rows["model"].map(labels(made_measurements)), on=encoder)
    tables = []
    for target in TARGETS:
        answers = rows[rows["target"].isin([target, ""]) & rows["language"].isin(["qaa", target])]
        side = answers["language"].map({"qaa": "source", target: "target"})
        answers = answers.assign(about=side, to=target)
        tables.append(
            answers.pivot_table(index=["to", "on", "system", "seed"], columns="about", values="score")
        )
    return (100 * pd.concat(tables)).round(4).reset_index()


def paths(made_measurements: Measurements) -> pd.DataFrame:
    """Return the main score at each point of a path, in percent."""
    rows = made_measurements.frame("interpolation")
    rows = rows.assign(end=rows["end"].map(labels(made_measurements)), score=100 * rows["score"])
    keys = ["end", "target", "seed", "role", "alpha"]
    return rows.groupby(keys)["score"].mean().round(4).reset_index()


def signals(made_measurements: Measurements) -> pd.DataFrame:
    """Return each signal of a model in its target, and the model's test score there."""
    retrieval = made_measurements.frame("retrieval")
    retrieval = retrieval[(retrieval["similarity"] == "cosine") & ~retrieval["centred"].astype(bool)]
    accuracy = retrieval[["accuracy_forward", "accuracy_backward"]].mean(axis=1)
    retrieval = retrieval.assign(signal="retrieval", language=retrieval["second"], value=accuracy)
    cka = made_measurements.frame("cka")
    cka = cka[cka["layer"] == cka["layer"].max()]
    cka = cka.assign(signal="cka", language=cka["second"], value=cka["cka"])
    rows = pd.concat([made_measurements.frame("label-free"), retrieval, cka])
    rows = rows[rows["kind"] == "model"]
    test = made_measurements.frame("scores")
    test = test[test["main"].eq(True)]
    source = test[(test["language"] == "qaa") & test["model"].isin(rows["model"])].drop_duplicates("model")
    source = source.assign(signal=SOURCE, value=source["score"])
    tables = []
    for target in TARGETS:
        signals = pd.concat([rows[rows["language"] == target], source])
        signals = signals[signals["target"].isin([target, ""])]
        signals = signals.assign(
            on=signals["encoder.adjusted"].map(lambda name: "adjusted" if name else "original"),
            system=signals["model"].map(labels(made_measurements)),
            score=signals["model"].map(test[test["language"] == target].groupby("model")["score"].first()),
            to=target,
        )
        tables.append(signals[["to", "on", "system", "signal", "value", "score"]].dropna())
    return pd.concat(tables).round(5).sort_values(["to", "signal", "on", "system", "value"])


def correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rank correlation of each signal with test scores, in a target and within an encoder."""
    table = table[~table["system"].isin(LABELLED)]
    correlations = {}
    for signal, signal_rows in table.groupby("signal"):
        groups_by_target = dict(list(signal_rows.groupby("to")))
        rho = {
            target: part["value"].corr(part["score"], "spearman") for target, part in groups_by_target.items()
        }
        for origin in ("original", "adjusted"):
            parts = [part[part["on"] == origin] for part in groups_by_target.values()]
            rho[origin] = sum(part["value"].corr(part["score"], "spearman") for part in parts) / len(parts)
        correlations[signal] = {"models": len(signal_rows) // len(groups_by_target), **rho}
    return pd.DataFrame.from_dict(correlations, orient="index").rename_axis("signal").round(3)


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Return the gains from adjusting, each way to train, and averaging, and how far two gains add up."""
    wide = table.pivot_table(index="seed", columns=["on", "system"], values="target")
    ways = [name for name in table["system"].unique() if name != BASE and AVERAGED not in name]
    gains_by_seed = {}
    for way in [BASE, *ways]:
        if ("adjusted", way) in wide:
            gains_by_seed["adjusting", way, ""] = wide["adjusted", way] - wide["original", way]
    for way in ways:
        gains = {
            origin: wide[origin, way] - wide[origin, BASE]
            for origin in sorted(table["on"].unique())
            if (origin, way) in wide
        }
        gains_by_seed |= {(way, BASE, origin): gain for origin, gain in gains.items()}
        if len(gains) > 1:
            gains_by_seed[f"{way} and adjusting", "their sum", ""] = gains["adjusted"] - gains["original"]
    for origin, way in wide.columns:
        if way.endswith(AVERAGED):
            members = (
                wide[origin, way.removesuffix(AVERAGED)].groupby(lambda seed: seed // SIZE * SIZE).mean()
            )
            gains_by_seed[way, "its models", origin] = (wide[origin, way] - members).dropna()
    rows = []
    for (name, against, origin), values in gains_by_seed.items():
        gain = crossed_estimate(list(values.dropna()))
        row = {"what": name, "against": against, "on": origin, "units": len(values.dropna())}
        numbers = {"points": gain.mean, "low": gain.low, "high": gain.high, "p": gain.p_value()}
        rows.append(row | numbers | {"seen": gain.smallest_seen()})
    table = pd.DataFrame(rows)
    table.insert(table.columns.get_loc("p") + 1, "p_holm", holm(list(table["p"])))
    return table.round(4)


if __name__ == "__main__":
    folder = HERE / sys.argv[1]
    if sys.argv[2:]:
        measurements = read_measurements(Path(sys.argv[2]))
        scores(measurements).to_csv(folder / "scores.csv", index=False)
        paths(measurements).to_csv(folder / "paths.csv", index=False)
        signals(measurements).to_csv(folder / "signals.csv", index=False)
    effects(pd.read_csv(folder / "scores.csv")).to_csv(folder / "effects.csv", index=False)
    correlations(pd.read_csv(folder / "signals.csv")).to_csv(folder / "correlations.csv")
