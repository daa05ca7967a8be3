"""Judge the first paper's claims by today's rules: `python docs/results/claims/paper_1.py [FIRST_SEED]`.

From the rows and facts of docs/results/under_specified, which were recorded before paths kept what each
example adds to their scores; so its findings are only "on these examples". Writes checks-paper-1.csv. With
FIRST_SEED, prints the verdicts of the seeds from this one on.
"""

import sys
from pathlib import Path

import pandas as pd

from isogloss.features.claims.four_papers import CLAIMS
from isogloss.features.claims.transfer import RULES
from isogloss.reports.measurements import TESTED, Measurements
from isogloss.reports.run_facts import FACTS
from isogloss.reports.verdicts import check_rows, judge

HERE = Path(__file__).parent
ROWS = HERE.parent / "under_specified"

CORPORA = {"ner": "wikiann", "upos": "ud"}

ENDS = {"interpolation": ("end", "start"), "plane": ("origin", "first", "second")}
ENDS |= {"deltas": ENDS["plane"], "scores": ("model",)}
"""Columns of model ids. The first one names the model whose facts a row has."""


def frame(name: str, facts: pd.DataFrame) -> pd.DataFrame:
    """Return rows of a kind with the facts of their models."""
    rows = pd.read_csv(ROWS / f"rows-{name}.csv").drop_duplicates()
    first_end, *other_ends = ENDS[name]
    rows = rows[rows[first_end].isin(facts.index)]
    repeated_columns = [column for column in rows if column in facts]
    rows = rows.join(facts.drop(columns=repeated_columns), on=first_end)
    for other_end in other_ends:
        rows = rows.join(facts[["way", "method"]].add_prefix(f"{other_end}."), on=other_end)
    return rows.assign(corpus=rows["task"].map(CORPORA))


def measurements(first_seed: int = 0) -> Measurements:
    """Return the recorded rows of the seeds from ``first_seed`` on as measurements."""
    facts = pd.read_csv(ROWS / "facts.csv", index_col="id", dtype={"seed": "Int64", "encoder.seed": "Int64"})
    facts = facts[facts["seed"].fillna(first_seed) >= first_seed]
    texts = [*FACTS, *TESTED]
    facts = facts.reindex(columns=list(dict.fromkeys((*texts, *facts.columns))))
    empty_columns = [
        column for column in texts if facts[column].isna().all() or facts[column].dtype == object
    ]
    facts[empty_columns] = facts[empty_columns].astype(object).fillna("")
    labels = {
        key: "early" if facts["encoder.method.steps"][key] == 1500 else "shipped" for key in facts.index
    }
    runs = dict(zip(facts["encoder.run"], (labels.get(value) for value in facts.index), strict=True))
    return Measurements(runs=[], labels=runs, _frames={name: frame(name, facts) for name in ENDS})


def main(first_seed: int) -> None:
    """Write the checks, or print the verdicts of later seeds."""
    claims = [claim for claim in CLAIMS if claim.id in RULES]
    outcomes = judge(claims, measurements(first_seed))
    if first_seed:
        sys.stdout.writelines(f"{outcome.claim.id} {outcome.verdict}\n" for outcome in outcomes)
    else:
        check_rows(outcomes).to_csv(HERE / "checks-paper-1.csv", index=False)


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0)
