"""Noise supports no claim, and what a claim says is found where it is so."""

import pytest
from court import TRIALS, Trial, tried
from court_systems import SYSTEM_TRIALS

from isogloss.reports.report import CLAIMS

DRAWS = 6
"""Of a true level of 6 %, more than three of so many are wrong once in 6,000 times."""

ALL_TRIALS = (*TRIALS, *SYSTEM_TRIALS)


def test_every_claim_is_tried() -> None:
    assert [trial.claim for trial in ALL_TRIALS] == [claim.id for claim in CLAIMS]


@pytest.mark.slow
@pytest.mark.parametrize("trial", ALL_TRIALS, ids=lambda trial: trial.claim)
def test_noise_is_no_evidence(trial: Trial) -> None:
    tally = tried(trial, seeds=trial.seeds, draws=DRAWS)
    assert tally.supported_absent <= 3 / DRAWS
    # Equal systems contradict no difference; a path without its rise or fall does contradict a claim of one.
    assert trial not in SYSTEM_TRIALS or tally.contradicted_absent <= 3 / DRAWS
    assert tally.contradicted_present <= 3 / DRAWS
    assert tally.power >= 0.5
