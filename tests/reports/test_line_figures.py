"""Laws and golden numbers of figures of lines."""

from collections.abc import Callable

import pandas as pd
import pytest

from hand_made import ALONE, golden, plain, same_rows, score, the_same
from isogloss.reports.line_figures import LineFigure, seed_figures
from isogloss.reports.measurements import Measurements
from made_up_rows import make_measurements
from report_entries import list_entries

Study = Callable[[str], Measurements]


def figures(measurements: Measurements, name: str) -> list:
    return [
        samples
        for line_figure in list_entries()
        if line_figure.name == name and isinstance(line_figure, LineFigure)
        for samples in line_figure.show(measurements)
    ]


def score_of_size(language: str, value: float, size: int | None = None, **facts) -> dict:
    """A score on an encoder adjusted to a number of translations."""
    if size:
        options = dict.fromkeys(("encoder", "encoder.run"), f"e{size}") | {"encoder.original": "enc"}
        options |= {"encoder.adjusted": "cross-lingual-adjustment", "encoder.pairs": "aa-bb"}
        facts = {**options, "encoder.size": size, **facts}
    return score(language, value, **{"encoder.depth": 1, "seed": None, **facts})


def epoch(index: int, value: float, **facts) -> dict:
    options = {"epoch": index, "step": 10 * index, "language": "aa", "split": "dev", "chosen": False}
    return {**ALONE, **options, "score": value, **facts}


def test_retrieval_by_layer_is_as_it_was(study: Study) -> None:
    (drawn_line_figure,) = figures(study("adjustment"), "retrieval")
    rows = drawn_line_figure.data[drawn_line_figure.data["pair"] != "chance"]
    names = ["second", "layer", "task", "accuracy_forward", "accuracy_backward", "chance"]
    assert same_rows(rows, pd.DataFrame(golden("adjustment")["figures"]["retrieval"]["data"]), names) == 52
    assert figures(study("transfer"), "retrieval") == []


@pytest.mark.parametrize("layers", [(0, 6, -1), (0, -2, -1), (-3, -2, -1)])
def test_layers_counted_from_the_last_are_points_of_their_own(layers) -> None:
    facts = {"first": "aa", "second": "bb", "centred": True, "similarity": "cosine", "chance": 0.1}
    result = [
        {**ALONE, **facts, "layer": layer, "accuracy_forward": place / 4, "accuracy_backward": place / 4}
        for place, layer in enumerate(layers)
    ]
    (drawn_line_figure,) = figures(make_measurements(retrieval=result), "retrieval")
    rows = drawn_line_figure.data[drawn_line_figure.data["pair"] != "chance"].sort_values("place")
    assert rows["place"].nunique() == 3
    assert tuple(rows["layer"]) == layers


@pytest.mark.draws
@pytest.mark.slow
def test_losses_and_perplexities_are_as_they_were(study: Study) -> None:
    old_figures = golden("interference")["figures"]
    state_before = pd.DataFrame(old_figures["pretraining"]["data"]).dropna(subset=["loss"])
    (pretraining,) = figures(study("interference"), "pretraining")
    assert same_rows(pretraining.data, state_before, ["run", "step", "loss"]) == 15
    assert "joint" in pretraining.svg
    assert "#0072b2" in pretraining.svg
    (perplexity,) = figures(study("interference"), "perplexity")
    names = ["language", "epoch", "step", "score"]
    assert same_rows(perplexity.data, pd.DataFrame(old_figures["perplexity"]["data"]), names) == 54


def test_losses_of_adjustments_are_as_they_were(study: Study) -> None:
    check_count = 0
    for drawn_line_figure in figures(study("adjustment"), "adjusting"):
        state_before = pd.DataFrame(golden("adjustment")["figures"][drawn_line_figure.name]["data"]).dropna(
            subset=["loss"]
        )
        check_count += same_rows(drawn_line_figure.data, state_before, ["run", "step", "loss"])
    assert check_count == 3


@pytest.mark.parametrize(
    ("name", "rows"), [("transfer", 21), ("mixup", 30), ("adjustment", 30), ("interference", 27)]
)
def test_dev_scores_by_epoch_are_as_they_were(study: Study, name: str, rows: int) -> None:
    table_before = pd.DataFrame(golden(name)["figures"]["fine-tuning-1"]["data"])
    table_before = table_before[table_before["epoch"].notna()].assign(
        chosen=lambda data: data["chosen"].astype(bool)
    )
    (drawn_line_figure,) = figures(study(name), "fine-tuning")
    assert (
        same_rows(
            drawn_line_figure.data, table_before, ["run", "language", "metric", "epoch", "score", "chosen"]
        )
        == rows
    )


def test_sweeps_are_as_they_were(study: Study) -> None:
    old_figures = golden("mixup")["figures"]
    check_count = 0
    for drawn_line_figure, name in zip(
        figures(study("mixup"), "mixup-sweep"), ("ud-paired-upos", "xnli-paired-nli"), strict=True
    ):
        table_before = pd.DataFrame(old_figures[f"mixup-sweep-{name}-shipped-test-accuracy"]["data"])
        swept = drawn_line_figure.data[drawn_line_figure.data["line"] != "as trained"]
        check_count += same_rows(swept, table_before, ["language", "layer", "ratio", "trained", "score"])
        assert list(drawn_line_figure.data["line"]).count("as trained") == table_before["trained"].sum()
    assert check_count == 12


def test_scores_by_size_of_bitext_are_as_they_were(study: Study) -> None:
    (drawn_line_figure,) = figures(study("adjustment"), "bitext-size-cross") or figures(
        study("adjustment"), "bitext-size"
    )
    rows = drawn_line_figure.data.assign(
        translations=drawn_line_figure.data["translations"].where(
            drawn_line_figure.data["line"] != "original encoder", 0
        ),
        of=(drawn_line_figure.data["corpus"] + " " + drawn_line_figure.data["inputs"]).str.strip(),
    )
    means = rows.groupby(["of", "language", "translations"])["score"].mean().reset_index()
    data_before = golden("adjustment")["figures"]["bitext-size-shipped-cross-lingual-adjustment-1"]["data"]
    assert (
        the_same(means, data_before, {"of": "corpus", **plain("language", "translations")}, {"score": "mean"})
        == 27
    )


def test_the_spread_over_seeds_is_as_it_was(study: Study) -> None:
    (drawn_figure,) = seed_figures(study("transfer"))
    data_before = golden("transfer")["figures"]["seeds"]["data"]
    keys = plain("method", "source", "target", "language", "metric")
    assert the_same(drawn_figure.data, data_before, keys, plain("seeds", "mean", "std")) == 11


def test_adjustments_of_other_fields_never_share_a_line() -> None:
    rows = [
        score_of_size(language, 0.5, size, **{"encoder.adjusted.stay": stay, "seed": seed})
        for language in ("aa", "cc")
        for size in (100, 200)
        for stay in (0.0, 1.0)
        for seed in (0, 1)
    ]
    (drawn_line_figure,) = figures(make_measurements(scores=rows), "bitext-size")
    assert sorted(drawn_line_figure.data["panel"].unique()) == ["0.0", "1.0"]
    assert set(drawn_line_figure.data.groupby("language")["line"].unique().map(tuple)) == {
        ("",),
        ("not adjusted to",),
    }


def test_one_size_of_bitext_makes_no_curve_and_a_size_of_all_is_what_was_read() -> None:
    unadjusted_value = {
        name: value for name, value in score_of_size("bb", 0.4).items() if name != "encoder.depth"
    }
    assert figures(make_measurements(scores=[unadjusted_value]), "bitext-size") == []
    single_scores = [score_of_size("bb", 0.5, 100), score_of_size("bb", 0.4)]
    assert figures(make_measurements(scores=single_scores), "bitext-size") == []
    everything = score_of_size("bb", 0.6, 999) | {"encoder.size": None}
    read = [{"run": "e999", "pair": "aa-bb", "translations": 500, "left_out": 0, "pulled": 9}]
    (drawn_line_figure,) = figures(
        make_measurements(scores=[*single_scores, everything], bitext_read=read), "bitext-size"
    )
    lines = drawn_line_figure.data[drawn_line_figure.data["line"] == ""]
    assert dict(zip(lines["translations"], lines["score"], strict=True)) == {100: 0.5, 500: 0.6}
    assert set(drawn_line_figure.data.loc[drawn_line_figure.data["line"] == "original encoder", "score"]) == {
        0.4
    }


@pytest.mark.draws
@pytest.mark.nightly
@pytest.mark.slow
def test_a_thousand_runs_are_drawn_as_averages_in_a_figure_of_few_panels() -> None:
    rows = [
        epoch(position, seed / 100, seed=seed, run=f"{target} {seed}", target=target)
        for target in (str(item) for item in range(40))
        for seed in range(25)
        for position in (1, 2)
    ]
    (drawn_line_figure,) = figures(make_measurements(epochs=rows), "fine-tuning")
    assert "the first 24 of 40 panels" in drawn_line_figure.caption
    assert len(drawn_line_figure.data) == 2000
    assert len(drawn_line_figure.svg) < 400_000
    assert "28 lines more" in drawn_line_figure.alt
