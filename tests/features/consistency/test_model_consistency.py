"""xTune's model consistency: its loss by hand in every task, its reads, without effect at weight 0."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import kl_div

import in_translation
from isogloss.core.errors import ConfigError, ModelError
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.consistency.method import ModelConsistency
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS, find_task
from trained import equal

EACH = pytest.mark.parametrize("task", ["nli", "upos", "qa", "multiple-choice"])


@pytest.fixture
def loss_case(bert_folder, tmp_path):
    """Prepare the loss of a model and a teacher, which is a different or the same model."""

    def make(task, *, teacher_seed=9, weight=2.0, steps=30):
        tokenizer = load_tokenizer(bert_folder)
        kind = TASKS[task]
        save_model(kind.head(bert_folder, seed=teacher_seed), tokenizer, tmp_path / "teacher")
        setting = in_translation.setting(task, bert_folder, tmp_path, teacher=tmp_path / "teacher")
        model = kind.head(bert_folder, seed=1).eval()
        term = ModelConsistency(weight=weight).prepare(setting, model, tokenizer, steps)
        return setting, model, term, kind.head(tmp_path / "teacher", seed=0).eval()

    return make


def compute_divergence(task, batch, ours, theirs):
    """KL(f(x. Θ*) ‖ f(x. Θ)), one example, word or end of a span after the other."""
    own_scores, first_scores = (TASKS[task].scores(item, batch).double() for item in (ours, theirs))
    if task == "qa":
        rows = range(len(batch.subwords))
        groups = [scores[batch.rows == row].T for scores in (own_scores, first_scores) for row in rows]
        own_scores = groups[: len(rows)]
        first_scores = groups[len(rows) :]
        own_scores, first_scores = (
            [end for pair in element for end in pair] for element in (own_scores, first_scores)
        )
    divergences = [
        kl_div(q.log_softmax(0), p.log_softmax(0), reduction="sum", log_target=True)
        for q, p in zip(own_scores, first_scores, strict=True)
    ]
    return torch.stack(divergences).mean()


@EACH
def test_the_loss_is_the_divergence_from_the_first_model(loss_case, task):
    _, model, term, teacher = loss_case(task)
    for step in (0, 11):
        batch = term.batches[step]
        loss = term.loss(term.batches[step])
        assert not len(batch.gold)
        torch.testing.assert_close(
            loss.double(), 2 * compute_divergence(task, batch, model, teacher), rtol=1e-4, atol=1e-6
        )
    loss.backward()
    assert any(bool(weight.grad.abs().sum()) for weight in model.parameters() if weight.grad is not None)


@EACH
def test_a_model_is_consistent_with_itself_and_nothing_moves_it(loss_case, task):
    _, model, term, _ = loss_case(task, teacher_seed=1)
    loss = term.loss(term.batches[0])
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(weight.grad is None or float(weight.grad.abs().max()) < 1e-6 for weight in model.parameters())


def test_examples_and_their_translations_are_read_each_once_a_pass(loss_case):
    setting, _, term, _ = loss_case("upos", steps=30)
    passes = len(setting.train("en")) * 2 // 4
    assert len(term.batches) == 36 >= 30 and term.batches.steps_per_epoch == passes == 12
    languages = [term.batches[step].languages for step in range(12)]
    assert sorted(languages) == [("en",)] * 6 + [("en-de",)] * 6


@pytest.mark.slow
def test_without_weight_it_is_the_method_without_it(bert_folder, tmp_path):
    setting = in_translation.setting("nli", bert_folder, tmp_path)
    plain_training = SourceOnly().train(replace(setting, folder=tmp_path / "plain"))
    training = SourceOnly().train(replace(setting, auxiliary=ModelConsistency(weight=0.0)))
    assert equal(training, plain_training) and training.rows == plain_training.rows
    assert not ModelConsistency(weight=0.0).reads(("en",), ()).needs_teacher(TASKS["nli"])


def test_trees_a_missing_teacher_and_one_of_another_task_are_refused(bert_folder, tmp_path):
    tokenizer = load_tokenizer(bert_folder)
    save_model(TASKS["upos"].head(bert_folder, seed=0), tokenizer, tmp_path / "tags")
    setting = in_translation.setting("nli", bert_folder, tmp_path)
    model = TASKS["nli"].head(bert_folder, seed=0)
    with pytest.raises(ConfigError, match=r"nli: .*Setting\.teacher"):
        ModelConsistency().prepare(setting, model, tokenizer, 1)
    with pytest.raises(ModelError, match=r"nli:.*ADJ"):
        ModelConsistency().prepare(replace(setting, teacher=str(tmp_path / "tags")), model, tokenizer, 1)
    with pytest.raises(ConfigError, match="'parsing'"):
        ModelConsistency().prepare(replace(setting, task=TASKS["parsing"]), model, tokenizer, 1)
    with pytest.raises(ConfigError, match="'pair-regression' predicts"):
        ModelConsistency().check(find_task("pair-regression"), None)
    ModelConsistency().check(find_task("multi-label-classification"), None)
