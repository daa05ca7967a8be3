"""Every claim has an id, words and a rule of its own, and is judged where there is something to judge."""

import re

import pytest
from made_up_rows import measured, score

from isogloss.reports.measurements import FRAMES, Measurements
from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import PAPERS, Claim, judge


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_a_claim_says_where_it_stands_and_how_it_is_judged(claim: Claim) -> None:
    assert re.fullmatch("[1-4][a-z]", claim.id)
    assert claim.paper in PAPERS
    assert claim.where
    assert claim.says.endswith(".")
    assert claim.rule
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


BILINGUAL = score(0.5, about={"method": "bilingual", "target": "qad"})


@pytest.mark.parametrize("m", [Measurements(runs=[]), measured(scores=[BILINGUAL])], ids=["nothing", "other"])
def test_measurements_of_something_else_judge_no_claim(m: Measurements) -> None:
    own = [one for one in CLAIMS if one.paper < 3 or not m._frames]
    assert judge(own, m) == []
