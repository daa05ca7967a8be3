"""Laws and golden numbers of the tables of one frame."""

from collections.abc import Callable

import pandas as pd
import pytest

from hand_made import ALONE, golden, plain, same_rows, score, the_same
from isogloss.features.pretraining.report import last_and_lowest, parameter_counts
from isogloss.features.x_mixup.report import sweep_ends
from isogloss.reports.measurements import Measurements
from isogloss.reports.score_tables import score_tables
from isogloss.reports.summaries import gaps, spreads, unshown_gaps
from made_up_rows import make_measurements
from report_entries import find_entry

Study = Callable[[str], Measurements]


def table(measurements: Measurements, name: str):
    (result,) = find_entry(name).show(measurements)
    return result


def test_the_spread_over_seeds_is_as_it_was(study: Study) -> None:
    keys = plain("method", "source", "target", "language", "metric")
    check_count = 0
    for name in ("transfer", "interference"):
        rows_before = [dict(row) for row in golden(name)["tables"]["seed-spread"]["data"]]
        rows = spreads(study(name))
        labels = study(name).labels
        rows = rows.assign(of=rows["encoder.run"].map(labels).astype(object).fillna("shipped"))
        check_count += the_same(rows, rows_before, {**keys, "of": "encoder"}, plain("seeds", "mean", "std"))
    assert check_count == 11 + 13


@pytest.mark.parametrize(("name", "models"), [("transfer", 3), ("mixup", 6), ("interference", 12)])
def test_transfer_gaps_are_as_they_were(study: Study, name: str, models: int) -> None:
    rows = gaps(study(name))
    rows = rows[(rows["method"] == "source-only") & (rows["inputs"] == "")]
    rows = rows.assign(of=rows["encoder.run"].map(study(name).labels).astype(object).fillna("shipped"))
    rows_before = [
        row for row in golden(name)["tables"]["transfer-gap"]["data"] if row["metric"] == "accuracy"
    ]
    rows_before = [row for row in rows_before if row["corpus"] in ("ud", "xnli")]
    numbers = plain("source_score", "target_mean", "gap")
    assert (
        the_same(rows, rows_before, {**plain("corpus", "task", "seed"), "of": "encoder"}, numbers) == models
    )


def test_gaps_that_the_tables_of_scores_show_are_in_no_second_table(study: Study) -> None:
    measurements = study("transfer")
    remaining_unshown_gaps = unshown_gaps(measurements)
    row = gaps(measurements)
    table_means = {
        round(row["mean"], 6)
        for table in score_tables(measurements)
        for row in table.data.to_dict("records")
        if row.get("column") == "gap"
    }
    assert len(table_means) > 0
    assert "source-only" in set(row["method"]) - set(remaining_unshown_gaps["method"])
    assert len(remaining_unshown_gaps) < len(row)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("transfer", 16), ("adjustment", 208)])
def test_retrieval_is_as_it_was(study: Study, name: str, rows: int) -> None:
    numbers = ["accuracy_forward", "accuracy_backward", "chance"]
    names = ["second", "layer", "centred", "similarity", "candidates", "task", *numbers]
    old_table = pd.DataFrame(golden(name)["tables"]["retrieval-by-layer"]["data"])
    assert same_rows(table(study(name), "retrieval-by-layer").data, old_table, names) == rows


def test_mixing_ratios_and_sweeps_are_as_they_were(study: Study) -> None:
    measurements = study("mixup")
    old_tables = golden("mixup")["tables"]
    keys = plain("task", "source", "target", "seed", "language", "split")
    numbers = plain("mean", "std", "q05", "median", "q95", "examples")
    assert (
        the_same(table(measurements, "mixup-ratio").data, old_tables["mixup-ratio"]["data"], keys, numbers)
        == 6
    )
    rows = measurements.frame("mixup-sweep")
    keys |= plain("layer", "ratio")
    assert the_same(rows, old_tables["mixup-sweep"]["data"], keys, plain("score", "mean", "trained")) == 12
    ends = sweep_ends(rows).set_index(["task", "layer"])
    best_score = rows.groupby(["task", "layer"])["score"].max()
    assert ends["best"].to_dict() == best_score.to_dict()


def test_perplexities_and_parameters_are_as_they_were(study: Study) -> None:
    measurements = study("interference")
    old_tables = golden("interference")["tables"]
    rows = last_and_lowest(measurements.frame("perplexity"))
    table_before = pd.DataFrame(old_tables["perplexity-by-language"]["data"])
    names = ["language", "score", "epoch", "lowest", "lowest_epoch"]
    assert same_rows(rows, table_before, names) == 27
    counted_parameters = parameter_counts(measurements.frame("parameters"))
    totals = pd.DataFrame(old_tables["parameters"]["data"]).groupby("encoder")["parameters"].sum()
    assert (
        dict(
            zip(
                counted_parameters["encoder.run"].map(measurements.labels),
                counted_parameters["total"],
                strict=True,
            )
        )
        == totals.to_dict()
    )


def test_word_alignments_are_as_they_were(study: Study) -> None:
    rows = table(study("adjustment"), "word-alignment").data
    keys = plain("run", "bitext", "languages", "split", "aligner")
    numbers = plain("pairs", "links", "gold_pairs", "precision", "recall", "f1", "aer")
    assert the_same(rows, golden("adjustment")["tables"]["word-alignment"]["data"], keys, numbers) == 5


def test_a_gap_is_of_one_model_and_of_its_own_targets() -> None:
    rows = [score("aa", 0.9), score("bb", 0.5), score("cc", 0.1)]
    rows += [
        score(language, value, model="b", method="bilingual", way="b", target="bb")
        for language, value in (("aa", 0.8), ("bb", 0.7), ("cc", 0.0))
    ]
    rows += [score("bb", 0.4, model="t", method="target-only", way="t", source="", target="bb")]
    gap = gaps(make_measurements(scores=rows)).set_index("model")["gap"]
    assert gap.to_dict() == pytest.approx({"m": 0.6, "b": 0.1})


def test_dev_scores_do_not_enter_where_there_are_test_scores() -> None:
    rows = [score("aa", value, seed=seed, model=str(seed)) for seed, value in enumerate((0.5, 0.7))]
    rows += [score("aa", 0.0, split="dev"), score("aa", 0.0, metric="other", main=False)]
    row = spreads(make_measurements(scores=rows))
    assert list(row["mean"]) == pytest.approx([0.6])
    assert list(row["seeds"]) == [2]


def test_a_model_without_a_source_has_that_of_the_models_that_it_is_compared_with() -> None:
    target_only = {"method": "target-only", "way": "t", "source": "", "target": "bb"}
    rows = [
        score(language, value, seed=seed, model=f"{seed} {len(facts)}", **facts)
        for facts in ({}, target_only)
        for seed, value in enumerate((0.5, 0.7))
        for language in ("aa", "bb", "cc")
    ]
    role = spreads(make_measurements(scores=rows)).set_index(["method", "language"])["role"]
    assert (
        {**role["target-only"]} == {**role["source-only"]} == {"aa": "source", "bb": "target", "cc": "target"}
    )
    crossed_rows = [*rows, *(score("bb", 0.5, source="bb", seed=seed, model=f"b{seed}") for seed in (0, 1))]
    owner = spreads(make_measurements(scores=crossed_rows)).set_index(["method", "source", "language"])[
        "role"
    ]
    assert owner["target-only", "", "bb"] == "target"
    assert owner["source-only", "bb", "bb"] == "source"


def test_systems_that_share_their_names_keep_lines_of_their_own() -> None:
    fields = {**ALONE, "first": "aa", "second": "bb", "layer": 1, "centred": True, "similarity": "cosine"}
    fields |= {"candidates": 9, "accuracy_forward": 0.5, "accuracy_backward": 0.5, "chance": 0.1}
    rows = [{**fields, "model": way, "way": way} for way in ("w1", "w2")]
    lines = table(make_measurements(retrieval=rows), "retrieval-by-layer").rows
    assert [line[-1].text for line in lines] == ["1", "1"]


def test_where_trainings_with_patience_ended_is_shown_as_a_mean_over_seeds() -> None:
    ends = [(40, 100, 4, 2), (60, 100, 6, 4)]
    names = ("updates", "planned", "last_epoch", "chosen_epoch")
    rows = [
        {**ALONE, "model": str(n), "seed": n, **dict(zip(names, end, strict=True))}
        for n, end in enumerate(ends)
    ]
    (row,) = table(make_measurements(stopping=rows), "stopping").rows
    assert [cell.text for cell in row[-5:-1]] == ["50.0 ± 14.1", "100.0 ± 0.0", "5.0 ± 1.4", "3.0 ± 1.4"]
