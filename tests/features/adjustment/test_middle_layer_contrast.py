"""Contrast at a middle layer while a task is learned: the loss by hand, steps without it, and refusals."""

from dataclasses import replace

import pytest
import torch

import isogloss
from aligned import translations
from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.identity import content, derive
from isogloss.core.run_parts import with_fields
from isogloss.encoders.loading import load_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.adjustment.term import AlignmentTerm, sampled_rows
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training.fine_tuning import with_auxiliary
from isogloss.training.states import sentence_states
from says import says
from trained import equal

LAYER = 2


def make_term(**changes):
    """Return the term with changes to its fields."""
    fields = {"form": "contrast", "pulled": "sentences", "layer": LAYER, "alpha": 0.5, "pairs": 6}
    return with_fields(AlignmentTerm(), **{**fields, **changes})


@pytest.fixture
def make(make_setting, tmp_path):
    def setting(auxiliary=None, **options):
        result = make_setting(("en",), ("xx",), folder=tmp_path / str(hash(str(auxiliary))), **options)
        return replace(result, auxiliary=auxiliary, bitext={"en-xx": translations(30)})

    return setting


def contrast_sentences(model, tokenizer, pairs, temperature):
    """Return the equation of Liu & Niehues in both directions, a sentence after the other."""
    sides = [
        sentence_states(
            model, tokenizer, [getattr(pair, side) for pair in pairs], layers=(LAYER,), precision="float32"
        )[0]
        for side in ("first", "second")
    ]
    total = 0.0
    for x, y in (sides, sides[::-1]):
        for index, state in enumerate(x):
            cosines = torch.cosine_similarity(state.unsqueeze(0), y) / temperature
            total -= float(cosines[index] - cosines.logsumexp(dim=0)) / len(x) / 2
    return total


def test_the_loss_of_a_batch_is_the_equation(make, bert_folder):
    setting = make()
    task = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    model = task.head(bert_folder, seed=1).eval()
    term = make_term(temperature=0.2).prepare(setting, model, tokenizer, 4)
    drawn = sampled_rows(30, 6, step=2, seed=derive(setting.seed, "replay"))
    pairs = [setting.bitext["en-xx"][row] for row in drawn]
    expected = 0.5 * contrast_sentences(load_model(bert_folder), tokenizer, pairs, 0.2)
    assert term.loss(term.batches[2]).item() == pytest.approx(expected, rel=1e-4)


def test_a_loop_of_ones_own_has_the_same_loss(bert_folder):
    pairs = translations(5)
    model = load_model(bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    sides = [pair.first for pair in pairs], [pair.second for pair in pairs]
    options = {"form": "contrast", "pulled": "sentences", "layer": LAYER, "temperature": 0.2}
    loss = isogloss.AlignmentLoss(model, tokenizer, *sides, alpha=1.0, pairs=5, **options)
    assert loss().item() == pytest.approx(contrast_sentences(model, tokenizer, pairs, 0.2), rel=1e-4)


def test_only_every_other_step_has_the_term(make, bert_folder):
    setting = make()
    task = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    model = task.head(bert_folder, seed=1).eval()
    batch = collate(task.encode(setting.train("en")[:6], tokenizer), padding=tokenizer.pad_token_id)
    term = make_term(every=2).prepare(setting, model, tokenizer, 4)
    batches, loss = with_auxiliary([batch] * 4, task.loss, term)
    plain = task.loss(model, batch).item()
    added = [loss(model, batches[step]).item() - plain for step in range(4)]
    assert added[0] == added[2] == 0
    for step in each((1, 3)):
        assert added[step] == pytest.approx(term.loss(term.batches[step]).item(), rel=1e-3)
    parts = batches[0].parts(2)
    assert sum(share for _, share in parts) == pytest.approx(1)


@pytest.mark.parametrize("form", ["contrast", "mean", "sum"])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_parts_for_several_processes_have_the_loss_of_the_whole_batch(make, bert_folder, form, count):
    setting = make()
    task = TASKS["upos"]
    tokenizer = load_tokenizer(bert_folder)
    model = task.head(bert_folder, seed=1).eval()
    plain = [collate(task.encode(setting.train("en")[:6], tokenizer), padding=tokenizer.pad_token_id)]
    term = make_term(form=form).prepare(setting, model, tokenizer, 4)
    batches, compute_loss = with_auxiliary(plain, task.loss, term)
    whole = batches[0]
    parts = whole.parts(count)
    expected = compute_loss(model, whole).item()
    shared = sum(compute_loss(model, part).item() * share for part, share in parts)
    assert shared == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_without_weight_or_a_step_it_is_plain_fine_tuning_to_the_bit(make):
    plain = SourceOnly().train(make())
    assert equal(SourceOnly().train(make(make_term(alpha=0.0))), plain)
    assert equal(SourceOnly().train(make(make_term(every=1000))), plain)
    assert not equal(SourceOnly().train(make(make_term(every=2))), plain)


def test_earlier_settings_keep_their_identity():
    assert not {"every", "temperature"} & content(AlignmentTerm(bitext="x")).keys()
    assert AlignmentTerm(form="contrast").anchor == 0.0
    assert AlignmentTerm(form="contrast", stay=0.5).anchor == 0.5


def test_settings_that_have_no_effect_or_no_whole_batch_are_refused(make, bert_folder):
    with says(ConfigError, "temperature", "0.2", "'mean'"):
        AlignmentTerm(temperature=0.2)
    model = TASKS["upos"].head(bert_folder, seed=1)
    with says(ConfigError, "accumulation", "2", "contrast"):
        make_term().prepare(make(accumulation=2), model, load_tokenizer(bert_folder), 4)
    with says(ConfigError, "99"):
        make_term(layer=99).prepare(make(), model, load_tokenizer(bert_folder), 4)
