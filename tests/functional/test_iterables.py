"""Sequences may be iterables that are read once, and what a function keeps are numbers, not live tensors."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from torch.utils.data import DataLoader

import isogloss
from any_models import make_model
from isogloss.core.errors import DataError
from made_up import SPANS
from says import says

FIRST = list(SPANS[:8])
SECOND = [" ".join(reversed(text.split()[:4])) for text in FIRST]
LINKS = [[(word, 3 - word) for word in range(4)]] * len(FIRST)
QUIET = {"on_progress": lambda _: None}
MODEL, TOKENIZER = make_model("bert")
OTHER = isogloss.move(MODEL, isogloss.random_direction(MODEL), 0.1)
ENCODED = [dict(TOKENIZER(text, return_tensors="pt")) for text in FIRST[:2]]


def square(model, batch):
    return model(**batch)[0].square().mean()


def collate_rows(rows):
    return rows[0]


CALLS = {
    "states": lambda each: isogloss.states(MODEL, TOKENIZER, each(FIRST), layers=each([0, 1])),
    "cka": lambda each: isogloss.cka(
        MODEL,
        TOKENIZER,
        each(FIRST),
        each(SECOND),
        layers=each([0, 1]),
        languages=each(["en", "de"]),
        **QUIET,
    ),
    "retrieval": lambda each: isogloss.retrieval(MODEL, TOKENIZER, each(FIRST), each(SECOND), **QUIET),
    "word_distances": lambda each: isogloss.word_distances(
        MODEL, TOKENIZER, each(FIRST), each(SECOND), each(LINKS), **QUIET
    ),
    "align": lambda each: isogloss.align(each(FIRST), each(SECOND), MODEL, TOKENIZER, **QUIET),
    "align without a model": lambda each: isogloss.align(each(FIRST), each(SECOND), **QUIET),
    "project_labels": lambda each: isogloss.project_labels(
        each([(["a", "b"], ["O", "B-X"])]), each(["c d"]), each([[(0, 1), (1, 0)]])
    ),
    "average": lambda each: isogloss.average(each([MODEL, OTHER]), each([0.5, 0.5])),
    "path": lambda each: isogloss.path(MODEL, OTHER, size, each([0, 0.5, 1]), **QUIET),
    "plane": lambda each: isogloss.plane(MODEL, OTHER, MODEL, size, each([0, 1]), **QUIET),
    "gradient_conflict": lambda each: isogloss.gradient_conflict(
        MODEL, {"en": each(ENCODED), "de": each(ENCODED[::-1])}, square, **QUIET
    ),
    "language_gates": lambda each: isogloss.language_gates(
        MODEL, {"en": each(ENCODED), "de": each(ENCODED[::-1])}, square, steps=2, draws=1, **QUIET
    ),
    "adjust": lambda each: isogloss.adjust(
        MODEL, TOKENIZER, each(FIRST), each(SECOND), each(LINKS), epochs=1, batch_size=4, **QUIET
    ),
    "AlignmentLoss": lambda each: isogloss.AlignmentLoss(
        MODEL, TOKENIZER, each(FIRST), each(SECOND), each(LINKS)
    )(),
    "MetaLearner": lambda each: isogloss.MetaLearner(deepcopy(MODEL), each(["en", "de"]), square),
    "compare": lambda each: isogloss.compare(each([1, 0, 1]), each([0, 0, 1]), each([1, 0, 1])),
    "rank_sources": lambda each: isogloss.rank_sources("yo", each(["en", "ha"])),
    "load_corpus": lambda each: [each, isogloss.load_corpus("ud", "qaa", "test", examples=2)][1],
}
"""By name: a call with each sequence passed through a function."""


def size(model):
    return float(sum(weight.detach().square().sum() for weight in model.parameters()))


def plain(value):
    """Return results as what can be compared."""
    if isinstance(value, torch.nn.Module):
        return {name: weight.tolist() for name, weight in value.state_dict().items()}
    if isinstance(value, pd.DataFrame | pd.Series):
        return value.to_json(double_precision=12)
    if isinstance(value, torch.Tensor):
        return value.tolist()
    return value.vectors.tolist() if isinstance(value, isogloss.States) else repr(value)


@pytest.mark.parametrize("call", CALLS)
def test_a_generator_is_read_as_a_list_is(call):
    torch.manual_seed(0)
    expected = plain(CALLS[call](list))
    torch.manual_seed(0)
    found = plain(CALLS[call](lambda values: (value for value in values)))
    assert found == expected


@pytest.mark.parametrize("function", ["gradient_conflict", "language_gates"])
def test_batches_may_be_a_loader(function):
    loaders = {"en": ENCODED, "de": ENCODED[::-1]}
    options = {"steps": 2, "draws": 1} if function == "language_gates" else {}
    expected = getattr(isogloss, function)(MODEL, loaders, square, **options, **QUIET)
    of_loaders = {
        language: DataLoader(batches, batch_size=1, collate_fn=collate_rows)
        for language, batches in loaders.items()
    }
    found = getattr(isogloss, function)(MODEL, of_loaders, square, **options, **QUIET)
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("kind", ["number", "mapping", "tensor", "Series"])
@pytest.mark.parametrize("function", ["path", "plane"])
def test_scores_of_a_path_are_numbers_of_each_point(function, kind):
    """A parameter is the same tensor at every point: its value at the last one would stand in all rows."""
    models = [torch.nn.Linear(1, 1) for _ in range(3 if function == "plane" else 2)]
    scores = {
        "number": lambda model: model.bias[0],
        "tensor": lambda model: model.bias,
        "mapping": lambda model: {"sw": model.bias[0], "en": np.float32(1)},
        "Series": lambda model: pd.Series({"sw": model.bias[0].item()}),
    }
    found = getattr(isogloss, function)(*models, scores[kind], [0, 0.5, 1], **QUIET)
    column = found.iloc[:, 0]
    assert found.dtypes.eq(float).all() and len(set(column)) > 2
    assert column.iloc[0] == pytest.approx(models[0].bias.item())


@pytest.mark.parametrize("scored", [None, "a", torch.zeros(2), {"sw": [1]}], ids=repr)
def test_a_score_that_is_no_number_is_refused(scored):
    with says(DataError, "score", "number"):
        isogloss.path(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), lambda _: scored, [0, 1], **QUIET)
