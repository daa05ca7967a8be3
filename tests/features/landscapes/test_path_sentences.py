"""Sentences on a page: which are shown, where their predictions change, and that data is never markup."""

import pytest

from isogloss.features.landscapes.point_records import path_sentence
from isogloss.reports.measurements import read_measurements
from isogloss.reports.opening import path_figure
from isogloss.reports.report import write_report
from made_up_runs import changing_sentence, keep_sentences, small_study

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def runs_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sentences")
    names = small_study(folder)
    keep_sentences(folder, names[4], [changing_sentence("tuki", EVIL)] * 5)
    keep_sentences(folder, names[9], [changing_sentence("of", "another", "seed")])
    return folder


def test_sentences_of_the_first_seed_are_parted_where_predictions_change(runs_folder):
    sentences = path_figure(read_measurements(runs_folder)).sentences
    assert [sentence.title for sentence in sentences] == ["Dunar, seed 0"] * 3
    parts = sentences[0].stretches
    assert [(part.first, part.last, part.alphas) for part in parts] == [(0, 0, "0"), (0.5, 1, "0.5 to 1")]
    assert [tuple(part.predicted) for part in parts] == [("NOUN", "VERB"), ("NOUN", "NOUN")]


@pytest.mark.slow
def test_words_are_text_on_the_page_and_wrong_labels_are_marked(runs_folder):
    html = write_report(runs_folder).html.read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and EVIL not in html
    assert html.count('<span class="label wrong">VERB<span class="unseen"> (wrong)</span></span>') == 4, (
        "three of the first seed, one of another"
    )
    assert html.count('<span class="gold"><span class="unseen">gold: </span>NOUN</span>') == 4, (
        "three of the first seed, one of another"
    )
    assert html.count('<ol data-first="0.5" data-last="1" class="between">') == 4, (
        "three of the first seed, one of another"
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_study_without_stored_sentences_shows_none(tmp_path):
    small_study(tmp_path, seeds=1)
    assert path_figure(read_measurements(tmp_path)).sentences == []
    assert (
        "data-first"
        not in write_report(tmp_path)
        .html.read_text(encoding="utf-8")
        .partition("<body>")[2]
        .partition("<script>")[0]
    )


@pytest.mark.parametrize(
    "answer",
    [
        *("null", "{", "[]", '{"units": ["a"], "gold": ["N"], "predicted": []}'),
        '{"units": ["a"], "gold": ["N", "N"], "predicted": [[0, ["N"]]]}',
        '{"units": ["a"], "gold": ["N"], "predicted": [[0, ["N", "V"]]]}',
    ],
)
def test_any_other_prediction_is_no_sentence(answer):
    assert path_sentence(answer) is None
    assert path_sentence('{"units": ["a"], "gold": ["N"], "predicted": [[0, ["N"]]]}').units == ("a",)
