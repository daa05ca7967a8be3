"""Judge claims by today's rules from the scores that are kept: `python docs/results/claims/from_rows.py`.

Where the runs are gone their recipe still describes them: its plan has the facts of each model, and a row is
of the one with its task, encoder, method and seed. The rows have no answers of examples, so chance is only
the seeds. Writes checks-rows.csv.
"""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

import pandas as pd

from isogloss.core.identity import content, identity
from isogloss.core.records import Record
from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.gradient_conflict.rows import ConflictRow
from isogloss.planning.plan import plan_recipe
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.reports.verdicts import check_rows, judge
from isogloss.runs.measure import Measure

HERE = Path(__file__).parent
RESULTS = HERE.parent

STUDIES = {
    ("papers/interference/claims", "interference/built-in/rows-scores.csv"): (
        "4a",
        "4e",
        "4g",
        "4h",
        "4j",
        "4l",
    ),
    ("papers/x-mixup/claims-nli", "x_mixup/nli_claims/rows.csv"): ("2d", "2j"),
}
"""Recipe and rows, and the claims that are judged from them."""

OVERLAP = {"joint-close": 1.0, "joint": 0.0}
"""Shared subwords of each pair, as recorded with the runs (claim 4l). Only their order is used."""

KEYS = ["task", "encoder", "method", "seed", "inputs"]
SCORE = ("language", "split", "metric", "score", "examples")


def measurements(recipe: str, rows: pd.DataFrame) -> Measurements:
    """Return the rows as the measurements that the recipe plans. Measurements without rows are missing."""
    plan = plan_recipe(recipe, assume=True)
    labels = {identity(encoder): label for encoder, label in plan.encoders.items()}
    methods = {key: label for label, keys in plan.methods.items() for key in keys}
    groups_by_model = dict(iter(rows.groupby(KEYS)))
    runs = [
        PlannedRun(id=identity(run), state="finished", folder=HERE, record=record)
        for run in plan.runs
        if isinstance(run, Measure)
        for record in record_measurements(run, groups_by_model, labels, methods)
    ]
    return Measurements(runs=runs, title=recipe, labels=labels, methods=plan.methods)


def record_measurements(
    run: Measure,
    groups_by_model_by_model: dict[object, pd.DataFrame],
    labels: dict[str, str],
    methods: dict[str, str],
) -> Iterator[Record]:
    """Yield the record of a measurement of scores with rows of its model, or of a joint encoder's overlap."""
    record = partial(Record, id=identity(run), kind=run.name, title=run.title, run=content(run))
    if run.diagnostic.name == "gradient-conflict":
        encoder = identity(run.subjects[0])
        row = {**dict.fromkeys(names_of(ConflictRow)), "model": encoder, "overlap": OVERLAP[labels[encoder]]}
        yield record(rows=[row])
    if run.diagnostic.name != "scores":
        return
    (model,) = run.models
    encoder = labels.get(identity(model.encoder), "").removeprefix("original")
    rows = groups_by_model_by_model.get(
        (model.task, encoder, methods[identity(model)], model.seed, run.inputs or "")
    )
    if rows is not None:
        rows = rows[rows["language"].isin(run.languages)][list(SCORE)]
        scores = [
            {"model": identity(model), "main": True, "baseline": None, **row}
            for row in rows.to_dict("records")
        ]
        yield record(rows=scores)


def names_of(row_class: type) -> list[str]:
    """Return the columns of a row."""
    return [field.name for field in fields(row_class)]


def checks(recipe: str, file: str, claims: Sequence[str]) -> pd.DataFrame:
    """Return the checks of some claims, judged from a file of rows."""
    rows = pd.read_csv(RESULTS / file, keep_default_na=False)
    corpus = rows["corpus"].str.partition(" ")
    rows = rows.assign(inputs=corpus[2])
    judged_outcomes = judge([claim for claim in CLAIMS if claim.id in claims], measurements(recipe, rows))
    return check_rows(judged_outcomes)


def main() -> None:
    """Write the checks."""
    parts = [checks(*study, claims) for study, claims in STUDIES.items()]
    pd.concat(parts).sort_values("claim", kind="stable").to_csv(HERE / "checks-rows.csv", index=False)


if __name__ == "__main__":
    main()
