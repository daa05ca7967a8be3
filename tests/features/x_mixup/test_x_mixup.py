"""X-Mixup, equation by equation, and its schedule."""

import hashlib
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

import isogloss
from in_translation import READ, pairs, sentences, setting, without_tags
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.identity import content
from isogloss.core.run_parts import Optimization
from isogloss.data.sources import Sources
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.mixup import Mixup, load_mixup, mixing
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.x_mixup.method import SourceSchedule, XMixup, mixup_task, share_of_real
from isogloss.features.x_mixup.mixed_model import MixedModel
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.training.batching import Bucketed
from isogloss.training.evaluation import evaluation, pair_with_translations
from isogloss.training.pairs import paired_batches, pseudo_labels
from isogloss.training.sides import RowPair, collate_pairs
from trained import equal, interrupt_batches, weights

NEUTRAL = XMixup(ratio=0.0, mse=0.0, kl=0.0, schedule=False)


def save_trained(training, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for write in training.extra_writers:
        write(folder)
    return load_mixup(folder)


@pytest.fixture
def train(bert_folder, tmp_path, teacher):
    """Train a method on a task in a separate folder."""

    def run(method, task="nli", *, name="", start=None, **changes):
        described_digest = hashlib.sha256(f"{method}{task}{changes}".encode()).hexdigest()[:16]
        folder = tmp_path / (name or described_digest)
        return method.train(
            setting(task, start or bert_folder, folder, teacher=teacher if task == "upos" else "", **changes)
        )

    return run


def batch_of(task, tokenizer, *, soft=None):
    """The first five examples with their translations, in one batch."""
    read = {"nli": pairs, "upos": sentences}[task]
    rows = [
        TASKS[task].encode(read(language, 5), tokenizer, limit=40, overlap=8) for language in ("en", "en-de")
    ]
    targets = [replace(row, soft=soft[row.example] if soft else None) for row in rows[1]]
    return collate_pairs(list(map(RowPair, rows[0], targets)), padding=tokenizer.pad_token_id)


def mixed_model(task, folder, **changes):
    return MixedModel(TASKS[task].head(folder, seed=0), Mixup(layer=2, **changes))


@pytest.mark.slow
def test_without_a_target_it_is_plain_fine_tuning_to_the_bit(train):
    assert equal(train(XMixup(), target=()), train(SourceOnly(), target=()))


def test_the_loss_is_the_equation(bert_folder):
    """Compute Eqs 7 and 8 in loops over the mixed model's scores of each pair."""
    task = TASKS["nli"]
    model = mixed_model("nli", bert_folder)
    batch = batch_of("nli", load_tokenizer(bert_folder))
    network = model.network
    mask = batch.joined.mask
    with torch.no_grad(), mixing(network, model.mixup, mask):
        states = network.base_model(**batch.joined.inputs()).last_hidden_state
    with torch.no_grad(), mixing(network, model.mixup, mask):
        p = task.scores(network, batch.joined).softmax(dim=1).tolist()
    gold = batch.source.gold.tolist()
    assert gold == batch.target.gold.tolist()
    source = -sum(math.log(p[n][gold[n]]) for n in range(5)) / 5
    target = -sum(math.log(p[5 + n][gold[n]]) for n in range(5)) / 5
    kl = sum(s * math.log(s / t) for n in range(5) for s, t in zip(p[n], p[5 + n], strict=True)) / 5
    r = [states[n, : int(mask[n].sum())].mean(dim=0) for n in range(10)]
    mse = sum(float((r[n] - r[5 + n]).square().mean()) for n in range(5)) / 5
    for method, expected in (
        (XMixup(), 0.4 * source + 0.6 * target + mse + kl),
        (XMixup(alpha=0.9), 0.9 * source + 0.1 * target + mse + kl),
        (XMixup(mse=0.0), 0.4 * source + 0.6 * target + kl),
        (XMixup(kl=0.0), 0.4 * source + 0.6 * target + mse),
        (XMixup(kl=0.0, mse=0.0), 0.4 * source + 0.6 * target),
        (XMixup(kl=0.25, mse=3.0), 0.4 * source + 0.6 * target + 3 * mse + 0.25 * kl),
    ):
        assert method.loss(task, model, batch).item() == pytest.approx(expected, abs=2e-5)
    assert kl > 0
    assert mse > 0


@pytest.mark.parametrize("name", ["nli", "upos", "qa", "multiple-choice"])
def test_the_loss_of_a_batch_is_that_of_its_parts(name, bert_folder):
    """The sides have unequal numbers of labels, and so have the parts."""
    task = TASKS[name]
    model = mixed_model(name, bert_folder)
    tokenizer = load_tokenizer(bert_folder)
    rows = [
        task.encode(
            [example for example in READ[name](language, 8) if name != "qa" or example.id != "0"][:5],
            tokenizer,
        )
        for language in ("en", "en-de")
    ]
    batch = collate_pairs(list(map(RowPair, *rows)), padding=tokenizer.pad_token_id)
    with torch.no_grad():
        whole_loss = XMixup().loss(task, model, batch)
        parts = [share * XMixup().loss(task, model, part) for part, share in batch.parts(3)]
    assert len(parts) == 3
    torch.testing.assert_close(sum(parts), whole_loss)


@pytest.mark.parametrize("back", [True, False])
def test_a_back_translated_batch_has_the_loss_of_its_target_alone_where_released(bert_folder, back):
    """With mse = 0 in tagging that is all there is: CE of the target, with weight 1."""
    task = TASKS["upos"]
    model = mixed_model("upos", bert_folder, learned=False)
    batch = replace(batch_of("upos", load_tokenizer(bert_folder)), back=back)
    with torch.no_grad(), batch.mixing(model.network, model.mixup):
        source, target = batch.split(task.scores(model.network, batch.joined))
    sides = [cross_entropy(source, batch.source.gold), cross_entropy(target, batch.target.gold)]
    method = XMixup(mse=0.0, back_loss="target")
    expected = sides[1] if back else 0.8 * sides[0] + 0.2 * sides[1]
    with torch.no_grad():
        assert torch.allclose(method.loss(task, model, batch), expected)
        plain_losses = [
            XMixup(mse=0.0).loss(task, model, item) for item in (batch, replace(batch, back=False))
        ]
        assert torch.equal(*plain_losses)
    assert {part.back for part, _ in batch.parts(2)} == {back}
    labelled_batch = replace(batch_of("nli", load_tokenizer(bert_folder)), back=back)
    known_nli = TASKS["nli"]
    model = mixed_model("nli", bert_folder)
    with torch.no_grad():
        assert torch.equal(
            *(way.loss(known_nli, model, labelled_batch) for way in (XMixup(), XMixup(back_loss="target")))
        )


def test_batches_know_whether_their_sources_are_back_translations(bert_folder, tmp_path):
    drawn_source_schedule = SourceSchedule(k=2, seed=0, sampling="batch")
    result = setting("nli", bert_folder, tmp_path, epochs=3)
    train = {language: pairs(language) for language in ("en", "en-de", "en-de-en")}
    tokenizer = load_tokenizer(bert_folder)
    batches, _ = paired_batches(result, tokenizer, train, takes_real=drawn_source_schedule.takes_real)
    assert [batches[step].back for step in range(len(batches))] == [
        not drawn_source_schedule.takes_real(step, 1)[0] for step in range(len(batches))
    ]
    assert {batches[step].back for step in range(len(batches))} == {True, False}


def test_the_source_is_paired_with_itself_under_its_own_labels(bert_folder, tmp_path):
    result = setting("upos", bert_folder, tmp_path, epochs=1)
    train = {language: sentences(language) for language in ("en", "en-de")}
    tokenizer = load_tokenizer(bert_folder)
    plain_paired_batch, _ = paired_batches(result, tokenizer, train)
    batches, _ = paired_batches(result, tokenizer, train, itself=True)
    assert len(batches) == 2 * len(plain_paired_batch)
    sides = [batches[step] for step in range(len(batches))]
    same_batches = [batch for batch in sides if torch.equal(batch.source.subwords, batch.target.subwords)]
    assert len(same_batches) == len(plain_paired_batch)
    assert all(torch.equal(batch.source.gold, batch.target.gold) for batch in same_batches)
    assert {batch.joined.languages[0] for batch in same_batches} == {"en"}
    assert XMixup(source_as_target=True).reads(("en",), ("de",)).itself


def test_fields_that_are_left_out_are_in_no_id():
    assert content(XMixup()).keys().isdisjoint({"back_loss", "source_as_target"})
    assert content(Optimization()).keys().isdisjoint({"dev"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"back_loss": "target", "sampling": "example"}, 'back_loss = "target"'),
        ({"source_as_target": True, "attends": "links"}, "source_as_target"),
    ],
)
def test_fields_that_exclude_each_other_are_refused(fields, message):
    with pytest.raises(ConfigError, match=message):
        XMixup(**fields)


def test_in_tagging_the_targets_labels_are_probabilities_and_there_is_no_kl(bert_folder, teacher):
    task = TASKS["upos"]
    model = mixed_model("upos", bert_folder, ratio=0.0)
    translations = without_tags(sentences("en-de", 5))
    optimization = setting("upos", bert_folder, teacher).optimization
    soft = pseudo_labels(task, str(teacher), translations, optimization)
    batch = batch_of("upos", load_tokenizer(bert_folder), soft=soft)
    with torch.no_grad():
        source, target = batch.split(task.scores(model.network, batch.joined))
    logs = target.log_softmax(dim=1)
    total = 0.0
    for place, labels in enumerate(torch.cat(soft).float()):
        total -= float((labels * logs[place]).sum()) / len(target)
    expected = 0.8 * cross_entropy(source, batch.source.gold).item() + 0.2 * total
    for method in (XMixup(mse=0.0), XMixup(mse=0.0, kl=0.0)):
        assert method.loss(task, model, batch).item() == pytest.approx(expected, abs=1e-5)


def test_pseudo_labels_are_the_teachers_probabilities(bert_folder, teacher):
    task = TASKS["upos"]
    examples = without_tags(sentences("en-de", 6, longest=60))
    optimization = setting("upos", bert_folder, teacher).optimization
    soft = pseudo_labels(task, str(teacher), examples, optimization)
    prepared_evaluation = evaluation(task, examples, load_tokenizer(teacher), optimization)
    assert len(prepared_evaluation.rows) > len(
        examples
    )  # Windows: each word's are from the one that owns it.
    predictions = prepared_evaluation.predict(task.head(teacher, seed=0))
    for labels, tags, example in zip(soft, predictions, examples, strict=True):
        assert [task.labels[n] for n in labels.argmax(dim=1).tolist()] == list(tags)
        assert labels.shape == (len(example.words), 17)
        assert torch.allclose(labels.float().sum(dim=1), torch.ones(len(labels)), atol=5e-3)


@pytest.mark.parametrize("task", ["nli", "upos", "qa", "multiple-choice"])
def test_in_neutral_setting_loss_and_gradients_are_the_plain_models_to_the_bit(bert_folder, task):
    tokenizer = load_tokenizer(bert_folder)
    read = setting(task, bert_folder, bert_folder).train
    ids = {example.id for example in read("en-de")}
    sides = [
        TASKS[task].encode(
            [example for example in read(language) if example.id in ids], tokenizer, limit=40, overlap=8
        )[:6]
        for language in ("en", "en-de")
    ]
    batch = collate_pairs(list(map(RowPair, *sides)), padding=tokenizer.pad_token_id)
    ours = MixedModel(TASKS[task].head(bert_folder, seed=0), Mixup(layer=1, ratio=0.0)).train()
    plain_training = TASKS[task].head(bert_folder, seed=0).train()
    torch.manual_seed(0)
    loss = replace(NEUTRAL, alpha=0.25).loss(TASKS[task], ours, batch)
    loss.backward()
    torch.manual_seed(0)
    scores = TASKS[task].scores(plain_training, batch.joined)
    midpoint = batch.source.scored
    parts = (scores[:midpoint], batch.source), (scores[midpoint:], batch.target)
    manual_value = 0.25 * TASKS[task].loss_of(*parts[0]) + 0.75 * TASKS[task].loss_of(*parts[1])
    manual_value.backward()
    assert torch.equal(loss, manual_value)
    theirs = dict(plain_training.named_parameters())
    for name, weight in ours.network.named_parameters():
        same_grad = theirs[name].grad
        assert (weight.grad is None and same_grad is None) or torch.equal(weight.grad, same_grad)
    assert [name for name, _ in ours.named_parameters() if not name.startswith("network.")] == []


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("task", ["nli", "upos", "qa"])
def test_without_a_ratio_the_layer_decides_nothing(train, task):
    training, other_training = (train(replace(NEUTRAL, layer=layer), task) for layer in (1, 3))
    assert equal(training, other_training)
    assert training.rows == other_training.rows


@pytest.mark.slow
@pytest.mark.parametrize(("task", "sampling"), [("nli", "example"), ("upos", "batch")])
def test_a_training_that_was_interrupted_ends_as_if_it_was_not(train, tmp_path, monkeypatch, task, sampling):
    method = XMixup(decay=3, sampling=sampling)
    whole_training = train(method, task, name="whole")
    with interrupt_batches(Bucketed, monkeypatch, at=5):
        train(method, task, name="x")
    again = train(method, task, name="x")
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows
    mixup_before = save_trained(whole_training, tmp_path / "a")
    mixup_after = save_trained(again, tmp_path / "b")
    assert torch.equal(mixup_before.ratio_module.weight, mixup_after.ratio_module.weight)
    assert torch.equal(mixup_before.ratio_module.bias, mixup_after.ratio_module.bias)


@pytest.mark.nightly
@pytest.mark.slow
def test_every_switch_makes_another_model_and_every_seed(train):
    plain_training = train(XMixup(decay=3))
    changes = [
        {"ratio": 0.0}, {"ratio": 0.2}, {"learned_ratio": False}, {"schedule": False}, {"mse": 0.0},
        {"kl": 0.0}, {"alpha": 0.5}, {"layer": 2}, {"sampling": "example"}, {"residual": "summed"},
        {"attends": "cosine"},
    ]  # fmt: skip
    for change in changes:
        assert not equal(train(replace(XMixup(decay=3), **change)), plain_training), change
    assert not equal(train(XMixup(decay=3), seed=1), plain_training)
    assert equal(train(XMixup(decay=3), name="again"), plain_training)


@pytest.mark.nightly
@pytest.mark.slow
def test_the_sources_are_real_at_first_and_translated_back_at_last(train, monkeypatch):
    subwords = []
    loss = XMixup.loss

    def noting(self, task, model, batch):
        subwords.append(batch.source.subwords)
        return loss(self, task, model, batch)

    monkeypatch.setattr(XMixup, "loss", noting)
    train(XMixup(decay=2), name="decays", epochs=2)
    decaying = list(subwords)
    subwords.clear()
    train(XMixup(schedule=False), name="stays", epochs=2)
    same_value = [torch.equal(left, right) for left, right in zip(decaying, subwords, strict=True)]
    assert same_value[0]
    assert not same_value[-1]


@pytest.mark.parametrize(
    ("method", "messages"), [(XMixup(), True), (XMixup(decay=2), False), (XMixup(schedule=False), False)]
)
def test_a_training_too_short_for_its_schedule_is_told_of(train, method, messages):
    warnings = [warning for warning in train(method).warnings if "too short for its decay" in warning]
    assert len(warnings) == messages
    assert all("took back-translations in 0 of " in warning for warning in warnings)


def test_back_translations_are_read_for_the_schedule_alone():
    text = XMixup().reads(("en",), ("de", "sw"))
    assert text.train == ("en", "en-de", "en-sw", "en-de-en", "en-sw-en")
    assert text.dev == ("en",)
    assert XMixup(schedule=False).reads(("en",), ("de",)).train == ("en", "en-de")


@pytest.mark.slow
def test_tags_of_translations_are_never_looked_at(train, monkeypatch):
    plain_training = train(XMixup(decay=3), "upos", name="plain")

    def lying(language, *args, **more):
        result = sentences(language, *args, **more)
        return without_tags(result) if "-" in language else result

    monkeypatch.setitem(READ, "upos", lying)
    assert equal(train(XMixup(decay=3), "upos", name="lying"), plain_training)


def test_tagging_needs_a_teacher_of_the_same_labels(bert_folder, tmp_path):
    with pytest.raises(ConfigError, match=r"upos: .*Setting\.teacher"):
        XMixup().train(setting("upos", bert_folder, tmp_path))
    with pytest.raises(ModelError, match=r"upos:.*LABEL_0.*source-only"):
        XMixup().train(setting("upos", bert_folder, tmp_path, teacher=bert_folder))
    text = XMixup().reads(("en",), ("sw",))
    assert text.needs_teacher(TASKS["ner"]) and not text.needs_teacher(TASKS["nli"])


@pytest.mark.nightly
@pytest.mark.slow
def test_projected_tags_are_learned_as_gold_without_a_teacher(train, monkeypatch):
    """With the other parts off they are learned as a sure teacher's probabilities are."""
    plain_result = {"schedule": False, "mse": 0.0, "ratio": 0.0}
    text = XMixup(labels="projected").reads(("en",), ("sw",))
    assert not any(text.needs_teacher(task) for task in TASKS.values())
    projected_training = train(XMixup(labels="projected", **plain_result), "upos", name="projected")
    tags = {example.id: example.tags for example in sentences("en-de")}

    def sure(task, _teacher, examples, _optimization, *, language):
        numbers = [
            torch.tensor([task.labels.index(value) for value in tags[example.id]]) for example in examples
        ]
        return [torch.nn.functional.one_hot(row, len(task.labels)).half() for row in numbers]

    assert not equal(train(XMixup(**plain_result), "upos", name="taught"), projected_training)
    monkeypatch.setattr("isogloss.training.pairs.pseudo_labels", sure)
    certain = train(XMixup(**plain_result), "upos", name="sure")
    for weight, other_weight in zip(
        weights(certain).values(), weights(projected_training).values(), strict=True
    ):
        torch.testing.assert_close(weight, other_weight, atol=2e-5, rtol=1e-4)


@pytest.mark.slow
def test_examples_without_a_translation_are_left_out_and_told_of(train):
    warning = train(XMixup(), "qa").warnings[0]
    assert "3 " in warning
    assert not any("no translation" in item for item in train(XMixup()).warnings)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "task"),
    [("bert", "nli"), ("bert", "upos"), ("bert", "qa"), ("xlm-roberta", "upos"), ("distilbert", "qa")],
)
def test_every_post_norm_family_learns_a_ratio_that_tells_examples_apart(
    request, tmp_path, family, task, teacher
):
    start = request.getfixturevalue(f"{family.replace('-', '_')}_folder")
    model = setting(task, start, tmp_path / "work", teacher=teacher, learning_rate=1e-2)
    training = XMixup().train(model)
    mixup = save_trained(training, tmp_path / "model")
    assert mixup.layer == {"nli": 1, "upos": 1, "qa": 2}[task]
    assert mixup.ratio_module.weight.item() != 0
    read = model.dev
    own_evaluation = evaluation(model.task, read("de"), training.tokenizer, model.optimization)
    scorer = pair_with_translations(
        own_evaluation, read("en"), training.tokenizer, model.optimization, mixup=mixup
    )
    ratios = scorer.ratios(training.model)
    assert ratios.shape == (len(read("de")),)
    assert bool(((ratios > 0) & (ratios < 0.5)).all())
    assert ratios.std() > 0
    assert 0 <= scorer.score(training.model) <= 1


@pytest.mark.nightly
@pytest.mark.slow
def test_the_faster_the_ratio_learns_the_more_it_tells_examples_apart(train, tmp_path):
    spreads = []
    for times in (None, 1.0, 30.0):
        training = train(XMixup(ratio_rate=times))
        mixup = save_trained(training, tmp_path / f"saved {times}")
        model = setting("nli", "", tmp_path)
        own_evaluation = evaluation(model.task, model.dev("de"), training.tokenizer, model.optimization)
        scorer = pair_with_translations(
            own_evaluation, model.dev("en"), training.tokenizer, model.optimization, mixup=mixup
        )
        spreads.append(float(scorer.ratios(training.model).std()))
    assert spreads[0] == spreads[1] and 0 < 10 * spreads[1] < spreads[2]


@pytest.mark.parametrize("family", ["deberta_v2", "modernbert"])
def test_families_that_cannot_mix_are_refused_before_training(request, tmp_path, family):
    start = request.getfixturevalue(f"{family}_folder")
    with pytest.raises(ModelError, match=r"bert.*camembert.*distilbert"):
        XMixup().check(TASKS["nli"], load_encoder_config(start))
    with pytest.raises(ModelError, match=r"bert.*camembert.*distilbert"):
        XMixup().train(setting("nli", start, tmp_path))


@pytest.mark.each_value
@pytest.mark.parametrize("task", ["nli", "upos"])
@pytest.mark.parametrize("family", ["deberta_v2", "modernbert", "gemma3_text", "llama"])
def test_by_states_every_family_is_trained_and_what_is_saved_mixes_again(
    request, tmp_path, train, family, task
):
    method = XMixup(mixed="states", ratio_rate=30.0)
    training = train(method, task, start=request.getfixturevalue(f"{family}_folder"))
    mixup = save_trained(training, tmp_path / "saved")
    own_setting = setting(task, "", tmp_path)
    assert mixup.mixed == "states" and mixup.ratio_module.weight.item() != 0
    single_evaluation = evaluation(
        own_setting.task, own_setting.dev("de"), training.tokenizer, own_setting.optimization
    )
    paired_value = pair_with_translations(
        single_evaluation, own_setting.dev("en"), training.tokenizer, own_setting.optimization, mixup=mixup
    )
    unmixed_scores, mixed_scores = (
        scorer.scores(training.model) for scorer in (single_evaluation, paired_value)
    )
    assert len(unmixed_scores) == len(mixed_scores) and not any(
        map(torch.equal, unmixed_scores, mixed_scores)
    )


def test_without_a_ratio_mixing_states_trains_as_attention_does_to_the_bit(train):
    assert equal(train(XMixup(ratio=0.0, mixed="states")), train(XMixup(ratio=0.0)))


def test_states_have_no_residual_of_their_own():
    with pytest.raises(ConfigError, match='= "summed"'):
        XMixup(residual="summed", mixed="states")


def test_tasks_and_layers_it_cannot_do_are_refused(bert_folder):
    config = load_encoder_config(bert_folder)
    with pytest.raises(
        ConfigError,
        match=r"'parsing'.*multiple-choice, ner, nli, pair-regression",
    ):
        XMixup().check(TASKS["parsing"], config)
    with pytest.raises(ConfigError, match="layer 4"):
        XMixup(layer=4).check(TASKS["nli"], config)
    XMixup(layer=3).check(TASKS["nli"], config)


@pytest.mark.parametrize(
    ("task", "layers"),
    [
        ("nli", {1: 1, 3: 1, 4: 1, 6: 1, 12: 1, 24: 1}),
        ("upos", {1: 1, 3: 1, 4: 1, 6: 2, 12: 4, 24: 4}),
        ("qa", {1: 1, 3: 2, 4: 3, 6: 4, 12: 8, 24: 16}),
    ],
)
def test_layers_are_the_papers_and_keep_their_proportion(task, layers):
    assert {count: mixup_task(TASKS[task]).layer_of(count) for count in layers} == layers


def test_defaults_are_those_of_table_10():
    expected = {
        "nli": (0.4, 1000),
        "paraphrase": (0.4, 1000),
        "upos": (0.8, 1000),
        "ner": (0.8, 1000),
        "qa": (0.2, 2000),
    }
    assert {
        name: (kind.alpha, kind.decay) for name in expected for kind in (mixup_task(TASKS[name]),)
    } == expected
    assert XMixup().ratio == 0.5


@pytest.mark.nightly
@pytest.mark.slow
def test_it_trains_on_the_built_in_languages_and_predicts_pair_with_translations(tmp_path):
    """NLI in two languages: trained, saved, loaded by transformers, scored with and without mixing."""
    from transformers import AutoModelForSequenceClassification

    read = Sources()
    shipped_folder = Path(isogloss.__file__).parent / "shipped"

    def examples(split, count):
        return lambda language: read.examples("xnli", language, split, examples=count)

    model = replace(
        setting("nli", shipped_folder, tmp_path / "work", learning_rate=5e-4, batch_size=32, limit=128),
        train=examples("train", 300),
        dev=examples("dev", 100),
        source=("qaa",),
        target=("qab",),
    )
    training = XMixup(decay=100).train(model)
    losses = [row["loss"] for row in training.rows if "loss" in row]
    assert all(math.isfinite(loss) for loss in losses)
    save_model(training.model, training.tokenizer, tmp_path / "model", extra_writers=training.extra_writers)
    loaded_model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "model")
    assert all(
        torch.equal(weight, dict(loaded_model.named_parameters())[name])
        for name, weight in weights(training).items()
    )
    dev = model.dev("qab")
    back = model.dev("qab-qaa")
    mixup = load_mixup(tmp_path / "model")
    plain_evaluation = evaluation(model.task, dev, training.tokenizer, model.optimization)
    scorer = pair_with_translations(
        plain_evaluation, back, training.tokenizer, model.optimization, mixup=mixup
    )
    ratios = scorer.ratios(loaded_model)
    assert ratios.std() > 0
    assert bool(((ratios > 0) & (ratios < 0.5)).all())
    assert scorer.predict(loaded_model) == scorer.predict(training.model)
    assert len(plain_evaluation.predict(loaded_model)) == len(scorer.predict(loaded_model)) == 100


@given(st.integers(0, 20_000), st.integers(30, 5000))
def test_the_share_is_the_inverse_sigmoid_decay(step, k):
    assert share_of_real(step, k) == pytest.approx(k / (k + math.exp(step / k)), rel=1e-9)


@pytest.mark.parametrize(
    ("step", "k", "share"),
    [(0, 1000, 0.999001), (1000, 1000, 0.997289), (5000, 1000, 0.870767), (6908, 1000, 0.499939),
     (10_000, 1000, 0.043428), (10_000, 2000, 0.930920), (10**9, 1000, 0.0)],
)  # fmt: skip
def test_the_share_falls_as_the_paper_has_it(step, k, share):
    assert share_of_real(step, k) == pytest.approx(share, abs=1e-6)


@given(st.integers(0, 30_000), st.integers(1, 3000))
def test_the_share_never_rises_and_is_a_probability(step, k):
    assert 0 <= share_of_real(step + 1, k) <= share_of_real(step, k) <= 1


@pytest.mark.parametrize("sampling", ["batch", "example"])
def test_what_a_step_takes_follows_from_seed_and_step_alone(sampling):
    def draws(seed, steps):
        return [SourceSchedule(k=50, seed=seed, sampling=sampling).takes_real(step, 6) for step in steps]

    assert draws(0, range(300)) == list(reversed(draws(0, reversed(range(300)))))
    assert draws(0, range(300)) != draws(1, range(300))


def test_a_batch_draws_once_and_examples_each_for_themselves():
    steps = range(100, 300)
    batches = [SourceSchedule(k=50, seed=0, sampling="batch").takes_real(step, 6) for step in steps]
    element = [SourceSchedule(k=50, seed=0, sampling="example").takes_real(step, 6) for step in steps]
    assert all(len(set(batch)) == 1 for batch in batches)
    assert any(len(set(item)) == 2 for item in element)
    assert {batch[0] for batch in batches} == {True, False}


@pytest.mark.parametrize("sampling", ["batch", "example"])
@pytest.mark.parametrize("step", [0, 196, 300])
def test_real_sources_are_as_frequent_as_the_share_says(sampling, step):
    samples = [SourceSchedule(k=50, seed=seed, sampling=sampling).takes_real(step, 4) for seed in range(1000)]
    frequency = sum(sum(sample) for sample in samples) / 4000
    assert frequency == pytest.approx(share_of_real(step, 50), abs=0.05)
