"""A published number is shown next to the measurement with its method, inputs, encoder and language."""

from dataclasses import replace
from statistics import fmean

import pytest

from isogloss.features.published_numbers.report import published_tables
from made_up_rows import make_measurements
from made_up_studies import MODEL

SCORES = {
    ("plain", "", "one"): {"qaa": (0.9, 0.8), "qab": (0.5, 0.6), "qad": (0.3, 0.4)},
    ("mixed up", "", "one"): {"qaa": (0.9, 0.9), "qab": (0.6, 0.6), "qad": (0.5, 0.5)},
    ("mixed up", "paired", "one"): {"qaa": (0.9, 0.9), "qab": (0.7, 0.8), "qad": (0.6, 0.6)},
    ("plain", "", "adjusted"): {"qaa": (0.9, 0.8), "qab": (0.6, 0.8), "qad": (0.3, 0.4)},
}


def study(*published_values, scale="small"):
    rows = []
    methods = {}
    for (method, inputs, encoder), own_score in SCORES.items():
        way = {"plain": "source-only", "mixed up": "x-mixup"}[method]
        options = {**MODEL, "method": way, "way": way, "inputs": inputs, "encoder": encoder}
        for language, values in own_score.items():
            for seed, score in enumerate(values):
                model = f"{method} {encoder} {seed}"
                methods.setdefault(method, set()).add(model)
                name = {"run": f"{model} {inputs}", "model": model, "encoder.run": encoder}
                rows.append({**options, **name, "seed": seed, "language": language, "score": score})
    columns = ("system", "inputs", "encoder", "language", "measure", "value")
    numbers = [
        dict(zip(columns, item, strict=True), scale="published", page="5") for item in published_values
    ]
    labels, ids = {"adjusted": "adjusted"}, {label: sorted(ids) for label, ids in methods.items()}
    options = {"labels": labels, "methods": ids, "published": numbers, "scale": scale}
    return published_tables(replace(make_measurements(scores=rows), **options))


@pytest.mark.parametrize(
    ("row", "values"),
    [
        (("plain", "", "", "qab", "accuracy"), (0.5, 0.6)),
        (("plain", "", "original", "qab", "accuracy"), (0.5, 0.6)),
        (("plain", "", "adjusted", "qab", "accuracy"), (0.6, 0.8)),
        (("plain", "", "adjusted", "qab", "accuracy gain"), (0.1, 0.2)),
        (("plain", "", "", "mean of targets", "accuracy"), (0.4, 0.5)),
        (("plain", "", "", "mean", "accuracy"), (1.7 / 3, 0.6)),
        (("plain", "", "", "gap", "accuracy"), (0.5, 0.3)),
        (("mixed up", "", "", "qab", "accuracy"), (0.6, 0.6)),
        (("mixed up", "paired", "", "qab", "accuracy"), (0.7, 0.8)),
    ],
)
def test_ours_is_what_was_measured_for_the_same_thing(row, values):
    table, *_ = study((*row, 0.25))
    result = table.data.iloc[0]
    assert result["mean"] == pytest.approx(fmean(values))
    assert result["difference"] == pytest.approx(fmean(values) - 0.25)
    assert result["seeds"] == 2
    assert result["low"] < result["mean"] < result["high"] or values[0] == values[1]


@pytest.mark.parametrize(
    "row",
    [
        ("plain", "paired", "", "qab", "accuracy"),
        ("other", "", "", "qab", "accuracy"),
        ("plain", "", "", "de", "accuracy"),
        ("plain", "", "", "qab", "f1"),
        ("mixed up", "", "adjusted", "qab", "accuracy"),
        ("plain", "", "adjusted", "qab", "cka"),
    ],
)
def test_what_was_not_measured_is_a_dash(row):
    table, *_ = study((*row, 0.25))
    assert [cell.text for cell in table.rows[0]][4:8] == ["–", "0", "25.0", "–"]


def test_a_language_that_has_dev_alone_is_measured_on_dev():
    fields = {**MODEL, "model": "m", "run": "r", "seed": 0}
    rows = [
        {**fields, "split": split, "language": language, "score": value}
        for split, language, value in (("test", "qab", 0.5), ("dev", "qab", 0.9), ("dev", "qad", 0.4))
    ]
    numbers = [
        {
            "system": "plain",
            "encoder": "",
            "language": language,
            "measure": "accuracy",
            "value": 0.3,
            "page": "5",
        }
        for language in ("qab", "qad")
    ]
    measurements = replace(make_measurements(scores=rows), methods={"plain": ["m"]}, published=numbers)
    assert list(published_tables(measurements)[0].data["mean"]) == [0.5, 0.4]


def test_differences_are_from_the_first_system_on_each_side_by_itself():
    rows = [("plain", "", "", "qab", "accuracy", 0.5), ("plain", "", "", "de", "accuracy", 0.4)]
    better = [("mixed up", "", "", "qab", "accuracy", 0.4), ("mixed up", "", "", "de", "accuracy", 0.6)]
    table, differences = study(*rows, *better, ("only here", "", "", "qab", "accuracy", 0.6))
    assert [cell.text for cell in table.rows[0]] == [
        "plain",
        "",
        "qab",
        "accuracy",
        "55.0 ± 7.1 [−8.5, 118.5]",
        "2",
        "50.0",
        "+5.0",
        "5",
    ]
    texts = [[cell.text for cell in row] for row in differences.rows]
    assert texts[0] == ["mixed up", "", "accuracy", "+5.0", "+5.0", "yes"]
    assert texts[1] == ["only here", "", "accuracy", "+10.0", "–", "–"]


def test_adjusted_encoders_are_compared_with_the_original_on_the_same_inputs():
    rows = [
        ("plain", "", "original", "qab", "accuracy", 0.5),
        ("plain", "", "original", "qad", "accuracy", 0.4),
    ]
    mixed_texts = [
        ("plain", "mixed", kind, "qab", "accuracy", n) for kind, n in (("original", 0.3), ("adjusted", 0.35))
    ]
    _, differences = study(*rows, ("plain", "", "adjusted", "qab", "accuracy", 0.6), *mixed_texts)
    texts = [[cell.text for cell in row] for row in differences.rows]
    assert texts == [
        ["plain", "adjusted", "accuracy", "+10.0", "+15.0", "yes"],
        ["plain · mixed", "original", "accuracy", "−20.0", "–", "–"],
        ["plain · mixed", "adjusted", "accuracy", "+5.0", "–", "–"],
    ]


def test_rho_is_of_cka_and_score_over_languages():
    options = {**MODEL, "method": "source-only", "way": "source-only"}
    scores = {"qaa": 0.9, "qab": 0.7, "qac": 0.5, "qad": 0.4}
    cka = {0: {"qab": 0.8, "qac": 0.6, "qad": 0.1}, 1: {"qab": 0.8, "qac": 0.1, "qad": 0.6}}
    rows = []
    states = []
    for seed, values_by_language in cka.items():
        fields = {**options, "model": f"m{seed}", "seed": seed}
        rows += [
            {**fields, "run": f"r{seed}", "language": language, "score": score}
            for language, score in scores.items()
        ]
        states += [
            {**fields, "second": language, "layer": 4, "cka": value}
            for language, value in values_by_language.items()
        ]
    index = {"system": "plain", "encoder": "", "language": "", "measure": "rho", "value": 0.9, "page": "3"}
    measurements = replace(
        make_measurements(scores=rows, cka=states), methods={"plain": ["m0", "m1"]}, published=[index]
    )
    published_table = published_tables(measurements)[0].data.iloc[0]
    assert (published_table["mean"], published_table["seeds"]) == (pytest.approx((1 + 0.5) / 2), 2)


def cka_rows(*rows):
    """CKA of one system, each of an encoder, a layer, a corpus and a language."""
    fields = {**MODEL, "method": "source-only", "way": "source-only", "model": "m", "seed": 0}
    names = ("encoder", "encoder.run", "layer", "corpus", "second", "cka")
    return [{**fields, **dict(zip(names, (row[0], *row), strict=True))} for row in rows]


def mean_cka(rows, language, encoder=""):
    options = {"system": "plain", "measure": "cka", "value": 0.5, "page": "3"}
    fields = {**options, "language": language, "encoder": encoder}
    labels = {"small": "small", "large": "large"}
    measurements = replace(
        make_measurements(cka=rows), methods={"plain": ["m"]}, labels=labels, published=[fields]
    )
    return published_tables(measurements)[0].data.iloc[0]["mean"]


def test_the_mean_of_cka_has_the_source_with_itself():
    rows = cka_rows(("small", 4, "xnli", "qab", 0.8), ("small", 4, "xnli", "qad", 0.6))
    assert mean_cka(rows, "mean") == pytest.approx((1 + 0.8 + 0.6) / 3)


def test_each_encoder_has_a_last_layer_of_its_own():
    rows = cka_rows(("small", 4, "xnli", "qab", 0.8), ("large", 24, "xnli", "qab", 0.6))
    assert [mean_cka(rows, "qab", name) for name in ("small", "large")] == [0.8, 0.6]


def test_cka_of_two_corpora_is_none_of_the_papers():
    rows = cka_rows(("small", 4, "xnli", "qab", 0.8), ("small", 4, "bible", "qab", 0.6))
    assert mean_cka(rows, "qab") is None


def test_the_caption_says_what_can_be_compared():
    row = ("plain", "", "", "qab", "accuracy", 0.5)
    assert "at scale small, have other encoders" in study(row)[0].caption
    assert "other encoders" not in study(row, scale="published")[0].caption
    assert study() == []


def test_a_number_of_one_of_several_encoders_stands_beside_each_with_a_mark():
    table, *_ = study(("plain", "", "original|adjusted", "qab", "accuracy", 0.6))
    assert list(table.data["encoder"]) == ["original", "adjusted"]
    assert list(table.data["mean"]) == [pytest.approx(0.55), pytest.approx(0.7)]
    assert [row[6].text for row in table.rows] == ["60.0?", "60.0?"]
    assert "which is not certain" in table.caption
    assert "not certain" not in study(("plain", "", "", "qab", "accuracy", 0.6))[0].caption
