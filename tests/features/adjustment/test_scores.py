"""The table of scores: its systems, averages, baselines and marks."""

import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hand_made import golden
from isogloss.core.languages import language_name
from isogloss.core.records import Record
from isogloss.data.result_files import StoredPredictions
from isogloss.features.adjustment.report import BITEXT_SIZE
from isogloss.metrics.significance import holm
from isogloss.reports import measurements
from isogloss.reports.comparison import unit_of
from isogloss.reports.measurements import Measurements, PlannedRun
from isogloss.reports.opening import write_opening
from isogloss.reports.score_tables import score_tables
from isogloss.reports.scores import GAP, key_of, reference_of, scored_sets, values_of
from made_up_rows import BILINGUAL, TRANSLATES, read_by, score
from made_up_rows import make_measurements as made_up
from report_entries import find_entry

EXAMPLES = 60

PLAIN = {
    **{"split": "test", "metric": "accuracy", "main": True, "baseline": 0.25, "examples": EXAMPLES},
    **{"corpus": "xnli", "treebank": "", "inputs": "", "inputs.translator": "", "task": "nli"},
    **{"source": "en", "target": "", "seed": 0, "method": "source-only", "way": "", "translator": ""},
    **{
        "auxiliary": "",
        "auxiliary.method": "",
        "after.method": "",
        "encoder": "mini",
        "encoder.run": "",
        "encoder.seed": pd.NA,
    },
    **{"encoder.kind": "pretrained", "encoder.name": "", "encoder.languages": "", "encoder.method": ""},
    **{"encoder.modules": "", "encoder.adjusted": "", "encoder.pairs": "", "encoder.size": pd.NA},
    **{"encoder.original": "", "encoder.depth": pd.NA, "optimization.learning_rate": 0.1, "gain": 0.0},
}

JOINT = {
    "encoder": "joint",
    "encoder.kind": "pretrain",
    "encoder.languages": "en+de+fr",
    "encoder.method": "masked-language-modelling",
}


def models(languages="en de fr", seeds=3, **facts):
    """Return the scores of one system with each seed on each language, drawn independently."""
    system = {**PLAIN, **facts}
    system = {**system, **read_by(system), **facts}
    system["way"] = system["way"] or f"way of {system['method']}"
    system["encoder.name"] = system["encoder.name"] or system["encoder"]
    system["encoder.original"] = system["encoder.original"] or system["encoder"]
    rows = []
    for seed in range(seeds):
        pretraining_seed = seed if system["encoder.kind"] == "pretrain" else pd.NA
        parts = ("encoder", "way", "source", "target", "corpus", "task")
        model = "-".join([*(system[part] for part in parts), str(seed)])
        fields = {
            **system,
            "seed": seed,
            "encoder.seed": pretraining_seed,
            "encoder.run": system["encoder"] + str(seed),
        }
        run = f"{model}-{system['inputs']}-{system['inputs.translator']}-{system['split']}-{system['metric']}"
        rows += [
            {**fields, "model": model, "run": run, "language": language} for language in languages.split()
        ]
    return rows


def make_measurements(*systems, kept=True, labels=None):
    """Return measurements of these scores, and of what was right of each example."""
    rows = [dict(row) for system in systems for row in system]
    predictions = {}
    for row in rows:
        rng = np.random.default_rng(zlib.crc32(f"{row['run']} {row['language']}".encode()))
        right = (rng.random(EXAMPLES) < 0.5 + row.pop("gain")).astype(float)
        row["score"] = float(right.mean())
        ids = tuple(map(str, range(EXAMPLES)))
        stored_predictions = StoredPredictions(ids=ids, measures={row["metric"]: (right, np.ones(EXAMPLES))})
        predictions.setdefault(row["run"], {})[row["language"]] = stored_predictions
    frame = pd.DataFrame(rows).astype(dict.fromkeys(["seed", "encoder.seed", "encoder.size"], "Int64"))
    return Measurements(
        runs=[], labels=labels or {}, _frames={"scores": frame}, _predictions=predictions if kept else {}
    )


def tables(m):
    return {table.name: table for table in score_tables(m)}


def data(m):
    return pd.concat([table.data for name, table in tables(m).items() if name != "significance"])


def texts(table):
    return [[cell.text for cell in row] for row in (table.header, *table.rows)]


def numbers(frame):
    """Return measured and tested numbers, without names and without columns that depend on the family."""
    name_columns = ["name", "against", "encoder.label", "system", "p_holm", "p_examples_holm", "mark"]
    return frame.drop(columns=name_columns).reset_index(drop=True)


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
        second_measurements = Measurements(
            runs=[], _frames={"scores": frame}, _predictions=first_measurements._predictions
        )
        pairs = list(zip(score_tables(first_measurements), score_tables(second_measurements), strict=True))
        for first_table, second_table in pairs:
            words = [
                (table.name, table.title, table.caption, table.rows) for table in (first_table, second_table)
            ]
            assert words[0] == words[1]
            pd.testing.assert_frame_equal(first_table.data, second_table.data)
        assert len(pairs) == 5


@pytest.mark.slow
def test_every_number_is_that_of_its_own_models(several_systems):
    m = make_measurements(*several_systems)
    scores = m.frame("scores")
    cells = data(m)
    count = 0
    for row in cells[cells["column"].isin(["en", "de", "fr"])].to_dict("records"):
        shared_columns = [
            name for name in ("corpus", "task", "split", "metric", "encoder", "way") if name in row
        ]
        own_scores = scores[np.logical_and.reduce([scores[name] == row[name] for name in shared_columns])]
        own_scores = own_scores[own_scores["language"] == row["column"]]
        own_scores = own_scores[
            (own_scores["target"] == "")
            | (own_scores["target"] == row["column"])
            | (row["column"] == own_scores["source"])
        ]
        by_seed = own_scores.groupby("seed")["score"].mean()
        assert (row["mean"], row["std"]) == pytest.approx((by_seed.mean(), by_seed.std()))
        assert row["units"] == len(by_seed) == 3
        count += 1
    assert count == 19


def test_a_model_does_not_count_on_another_target():
    good_rows = models(method="bilingual", target="de", languages="de fr", gain=0.4)
    poor_rows = models(method="bilingual", target="fr", languages="de fr", gain=-0.4)
    means = (
        data(make_measurements(models(), good_rows, poor_rows))
        .query("method == 'bilingual'")
        .set_index("column")["mean"]
    )
    assert means["de"] > 0.8
    assert means["fr"] < 0.2


def test_on_languages_nobody_was_made_for_all_models_of_a_system_count():
    for_de = models(method="bilingual", target="de", languages="de sw", gain=0.4)
    for_fr = models(method="bilingual", target="fr", languages="fr sw", gain=-0.4)
    m = make_measurements(models("en de fr sw"), for_de, for_fr)
    own_scores = m.frame("scores").query("method == 'bilingual' and language == 'sw'")
    cell = data(m).query("method == 'bilingual' and column == 'sw'").iloc[0]
    assert cell["mean"] == pytest.approx(own_scores["score"].mean())
    assert cell["std"] == pytest.approx(own_scores.groupby("seed")["score"].mean().std())


def test_models_of_one_seed_are_averaged_on_the_source_first():
    pair = [models(method="bilingual", target=target, languages="en de fr") for target in ("de", "fr")]
    m = make_measurements(models(), *pair)
    own_scores = m.frame("scores").query("method == 'bilingual' and language == 'en'")
    cell = data(m).query("method == 'bilingual' and column == 'en'").iloc[0]
    assert cell["units"] == 3
    assert cell["std"] == pytest.approx(own_scores.groupby("seed")["score"].mean().std())


def test_mean_gap_and_unseen_are_means_of_the_columns():
    m = make_measurements(
        models("en de fr sw ur"),
        models("en de fr sw ur", method="x-mixup", target="de+fr"),
        models("en", encoder="large"),
    )
    (where,) = scored_sets(m)
    columns = values_of(where)
    assert list(columns) == ["en", "de", "fr", "sw", "ur", "mean of targets", "gap", "unseen"]
    expected = {"mean of targets": columns[["de", "fr"]], "unseen": columns[["sw", "ur"]]}
    for name, own_columns in expected.items():
        assert list(columns[name]) == pytest.approx(list(own_columns.mean(axis=1, skipna=False)), nan_ok=True)
    gap = columns["en"] - columns["mean of targets"]
    assert list(columns[GAP]) == pytest.approx(list(gap), nan_ok=True)
    assert columns["gap"].isna().sum() == 3


@pytest.mark.slow
def test_another_corpus_changes_no_table(several_systems):
    old_tables = tables(make_measurements(*several_systems))
    new_tables = tables(make_measurements(*several_systems, models(corpus="other", gain=0.3)))
    assert len(new_tables) == len(old_tables) + 1
    for name, table in old_tables.items():
        if name != "significance":
            assert new_tables[name].rows == table.rows
            pd.testing.assert_frame_equal(new_tables[name].data, table.data)


def test_another_encoder_changes_no_other_line_but_by_holm():
    systems = [models(), models(method="bilingual", target="de", languages="en de")]
    old_data, new_data = (
        data(make_measurements(*systems)),
        data(make_measurements(*systems, models(encoder="zed", gain=0.3))),
    )
    kept_data = new_data[new_data["encoder"] != "zed"]
    pd.testing.assert_frame_equal(numbers(old_data), numbers(kept_data), check_dtype=False)
    assert set(old_data["against"].dropna()) == {"source-only"}
    assert set(kept_data["against"].dropna()) == {"mini / source-only"}


@pytest.mark.slow
def test_labels_change_names_alone(several_systems):
    original_measurements = make_measurements(*several_systems)
    labels = {f"mini{seed}": "source-only" for seed in range(3)}
    renamed_measurements = Measurements(
        runs=[],
        labels=labels,
        _frames={"scores": original_measurements.frame("scores")},
        _predictions=original_measurements._predictions,
    )
    renamed_data = data(renamed_measurements)
    assert "source-only" in set(renamed_data["encoder.label"])
    keys = ["corpus", "metric", "split", "encoder", "way", "column"]
    sides = [frame.sort_values(keys) for frame in (data(original_measurements), renamed_data)]
    pd.testing.assert_frame_equal(*map(numbers, sides))


def test_holm_is_over_the_whole_table(several_systems):
    count = 0
    for name, table in tables(make_measurements(*several_systems)).items():
        tested_rows = (
            table.data[table.data["p_value"].notna()] if name != "significance" else table.data.head(0)
        )
        if len(tested_rows):
            assert list(tested_rows["p_holm"]) == pytest.approx(holm(list(tested_rows["p_value"])))
            assert list(tested_rows["p_examples_holm"]) == pytest.approx(
                holm(list(tested_rows["p_examples"]))
            )
            count += len(tested_rows)
    assert count == 5


@pytest.mark.slow
def test_a_star_needs_seeds():
    def score_table(seeds, kept=True):
        m = make_measurements(
            models(seeds=seeds), models(method="label-smoothing", seeds=seeds, gain=0.4), kept=kept
        )
        return tables(m)["scores-xnli-nli-en-test-accuracy"]

    marks = [set(score_table(seeds).data["mark"].dropna()) for seeds in (1, 5)]
    assert marks == [{"°"}, {"*"}]
    assert "One seed cannot show what other seeds would give: no * is possible." in score_table(1).notes
    assert "* significant over seeds and examples" in score_table(5).notes
    assert set(score_table(1, kept=False).data["mark"].dropna()) == {""}
    assert "No predictions were kept" in score_table(5, kept=False).notes


@pytest.mark.slow
def test_a_mark_stands_where_holm_says_so(several_systems):
    m = make_measurements(
        *several_systems, models(method="target-only", source="", target="fr", languages="fr", gain=0.45)
    )
    table = tables(m)["scores-xnli-nli-en-test-accuracy"]
    mark_counts = Counter(
        cell.text.split()[-1] for row in table.rows for cell in row if cell.text[-1:] in ("*", "°")
    )
    assert mark_counts == Counter(table.data["mark"].dropna()) - Counter({"": 99})
    assert sum(mark_counts.values()) > 1
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
    adjustment = {"encoder.kind": "pretrain", "encoder.original": "joint", "encoder.adjusted": "procrustes"}
    joint_rows, aligned_rows = models(**JOINT), models(encoder="aligned", **adjustment)
    once = [{**row, "encoder.seed": 0} for row in (*joint_rows, *aligned_rows)]
    other_rows = [{**row, "encoder.seed": 0} for row in models(**{**JOINT, "encoder": "mono"})]
    units = [
        unit_of(make_measurements(rows).frame("scores"))
        for rows in (once, [*joint_rows, *aligned_rows], [*once[: len(joint_rows)], *other_rows], joint_rows)
    ]
    assert units == ["seed", "encoder.seed", "encoder.seed", "seed"]
    cells = data(make_measurements(once)).query("encoder == 'aligned'")
    assert set(cells["units"]) == {3}
    assert cells.loc[cells["column"] == "de", "p_value"].notna().all()


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
    m = Measurements(
        runs=[PlannedRun(id=record.id, state="finished", folder=Path(), record=record) for record in runs]
    )
    assert [measurements.tested_inputs(record.run, m._combined_treebanks)[TREEBANK] for record in runs] == [
        "",
        "",
        "PUD",
        "PUD",
    ]
    assert [measurements.tested_inputs(record.run, frozenset())[TREEBANK] for record in runs] == [
        "",
        "GSD",
        "PUD",
        "PUD",
    ]


def test_a_model_without_source_stands_in_the_table_of_every_source():
    target_rows = models(method="target-only", source="", target="de", languages="de")
    all_tables = tables(make_measurements(models(), models(source="fr"), target_rows))
    assert [name for name in all_tables if "nli-en" in name or "nli-fr" in name] == list(all_tables)[:2]
    for name in list(all_tables)[:2]:
        assert "target-only" in set(all_tables[name].data["method"])
    own_tables = tables(make_measurements(target_rows))
    assert list(own_tables) == ["scores-xnli-nli-test-accuracy"]


def test_inputs_in_translation_stand_together_and_mixed_ones_apart():
    m = make_measurements(
        models(),
        models(inputs="translated"),
        models(method="x-mixup", inputs="paired", target="de"),
        models(inputs="mixed"),
        models(inputs="mixed-question"),
    )
    tables_by_name = tables(m)
    inputs = {
        name: set(table.data["inputs"]) for name, table in tables_by_name.items() if name != "significance"
    }
    assert list(inputs.values()) == [{"", "translated", "paired"}, {"mixed"}, {"mixed-question"}]


def test_only_the_tasks_own_measure_on_the_best_split_lies_open(several_systems):
    folding_by_name = {
        name: table.folded for name, table in tables(make_measurements(*several_systems)).items()
    }
    assert [name for name, is_folded in folding_by_name.items() if not is_folded] == [
        "scores-pawsx-paraphrase-en-test-accuracy",
        "scores-xnli-nli-en-test-accuracy",
    ]
    assert len(folding_by_name) == 5


def test_all_other_measures_of_a_test_set_are_the_columns_of_one_folded_table():
    facts = {"main": False, "baseline": pd.NA}
    systems = (
        {"method": "source-only", "gain": 0.0},
        {"method": "label-smoothing", "gain": 0.4},
    )
    system_rows = [models(**system) for system in systems]
    rows_by_measure = {
        measure: [models(metric=measure, **system, **facts) for system in systems]
        for measure in ("macro_f1", "mcc")
    }
    tables_by_name = tables(
        make_measurements(*system_rows, *rows_by_measure["macro_f1"], *rows_by_measure["mcc"])
    )
    assert [(name, tables_by_name[name].folded) for name in tables_by_name] == [
        ("scores-xnli-nli-en-test-accuracy", False),
        ("measures-xnli-nli-en-test", True),
        ("significance", True),
    ]
    table = tables_by_name["measures-xnli-nli-en-test"]
    assert [cell.text for cell in table.header] == ["language", "method", "macro_f1", "mcc"]
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[1] for row in rows] == ["source-only", "label-smoothing"] * 5
    bold = [
        (number, place)
        for number, row in enumerate(table.rows)
        for place, cell in enumerate(row)
        if cell.mark == "best"
    ]
    assert bold == [(number, place) for number in (1, 3, 5, 7) for place in (2, 3)]
    for place, measure in ((2, "macro_f1"), (3, "mcc")):
        own_table = tables(make_measurements(*rows_by_measure[measure]))[
            f"scores-xnli-nli-en-test-{measure.replace('_', '-')}"
        ]
        of_method = {row[0].text: [cell.text for cell in row[1:]] for row in own_table.rows}
        by_language = zip(*(of_method[name] for name in ("source-only", "label-smoothing")), strict=True)
        assert [row[place] for row in rows] == [text for column in by_language for text in column]
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
    (system,) = [
        candidate for candidate in systems if all(candidate[name] == value for name, value in facts.items())
    ]
    baseline = reference_of(system, systems)
    return baseline and (baseline["encoder"], baseline["way"], baseline["inputs"])


def test_what_reads_translations_is_held_against_translate_train_by_the_same_translator():
    translation = {"translator": "seq2seq", "target": "de"}
    read = '{"translator": "seq2seq", "translator.model": "back"}'
    systems = systems_of(
        models(),
        models(method="translate-train", way="files", target="de"),
        models(method="translate-train", way="made", **translation, **{"translator.model": "there"}),
        models(method="translate-train", way="slow", **translation, **{"optimization.learning_rate": 0.2}),
        models(method="x-mixup", way="mix", target="de"),
        models(method="x-mixup", way="mix made", **translation, **{"optimization.learning_rate": 0.2}),
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
    translation = {"translator": "seq2seq", "target": "de"}
    taught_facts = {**translation, "read.taught": "yes"}
    faster = {"optimization.learning_rate": 0.2}
    systems = systems_of(
        models(),
        models(method="translate-train", way="carried", **translation),
        models(method="translate-train", way="taught", **taught_facts),
        models(method="translate-train", way="taught faster", **taught_facts, **faster),
        models(method="x-mixup", way="mix", **taught_facts),
        models(method="x-mixup", way="mix faster", **taught_facts, **faster),
        models(method="consistency", way="consistent", **translation),
        models(method="consistency", way="slow", **translation, **{"optimization.learning_rate": 0.01}),
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


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("ids", ["ab", "ba"])
def test_a_baseline_differs_from_a_system_in_the_method_alone(ids, swapped):
    """Neither the order of the recipe nor the order of ids, which are hashes, chooses it."""
    plain_name, lora_name = (f"{name} of source-only" for name in ids)
    baselines = [models(way=plain_name), models(way=lora_name, **LORA)]
    baselines = baselines[::-1] if swapped else baselines
    systems = systems_of(
        *baselines,
        models(method="bilingual", target="de", way="full"),
        models(method="bilingual", target="de", way="adapted", **LORA),
        models(method="bilingual", target="de", way="larger", **{**LORA, "peft.rank": 16.0}),
    )
    assert reference(systems, way="full") == ("mini", plain_name, "")
    assert reference(systems, way="adapted") == ("mini", lora_name, "")
    assert reference(systems, way="larger") == ("mini", "full", "")
    assert reference(systems, way=lora_name) == ("mini", plain_name, "")
    assert reference(systems, way=plain_name) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_sentence_tests_and_table_have_the_same_baseline(swapped):
    baselines = [models(way="a", gain=0.1), models(way="b", gain=-0.3, **LORA)]
    m = make_measurements(
        *(baselines[::-1] if swapped else baselines),
        models(method="bilingual", target="de", way="c", gain=0.2),
        models(method="bilingual", target="de", way="d", gain=0.4, **LORA),
    )
    cells = data(m)
    against = dict(cells.dropna(subset=["against"])[["name", "against"]].drop_duplicates().to_numpy())
    lora_name = "source-only (peft=lora, rank=8)"
    assert against == {
        lora_name: "source-only",
        "bilingual": "source-only",
        "bilingual (peft=lora, rank=8)": lora_name,
    }
    opening = write_opening(m)
    gains = cells.set_index(["name", "column"])["mean"]
    gain = 100 * (gains["bilingual", "de"] - gains["source-only", "de"])
    assert f"With target labels (bilingual) targets gain {gain:.1f} points." in opening.results
    gain = 100 * (gains["bilingual (peft=lora, rank=8)", "de"] - gains[lora_name, "de"])
    assert (
        f"Over {lora_name}, bilingual (peft=lora, rank=8) gains {gain:.1f} points there." in opening.results
    )


def test_of_several_baselines_none_is_taken_unless_the_recipe_names_one():
    translation = {"target": "de", "translator": "seq2seq"}
    systems = (
        models(),
        models(method="translate-train", way="both", **translation, **{"method.with_source": True}),
        models(method="translate-train", way="alone", **translation, **{"method.with_source": False}),
        models(method="consistency", way="own", **translation),
    )
    (table,) = (
        table for name, table in tables(make_measurements(*systems)).items() if name != "significance"
    )
    assert "consistency is compared with none: translate-train" in table.notes
    assert "(against)" in table.notes
    own_model, named_model = (systems[number][0]["model"] for number in (3, 2))
    m = replace(make_measurements(*systems), against={own_model: named_model})
    (where,) = scored_sets(m)
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
    adjustment = {
        "encoder": "aligned",
        "encoder.original": "mini",
        "encoder.adjusted": "contrastive-alignment",
    }
    systems = systems_of(
        models(),
        models(method="x-mixup", target="de"),
        models(**adjustment),
        models(method="x-mixup", target="de", **adjustment),
        models(target="de", **continual),
        models(target="de", **continual, **adjustment),
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
    cells = data(make_measurements(*several_systems))
    assert not cells.duplicated(
        ["corpus", "task", "split", "metric", "encoder", "way", "inputs", "column"]
    ).any()
    tested_cells = cells[cells["difference"].notna()]
    assert tested_cells[["p_units", "p_examples", "p_value", "low", "high"]].notna().all().all()
    assert len(tables(make_measurements(*several_systems))["significance"].rows) == len(tested_cells)


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
    cells, count = data(study(name)), 0
    of_targets = {MEAN_BEFORE: _means_of_all_targets(study(name))}
    for table in _score_rows(golden(name)):
        for row in table:
            own_cells = of_targets[MEAN_BEFORE] if row["language"] == MEAN_BEFORE else cells
            own_cells = own_cells[own_cells["column"] == row["language"]]
            own_cells = (
                own_cells if row.get("what") == "within" else own_cells[own_cells["source"] == row["source"]]
            )
            own_cells = own_cells[
                (own_cells["task"] == row["task"])
                & (own_cells["metric"] == row.get("metric", row.get("measure")))
            ]
            corpus_names = own_cells["corpus"].where(
                own_cells["inputs"] == "", own_cells["corpus"] + " " + own_cells["inputs"]
            )
            own_cells = own_cells[((own_cells["corpus"] == row["corpus"]) | (corpus_names == row["corpus"]))]
            method = row["method"].split(" ")[0]
            own_cells = own_cells[own_cells["method"] == BEFORE.get(method, method)]
            own_cells = (
                own_cells[own_cells["encoder.label"] == row["encoder"]]
                if name == "interference"
                else own_cells
            )
            is_near = np.isclose(own_cells["mean"], row["mean"], atol=1e-8)
            is_near &= np.isclose(own_cells["std"], row["std"], atol=1e-8) & (
                own_cells["units"] == row["seeds"]
            )
            assert is_near.any(), row
            count += 1
    assert count == rows


MEAN_BEFORE = "mean of targets"


def _score_rows(golden):
    """Return only the rows of scores, without perplexities and parameters."""
    for name, table in golden["tables"].items():
        if name.split("-")[0] in ("scores", "systems", "ways", "interference"):
            yield [row for row in table["data"] if row.get("what", "within") in ("within", "zero-shot")]


def _means_of_all_targets(m):
    """Return means over all languages except the source, including languages without a trained model."""
    rows = []
    for where in scored_sets(m):
        values = values_of(where)
        codes = [language for language in (*where.targets, *where.unseen) if language in values]
        wide = values[codes].mean(axis=1, skipna=False).rename("score").reset_index()
        for key, group in wide.groupby(["encoder", "way", "inputs", "inputs.translator"]):
            facts = where.rows[(where.rows["encoder"] == key[0]) & (where.rows["way"] == key[1])].iloc[0]
            numbers = {
                "mean": group["score"].mean(),
                "std": group["score"].std(),
                "units": group["score"].count(),
            }
            names = {"method": facts["method"], "encoder.label": facts["encoder.label"], "inputs": key[2]}
            rows.append({**where.about, **names, **numbers, "column": MEAN_BEFORE})
    return pd.DataFrame(rows)


def test_interference_is_one_line_an_encoder(study):
    (table,) = find_entry("interference").show(study("interference"))
    assert [cell.text for cell in table.header] == [
        "encoder",
        "upos qaa within",
        "upos qad within",
        "upos qaa → qad",
        "seeds",
    ]
    old_encoders = {row["encoder"] for rows in _score_rows(golden("interference")) for row in rows}
    assert {row[0].text for row in table.rows} == old_encoders
    assert find_entry("interference").show(study("transfer")) == []


def test_bitext_sizes_are_those_of_before(study):
    (table,) = BITEXT_SIZE.show(study("adjustment"))
    old_means = {}
    for row in golden("adjustment")["tables"]["bitext-size"]["data"]:
        text = f"{100 * row['mean']:.1f} ± {100 * row['std']:.1f}"
        old_means.setdefault((row["corpus"], language_name(row["language"])), {})[
            str(row["translations"] or "original")
        ] = text
    heads, count = [cell.text for cell in table.header], 0
    for cells in table.rows:
        row = dict(zip(heads, (cell.text for cell in cells), strict=True))
        old_row = old_means[f"{row['corpus']} {row['inputs']}".strip(), row["language"]]
        for size in ("100", "300"):
            count += 1
            assert row[size] == old_row["original" if row["adjusted"] == "original encoder" else size]
    assert count == 2 * len(table.rows) == 36


def test_models_scored_only_on_languages_that_none_was_made_for_are_shown_there() -> None:
    rows = [score(0.5, language=language, about=TRANSLATES) for language in ("qab", "qae")]  # Made for qad.
    (table,) = [
        candidate for candidate in score_tables(made_up(scores=rows)) if candidate.name != "significance"
    ]
    assert set(table.data["column"]) == {"qab", "qae", "mean of targets"}
    assert write_opening(made_up(scores=rows)).results


def test_scores_of_no_model_on_its_own_languages_are_no_table() -> None:
    rows = [
        score(0.5, language="qab", about={**BILINGUAL, "encoder.pairs": "qaa-qab", "encoder.adjusted": "x"})
    ]
    assert score_tables(made_up(scores=rows)) == []
