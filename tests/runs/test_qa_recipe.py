"""Span QA from a recipe: trained on one corpus, measured on others. The reader reports corrections."""

import json
from pathlib import Path

import pytest

import isogloss
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from tiny import TINY, tiny

RECIPE = """
title = "Questions"

[grid]
corpus = "squad"
source = "en"
targets = ["de"]
seeds = [0]
optimization = { epochs = 1, batch_size = 4 }

[[grid.method]]
name = "source-only"

[[measure]]
name = "scores"
corpus = "mlqa"

[[measure]]
name = "scores"
corpus = "mlqa:en"
"""

PASSAGE = "Die Brücke der Stadt wurde 1887 gebaut. The bridge was built in 1887."


@pytest.fixture
def data(tmp_path):
    """SQuAD in English, with one answer next to its offset, and MLQA in both languages."""

    def put_file(name, question, answers):
        qas = [
            {"id": f"q{index}", "question": question, "answers": [{"text": text, "answer_start": start}]}
            for index, (start, text) in enumerate(answers)
        ]
        content = {"data": [{"title": "t", "paragraphs": [{"context": PASSAGE, "qas": qas}]}]}
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")

    right = [(4, "Brücke"), (15, "Stadt"), (27, "1887")]
    put_file("squad/train-v1.1.json", "When?", [*right, (42, "bridge")])
    put_file("squad/dev-v1.1.json", "When?", right)
    for context, language in (("en", "en"), ("de", "de"), ("de", "en")):
        words = {"en": "When?", "de": "Wann?"}
        put_file(f"mlqa/MLQA_V1/dev/dev-context-{context}-question-{language}.json", words[language], right)
    return tmp_path / "data"


@pytest.mark.nightly
@pytest.mark.slow
def test_questions_are_learned_on_one_corpus_and_asked_in_another(data, tmp_path):
    result = isogloss.run(tiny(tmp_path, RECIPE), out=tmp_path / "runs", data=data, jobs=1, report=False)
    assert not result.outcome.failed
    (model,) = (record for record in result.records if record.kind == "fine-tune")
    assert (
        "squad en train: answers relocated from wrong offsets: 1 "
        "(question q3: answer 'bridge' from 42 to 44)."
    ) in model.warnings
    measured_records = [record for record in result.records if record.kind == "measure"]
    assert [record.run["corpus"] for record in measured_records] == ["mlqa", "mlqa:en"]
    for record in measured_records:
        languages = [(row["language"], row["metric"], row["main"]) for row in record.rows]
        names = ("f1", "em")
        assert languages == [(language, name, name == "f1") for language in ("en", "de") for name in names]
        for f1, em in zip(record.rows[::2], record.rows[1::2], strict=True):
            assert 0 <= em["score"] <= f1["score"] <= 1


def plan_recipe_with(tmp_path, **optimization):
    changes = {"grid.corpus": "squad", "grid.optimization": {"epochs": 1, **optimization}}
    return plan_recipe(str(tiny(tmp_path)), out=tmp_path / "runs", changes=changes).runs


@pytest.mark.parametrize(
    ("message", "limit", "overlap"),
    [
        ({}, 256, 85),  # SQuAD's 384 and 128, brought down to what the shipped encoder has positions for
        ({"limit": 128}, 128, 42),
        ({"overlap": 10}, 256, 10),
        ({"limit": 100, "overlap": 64}, 100, 64),
    ],
)
def test_lengths_a_recipe_does_not_say_are_those_of_the_task(tmp_path, message, limit, overlap):
    limits = {
        (run.optimization.limit, run.optimization.overlap)
        for run in plan_recipe_with(tmp_path, **message)
        if isinstance(run, FineTune)
    }
    assert limits == {(limit, overlap)}


def test_naming_the_corpus_of_the_grid_asks_for_the_same_measurement(tmp_path):
    recipe = Path(tiny(tmp_path))
    runs = [
        {
            run
            for run in plan_recipe(str(recipe), out=tmp_path / "runs", changes=changes).runs
            if isinstance(run, Measure)
        }
        for changes in ({}, {"measure.0.corpus": "wikiann", "measure.1.corpus": "wikiann"})
    ]
    assert TINY.count("[[measure]]") == 3
    assert runs[0] == runs[1]
