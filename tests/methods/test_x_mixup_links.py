"""X-Mixup by word links: its loss, its neutral setting, its training, and what it cannot do."""

from dataclasses import replace

import pytest
import torch

from in_translation import link_words, sentences, setting
from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.mixup import Mixup, load_mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.methods.x_mixup import MixedModel, XMixup
from isogloss.tasks import TASKS
from isogloss.training.evaluation import evaluation, pair_with_translations
from isogloss.training.sides import RowPair, collate_pairs
from trained import equal

LINKS = XMixup(attends="links", decay=3)
UPOS = TASKS["upos"]


def read(code, *args, **more):
    found = sentences(code, *args, **more)
    return link_words(found) if "-" in code else found


@pytest.fixture
def train(bert_folder, tmp_path, teacher):
    """Train a method in a separate folder. ``read`` returns examples by language."""

    def run(method, name, read=read, **changes):
        given = setting("upos", bert_folder, tmp_path / name, teacher=teacher, **changes)
        return method.train(replace(given, train=read))

    return run


@pytest.fixture
def batch(bert_folder):
    """The first five examples with their translations, in one batch; the first has one link, and so on."""
    tokenizer = load_tokenizer(bert_folder)
    targets = [
        replace(one, links=other.links[: 1 + number])
        for number, (one, other) in enumerate(zip(sentences("en-de", 5), read("en-de", 5), strict=True))
    ]
    sides = [UPOS.encode(some, tokenizer, limit=40, overlap=8) for some in (sentences("en", 5), targets)]
    pairs = [RowPair(source, target, target.links) for source, target in zip(*sides, strict=True)]
    return collate_pairs(pairs, padding=tokenizer.pad_token_id)


def model_of(folder, **changes):
    return MixedModel(UPOS.head(folder, seed=0), Mixup(layer=2, **changes))


def test_the_loss_of_a_batch_is_that_of_its_parts(batch, bert_folder):
    model = model_of(bert_folder, attends="links").eval()
    with torch.no_grad():
        whole = LINKS.loss(UPOS, model, batch)
        for count in (2, 3):
            parts = [share * LINKS.loss(UPOS, model, part) for part, share in batch.parts(count)]
            assert len(parts) == count
            torch.testing.assert_close(sum(parts), whole)
        unlinked = replace(batch, links=torch.zeros_like(batch.links))
        unmixed = LINKS.loss(UPOS, model_of(bert_folder, ratio=0.0).eval(), batch)
        assert torch.equal(LINKS.loss(UPOS, model, unlinked), unmixed) and not torch.isclose(whole, unmixed)


def test_in_neutral_setting_loss_and_gradients_are_the_unmixed_ones_to_the_bit(batch, bert_folder):
    found = []
    for attends in ("links", None):
        model = model_of(bert_folder, ratio=0.0, attends=attends).train()
        torch.manual_seed(0)
        loss = XMixup(attends=attends, ratio=0.0).loss(UPOS, model, batch)
        loss.backward()
        found.append((loss, [one.grad for one in model.parameters() if one.grad is not None]))
    (one, ours), (other, theirs) = found
    assert torch.equal(one, other)
    assert all(map(torch.equal, ours, theirs)) and len(ours) == len(theirs) > 0


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_is_saved_and_reads_links_at_the_test_too(train, bert_folder, tmp_path):
    trained = train(LINKS, "links", learning_rate=1e-2)
    plain = XMixup(decay=3)
    assert not equal(trained, train(plain, "plain", learning_rate=1e-2))
    assert not equal(trained, train(replace(plain, ratio=0.0), "unmixed", learning_rate=1e-2))
    (tmp_path / "saved").mkdir()
    for write in trained.extra_writers:
        write(tmp_path / "saved")
    found = load_mixup(tmp_path / "saved")
    assert (found.attends, found.layer) == ("links", 1)
    assert found.ratio_module.weight.item() != 0
    given = setting("upos", bert_folder, tmp_path)
    own = evaluation(UPOS, given.dev("de"), trained.tokenizer, given.optimization)
    there = link_words(given.dev("en"))
    scorer = pair_with_translations(own, there, trained.tokenizer, given.optimization, mixup=found)
    ratios = scorer.ratios(trained.model)
    assert bool(((ratios > 0) & (ratios < 0.5)).all()) and ratios.std() > 0
    assert 0 <= scorer.score(trained.model) <= 1


def test_translations_without_links_are_refused_before_training(train):
    with pytest.raises(DataError, match=r"en-de: .*\"links\".*24"):
        train(LINKS, "bare", sentences)

    def forgetful(code, *args, **more):
        return read(code, *args, **more) if code != "en-de-en" else sentences(code, *args, **more)

    with pytest.raises(DataError, match="en-de-en: attends"):
        train(LINKS, "forgetful", forgetful)


def test_tasks_whose_examples_have_no_words_are_refused(bert_folder, tmp_path):
    said = "x-mixup: .*=.*nli.*ner.*upos.*="
    with pytest.raises(ConfigError, match=said):
        LINKS.check(TASKS["nli"], None)
    with pytest.raises(ConfigError, match=said):
        LINKS.train(setting("nli", bert_folder, tmp_path))
    LINKS.check(TASKS["ner"], None)
    XMixup(attends="cosine").check(TASKS["nli"], None)
    LINKS.check(TASKS["upos"], load_encoder_config(bert_folder))
    assert LINKS.reads((), ()).links and not XMixup(attends="cosine").reads((), ()).links
