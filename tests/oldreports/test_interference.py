"""Encoders of one language, of several and with modules side by side: the table, the claims, the figure."""

import re

import pytest
from study_runs import JOINT, META, MLM, build_study, paper
from synthetic_runs import measure, write_plan, write_run
from test_gradients import rows as gradient_rows

from isogloss.oldreports import write_report
from isogloss.oldreports.findings import findings
from isogloss.oldreports.gather import gather
from isogloss.oldreports.interference import counts, interference_table
from isogloss.oldreports.interference_claims import overfits
from isogloss.oldreports.interference_figures import interference_figure, points_of
from isogloss.oldreports.pretrained_encoders import encoders_from_text, joint_encoder


def found_in(out, encoders=None, **how):
    build_study(out, encoders or paper(), **how)
    found, notes = findings(gather(out))
    assert notes == []
    return found


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    return found_in(tmp_path_factory.mktemp("study"))


def verdicts(found):
    return {claim.letter: claim.verdict for claim in found.interference_claims()}


# The table


def test_the_table_has_a_line_for_each_encoder_and_one_for_those_of_one_language(found):
    (table,) = interference_table(found.study)
    assert [row[0].text for row in table.rows] == ["monolingual", "joint", "ffn", "shared", "meta"]
    heads = ["nli qaa", "nli qad", "nli qaa→qad", "perplexity qaa", "perplexity qad"]
    assert [cell.text for cell in table.header] == [
        "encoder",
        *heads,
        "shared parameters",
        "of each language",
    ]
    assert {len(row) for row in table.rows} == {len(table.header)}


def test_a_task_without_a_test_set_is_shown_by_its_dev_set_beside_tasks_that_have_one(tmp_path):
    about = {"corpus": "wikiann", "task": "ner", "method": "source-only", "source": "qaa", "language": "qaa"}
    about |= {"split": "dev", "metric": "span_f1", "score": 0.5, "seed": 0, "examples": 9}
    rows = [{**about, "encoder": encoder} for encoder in ("joint", "ffn")]
    study = found_in(tmp_path, more=[("scores", rows)]).study
    splits = {column.task: column.split for column in study.columns}
    assert splits == {"nli": "test", "ner": "dev"}


def test_a_cell_is_the_mean_over_seeds_of_the_model_trained_for_it(found):
    (table,) = interference_table(found.study)
    for row in table.data:
        if row["what"] in ("within", "zero-shot"):
            trained_by = {"qaa": "source-only", "qad": "target-only"}
            method = trained_by[row["language"]] if row["what"] == "within" else "source-only"
            own = [
                score.score
                for score in found.scores
                if (score.encoder, score.method, score.language) == (row["encoder"], method, row["language"])
            ]
            assert row["mean"] == pytest.approx(sum(own) / 3)
            assert row["seeds"] == len(own) == 3


def test_marks_are_of_differences_from_the_joint_encoder_wherever_it_stands_in_the_recipe(found):
    texts = {row[0].text: [cell.text for cell in row[1:4]] for row in interference_table(found.study)[0].rows}
    assert not any("†" in text for text in (*texts["joint"], *texts["shared"]))
    assert all("†" in text for text in (*texts["ffn"], *texts["meta"], *texts["monolingual"][:2]))
    assert texts["monolingual"][2] == "–"
    assert found.marks.against["†"] == "the same method on joint"


def test_perplexities_are_tested_against_the_joint_one_where_the_vocabulary_is_the_same(found):
    rows = {row[0].text: row[4].text for row in interference_table(found.study)[0].rows}
    assert rows["joint"] == "21.00 ± 1.00"
    assert rows["meta"] == "13.00 ± 1.00 †"
    assert rows["monolingual"] == "10.00 ± 1.00"
    assert not any(label.startswith("mono") for label, _ in found.study.p_perplexity)


def test_parameters_are_those_of_one_seed(found):
    texts = {row[0].text: [cell.text for cell in row[-2:]] for row in interference_table(found.study)[0].rows}
    assert texts["joint"] == ["1,000", "–"]
    assert texts["ffn"] == ["1,000", "50"]
    (ffn,) = [one for one in found.study.encoders() if one.label == "ffn"]
    assert counts(ffn) == (1000, {"qaa": 50, "qad": 50})


def test_scores_without_predictions_are_shown_without_marks(tmp_path):
    found = found_in(tmp_path, keep=False)
    (table,) = interference_table(found.study)
    shown = [cell.text for row in table.rows for cell in row[1:4]]
    assert not any("†" in text for text in shown)
    assert set(verdicts(found).values()) == {"not tested"}


@pytest.mark.parametrize("left", [("joint",), ("mono-a", "mono-d"), ()])
def test_one_kind_of_encoder_alone_is_no_study(left, tmp_path):
    found = found_in(tmp_path, {label: paper()[label] for label in (*left, *(() if left else ("ffn",)))})
    assert found.study is None
    assert interference_table(None) == interference_figure(None) == []
    assert found.interference_claims() == ()


def test_low_resource_copies_stand_in_lines_of_their_own(tmp_path):
    cut = {"lines": [["qad", 100]], "rise": 1.3}
    encoders = paper() | {"mono-d little": (("qad",), "", MLM, -0.2, 0.0, cut)}
    found = found_in(tmp_path, encoders)
    names = [line.name for line in found.study.lines]
    assert names == ["monolingual", "joint", "ffn", "shared", "meta", "mono-d little"]
    (little,) = [one for one in found.study.encoders() if one.cut]
    assert overfits(little)
    (claim, *_) = found.interference_claims()
    assert claim.verdict == "supported"
    assert "mono-d little left out: learned by heart" in claim.number


# Claims


def test_what_the_paper_found_supports_its_claims(found):
    assert verdicts(found) == {"k": "supported", "o": "supported", "p": "supported"}


@pytest.mark.parametrize(
    ("how", "refuted"),
    [
        ({"mono": 0.0}, "k"),
        ({"mono": -0.15}, "k"),
        ({"own_within": -0.1}, "o"),
        ({"own_zero": 0.1}, "o"),
        ({"meta_within": 0.0}, "p"),
        ({"meta_zero": -0.1}, "p"),
    ],
)
def test_each_half_of_a_claim_can_refute_it(how, refuted, tmp_path):
    expected = {"k": "supported", "o": "supported", "p": "supported", refuted: "refuted"}
    assert verdicts(found_in(tmp_path, paper(**how))) == expected


def test_what_is_not_there_is_not_tested(tmp_path):
    found = found_in(tmp_path, {label: paper()[label] for label in ("joint", "shared")})
    assert verdicts(found) == {"k": "not tested", "o": "not tested", "p": "not tested"}


def test_letters_of_all_claims_in_a_report_differ_and_stand_in_order(tmp_path):
    more = [("gradient-conflict", list(gradient_rows()))]
    build_study(tmp_path, paper(), more=more)
    report = write_report(tmp_path)
    letters = [claim.letter for claim in report.claims]
    assert letters == sorted(set(letters))
    assert letters[-5:] == list("klmop")


def test_claims_say_their_numbers(found):
    interference, own, meta = found.interference_claims()
    assert re.search(r"mono-a nli qaa \+1\d\.\d\*; mono-d nli qad", interference.number)
    assert re.search(r"^within languages: ffn .*; zero-shot: ffn nli qad −\d", own.number)
    assert "meta nli qad +" in meta.number


# The figure and the page


def test_points_are_differences_from_the_joint_encoder(found):
    points = {one.name: one for one in points_of(found.study)}
    assert points.keys() == {"monolingual", "ffn", "shared", "meta"}
    assert points["shared"].within.mean == points["shared"].zero_shot.mean == 0
    assert points["ffn"].within.mean > 5
    assert points["ffn"].zero_shot.mean < -5
    assert points["monolingual"].zero_shot is None


def test_a_report_has_the_section_with_table_and_figure(tmp_path):
    build_study(tmp_path, paper())
    report = write_report(tmp_path)
    assert report.warnings == ()
    assert "interference" in {path.stem for path in report.figures}
    page = report.html.read_text()
    assert "What languages lose by sharing an encoder" in page
    assert "About interference: of 3 claims" in page


# Which encoders there are


def test_encoders_are_told_from_what_made_them_not_from_labels(found, tmp_path):
    build_study(tmp_path, {"x": (JOINT, "adapter", META, 0.0, 0.0, {}), "y": (JOINT, "", MLM, 0.0, 0.0, {})})
    made = encoders_from_text(gather(tmp_path).finished("pretrain"))
    assert joint_encoder(made) == "y"
    assert (made["x"].modules, made["x"].method, made["x"].has_own) == ("adapter", META, True)
    assert [seed for seed, _ in made["x"].runs] == [0, 1, 2]


def test_a_content_that_no_run_has_is_left_out(tmp_path):
    names = [write_run(tmp_path, "odd", {"kind": "pretrain", "title": "encoder odd", "rows": []})]
    names.append(write_run(tmp_path, "s", measure("scores", [])))
    write_plan(tmp_path, names)
    assert encoders_from_text(gather(tmp_path).finished("pretrain")) == {}
    assert findings(gather(tmp_path))[0].study is None
