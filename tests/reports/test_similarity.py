"""Laws and golden numbers of gradients, gates and CKA."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hand_made import golden, plain, the_same
from made_up_rows import MIXES, cka, make_measurements, score

from isogloss.data.result_files import write_tensors
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.reports.similarity import (
    CKA_FIGURE,
    CKA_TABLE,
    CORRELATION_TABLE,
    GATE_TABLES,
    GATES_FIGURE,
    SIMILARITY_FIGURES,
    SIMILARITY_TABLES,
    noise_corrected,
    smoothed,
    transfer_correlations,
)

Study = Callable[[str], Measurements]


def similarity_figures(m: Measurements) -> list:
    return [drawn for one in SIMILARITY_FIGURES for drawn in one.show(m)]


def similarity_tables(m: Measurements) -> list:
    return [table for one in SIMILARITY_TABLES for table in one.show(m)]


CONFLICT = {
    "joint 0": "gradients-joint-seed-0-75c3bf",
    "joint 1": "gradients-joint-seed-1-24ff9e",
    "joint 2": "gradients-joint-seed-2-54ace8",
    "model 0": "gradients-joint-ud-upos-source-only-qaa-seed-0-617cc9",
}
PARTS = plain("first", "second", "layer", "module")
SEED = {"encoder": "joint", "encoder.run": "j", "encoder.kind": "pretrain", "kind": "encoder"}


def conflict(first: str, second: str, cosine: float | None, **facts) -> dict:
    about = {
        **SEED,
        "model": "m",
        "first": first,
        "second": second,
        "layer": None,
        "module": "all",
        "draw": 0,
    }
    about |= {"batch": 8, "encoder.languages": "aa+bb", "encoder.family": "bert"}
    return {**about, "cosine": cosine, **facts}


def test_conflict_is_corrected_as_it_was(study: Study) -> None:
    rows = noise_corrected(study("interference").frame("gradient-conflict"), "cosine")
    rows = rows.assign(layer=rows["layer"].astype(object).where(rows["layer"].notna(), ""))
    own = rows["kind"].map({"encoder": "joint", "model": "model"}) + " " + rows["encoder.seed"].astype(str)
    tables, checked = golden("interference")["tables"], 0
    for model, name in CONFLICT.items():
        numbers = plain("draws", "batch", "cosine", "std", "within", "corrected")
        checked += the_same(rows[own == model], tables[name]["data"], PARTS, numbers)
    assert checked == 4 * 51


def test_gates_are_as_alike_as_they_were_on_average_over_seeds(study: Study) -> None:
    tables = {one.title: one for one in similarity_tables(study("interference"))}
    before = golden("interference")["tables"]["gates-parts-joint"]["data"]
    checked = 0
    for measure in ("cosine", "correlation"):
        data = tables[f"{measure.capitalize()} of masks"].data
        assert data["model"].nunique() == 3
        means = data.groupby([*PARTS], dropna=False)[measure].mean().reset_index()
        means = means.assign(layer=means["layer"].astype(object).where(means["layer"].notna(), ""))
        checked += the_same(means, before, PARTS, plain(measure))
    assert checked == 2 * 33


def test_perplexity_under_masks_and_specific_gates_are_as_they_were(study: Study) -> None:
    m, old = study("interference"), golden("interference")["tables"]
    perplexity, kept, specific = (table for one in GATE_TABLES for table in one.show(m))
    before = (
        pd.DataFrame(old["gates-perplexity-joint"]["data"]).groupby(["language", "mask"])["perplexity"].mean()
    )
    after = perplexity.data.groupby(["language", "mask"])["perplexity"].mean()
    assert after.to_dict() == pytest.approx(before.to_dict())
    assert len(after) == 6
    assert len(kept.rows) == 2
    known = {tuple(row.values()) for row in old["gates-specific-joint"]["data"] if row["layer"] is None}
    names = ["keeps", "prunes", "layer", "module", "gates", "of", "parameters"]
    shown = specific.data[names].astype(object).where(specific.data[names].notna(), None)
    assert {("joint", *row) for row in shown.itertuples(index=False, name=None)} == known


def test_gates_are_ranked_by_one_language_with_the_others_beside_it(tmp_path) -> None:
    pi = {"aa": [[-3.0, 0.5, 2.0], [-1.0, 0.5, 4.0]], "bb": [[1.0, -2.0, 0.0]]}
    tensors = {"above/aa/0": np.zeros(())}
    for language, draws in pi.items():
        for draw, (*first, last) in enumerate(draws):
            tensors[f"log_alpha/{language}/{draw}/0.attention"] = np.array([first])
            tensors[f"log_alpha/{language}/{draw}/1.attention"] = np.array([last])
    write_tensors(tmp_path / "masks.safetensors", tensors, {})
    row = {**SEED, "model": "m", "mask": "aa", "draw": 0, "layer": None, "module": "all", "run": "gates"}
    gone = {**row, "run": "gone"}
    m = replace(
        make_measurements(language_gates_kept=[row, gone]),
        runs=[
            PlannedRun(id="gates", state="finished", folder=tmp_path),
            PlannedRun(id="gone", state="finished", folder=tmp_path / "x"),
        ],
    )
    (drawn,) = GATES_FIGURE.show(m)
    lines = {key: own.sort_values("rank")["pi"].tolist() for key, own in drawn.data.groupby(["by", "whose"])}
    assert lines == {
        ("aa", "aa"): [-2.0, 0.5, 3.0],
        ("aa", "bb"): [1.0, -2.0, 0.0],
        ("bb", "bb"): [-2.0, 0.0, 1.0],
        ("bb", "aa"): [0.5, 3.0, -2.0],
    }
    assert GATES_FIGURE.show(make_measurements(language_gates_kept=[gone])) == []


@pytest.mark.slow
def test_conflict_in_training_is_as_it_was(study: Study) -> None:
    (drawn,) = [one for one in similarity_figures(study("interference")) if one.name.endswith("pretraining")]
    before = golden("interference")["figures"]["gradient-conflict-pretraining"]["data"]
    before = [row for row in before if row["module"] == "all" and row["layer"] is None]
    assert (
        the_same(drawn.data, before, plain("run", "step", "first", "second"), plain("cosine", "batch")) == 36
    )


@pytest.mark.parametrize("task", ["upos", "nli"])
def test_cka_is_as_it_was(study: Study, task: str) -> None:
    (drawn,) = [one for one in CKA_FIGURE.show(study("mixup")) if one.name == f"cka-bitext-shipped-{task}"]
    before = [dict(row) for row in golden("mixup")["figures"][f"cka-bitext-{task}-shipped"]["data"]]
    for row in before:
        row["method"] = row["method"].split(" ")[0]
        row["seed"] = "" if row["seed"] is None else row["seed"]
    data = drawn.data.assign(seed=drawn.data["seed"].astype(object).where(drawn.data["seed"].notna(), ""))
    assert (
        the_same(data, before, plain("method", "seed", "first", "second", "layer"), plain("cka", "debiased"))
        == 60
    )
    (table,) = CKA_TABLE.show(study("mixup"))
    assert (table.data["second"] != "mean").sum() == 114


@pytest.mark.slow
def test_correlations_of_cka_and_transfer_are_as_they_were(study: Study) -> None:
    before = golden("mixup")["tables"]["likeness-and-transfer"]["data"]
    keys = {**plain("corpus", "task", "source", "states", "layer", "languages"), "way": "method"}
    (table,) = CORRELATION_TABLE.show(study("mixup"))
    rows = transfer_correlations(study("mixup")).assign(way="source-only")
    assert (
        the_same(rows, before, keys, plain("points", "rho", "p_value", "low", "high")) == len(table.rows) == 8
    )


def test_each_way_to_read_is_correlated_with_its_own_states() -> None:
    codes = {"qab": (0.9, 0.9, 0.1), "qac": (0.8, 0.8, 0.2), "qad": (0.7, 0.6, 0.3)}
    target = {**MIXES, "target": "+".join(codes)}
    scores, states = [], []
    for code, (value, alike, mixed) in codes.items():
        for inputs, similarity in (("", alike), ("paired", mixed)):
            about = {"about": target, "language": code, "inputs": inputs}
            scores.append(score(value, **about))
            states.append({**cka(similarity, **about), "run": f"cka {inputs}"})
    found = transfer_correlations(make_measurements(scores=scores, cka=states)).set_index("inputs")["rho"]
    assert found.to_dict() == {"": pytest.approx(1), "paired": pytest.approx(-1)}
    unmixed = [row for row in states if row["inputs"] == ""]
    found = transfer_correlations(make_measurements(scores=scores, cka=unmixed)).set_index("inputs")["rho"]
    assert found.to_dict() == {"": pytest.approx(1), "paired": pytest.approx(1)}


def test_a_cosine_is_divided_by_the_geometric_mean_of_both_languages_own() -> None:
    rows = [conflict("aa", "aa", 0.4), conflict("bb", "bb", 0.9), conflict("aa", "bb", 0.3)]
    rows += [conflict("aa", "bb", 0.1, draw=1)]
    found = noise_corrected(
        make_measurements(gradient_conflict=rows).frame("gradient-conflict"), "cosine"
    ).set_index("pair")
    assert found.loc["aa–bb", "corrected"] == pytest.approx(0.2 / 0.6)
    assert found.loc["aa–bb", "own"] == pytest.approx(0.65)
    assert found.loc["aa–bb", "draws"] == 2
    assert pd.isna(found.loc["aa–aa", "corrected"])


@pytest.mark.parametrize("own", [0.04, -0.5, None])
def test_nothing_is_divided_by_noise(own: float | None) -> None:
    rows = [conflict("aa", "aa", own), conflict("bb", "bb", 0.05), conflict("aa", "bb", 0.3)]
    found = noise_corrected(
        make_measurements(gradient_conflict=rows).frame("gradient-conflict"), "cosine"
    ).set_index("pair")
    assert pd.isna(found.loc["aa–bb", "corrected"])
    assert found.loc["aa–bb", "cosine"] == 0.3


def test_seeds_of_an_encoder_are_averaged_whatever_their_order() -> None:
    one, other = ([conflict(a, b, value, model=f"m{seed}", run=f"r{seed}", **{"encoder.seed": seed})
                   for a, b, value in (("aa", "aa", 0.5), ("bb", "bb", 0.5), ("aa", "bb", between))]
                  for seed, between in ((0, 0.1), (1, 0.4)))  # fmt: skip
    texts = []
    for rows in ([*one, *other], [*other, *one]):
        table = similarity_tables(make_measurements(gradient_conflict=rows))[0]
        texts.append([[cell.text for cell in line] for line in table.rows])
    between = ["", "all", "aa–bb", "0.25 ± 0.21", "0.50 ± 0.00", "0.50 ± 0.42", "2"]
    own = [["", "all", f"{one}–{one}", "0.50 ± 0.00", "0.50 ± 0.00", "–", "2"] for one in ("aa", "bb")]
    assert sorted(texts[0]) == sorted(texts[1]) == sorted([between, *own])


def test_models_of_other_batches_or_tasks_have_lines_of_their_own() -> None:
    rows = [conflict("aa", "bb", 0.1, **other) for other in ({}, {"batch": 16}, {"corpus": "other"})]
    m = make_measurements(gradient_conflict=[{**row, "run": str(at)} for at, row in enumerate(rows)])
    (table,) = similarity_tables(m)
    assert [line[-1].text for line in table.rows] == ["1"] * 3


def test_smoothing_keeps_a_straight_line_and_its_length() -> None:
    line = pd.Series([0.5 * step for step in range(200)], index=range(7, 207))
    assert list(smoothed(line)) == pytest.approx(list(line))
    bumpy = line + pd.Series([(-1) ** step for step in range(200)], index=line.index)
    assert (smoothed(bumpy) - line).abs().iloc[10:-10].max() < 0.2
