"""Laws and golden numbers of gradients, gates and CKA."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from hand_made import golden, plain, the_same
from isogloss.data.result_files import write_tensors
from isogloss.features.gradient_conflict.report import smooth
from isogloss.features.representations.report import transfer_correlations
from isogloss.reports.line_figures import LineFigure
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.reports.similarity import noise_corrected
from isogloss.reports.tables import Summary
from made_up_rows import MIXES, cka, make_measurements, score
from report_entries import find_entry, list_entries

Study = Callable[[str], Measurements]

RANKED = "language-gates-ranked"
GATE_TABLES = ("language-gates-perplexity", "language-gates-kept", "language-gates-specific")


def find_cka(kind: type[Summary | LineFigure]) -> Summary | LineFigure:
    """Return the table or the figure of CKA, which have one name."""
    (entry,) = [entry for entry in list_entries() if entry.name == "cka" and isinstance(entry, kind)]
    return entry


def similarity_figures(measurements: Measurements) -> list:
    return [
        samples
        for entry in list_entries()
        if entry.section == "similarity" and isinstance(entry, LineFigure) and entry.name != RANKED
        for samples in entry.show(measurements)
    ]


def similarity_tables(measurements: Measurements) -> list:
    return [
        table
        for entry in list_entries()
        if entry.section == "similarity" and isinstance(entry, Summary) and entry.name not in GATE_TABLES
        for table in entry.show(measurements)
    ]


CONFLICT = {
    "joint 0": "gradients-joint-seed-0-75c3bf",
    "joint 1": "gradients-joint-seed-1-24ff9e",
    "joint 2": "gradients-joint-seed-2-54ace8",
    "model 0": "gradients-joint-ud-upos-source-only-qaa-seed-0-617cc9",
}
PARTS = plain("first", "second", "layer", "module")
SEED = {"encoder": "joint", "encoder.run": "j", "encoder.kind": "pretrain", "kind": "encoder"}


def conflict(first_text: str, second: str, cosine: float | None, **facts) -> dict:
    options = {
        **SEED,
        "model": "m",
        "first": first_text,
        "second": second,
        "layer": None,
        "module": "all",
        "draw": 0,
    }
    options |= {"batch": 8, "encoder.languages": "aa+bb", "encoder.family": "bert"}
    return {**options, "cosine": cosine, **facts}


def test_conflict_is_corrected_as_it_was(study: Study) -> None:
    rows = noise_corrected(study("interference").frame("gradient-conflict"), "cosine")
    rows = rows.assign(layer=rows["layer"].astype(object).where(rows["layer"].notna(), ""))
    own_part = (
        rows["kind"].map({"encoder": "joint", "model": "model"}) + " " + rows["encoder.seed"].astype(str)
    )
    tables = golden("interference")["tables"]
    check_count = 0
    for model, name in CONFLICT.items():
        numbers = plain("draws", "batch", "cosine", "std", "within", "corrected")
        check_count += the_same(rows[own_part == model], tables[name]["data"], PARTS, numbers)
    assert check_count == 4 * 51


def test_gates_are_as_alike_as_they_were_on_average_over_seeds(study: Study) -> None:
    tables = {table.title: table for table in similarity_tables(study("interference"))}
    data_before = golden("interference")["tables"]["gates-parts-joint"]["data"]
    check_count = 0
    for measure in ("cosine", "correlation"):
        data = tables[f"{measure.capitalize()} of masks"].data
        assert data["model"].nunique() == 3
        means = data.groupby(list(PARTS), dropna=False)[measure].mean().reset_index()
        means = means.assign(layer=means["layer"].astype(object).where(means["layer"].notna(), ""))
        check_count += the_same(means, data_before, PARTS, plain(measure))
    assert check_count == 2 * 33


def test_perplexity_under_masks_and_specific_gates_are_as_they_were(study: Study) -> None:
    measurements = study("interference")
    old_tables = golden("interference")["tables"]
    perplexity, kept_table, specific = (
        table for name in GATE_TABLES for table in find_entry(name).show(measurements)
    )
    mean_before = (
        pd.DataFrame(old_tables["gates-perplexity-joint"]["data"])
        .groupby(["language", "mask"])["perplexity"]
        .mean()
    )
    mean_after = perplexity.data.groupby(["language", "mask"])["perplexity"].mean()
    assert mean_after.to_dict() == pytest.approx(mean_before.to_dict())
    assert len(mean_after) == 6
    assert len(kept_table.rows) == 2
    known_rows = {
        tuple(row.values()) for row in old_tables["gates-specific-joint"]["data"] if row["layer"] is None
    }
    names = ["keeps", "prunes", "layer", "module", "gates", "of", "parameters"]
    where = specific.data[names].astype(object).where(specific.data[names].notna(), None)
    assert {("joint", *row) for row in where.itertuples(index=False, name=None)} == known_rows


def test_gates_are_ranked_by_one_language_with_the_others_beside_it(tmp_path) -> None:
    pi = {"aa": [[-3.0, 0.5, 2.0], [-1.0, 0.5, 4.0]], "bb": [[1.0, -2.0, 0.0]]}
    tensors = {"above/aa/0": np.zeros(())}
    for language, draws in pi.items():
        for draw, (*first_item, last_draw) in enumerate(draws):
            tensors[f"log_alpha/{language}/{draw}/0.attention"] = np.array([first_item])
            tensors[f"log_alpha/{language}/{draw}/1.attention"] = np.array([last_draw])
    write_tensors(tmp_path / "masks.safetensors", tensors, {})
    row = {**SEED, "model": "m", "mask": "aa", "draw": 0, "layer": None, "module": "all", "run": "gates"}
    fields = {**row, "run": "gone"}
    measurements = replace(
        make_measurements(language_gates_kept=[row, fields]),
        runs=[
            PlannedRun(id="gates", state="finished", folder=tmp_path),
            PlannedRun(id="gone", state="finished", folder=tmp_path / "x"),
        ],
    )
    (drawn_text,) = find_entry(RANKED).show(measurements)
    lines = {
        key: own_group.sort_values("rank")["pi"].tolist()
        for key, own_group in drawn_text.data.groupby(["by", "whose"])
    }
    assert lines == {
        ("aa", "aa"): [-2.0, 0.5, 3.0],
        ("aa", "bb"): [1.0, -2.0, 0.0],
        ("bb", "bb"): [-2.0, 0.0, 1.0],
        ("bb", "aa"): [0.5, 3.0, -2.0],
    }
    assert find_entry(RANKED).show(make_measurements(language_gates_kept=[fields])) == []


@pytest.mark.slow
def test_conflict_in_training_is_as_it_was(study: Study) -> None:
    (samples,) = [
        similarity_figure
        for similarity_figure in similarity_figures(study("interference"))
        if similarity_figure.name.endswith("pretraining")
    ]
    data_before = golden("interference")["figures"]["gradient-conflict-pretraining"]["data"]
    data_before = [row for row in data_before if row["module"] == "all" and row["layer"] is None]
    assert (
        the_same(samples.data, data_before, plain("run", "step", "first", "second"), plain("cosine", "batch"))
        == 36
    )


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_cka_is_as_it_was(study: Study, task: str) -> None:
    (samples,) = [
        field
        for field in find_cka(LineFigure).show(study("mixup"))
        if field.name == f"cka-bitext-shipped-{task}"
    ]
    rows_before = [dict(row) for row in golden("mixup")["figures"][f"cka-bitext-{task}-shipped"]["data"]]
    for row in rows_before:
        row["method"] = row["method"].split(" ")[0]
        row["seed"] = "" if row["seed"] is None else row["seed"]
    data = samples.data.assign(
        seed=samples.data["seed"].astype(object).where(samples.data["seed"].notna(), "")
    )
    assert (
        the_same(
            data, rows_before, plain("method", "seed", "first", "second", "layer"), plain("cka", "debiased")
        )
        == 60
    )
    (table,) = find_cka(Summary).show(study("mixup"))
    assert (table.data["second"] != "mean").sum() == 114


@pytest.mark.slow
def test_correlations_of_cka_and_transfer_are_as_they_were(study: Study) -> None:
    data_before = golden("mixup")["tables"]["likeness-and-transfer"]["data"]
    keys = {**plain("corpus", "task", "source", "states", "layer", "languages"), "way": "method"}
    (table,) = find_entry("likeness-and-transfer").show(study("mixup"))
    rows = transfer_correlations(study("mixup")).assign(way="source-only")
    assert (
        the_same(rows, data_before, keys, plain("points", "rho", "p_value", "low", "high"))
        == len(table.rows)
        == 8
    )


def test_each_way_to_read_is_correlated_with_its_own_states() -> None:
    codes = {"qab": (0.9, 0.9, 0.1), "qac": (0.8, 0.8, 0.2), "qad": (0.7, 0.6, 0.3)}
    target = {**MIXES, "target": "+".join(codes)}
    scores = []
    states = []
    for language, (value, similar_items, mixed_result) in codes.items():
        for inputs, similarity in (("", similar_items), ("paired", mixed_result)):
            options = {"about": target, "language": language, "inputs": inputs}
            scores.append(score(value, **options))
            states.append({**cka(similarity, **options), "run": f"cka {inputs}"})
    rho = transfer_correlations(make_measurements(scores=scores, cka=states)).set_index("inputs")["rho"]
    assert rho.to_dict() == {"": pytest.approx(1), "paired": pytest.approx(-1)}
    unmixed_rows = [row for row in states if row["inputs"] == ""]
    rho = transfer_correlations(make_measurements(scores=scores, cka=unmixed_rows)).set_index("inputs")["rho"]
    assert rho.to_dict() == {"": pytest.approx(1), "paired": pytest.approx(1)}


def test_a_cosine_is_divided_by_the_geometric_mean_of_both_languages_own() -> None:
    rows = [conflict("aa", "aa", 0.4), conflict("bb", "bb", 0.9), conflict("aa", "bb", 0.3)]
    rows += [conflict("aa", "bb", 0.1, draw=1)]
    table = noise_corrected(
        make_measurements(gradient_conflict=rows).frame("gradient-conflict"), "cosine"
    ).set_index("pair")
    assert table.loc["aa–bb", "corrected"] == pytest.approx(0.2 / 0.6)
    assert table.loc["aa–bb", "own"] == pytest.approx(0.65)
    assert table.loc["aa–bb", "draws"] == 2
    assert pd.isna(table.loc["aa–aa", "corrected"])


@pytest.mark.parametrize("own_part", [0.04, -0.5, None])
def test_nothing_is_divided_by_noise(own_part: float | None) -> None:
    rows = [conflict("aa", "aa", own_part), conflict("bb", "bb", 0.05), conflict("aa", "bb", 0.3)]
    table = noise_corrected(
        make_measurements(gradient_conflict=rows).frame("gradient-conflict"), "cosine"
    ).set_index("pair")
    assert pd.isna(table.loc["aa–bb", "corrected"])
    assert table.loc["aa–bb", "cosine"] == 0.3


def test_seeds_of_an_encoder_are_averaged_whatever_their_order() -> None:
    conflicts, other_conflicts = (
                  [conflict(a, b, value, model=f"m{seed}", run=f"r{seed}", **{"encoder.seed": seed})
                   for a, b, value in (("aa", "aa", 0.5), ("bb", "bb", 0.5), ("aa", "bb", distance))]
                  for seed, distance in ((0, 0.1), (1, 0.4)))  # fmt: skip
    texts = []
    for rows in ([*conflicts, *other_conflicts], [*other_conflicts, *conflicts]):
        table = similarity_tables(make_measurements(gradient_conflict=rows))[0]
        texts.append([[cell.text for cell in line] for line in table.rows])
    between_texts = ["", "all", "aa–bb", "0.25 ± 0.21", "0.50 ± 0.00", "0.50 ± 0.42", "2"]
    own_texts = [
        ["", "all", f"{language}–{language}", "0.50 ± 0.00", "0.50 ± 0.00", "–", "2"]
        for language in ("aa", "bb")
    ]
    assert sorted(texts[0]) == sorted(texts[1]) == sorted([between_texts, *own_texts])


def test_models_of_other_batches_or_tasks_have_lines_of_their_own() -> None:
    rows = [
        conflict("aa", "bb", 0.1, **other_item) for other_item in ({}, {"batch": 16}, {"corpus": "other"})
    ]
    measurements = make_measurements(
        gradient_conflict=[{**row, "run": str(index)} for index, row in enumerate(rows)]
    )
    (table,) = similarity_tables(measurements)
    assert [line[-1].text for line in table.rows] == ["1"] * 3


def test_smoothing_keeps_a_straight_line_and_its_length() -> None:
    line = pd.Series([0.5 * step for step in range(200)], index=range(7, 207))
    assert list(smooth(line)) == pytest.approx(list(line))
    bumpy = line + pd.Series([(-1) ** step for step in range(200)], index=line.index)
    assert (smooth(bumpy) - line).abs().iloc[10:-10].max() < 0.2
