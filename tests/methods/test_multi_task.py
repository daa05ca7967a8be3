"""Further tasks on one encoder: their loss, their order of drawing, and heads as separate models."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import in_translation
from isogloss.core.errors import ConfigError
from isogloss.core.identity import derive
from isogloss.core.run_parts import with_fields
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.multi_task.term import HEADS, MultiTask, _with_shared_encoder, task_of_steps
from isogloss.features.peft.methods import LoRA
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation
from trained import equal, weights

BESIDE = [("upos", ("nli", "parsing")), ("nli", ("upos", "multiple-choice")), ("qa", ("nli",))]
EACH = pytest.mark.parametrize(("task", "others"), BESIDE)


def setting_of(task, other_texts, encoder, folder, **options):
    setting = in_translation.setting(task, encoder, folder, **options)
    further = tuple(in_translation.further(other_text) for other_text in other_texts)
    return replace(setting, auxiliary=MultiTask(tasks=other_texts, weight=0.5), further=further)


@EACH
def test_the_gradient_is_that_of_separate_models_with_the_same_encoder(task, others, bert_folder, tmp_path):
    setting = setting_of(task, others, bert_folder, tmp_path)
    tokenizer = load_tokenizer(bert_folder)
    model = TASKS[task].head(bert_folder, seed=1).eval()
    term = setting.auxiliary.prepare(setting, model, tokenizer, 12)
    shared = {name: weight for name, weight in model.named_parameters() if ".encoder." in name}
    for step in range(4):
        batch = term.batches[step]
        name = others[batch.task]
        single_model = TASKS[name].head(bert_folder, seed=derive(0, "head", name)).eval()
        expected = 0.5 * TASKS[name].loss(single_model, batch.batch)
        loss = term.loss(batch)
        assert torch.equal(loss, expected)
        model.zero_grad()
        loss.backward()
        expected.backward()
        distance = dict(single_model.named_parameters())
        compared_grads = [
            (shared[key].grad, distance[key].grad) for key in shared if distance[key].grad is not None
        ]
        assert len(compared_grads) == len(shared)
        assert all(torch.equal(left, right) and left.abs().sum() for left, right in compared_grads)


def test_tasks_are_drawn_by_their_size_and_temperature():
    for temperature, shares in ((1.0, (0.1, 0.9)), (2.0, (0.25, 0.75)), (1e6, (0.5, 0.5))):
        drawn_task = task_of_steps([100, 900], 20_000, temperature=temperature, seed=3)
        np.testing.assert_allclose(np.bincount(drawn_task) / len(drawn_task), shares, atol=0.02)


def test_each_pass_over_a_task_has_all_its_examples_once(bert_folder, tmp_path):
    setting = setting_of("nli", ("upos", "parsing"), bert_folder, tmp_path)
    model = TASKS["nli"].head(bert_folder, seed=1)
    term = setting.auxiliary.prepare(setting, model, load_tokenizer(bert_folder), 40)
    assert len(term.batches) == 40
    for task in (0, 1):
        batches = [
            batch.batch
            for batch in (term.batches.__getitem__(index) for index in range(40))
            if batch.task == task
        ]
        examples = torch.cat([batch.examples for batch in batches[:4]]).tolist()
        assert sorted(examples) == list(range(16))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "peft"), [(SourceOnly(), None), (SourceOnly(), LoRA()), (XMixup(layer=1), None)], ids=str
)
@EACH
def test_each_head_is_saved_as_a_model_with_the_score_that_was_noted(
    task, others, method, peft, bert_folder, tmp_path
):
    if task == "upos" and method.name == "x-mixup":
        method = replace(method, labels="projected")  # So that no teacher is needed.
    setting = replace(setting_of(task, others, bert_folder, tmp_path / "work", epochs=2), peft=peft)
    training = method.train(setting)
    assert not hasattr(training.model, HEADS)
    folder = tmp_path / "model"
    save_model(training.model, training.tokenizer, folder, training.extra_writers, training.difference)
    assert equal(TASKS[task].head(folder, seed=9), training)
    rows = {row["further_task"]: row for row in training.rows if "further_task" in row}
    assert tuple(rows) == others
    folder = folder.rename(tmp_path / "moved")
    for name, row in rows.items():
        loaded_model = TASKS[name].head(folder / "tasks" / name, seed=9)
        assert equal(loaded_model, TASKS[name].head(folder / "tasks" / name, seed=8))
        prepared_evaluation = evaluation(
            TASKS[name],
            in_translation.further(name).dev("en"),
            load_tokenizer(folder / "tasks" / name),
            with_fields(setting.optimization, precision="float32"),
            language="en",
        )
        assert row["score"] == pytest.approx(prepared_evaluation.score(loaded_model), abs=1e-6)
        assert row["examples"] == 12 and 0 <= row["baseline"] <= 1
        shared = {key: weight for key, weight in weights(loaded_model).items() if ".encoder." in key}
        assert shared and all(torch.equal(weight, weights(training)[key]) for key, weight in shared.items())


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_learned_beside_changes_the_model_and_at_weight_0_nothing_does(bert_folder, tmp_path):
    plain_training = SourceOnly().train(in_translation.setting("nli", bert_folder, tmp_path / "plain"))
    setting = setting_of("nli", ("upos",), bert_folder, tmp_path / "with")
    assert not equal(SourceOnly().train(setting), plain_training)
    setting = replace(setting, auxiliary=replace(setting.auxiliary, weight=0.0), folder=tmp_path / "without")
    plain_record = SourceOnly().train(setting)
    assert equal(plain_record, plain_training) and plain_record.rows == plain_training.rows
    assert not setting.auxiliary.reads(("en",), ()).tasks


def test_a_further_task_that_is_not_learned_warns_as_the_main_task_does(bert_folder, tmp_path):
    setting = setting_of("nli", ("upos", "parsing"), bert_folder, tmp_path / "low", learning_rate=1e-9)
    warnings = SourceOnly().train(setting).warnings
    further = [warning for warning in warnings if "further task" in warning]
    assert [warning.split(" on en dev")[0] for warning in further] == [
        "stuck at chance: the best accuracy of the further task upos",
        "stuck at chance: the best las of the further task parsing",
    ]
    upos, parsing = setting.further
    nouns = [replace(read, tags=("NOUN",) * len(read.words)) for read in upos.dev("en")[:2]]
    further = (replace(upos, dev=lambda _: nouns), parsing)
    warnings = SourceOnly().train(replace(setting, further=further, folder=tmp_path / "one")).warnings
    assert any(
        warning.startswith("all 2 dev examples of en for upos have the label NOUN") for warning in warnings
    )
    assert not any("further task upos" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ((), r"multi-task: .*\[\].*nli"),
        (("nli",), "nli"),
        (("upos", "upos:ud"), "once"),
        (("upso",), "'upso'.*'upos'"),
    ],
)
def test_tasks_that_cannot_be_learned_beside_are_refused(tasks, message):
    with pytest.raises(ConfigError, match=message):
        MultiTask(tasks=tasks).check(TASKS["nli"], None)


def test_heads_of_further_tasks_begin_with_zeros_too(make_setting):
    setting = make_setting(head_weights="zeros")
    model = TASKS["upos"].head(setting.start, seed=0)
    further_model = _with_shared_encoder(setting, TASKS["ner"], model)
    assert not further_model.classifier.weight.any()
    plain = _with_shared_encoder(make_setting(), TASKS["ner"], model)
    assert plain.classifier.weight.any()
