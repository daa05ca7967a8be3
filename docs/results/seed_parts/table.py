"""Divide the variance over seeds into head, order and rest: `python docs/results/seed_parts/table.py [RUNS]`.

With RUNS, the folder of tags/ and names/, rows.csv is written from their records first. It gives parts.csv:
for each language and the mean of the targets, the standard deviation over all pairs of a
head and an order, and the share of the variance that each factor explains.
"""

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from isogloss.metrics.significance import holm

HERE = Path(__file__).parent
STUDIES = ("tags", "names")
SOURCE = "qaa"
TARGETS = "mean of targets"
ROUNDS = 10_000
NULL_TABLES = 1_000
NULL_ROUNDS = 400
FACTORS = ("head", "order")

Floats = npt.NDArray[np.float64]


def write_rows(folder: Path) -> None:
    """Write the test scores of all pairs of a head and an order, in percent."""
    import isogloss

    tables = []
    for study in STUDIES:
        rows = isogloss.read(folder / study).frame("scores")
        rows = rows[rows["main"].eq(True)]
        rows = rows.assign(
            study=study,
            head=rows["optimization.head_seed"].astype(int),
            order=rows["seed"],
            score=(100 * rows["score"]).round(4),
        )
        tables.append(rows[["study", "head", "order", "language", "score"]])
    keys = ["study", "head", "order", "language"]
    pd.concat(tables).sort_values(keys).to_csv(HERE / "rows.csv", index=False)


def mean_squares(table: Floats) -> Floats:
    """Return the mean squares of heads (rows), orders (columns) and the rest, of one table or several."""
    rows, columns = table.shape[-2:]
    mean = table.mean(axis=(-2, -1), keepdims=True)
    by_row = table.mean(axis=-1, keepdims=True) - mean
    by_column = table.mean(axis=-2, keepdims=True) - mean
    rest = table - mean - by_row - by_column
    squares = (
        columns * (by_row**2).sum(axis=(-2, -1)) / (rows - 1),
        rows * (by_column**2).sum(axis=(-2, -1)) / (columns - 1),
        (rest**2).sum(axis=(-2, -1)) / ((rows - 1) * (columns - 1)),
    )
    return np.stack(squares, axis=-1)


def shares(squares: Floats, rows: int, columns: int) -> Floats:
    """Return the shares of head, order and rest in the variance of a pair. Negative estimates count as 0."""
    of_head, of_order, rest = np.moveaxis(squares, -1, 0)
    variances = np.stack([(of_head - rest) / columns, (of_order - rest) / rows, rest], axis=-1).clip(min=0)
    total = variances.sum(axis=-1, keepdims=True)
    return np.asarray(variances / total)


def interval_of_shares(table: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return generalised 95 % intervals of the shares."""
    rows, columns = table.shape
    freedom = np.array([rows - 1, columns - 1, (rows - 1) * (columns - 1)])
    drawn = mean_squares(table) * freedom / rng.chisquare(freedom, size=(ROUNDS, 3))
    low, high = np.quantile(shares(drawn, rows, columns), [0.025, 0.975], axis=0)
    return low, high


def permutation_p(table: Floats, factor: int, rounds: int, rng: np.random.Generator) -> float:
    """Return the p of a factor's variance: its levels are exchanged within each level of the other one."""
    observed = mean_squares(table)[factor]
    permuted = rng.permuted(np.broadcast_to(table, (rounds, *table.shape)), axis=1 + factor)
    return float((1 + (mean_squares(permuted)[:, factor] >= observed - 1e-12).sum()) / (rounds + 1))


def rejected_tables(table: Floats, factor: int, rng: np.random.Generator) -> float:
    """Return the share of tables without a factor, whose values are permuted, that are rejected at 5 %."""
    nulls = rng.permuted(np.broadcast_to(table.ravel(), (NULL_TABLES, table.size)), axis=1)
    p_values = [permutation_p(null.reshape(table.shape), factor, NULL_ROUNDS, rng) for null in nulls]
    return float(np.mean(np.array(p_values) <= 0.05))


def find_parts(rows: pd.DataFrame) -> pd.DataFrame:
    """Return spread and shares for each study and language, and for the mean of the targets."""
    rng = np.random.default_rng(0)
    table: list[dict[str, object]] = []
    for study in rows["study"].unique():
        scores = rows[rows["study"] == study].pivot_table(
            index=["head", "order"], columns="language", values="score"
        )
        scores[TARGETS] = scores.drop(columns=SOURCE).mean(axis=1)
        for language in (TARGETS, *(name for name in scores if name != TARGETS)):
            grid = scores[language].unstack("order").to_numpy(dtype=np.float64)
            squares = mean_squares(grid)
            low, high = interval_of_shares(grid, rng)
            row: dict[str, object] = {"study": study, "language": language, "mean": grid.mean()}
            row |= {"std": grid.std(ddof=1), "lowest": grid.min(), "highest": grid.max()}
            for index, (name, share) in enumerate(
                zip((*FACTORS, "rest"), shares(squares, *grid.shape), strict=True)
            ):
                row |= {name: share, f"{name}_low": low[index], f"{name}_high": high[index]}
            if language in (TARGETS, SOURCE):
                row |= {
                    f"p_{name}": permutation_p(grid, index, ROUNDS, rng) for index, name in enumerate(FACTORS)
                }
            if language == TARGETS:
                row |= {
                    f"null_{name}": rejected_tables(grid, index, rng) for index, name in enumerate(FACTORS)
                }
            table.append(row)
    frame = pd.DataFrame(table)
    is_tested = frame["language"] == TARGETS
    columns = [f"p_{name}" for name in FACTORS]
    corrected = np.array(holm(list(frame.loc[is_tested, columns].to_numpy().ravel())))
    frame.loc[is_tested, [f"{name}_holm" for name in columns]] = corrected.reshape(-1, len(columns))
    return frame.round(4)


if __name__ == "__main__":
    if sys.argv[1:]:
        write_rows(Path(sys.argv[1]))
    find_parts(pd.read_csv(HERE / "rows.csv")).to_csv(HERE / "parts.csv", index=False)
