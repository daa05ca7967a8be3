"""X-Mixup in a user's loop equals the loss of the method bit for bit, and trains the ratio."""

import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.data.examples import LabelledText, TaggedSentence
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.x_mixup.method import XMixup
from isogloss.features.x_mixup.mixed_model import MixedModel
from isogloss.tasks.classification import TextClassification
from isogloss.tasks.tagging import Tagging
from isogloss.training.sides import RowPair, collate_pairs
from made_up import TEXT

WORDS = TEXT.split()
TEXTS = [" ".join(WORDS[start : start + size]) for start, size in ((0, 4), (3, 6), (8, 3))]
TRANSLATIONS = [" ".join(WORDS[start : start + size]) for start, size in ((5, 5), (1, 3), (9, 4))]
LABELS = (0, 2, 1)


@pytest.fixture(scope="module")
def tokenizer(bert_folder):
    """The tokenizer of the tiny BERT."""
    return load_tokenizer(bert_folder)


@pytest.fixture
def classifier(bert_folder):
    """A model of transformers that labels texts."""
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_pretrained(bert_folder, num_labels=3).eval()


@pytest.fixture
def tagger(bert_folder):
    """A model of transformers that labels words."""
    from transformers import AutoModelForTokenClassification

    torch.manual_seed(0)
    return AutoModelForTokenClassification.from_pretrained(bert_folder, num_labels=3).eval()


def batch(tokenizer, texts, labels=LABELS):
    inputs = dict(tokenizer(texts, padding=True, return_tensors="pt"))
    return inputs if labels is None else {**inputs, "labels": torch.tensor(labels)}


def method_loss(model, task, sides, layer, ratio):
    """Return the loss of the method on rows that the task encodes."""
    pairs = [RowPair(*pair) for pair in zip(*sides, strict=True)]
    mixed_model = MixedModel(model, Mixup(layer=layer, ratio_module=ratio))
    return XMixup().loss(task, mixed_model, collate_pairs(pairs, padding=0))


def test_of_texts_it_is_the_loss_of_the_method(classifier, tokenizer):
    loss = isogloss.MixupLoss(classifier)
    task = TextClassification(name="topics", labels=("a", "b", "c"))
    sides = [
        task.encode(
            [
                LabelledText(id=text, text=text, label="abc"[label])
                for text, label in zip(side, LABELS, strict=True)
            ],
            tokenizer,
        )
        for side in (TEXTS, TRANSLATIONS)
    ]
    ours = loss(batch(tokenizer, TEXTS), batch(tokenizer, TRANSLATIONS))
    assert torch.equal(ours, method_loss(classifier, task, sides, 1, loss.ratio))


def test_of_words_it_is_the_loss_of_the_method(tagger, tokenizer):
    loss = isogloss.MixupLoss(tagger, layer=2)
    task = Tagging(name="tags", labels=("a", "b", "c"), metric="accuracy")
    inputs = []
    sides = []
    for side in (TEXTS, TRANSLATIONS):
        words = [text.split() for text in side]
        tags = [["abc"[len(word) % 3] for word in text] for text in words]
        sentences = [
            TaggedSentence(id=str(index), words=tuple(text), tags=tuple(text_tag))
            for index, (text, text_tag) in enumerate(zip(words, tags, strict=True))
        ]
        sides.append(task.encode(sentences, tokenizer))
        encoding = tokenizer(words, is_split_into_words=True, padding=True, return_tensors="pt")
        labels = torch.full_like(encoding["input_ids"], -100)
        for row, text in enumerate(tags):
            numbers = encoding.word_ids(row)
            for position, value in enumerate(numbers):
                if value is not None and value != numbers[position - 1]:
                    labels[row, position] = "abc".index(text[value])
        inputs.append({**encoding, "labels": labels})
    assert torch.equal(loss(*inputs), method_loss(tagger, task, sides, 2, loss.ratio))


def test_the_ratio_is_learned_and_the_model_is_not_part_of_the_loss(classifier, tokenizer):
    loss = isogloss.MixupLoss(classifier)
    assert sum(weight.numel() for weight in loss.parameters()) == 2
    loss(batch(tokenizer, TEXTS), batch(tokenizer, TRANSLATIONS)).backward()
    assert all(weight.grad is not None for weight in loss.parameters())
    assert classifier.classifier.weight.grad.abs().sum() > 0


def test_translations_without_labels_have_those_of_the_source(classifier, tokenizer):
    loss = isogloss.MixupLoss(classifier)
    inputs, taken_inputs = (batch(tokenizer, TRANSLATIONS, labels) for labels in (LABELS, None))
    source = batch(tokenizer, TEXTS)
    assert torch.equal(loss(source, inputs), loss(source, taken_inputs))


def test_a_plain_loop_learns(classifier, tokenizer):
    loss = isogloss.MixupLoss(classifier, ratio=0.5)
    optimizer = torch.optim.AdamW([*classifier.parameters(), *loss.parameters()], lr=1e-3)
    values = []
    for _ in range(12):
        value = loss(batch(tokenizer, TEXTS), batch(tokenizer, TRANSLATIONS))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0] / 2


def test_mixing_with_ratio_0_changes_nothing(classifier, tokenizer):
    inputs = batch(tokenizer, TEXTS[:2], None)
    with torch.no_grad():
        plain_logits = classifier(**inputs).logits
        with isogloss.mixing(classifier, layer=1, ratio=0.0, mask=inputs["attention_mask"]):
            mixed_logits = classifier(**inputs).logits
    assert torch.equal(plain_logits, mixed_logits)


def test_mixing_changes_the_second_half_alone(classifier, tokenizer):
    inputs = batch(tokenizer, TEXTS[:2], None)
    with torch.no_grad():
        plain_logits = classifier(**inputs).logits
        with isogloss.mixing(classifier, layer=1, mask=inputs["attention_mask"]):
            mixed_logits = classifier(**inputs).logits
    assert torch.equal(plain_logits[0], mixed_logits[0])
    assert not torch.allclose(plain_logits[1], mixed_logits[1])


def test_what_cannot_be_mixed_is_refused(classifier, tagger, tokenizer):
    with pytest.raises(ConfigError, match="no layer 9"):
        isogloss.MixupLoss(classifier, layer=9)
    with pytest.raises(ConfigError, match="BertModel"):
        isogloss.MixupLoss(classifier.base_model)
    with pytest.raises(ModelError, match="Linear"):
        isogloss.MixupLoss(torch.nn.Linear(1, 1))
    with pytest.raises(DataError, match="3 examples, 2 translations"):
        isogloss.MixupLoss(classifier)(batch(tokenizer, TEXTS), batch(tokenizer, TRANSLATIONS[:2], (0, 1)))
    with pytest.raises(DataError, match="labelled"):
        words = batch(tokenizer, TEXTS, None)
        labels = torch.where(words["attention_mask"].bool(), 0, -100)
        isogloss.MixupLoss(tagger)({**words, "labels": labels}, batch(tokenizer, TRANSLATIONS, None))
