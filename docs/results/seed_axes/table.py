"""Test what axes.py measured: `python docs/results/seed_axes/table.py`. It writes tests.csv.

Each row is a statistic of a task and a set, with the mean of its null distribution, p, and p with Holm's
correction over the statistics of the same name.
"""

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import rankdata

from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
SOURCE = "qaa"
ROUNDS = 4_999
KEYS = ["task", "set"]

Floats = npt.NDArray[np.float64]


def p_of(value: float, null: Floats) -> float:
    """Return the share of a null distribution that reaches a value, the value itself counted."""
    return float((1 + (null >= value - 1e-12).sum()) / (1 + len(null)))


def spectrum(gram: pd.DataFrame) -> tuple[Floats, float, Floats]:
    """Return the inner products of the models, the share of their first axis, and the shares of the null."""
    models = gram[gram["draw"] == "models"]
    table = models.pivot_table(index="row", columns="column", values="value").to_numpy()
    values = np.linalg.eigvalsh(table)
    return table, float(values[-1] / values.sum()), gram[gram["draw"] != "models"]["value"].to_numpy()


def left_out_predictions(gram: Floats) -> Floats:
    """Return the matrix of ridge regression from the others' scores to the prediction of each model."""
    count = len(gram)
    penalty = np.trace(gram) / (count - 1)
    predictions = np.zeros((count, count))
    for model in range(count):
        other_models = np.delete(np.arange(count), model)
        weights = np.linalg.solve(
            gram[np.ix_(other_models, other_models)] + penalty * np.eye(count - 1), gram[other_models, model]
        )
        predictions[model, other_models] = weights + (1 - weights.sum()) / (count - 1)
    return predictions


def r_squared(predictions: Floats, scores: Floats) -> Floats:
    """Return R² of scores [..., model] against the mean of the other models."""
    means = (scores.sum(axis=-1, keepdims=True) - scores) / (scores.shape[-1] - 1)
    left = ((scores - scores @ predictions.T) ** 2).sum(axis=-1)
    return np.asarray(1 - left / ((scores - means) ** 2).sum(axis=-1))


def regression(gram: Floats, scores: Floats, generator: np.random.Generator) -> tuple[float, Floats]:
    """Return R² of the models' scores, and of scores permuted over models."""
    predictions = left_out_predictions(gram)
    permuted = generator.permuted(np.tile(scores, (ROUNDS, 1)), axis=1)
    return float(r_squared(predictions, scores)), r_squared(predictions, permuted)


def difference_of_kinds(table: pd.DataFrame, generator: np.random.Generator) -> tuple[float, float, Floats]:
    """Return the mean change along axes and along random directions, and the null of their difference."""
    sizes = table["change"].abs().groupby([table["kind"], table["axis"]]).mean()
    axes = sizes["axis"].to_numpy()
    randoms = sizes["random"].to_numpy()
    permuted = generator.permuted(np.tile(np.concatenate([axes, randoms]), (ROUNDS, 1)), axis=1)
    null = permuted[:, : len(axes)].mean(axis=1) - permuted[:, len(axes) :].mean(axis=1)
    return float(axes.mean()), float(randoms.mean()), null


def rank_correlations(values: Floats, spreads: Floats) -> tuple[list[float], Floats]:
    """Return Spearman's correlation of each set, and the mean over sets under all permutations of targets."""

    def standardize(table: Floats) -> Floats:
        ranks = rankdata(table, axis=1)
        ranks = ranks - ranks.mean(axis=1, keepdims=True)
        return np.asarray(ranks / np.linalg.norm(ranks, axis=1, keepdims=True))

    value_ranks = standardize(values)
    spread_ranks = standardize(spreads)
    orders = np.array(list(permutations(range(values.shape[1]))))
    null = np.mean(
        [
            (row[orders] * spread_row).sum(axis=1)
            for row, spread_row in zip(value_ranks, spread_ranks, strict=True)
        ],
        axis=0,
    )
    return list((value_ranks * spread_ranks).sum(axis=1)), null


def test_sets() -> Iterator[dict[str, object]]:
    """Yield the statistics of each task and set."""
    generator = np.random.default_rng(0)
    scores, grams, walks = (pd.read_csv(HERE / f"{name}.csv") for name in ("scores", "gram", "walk"))
    for (task, kind), models in scores.groupby(KEYS, sort=False):
        row = {"task": task, "set": kind}
        table, share, null = spectrum(grams[(grams["task"] == task) & (grams["set"] == kind)])
        yield row | {"what": "first axis", "value": share, "null": null.mean(), "p": p_of(share, null)}
        by_language = models.pivot_table(index="seed", columns="language", values="score")
        targets = by_language.drop(columns=SOURCE).mean(axis=1).to_numpy()
        value, null = regression(table, targets, generator)
        yield row | {"what": "R² of targets", "value": value, "null": null.mean(), "p": p_of(value, null)}
        steps = walks[(walks["task"] == task) & (walks["set"] == kind)]
        for name, part in (
            ("change of targets", steps[steps["language"] != SOURCE]),
            ("change of source", steps[steps["language"] == SOURCE]),
        ):
            axis_change, random_change, null = difference_of_kinds(part, generator)
            test = {"p": p_of(axis_change - random_change, null)} if name == "change of targets" else {}
            yield row | {"what": name, "value": axis_change, "null": random_change} | test


def test_fisher() -> Iterator[dict[str, object]]:
    """Yield for each predictor of the spread its rank correlation in each set, and their mean with its p."""
    scores, measured = (pd.read_csv(HERE / f"{name}.csv") for name in ("scores", "fisher"))
    spreads = scores.groupby([*KEYS, "language"], sort=False)["score"].std().unstack("language")
    spreads = spreads.drop(columns=SOURCE)
    for predictor, part in measured.groupby("what", sort=False):
        values = part.groupby([*KEYS, "language"], sort=False)["value"].mean().unstack("language")
        values = values.loc[spreads.index, spreads.columns]
        correlations, null = rank_correlations(values.to_numpy(), spreads.to_numpy())
        for (task, kind), correlation in zip(spreads.index, correlations, strict=True):
            yield {
                "task": task,
                "set": kind,
                "what": f"spread by {predictor}",
                "value": correlation,
                "null": 0.0,
            }
        value = float(np.mean(correlations))
        yield {
            "task": "all",
            "set": "all",
            "what": f"spread by {predictor}",
            "value": value,
            "null": null.mean(),
            "p": float((null >= value - 1e-12).mean()),
        }


def main() -> None:
    """Write tests.csv."""
    frame = pd.DataFrame([*test_sets(), *test_fisher()])
    families = frame["what"].str.replace("spread by .*", "spread", regex=True)
    for _, part in frame[frame["p"].notna()].groupby(families, sort=False):
        frame.loc[part.index, "p_holm"] = holm(list(part["p"]))
    frame.to_csv(HERE / "tests.csv", index=False, float_format="%.4g")
    print(frame.to_string(index=False))


if __name__ == "__main__":
    main()
