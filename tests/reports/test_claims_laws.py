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
from made_up_rows import Row, make_measurements, score, shuffle_rows

from isogloss.reports.measurements import FRAMES, Measurements
from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import PAPERS, Claim, Verdict, check_rows, judge


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_where_it_stands_and_how_it_is_judged(claim: Claim) -> None:
    assert re.fullmatch("[1-4][a-z]", claim.id)
    assert claim.paper in PAPERS
    assert claim.where
    assert claim.says.endswith(".")
    assert claim.rule
    assert claim.code.endswith(".")
    assert set(claim.needs) <= set(FRAMES)


def test_claims_are_lettered_in_order_and_say_different_things() -> None:
    letters = {paper: [one.id[1] for one in CLAIMS if one.paper == paper] for paper in PAPERS}
    assert {paper: "".join(own) for paper, own in letters.items()} == {
        1: "abcdefghijkl",
        2: "abcdefghijklm",
        3: "abcdefghij",
        4: "abcdefghijklm",
    }
    assert len({one.says for one in CLAIMS}) == len(CLAIMS) == 48


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_whose_its_threshold_is(claim: Claim) -> None:
    """Ranges other than "more" and "less" are ours, with the paper's words; only such have alternatives."""
    assert re.match("Ours: .*|The paper's", claim.threshold)
    if claim.threshold.startswith("Ours"):
        assert re.search("“.+”", claim.threshold)
    assert not claim.ranges or claim.threshold.startswith("Ours")


BILINGUAL = score(0.5, about={"method": "bilingual", "target": "qad"})


@pytest.mark.parametrize(
    "m", [Measurements(runs=[]), make_measurements(scores=[BILINGUAL])], ids=["nothing", "other"]
)
def test_measurements_of_something_else_judge_no_claim(m: Measurements) -> None:
    own = [one for one in CLAIMS if one.paper < 3 or not m._frames]
    assert judge(own, m) == []


def cases() -> dict[str, Any]:
    """Give each paper's cases by name: a claim, rows by frame, and the verdict on them."""
    found = {
        f"{claim}-{verdict}": (claim, frames, verdict)
        for paper in (transfer, mixup)
        for (claim, verdict), frames in paper.CASES.items()
    }
    for paper in (adjustment, interference):
        found |= {f"{one[0]}-{one[2]}-{number}": one for number, one in enumerate(paper.CASES)}
    rules = adjustment.RULES.items()
    return found | {name: (claim, {"scores": rows}, verdict) for name, (claim, rows, verdict) in rules}


CASES = cases()
SLOW = {name for name, (claim, _, _) in CASES.items() if claim[0] in "23"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in CASES]
)
def test_a_verdict_follows_the_rule(name: str) -> None:
    claim, frames, verdict = CASES[name]
    (outcome,) = judge([one for one in CLAIMS if one.id == claim], make_measurements(**frames))
    assert outcome.verdict == verdict
    rows = check_rows([outcome])
    judged = rows[rows["judged"].eq(True)]
    worst = min(judged["verdict"], key=get_args(Verdict).index)
    assert worst == ("contradicted" if verdict == "mixed" else verdict)
    tested = judged.dropna(subset="p")
    assert tested["mean"].between(tested["low"] - 1e-9, tested["high"].fillna(np.inf) + 1e-9).all()
    assert (tested["p_holm"] >= tested["p"]).all()
    assert_thresholds_are_marked(outcome.claim, judged)


PAPERS_BOUNDS = (0, 1)
"""Bounds of "more" and "less": of a difference 0, of a ratio 1."""


def assert_thresholds_are_marked(claim: Claim, judged: pd.DataFrame) -> None:
    """Assert that other bounds quote the paper's words, are ours by the claim, and contradict nothing."""
    bounds = judged[["above", "below"]]
    ours = judged[(bounds.notna() & ~bounds.isin(PAPERS_BOUNDS)).any(axis=1)]
    assert ours["printed"].str.len().gt(0).all()
    assert "contradicted" not in set(ours["verdict"])
    assert not judged.loc[judged.index.difference(ours.index), "printed"].any()
    if len(ours):
        assert "ours" in claim.threshold.lower()
        assert "“" in claim.threshold


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_every_claim_has_cases_of_three_verdicts(claim: Claim) -> None:
    verdicts = {verdict for one, _, verdict in CASES.values() if one == claim.id}
    assert verdicts >= {"supported"} and verdicts & {"contradicted", "mixed", "differs from print"}
    assert claim.paper > 2 or "undecided" in verdicts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "rows", "count"),
    [
        (1, transfer.everything(), 10),
        (2, mixup.everything(), 13),
        (3, adjustment.everything(), 6),
        (4, interference.everything(), 8),
    ],
)
def test_the_order_of_rows_changes_nothing(number: int, rows: dict[str, list[Row]], count: int) -> None:
    own = [claim for claim in CLAIMS if claim.paper == number]
    frames = rows, {name: shuffle_rows(some) for name, some in rows.items()}
    before, after = (
        {one.claim.id: (one.verdict, one.found) for one in judge(own, make_measurements(**one_order))}
        for one_order in frames
    )
    assert before == after
    assert len(before) == count
