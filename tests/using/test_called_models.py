"""A model is called on what the command line reads and on tables, and is moved between devices."""

import pandas as pd
import pytest
import torch

from isogloss.core.errors import DataError
from says import says

WORDS = [["the", "cat", "sat"], ["a", "dog"]]
INPUTS = {
    "upos": (WORDS, [{"words": words} for words in WORDS]),
    "nli": (
        [("the cat", "a dog"), ("it rained", "the mat")],
        [{"text": "the cat", "text_pair": "a dog"}, {"text": "it rained", "text_pair": "the mat"}],
    ),
    "text-classification": (["the cat sat", "a dog"], [{"text": "the cat sat"}, {"text": "a dog"}]),
    "qa": (
        [("what happened", "yesterday it rained"), ("where", "in Rome")],
        [
            {"question": "what happened", "context": "yesterday it rained"},
            {"question": "where", "context": "in Rome"},
        ],
    ),
}
"""By task: inputs as Python values, and as the JSON lines of the command line."""


@pytest.mark.parametrize("task", INPUTS)
def test_mappings_and_tables_have_the_answers_of_values(make_model, task):
    model = make_model(task)
    values, mappings = INPUTS[task]
    expected = model.predict(values)
    assert model(mappings) == model.predict(mappings) == expected
    assert model(pd.DataFrame(mappings, index=[7, 8])) == expected
    assert model.predict(mappings[0]) == expected[0]
    datasets = pytest.importorskip("datasets")
    assert model(datasets.Dataset.from_list(mappings)) == expected


def test_a_model_has_a_device_and_moves(make_model):
    model = make_model("upos")
    assert model.device == torch.device("cpu")
    assert model.to("cpu") is model and model("the cat") == model.predict("the cat")


def test_a_mapping_without_the_keys_of_its_task_is_refused(make_model):
    with says(DataError, "input 1", "text"):
        make_model("nli").predict([{"text": "a", "text_pair": "b"}, {"text": "a"}])


@pytest.mark.nightly
@pytest.mark.slow
def test_axes_of_an_onnx_file_are_batch_and_sequence(make_model, tmp_path):
    onnx = pytest.importorskip("onnx")
    folder = make_model("nli").export(tmp_path / "out", onnx=True)
    graph = onnx.load(next(folder.rglob("*.onnx"))).graph
    shapes = {
        value.name: [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    }
    assert shapes.pop("logits")[0] == "batch"
    assert {tuple(shape) for shape in shapes.values()} == {("batch", "sequence")}
