"""Public functions give the numbers of other projects, installed or cloned, on random inputs."""

import json
import random

import numpy as np
import pytest
import torch
from torch import nn

import isogloss

pytestmark = pytest.mark.nightly

ROUNDS = 60


class Weights(nn.Module):
    """A model of one parameter: other projects trim each tensor by itself, isogloss the whole vector."""

    def __init__(self, values):
        super().__init__()
        self.weight = nn.Parameter(values.clone(), requires_grad=False)


def draw_tensor(seed, size=97, kind=torch.float64):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(kind)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("density", [0.1, 0.2, 0.5, 0.9])
def test_ties_with_scale_1_is_that_of_peft(count, density):
    merging = pytest.importorskip("peft.utils.merge_utils")
    origin = draw_tensor(0)
    vectors = [draw_tensor(seed) for seed in range(1, count + 1)]
    size = len(origin)
    kept_density = round(density * size)
    expected = merging.ties(vectors, torch.ones(count, dtype=torch.float64), kept_density / size + 1e-9)
    models = [Weights(origin + vector) for vector in vectors]
    weight = isogloss.average(
        models, [1.0] * count, origin=Weights(origin), density=density, scale=1.0
    ).weight
    torch.testing.assert_close(weight, origin + expected)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("density", [0.2, 0.5, 0.8])
def test_as_many_changes_are_kept_as_by_mergekit(clone, density, kind):
    sparsify = clone("arcee-ai+mergekit", "mergekit/sparsify.py")
    origin = torch.ones(100, dtype=kind)
    step = torch.randint(1, 4, (100,), generator=torch.Generator().manual_seed(0)) / 64
    model = Weights(origin + step.to(kind))
    kept_magnitude = sparsify.magnitude(model.weight - origin, density=density)
    weight = isogloss.average([model], origin=Weights(origin), density=density).weight
    assert int((weight != origin).sum()) == int((kept_magnitude != 0).sum()) == round(100 * density)


WORDS = [
    "a",
    "the",
    "Der",
    "die",
    "l'",
    "un",
    "1",
    "1,000",
    "São",
    "北京",
    "是",
    "ﷺ",
    "-",
    "…",
    "(x)",
    "\u200b",
]
LANGUAGES = ("en", "de", "es", "ar", "hi", "vi", "zh")


def answer(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, 4)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_answers_are_scored_as_by_the_script_of_mlqa(clone, language, tmp_path):
    script = clone("facebookresearch+MLQA", "mlqa_evaluation_v1.py")
    draw = random.Random(language)
    rows = [([answer(draw) for _ in range(draw.randint(1, 3))], answer(draw)) for _ in range(ROUNDS)]
    rows += [(gold, gold[0]) for gold, _ in rows[:10]]
    path = tmp_path / "answers.jsonl"
    lines = (
        {"id": str(index), "language": language, "answer": text, "gold": gold, "rules": "mlqa"}
        for index, (gold, text) in enumerate(rows)
    )
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for measure, function in (("mlqa_f1", script.f1_score), ("mlqa_em", script.exact_match_score)):
        [row] = isogloss.compare_outputs(path, against=copy_of(path), measure=measure).rows
        expected = np.mean([max(function(text, right, language) for right in gold) for gold, text in rows])
        assert row["score"] == pytest.approx(expected)


def copy_of(path):
    copied_value = path.with_name("copy.jsonl")
    copied_value.write_bytes(path.read_bytes())
    return copied_value


def tag(draw, marks):
    mark = draw.choice(marks)
    return mark if mark == "O" else f"{mark}-{draw.choice(['PER', 'LOC'])}"


@pytest.mark.parametrize("marks", ["BIO", "BIESO"])
def test_spans_are_scored_as_by_seqeval(marks):
    metrics = pytest.importorskip("seqeval.metrics")
    draw = random.Random(marks)
    for _ in range(ROUNDS):
        sizes = [draw.randint(1, 7) for _ in range(5)]
        gold, result = ([[tag(draw, marks) for _ in range(size)] for size in sizes] for _ in range(2))
        gold[0][0] = "B-PER"  # So that there is a span.
        gold[0][1:] = ["O"] * (len(gold[0]) - 1)
        if marks != "BIO":
            gold[0][0] = "S-PER"
        try:
            comparison = isogloss.compare(result, result, gold, metric="span_f1")
        except isogloss.ConfigError:
            continue  # Tags that fit several schemes or none are refused.
        assert comparison.score == pytest.approx(metrics.f1_score(gold, result, zero_division=0))


@pytest.mark.parametrize("metric", ["accuracy", "macro_f1", "weighted_f1", "micro_f1", "mcc"])
def test_classes_are_scored_as_by_scikit_learn(metric):
    metrics = pytest.importorskip("sklearn.metrics")
    functions = {
        "accuracy": metrics.accuracy_score,
        "mcc": metrics.matthews_corrcoef,
        **{
            f"{kind}_f1": lambda gold, result, kind=kind: metrics.f1_score(gold, result, average=kind)
            for kind in ("macro", "weighted", "micro")
        },
    }
    random_numbers = np.random.default_rng(0)
    for _ in range(ROUNDS):
        gold, sample = random_numbers.integers(0, 4, (2, 30))
        gold[:4] = [0, 1, 2, 3]
        comparison = isogloss.compare(sample, gold, gold, metric=metric)
        assert comparison.score == pytest.approx(functions[metric](gold, sample))
