"""A study of a model that learns several tasks, and its heads in use."""

import pytest

from isogloss import load_model
from isogloss.core.records import read_record
from isogloss.tasks import TASKS

RECIPE = """
title = "Tags with trees"

[encoder]
pretrained = "shipped"

[grid]
task = "upos"
corpus = "ud"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 32
optimization = { epochs = 1, batch_size = 8 }

[[grid.method]]
name = "source-only"
auxiliary = { name = "multi-task", tasks = ["parsing", "nli:xnli"] }

[[measure]]
name = "scores"
"""


@pytest.mark.slow
def test_a_run_is_one_model_of_all_its_tasks(runs_of, command):
    runs = runs_of("tasks", RECIPE)
    (folder,) = runs.glob("*/model/tasks/parsing")
    record = read_record(folder.parents[2])
    rows = {row["further_task"]: row for row in record.rows if "further_task" in row}
    assert rows.keys() == {"parsing", "nli"} and rows["nli"]["further_corpus"] == "xnli"
    parser = load_model(folder)
    assert parser.task.name == "parsing" and parser.provenance.run == record.id
    (score,) = parser.provenance.scores
    assert (score["corpus"], score["score"]) == ("ud", rows["parsing"]["score"])
    assert len(parser.predict([["ka", "la"]])) == 1
    options = ("--corpus", "ud", "--language", "qaa", "--split", "dev", "--json")
    (evaluated_line,) = command("evaluate", folder, *options).lines
    assert evaluated_line["score"] == pytest.approx(rows["parsing"]["score"], abs=1e-6)
    assert load_model(folder.parent / "nli").predict([("ka la", "mi")])[0] in TASKS["nli"].labels
    exported_path = parser.export(runs.parent / "exported")
    assert load_model(exported_path).predict([["ka", "la"]]) == parser.predict([["ka", "la"]])
    result = command("predict", folder.parent / "ner", "-")
    assert "no further task 'ner'. Known: nli, parsing" in result.message
