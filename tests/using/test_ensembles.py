"""Several models predict by the mean of their probabilities: as transformers has them, and copies as one."""

from copy import deepcopy
from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import nn

from isogloss.core.errors import ConfigError
from isogloss.data.examples import TaggedSentence
from isogloss.encoders.mixup import Mixup
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.metrics.labels import repair
from isogloss.tasks import ALL_TASKS
from isogloss.using import Model, ensemble, load_model
from isogloss.using.kinds import kind_of
from isogloss.using.provenance import Provenance
from task_examples import SMALL_TASKS, examples_of

AVERAGED = sorted(name for name, task in ALL_TASKS.items() if kind_of(task).probabilities is not None)
REFUSED = sorted(ALL_TASKS.keys() - set(AVERAGED))
REORDERED = ("word-tagging", "text-classification", "pair-classification", "multi-label-classification")
"""Tasks whose labels may be in any order."""


def make(name, folder, *, seed=0, order=None, limit=32, run="", mixes=False):
    """Create a model with a random head, with its labels in a given order."""
    task = SMALL_TASKS[name]
    if order is not None:
        task = replace(task, labels=tuple(task.labels[index] for index in order))
    network = task.head(folder, seed=seed).eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3 * parameter.square().mean().sqrt())
    provenance = Provenance(
        run=run or f"run{seed}",
        title="t",
        task=name,
        corpus="ud",
        method="source-only",
        encoder="tiny",
        source=("en",),
        target=(),
        limit=limit,
        overlap=8,
        versions={},
    )
    mixup = Mixup(layer=1, ratio=0.5) if mixes else None
    return Model(network, load_tokenizer(folder), task, provenance, precision="float32", mixup=mixup)


def reorder_labels(model, order):
    """Return the same model with the rows of its head, and its labels, in a different order."""
    network = deepcopy(model.network)
    classes = len(order)
    for module in network.modules():
        if isinstance(module, nn.Linear) and module.out_features == classes:
            with torch.no_grad():
                module.weight.copy_(module.weight[list(order)])
                module.bias.copy_(module.bias[list(order)])
    labels = tuple(model.task.labels[index] for index in order)
    return replace(model, network=network, task=replace(model.task, labels=labels))


def readable(example):
    """Return an example whose words all have subwords in any tokenizer."""
    if not isinstance(example, TaggedSentence):
        return example
    return replace(example, words=tuple(word.replace("\u200b", "cat") for word in example.words))


def texts_of(example, tokenizer):
    """Return the input of transformers' tokenizer for each row of an example."""
    if isinstance(example, TaggedSentence):
        space = " " * ("Ġ" in tokenizer.get_vocab())  # Byte-level BPE splits a word with the space before it.
        return [([f"{space}{word}" for word in example.words],)]
    if hasattr(example, "options"):
        parts = [part for part in (example.prompt, example.question) if part]
        return [(example.context, " ".join([*parts, option])) for option in example.options]
    return [(example.text,)] if hasattr(example, "text") else [(example.first, example.second)]


@torch.no_grad()
def probabilities_by_transformers(model, example):
    """Return [unit label] as transformers computes it, without the package's rows and batches."""
    logits = []
    for texts in texts_of(example, model.tokenizer):
        words = isinstance(example, TaggedSentence)
        encoding = model.tokenizer(*texts, is_split_into_words=words, return_tensors="pt")
        raw = model.network(**encoding).logits[0]
        if words:
            first_places = {word: place for place, word in reversed(list(enumerate(encoding.word_ids())))}
            raw = torch.stack([raw[first_places[word]] for word in range(len(example.words))])
        logits.append(raw.flatten() if not words else raw)
    if hasattr(example, "options"):
        return torch.cat(logits).double().softmax(dim=-1).unsqueeze(0)
    (raw,) = logits
    if model.task.metric == "micro_f1":
        return raw.double().sigmoid().unsqueeze(0)
    return raw.double().reshape(-1, raw.shape[-1]).softmax(dim=-1)


def check_against_transformers(models, examples):
    """Compare answers and probabilities with the mean of what transformers computes."""
    joint_ensembles = ensemble(models)
    task = joint_ensembles.task
    for example, prediction in zip(examples, joint_ensembles.predict(examples, scores=True), strict=True):
        columns = [
            [model.task.labels.index(label) for label in task.labels]
            if not hasattr(example, "options")
            else slice(None)
            for model in models
        ]
        parts = [
            probabilities_by_transformers(model, example)[:, column]
            for model, column in zip(models, columns, strict=True)
        ]
        mean = torch.stack(parts).mean(dim=0)
        if isinstance(example, TaggedSentence):
            answers = [task.labels[index] for index in mean.argmax(dim=-1).tolist()]
            if task.name != "lemmas":
                assert prediction.answer == (repair(answers) if task.metric == "span_f1" else tuple(answers))
            expected = [
                mean[word, task.labels.index(label)].item()
                for word, label in enumerate(prediction.answer)
                if task.name != "lemmas"
            ]
            assert task.name == "lemmas" or prediction.scores == pytest.approx(expected, abs=2e-6)
        else:
            assert list(prediction.scores.values()) == pytest.approx(mean[0].tolist(), abs=2e-6)
            best_index = int(mean[0].argmax())
            if task.metric == "micro_f1":
                choice = zip(task.labels, mean[0], strict=True)
                assert prediction.answer == tuple(label for label, share in choice if share > 0.5)
            else:
                assert prediction.answer == (
                    best_index if hasattr(example, "options") else task.labels[best_index]
                )


def check_one_and_copies(model, examples):
    """An ensemble of one is the model. One of copies answers and scores as the model does, to the bit."""
    assert ensemble([model]) is model
    single_predictions = model.predict(examples, scores=True)
    for count in (2, 3):
        assert ensemble([model] * count).predict(examples, scores=True) == single_predictions


def check_order(models, examples):
    """The order of models after the first, and of the labels of each, changes nothing."""
    predictions_before = ensemble(models).predict(examples, scores=True)
    swapped_predictions = ensemble([models[0], *models[:0:-1]]).predict(examples, scores=True)
    assert [swapped_prediction.answer for swapped_prediction in swapped_predictions] == [
        answer.answer for answer in predictions_before
    ]
    name = models[0].task.name
    if name in REORDERED:
        order = tuple(reversed(range(len(models[0].task.labels))))
        turned_ensemble = ensemble([models[0], *(reorder_labels(model, order) for model in models[1:])])
        assert turned_ensemble.predict(examples, scores=True) == predictions_before


def check_measures(models, examples):
    """Check that scores belong to the predictions."""
    joint_ensembles = ensemble(models)
    predictions = joint_ensembles.predict(examples)
    task = joint_ensembles.task
    assert joint_ensembles.score(examples) == task.score(task.gold(examples), predictions)
    assert joint_ensembles.measures(examples)[task.metric] == joint_ensembles.score(examples)


def run_checks(name, folders, limit=64):
    models = [make(name, folder, seed=seed, limit=limit) for seed, folder in enumerate(folders)]
    examples = [readable(example) for example in examples_of(name)]
    check_against_transformers(models, examples)
    check_one_and_copies(models[0], examples)
    check_order(models, examples)
    check_measures(models, examples)


@pytest.mark.parametrize("name", ["upos", "nli", "multi-label-classification", "multiple-choice"])
def test_an_ensemble_has_the_mean_of_the_probabilities_of_transformers(name, bert_folder):
    run_checks(name, [bert_folder, bert_folder])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "second"),
    list(product(AVERAGED, ("bert", "xlm_roberta", "distilbert", "modernbert", "deberta_v2"))),
)
def test_ensembles_of_every_task_and_tokenizer_have_mean_probabilities(name, second, bert_folder, request):
    other_item = request.getfixturevalue(f"{second}_folder")
    for folders in ([bert_folder, other_item], [other_item, bert_folder, other_item]):
        run_checks(name, folders)


@pytest.mark.slow
def test_models_of_other_tokenizers_and_windows_agree_on_words(bert_folder, xlm_roberta_folder):
    run_checks("ner", [bert_folder, xlm_roberta_folder])
    words = TaggedSentence(id="long", words=("happened",) * 40, tags=())
    wide, narrow = (make("upos", bert_folder, limit=limit) for limit in (512, 16))
    other_model = make("upos", xlm_roberta_folder, seed=3, limit=24)
    prediction = ensemble([narrow, other_model, wide]).predict([words], scores=True)[0]
    assert len(prediction.answer) == len(prediction.scores) == 40
    single_predictions = [model.predict([words], scores=True)[0] for model in (narrow, other_model, wide)]
    agreed_words = [
        word
        for word in range(40)
        if len({single_prediction.answer[word] for single_prediction in single_predictions}) == 1
    ]
    for word in agreed_words:
        assert prediction.scores[word] == pytest.approx(
            sum(single_prediction.scores[word] for single_prediction in single_predictions) / 3, abs=1e-6
        )


def test_sentences_without_words_and_no_sentences_are_answered(bert_folder):
    ensembles = ensemble([make("upos", bert_folder, seed=seed) for seed in (0, 1)])
    assert ensembles.predict([]) == []
    assert [len(answer) for answer in ensembles.predict([[], ["Anna"], []])] == [0, 1, 0]


@pytest.mark.parametrize("name", REFUSED)
def test_tasks_without_probabilities_are_refused_in_one_line(name, bert_folder):
    models = [make(name, bert_folder, seed=seed) for seed in (0, 1)]
    with pytest.raises(ConfigError, match=f"^run0: .*2.*{name},.*multiple-choice") as refusal:
        ensemble(models)
    assert "\n" not in str(refusal.value)


def test_models_of_other_tasks_or_labels_are_refused(bert_folder):
    upos = make("upos", bert_folder)
    ner = make("ner", bert_folder, seed=1)
    with pytest.raises(ConfigError, match=r"^run1: .*ner.*run0.*upos"):
        ensemble([upos, ner])
    sport = make("text-classification", bert_folder)
    other_model = make("text-classification", bert_folder, seed=2, order=(0, 1))
    with pytest.raises(ConfigError, match=r"^run2: .*run0"):
        ensemble([sport, other_model])
    with pytest.raises(ConfigError, match=r"^load_model: no folder"):
        load_model([])


def test_an_ensemble_is_not_exported_or_pushed(bert_folder, tmp_path):
    ensembles = ensemble([make("upos", bert_folder, seed=seed) for seed in (0, 1)])
    assert repr(ensembles) == "Ensemble(task='upos', runs='run0, run1')"
    for call in (lambda: ensembles.export(tmp_path / "x"), lambda: ensembles.push("me/x")):
        with pytest.raises(ConfigError, match="2 models"):
            call()


def test_members_that_mix_read_translations_and_the_others_do_not(bert_folder):
    mixing = make("nli", bert_folder, mixes=True)
    plain_model = make("nli", bert_folder, seed=1)
    pairs = [("Anna saw", "a dog")]
    translations = [("the cat", "ran")]
    ensembles = ensemble([plain_model, mixing])
    (prediction,) = ensembles.predict(pairs, translations=translations, language="de", scores=True)
    parts = [
        mixing.predict(pairs, translations=translations, language="de", scores=True)[0],
        plain_model.predict(pairs, scores=True)[0],
    ]
    for label, share in prediction.scores.items():
        assert share == pytest.approx(sum(part.scores[label] for part in parts) / 2, abs=1e-6)
    with pytest.raises(ConfigError, match="translations:"):
        ensemble([plain_model, plain_model]).predict(pairs, translations=translations)
