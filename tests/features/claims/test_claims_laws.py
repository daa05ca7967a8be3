"""Every claim has a separate id, words and a rule, and is judged if it has data."""

import re
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import test_claims_adjustment as adjustment
import test_claims_interference as interference
import test_claims_mixup as mixup
import test_claims_transfer as transfer

from isogloss.core.rows import row_frames
from isogloss.features.claims.four_papers import CLAIMS, PAPERS
from isogloss.reports.measurements import Measurements
from isogloss.reports.verdicts import Claim, Verdict, check_rows, judge
from made_up_rows import Row, make_measurements, score, shuffle_rows


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_where_it_stands_and_how_it_is_judged(claim: Claim) -> None:
    assert re.fullmatch("[1-4][a-z]", claim.id)
    assert (claim.subject, claim.title) == PAPERS[claim.id[0]]
    assert claim.where
    assert claim.says.endswith(".")
    assert claim.rule
    assert claim.code.endswith(".")
    assert set(claim.needs) <= set(row_frames())


def test_claims_are_lettered_in_order_and_say_different_things() -> None:
    letters = {paper: [claim.id[1] for claim in CLAIMS if claim.id[0] == paper] for paper in PAPERS}
    assert {paper: "".join(own_letter) for paper, own_letter in letters.items()} == {
        "1": "abcdefghijkl",
        "2": "abcdefghijklm",
        "3": "abcdefghij",
        "4": "abcdefghijklm",
    }
    assert len({claim.says for claim in CLAIMS}) == len(CLAIMS) == 48


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_whose_its_threshold_is(claim: Claim) -> None:
    """Ranges other than "more" and "less" are ours, with the paper's words. Only such have alternatives."""
    assert re.match("Ours: .*|The paper's", claim.threshold)
    if claim.threshold.startswith("Ours"):
        assert re.search("“.+”", claim.threshold)
    assert not claim.ranges or claim.threshold.startswith("Ours")


BILINGUAL = score(0.5, about={"method": "bilingual", "target": "qad"})


@pytest.mark.parametrize(
    "measurements", [Measurements(runs=[]), make_measurements(scores=[BILINGUAL])], ids=["nothing", "other"]
)
def test_measurements_of_something_else_judge_no_claim(measurements: Measurements) -> None:
    own_claims = [claim for claim in CLAIMS if claim.id[0] in "12" or not measurements._frames]
    assert judge(own_claims, measurements) == []


def cases() -> dict[str, Any]:
    """Give each paper's cases by name: a claim, rows by frame, and the verdict on them."""
    claims = {
        f"{claim}-{verdict}": (claim, frames, verdict)
        for paper in (transfer, mixup)
        for (claim, verdict), frames in paper.CASES.items()
    }
    for paper in (adjustment, interference):
        claims |= {f"{item[0]}-{item[2]}-{index}": item for index, item in enumerate(paper.CASES)}
    rules = adjustment.RULES.items()
    return claims | {name: (claim, {"scores": rows}, verdict) for name, (claim, rows, verdict) in rules}


CASES = cases()
SLOW = {name for name, (claim, _, _) in CASES.items() if claim[0] in "23"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES]
)
def test_a_verdict_follows_the_rule(name: str) -> None:
    claim, frames, verdict = CASES[name]
    (outcome,) = judge([example for example in CLAIMS if example.id == claim], make_measurements(**frames))
    assert outcome.verdict == verdict
    rows = check_rows([outcome])
    judged_row = rows[rows["judged"].eq(True)]
    worst_verdict = min(judged_row["verdict"], key=get_args(Verdict).index)
    assert worst_verdict == ("contradicted" if verdict == "mixed" else verdict)
    tested_row = judged_row.dropna(subset="p")
    assert (
        tested_row["mean"].between(tested_row["low"] - 1e-9, tested_row["high"].fillna(np.inf) + 1e-9).all()
    )
    assert (tested_row["p_holm"] >= tested_row["p"]).all()
    assert_thresholds_are_marked(outcome.claim, judged_row)


def assert_thresholds_are_marked(claim: Claim, judged_table: pd.DataFrame) -> None:
    """Assert that our bounds quote the paper's words, are ours by the claim, and contradict nothing.

    Bounds of "more" and "less" are the paper's: 0 for a difference, 1 for a ratio.
    """
    bounds = judged_table[["above", "below"]]
    is_ratio = judged_table["about"].str.contains(" / |ratio")
    of_paper = bounds.eq(0) | (bounds.eq(1).mul(is_ratio, axis=0))
    ours = judged_table[(bounds.notna() & ~of_paper).any(axis=1)]
    assert ours["printed"].str.len().gt(0).all()
    assert "contradicted" not in set(ours["verdict"])
    assert not judged_table.loc[judged_table.index.difference(ours.index), "printed"].any()
    if len(ours):
        assert "ours" in claim.threshold.lower()
        assert "“" in claim.threshold


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_has_cases_of_three_verdicts(claim: Claim) -> None:
    verdicts = {verdict for item, _, verdict in CASES.values() if item == claim.id}
    assert verdicts >= {"supported"} and verdicts & {"contradicted", "mixed", "differs from print"}
    assert claim.id[0] in "34" or "undecided" in verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("paper", "rows", "count"),
    [
        ("1", transfer.everything(), 10),
        ("2", mixup.everything(), 13),
        ("3", adjustment.everything(), 6),
        ("4", interference.everything(), 8),
    ],
)
def test_the_order_of_rows_changes_nothing(paper: str, rows: dict[str, list[Row]], count: int) -> None:
    own_claims = [claim for claim in CLAIMS if claim.id[0] == paper]
    frames = rows, {name: shuffle_rows(row) for name, row in rows.items()}
    verdicts_before, verdicts_after = (
        {
            outcome.claim.id: (outcome.verdict, outcome.found)
            for outcome in judge(own_claims, make_measurements(**one_order))
        }
        for one_order in frames
    )
    assert verdicts_before == verdicts_after
    assert len(verdicts_before) == count
