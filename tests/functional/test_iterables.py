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
    "states": lambda element: isogloss.states(MODEL, TOKENIZER, element(FIRST), layers=element([0, 1])),
    "cka": lambda element: isogloss.cka(
        MODEL,
        TOKENIZER,
        element(FIRST),
        element(SECOND),
        layers=element([0, 1]),
        languages=element(["en", "de"]),
        **QUIET,
    ),
    "retrieval": lambda element: isogloss.retrieval(
        MODEL, TOKENIZER, element(FIRST), element(SECOND), **QUIET
    ),
    "word_distances": lambda element: isogloss.word_distances(
        MODEL, TOKENIZER, element(FIRST), element(SECOND), element(LINKS), **QUIET
    ),
    "align": lambda element: isogloss.align(element(FIRST), element(SECOND), MODEL, TOKENIZER, **QUIET),
    "align without a model": lambda element: isogloss.align(element(FIRST), element(SECOND), **QUIET),
    "project_labels": lambda element: isogloss.project_labels(
        element([(["a", "b"], ["O", "B-X"])]), element(["c d"]), element([[(0, 1), (1, 0)]])
    ),
    "average": lambda element: isogloss.average(element([MODEL, OTHER]), element([0.5, 0.5])),
    "path": lambda element: isogloss.path(MODEL, OTHER, size, element([0, 0.5, 1]), **QUIET),
    "plane": lambda element: isogloss.plane(MODEL, OTHER, MODEL, size, element([0, 1]), **QUIET),
    "swap_parts": lambda element: isogloss.swap_parts(MODEL, OTHER, element(["layer 1", "embeddings"])),
    "strip_parts": lambda element: isogloss.strip_parts(MODEL, element(["norms", "layer 2"])),
    "perturb_parts": lambda element: isogloss.perturb_parts(MODEL, OTHER, element(["layer 1", "norms"])),
    "score_parts": lambda element: isogloss.score_parts(
        MODEL, OTHER, size, element(["layer 1", "norms"]), changes=element(["swap", "strip"]), **QUIET
    ),
    "gradient_conflict": lambda element: isogloss.gradient_conflict(
        MODEL, {"en": element(ENCODED), "de": element(ENCODED[::-1])}, square, **QUIET
    ),
    "language_gates": lambda element: isogloss.language_gates(
        MODEL, {"en": element(ENCODED), "de": element(ENCODED[::-1])}, square, steps=2, draws=1, **QUIET
    ),
    "adjust": lambda element: isogloss.adjust(
        MODEL, TOKENIZER, element(FIRST), element(SECOND), element(LINKS), epochs=1, batch_size=4, **QUIET
    ),
    "AlignmentLoss": lambda element: isogloss.AlignmentLoss(
        MODEL, TOKENIZER, element(FIRST), element(SECOND), element(LINKS)
    )(),
    "MetaLearner": lambda element: isogloss.MetaLearner(deepcopy(MODEL), element(["en", "de"]), square),
    "compare": lambda element: isogloss.compare(element([1, 0, 1]), element([0, 0, 1]), element([1, 0, 1])),
    "rank_sources": lambda element: isogloss.rank_sources("yo", element(["en", "ha"])),
    "load_corpus": lambda element: [element, isogloss.load_corpus("ud", "qaa", "test", examples=2)][1],
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
    result = plain(CALLS[call](lambda values: (value for value in values)))
    assert result == expected


@pytest.mark.parametrize("function", ["gradient_conflict", "language_gates"])
def test_batches_may_be_a_loader(function):
    loaders = {"en": ENCODED, "de": ENCODED[::-1]}
    options = {"steps": 2, "draws": 1} if function == "language_gates" else {}
    expected = getattr(isogloss, function)(MODEL, loaders, square, **options, **QUIET)
    loader_data_loaders = {
        language: DataLoader(batches, batch_size=1, collate_fn=collate_rows)
        for language, batches in loaders.items()
    }
    result = getattr(isogloss, function)(MODEL, loader_data_loaders, square, **options, **QUIET)
    pd.testing.assert_frame_equal(result, expected)


@pytest.mark.parametrize("kind", ["number", "mapping", "tensor", "Series"])
@pytest.mark.parametrize("function", ["path", "plane"])
def test_scores_of_a_path_are_numbers_of_each_point(function, kind):
    """A parameter is the same tensor at every point: its value at the last point would be in all rows."""
    models = [torch.nn.Linear(1, 1) for _ in range(3 if function == "plane" else 2)]
    scores = {
        "number": lambda model: model.bias[0],
        "tensor": lambda model: model.bias,
        "mapping": lambda model: {"sw": model.bias[0], "en": np.float32(1)},
        "Series": lambda model: pd.Series({"sw": model.bias[0].item()}),
    }
    table = getattr(isogloss, function)(*models, scores[kind], [0, 0.5, 1], **QUIET)
    column = table.iloc[:, 0]
    assert table.dtypes.eq(float).all() and len(set(column)) > 2
    assert column.iloc[0] == pytest.approx(models[0].bias.item())


@pytest.mark.parametrize("scores", [None, "a", torch.zeros(2), {"sw": [1]}], ids=repr)
def test_a_score_that_is_no_number_is_refused(scores):
    with says(DataError, "score", "number"):
        isogloss.path(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), lambda _: scores, [0, 1], **QUIET)
