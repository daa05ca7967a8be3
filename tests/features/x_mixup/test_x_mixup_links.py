"""X-Mixup by word links: its loss, its neutral setting, its training, and what it cannot do."""

from dataclasses import replace

import pytest
import torch

from in_translation import link_words, sentences, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.mixup import Mixup, load_mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.x_mixup.method import XMixup
from isogloss.features.x_mixup.mixed_model import MixedModel
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation, pair_with_translations
from isogloss.training.sides import RowPair, collate_pairs
from trained import equal

LINKS = XMixup(attends="links", decay=3)
UPOS = TASKS["upos"]


def read(language, *args, **more):
    result = sentences(language, *args, **more)
    return link_words(result) if "-" in language else result


@pytest.fixture
def train(bert_folder, tmp_path, teacher):
    """Train a method in a separate folder. ``read`` returns examples by language."""

    def run(method, name, read=read, **changes):
        inputs = setting("upos", bert_folder, tmp_path / name, teacher=teacher, **changes)
        return method.train(replace(inputs, train=read))

    return run


@pytest.fixture
def batch(bert_folder):
    """The first five examples with their translations, in one batch. The first has one link, and so on."""
    tokenizer = load_tokenizer(bert_folder)
    targets = [
        replace(sentence, links=example.links[: 1 + index])
        for index, (sentence, example) in enumerate(zip(sentences("en-de", 5), read("en-de", 5), strict=True))
    ]
    sides = [UPOS.encode(items, tokenizer, limit=40, overlap=8) for items in (sentences("en", 5), targets)]
    pairs = [RowPair(source, target, target.links) for source, target in zip(*sides, strict=True)]
    return collate_pairs(pairs, padding=tokenizer.pad_token_id)


def model_of(folder, **changes):
    return MixedModel(UPOS.head(folder, seed=0), Mixup(layer=2, **changes))


def test_the_loss_of_a_batch_is_that_of_its_parts(batch, bert_folder):
    model = model_of(bert_folder, attends="links").eval()
    with torch.no_grad():
        whole_loss = LINKS.loss(UPOS, model, batch)
        for count in (2, 3):
            parts = [share * LINKS.loss(UPOS, model, part) for part, share in batch.parts(count)]
            assert len(parts) == count
            torch.testing.assert_close(sum(parts), whole_loss)
        unlinked_batch = replace(batch, links=torch.zeros_like(batch.links))
        unmixed_loss = LINKS.loss(UPOS, model_of(bert_folder, ratio=0.0).eval(), batch)
        assert torch.equal(LINKS.loss(UPOS, model, unlinked_batch), unmixed_loss) and not torch.isclose(
            whole_loss, unmixed_loss
        )


def test_in_neutral_setting_loss_and_gradients_are_the_unmixed_ones_to_the_bit(batch, bert_folder):
    losses = []
    for attends in ("links", None):
        model = model_of(bert_folder, ratio=0.0, attends=attends).train()
        torch.manual_seed(0)
        loss = XMixup(attends=attends, ratio=0.0).loss(UPOS, model, batch)
        loss.backward()
        losses.append(
            (loss, [parameter.grad for parameter in model.parameters() if parameter.grad is not None])
        )
    (item, ours), (other_item, theirs) = losses
    assert torch.equal(item, other_item)
    assert all(map(torch.equal, ours, theirs)) and len(ours) == len(theirs) > 0


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_is_saved_and_reads_links_at_the_test_too(train, bert_folder, tmp_path):
    training = train(LINKS, "links", learning_rate=1e-2)
    plain_x_mixup = XMixup(decay=3)
    assert not equal(training, train(plain_x_mixup, "plain", learning_rate=1e-2))
    assert not equal(training, train(replace(plain_x_mixup, ratio=0.0), "unmixed", learning_rate=1e-2))
    (tmp_path / "saved").mkdir()
    for write in training.extra_writers:
        write(tmp_path / "saved")
    mixup = load_mixup(tmp_path / "saved")
    assert (mixup.attends, mixup.layer) == ("links", 1)
    assert mixup.ratio_module.weight.item() != 0
    inputs = setting("upos", bert_folder, tmp_path)
    own_evaluation = evaluation(UPOS, inputs.dev("de"), training.tokenizer, inputs.optimization)
    words = link_words(inputs.dev("en"))
    scorer = pair_with_translations(
        own_evaluation, words, training.tokenizer, inputs.optimization, mixup=mixup
    )
    ratios = scorer.ratios(training.model)
    assert bool(((ratios > 0) & (ratios < 0.5)).all()) and ratios.std() > 0
    assert 0 <= scorer.score(training.model) <= 1


def test_translations_without_links_are_refused_before_training(train):
    with pytest.raises(DataError, match=r"en-de: .*\"links\".*24"):
        train(LINKS, "bare", sentences)

    def forgetful(language, *args, **more):
        return read(language, *args, **more) if language != "en-de-en" else sentences(language, *args, **more)

    with pytest.raises(DataError, match="en-de-en: attends"):
        train(LINKS, "forgetful", forgetful)


def test_tasks_whose_examples_have_no_words_are_refused(bert_folder, tmp_path):
    text = "x-mixup: .*=.*nli.*ner.*upos.*="
    with pytest.raises(ConfigError, match=text):
        LINKS.check(TASKS["nli"], None)
    with pytest.raises(ConfigError, match=text):
        LINKS.train(setting("nli", bert_folder, tmp_path))
    LINKS.check(TASKS["ner"], None)
    XMixup(attends="cosine").check(TASKS["nli"], None)
    LINKS.check(TASKS["upos"], load_encoder_config(bert_folder))
    assert LINKS.reads((), ()).links and not XMixup(attends="cosine").reads((), ()).links
