"""Names depend on the differences among shown systems: they differ if systems do, in any order."""

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isogloss.core.identity import identity
from isogloss.reports.measurements import read_measurements
from isogloss.reports.names import and_list, count, language, name_systems, percent, plus_minus, slug
from made_up_runs import Content, adjust, measure, model, pretrain, scores, write


def frame_of(path: Path, *models: Content) -> pd.DataFrame:
    for item in models:
        write(path, measure("scores", [item]), scores(item, {"qaa": 0.5}))
    return read_measurements(path).frame("scores")


def names_of(path: Path, *models: Content) -> set[str]:
    return set(name_systems(frame_of(path, *models), {})["name"])


def test_what_is_alike_in_all_is_not_said(tmp_path: Path) -> None:
    assert names_of(tmp_path, model(), model(seed=1), model("bilingual")) == {"source-only", "bilingual"}


def test_systems_that_differ_in_optimization_alone_have_names_of_their_own(tmp_path: Path) -> None:
    rates = [
        model(optimization={"learning_rate": rate}, seed=seed) for rate in (1e-3, 3e-3) for seed in (0, 1)
    ]
    assert names_of(tmp_path, *rates) == {
        "source-only (learning_rate=0.001)",
        "source-only (learning_rate=0.003)",
    }


def test_fields_that_are_the_commonest_are_left_out(tmp_path: Path) -> None:
    mixed_models = [
        model("x-mixup", fields={"mse": mse, "layer": layer}) for mse, layer in ((1, 0), (0, 0), (1, 2))
    ]
    assert names_of(tmp_path, *mixed_models) == {"x-mixup", "x-mixup (mse=0)", "x-mixup (layer=2)"}


def test_what_a_way_leaves_out_is_not_said_of_it(tmp_path: Path) -> None:
    folder, back = ({"kind": "pretrained", "source": name} for name in ("en-fr", "fr-en"))
    forth = {"kind": "translate", "translator": {"kind": "seq2seq"}, "model": folder}
    again = {**forth, "model": back, "start": forth}
    ways = model("translate-train"), model("translate-train", fields={"labels": "teacher"})
    ways = tuple({**item, "translated": [forth]} for item in ways)
    fields = {**model("x-mixup"), "translated": [forth, again]}
    assert names_of(tmp_path, *ways, fields) == {
        "translate-train", "translate-train (labels=teacher)", "x-mixup",
    }  # fmt: skip
    frame = frame_of(tmp_path, *ways, fields)
    assert set(frame["translator.model"]) == {"en-fr"}  # Whatever translates back again.


def test_what_a_model_goes_on_from_tells_it_apart(tmp_path: Path) -> None:
    starts = [model(optimization={"learning_rate": rate}) for rate in (0.1, 0.2)]
    names = names_of(tmp_path, *(model("few-shot", start=start) for start in starts))
    assert len(names) == 2
    assert all("learning_rate" in name for name in names)


def test_averages_are_told_apart_by_what_they_are_of(tmp_path: Path) -> None:
    def average(*parts: Content, **fields: object) -> Content:
        return {**model("average", fields=fields), "parts": list(parts)}

    plain_models = [model(seed=0), model(seed=1)]
    models = [model(), model("bilingual")]
    shots = [model("few-shot", fields={"shots": shots}) for shots in (4, 8)]
    continued_models = [model(), pretrain(("qab",))]
    names = names_of(
        tmp_path, average(*plain_models), average(*models, weights=[0.7, 0.3]), average(*continued_models)
    )
    assert names == {
        "average (of=source-only)",
        "average (of=source-only+bilingual, weights=0.7 0.3)",
        "average (of=source-only+qab)",
    }
    few_names = names_of(tmp_path / "few", *(average(shot, {**shot, "seed": 1}) for shot in shots))
    assert few_names == {"average (shots=4)", "average (shots=8)"}


def test_encoders_are_named_before_systems_where_there_are_several(tmp_path: Path) -> None:
    names = names_of(tmp_path, model(), model(encoder=adjust(size=100)), model(encoder=adjust(size=300)))
    assert names == {
        "shipped / source-only",
        "shipped, cross-lingual-adjustment (size=100) / source-only",
        "shipped, cross-lingual-adjustment (size=300) / source-only",
    }


def test_encoders_that_would_be_called_the_same_are_kept_apart(tmp_path: Path) -> None:
    names = names_of(tmp_path, *(model(encoder=pretrain(steps=steps)) for steps in (10, 20)))
    assert len(names) == 2


def test_a_label_of_the_recipe_names_all_seeds_of_an_encoder(tmp_path: Path) -> None:
    frame = frame_of(tmp_path, *(model(encoder=pretrain(seed=seed)) for seed in (0, 1)), model())
    systems = name_systems(frame, {identity(pretrain()): "mine"})
    assert sorted(systems["encoder.label"].unique()) == ["mine", "shipped"]


@pytest.mark.parametrize("order", range(2))
def test_names_do_not_depend_on_the_order_of_rows(tmp_path: Path, order: int) -> None:
    models = [
        *(model("x-mixup", fields={"mse": mse, "layer": layer}) for mse in (0, 1) for layer in (0, 1)),
        *(model(encoder=adjust(size=size)) for size in (100, 300)),
        model(optimization={"batch_size": 8}),
    ]
    frame = frame_of(tmp_path, *models)
    shuffled_samples = frame.sample(frac=1, random_state=order)
    names = [
        name_systems(item, {}).set_index("model")["name"].to_dict() for item in (frame, shuffled_samples)
    ]
    assert names[0] == names[1]
    assert len(set(names[0].values())) == len(models)


def test_numbers_are_written_for_people() -> None:
    assert [percent(0.4236), percent(-0.011)] == ["42.4", "−1.1"]
    assert [plus_minus(0.5, 0.01), plus_minus(0.5, float("nan")), plus_minus(float("nan"), 0.0)] == [
        "50.0 ± 1.0",
        "50.0",
        "–",
    ]
    assert [count(1, "seed"), count(1200, "seed"), count(2, "box", "boxes")] == [
        "1 seed",
        "1,200 seeds",
        "2 boxes",
    ]
    assert [and_list("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert [language(language_code) for language_code in ("en", "qaa", "qtz")] == [
        "English (en)",
        "Ansa (qaa)",
        "qtz",
    ]


@given(st.text(max_size=200))
def test_a_slug_is_a_safe_file_name(text: str) -> None:
    assert set(slug("x", text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert 0 < len(slug("x", text)) < 100


def test_names_that_differ_in_lost_letters_stay_apart() -> None:
    assert slug("中文") != slug("日本")
    assert slug("a", "upos") == "a-upos"
