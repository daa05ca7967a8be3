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
REFUSED = sorted(ALL_TASKS.keys() - {*AVERAGED})
REORDERED = ("word-tagging", "text-classification", "pair-classification", "multi-label-classification")
"""Tasks whose labels may be in any order."""


def make(name, folder, *, seed=0, order=None, limit=32, run="", mixes=False):
    """Create a model with a random head, with its labels in a given order."""
    task = SMALL_TASKS[name]
    if order is not None:
        task = replace(task, labels=tuple(task.labels[number] for number in order))
    network = task.head(folder, seed=seed).eval()
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(seed)
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3 * parameter.square().mean().sqrt())
    about = Provenance(
        **{"run": run or f"run{seed}", "title": "t", "task": name, "corpus": "ud", "method": "source-only"},
        **{"encoder": "tiny", "source": ("en",), "target": (), "limit": limit, "overlap": 8, "versions": {}},
    )
    mixup = Mixup(layer=1, ratio=0.5) if mixes else None
    return Model(network, load_tokenizer(folder), task, about, precision="float32", mixup=mixup)


def reorder_labels(model, order):
    """Return the same model with the rows of its head, and its labels, in a different order."""
    network = deepcopy(model.network)
    classes = len(order)
    for module in network.modules():
        if isinstance(module, nn.Linear) and module.out_features == classes:
            with torch.no_grad():
                module.weight.copy_(module.weight[list(order)])
                module.bias.copy_(module.bias[list(order)])
    labels = tuple(model.task.labels[number] for number in order)
    return replace(model, network=network, task=replace(model.task, labels=labels))


def readable(example):
    """Return an example whose words all have subwords in any tokenizer."""
    if not isinstance(example, TaggedSentence):
        return example
    return replace(example, words=tuple(word.replace("\u200b", "cat") for word in example.words))


def texts_of(example, tokenizer):
    """Return the input of transformers' tokenizer for each row of an example."""
    if isinstance(example, TaggedSentence):
        space = " " * ("Ġ" in tokenizer.get_vocab())  # Byte-level BPE splits a word as it stands in a text.
        return [([f"{space}{word}" for word in example.words],)]
    if hasattr(example, "options"):
        asked = [part for part in (example.prompt, example.question) if part]
        return [(example.context, " ".join([*asked, option])) for option in example.options]
    return [(example.text,)] if hasattr(example, "text") else [(example.first, example.second)]


@torch.no_grad()
def probabilities_by_transformers(model, example):
    """Return [unit label] as transformers computes it, without the package's rows and batches."""
    logits = []
    for texts in texts_of(example, model.tokenizer):
        words = isinstance(example, TaggedSentence)
        encoded = model.tokenizer(*texts, is_split_into_words=words, return_tensors="pt")
        raw = model.network(**encoded).logits[0]
        if words:
            first = {word: place for place, word in reversed([*enumerate(encoded.word_ids())])}
            raw = torch.stack([raw[first[word]] for word in range(len(example.words))])
        logits.append(raw.flatten() if not words else raw)
    if hasattr(example, "options"):
        return torch.cat(logits).double().softmax(dim=-1).unsqueeze(0)
    (raw,) = logits
    if model.task.metric == "micro_f1":
        return raw.double().sigmoid().unsqueeze(0)
    return raw.double().reshape(-1, raw.shape[-1]).softmax(dim=-1)


def check_against_transformers(models, examples):
    """Compare answers and probabilities with the mean of what transformers computes."""
    together = ensemble(models)
    task = together.task
    for example, found in zip(examples, together.predict(examples, scores=True), strict=True):
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
            answers = [task.labels[number] for number in mean.argmax(dim=-1).tolist()]
            if task.name != "lemmas":
                assert found.answer == (repair(answers) if task.metric == "span_f1" else tuple(answers))
            expected = [
                mean[word, task.labels.index(label)].item()
                for word, label in enumerate(found.answer)
                if task.name != "lemmas"
            ]
            assert task.name == "lemmas" or found.scores == pytest.approx(expected, abs=2e-6)
        else:
            assert [*found.scores.values()] == pytest.approx(mean[0].tolist(), abs=2e-6)
            best = int(mean[0].argmax())
            if task.metric == "micro_f1":
                chosen = zip(task.labels, mean[0], strict=True)
                assert found.answer == tuple(label for label, share in chosen if share > 0.5)
            else:
                assert found.answer == (best if hasattr(example, "options") else task.labels[best])


def check_one_and_copies(model, examples):
    """An ensemble of one is the model; one of copies answers and scores as the model does, to the bit."""
    assert ensemble([model]) is model
    alone = model.predict(examples, scores=True)
    for count in (2, 3):
        assert ensemble([model] * count).predict(examples, scores=True) == alone


def check_order(models, examples):
    """The order of models after the first, and of the labels of each, changes nothing."""
    before = ensemble(models).predict(examples, scores=True)
    swapped = ensemble([models[0], *models[:0:-1]]).predict(examples, scores=True)
    assert [one.answer for one in swapped] == [one.answer for one in before]
    name = models[0].task.name
    if name in REORDERED:
        order = tuple(reversed(range(len(models[0].task.labels))))
        turned = ensemble([models[0], *(reorder_labels(model, order) for model in models[1:])])
        assert turned.predict(examples, scores=True) == before


def check_measures(models, examples):
    """Check that scores belong to the predictions."""
    together = ensemble(models)
    predicted = together.predict(examples)
    task = together.task
    assert together.score(examples) == task.score(task.gold(examples), predicted)
    assert together.measures(examples)[task.metric] == together.score(examples)


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
    [*product(AVERAGED, ("bert", "xlm_roberta", "distilbert", "modernbert", "deberta_v2"))],
)
def test_ensembles_of_every_task_and_tokenizer_have_mean_probabilities(name, second, bert_folder, request):
    other = request.getfixturevalue(f"{second}_folder")
    for folders in ([bert_folder, other], [other, bert_folder, other]):
        run_checks(name, folders)


@pytest.mark.slow
def test_models_of_other_tokenizers_and_windows_agree_on_words(bert_folder, xlm_roberta_folder):
    run_checks("ner", [bert_folder, xlm_roberta_folder])
    words = TaggedSentence(id="long", words=("happened",) * 40, tags=())
    wide, narrow = (make("upos", bert_folder, limit=limit) for limit in (512, 16))
    other = make("upos", xlm_roberta_folder, seed=3, limit=24)
    found = ensemble([narrow, other, wide]).predict([words], scores=True)[0]
    assert len(found.answer) == len(found.scores) == 40
    alone = [model.predict([words], scores=True)[0] for model in (narrow, other, wide)]
    agreed = [word for word in range(40) if len({one.answer[word] for one in alone}) == 1]
    for word in agreed:
        assert found.scores[word] == pytest.approx(sum(one.scores[word] for one in alone) / 3, abs=1e-6)


def test_sentences_without_words_and_no_sentences_are_answered(bert_folder):
    both = ensemble([make("upos", bert_folder, seed=seed) for seed in (0, 1)])
    assert both.predict([]) == []
    assert [len(answer) for answer in both.predict([[], ["Anna"], []])] == [0, 1, 0]


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
    other = make("text-classification", bert_folder, seed=2, order=(0, 1))
    with pytest.raises(ConfigError, match=r"^run2: .*run0"):
        ensemble([sport, other])
    with pytest.raises(ConfigError, match=r"^load_model: no folder"):
        load_model([])


def test_an_ensemble_is_not_exported_or_pushed(bert_folder, tmp_path):
    both = ensemble([make("upos", bert_folder, seed=seed) for seed in (0, 1)])
    assert repr(both) == "Ensemble(task='upos', runs='run0, run1')"
    for call in (lambda: both.export(tmp_path / "x"), lambda: both.push("me/x")):
        with pytest.raises(ConfigError, match="2 models"):
            call()


def test_members_that_mix_read_translations_and_the_others_do_not(bert_folder):
    mixing = make("nli", bert_folder, mixes=True)
    plain = make("nli", bert_folder, seed=1)
    pairs = [("Anna saw", "a dog")]
    translations = [("the cat", "ran")]
    both = ensemble([plain, mixing])
    (found,) = both.predict(pairs, translations=translations, language="de", scores=True)
    parts = [
        mixing.predict(pairs, translations=translations, language="de", scores=True)[0],
        plain.predict(pairs, scores=True)[0],
    ]
    for label, share in found.scores.items():
        assert share == pytest.approx(sum(part.scores[label] for part in parts) / 2, abs=1e-6)
    with pytest.raises(ConfigError, match="translations:"):
        ensemble([plain, plain]).predict(pairs, translations=translations)
