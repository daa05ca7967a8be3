"""Noise supports no claim, and what a claim says is found where it is so."""

from collections.abc import Callable, Iterable

import pytest
from court import TRIALS, Frames, Trial, generators, verdict
from court_systems import SYSTEM_TRIALS

from isogloss.reports.report import CLAIMS
from isogloss.reports.verdicts import Verdict

DRAWS, RIGHT = 6, 3
"""Of a true level of 6 %, more than three of six draws are wrong once in 6,000 times. Once three are right
that is decided, and the others are not judged."""

ALL_TRIALS = (*TRIALS, *SYSTEM_TRIALS)


def test_every_claim_is_tried() -> None:
    assert [trial.claim for trial in ALL_TRIALS] == [claim.id for claim in CLAIMS]


@pytest.mark.slow
@pytest.mark.parametrize("trial", ALL_TRIALS, ids=lambda trial: trial.claim)
def test_noise_is_no_evidence(trial: Trial) -> None:
    pairs = [
        (trial.absent(rng, trial.seeds), trial.present(rng, trial.seeds))
        for rng in generators(trial, trial.seeds, DRAWS)
    ]
    absent, present = zip(*pairs, strict=True)
    # Equal systems contradict no difference; a path without its rise or fall does contradict a claim of one.
    wrong = [{"supported"}, *([{"contradicted", "mixed"}] if trial in SYSTEM_TRIALS else [])]
    assert hold(trial, absent, *(lambda found, no=no: found not in no for no in wrong))
    assert hold(trial, present, lambda found: found == "supported")


def hold(trial: Trial, draws: Iterable[Frames], *laws: Callable[[Verdict], bool]) -> bool:
    """Judge draws until each law is true of enough of them; return whether that is so of some."""
    right = [0] * len(laws)
    for frames in draws:
        found = verdict(trial.claim, frames)
        right = [count + law(found) for count, law in zip(right, laws, strict=True)]
        if min(right) >= RIGHT:
            return True
    return False
