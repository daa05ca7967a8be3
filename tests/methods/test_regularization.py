"""R3F and L2-SP: their losses by hand, neutral settings, resuming, parts, precisions and refusals."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import softmax

import in_translation
from isogloss.core.errors import ConfigError
from isogloss.encoders.added.sparse_deltas import add_masks
from isogloss.encoders.family import head_parameters
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.peft.methods import LoRA, LotteryTicket, TaskAdapter
from isogloss.features.regularization.terms import (
    L2SP,
    R3F,
    StartPenalty,
    add_noise_to_embeddings,
    compute_symmetric_divergence,
)
from isogloss.features.x_mixup.method import XMixup
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS, find_task
from isogloss.tasks.batch import collate
from isogloss.training.batching import Bucketed
from isogloss.training.pairs import paired_batches
from trained import equal, interrupt_batches, weights

STRONG = R3F(sigma=0.3, weight=2.0)
"""With noise as large as embeddings, so that rounding does not matter."""

NEUTRAL = {
    "r3f without weight": R3F(weight=0.0),
    "r3f without noise": R3F(sigma=0.0),
    "l2-sp without weights": L2SP(weight=0.0, new_weight=0.0),
}
SEEDS = st.integers(0, 10_000)


def scores(seed, items=5, classes=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(items, classes, generator=generator, dtype=torch.float64)


@given(SEEDS)
def test_the_divergence_is_that_of_both_directions_summed(seed):
    first_tensor = scores(seed)
    second = scores(seed + 1)
    p = softmax(first_tensor, dim=1)
    q = softmax(second, dim=1)
    expected = ((p - q) * (p.log() - q.log())).sum(dim=1).mean()
    torch.testing.assert_close(compute_symmetric_divergence(first_tensor, second), expected)
    torch.testing.assert_close(compute_symmetric_divergence(second, first_tensor), expected)
    assert float(compute_symmetric_divergence(first_tensor, first_tensor)) == 0


def batch_of(task, folder, setting):
    rows = TASKS[task].encode(setting.train("en")[:6], load_tokenizer(folder))
    return collate(rows, padding=0)


@pytest.mark.each_value
@pytest.mark.parametrize("noise", ["uniform", "normal"])
@pytest.mark.parametrize("task", ["nli", "upos", "qa", "multiple-choice"])
def test_the_loss_compares_predictions_with_and_without_noise(bert_folder, tmp_path, task, noise):
    kind = TASKS[task]
    setting = in_translation.setting(task, bert_folder, tmp_path)
    model = kind.head(bert_folder, seed=1).eval()
    batch = batch_of(task, bert_folder, setting)
    loss = replace(STRONG, noise=noise)
    torch.manual_seed(3)
    result = loss.loss(kind, model, batch)
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(int(torch.randint(1 << 62, ())))
    table = model.base_model.embeddings.word_embeddings
    samples = torch.empty(*batch.subwords.shape, table.embedding_dim)
    samples = (
        samples.uniform_(-0.3, 0.3, generator=generator)
        if noise == "uniform"
        else samples.normal_(0.0, 0.3, generator=generator)
    )
    clean = kind.scores(model, batch)
    with table.register_forward_hook(lambda _, __, states: states + samples):
        noisy = kind.scores(model, batch)
    items = [(clean, noisy)]
    if task == "qa":
        rows = [batch.rows == row for row in range(len(batch.subwords))]
        items = [(clean[row, end][None], noisy[row, end][None]) for row in rows for end in (0, 1)]
    expected = torch.stack([compute_symmetric_divergence(*pair) for pair in items]).mean()
    assert float(expected.detach()) > 1e-4
    torch.testing.assert_close(result, 2 * expected, rtol=1e-4, atol=1e-7)
    assert not table._forward_hooks


def test_noise_has_its_size_and_is_drawn_from_its_seed(bert_folder):
    model = TASKS["nli"].head(bert_folder, seed=0).eval()
    ids = torch.arange(64).view(1, -1) % 20
    table = model.base_model.embeddings.word_embeddings

    def noise(seed, kind):
        with add_noise_to_embeddings(model, sigma=0.1, noise=kind, seed=seed):
            return (table(ids) - table.weight[ids]).detach()

    assert 0.09 < float(noise(0, "uniform").abs().max()) <= 0.1001
    assert float(noise(0, "normal").std()) == pytest.approx(0.1, rel=0.1)
    assert torch.equal(noise(4, "normal"), noise(4, "normal"))
    assert not torch.equal(noise(4, "normal"), noise(5, "normal"))
    assert torch.equal(table(ids), table.weight[ids])


@pytest.mark.nightly
@pytest.mark.slow
def test_noise_reaches_the_predictions_of_every_family(any_folder, tmp_path):
    setting = in_translation.setting("upos", any_folder, tmp_path)
    model = TASKS["upos"].head(any_folder, seed=0).eval()
    batch = batch_of("upos", any_folder, setting)
    assert float(STRONG.loss(TASKS["upos"], model, batch).detach()) > 1e-5
    assert float(R3F(sigma=0.0, dropout="separate").loss(TASKS["upos"], model, batch).detach()) == 0


def test_both_passes_have_one_dropout_unless_it_is_separate(bert_folder, tmp_path):
    model = TASKS["nli"].head(bert_folder, seed=0).train()
    batch = batch_of("nli", bert_folder, in_translation.setting("nli", bert_folder, tmp_path))
    shared = R3F(sigma=1e-12).loss(TASKS["nli"], model, batch)
    separate = R3F(sigma=0.0, dropout="separate").loss(TASKS["nli"], model, batch)
    assert float(shared.detach()) < 1e-9 < 1e-5 < float(separate.detach())


def train(auxiliary, encoder, folder, *, method=None, task="nli", peft=None, **options):
    options = {"batch_size": 8, "checkpoint_every": 2, **options}
    setting = in_translation.setting(task, encoder, folder, target=("de",), **options)
    return (method or SourceOnly()).train(replace(setting, auxiliary=auxiliary, peft=peft))


@pytest.mark.slow
@pytest.mark.parametrize("name", NEUTRAL)
def test_neutral_settings_are_the_training_without_them_to_the_bit(name, bert_folder, tmp_path):
    plain_training = train(None, bert_folder, tmp_path / "plain")
    training = train(NEUTRAL[name], bert_folder, tmp_path / "neutral")
    assert equal(training, plain_training)
    assert training.rows == plain_training.rows


def test_parts_of_a_batch_of_pairs_have_shares_of_one_mean(bert_folder, tmp_path):
    """A part's loss is its share times the loss of only its rows."""
    kind = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    setting = in_translation.setting("upos", bert_folder, tmp_path, batch_size=6)
    train_pairs = {"en": setting.train("en"), "en-de": in_translation.sentences("en-de", 20)}
    model = kind.head(bert_folder, seed=0).eval()
    batch = paired_batches(setting, tokenizer, train_pairs)[0][0]

    def compute_seeded_loss(rows):
        torch.manual_seed(0)
        return float(STRONG.loss(kind, model, rows).detach())

    shares = [compute_seeded_loss(part) / compute_seeded_loss(part.joined) for part, _ in batch.parts(3)]
    units = [part.source.terms + part.target.terms for part, _ in batch.parts(3)]
    assert shares == pytest.approx([count / sum(units) for count in units], rel=1e-5)
    assert compute_seeded_loss(batch) == pytest.approx(compute_seeded_loss(batch.joined))


@pytest.mark.nightly
@pytest.mark.slow
def test_noise_survives_mixed_precision(bert_folder, tmp_path):
    """States in bfloat16 would lose it: the term is the same under autocast."""
    setting = in_translation.setting("nli", bert_folder, tmp_path)
    model = TASKS["nli"].head(bert_folder, seed=0).eval()
    batch = batch_of("nli", bert_folder, setting)
    losses = []
    for enabled_value in (False, True):
        torch.manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled_value):
            losses.append(float(R3F(sigma=1e-2).loss(TASKS["nli"], model, batch)))
    assert losses[0] == losses[1] > 0


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("method", [SourceOnly(), XMixup(layer=1)], ids=lambda field: field.name)
@pytest.mark.parametrize("auxiliary", [STRONG, L2SP(weight=0.3)], ids=lambda field: field.name)
def test_a_training_with_it_resumes_to_the_bit(
    auxiliary, method, precision, bert_folder, tmp_path, monkeypatch
):
    options = {"method": method, "precision": precision, "task": "nli", "accumulation": 2}
    whole_training = train(auxiliary, bert_folder, tmp_path / "whole", **options)
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train(auxiliary, bert_folder, tmp_path / "again", **options)
    again = train(auxiliary, bert_folder, tmp_path / "again", **options)
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows
    assert not equal(whole_training, train(None, bert_folder, tmp_path / "plain", **options))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("method", [SourceOnly(), XMixup(layer=1)], ids=lambda field: field.name)
@pytest.mark.parametrize("task", ["nli", "upos"])
def test_minimized_sharpness_resumes_to_the_bit_with_any_method(
    task, method, bert_folder, tmp_path, monkeypatch
):
    options = {"method": method, "task": task, "sam_radius": 0.05}
    if task == "upos" and method.name == "x-mixup":
        method = replace(method, labels="projected")
        options |= {"method": method}
    whole_training = train(STRONG, bert_folder, tmp_path / "whole", **options)
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        train(STRONG, bert_folder, tmp_path / "again", **options)
    again = train(STRONG, bert_folder, tmp_path / "again", gradient_checkpointing=True, **options)
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows
    assert not equal(
        whole_training, train(STRONG, bert_folder, tmp_path / "plain", **{**options, "sam_radius": 0.0})
    )


@pytest.mark.parametrize(
    ("task", "reason"), [("parsing", "trees, which are scored as a whole"), ("pair-regression", "a number")]
)
def test_answers_without_probabilities_are_refused_by_r3f(task, reason):
    with pytest.raises(ConfigError, match=f"r3f: .*'{task}' predicts {reason}.*l2-sp"):
        R3F().check(find_task(task), None)
    R3F(weight=0.0).check(find_task(task), None)


# L2-SP


def squares(weights_by_name, start=None):
    start = start or {}
    return sum(
        float((weight.double() - start.get(name, torch.zeros_like(weight)).double()).square().sum())
        for name, weight in weights_by_name.items()
    )


def moved_model(bert_folder, folder):
    """Return a model, its term of L2-SP, and its weights before and after a change."""
    setting = in_translation.setting("nli", folder, bert_folder.parent / "unused")
    model = TASKS["nli"].head(folder, seed=1)
    term = L2SP(weight=0.5, new_weight=0.2).prepare(setting, model, load_tokenizer(folder), 7)
    weights_before = weights(model)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=generator))
    return model, term, weights_before, weights(model)


def test_the_penalty_is_the_distance_from_the_start_and_the_size_of_the_head(bert_folder):
    model, term, moved_model_before, moved_model_after = moved_model(bert_folder, bert_folder)
    head = set(head_parameters(model))
    near_weights = {name: weight for name, weight in moved_model_after.items() if name not in head}
    new_weights = {name: weight for name, weight in moved_model_after.items() if name in head}
    expected = (0.5 * squares(near_weights, moved_model_before) + 0.2 * squares(new_weights)) / 2
    loss = term.loss(term.batches[3])
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-5)
    loss.backward()
    for name, weight in model.named_parameters():
        slope = 0.2 * weight if name in head else 0.5 * (weight - moved_model_before[name])
        torch.testing.assert_close(weight.grad, slope.detach())
    assert len(term.batches) == 7
    assert [share for _, share in term.batches[0].parts(4)] == [1.0]


def test_a_head_that_training_continues_from_has_a_start_too(bert_folder, tmp_path):
    save_model(TASKS["nli"].head(bert_folder, seed=5), load_tokenizer(bert_folder), tmp_path / "model")
    _, term, moved_model_before, moved_model_after = moved_model(bert_folder, tmp_path / "model")
    expected = 0.5 * squares(moved_model_after, moved_model_before) / 2
    assert float(term.loss(term.batches[0]).detach()) == pytest.approx(expected, rel=1e-5)


def test_weights_outside_of_a_mask_do_not_count(bert_folder):
    model = load_whole(bert_folder)
    name = "bert.encoder.layer.0.output.dense.weight"
    mask = torch.zeros_like(model.get_parameter(name), dtype=torch.bool)
    mask[:2] = True
    add_masks(model, {name: mask})
    masked_text = f"{name.removesuffix('weight')}parametrizations.weight.original"
    kept_values = {masked_text: model.get_parameter(masked_text)}
    penalty = StartPenalty(kept_values, masks={masked_text: mask})
    with torch.no_grad():
        kept_values[masked_text].add_(1.0)
    assert float(penalty.squared_distance()) == pytest.approx(int(mask.sum()))


@pytest.mark.slow
def test_a_large_weight_holds_the_encoder(bert_folder, tmp_path):
    start = weights(TASKS["nli"].head(bert_folder, seed=0))

    def distance(trained):
        now = {name: weight for name, weight in weights(trained).items() if ".layer." in name}
        return squares(now, start)

    plain_training = train(None, bert_folder, tmp_path / "plain")
    held_training = train(L2SP(weight=100.0), bert_folder, tmp_path / "held")
    assert distance(held_training) < 0.5 * distance(plain_training)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    "peft", [LoRA(), LotteryTicket(share=0.1), TaskAdapter()], ids=lambda field: field.name
)
def test_it_trains_with_peft(peft, bert_folder, tmp_path):
    training = train(L2SP(weight=0.3), bert_folder, tmp_path / "with", peft=peft)
    assert not equal(training, train(None, bert_folder, tmp_path / "without", peft=peft))
