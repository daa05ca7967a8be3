"""A parser's head is not of transformers' making: the diagnostics of weights take it as any other."""

from dataclasses import replace
from operator import attrgetter

import pytest
import torch
from measuring import equal, measure_setting, weights

from isogloss.core.run_parts import with_fields
from isogloss.core.runs import Optimization
from isogloss.data.examples import ParsedSentence
from isogloss.diagnostics.deltas import Deltas
from isogloss.diagnostics.interpolation import Interpolation, Plane
from isogloss.diagnostics.weights import chosen_parameters
from isogloss.encoders import load_tokenizer
from isogloss.tasks.parsing import PARSING
from isogloss.training.evaluation import evaluation

TASK = replace(PARSING, arc_dim=8, relation_dim=4)
SENTENCES = [
    ParsedSentence(
        id=str(number),
        words=("the", "cat", "ran")[: number + 1],
        tags=("DET", "NOUN", "VERB")[: number + 1],
        heads=((0,), (2, 0), (2, 3, 0))[number],
        relations=(("root",), ("det", "root"), ("det", "nsubj", "root"))[number],
    )
    for number in range(3)
]


@pytest.fixture
def models(encoder_folder):
    made = [TASK.head(encoder_folder, seed=0) for _ in range(3)]
    for number, model in enumerate(made[1:], start=1):
        torch.manual_seed(number)
        with torch.no_grad():
            for weight in model.parameters():
                weight.add_(0.05 * torch.randn_like(weight))
    return made


@pytest.fixture
def scored(encoder_folder):
    tokenizer = load_tokenizer(encoder_folder)
    return evaluation(TASK, SENTENCES, tokenizer, with_fields(Optimization(), precision="float32"))


def test_encoder_and_head_are_told_apart(models):
    head = chosen_parameters(models[0], "head")
    encoder = chosen_parameters(models[0], "encoder")
    assert len(head) == 11
    assert all(name.startswith("head.") for name in head)
    assert sorted([*head, *encoder]) == sorted(chosen_parameters(models[0], "all"))


@pytest.mark.parametrize("part", ["all", "encoder", "head"])
def test_the_ends_of_a_path_between_parsers_are_the_parsers(models, scored, part):
    before = weights(models[0])
    rows = Interpolation(part=part, alphas=(0.0, 0.5, 1.0)).measure(
        measure_setting(models[:2], lambda _: scored, languages=("en",))
    )
    assert equal(weights(models[0]), before)
    assert {row.metric for row in rows} == {"las"}
    assert rows[0].score == scored.score(models[0])
    if part == "all":
        assert rows[-1].score == scored.score(models[1])


def test_the_corners_of_a_plane_of_parsers_are_the_parsers(models, scored):
    rows = Plane(alphas=(0.0, 1.0)).measure(measure_setting(models, lambda _: scored, languages=("en",)))
    found = {(row.alpha_first, row.alpha_second): row.score for row in rows}
    for corner, model in zip(((0, 0), (1, 0), (0, 1)), models, strict=True):
        assert found[corner] == scored.score(model)


def test_deltas_of_parsers_are_those_of_their_parts(models):
    rows = {row.part: row for row in Deltas().measure(measure_setting(models))}
    for norm in (attrgetter("norm_first"), attrgetter("norm_second")):
        whole, *parts = (norm(rows[part]) ** 2 for part in ("all", "encoder", "head"))
        assert whole == pytest.approx(sum(parts))
    assert 80 < rows["head"].angle < 100  # two random directions
