"""The scripts of docs/results run from their stored rows, and write the existing tables."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

RESULTS = Path(__file__).parents[1] / "docs" / "results"
WRITING = {
    "advice/table.py": ["advice/gains.csv", "advice/regret.csv"],
    "averaging/table.py": ["averaging/averages.csv"],
    "baselines/table.py": ["baselines/gains.csv", "baselines/findings.csv"],
    "claims/from_rows.py": ["claims/checks-rows.csv"],
    "claims/paper_1.py": ["claims/checks-paper-1.csv"],
    "claims/table.py": ["claims/README.md", "claims/verdicts.csv"],
    "choosing/nearest.py": ["choosing/nearest-tags-regret.csv"],
    "combinations/table.py upos": ["combinations/upos/effects.csv", "combinations/upos/correlations.csv"],
    "distance_dial/table.py": ["distance_dial/gains.csv"],
    "combinations/table.py ner": ["combinations/ner/effects.csv", "combinations/ner/correlations.csv"],
    "machine_translations/table.py": [
        "machine_translations/signals.csv",
        "machine_translations/intervals.csv",
    ],
    "real_weights/lottery/table.py": ["real_weights/lottery/arms.csv", "real_weights/lottery/tests.csv"],
    "seed_axes/table.py": ["seed_axes/tests.csv"],
    "seed_parts/first.py": ["seed_parts/arms.csv", "seed_parts/first.csv"],
    "seed_parts/table.py": ["seed_parts/parts.csv"],
    "shared_direction/table.py": ["shared_direction/differences.csv"],
    "x_mixup/mixing.py": ["x_mixup/mixing/effects.csv"],
    "x_mixup/topics/table.py": ["x_mixup/topics/differences.csv"],
}
"""Commands, and the files that they write."""

PRINTING = [
    "choosing/sources.py frozen-topics",
    "differences.py adjustment/continual/rows-scores-nli.csv neither",
    "interference/own_adapters/others.py",
    "interference/own_adapters/table.py",
    "x_mixup/labels/labels.py",
]
FROM_RUNS = {
    "advice/make_files.py",
    "adjustment/apart.py",
    "adjustment/one_text/make_files.py",
    "choosing/frozen.py",
    "distance_dial/make_runs.py",
    "further_tasks/make_files.py",
    "interference/own_adapters/arms.py",
    "machine_translations/predict.py",
    "module_swap/other_seed.py",
    "module_swap/table.py",
    "own_corpora/make_files.py",
    "real_weights/lottery/shuffled_verses.py",
    "rows.py",
    "seed_axes/axes.py",
    "shared_direction/gemma.py",
    "shared_direction/make_files.py",
    "shared_direction/make_runs.py",
    "under_specified/add_seeds.py",
    "x_mixup/mixed_noise/make_files.py",
    "x_mixup/mixed_noise/noise_ratio.py",
    "x_mixup/topics/make_files.py",
}
"""Those that read runs or corpora, and the diagnostics of recipes."""


def run(command, folder):
    process = subprocess.run(
        [sys.executable, *command.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_every_script_of_the_results_is_listed_here():
    paths = {str(path.relative_to(RESULTS)) for path in RESULTS.rglob("*.py")}
    assert paths == {command.split()[0] for command in (*WRITING, *PRINTING)} | FROM_RUNS


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("command", WRITING)
def test_a_table_of_results_is_what_its_script_makes_of_the_rows_beside_it(command, tmp_path):
    folder = shutil.copytree(RESULTS, tmp_path / "results")
    for name in WRITING[command]:
        (folder / name).unlink()
    run(command, folder)
    for name in WRITING[command]:
        if name.endswith(".csv"):
            assert_frame_equal(pd.read_csv(folder / name), pd.read_csv(RESULTS / name), rtol=1e-6)
        else:
            assert (folder / name).read_text(encoding="utf-8") == (RESULTS / name).read_text(encoding="utf-8")


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("command", PRINTING)
def test_a_script_that_prints_its_table_does_so_from_the_rows_beside_it(command):
    assert len(run(command, RESULTS).splitlines()) > 5


BY_HAND = re.compile(r"ttest|\bt\.ppf|stdtr|\bt\.sf")
"""Tests and intervals of scipy, in place of the project's own."""


@pytest.mark.parametrize(
    "path", sorted(RESULTS.rglob("*.py")), ids=lambda path: str(path.relative_to(RESULTS))
)
def test_scripts_of_results_use_our_tests_and_correct_for_all_their_comparisons(path):
    text = path.read_text(encoding="utf-8")
    assert not BY_HAND.search(text)
    assert "p_value()" not in text or "holm(" in text
