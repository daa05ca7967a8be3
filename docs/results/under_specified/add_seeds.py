"""Add the rows of more seeds to the kept rows: `python docs/results/under_specified/add_seeds.py RUNS`.

RUNS is a folder of `isogloss run papers/under-specified/claims` with other seeds. Seeds that are kept already
are compared with the kept rows instead, and the largest difference of a score is printed.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.reports.measurements import Measurements, read_measurements

HERE = Path(__file__).parent
ENDS = {"interpolation": "end", "plane": "origin", "deltas": "origin", "scores": "model"}
"""Column with the model that determines the seed of a row, by kind of row."""

MODEL = ["task", "source", "target", "seed", "method", "encoder.method.steps"]
"""What identifies a model in both folders, whose ids may differ."""


ENCODER_IDS = ["encoder", "encoder.run", "encoder.original"]


def read_facts(measurements: Measurements, columns: list[str]) -> pd.DataFrame:
    """Return the facts of all models of the runs, with the given columns."""
    facts = {key: dict(facts) for run in measurements.runs for key, facts in run.models.items()}
    table = pd.DataFrame.from_dict(facts, orient="index").rename_axis("id").reset_index()
    return table.reindex(columns=columns).drop_duplicates("id")


def use_kept_ids(facts: pd.DataFrame, kept_facts: pd.DataFrame) -> pd.DataFrame:
    """Give encoders and ways of training the ids that they have in the kept rows, by steps and method."""
    encoders = kept_facts[kept_facts["kind"] == "encoder"].set_index("encoder.method.steps")
    ways = kept_facts.dropna(subset=["way"]).drop_duplicates("method").set_index("method")["way"]
    ids = {name: facts["encoder.method.steps"].map(encoders[name]) for name in ENCODER_IDS}
    seeds = {name: pd.to_numeric(facts[name]).astype("Int64") for name in ("seed", "encoder.seed")}
    return facts.assign(way=facts["method"].map(ways), **ids, **seeds)


def compare(kept_rows: pd.DataFrame, rows: pd.DataFrame, end: str, facts: pd.DataFrame) -> None:
    """Print the largest difference of a number in rows about the same models."""
    numbers = [name for name in ("score", "ratio", "angle") if name in rows]
    keys = [
        name
        for name in ("part", "alpha", "alpha_first", "alpha_second", "language", "metric")
        if name in rows
    ]
    keys += MODEL
    described_tables = [
        table.merge(facts[["id", *MODEL]], left_on=end, right_on="id")[[*keys, *numbers]].drop_duplicates(
            keys
        )
        for table in (kept_rows, rows)
    ]
    joined = described_tables[0].merge(described_tables[1], on=keys, suffixes=("_kept", ""))
    differences = [float((joined[name] - joined[f"{name}_kept"]).abs().max()) for name in numbers]
    print(f"{len(joined)} rows of kept seeds, largest difference {max(differences):g}")


def main(runs: Path) -> None:
    """Append rows and facts of new seeds."""
    measurements = read_measurements(runs)
    kept_facts = pd.read_csv(HERE / "facts.csv", dtype={"seed": "Int64", "encoder.seed": "Int64"})
    facts = use_kept_ids(read_facts(measurements, list(kept_facts)), kept_facts)
    kept_seeds = set(kept_facts.loc[kept_facts["kind"] == "model", "seed"])
    new_facts = facts[~facts["id"].isin(kept_facts["id"])]
    new_models = set(new_facts["id"][new_facts["kind"].eq("model") & ~new_facts["seed"].isin(kept_seeds)])
    for kind, end in ENDS.items():
        path = HERE / f"rows-{kind}.csv"
        kept_rows = pd.read_csv(path)
        rows = measurements.frame(kind).reindex(columns=list(kept_rows))
        is_new = rows[end].isin(new_models)
        compare(kept_rows, rows[~is_new], end, pd.concat([kept_facts, new_facts]))
        append(rows[is_new], path)
        print(f"{kind}: {is_new.sum()} rows added")
    append(new_facts[new_facts["id"].isin(new_models)], HERE / "facts.csv")


def append(rows: pd.DataFrame, path: Path) -> None:
    """Append rows to a file that has a header."""
    rows.to_csv(path, mode="a", header=False, index=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
