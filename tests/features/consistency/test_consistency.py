"""xTune's example consistency: its loss by hand, its gradients, and plain training on pairs at weight 0."""

from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, softmax

from in_translation import link_words, sentences
from isogloss.core.errors import ConfigError, DataError
from isogloss.data.examples import SentencePair
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.consistency.method import Consistency, inconsistency
from isogloss.tasks import TASKS
from isogloss.tasks.batch import collate
from isogloss.training.fine_tuning import Training, fine_tune
from isogloss.training.pairs import paired_batches
from isogloss.training.setting import Reads
from trained import equal

NLI = TASKS["nli"]
UPOS = TASKS["upos"]
SEEDS = st.integers(0, 10_000)
WORDS = {"en": ("cat", "mat", "dog"), "de": ("hills", "Rome", "things")}


def pairs(language, count=24):
    """The first text's word decides the label. A translation has other words."""
    *_, part = language.split("-")
    return [
        SentencePair(
            id=f"p{n}",
            first=" ".join([WORDS[part][n % 3]] * (1 + n // 3 % 3)),
            second="on the mat" if n % 2 else "slowly",
            label=NLI.labels[n % 3],
        )
        for n in range(count)
    ]


def tagged_sentences(language, count=24):
    """Sentences with tags. Translations also have links."""
    examples = sentences(language, count)
    links = [example.links for example in link_words(examples)] if "-" in language else [None] * count
    return [replace(example, links=link) for example, link in zip(examples, links, strict=True)]


@pytest.fixture
def setting(make_setting, tmp_path):
    def make(name, **changes):
        result = make_setting(("en",), ("de",), folder=tmp_path / name, learning_rate=5e-3)
        return replace(result, **({"task": NLI, "train": pairs, "dev": lambda _: pairs("en", 9)} | changes))

    return make


def scores(seed, rows=4, labels=3):
    return torch.randn(rows, labels, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(SEEDS)
def test_inconsistency_is_the_symmetric_divergence(seed):
    x = scores(seed)
    y = scores(seed + 1)
    p = softmax(x, dim=1)
    q = softmax(y, dim=1)
    manual_mean = (p * (p / q).log() + q * (q / p).log()).sum(dim=1).mean()
    assert float(inconsistency(x, y)) == pytest.approx(float(manual_mean))
    assert float(inconsistency(x, y)) == pytest.approx(float(inconsistency(y, x)))
    assert float(inconsistency(x, x + 5)) == pytest.approx(0, abs=1e-12)


@given(SEEDS)
def test_each_side_is_drawn_to_the_other_as_if_that_stood_still(seed):
    """The gradient of KL(stop(P)‖softmax(y)) at y is Q - P, of the other term at x it is P - Q."""
    x = scores(seed).requires_grad_()
    y = scores(seed + 1).requires_grad_()
    inconsistency(x, y).backward()
    distance = (softmax(y, dim=1) - softmax(x, dim=1)).detach() / len(x)
    assert torch.allclose(y.grad, distance)
    assert torch.allclose(x.grad, -distance)


@pytest.mark.slow
def test_without_weight_it_is_plain_training_on_the_pairs(setting):
    def plain(setting, _model, tokenizer, train):
        batches, _ = paired_batches(setting, tokenizer, train)

        def loss(model, batch):
            gold = torch.cat((batch.source.gold, batch.target.gold))
            return cross_entropy(NLI.scores(model, batch.joined), gold)

        return Training(batches=batches, loss=loss)

    manual_training = fine_tune(setting("hand"), Reads(train=("en", "en-de"), dev=("en",)), prepare=plain)
    ours = Consistency(weight=0.0).train(setting("ours"))
    assert equal(ours, manual_training)
    assert ours.rows == manual_training.rows
    assert not equal(ours, Consistency().train(setting("weighted")))


@pytest.mark.parametrize(("task_loss", "learned_value"), [("both", 8), ("source", 4)])
def test_the_loss_is_that_of_the_task_and_the_weighted_inconsistency(
    setting, bert_folder, task_loss, learned_value
):
    tokenizer = load_tokenizer(bert_folder)
    model = NLI.head(bert_folder, seed=0).eval()
    train = {"en": pairs("en", 4), "en-de": pairs("en-de", 4)}
    batch = paired_batches(setting("x"), tokenizer, train)[0][0]
    gold = torch.cat((batch.source.gold, batch.target.gold))
    method = Consistency(weight=2.0, task_loss=task_loss)
    with torch.no_grad():
        loss = method.loss(NLI, model, batch)
        folder = NLI.scores(model, batch.joined)
    expected = cross_entropy(folder[:learned_value], gold[:learned_value]) + 2 * inconsistency(
        folder[:4], folder[4:]
    )
    assert float(loss) == pytest.approx(float(expected))


@pytest.mark.nightly
@pytest.mark.slow
def test_training_brings_predictions_on_pairs_together(setting, bert_folder):
    def apart(trained):
        encodings, other_encodings = (
            NLI.encode(pairs(name), load_tokenizer(bert_folder)) for name in ("en", "en-de")
        )
        with torch.no_grad():
            sides = [
                NLI.scores(trained.model, collate(rows, padding=0)) for rows in (encodings, other_encodings)
            ]
        return float(inconsistency(*sides))

    method = partial(Consistency, task_loss="source")
    assert apart(method(weight=20.0).train(setting("a"))) < 0.5 * apart(
        method(weight=0.0).train(setting("b"))
    )


def test_it_reads_the_source_and_its_translations_and_no_target_labels():
    text = Consistency().reads(("en",), ("de", "fr"))
    train = ("en", "en-de", "en-fr")
    assert text == Reads(train=train, dev=("en",), teacher=("word",), links=True, sides=2)
    projected_value = Consistency(labels="projected", weight=0.0).reads(("en",), ("de", "fr"))
    assert projected_value == Reads(train=train, dev=("en",), sides=2)


@pytest.mark.parametrize("task_loss", ["both", "source"])
def test_in_tagging_linked_words_are_compared_and_each_side_counts_half(setting, bert_folder, task_loss):
    tokenizer = load_tokenizer(bert_folder)
    model = UPOS.head(bert_folder, seed=0).eval()
    train = {"en": tagged_sentences("en", 6)}
    train["en-de"] = [replace(example, links=example.links[1:]) for example in tagged_sentences("en-de", 6)]
    options = setting("x", task=UPOS)
    batch = paired_batches(
        replace(options, optimization=replace(options.optimization, batch_size=6)), tokenizer, train
    )[0][0]
    method = Consistency(weight=2.0, task_loss=task_loss, labels="projected")
    with torch.no_grad():
        loss = float(method.loss(UPOS, model, batch))
        parts = [share * method.loss(UPOS, model, part) for part, share in batch.parts(3)]
        source, target = batch.split(UPOS.scores(model, batch.joined))
    p = softmax(source, dim=1)
    q = softmax(target, dim=1)
    ours, theirs = (
        {
            (int(row), int(column)): index
            for index, (row, column) in enumerate(zip(side.rows, side.columns, strict=True))
        }
        for side in (batch.source, batch.target)
    )
    pair_ratios = []
    for row in range(6):
        links = [
            (ours[row, s], theirs[row, t])
            for t, s in batch.links[row].nonzero().tolist()
            if (row, s) in ours and (row, t) in theirs
        ]
        divergences = [
            float((p[a] * (p[a] / q[b]).log() + q[b] * (q[b] / p[a]).log()).sum()) for a, b in links
        ]
        pair_ratios.append(sum(divergences) / max(1, len(divergences)))
    expected = cross_entropy(source, batch.source.gold)
    if task_loss == "both":
        expected = (expected + cross_entropy(target, batch.target.gold)) / 2
    assert sum(pair_ratios) > 0
    assert loss == pytest.approx(float(expected) + 2 * sum(pair_ratios) / 6, rel=1e-5)
    assert len(parts) == 3 and float(sum(parts)) == pytest.approx(loss, rel=1e-5)


@pytest.mark.nightly
@pytest.mark.slow
def test_in_tagging_it_learns_a_teachers_labels_or_projected_ones_of_linked_words(
    setting, bert_folder, teacher
):
    options = {
        "task": UPOS,
        "train": tagged_sentences,
        "dev": lambda _: sentences("en", 9),
        "teacher": str(teacher),
    }
    taught_training = Consistency().train(setting("taught", **options))
    projected_training = Consistency(labels="projected").train(
        setting("projected", **{**options, "teacher": ""})
    )
    distance = Consistency(labels="projected", weight=0.0).train(
        setting("apart", **{**options, "teacher": ""})
    )
    assert not equal(taught_training, projected_training) and not equal(projected_training, distance)
    with pytest.raises(DataError, match=r"en-de: .*consistency"):
        Consistency(labels="projected").train(setting("bare", **{**options, "train": sentences}))


@pytest.mark.parametrize("task", ["parsing", "qa"])
def test_tasks_on_places_are_refused_with_the_reason(setting, task):
    with pytest.raises(ConfigError, match=f"'{task}'.*translate-train"):
        Consistency().train(replace(setting("x"), task=TASKS[task]))


def test_without_a_target_there_are_no_translations(setting):
    with pytest.raises(ConfigError, match="source-only"):
        Consistency().train(setting("x", target=()))


def test_examples_without_translation_are_counted(setting):
    def train(language):
        return pairs(language, 20 if "-" in language else 24)

    training = Consistency().train(setting("x", train=train))
    assert "4 " in training.warnings[0]
