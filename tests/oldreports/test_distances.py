"""Distances of words in a report: stages told from labels, changes against the original, what is missing."""

import csv

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import measure, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.distances import distance_figures, distance_tables, pooled
from isogloss.oldreports.rows import DistanceBin, Distances
from isogloss.oldreports.stages import Stage, by_stage, origin

BASE = "bert 4x128 on en+es (0a1b2c)"
MADE = ", cross-lingual-adjustment on {} ({})"


def adjusted(pair, number="abc123"):
    return BASE + MADE.format(pair, number)


def row(auc, encoder=BASE, task="", method="", seed=None, **others):
    about = {"encoder": encoder, "first": "en", "second": "es", "layer": -1, "distance": "l2"}
    about |= {"task": task, "method": method, "seed": seed} if task else {}
    numbers = {"related_mean": 1.0, "unrelated_mean": 2.0, "auc": auc, "auc_within": 1e-5}
    return {**about, **numbers, "related_pairs": 100, "unrelated_pairs": 100, **others}


def bins_of(summary, shares=((0.6, 0.1), (0.3, 0.3), (0.1, 0.6)), width=1.0):
    about = {
        name: value for name, value in summary.items() if not name.startswith(("related", "unrel", "auc"))
    }
    for number, (related, unrelated) in enumerate(shares):
        edges = {"low": number * width, "high": (number + 1) * width}
        yield {**about, **edges, "related": related, "unrelated": unrelated}


def five_stages(task="nli"):
    yield row(0.80)
    yield row(0.90, adjusted("en-es"))
    for seed in (0, 1):
        yield row(0.60 + seed / 50, BASE, task, "source-only", seed)
        yield row(0.65, adjusted("en-es"), task, "source-only", seed)
        yield row(0.85, adjusted("en-es"), task, "continual", seed)


def summaries(rows):
    return [Distances(**one) for one in rows]


def histograms(rows):
    return [DistanceBin(**part) for one in rows for part in bins_of(one)]


def test_the_stages_are_told_from_labels_in_the_papers_order():
    labels = [stage.label for stage in by_stage(summaries([*five_stages()][::-1]))]
    tuned = ["nli: fine-tuned", "nli: adjusted + fine-tuned", "nli: adjusted + continual"]
    assert labels == ["original", "adjusted", *tuned]


@pytest.mark.parametrize(
    ("label", "pairs"),
    [
        (BASE, ()),
        ("xlm-roberta-base", ()),
        ("a, b on c", ()),
        (adjusted("en-es"), ("en-es",)),
        (adjusted("en-es+en-ru"), ("en-es", "en-ru")),
        (adjusted("en-es") + MADE.format("en-vi", "ffffff"), ("en-es", "en-vi")),
    ],
)
def test_a_label_says_what_an_encoder_was_made_from(label, pairs):
    found = origin(label)
    assert (found.base, found.pairs) == (BASE if pairs else label, frozenset(pairs))


def test_an_encoder_stands_only_with_the_pair_it_was_adjusted_to():
    rows = [row(0.8, second=code) for code in ("es", "ru")]
    rows += [row(0.9, adjusted("en-es"), second=code) for code in ("es", "ru")]
    rows += [row(0.7, adjusted("ru-en", "ffffff"), second=code) for code in ("es", "ru")]
    stages = by_stage(summaries(rows))
    assert {stage.label: list(there) for stage, there in stages.items()} == {
        "original": ["en–es", "en–ru"],
        "adjusted": ["en–es", "en–ru"],
    }
    assert [one.auc for there in stages.values() for group in there.values() for one in group] == [
        *(0.8, 0.8, 0.9, 0.7)
    ]


def test_several_adjustments_to_one_pair_are_numbered():
    rows = [row(0.8), row(0.9, adjusted("en-es")), row(0.95, adjusted("en-es", "ffffff"))]
    labels = [stage.label for stage in by_stage(summaries(rows))]
    assert labels == ["original", "adjusted", "adjusted (2)"]


def test_changes_are_against_the_original():
    table, every = distance_tables(summaries(five_stages()))
    texts = {line[0].text: line[1].text for line in table.rows}
    assert texts == {
        "original": "0.800",
        "adjusted": "0.900 (+0.100)",
        "nli: fine-tuned": "0.610 ± 0.014 (−0.190)",
        "nli: adjusted + fine-tuned": "0.650 ± 0.000 (−0.150)",
        "nli: adjusted + continual": "0.850 ± 0.000 (+0.050)",
    }
    assert [one["change"] for one in table.data] == pytest.approx([0, 0.1, -0.19, -0.15, 0.05])
    assert len(every.rows) == 8


def test_without_the_original_there_is_no_change():
    table, _ = distance_tables(summaries([row(0.9, adjusted("en-es"))]))
    assert [[cell.text for cell in line] for line in table.rows] == [["adjusted", "0.900"]]
    assert table.data[0]["change"] is None


def test_missing_stages_and_languages_are_dashes():
    rows = [row(0.8), row(0.7, second="ru"), row(0.9, adjusted("en-es"))]
    table, _ = distance_tables(summaries(rows))
    assert [cell.text for cell in table.rows[1]] == ["adjusted", "0.900 (+0.100)", "–"]
    (figure,) = distance_figures(histograms(rows), summaries(rows))
    assert "original en–es AUC 0.800 and en–ru AUC 0.700; adjusted en–es AUC 0.900" in figure.alt


def test_layers_distances_and_encoders_have_figures_and_tables_of_their_own():
    rows = [row(0.8, layer=layer, distance=kind) for layer in (0, -1) for kind in ("l2", "cosine")]
    rows.append(row(0.8, "another"))
    assert len(distance_tables(summaries(rows))) == 5 + 1
    names = [figure.name for figure in distance_figures(histograms(rows), summaries(rows))]
    assert len(set(names)) == len(names) == 5


def test_more_pairs_than_fit_go_on_in_a_next_figure():
    rows = [row(0.8, second=code) for code in ("es", "ru", "vi", "te", "hi")]
    found = distance_figures(histograms(rows), summaries(rows))
    assert [len({one["second"] for one in figure.data}) for figure in found] == [4, 1]


def test_histograms_are_drawn_without_any_summary():
    (figure,) = distance_figures(histograms([row(0.8)]), [])
    assert figure.alt == "Histograms: no AUC was recorded."


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=8), st.integers(1, 40))
def test_pooling_keeps_the_whole(weights, number):
    shares = [(weight / sum(weights), weight / sum(weights)) for weight in weights]
    rows = [DistanceBin(**part) for part in bins_of(row(0.5), shares)]
    edges = np.linspace(0, len(shares), number + 1)
    assert pooled(rows, "related", edges).sum() == pytest.approx(1)
    own = pooled(rows, "related", np.arange(len(shares) + 1.0))
    assert own == pytest.approx([share for share, _ in shares])


def test_seeds_are_averaged_on_common_edges():
    wide = bins_of(row(0.5, BASE, "nli", "source-only", 0), [(1.0, 1.0)], width=4)
    narrow = bins_of(row(0.5, BASE, "nli", "source-only", 1), [(0.5, 0.5), (0.5, 0.5)])
    rows = [DistanceBin(**part) for part in (*wide, *narrow)]
    assert pooled(rows, "related", np.arange(5.0)) == pytest.approx([0.375, 0.375, 0.125, 0.125])


def test_the_original_is_neither_adjusted_nor_tuned():
    assert Stage().original
    assert not Stage(adjusted=True).original
    assert not Stage(task="nli", method="source-only").original


def test_a_report_shows_stages_and_keeps_rows_of_both_kinds_apart(tmp_path):
    found = list(five_stages())
    rows = [part for one in found for part in (one, *bins_of(one))]
    name = write_run(tmp_path, "a", measure("word-distance", rows))
    write_plan(tmp_path, [name])
    report = write_report(tmp_path)
    assert report.warnings == ()
    html = " ".join((tmp_path / "report.html").read_text(encoding="utf-8").split())
    assert "Distances of related and unrelated words" in html
    assert "0.850 ± 0.000 (+0.050)" in html
    (path,) = (tmp_path / "tables").glob("word-distance-auc*.csv")
    with path.open(encoding="utf-8", newline="") as file:
        assert [one["stage"] for one in csv.DictReader(file)][:2] == ["original", "adjusted"]


def test_old_and_new_rows_of_retrieval_are_shown_together(tmp_path):
    old = {"encoder": "e", "first": "en", "second": "de", "layer": -1, "candidates": 9}
    old |= {"accuracy_forward": 0.5, "accuracy_backward": 0.25, "chance": 1 / 9}
    new = [
        {**old, "centred": centred, "similarity": similarity, "accuracy_forward": 0.125}
        | {"task": "nli", "method": "source-only", "seed": seed}
        for centred in (True, False)
        for similarity in ("cosine", "CSLS 10")
        for seed in (0, 1)
    ]
    runs = [write_run(tmp_path, str(n), measure("retrieval", rows)) for n, rows in enumerate(([old], new))]
    write_plan(tmp_path, runs)
    assert write_report(tmp_path).warnings == ()
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "CSLS 10" in html
    assert "12.5 ± 0.0" in html
    assert "50.0" in html


def test_stages_of_several_sizes_are_named_by_size():
    def sized(size, number):
        return adjusted(f"{size} en-es", number)

    rows = [row(0.8), row(0.95, sized(10000, "ffffff")), row(0.9, sized(5000, "abc123"))]
    rows += [row(0.7, sized(10000, "ffffff"), "nli", "source-only", 0)]
    labels = [stage.label for stage in by_stage(summaries(rows))]
    assert labels == [
        "original",
        "adjusted (5,000)",
        "adjusted (10,000)",
        "nli: adjusted (10,000) + fine-tuned",
    ]
    assert origin(sized(5000, "abc123")).pairs == {"en-es"}
