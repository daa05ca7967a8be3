import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.runs import Optimization
from isogloss.encoders import load_masked_lm, load_tokenizer
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training import evaluation as module
from isogloss.training.evaluation import evaluation, sentence_states
from made_up import TEXT, tagged

TASK = TASKS["upos"]
HOW = Optimization(limit=24, overlap=8, precision="float32")
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
def test_scores_do_not_depend_on_how_rows_are_batched(model, tokenizer, monkeypatch, budget):
    examples = tagged("en", 30)
    whole = evaluation(TASK, examples, tokenizer, HOW)
    monkeypatch.setattr(module, "BUDGET", budget)
    parts = evaluation(TASK, examples, tokenizer, HOW)
    assert len(parts.batches) > len(whole.batches)
    for one, other in zip(whole.scores(model), parts.scores(model), strict=True):
        assert torch.allclose(one, other, atol=1e-4)
    assert whole.predict(model) == parts.predict(model)
    assert whole.score(model) == parts.score(model)


def test_scores_are_those_of_each_row_alone(model, tokenizer):
    examples = tagged("en", 12)
    one = evaluation(TASK, examples, tokenizer, HOW)
    with torch.inference_mode():
        naive = [TASK.scores(model, collate([row], padding=tokenizer.pad_token_id)) for row in one.rows]
    for ours, theirs in zip(one.scores(model), naive, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)
    assert one.predict(model) == TASK.decode(examples, one.rows, naive)


def test_a_pair_task_is_scored_as_a_whole(encoder_folder, tokenizer):
    from isogloss.data.examples import SentencePair

    task = TASKS["nli"]
    pairs = [SentencePair(id=str(n), first=a, second=LINES[0], label="neutral") for n, a in enumerate(LINES)]
    model = task.head(encoder_folder, seed=0)
    one = evaluation(task, pairs, tokenizer, HOW)
    assert [tuple(scores.shape) for scores in one.scores(model)] == [(1, 3)] * len(pairs)
    assert one.score(model) == sum(label == "neutral" for label in one.predict(model)) / len(pairs)


def test_scoring_puts_a_model_in_evaluation_mode_and_leaves_no_gradients(model, tokenizer):
    one = evaluation(TASK, tagged("en", 5), tokenizer, HOW)
    first, second = (one.scores(model.train()) for _ in range(2))
    assert not model.training
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert all(weight.grad is None for weight in model.parameters())


def test_precision_is_the_one_asked_for(model, tokenizer):
    examples = tagged("en", 5)
    half = Optimization(limit=24, overlap=8, precision="bfloat16")
    one, other = (evaluation(TASK, examples, tokenizer, how).scores(model) for how in (HOW, half))
    assert {scores.dtype for scores in (*one, *other)} == {torch.float32}
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def test_gold_metric_and_baseline_are_the_tasks(tokenizer):
    examples = tagged("en", 5)
    one = evaluation(TASK, examples, tokenizer, HOW, baseline=0.25)
    assert one.gold == TASK.gold(examples)
    assert (one.metric, one.baseline) == ("accuracy", 0.25)


# Sentence states


def naive(model, tokenizer, text, layer):
    ids = tokenizer(text)["input_ids"]
    with torch.inference_mode():
        states = model.base_model(torch.tensor([ids]), output_hidden_states=True).hidden_states[layer][0]
    real = [place for place, subword in enumerate(ids) if place not in (0, len(ids) - 1)]
    return states[real].mean(dim=0)


@pytest.mark.parametrize("layer", [-1, 0, 2])
@pytest.mark.parametrize("budget", [8192, 10])
def test_sentence_states_are_those_of_a_loop(encoder_folder, tokenizer, monkeypatch, layer, budget):
    monkeypatch.setattr(module, "BUDGET", budget)
    model = load_masked_lm(encoder_folder)
    ours = sentence_states(model, tokenizer, LINES, layers=(layer,), precision="float32")[0]
    theirs = torch.stack([naive(model, tokenizer, line, layer) for line in LINES])
    assert ours.dtype == torch.float32
    assert torch.allclose(ours, theirs, atol=1e-5)


def test_several_layers_take_one_pass(encoder_folder, tokenizer, monkeypatch):
    model = load_masked_lm(encoder_folder)
    each = [sentence_states(model, tokenizer, LINES, layers=(n,), precision="float32")[0] for n in range(4)]
    calls = []
    model.base_model.register_forward_hook(lambda *_: calls.append(1))
    sentence_states(model, tokenizer, LINES, precision="float32")
    once = len(calls)
    together = sentence_states(model, tokenizer, LINES, layers=range(4), precision="float32")
    assert len(calls) == 2 * once
    assert torch.equal(together, torch.stack(each))


def test_unknown_words_count_as_text(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    ours = sentence_states(model, tokenizer, ["日 cat"], precision="float32")[0, 0]
    assert torch.allclose(ours, naive(model, tokenizer, "日 cat", -1), atol=1e-5)


def test_long_texts_are_cut_and_empty_ones_are_zero(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    cut, whole, empty = sentence_states(
        model, tokenizer, [" ".join(["the"] * 50), "the the the", ""], limit=5, precision="float32"
    )[0]
    assert torch.allclose(cut, whole, atol=1e-5)
    assert not empty.any()


def test_texts_longer_than_the_encoder_has_positions_for_are_cut(encoder_folder, tokenizer):
    model = load_masked_lm(encoder_folder)
    states = sentence_states(model, tokenizer, [" ".join(["the"] * 400)], limit=1000, precision="float32")
    assert states.isfinite().all()


@pytest.mark.parametrize("layer", [4, -5, 99])
def test_a_layer_that_is_not_there_is_an_error(encoder_folder, tokenizer, layer):
    with pytest.raises(
        ConfigError, match=r"no layer .* 3 layers: use 0 \(the embeddings\) to 3, or -1 \(the last\)"
    ):
        sentence_states(load_masked_lm(encoder_folder), tokenizer, LINES, layers=(-1, layer))
