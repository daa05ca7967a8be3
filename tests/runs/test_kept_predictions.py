"""Score runs store predictions next to their record. All else stays unchanged."""

import json
import shutil

import pytest
from pyarrow import parquet

import isogloss
from each import each
from isogloss.core.records import PREDICTIONS, RECORD, read_record
from isogloss.core.rows.models import Contributions, total
from isogloss.data.result_files import read_predictions
from isogloss.runs import execute, fine_tune, measure
from isogloss.runs.splits import read_or_translated
from tiny import tiny


def score_runs(tiny_runs):
    return [path.parent for path in sorted(tiny_runs.glob(f"*/{RECORD}")) if "scores: " in path.read_text()]


def path_runs(tiny_runs):
    return [path.parent for path in tiny_runs.glob(f"*/{RECORD}") if "interpolation: " in path.read_text()]


@pytest.mark.slow
def test_score_runs_and_paths_keep_what_examples_add_and_others_do_not(tiny_runs):
    keeping = sorted([*score_runs(tiny_runs), *path_runs(tiny_runs)])
    assert sorted(path.parent for path in tiny_runs.glob(f"*/{PREDICTIONS}")) == keeping


def test_every_number_of_a_record_follows_from_what_was_kept(tiny_runs):
    for folder in each(score_runs(tiny_runs)):
        kept_predictions = read_predictions(folder / PREDICTIONS)
        rows = read_record(folder).rows
        for language, own_kept_prediction in kept_predictions.items():
            again = {
                name: total(Contributions(*(list(value) for value in measures)))
                for name, measures in own_kept_prediction.measures.items()
            }
            assert again == {row["metric"]: row["score"] for row in rows if row["language"] == language}
            assert {len(own_kept_prediction.ids)} == {
                row["examples"] for row in rows if row["language"] == language
            }
        assert kept_predictions.keys() == {row["language"] for row in rows}


def test_predictions_are_json(tiny_runs):
    table = parquet.read_table(score_runs(tiny_runs)[0] / PREDICTIONS)
    tags = {tag for text in table["predicted"].to_pylist() for tag in json.loads(text)}
    assert {tag[0] for tag in each(tags)} <= set("OBI")


@pytest.mark.slow
def test_the_same_runs_keep_the_same_bytes(tiny_runs, tmp_path):
    again = tmp_path / "again"
    shutil.copytree(tiny_runs, again)
    for folder in score_runs(again):
        (folder / RECORD).unlink()
        (folder / PREDICTIONS).unlink()
    outcome = isogloss.run(tiny(tmp_path), out=again, jobs=1, report=False).outcome
    assert len(outcome.made) == len(score_runs(tiny_runs)) == len(score_runs(again))
    for parent_before, parent_after in zip(score_runs(tiny_runs), score_runs(again), strict=True):
        for name in (PREDICTIONS, RECORD):
            assert (parent_before / name).read_bytes() == (parent_after / name).read_bytes()


@pytest.mark.slow
def test_what_a_model_was_trained_on_is_read_once_for_all_languages(tiny_runs, tmp_path, monkeypatch):
    again = tmp_path / "again"
    shutil.copytree(tiny_runs, again)
    folder = score_runs(again)[0]
    assert len(read_record(folder).rows) > 1
    (folder / RECORD).unlink()
    splits = []

    def record_translation(context, translated, split):
        splits.append(split)
        return read_or_translated(context, translated, split)

    for module in (fine_tune, measure):
        monkeypatch.setattr(module, "read_or_translated", record_translation)
    isogloss.run(tiny(tmp_path), out=again, jobs=1, report=False)
    assert {split.split for split in splits} == {"train", "dev"}
    assert len(splits) == len(set(splits))


def test_a_run_is_not_finished_before_its_predictions_are_written(tiny_runs, tmp_path, monkeypatch):
    again = tmp_path / "again"
    shutil.copytree(tiny_runs, again)
    folder = score_runs(again)[0]
    for name in (RECORD, PREDICTIONS):
        (folder / name).unlink()

    def interrupt(path, _):
        raise KeyboardInterrupt

    monkeypatch.setattr(execute, "write_predictions", interrupt)
    with pytest.raises(KeyboardInterrupt):
        isogloss.run(tiny(tmp_path), out=again, jobs=1, report=False)
    assert not (folder / RECORD).exists()
