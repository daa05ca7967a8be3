import pytest
import torch

from isogloss.core.run_parts import Optimization, with_fields
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training import length_batches as module
from isogloss.training.evaluation import evaluation
from made_up import TEXT, tagged_sentences

TASK = TASKS["upos"]
HOW = with_fields(Optimization(), limit=24, overlap=8, precision="float32")
LINES = [
    " ".join(TEXT.split()[start : start + length])
    for start, length in ((0, 3), (4, 9), (2, 1), (7, 12), (1, 5))
]


@pytest.fixture
def model(encoder_folder):
    return TASK.head(encoder_folder, seed=0)


@pytest.fixture
def tokenizer(encoder_folder):
    return load_tokenizer(encoder_folder)


@pytest.mark.parametrize("budget", [1, 40, 80])
def test_scores_do_not_depend_on_how_rows_are_batched(bert_folder, monkeypatch, budget):
    model = TASK.head(bert_folder, seed=0)
    tokenizer = load_tokenizer(bert_folder)
    examples = tagged_sentences("en", 30)
    whole_evaluation = evaluation(TASK, examples, tokenizer, HOW)
    monkeypatch.setattr(module, "BUDGET", budget)
    parts = evaluation(TASK, examples, tokenizer, HOW)
    assert len(parts.batches) > len(whole_evaluation.batches)
    for left, right in zip(whole_evaluation.scores(model), parts.scores(model), strict=True):
        assert torch.allclose(left, right, atol=1e-4)
    assert whole_evaluation.predict(model) == parts.predict(model)
    assert whole_evaluation.score(model) == parts.score(model)


def test_scores_are_those_of_each_row_alone(model, tokenizer):
    examples = tagged_sentences("en", 12)
    record = evaluation(TASK, examples, tokenizer, HOW)
    with torch.inference_mode():
        naive = [TASK.scores(model, collate([row], padding=tokenizer.pad_token_id)) for row in record.rows]
    for ours, theirs in zip(record.scores(model), naive, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
    assert record.predict(model) == TASK.decode(examples, record.rows, naive)


def test_a_pair_task_is_scored_as_a_whole(encoder_folder, tokenizer):
    from isogloss.data.examples import SentencePair

    task = TASKS["nli"]
    pairs = [SentencePair(id=str(n), first=a, second=LINES[0], label="neutral") for n, a in enumerate(LINES)]
    model = task.head(encoder_folder, seed=0)
    row = evaluation(task, pairs, tokenizer, HOW)
    assert [tuple(scores.shape) for scores in row.scores(model)] == [(1, 3)] * len(pairs)
    assert row.score(model) == sum(label == "neutral" for label in row.predict(model)) / len(pairs)


def test_scoring_puts_a_model_in_evaluation_mode_and_leaves_no_gradients(model, tokenizer):
    item = evaluation(TASK, tagged_sentences("en", 5), tokenizer, HOW)
    first_scores, second = (item.scores(model.train()) for _ in range(2))
    assert not model.training
    assert all(torch.equal(a, b) for a, b in zip(first_scores, second, strict=True))
    assert all(weight.grad is None for weight in model.parameters())


def test_precision_is_the_one_asked_for(model, tokenizer):
    examples = tagged_sentences("en", 5)
    half_size = with_fields(Optimization(), limit=24, overlap=8, precision="bfloat16")
    scores, other_scores = (
        evaluation(TASK, examples, tokenizer, options).scores(model) for options in (HOW, half_size)
    )
    assert {scores.dtype for scores in (*scores, *other_scores)} == {torch.float32}
    assert not all(torch.equal(a, b) for a, b in zip(scores, other_scores, strict=True))


def test_gold_metric_and_baseline_are_the_tasks(tokenizer):
    examples = tagged_sentences("en", 5)
    item = evaluation(TASK, examples, tokenizer, HOW, baseline=0.25)
    assert item.gold == TASK.gold(examples)
    assert (item.metric, item.baseline) == ("accuracy", 0.25)
