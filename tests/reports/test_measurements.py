"""Frames of rows with the facts of their models, however runs nest. Missing data is reported."""

import json
from pathlib import Path

import pytest

from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.core.rows import row_frames
from isogloss.reports.measurements import (
    Measurements,
    read_measurements,
    without_folders,
)
from isogloss.reports.run_facts import model_facts
from made_up_runs import (
    SHIPPED,
    adjust,
    measure,
    model,
    path,
    pretrain,
    scores,
    small_study,
    write,
    write_plan,
)
from says import check_wording


@pytest.fixture
def runs_folder(tmp_path: Path) -> Path:
    small_study(tmp_path)
    return tmp_path


def test_every_frame_is_there_and_empty_where_nothing_was_measured() -> None:
    measurements = Measurements(runs=[])
    assert all(
        measurements.frame(name).empty and "method" in measurements.frame(name) for name in row_frames()
    )
    assert len(row_frames()) > 20
    with pytest.raises(ConfigError, match=r"'score'.*'scores'"):
        measurements.frame("score")


def test_rows_have_the_facts_of_their_model_and_of_what_was_read(runs_folder: Path) -> None:
    frame = read_measurements(runs_folder).frame("scores")
    assert len(frame) == 12
    assert set(frame["method"]) == {"source-only", "bilingual"}
    assert set(frame["corpus"]) == {"ud"}
    assert set(frame[frame["method"] == "bilingual"]["target"]) == {"qad"}
    assert sorted(frame["seed"].unique()) == [0, 1, 2]
    assert frame["way"].nunique() == 2


def test_equal_rows_of_two_runs_count_once(tmp_path: Path) -> None:
    item = model()
    rows = scores(item, {"qaa": 0.5})
    for languages in (["qaa"], ["qaa", "qab"]):
        write(tmp_path, measure("scores", [item], languages=languages), rows)
    assert len(read_measurements(tmp_path).frame("scores")) == 1


def test_a_path_has_the_facts_of_its_end_and_the_way_of_its_start(runs_folder: Path) -> None:
    frame = read_measurements(runs_folder).frame("interpolation")
    assert set(frame["method"]) == {"bilingual"}
    assert set(frame["start.method"]) == {"source-only"}
    assert len(frame) == 9


def test_facts_reach_through_adjustment_to_pretraining() -> None:
    encoder = adjust(adjust(pretrain(seed=3, modules="adapter"), size=100), pairs="qaa-qab", size=300)
    facts = model_facts(model("x-mixup", target=["qad"], encoder=encoder, fields={"ratio": 0.5, "mse": 0.0}))
    expected = {
        "kind": "model",
        "method": "x-mixup",
        "method.ratio": 0.5,
        "method.mse": 0.0,
        "source": "qaa",
        "encoder.kind": "pretrain",
        "encoder.seed": 3,
        "encoder.modules": "adapter",
        "encoder.dim": 32,
        "encoder.adjusted": "cross-lingual-adjustment",
        "encoder.pairs": "qaa-qab",
        "encoder.size": 300,
        "encoder.depth": 2,
        "encoder.languages": "qaa+qad",
        "optimization.learning_rate": 0.001,
        "optimization.examples": 160,
    }
    assert {name: facts.get(name) for name in expected} == expected
    sampled_value = {**adjust(pretrain(), size=0), "sampled": 24}
    assert model_facts(sampled_value)["encoder.size"] == 24


def test_an_encoder_has_one_id_for_all_its_seeds_and_its_original_one() -> None:
    first_model_facts, second = (
        model_facts(adjust(pretrain(seed=seed), size=100, seed=seed)) for seed in (0, 1)
    )
    assert first_model_facts["encoder"] == second["encoder"]
    assert first_model_facts["encoder.run"] != second["encoder.run"]
    assert (
        first_model_facts["encoder.original"]
        == model_facts(pretrain())["encoder"]
        != first_model_facts["encoder"]
    )
    assert (
        model_facts(adjust(pretrain(), size=100))["encoder"]
        != model_facts(adjust(pretrain(), size=300))["encoder"]
    )


def test_a_way_is_how_a_model_was_trained_and_neither_where_nor_with_which_seed() -> None:
    way = model_facts(model())["way"]
    same_models = [
        model(seed=3),
        model(corpus="xnli", task="nli"),
        model(encoder=pretrain()),
        model(data="other"),
    ]
    other_models = [
        model("bilingual"),
        model(optimization={"batch_size": 8}),
        model(examples=80),
        model(start=model()),
        model(fields={"ratio": 0.5}),
    ]
    assert {model_facts(same_model)["way"] for same_model in same_models} == {way}
    assert len({way, *(model_facts(other_model)["way"] for other_model in other_models)}) == 1 + len(
        other_models
    )


def test_a_teacher_is_told_unless_it_is_the_one_that_all_have() -> None:
    plain_model_facts = model_facts(model("x-mixup", target=["qad"]))
    taught_model_facts, other_model_facts = (
        model_facts({**model("x-mixup", target=["qad"]), "teacher": model(name, target=["qad"])})
        for name in ("source-only", "consistency")
    )
    assert (
        taught_model_facts["way"],
        taught_model_facts["read.taught"],
        plain_model_facts["read.taught"],
    ) == (plain_model_facts["way"], "yes", "")
    assert not [name for name in taught_model_facts if name.startswith("teacher.")]
    assert (
        other_model_facts["teacher.method"] == "consistency"
        and other_model_facts["way"] != plain_model_facts["way"]
    )


def test_what_a_model_goes_on_from_is_told_and_gives_its_source() -> None:
    facts = model_facts(model("few-shot", source=[], target=["qad"], start=model(fields={"a": 1})))
    assert (facts["after.method"], facts["after.method.a"], facts["source"]) == ("source-only", 1, "qaa")


def test_the_facts_of_every_model_stand_in_one_table(tmp_path: Path) -> None:
    item = model(encoder=adjust(pretrain()))
    write(tmp_path, measure("scores", [item]), scores(item, {"qaa": 0.5}))
    models = read_measurements(tmp_path).models
    ids = [identity(part) for part in (item, adjust(pretrain()), pretrain())]
    assert sorted(models.index) == sorted(ids)
    assert list(models.loc[ids, "kind"]) == ["model", "encoder", "encoder"]


def test_a_failed_a_damaged_and_a_missing_run_are_said_and_none_is_raised(runs_folder: Path) -> None:
    failed_parent, damaged_parent, missing = sorted(
        path.parent for path in runs_folder.glob("*/record.json")
    )[:3]
    (failed_parent / "record.json").unlink()
    (failed_parent / "failed.json").write_text(json.dumps({"error": "the loss is nan"}))
    (damaged_parent / "record.json").write_text("{")
    (missing / "record.json").unlink()
    measurements = read_measurements(runs_folder)
    states = {run.id: run.state for run in measurements.runs}
    assert [states[field.name] for field in (failed_parent, damaged_parent, missing)] == [
        "failed",
        "damaged",
        "missing",
    ]
    assert list(states.values()).count("finished") == len(states) - 3
    assert f"Run {failed_parent.name} failed: the loss is nan" in measurements.warnings
    assert all(str(runs_folder) not in text for text in measurements.warnings)


def test_a_wrong_part_damages_every_run_that_it_is_in(tmp_path: Path) -> None:
    """Shared parts of runs are checked once, and every run with a wrong part counts as damaged."""
    wrong = {**pretrain(), "languages": [5]}
    right = pretrain()
    for seed in (0, 1):
        for encoder in (wrong, right):
            write(tmp_path, model(encoder=encoder, seed=seed))
    runs = read_measurements(tmp_path).runs
    assert sorted(run.state for run in runs) == ["damaged", "damaged", "finished", "finished"]


def test_models_have_the_facts_that_each_has_alone(runs_folder: Path) -> None:
    facts = [(key, part) for run in read_measurements(runs_folder).runs for key, part in run.models.items()]
    assert {key for key, _ in facts} > {
        run.id for run in read_measurements(runs_folder).finished("fine-tune")
    }
    for run in read_measurements(runs_folder).finished("fine-tune"):
        assert run.models[run.id] == model_facts(run.record.run)


def test_runs_beside_the_plan_are_counted_and_left_out(runs_folder: Path) -> None:
    plan = json.loads((runs_folder / "plan.json").read_text())
    write_plan(runs_folder, plan["runs"][:4])
    measurements = read_measurements(runs_folder)
    assert len(measurements.runs) == 4
    assert any(
        "11 more runs lie in the folder but not in the plan: they" in text for text in measurements.warnings
    )


def test_measurements_of_an_earlier_version_say_to_run_again(tmp_path: Path) -> None:
    old_value = {"corpus": "ud", "method": "source-only", "language": "qaa", "score": 0.5}
    write(tmp_path, measure("scores", [model()]), [old_value])
    measurements = read_measurements(tmp_path)
    assert [run.state for run in measurements.runs] == ["damaged"]
    check_wording(measurements.warnings[0].replace(measurements.runs[0].id, "RUN"), "Run RUN ")
    assert measurements.frame("scores").empty


def test_a_folder_without_plan_and_records_says_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"plan\.json.*--out"):
        read_measurements(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("run /home/me/x.toml", "run …/x.toml"),
        ("('/a/b/c' and/or C:\\a\\b)", "('…/c' and/or …/b)"),
        ("see https://example.org/a", "see https://example.org/a"),
        ("a/b stays", "a/b stays"),
        ("\x1b[1m/x/y \u202ez", "[1m/x/y z"),
    ],
)
def test_folders_of_a_machine_are_shortened(text: str, message: str) -> None:
    assert without_folders(text) == message


def test_the_name_of_an_encoder_is_its_folder_s_last_part() -> None:
    assert model_facts({**SHIPPED, "source": "/home/me/models/mine"})["encoder.name"] == "mine"


def test_points_of_a_path_between_other_models_are_apart(tmp_path: Path) -> None:
    first_model = model()
    second = model("bilingual", target=["qad"])
    write(
        tmp_path,
        measure("interpolation", [first_model, second]),
        path(first_model, second, {0.0: 0.5, 1.0: 0.6}),
    )
    write(
        tmp_path,
        measure("interpolation", [second, first_model]),
        path(second, first_model, {0.0: 0.6, 1.0: 0.5}),
    )
    frame = read_measurements(tmp_path).frame("interpolation")
    assert sorted(frame["way"].unique()) == sorted(frame["start.way"].unique())
    assert len(frame) == 4
