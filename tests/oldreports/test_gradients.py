"""Gradient conflict in reports: numbers over draws, claims built for each verdict, and what is drawn."""

from itertools import combinations_with_replacement

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_runs import measure, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.gradient_claims import gradient_claims
from isogloss.oldreports.gradient_figures import smoothed
from isogloss.oldreports.gradients import Conflict, conflict_tables, over_draws, own_cosine
from isogloss.oldreports.typed_rows import typed

CODES = ("en", "fr", "ru")
OVERLAP = {("en", "fr"): 0.4, ("en", "ru"): 0.1, ("fr", "ru"): 0.2}
OWN = 0.64
SHAKE = (-0.01, 0.01, 0.0)


def rows(*, close=0.9, distant=0.5, fall=0.05, attention=0.05, own=OWN, draws=3, **about):
    """Give rows in which corrected cosines fall with distance, by layer, and from attention to the rest."""

    def row(pair, draw, layer, module, share):
        same = pair[0] == pair[1]
        cosine = own if same else own * (share + SHAKE[draw % 3] * (1 + draw / 9))
        return {
            **{
                "encoder": "mini",
                "first": pair[0],
                "second": pair[1],
                "layer": layer,
                "module": module,
                **about,
            },
            **{"draw": draw, "batch": 64, "cosine": cosine, "within": None if same else own},
            **{"overlap": OVERLAP.get(pair), "norm_first": 1.0, "norm_second": 2.0},
        }

    for draw in range(draws):
        for pair in combinations_with_replacement(CODES, 2):
            share = close if pair == ("en", "fr") else distant
            yield row(pair, draw, None, "all", share)
            yield row(pair, draw, None, "embeddings", share)
            for kind, more in (("attention", attention), ("feed-forward", -attention)):
                yield row(pair, draw, None, kind, share + more)
            for layer in range(1, 5):
                yield row(pair, draw, layer, "all", share - fall * layer + 0.003 * draw * (layer % 2))
                for kind, more in (("attention", attention), ("feed-forward", -attention)):
                    yield row(pair, draw, layer, kind, share - fall * layer + more)


def conflicts(**how):
    return [typed(Conflict, row) for row in rows(**how)]


# Numbers


def test_numbers_over_draws_are_means_and_the_corrected_cosine_is_what_was_put_in():
    over = {
        (one.first, one.second): one
        for one in over_draws(conflicts())
        if (one.layer, one.module) == (None, "all")
    }
    assert over["en", "en"].cosine == pytest.approx(OWN)
    assert over["en", "en"].within is over["en", "en"].corrected is None
    assert over["en", "fr"].within == pytest.approx(OWN)
    assert over["en", "fr"].corrected == pytest.approx(0.9, abs=0.01)
    assert (over["en", "ru"].draws, over["en", "ru"].batch) == (3, 64)


@given(st.lists(st.floats(0.1, 1), min_size=1), st.lists(st.floats(0.1, 1), min_size=1))
def test_two_languages_own_cosine_lies_between_theirs(one, other):
    means = [sum(side) / len(side) for side in (one, other)]
    assert min(means) - 1e-9 <= own_cosine(one, other) <= max(means) + 1e-9


@pytest.mark.parametrize("sides", [([], [0.5]), ([0.5], [-0.2]), ([0.0], [0.5]), ([0.04], [0.04])])
def test_nothing_is_corrected_by_noise(sides):
    assert own_cosine(*sides) is None


@given(st.lists(st.floats(-1, 1), max_size=200))
def test_smoothing_keeps_the_number_of_points_and_their_range(values):
    found = smoothed(values)
    assert len(found) == len(values)
    assert all(min(values) - 1e-9 <= value <= max(values) + 1e-9 for value in found)
    assert smoothed([0.5] * len(values)) == pytest.approx([0.5] * len(values))


# Claims


def verdicts(found):
    return {claim.letter: claim.verdict for claim in gradient_claims(found)}


def test_languages_that_conflict_with_distance_and_by_layer_support_both_claims():
    assert verdicts(conflicts()) == {"l": "supported", "m": "supported"}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"close": 1.2, "distant": 1.1}, {"l": "refuted", "m": "supported"}),
        ({"close": 0.5, "distant": 0.8}, {"l": "refuted", "m": "supported"}),
        ({"fall": -0.05}, {"l": "supported", "m": "refuted"}),
        ({"attention": -0.05}, {"l": "supported", "m": "refuted"}),
        ({"draws": 1}, {"l": "not tested", "m": "not tested"}),
        ({"own": 0.01}, {"l": "not tested", "m": "not tested"}),
    ],
)
def test_each_half_of_a_claim_can_refute_it_and_noise_tests_nothing(how, expected):
    found = verdicts(conflicts(**how))
    if how == {"own": 0.01}:
        assert found["m"] == "not tested"
        assert found["l"] != "supported"
    else:
        assert found == expected


def test_claims_say_their_numbers():
    conflict, layers = gradient_claims(conflicts())
    assert "cosine 0.41 between, 0.64 within, p = 0.0" in conflict.number
    assert "corrected 0.90 in the 1 closer, 0.50 in the 1 more distant of 3 pairs" in conflict.number
    assert "of layer and cosine" in layers.number
    assert "in attention" in layers.number


def test_one_pair_of_languages_says_nothing_about_distance():
    pair = [row for row in conflicts() if {row.first, row.second} <= {"en", "fr"}]
    claim, _ = gradient_claims(pair)
    assert claim.verdict == "not tested"
    assert "no two pairs of languages" in claim.number


def test_models_of_a_task_are_not_what_is_claimed_about():
    assert gradient_claims(conflicts(task="upos", method="bilingual", seed=0)) == ()
    assert gradient_claims([]) == ()


# What is shown


def steps():
    for step in range(10, 501, 10):
        for pair, level in ((("en", "en"), 0.6), (("en", "fr"), 0.2), (("fr", "fr"), 0.5)):
            where = {"first": pair[0], "second": pair[1], "layer": None, "module": "all"}
            yield {"step": step, **where, "batch": 64, "cosine": level - step / 5000, "within": None}


def test_tables_have_the_control_on_the_diagonal_and_each_part_its_row():
    languages, parts = conflict_tables(conflicts())
    texts = [[cell.text for cell in row] for row in languages.rows]
    assert [row[0] for row in texts] == ["English (en)", "French (fr)", "Russian (ru)"]
    assert texts[0][1].startswith("0.64")
    assert texts[0][2] == texts[1][1]
    assert texts[0][2].endswith("(0.90)")
    assert languages.rows[0][1].mark == "source"
    assert ("4", "attention") in {(row[0].text, row[1].text) for row in parts.rows}


def test_a_report_shows_curves_layers_and_languages_and_tests_the_claims(tmp_path):
    loss = {"step": 500, "loss": 2.0, "rate": 1e-3}
    training = {"kind": "pretrain", "title": "bert on en+fr", "rows": [loss, *steps()]}
    tuned = {"kind": "fine-tune", "title": "bilingual, seed 0", "rows": [loss, *steps()]}
    about = {"corpus": "ud", "task": "upos", "method": "bilingual", "source": "en", "target": "fr", "seed": 0}
    names = [
        write_run(tmp_path, "pre", training),
        write_run(tmp_path, "tuned", tuned),
        write_run(tmp_path, "text", measure("gradient-conflict", rows())),
        write_run(tmp_path, "task", measure("task-gradient-conflict", rows(**about))),
    ]
    write_plan(tmp_path, names)
    report = write_report(tmp_path)
    assert report.warnings == ()
    drawn = {path.stem for path in report.figures}
    assert {
        "gradient-conflict-pretraining",
        "gradient-conflict-fine-tuning",
        "gradient-conflict-languages-mini",
        "gradient-conflict-layers-mini",
    } <= drawn
    assert sum(name.startswith("gradient-conflict-layers") for name in drawn) == 2
    assert {claim.letter: claim.verdict for claim in report.claims if claim.letter in "lm"} == {
        "l": "supported",
        "m": "supported",
    }
    page = report.html.read_text()
    assert "Gradient conflict" in page
    assert "claimed of negative interference" in page
    assert not [path for path in report.tables if path.stem.startswith("other")]


def test_a_broken_row_is_named_and_left_out(tmp_path):
    broken = [{**row, "layer": "last"} if number == 0 else row for number, row in enumerate(rows())]
    names = [write_run(tmp_path, "text", measure("gradient-conflict", broken))]
    write_plan(tmp_path, names)
    assert any("'layer' is 'last', not a whole number" in note for note in write_report(tmp_path).warnings)
