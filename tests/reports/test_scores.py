"""The table of scores: its systems, averages, baselines and marks."""

import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hand_made import golden
from made_up_rows import BILINGUAL, TRANSLATES, read_by, score
from made_up_rows import make_measurements as made_up

from isogloss.core.languages import language_name
from isogloss.core.records import Record
from isogloss.data.result_files import StoredPredictions
from isogloss.metrics.significance import holm
from isogloss.reports import measurements
from isogloss.reports.comparison import unit_of
from isogloss.reports.line_figures import BITEXT_SIZE
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.reports.opening import opening_of
from isogloss.reports.score_tables import score_tables
from isogloss.reports.scores import GAP, key_of, reference_of, scored_sets, values_of
from isogloss.reports.summaries import SUMMARIES

EXAMPLES = 60

PLAIN = {
    "split": "test",
    "metric": "accuracy",
    "main": True,
    "baseline": 0.25,
    "examples": EXAMPLES,
    "corpus": "xnli",
    "treebank": "",
    "inputs": "",
    "inputs.translator": "",
    "task": "nli",
    "source": "en",
    "target": "",
    "seed": 0,
    "method": "source-only",
    "way": "",
    "translator": "",
    "auxiliary": "",
    "auxiliary.method": "",
    "after.method": "",
    "encoder": "mini",
    "encoder.run": "",
    "encoder.seed": pd.NA,
    "encoder.kind": "pretrained",
    "encoder.name": "",
    "encoder.languages": "",
    "encoder.method": "",
    "encoder.modules": "",
    "encoder.adjusted": "",
    "encoder.pairs": "",
    "encoder.size": pd.NA,
    "encoder.original": "",
    "encoder.depth": pd.NA,
    "optimization.learning_rate": 0.1,
    "gain": 0.0,
}

JOINT = {
    "encoder": "joint",
    "encoder.kind": "pretrain",
    "encoder.languages": "en+de+fr",
    "encoder.method": "masked-language-modelling",
}


def models(languages="en de fr", seeds=3, **facts):
    """Return the scores of one system with each seed on each language, drawn independently."""
    fields = {**PLAIN, **facts}
    fields = {**fields, **read_by(fields), **facts}
    fields["way"] = fields["way"] or f"way of {fields['method']}"
    fields["encoder.name"] = fields["encoder.name"] or fields["encoder"]
    fields["encoder.original"] = fields["encoder.original"] or fields["encoder"]
    result = []
    for seed in range(seeds):
        pretrained_seed = seed if fields["encoder.kind"] == "pretrain" else pd.NA
        parts = ("encoder", "way", "source", "target", "corpus", "task")
        model = "-".join([*(fields[part] for part in parts), str(seed)])
        options = {
            **fields,
            "seed": seed,
            "encoder.seed": pretrained_seed,
            "encoder.run": fields["encoder"] + str(seed),
        }
        run = f"{model}-{fields['inputs']}-{fields['inputs.translator']}-{fields['split']}-{fields['metric']}"
        result += [{**options, "model": model, "run": run, "language": part} for part in languages.split()]
    return result


def make_measurements(*systems, is_kept=True, labels=None):
    """Return measurements of these scores, and of what was right of each example."""
    rows = [dict(row) for system in systems for row in system]
    predictions = {}
    for row in rows:
        rng = np.random.default_rng(zlib.crc32(f"{row['run']} {row['language']}".encode()))
        right = (rng.random(EXAMPLES) < 0.5 + row.pop("gain")).astype(float)
        row["score"] = float(right.mean())
        ids = tuple(str(item) for item in range(EXAMPLES))
        stored_predictions = StoredPredictions(ids=ids, measures={row["metric"]: (right, np.ones(EXAMPLES))})
        predictions.setdefault(row["run"], {})[row["language"]] = stored_predictions
    frame = pd.DataFrame(rows).astype(dict.fromkeys(["seed", "encoder.seed", "encoder.size"], "Int64"))
    return Measurements(
        runs=[], labels=labels or {}, _frames={"scores": frame}, _predictions=predictions if is_kept else {}
    )


def tables(made_measurements):
    return {table.name: table for table in score_tables(made_measurements)}


def data(made_measurements):
    return pd.concat(
        [table.data for name, table in tables(made_measurements).items() if name != "significance"]
    )


def texts(table):
    return [[cell.text for cell in row] for row in (table.header, *table.rows)]


def numbers(frame):
    """Return measured and tested numbers, without names and without columns that depend on the family."""
    names = ["name", "against", "encoder.label", "system", "p_holm", "p_examples_holm", "mark"]
    return frame.drop(columns=names).reset_index(drop=True)


@pytest.fixture
def several_systems():
    return [
        models(),
        models(method="bilingual", target="de", languages="en de fr", gain=0.1),
        models(method="bilingual", target="fr", languages="en de fr", gain=0.1),
        models(method="target-only", source="", target="de", languages="en de"),
        models(encoder="large", gain=0.2),
        models(corpus="pawsx", task="paraphrase"),
        models(metric="f1", main=False),
        models(split="dev"),
    ]


@pytest.mark.nightly
@pytest.mark.slow
def test_rows_in_another_order_give_the_same_tables(several_systems):
    first_measurements = make_measurements(*several_systems)
    rng = np.random.default_rng(0)
    for _ in range(2):
        frame = first_measurements.frame("scores").iloc[
            rng.permutation(len(first_measurements.frame("scores")))
        ]
        other_measurements = Measurements(
            runs=[], _frames={"scores": frame}, _predictions=first_measurements._predictions
        )
        pairs = list(zip(score_tables(first_measurements), score_tables(other_measurements), strict=True))
        for pair, two in pairs:
            words = [(table.name, table.title, table.caption, table.rows) for table in (pair, two)]
            assert words[0] == words[1]
            pd.testing.assert_frame_equal(pair.data, two.data)
        assert len(pairs) == 5


@pytest.mark.slow
def test_every_number_is_that_of_its_own_models(several_systems):
    made_measurements = make_measurements(*several_systems)
    scores = made_measurements.frame("scores")
    table = data(made_measurements)
    check_count = 0
    for row in table[table["column"].isin(["en", "de", "fr"])].to_dict("records"):
        same_names = [name for name in ("corpus", "task", "split", "metric", "encoder", "way") if name in row]
        own_score = scores[np.logical_and.reduce([scores[name] == row[name] for name in same_names])]
        own_score = own_score[own_score["language"] == row["column"]]
        own_score = own_score[
            (own_score["target"] == "")
            | (own_score["target"] == row["column"])
            | (row["column"] == own_score["source"])
        ]
        mean_by_seed = own_score.groupby("seed")["score"].mean()
        assert (row["mean"], row["std"]) == pytest.approx((mean_by_seed.mean(), mean_by_seed.std()))
        assert row["units"] == len(mean_by_seed) == 3
        check_count += 1
    assert check_count == 19


def test_a_model_does_not_count_on_another_target():
    good_models = models(method="bilingual", target="de", languages="de fr", gain=0.4)
    poor = models(method="bilingual", target="fr", languages="de fr", gain=-0.4)
    mean = (
        data(make_measurements(models(), good_models, poor))
        .query("method == 'bilingual'")
        .set_index("column")["mean"]
    )
    assert mean["de"] > 0.8
    assert mean["fr"] < 0.2


def test_on_languages_nobody_was_made_for_all_models_of_a_system_count():
    for_de = models(method="bilingual", target="de", languages="de sw", gain=0.4)
    for_fr = models(method="bilingual", target="fr", languages="fr sw", gain=-0.4)
    made_measurements = make_measurements(models("en de fr sw"), for_de, for_fr)
    own_rows = made_measurements.frame("scores").query("method == 'bilingual' and language == 'sw'")
    row = data(made_measurements).query("method == 'bilingual' and column == 'sw'").iloc[0]
    assert row["mean"] == pytest.approx(own_rows["score"].mean())
    assert row["std"] == pytest.approx(own_rows.groupby("seed")["score"].mean().std())


def test_models_of_one_seed_are_averaged_on_the_source_first():
    pair = [models(method="bilingual", target=language, languages="en de fr") for language in ("de", "fr")]
    made_measurements = make_measurements(models(), *pair)
    own_rows = made_measurements.frame("scores").query("method == 'bilingual' and language == 'en'")
    row = data(made_measurements).query("method == 'bilingual' and column == 'en'").iloc[0]
    assert row["units"] == 3
    assert row["std"] == pytest.approx(own_rows.groupby("seed")["score"].mean().std())


def test_mean_gap_and_unseen_are_means_of_the_columns():
    made_measurements = make_measurements(
        models("en de fr sw ur"),
        models("en de fr sw ur", method="x-mixup", target="de+fr"),
        models("en", encoder="large"),
    )
    (where,) = scored_sets(made_measurements)
    row = values_of(where)
    assert list(row) == ["en", "de", "fr", "sw", "ur", "mean of targets", "gap", "unseen"]
    expected = {"mean of targets": row[["de", "fr"]], "unseen": row[["sw", "ur"]]}
    for name, own_values in expected.items():
        assert list(row[name]) == pytest.approx(list(own_values.mean(axis=1, skipna=False)), nan_ok=True)
    gap = row["en"] - row["mean of targets"]
    assert list(row[GAP]) == pytest.approx(list(gap), nan_ok=True)
    assert row["gap"].isna().sum() == 3


@pytest.mark.slow
def test_another_corpus_changes_no_table(several_systems):
    tables_before = tables(make_measurements(*several_systems))
    tables_after = tables(make_measurements(*several_systems, models(corpus="other", gain=0.3)))
    assert len(tables_after) == len(tables_before) + 1
    for name, table in tables_before.items():
        if name != "significance":
            assert tables_after[name].rows == table.rows
            pd.testing.assert_frame_equal(tables_after[name].data, table.data)


def test_another_encoder_changes_no_other_line_but_by_holm():
    systems = [models(), models(method="bilingual", target="de", languages="en de")]
    table_before = data(make_measurements(*systems))
    table_after = data(make_measurements(*systems, models(encoder="zed", gain=0.3)))
    own_row = table_after[table_after["encoder"] != "zed"]
    pd.testing.assert_frame_equal(numbers(table_before), numbers(own_row), check_dtype=False)
    assert set(table_before["against"].dropna()) == {"source-only"}
    assert set(own_row["against"].dropna()) == {"mini / source-only"}


@pytest.mark.slow
def test_labels_change_names_alone(several_systems):
    first_measurements = make_measurements(*several_systems)
    labels = {f"mini{seed}": "source-only" for seed in range(3)}
    renamed_measurements = Measurements(
        runs=[],
        labels=labels,
        _frames={"scores": first_measurements.frame("scores")},
        _predictions=first_measurements._predictions,
    )
    other_table = data(renamed_measurements)
    assert "source-only" in set(other_table["encoder.label"])
    keys = ["corpus", "metric", "split", "encoder", "way", "column"]
    sides = [table.sort_values(keys) for table in (data(first_measurements), other_table)]
    pd.testing.assert_frame_equal(*(numbers(side) for side in sides))


def test_holm_is_over_the_whole_table(several_systems):
    check_count = 0
    for name, table in tables(make_measurements(*several_systems)).items():
        own_table = (
            table.data[table.data["p_value"].notna()] if name != "significance" else table.data.head(0)
        )
        if len(own_table):
            assert list(own_table["p_holm"]) == pytest.approx(holm(list(own_table["p_value"])))
            assert list(own_table["p_examples_holm"]) == pytest.approx(holm(list(own_table["p_examples"])))
            check_count += len(own_table)
    assert check_count == 5


@pytest.mark.slow
def test_a_star_needs_seeds():
    def score_table(seeds, kept=True):
        made_measurements = make_measurements(
            models(seeds=seeds), models(method="label-smoothing", seeds=seeds, gain=0.4), is_kept=kept
        )
        return tables(made_measurements)["scores-xnli-nli-en-test-accuracy"]

    marks = [set(score_table(seeds).data["mark"].dropna()) for seeds in (1, 5)]
    assert marks == [{"°"}, {"*"}]
    assert "One seed cannot show what other seeds would give: no * is possible." in score_table(1).notes
    assert "* significant over seeds and examples" in score_table(5).notes
    assert set(score_table(1, kept=False).data["mark"].dropna()) == {""}
    assert "No predictions were kept" in score_table(5, kept=False).notes


@pytest.mark.slow
def test_a_mark_stands_where_holm_says_so(several_systems):
    made_measurements = make_measurements(
        *several_systems, models(method="target-only", source="", target="fr", languages="fr", gain=0.45)
    )
    table = tables(made_measurements)["scores-xnli-nli-en-test-accuracy"]
    parts = Counter(
        cell.text.split()[-1] for row in table.rows for cell in row if cell.text[-1:] in ("*", "°")
    )
    assert parts == Counter(table.data["mark"].dropna()) - Counter({"": 99})
    assert sum(parts.values()) > 1
    for row in table.data.dropna(subset=["mark"]).to_dict("records"):
        expected = "*" if row["p_holm"] < 0.05 else "°" if row["p_examples_holm"] < 0.05 else ""
        assert row["mark"] == expected


def test_encoders_made_here_scatter_over_pretraining_seeds():
    mono = {**JOINT, "encoder": "mono", "encoder.languages": "en"}
    table = tables(make_measurements(models(**JOINT), models("en", **mono), labels={"joint0": "joint"}))[
        "scores-xnli-nli-en-test-accuracy"
    ]
    assert "3 pretraining seeds" in table.caption
    assert set(table.data["against"].dropna()) == {"joint / source-only"}


def test_one_pretraining_and_what_adjusted_it_scatter_over_seeds():
    fields = {"encoder.kind": "pretrain", "encoder.original": "joint", "encoder.adjusted": "procrustes"}
    joint = models(**JOINT)
    aligned_models = models(encoder="aligned", **fields)
    once = [{**row, "encoder.seed": 0} for row in (*joint, *aligned_models)]
    other_items = [{**row, "encoder.seed": 0} for row in models(**{**JOINT, "encoder": "mono"})]
    units = [
        unit_of(make_measurements(rows).frame("scores"))
        for rows in (once, [*joint, *aligned_models], [*once[: len(joint)], *other_items], joint)
    ]
    assert units == ["seed", "encoder.seed", "encoder.seed", "seed"]
    rows = data(make_measurements(once)).query("encoder == 'aligned'")
    assert set(rows["units"]) == {3}
    assert rows.loc[rows["column"] == "de", "p_value"].notna().all()


TREEBANK = measurements.TESTED.index("treebank")


def test_treebanks_make_another_test_set_only_where_they_are_not_read_beside_others():
    def record_of(**treebanks):
        run = {"corpus": "ud", "languages": list(treebanks), "treebanks": list(treebanks.items())}
        return Record(id=" ".join(treebanks.values()), kind="measure", title="", run=run)

    runs = [
        record_of(en="EWT", fr="GSD"),
        record_of(fr="GSD"),
        record_of(en="PUD", fr="PUD"),
        record_of(fr="PUD"),
    ]
    made_measurements = Measurements(
        runs=[PlannedRun(id=run.id, state="finished", folder=Path(), record=run) for run in runs]
    )
    assert [
        measurements.tested_inputs(run.run, made_measurements._combined_treebanks)[TREEBANK] for run in runs
    ] == [
        "",
        "",
        "PUD",
        "PUD",
    ]
    assert [measurements.tested_inputs(run.run, frozenset())[TREEBANK] for run in runs] == [
        "",
        "GSD",
        "PUD",
        "PUD",
    ]


def test_a_model_without_source_stands_in_the_table_of_every_source():
    own_models = models(method="target-only", source="", target="de", languages="de")
    both_tables = tables(make_measurements(models(), models(source="fr"), own_models))
    assert [name for name in both_tables if "nli-en" in name or "nli-fr" in name] == list(both_tables)[:2]
    for name in list(both_tables)[:2]:
        assert "target-only" in set(both_tables[name].data["method"])
    single_tables = tables(make_measurements(own_models))
    assert list(single_tables) == ["scores-xnli-nli-test-accuracy"]


def test_inputs_in_translation_stand_together_and_mixed_ones_apart():
    made_measurements = make_measurements(
        models(),
        models(inputs="translated"),
        models(method="x-mixup", inputs="paired", target="de"),
        models(inputs="mixed"),
        models(inputs="mixed-question"),
    )
    fields = tables(made_measurements)
    inputs = {name: set(field.data["inputs"]) for name, field in fields.items() if name != "significance"}
    assert list(inputs.values()) == [{"", "translated", "paired"}, {"mixed"}, {"mixed-question"}]


def test_only_the_tasks_own_measure_on_the_best_split_lies_open(several_systems):
    fields = {name: table.folded for name, table in tables(make_measurements(*several_systems)).items()}
    assert [name for name, folded_field in fields.items() if not folded_field] == [
        "scores-pawsx-paraphrase-en-test-accuracy",
        "scores-xnli-nli-en-test-accuracy",
    ]
    assert len(fields) == 5


def test_all_other_measures_of_a_test_set_are_the_columns_of_one_folded_table():
    facts = {"main": False, "baseline": pd.NA}
    systems = (
        {"method": "source-only", "gain": 0.0},
        {"method": "label-smoothing", "gain": 0.4},
    )
    both_models = [models(**system) for system in systems]
    other_models = {
        measure: [models(metric=measure, **system, **facts) for system in systems]
        for measure in ("macro_f1", "mcc")
    }
    result = tables(make_measurements(*both_models, *other_models["macro_f1"], *other_models["mcc"]))
    assert [(name, result[name].folded) for name in result] == [
        ("scores-xnli-nli-en-test-accuracy", False),
        ("measures-xnli-nli-en-test", True),
        ("significance", True),
    ]
    table = result["measures-xnli-nli-en-test"]
    assert [cell.text for cell in table.header] == ["language", "method", "macro_f1", "mcc"]
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[1] for row in rows] == ["source-only", "label-smoothing"] * 5
    bold = [
        (index, place)
        for index, row in enumerate(table.rows)
        for place, cell in enumerate(row)
        if cell.mark == "best"
    ]
    assert bold == [(index, place) for index in (1, 3, 5, 7) for place in (2, 3)]
    for place, measure in ((2, "macro_f1"), (3, "mcc")):
        single_table = tables(make_measurements(*other_models[measure]))[
            f"scores-xnli-nli-en-test-{measure.replace('_', '-')}"
        ]
        method_texts = {row[0].text: [cell.text for cell in row[1:]] for row in single_table.rows}
        values_by_language = zip(
            *(method_texts[name] for name in ("source-only", "label-smoothing")), strict=True
        )
        assert [row[place] for row in rows] == [text for column in values_by_language for text in column]
    assert set(table.data["metric"]) == {"macro_f1", "mcc"}


def test_the_best_of_a_column_is_bold_and_the_majority_is_below():
    table = tables(make_measurements(models(), models(method="bilingual", gain=0.4)))[
        "scores-xnli-nli-en-test-accuracy"
    ]
    bold = [row[0].text for row in table.rows for cell in row if cell.mark == "best"]
    assert Counter(bold) == {"bilingual": 4}
    assert [cell.text for cell in table.rows[-1]] == ["majority", "25.0", "25.0", "25.0", "–", "–"]


def systems_of(*systems):
    (where,) = scored_sets(make_measurements(*systems))
    return where.systems


def reference(systems, **facts):
    """Return the baseline of the system with these facts."""
    (own_part,) = [
        system for system in systems if all(system[name] == value for name, value in facts.items())
    ]
    row = reference_of(own_part, systems)
    return row and (row["encoder"], row["way"], row["inputs"])


def test_what_reads_translations_is_held_against_translate_train_by_the_same_translator():
    fields = {"translator": "seq2seq", "target": "de"}
    read = '{"translator": "seq2seq", "translator.model": "back"}'
    systems = systems_of(
        models(),
        models(method="translate-train", way="files", target="de"),
        models(method="translate-train", way="made", **fields, **{"translator.model": "there"}),
        models(method="translate-train", way="slow", **fields, **{"optimization.learning_rate": 0.2}),
        models(method="x-mixup", way="mix", target="de"),
        models(method="x-mixup", way="mix made", **fields, **{"optimization.learning_rate": 0.2}),
        models(method="x-mixup", way="mix", target="de", inputs="paired"),
        models(way="way of source-only", inputs="translated", **{"inputs.translator": read}),
        models(method="consistency", way="other", translator="other", target="de"),
    )
    assert reference(systems, way="mix", inputs="") == ("mini", "files", "")
    assert reference(systems, way="mix", inputs="paired") == ("mini", "files", "")
    assert reference(systems, way="mix made") == ("mini", "slow", "")
    assert reference(systems, inputs="translated") == ("mini", "made", "")
    assert reference(systems, way="other") == ("mini", "way of source-only", "")
    assert reference(systems, way="files") == ("mini", "way of source-only", "")
    assert reference(systems, way="way of source-only", inputs="") is None


def test_x_mixup_in_tagging_is_held_against_translate_train_with_a_teacher_too():
    fields = {"translator": "seq2seq", "target": "de"}
    taught_value = {**fields, "read.taught": "yes"}
    faster = {"optimization.learning_rate": 0.2}
    systems = systems_of(
        models(),
        models(method="translate-train", way="carried", **fields),
        models(method="translate-train", way="taught", **taught_value),
        models(method="translate-train", way="taught faster", **taught_value, **faster),
        models(method="x-mixup", way="mix", **taught_value),
        models(method="x-mixup", way="mix faster", **taught_value, **faster),
        models(method="consistency", way="consistent", **fields),
        models(method="consistency", way="slow", **fields, **{"optimization.learning_rate": 0.01}),
    )
    assert reference(systems, way="mix") == ("mini", "taught", "")
    assert reference(systems, way="mix faster") == ("mini", "taught faster", "")
    assert reference(systems, way="consistent") == ("mini", "carried", "")
    assert reference(systems, way="slow") is None
    slow = models(method="consistency", way="slow", **{"optimization.learning_rate": 0.01})
    (table,) = (
        table for name, table in tables(make_measurements(models(), slow)).items() if name != "significance"
    )
    assert "no baseline has equal hyper-parameters: consistency" in table.notes


LORA = {"peft": "lora", "peft.rank": 8.0}


@pytest.mark.parametrize("swapped_value", [False, True])
@pytest.mark.parametrize("ids", ["ab", "ba"])
def test_a_baseline_differs_from_a_system_in_the_method_alone(ids, swapped_value):
    """Neither the order of the recipe nor the order of ids, which are hashes, chooses it."""
    plain_text, lora = (f"{name} of source-only" for name in ids)
    baselines = [models(way=plain_text), models(way=lora, **LORA)]
    baselines = baselines[::-1] if swapped_value else baselines
    systems = systems_of(
        *baselines,
        models(method="bilingual", target="de", way="full"),
        models(method="bilingual", target="de", way="adapted", **LORA),
        models(method="bilingual", target="de", way="larger", **{**LORA, "peft.rank": 16.0}),
    )
    assert reference(systems, way="full") == ("mini", plain_text, "")
    assert reference(systems, way="adapted") == ("mini", lora, "")
    assert reference(systems, way="larger") == ("mini", "full", "")
    assert reference(systems, way=lora) == ("mini", plain_text, "")
    assert reference(systems, way=plain_text) is None


@pytest.mark.parametrize("swapped_value", [False, True])
def test_sentence_tests_and_table_have_the_same_baseline(swapped_value):
    baselines = [models(way="a", gain=0.1), models(way="b", gain=-0.3, **LORA)]
    made_measurements = make_measurements(
        *(baselines[::-1] if swapped_value else baselines),
        models(method="bilingual", target="de", way="c", gain=0.2),
        models(method="bilingual", target="de", way="d", gain=0.4, **LORA),
    )
    table = data(made_measurements)
    against = dict(table.dropna(subset=["against"])[["name", "against"]].drop_duplicates().to_numpy())
    adapted_text = "source-only (peft=lora, rank=8)"
    assert against == {
        adapted_text: "source-only",
        "bilingual": "source-only",
        "bilingual (peft=lora, rank=8)": adapted_text,
    }
    opening = opening_of(made_measurements)
    gains = table.set_index(["name", "column"])["mean"]
    changes = 100 * (gains["bilingual", "de"] - gains["source-only", "de"])
    assert f"With target labels (bilingual) targets gain {changes:.1f} points." in opening.results
    changes = 100 * (gains["bilingual (peft=lora, rank=8)", "de"] - gains[adapted_text, "de"])
    assert (
        f"Over {adapted_text}, bilingual (peft=lora, rank=8) gains {changes:.1f} points there."
        in opening.results
    )


def test_of_several_baselines_none_is_taken_unless_the_recipe_names_one():
    fields = {"target": "de", "translator": "seq2seq"}
    systems = (
        models(),
        models(method="translate-train", way="both", **fields, **{"method.with_source": True}),
        models(method="translate-train", way="alone", **fields, **{"method.with_source": False}),
        models(method="consistency", way="own", **fields),
    )
    (table,) = (
        table for name, table in tables(make_measurements(*systems)).items() if name != "significance"
    )
    assert "consistency is compared with none: translate-train" in table.notes
    assert "(against)" in table.notes
    own_model, model = (systems[index][0]["model"] for index in (3, 2))
    made_measurements = replace(make_measurements(*systems), against={own_model: model})
    (where,) = scored_sets(made_measurements)
    (system,) = (system for system in where.systems if system["way"] == "own")
    assert where.references[key_of(system)]["way"] == "alone"


def test_a_model_that_goes_on_from_another_is_compared_with_that():
    start = {"after.method": "source-only", "after.way": "way of source-only"}
    systems = systems_of(
        models(),
        models(method="few-shot", target="de", way="few", **start, **{"optimization.epochs": 1.0}),
    )
    assert reference(systems, way="few") == ("mini", "way of source-only", "")


def test_adjusted_encoders_are_held_against_their_original_and_continual_against_its_own():
    continual = {"auxiliary": "alignment-loss", "auxiliary.method": "source-only", "method": "continual"}
    fields = {"encoder": "aligned", "encoder.original": "mini", "encoder.adjusted": "contrastive-alignment"}
    systems = systems_of(
        models(),
        models(method="x-mixup", target="de"),
        models(**fields),
        models(method="x-mixup", target="de", **fields),
        models(target="de", **continual),
        models(target="de", **continual, **fields),
        models(encoder="other"),
    )
    assert reference(systems, encoder="aligned", method="source-only") == ("mini", "way of source-only", "")
    assert reference(systems, encoder="aligned", method="x-mixup") == ("mini", "way of x-mixup", "")
    assert reference(systems, encoder="aligned", method="continual") == ("aligned", "way of source-only", "")
    assert reference(systems, encoder="mini", method="continual") == ("mini", "way of source-only", "")
    assert reference(systems, encoder="other") is None


def test_encoders_made_here_are_held_against_the_joint_one():
    modules = {**JOINT, "encoder": "modules", "encoder.modules": "adapter"}
    two = {**JOINT, "encoder": "two", "encoder.languages": "en+de"}
    systems = systems_of(
        models(**JOINT),
        models(**modules),
        models(**two),
        models("en", **{**JOINT, "encoder": "mono", "encoder.languages": "en"}),
        models(method="target-only", target="de", source="", **JOINT),
        models(method="target-only", target="de", source="", **modules),
    )
    for encoder in ("two", "mono"):
        assert reference(systems, encoder=encoder) == ("joint", "way of source-only", "")
    for method in ("source-only", "target-only"):
        assert reference(systems, encoder="modules", method=method) == ("joint", f"way of {method}", "")
    assert reference(systems, encoder="joint", method="source-only") is None
    assert reference(systems, encoder="joint", method="target-only") == ("joint", "way of source-only", "")


@pytest.mark.slow
def test_the_csv_has_a_row_a_system_and_column_with_both_p_values(several_systems):
    table = data(make_measurements(*several_systems))
    assert not table.duplicated(
        ["corpus", "task", "split", "metric", "encoder", "way", "inputs", "column"]
    ).any()
    own_part = table[table["difference"].notna()]
    assert own_part[["p_units", "p_examples", "p_value", "low", "high"]].notna().all().all()
    assert len(tables(make_measurements(*several_systems))["significance"].rows) == len(own_part)


def test_nothing_measured_is_no_table():
    assert score_tables(Measurements(runs=[])) == []


# What the reports said before, of the same runs.

BEFORE = {"continual": "source-only + alignment-loss"}
"""Current names of methods in earlier records."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "rows"), [("transfer", 16), ("mixup", 123), ("adjustment", 128), ("interference", 57)]
)
def test_means_and_spreads_are_those_of_before(study, name, rows):
    result = data(study(name))
    check_count = 0
    targets = {MEAN_BEFORE: _means_of_all_targets(study(name))}
    for table in _score_rows(golden(name)):
        for row in table:
            own_row = targets[MEAN_BEFORE] if row["language"] == MEAN_BEFORE else result
            own_row = own_row[own_row["column"] == row["language"]]
            own_row = own_row if row.get("what") == "within" else own_row[own_row["source"] == row["source"]]
            own_row = own_row[
                (own_row["task"] == row["task"])
                & (own_row["metric"] == row.get("metric", row.get("measure")))
            ]
            where = own_row["corpus"].where(
                own_row["inputs"] == "", own_row["corpus"] + " " + own_row["inputs"]
            )
            own_row = own_row[((own_row["corpus"] == row["corpus"]) | (where == row["corpus"]))]
            method = row["method"].split(" ")[0]
            own_row = own_row[own_row["method"] == BEFORE.get(method, method)]
            own_row = (
                own_row[own_row["encoder.label"] == row["encoder"]] if name == "interference" else own_row
            )
            neighbours = np.isclose(own_row["mean"], row["mean"], atol=1e-8)
            neighbours &= np.isclose(own_row["std"], row["std"], atol=1e-8) & (
                own_row["units"] == row["seeds"]
            )
            assert neighbours.any(), row
            check_count += 1
    assert check_count == rows


MEAN_BEFORE = "mean of targets"


def _score_rows(golden):
    """Return only the rows of scores, without perplexities and parameters."""
    for name, table in golden["tables"].items():
        if name.split("-")[0] in ("scores", "systems", "ways", "interference"):
            yield [row for row in table["data"] if row.get("what", "within") in ("within", "zero-shot")]


def _means_of_all_targets(made_measurements):
    """Return means over all languages except the source, including languages without a trained model."""
    result = []
    for where in scored_sets(made_measurements):
        values = values_of(where)
        codes = [language for language in (*where.targets, *where.unseen) if language in values]
        wide = values[codes].mean(axis=1, skipna=False).rename("score").reset_index()
        for key, own_group in wide.groupby(["encoder", "way", "inputs", "inputs.translator"]):
            facts = where.rows[(where.rows["encoder"] == key[0]) & (where.rows["way"] == key[1])].iloc[0]
            numbers = {
                "mean": own_group["score"].mean(),
                "std": own_group["score"].std(),
                "units": own_group["score"].count(),
            }
            names = {"method": facts["method"], "encoder.label": facts["encoder.label"], "inputs": key[2]}
            result.append({**where.about, **names, **numbers, "column": MEAN_BEFORE})
    return pd.DataFrame(result)


def test_interference_is_one_line_an_encoder(study):
    (table,) = SUMMARIES["interference"].show(study("interference"))
    assert [cell.text for cell in table.header] == [
        "encoder",
        "upos qaa within",
        "upos qad within",
        "upos qaa → qad",
        "seeds",
    ]
    encoders_before = {row["encoder"] for rows in _score_rows(golden("interference")) for row in rows}
    assert {row[0].text for row in table.rows} == encoders_before
    assert SUMMARIES["interference"].show(study("transfer")) == []


def test_bitext_sizes_are_those_of_before(study):
    (table,) = BITEXT_SIZE.show(study("adjustment"))
    state_before = {}
    for row in golden("adjustment")["tables"]["bitext-size"]["data"]:
        text = f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}"
        state_before.setdefault((row["corpus"], language_name(row["language"])), {})[
            str(row["translations"] or "original")
        ] = text
    heads = [cell.text for cell in table.header]
    comparison = 0
    for cells in table.rows:
        row = dict(zip(heads, (cell.text for cell in cells), strict=True))
        old_value = state_before[f"{row['corpus']} {row['inputs']}".strip(), row["language"]]
        for size in ("100", "300"):
            comparison += 1
            assert row[size] == old_value["original" if row["adjusted"] == "original encoder" else size]
    assert comparison == 2 * len(table.rows) == 36


def test_models_scored_only_on_languages_that_none_was_made_for_are_shown_there() -> None:
    rows = [score(0.5, language=language, about=TRANSLATES) for language in ("qab", "qae")]  # Made for qad.
    (table,) = [field for field in score_tables(made_up(scores=rows)) if field.name != "significance"]
    assert set(table.data["column"]) == {"qab", "qae", "mean of targets"}
    assert opening_of(made_up(scores=rows)).results


def test_scores_of_no_model_on_its_own_languages_are_no_table() -> None:
    rows = [
        score(0.5, language="qab", about={**BILINGUAL, "encoder.pairs": "qaa-qab", "encoder.adjusted": "x"})
    ]
    assert score_tables(made_up(scores=rows)) == []
