"""Verdicts name their encoders and languages, are written to a file, and two files are compared."""

import json
import re
from pathlib import Path

import pytest
from made_up_runs import measure, model, path, pretrain, scores, small_study, write, write_plan

from isogloss.core.errors import ConfigError
from isogloss.reports.measurements import read_measurements
from isogloss.reports.report import CLAIMS, write_report
from isogloss.reports.verdicts import CLAIMS_FILE, PAPERS, changed_verdicts, scope_of


def study(folder: Path, gain: float, seeds: int = 6) -> Path:
    """Write a study whose bilingual models gain so much in the target, and its report."""
    runs = []
    for seed in range(seeds):
        alone, both = model(seed=seed), model("bilingual", target=["qad"], seed=seed)
        runs += [write(folder, one, [], title="fine-tuned") for one in (alone, both)]
        points = {at: 0.6 + seed / 100 + gain * at for at in (0.0, 0.25, 0.5, 0.75, 1.0)}
        runs.append(write(folder, measure("interpolation", [alone, both]), path(alone, both, points)))
    write_plan(folder, runs)
    write_report(folder)
    return folder


@pytest.mark.slow
def test_a_file_of_verdicts_says_what_is_published_and_what_was_found_here(tmp_path: Path) -> None:
    small_study(tmp_path)
    write_report(tmp_path)
    content = json.loads((tmp_path / CLAIMS_FILE).read_text(encoding="utf-8"))
    by_id = {claim.id: claim for claim in CLAIMS}
    assert content["recipe"] == "title = 'A study'" and content["version"]
    assert re.fullmatch("([0-9a-f]{40}(-dirty)?)?", content["commit"])
    assert all(claim["code"] for claim in content["claims"])
    assert [claim["id"] for claim in content["claims"]] == ["1b", "1c", "1f", "1h"]
    first = content["claims"][0]
    assert (first["published"], first["rule"]) == (by_id["1b"].says, by_id["1b"].rule)
    assert first["paper"] == PAPERS[1] and first["here"].startswith("in shipped, on built-in languages")
    assert {"about", "mean", "low", "high", "verdict", "judged"} <= set(first["checks"][0])


def test_a_scope_is_of_the_encoders_and_languages_of_the_runs(tmp_path: Path) -> None:
    shape = {
        "family": "bert",
        "layers": 4,
        "dim": 128,
        "vocabulary": 2000,
        "positions": 128,
        "feed_forward": 512,
    }
    encoder = {**pretrain(), "architecture": {"kind": "Architecture", **shape}}
    tuned = model(encoder=encoder)
    write(tmp_path, tuned)
    write(tmp_path, measure("scores", [tuned]), scores(tuned, {"qaa": 0.9, "qad": 0.5}))
    own = "in encoders of 1.1 M parameters, on built-in languages, which share one world: "
    assert scope_of(read_measurements(tmp_path)) == own
    other = model(source=["en"])
    write(tmp_path, other)
    write(tmp_path, measure("scores", [other]), scores(other, {"en": 0.9, "sw": 0.5}))
    both = "in shipped and encoders of 1.1 M parameters, on en, qaa, qad and sw: "
    assert scope_of(read_measurements(tmp_path)) == both


@pytest.mark.nightly
@pytest.mark.slow
def test_two_reports_differ_in_verdicts_and_the_checks_behind_them(tmp_path: Path) -> None:
    rising, falling = study(tmp_path / "rising", 0.2), study(tmp_path / "falling", -0.2)
    changes = {row["claim"]: row for row in changed_verdicts(rising, falling / CLAIMS_FILE)}
    assert (changes["1b"]["before"], changes["1b"]["after"]) == ("supported", "contradicted")
    assert "gain: 20.00 [20.00, 20.00] supported → -20.00" in changes["1b"]["why"]
    assert "1f" not in changes
    assert changed_verdicts(rising, rising) == []


def test_checks_with_other_numbers_alone_are_counted(tmp_path: Path) -> None:
    def verdicts(name: str, mean: float, turned: str) -> Path:
        numbers = {"mean": mean, "low": mean, "high": mean}
        checks = [{"about": "gain", "verdict": turned, **numbers}]
        checks += [{"about": about, "verdict": "supported", **numbers} for about in ("ρ", "R²")]
        claim = {"id": "1b", "rule": "", "verdict": turned, "checks": checks}
        path = tmp_path / name
        path.write_text(json.dumps({"claims": [claim]}), encoding="utf-8")
        return path

    (change,) = changed_verdicts(verdicts("a", 1.0, "supported"), verdicts("b", 0.5, "undecided"))
    assert change["why"] == (
        "gain: 1.00 [1.00, 1.00] supported → 0.50 [0.50, 0.50] undecided; "
        "2 more with other numbers and the same verdict"
    )


def test_verdicts_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"claims.*isogloss report DIR"):
        changed_verdicts(tmp_path, tmp_path)
