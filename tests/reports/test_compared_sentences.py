"""A sentence of a path as all seeds predict it: the same in each, with gold labels and differences."""

import math

import numpy as np
import pandas as pd
import pytest
from page_tree import tree_of

from isogloss.reports.measurements import read_measurements
from isogloss.reports.report import write_report
from made_up_runs import keep_sentences, small_study

TAGS = ("NOUN", "VERB", "X")


def paths_of(tmp_path):
    """Return the runs of the paths to Dunar by seed."""
    rows = read_measurements(tmp_path).frame("interpolation")
    return rows[rows["target"] == "qad"].drop_duplicates("seed").set_index("seed")["run"].to_dict()


def draw_sentences(index, alphas, seeds):
    """Return for each seed the sentences that it stored, drawn at random. Some seeds lack some."""
    drawn_generator = np.random.default_rng(index)
    stored_value = {seed: [] for seed in seeds}
    for sentence in range(4):
        units = [f"w{sentence}{place}" for place in range(drawn_generator.integers(1, 5))]
        gold = [str(drawn_generator.choice(TAGS)) for _ in units]
        for seed in seeds:
            if drawn_generator.random() < 0.6:
                kept_alphas = [alpha for alpha in alphas if drawn_generator.random() < 0.8]
                predicted_alphas = [
                    [alpha, [str(drawn_generator.choice(TAGS)) for _ in units]] for alpha in kept_alphas
                ]
                stored_value[seed].append({"units": units, "gold": gold, "predicted": predicted_alphas})
    return stored_value


@pytest.mark.slow
@pytest.mark.parametrize("index", range(4))
def test_each_table_has_the_stored_labels_of_each_seed(index, tmp_path):
    small_study(tmp_path)
    paths = paths_of(tmp_path)
    rows = read_measurements(tmp_path).frame("interpolation")
    alphas = sorted(rows["alpha"].unique())
    stored_sentences = draw_sentences(index, alphas, list(paths))
    for seed, sentences in stored_sentences.items():
        keep_sentences(tmp_path, paths[seed], sentences)
    html = write_report(tmp_path).html.read_text(encoding="utf-8")
    boxes = list(tree_of(html).all("div", "compared"))
    shared = pd.Series(
        [
            tuple(s["units"])
            for seed_stored_sentence in stored_sentences.values()
            for s in seed_stored_sentence
        ]
    ).value_counts()
    assert len(boxes) == (1 if (shared > 1).any() else 0)
    for box in boxes:
        check_box(box, stored_sentences, alphas, shared.max())


def check_box(box, stored_sentences, alphas, most_shared):
    """Assert that at each α one table has the labels of the seeds that stored the sentence."""
    tables = list(box.all("table"))
    heads = [head.text for head in next(tables[0].all("thead")).all("th")]
    seeds = [int(head.removeprefix("seed ")) for head in heads[2:]]
    assert len(seeds) == most_shared, "the sentence is one that most seeds stored"
    for alpha in alphas:
        (table,) = [
            table
            for table in tables
            if table.number("data-first") - 1e-6 <= alpha <= table.number("data-last") + 1e-6
        ]
        lines = list(next(table.all("tbody")).all("tr"))
        units = [next(line.all("th")).text.removesuffix(" ≠ (seeds differ)") for line in lines]
        for column, seed in enumerate(seeds):
            (sentence,) = [sentence for sentence in stored_sentences[seed] if sentence["units"] == units]
            predictions = next(
                (target for position, target in sentence["predicted"] if math.isclose(position, alpha)), None
            )
            for place, line in enumerate(lines):
                cells = [cell.text for cell in line.all("td")]
                assert cells[0] == sentence["gold"][place]
                if predictions is None:
                    assert cells[1 + column] == "–"
                else:
                    mark = "" if predictions[place] == cells[0] else " ✗"
                    assert cells[1 + column] == predictions[place] + mark
        for line in lines:
            labels = {cell.text for cell in list(line.all("td"))[1:]} - {"–"}
            assert ("≠" in next(line.all("th")).text) == (len(labels) > 1)
