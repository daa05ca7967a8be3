"""Users' loops, as in examples/, train the same as recipes."""

import importlib.util
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import isogloss
from in_translation import LABELS, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.core.identity import derive
from isogloss.core.run_parts import Modules, with_fields
from isogloss.data.examples import Translation
from isogloss.encoders.computation import fastest_attention
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.term import AlignmentTerm
from isogloss.features.meta_learning.method import MetaLearning
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.tasks.masked_lm import masked_lm_loss
from isogloss.training import fine_tuning
from isogloss.training.optimizer import adamw
from made_up import TEXT
from made_up_text import lines, text_setting
from trained import equal, weights

RATE = 1e-3
SEED = 3
CONSTANT = {"warmup": 0.0, "rate_schedule": "constant", "checkpoint_every": 0, "learning_rate": RATE}
WORDS = TEXT.split()
PAIRS = [
    Translation(
        id=str(index),
        first=" ".join(WORDS[index : index + 5]),
        second=" ".join(reversed(WORDS[index : index + 5])),
        links=tuple((word, 4 - word) for word in range(5)),
    )
    for index in range(20)
]


def example(name):
    path = Path(__file__).parents[2] / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def start(bert_folder, tmp_path):
    """An encoder without dropout, which each loop draws in its own way."""
    folder = shutil.copytree(bert_folder, tmp_path / "start")
    config = json.loads((folder / "config.json").read_text())
    config |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture
def recipe(monkeypatch):
    """Return the weights that a method trains, and the batches that it trained on."""

    def run(method, arguments, module=fine_tuning):
        calls = []
        fit = module.fit

        def recording(model, batches, *args, **options):
            calls.extend(batches[step] for step in range(len(batches)))
            return fit(model, batches, *args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(module, "fit", recording)
            training = method.train(arguments)
        return training, calls

    return run


def classifier(start):
    """Return the model that the recipe starts from, of a class of transformers."""
    return TASKS["nli"].head(start, seed=derive(SEED, "head"), attention=fastest_attention())


def inputs(batch):
    return {**batch.inputs(), "labels": batch.gold}


@pytest.mark.nightly
@pytest.mark.slow
def test_x_mixup_in_trainer_trains_what_the_recipe_trains(start, recipe, tmp_path):
    """Without weight decay: the Trainer would decay W, which the recipe does not."""
    from transformers import TrainingArguments

    given_setting = setting("nli", start, tmp_path / "recipe", seed=SEED, weight_decay=0.0, **CONSTANT)
    trained_fit, batches = recipe(XMixup(), given_setting)
    rows = [{"source": inputs(batch.source), "target": inputs(batch.target)} for batch in batches]
    model = classifier(start)
    weights_before = weights(model)
    arguments = TrainingArguments(
        tmp_path / "trainer",
        learning_rate=RATE,
        lr_scheduler_type="constant",
        num_train_epochs=1,
        per_device_train_batch_size=1,
        train_sampling_strategy="sequential",
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
    )
    trainer = example("mixup_trainer").MixupTrainer(
        model, args=arguments, data_collator=lambda rows: rows[0], train_dataset=rows
    )
    trainer.train()
    assert len(rows) == trainer.state.global_step == 6
    mixup = next(writer.args[0] for writer in trained_fit.extra_writers)
    assert equal(model.mixup.ratio, mixup.ratio_module) and model.mixup.ratio.weight.item() != 0
    del model.mixup
    assert equal(model, trained_fit) and not equal(weights_before, trained_fit)


def test_the_alignment_loss_in_a_loop_trains_what_the_recipe_trains(start, recipe, tmp_path):
    arguments = setting("nli", start, tmp_path / "recipe", seed=SEED, target=(), **CONSTANT)
    auxiliary = AlignmentTerm(alpha=0.3, pairs=5)
    trained_fit, batches = recipe(
        SourceOnly(), replace(arguments, auxiliary=auxiliary, bitext={"en-de": PAIRS})
    )
    model = classifier(start)
    tokenizer = load_tokenizer(start)
    weights_before = weights(model)
    sides = [pair.first for pair in PAIRS], [pair.second for pair in PAIRS]
    alignment = isogloss.AlignmentLoss(
        model, tokenizer, *sides, [pair.links for pair in PAIRS],
        languages=("en", "de"), alpha=0.3, pairs=5, seed=SEED,
    )  # fmt: skip
    optimizer = adamw(model, arguments.optimization.updates)
    example("continual_loop").train(model, [inputs(batch.main) for batch in batches], alignment, optimizer)
    assert alignment.calls == len(batches) == 6
    assert equal(model, trained_fit) and not equal(weights_before, trained_fit)


def test_the_first_alignment_loss_is_the_distance_of_words(start):
    """Eq. 1 by hand; f⁰ is the encoder itself, so that the second term is 0."""
    model = classifier(start).eval()
    tokenizer = load_tokenizer(start)
    sides = [pair.first for pair in PAIRS[:4]], [pair.second for pair in PAIRS[:4]]
    links = [pair.links for pair in PAIRS[:4]]
    alignment = isogloss.AlignmentLoss(model, tokenizer, *sides, links, alpha=1.0)
    distances = []
    for first_part, second in zip(*sides, strict=True):
        states = []
        for text in (first_part, second):
            encoding = tokenizer(text, return_tensors="pt")
            state = model.base_model(**encoding).last_hidden_state[0]
            numbers = encoding.word_ids()
            words = [state[[n for n, w in enumerate(numbers) if w == word]].mean(dim=0) for word in range(5)]
            states.append(torch.stack([state[0], *words, state[-1]]))
        reverse = [0, 5, 4, 3, 2, 1, 6]
        distances.append((states[0] - states[1][reverse]).square())
    assert alignment().item() == pytest.approx(torch.stack(distances).mean().item(), rel=1e-4)


def test_each_alignment_loss_pulls_and_anchors_the_frame_of_texts_too(start):
    """The docstring's formula: one link a pair makes three items, and a source of n words n + 2 anchors."""
    model = classifier(start).eval()
    tokenizer = load_tokenizer(start)
    sides = [pair.first for pair in PAIRS[:4]], [pair.second for pair in PAIRS[:4]]
    alignment = isogloss.AlignmentLoss(model, tokenizer, *sides, [[(1, 2)]] * 4, alpha=0.5, stay=0.25)

    def states(text):
        encoding = tokenizer(text, return_tensors="pt")
        state = model.base_model(**encoding).last_hidden_state[0]
        numbers = encoding.word_ids()
        words = [state[[n for n, w in enumerate(numbers) if w == word]].mean(dim=0) for word in range(5)]
        return torch.stack([state[0], *words, state[-1]])

    with torch.no_grad():
        tensor_before = torch.cat([states(text) for text in sides[0]])
        for weight in model.base_model.parameters():
            weight.mul_(1.05)
        ours, theirs = ([states(text) for text in side] for side in sides)
        pulled_differences = [
            first_part[[0, 2, 6]] - second[[0, 3, 6]] for first_part, second in zip(ours, theirs, strict=True)
        ]
        expected = (
            0.5 * torch.cat(pulled_differences).square().mean()
            + 0.25 * (torch.cat(ours) - tensor_before).square().mean()
        )
        plain_mean = torch.cat([part[1:2] for part in pulled_differences]).square().mean()
        assert alignment().item() == pytest.approx(expected.item(), rel=1e-4)
    assert plain_mean.item() != pytest.approx(torch.cat(pulled_differences).square().mean().item(), rel=1e-2)


def test_without_a_link_there_is_no_alignment_loss(start):
    with pytest.raises(DataError, match=r"AlignmentLoss: .*1"):
        isogloss.AlignmentLoss(classifier(start), load_tokenizer(start), ["the cat"], ["a dog"], [[]])


@pytest.mark.slow
@pytest.mark.parametrize("inner_step", ["plain", "preconditioned"])
def test_algorithm_1_in_a_loop_trains_what_the_recipe_trains(tmp_path, recipe, inner_step):
    from isogloss.training import fit
    from isogloss.training.text_training import begin_pretraining

    method = with_fields(
        MetaLearning(inner_step=inner_step, validation=0.2, own_learning_rate=2e-3, inner_learning_rate=4e-3),
        steps=6,
        batch_subwords=48,
        block=16,
        dropout=0.0,
        precision="float32",
        **CONSTANT,
    )
    options = {"languages": ("en", "sw"), "vocabulary": 300, "positions": 32, "held_out": lines}
    arguments = text_setting(tmp_path / "work", modules=Modules(kind="adapter"), **options)
    trained_fit, batches = recipe(method, arguments, fit)
    model = begin_pretraining(replace(arguments, folder=tmp_path / "own"), method).model
    weights_before = weights(model)
    meta = isogloss.MetaLearner(
        model, ["en", "sw"], masked_lm_loss, own_rate=2e-3, inner_rate=4e-3, inner_step=inner_step
    )
    steps = [
        (step.language, step.train, {batch.languages[0]: batch for batch in step.validation})
        for step in batches
    ]
    example("meta_loop").train(model, meta, steps, adamw(model, method.updates))
    assert len(steps) == 6 and {step[0] for step in steps} == {"en", "sw"}
    assert equal(model, trained_fit) and not equal(weights_before, trained_fit)


def test_parameters_by_name_learn_as_adapters_do():
    """One number each: φ moves against the slope of the validation loss after the imagined step (Eq. 3)."""
    model = torch.nn.ParameterDict({"shared": torch.tensor(1.0), "own": torch.tensor(2.0)})
    meta = isogloss.MetaLearner(
        model, {"sw": ["own"]}, lambda row, x: (row["shared"] * row["own"] - x) ** 2,
        own_rate=0.1, inner_rate=0.05, second_order="exact", clip=0.0, weight_decay=0.0,
    )  # fmt: skip
    loss = meta("sw", torch.tensor(5.0), {"sw": torch.tensor(3.0)})
    moved_value = model["own"].item()
    assert abs(moved_value - 2.0) == pytest.approx(0.1, rel=1e-3)  # Adam's first step is as long as its rate.
    own_tensor = torch.tensor(2.0, requires_grad=True)
    stepped_difference = 1.0 - 0.05 * 2 * (1.0 * own_tensor - 5.0) * own_tensor
    slope = torch.autograd.grad((stepped_difference * own_tensor - 3.0) ** 2, own_tensor)[0]
    assert (moved_value < 2.0) == (slope > 0)
    assert loss.item() == pytest.approx((moved_value - 5.0) ** 2)
    loss.backward()
    assert model["shared"].grad.item() == pytest.approx(2 * (moved_value - 5.0) * moved_value)
    assert model["own"].grad is None


def test_adapters_are_added_and_read_their_own_language(start):
    model = classifier(start)
    tokenizer = load_tokenizer(start)
    batch = tokenizer("the cat sat", return_tensors="pt")
    plain_logits = model(**batch).logits
    meta = isogloss.MetaLearner(model, ["en", "sw"])
    with meta.language("sw"):
        assert torch.allclose(model(**batch).logits, plain_logits, atol=1e-6)
    labelled_rows = {**batch, "labels": torch.tensor([LABELS.index("neutral")])}
    meta("sw", labelled_rows, {"en": labelled_rows, "sw": labelled_rows})
    read = []
    for language in ("en", "sw"):
        with meta.language(language):
            read.append(model(**batch).logits)
    assert torch.allclose(read[0], plain_logits, atol=1e-6) and not torch.allclose(
        read[1], plain_logits, atol=1e-4
    )
    with pytest.raises(ConfigError, match="de"), meta.language("de"):
        pass
    with pytest.raises(ConfigError, match="parameter 'lora'"):
        isogloss.MetaLearner(model, {"sw": ["lora"]})
