"""Do systems add up? `python docs/results/combinations/table.py TASK [RUNS]`, TASK being upos or ner.

It writes effects.csv from scores.csv in the task's folder, and correlations.csv from signals.csv. With RUNS,
that of examples/combinations.toml, scores.csv (in each model's target and in the source), paths.csv (points
from the source-only model to each other one) and signals.csv (what is known of a model without labels) are
written from its records first. Effects are paired by seed, on the mean of both targets, with 95 % t
intervals; correlations are Spearman's, over models that saw no label of the target.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.metrics.estimates import crossed_estimate
from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent
TARGETS = ["qad", "qab"]
BASE, AVERAGED, SIZE = "source-only", ", mean", 3
LABELLED = ("bilingual", "few-shot", f"few-shot{AVERAGED}")
SOURCE = "source score"


def labels(m: Measurements) -> dict[str, str]:
    """Return the recipe's label of each model."""
    return {key: label for label, ids in m.methods.items() for key in ids}


def scores(m: Measurements) -> pd.DataFrame:
    """Return the main test score of each model in a target and in the source, in percent."""
    rows = m.frame("scores")
    rows = rows[rows["main"].eq(True)]
    encoder = rows["encoder.adjusted"].map(lambda name: "adjusted" if name else "original")
    rows = rows.assign(system=rows["model"].map(labels(m)), on=encoder)
    found = []
    for target in TARGETS:
        own = rows[rows["target"].isin([target, ""]) & rows["language"].isin(["qaa", target])]
        side = own["language"].map({"qaa": "source", target: "target"})
        own = own.assign(about=side, to=target)
        found.append(own.pivot_table(index=["to", "on", "system", "seed"], columns="about", values="score"))
    return (100 * pd.concat(found)).round(4).reset_index()


def paths(m: Measurements) -> pd.DataFrame:
    """Return the main score at each point of a path, in percent."""
    rows = m.frame("interpolation")
    rows = rows.assign(end=rows["end"].map(labels(m)), score=100 * rows["score"])
    keys = ["end", "target", "seed", "role", "alpha"]
    return rows.groupby(keys)["score"].mean().round(4).reset_index()


def signals(m: Measurements) -> pd.DataFrame:
    """Return what each signal says of a model in its target, and the model's test score there."""
    found = m.frame("retrieval")
    found = found[(found["similarity"] == "cosine") & ~found["centred"].astype(bool)]
    both = found[["accuracy_forward", "accuracy_backward"]].mean(axis=1)
    found = found.assign(signal="retrieval", language=found["second"], value=both)
    alike = m.frame("cka")
    alike = alike[alike["layer"] == alike["layer"].max()]
    alike = alike.assign(signal="cka", language=alike["second"], value=alike["cka"])
    rows = pd.concat([m.frame("label-free"), found, alike])
    rows = rows[rows["kind"] == "model"]
    test = m.frame("scores")
    test = test[test["main"].eq(True)]
    source = test[(test["language"] == "qaa") & test["model"].isin(rows["model"])].drop_duplicates("model")
    source = source.assign(signal=SOURCE, value=source["score"])
    found = []
    for target in TARGETS:
        own = pd.concat([rows[rows["language"] == target], source])
        own = own[own["target"].isin([target, ""])]
        own = own.assign(
            on=own["encoder.adjusted"].map(lambda name: "adjusted" if name else "original"),
            system=own["model"].map(labels(m)),
            score=own["model"].map(test[test["language"] == target].groupby("model")["score"].first()),
            to=target,
        )
        found.append(own[["to", "on", "system", "signal", "value", "score"]].dropna())
    return pd.concat(found).round(5).sort_values(["to", "signal", "on", "system", "value"])


def correlations(table: pd.DataFrame) -> pd.DataFrame:
    """Return how far each signal ranks models as their test scores do: in a target, and within an encoder."""
    table = table[~table["system"].isin(LABELLED)]
    found = {}
    for signal, own in table.groupby("signal"):
        each = dict([*own.groupby("to")])
        rho = {to: part["value"].corr(part["score"], "spearman") for to, part in each.items()}
        for on in ("original", "adjusted"):
            parts = [part[part["on"] == on] for part in each.values()]
            rho[on] = sum(part["value"].corr(part["score"], "spearman") for part in parts) / len(parts)
        found[signal] = {"models": len(own) // len(each), **rho}
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("signal").round(3)


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Return what adjusting, each way to train, and averaging bring, and how far two add up."""
    wide = table.pivot_table(index="seed", columns=["on", "system"], values="target")
    ways = [name for name in table["system"].unique() if name != BASE and AVERAGED not in name]
    found = {}
    for way in [BASE, *ways]:
        if ("adjusted", way) in wide:
            found["adjusting", way, ""] = wide["adjusted", way] - wide["original", way]
    for way in ways:
        gains = {on: wide[on, way] - wide[on, BASE] for on in wide.columns.levels[0] if (on, way) in wide}
        found |= {(way, BASE, on): gain for on, gain in gains.items()}
        if len(gains) > 1:
            found[f"{way} and adjusting", "their sum", ""] = gains["adjusted"] - gains["original"]
    for on, way in wide.columns:
        if way.endswith(AVERAGED):
            members = wide[on, way.removesuffix(AVERAGED)].groupby(lambda seed: seed // SIZE * SIZE).mean()
            found[way, "its models", on] = (wide[on, way] - members).dropna()
    rows = []
    for (what, against, on), values in found.items():
        one = crossed_estimate([*values.dropna()])
        row = {"what": what, "against": against, "on": on, "units": len(values.dropna())}
        numbers = {"points": one.mean, "low": one.low, "high": one.high, "p": one.p_value()}
        rows.append(row | numbers | {"seen": one.smallest_seen()})
    return pd.DataFrame(rows).round(4)


if __name__ == "__main__":
    folder = HERE / sys.argv[1]
    if sys.argv[2:]:
        measured = read_measurements(Path(sys.argv[2]))
        scores(measured).to_csv(folder / "scores.csv", index=False)
        paths(measured).to_csv(folder / "paths.csv", index=False)
        signals(measured).to_csv(folder / "signals.csv", index=False)
    effects(pd.read_csv(folder / "scores.csv")).to_csv(folder / "effects.csv", index=False)
    correlations(pd.read_csv(folder / "signals.csv")).to_csv(folder / "correlations.csv")
