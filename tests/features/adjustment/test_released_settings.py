"""Settings of the released code as arguments: each loss equals the recipe's method with its preset."""

import pytest
import torch

import isogloss
from any_models import make_model
from isogloss.features.adjustment.term import AlignmentTerm
from isogloss.methods.presets import preset_fields
from made_up import SPANS

FIRST = list(SPANS[:6])
SECOND = [" ".join(reversed(text.split())) for text in FIRST]
LINKS = [[(0, 4), (1, 1), (2, 2)]] * 6


def distances(options):
    """Return the losses of two calls, of an encoder that is away from f⁰."""
    model, tokenizer = make_model("bert")
    loss = isogloss.AlignmentLoss(model, tokenizer, FIRST, SECOND, LINKS, **options)
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.05)
        return [float(loss()), float(loss())]


@pytest.mark.parametrize("preset", ["paper", "released"])
def test_a_preset_of_the_alignment_loss_has_the_fields_of_the_method(preset):
    stated_preset_fields = preset_fields(AlignmentTerm.name, preset)
    stated_preset_fields.pop("reference")  # f⁰ is given as a model.
    assert distances({"preset": preset}) == distances(stated_preset_fields)
    other_losses = distances({"preset": preset, "alpha": 0.5})
    assert (
        other_losses == distances({**stated_preset_fields, "alpha": 0.5}) != distances(stated_preset_fields)
    )


def test_words_that_are_spelt_alike_are_dropped():
    same_value = [
        [(1, 1), (2, 2)]
    ] * 6  # In the middle of a sentence and of its reverse stands the same word.
    model, tokenizer = make_model("bert")
    sides = model, tokenizer, FIRST, SECOND
    kept_values = isogloss.AlignmentLoss(*sides, [[(1, 1)]] * 6, stay=0.0)()
    assert isogloss.AlignmentLoss(*sides, same_value, stay=0.0, drop_identical=True)() == kept_values
    assert isogloss.AlignmentLoss(*sides, same_value, stay=0.0)() != kept_values
    options = {"epochs": 1, "batch_size": 6}
    result, expected = (
        isogloss.adjust(*sides, links, drop_identical=True, **options)
        for links in (same_value, [[(1, 1)]] * 6)
    )
    assert all(map(torch.equal, result.state_dict().values(), expected.state_dict().values()))


def tag_texts(tokenizer, texts):
    encoding = tokenizer(texts, padding=True, return_tensors="pt")
    inputs = {name: encoding[name] for name in ("input_ids", "attention_mask")}
    labels = torch.where(inputs["attention_mask"].bool(), inputs["input_ids"] % 3, -100)
    return {**inputs, "labels": labels}


@pytest.mark.parametrize("back", [False, True])
def test_a_released_batch_of_back_translations_has_the_loss_of_its_target(back):
    model, tokenizer = make_model("bert", "AutoModelForTokenClassification", num_labels=3)
    sides = tag_texts(tokenizer, FIRST), tag_texts(tokenizer, SECOND)
    released_mixup_loss = isogloss.MixupLoss(model, preset="released", layer=2)
    alpha = 0.0 if back else 0.8
    manual_mixup_loss = isogloss.MixupLoss(model, layer=2, learned_ratio=False, alpha=alpha)
    assert float(released_mixup_loss(*sides, back=back).detach()) == float(manual_mixup_loss(*sides).detach())
    mixup_loss = isogloss.MixupLoss(model, layer=2, learned_ratio=False, back_loss="target")
    assert float(mixup_loss(*sides, back=back).detach()) == float(manual_mixup_loss(*sides).detach())


def test_a_preset_of_mixup_gives_way_to_what_is_named():
    model, _ = make_model("bert", "AutoModelForTokenClassification", num_labels=3)
    count = [
        len(list(isogloss.MixupLoss(model, layer=2, **options).parameters()))
        for options in ({}, {"preset": "released"}, {"preset": "released", "learned_ratio": True})
    ]
    assert count[0] == count[2] > count[1]


def test_a_language_s_own_parameters_move_by_the_training_loss_too():
    model, tokenizer = make_model("bert", "AutoModelForSequenceClassification", num_labels=2)
    encoding = tokenizer(FIRST[:2], padding=True, return_tensors="pt")
    batch = {name: encoding[name] for name in ("input_ids", "attention_mask")}
    batch["labels"] = torch.tensor([0, 1])
    own_text = "bert.encoder.layer.2.output.dense.weight"
    gradients = []
    for own_on_train in (False, True):
        model.zero_grad()
        meta = isogloss.MetaLearner(
            model, {"en": [own_text], "de": []}, own_rate=0.0, weight_decay=0.0, own_on_train=own_on_train
        )
        meta("en", batch, {"en": batch}).backward()
        gradients.append({name: weight.grad for name, weight in model.named_parameters()})
    model.zero_grad()
    model(**batch).loss.backward()
    assert gradients[0][own_text] is None
    for name, weight in model.named_parameters():
        torch.testing.assert_close(gradients[1][name], weight.grad)
