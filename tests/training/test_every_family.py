"""Fine-tuning, saving, loading and resuming with an encoder of each family, on a task of each shape."""

import random
import re
from dataclasses import replace
from functools import partial

import pytest
import torch

from isogloss.core.run_parts import with_fields
from isogloss.data.examples import SentencePair
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_model
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks import TASKS
from isogloss.training.batching import Bucketed
from isogloss.training.evaluation import evaluation
from isogloss.training.fine_tuning import fine_tune
from made_up import TEXT, on
from trained import equal, interrupt_batches, weights

AUTO_CLASS = {"upos": "AutoModelForTokenClassification", "nli": "AutoModelForSequenceClassification"}


@pytest.fixture
def encoder_folder(any_folder):
    return any_folder


def pairs(language, count=24, seed=0):
    """Pairs whose label the last word of the first text decides."""
    rng = random.Random(f"{language} {seed}")
    labels = {"cat": "entailment", "dog": "neutral", "mat": "contradiction"}
    drawn = [(rng.choice(list(labels)), rng.choices(TEXT.split(), k=6)) for _ in range(count)]
    return [
        SentencePair(id=str(n), first=f"{words[0]} {last}", second=" ".join(words[1:]), label=labels[last])
        for n, (last, words) in enumerate(drawn)
    ]


@pytest.fixture(params=["upos", "nli"])
def setting(request, make_setting, encoder_folder):
    made = make_setting(encoder=encoder_folder, learning_rate=5e-3, epochs=1, checkpoint_every=2)
    if request.param == "upos":
        return made
    return replace(
        made, task=TASKS["nli"], train=pairs, dev=lambda language: pairs(language, seed=1, count=12)
    )


@pytest.mark.slow
def test_it_trains_resumes_saves_and_loads_with_the_same_predictions(setting, tmp_path, monkeypatch):
    whole = fine_tune(replace(setting, folder=tmp_path / "whole"), on("en"))
    before = weights(setting.task.head(setting.start, seed=0))
    frozen = {name for name, weight in weights(whole.model).items() if torch.equal(weight, before[name])}
    idle = re.compile(r"key\.bias|k_(lin|proj)\.bias|adapter_modules\.(sw|de)_")
    assert not {name for name in frozen if not idle.search(name)}

    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        fine_tune(setting, on("en"))
    assert list(setting.folder.glob("checkpoint-*"))
    again = fine_tune(setting, on("en"))
    assert equal(again, whole)
    assert again.rows == whole.rows

    save_model(whole.model, whole.tokenizer, tmp_path / "model")
    auto_class = AUTO_CLASS[setting.task.name]
    own = auto_class in family_of(whole.model).own_heads
    head = partial(setting.task.head, seed=1) if own else partial(load_model, auto_class=auto_class)
    loaded = head(tmp_path / "model")
    tokenizer = load_tokenizer(tmp_path / "model")
    mine, theirs = (
        evaluation(setting.task, setting.dev("en"), one, setting.optimization)
        for one in (whole.tokenizer, tokenizer)
    )
    assert theirs.predict(loaded) == mine.predict(whole.model)
    for one, other in zip(theirs.scores(loaded), mine.scores(whole.model), strict=True):
        torch.testing.assert_close(one, other)  # Trained with explicit attention, loaded with fused.


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["nli"], indirect=True)
def test_it_learns_in_bfloat16(setting):
    optimization = with_fields(setting.optimization, precision="bfloat16", epochs=4, checkpoint_every=0)
    trained = fine_tune(replace(setting, optimization=optimization), on("en"))
    losses = [row["loss"] for row in trained.rows if "loss" in row]
    assert losses[-1] < 0.9 * losses[0]


def test_pairs_are_scored_as_by_transformers(headed_folder, make_setting):
    """Segments are given only to encoders that use them."""
    from transformers import AutoTokenizer

    task, tokenizer = TASKS["nli"], load_tokenizer(headed_folder)
    model = task.head(headed_folder, seed=0)
    optimization = with_fields(make_setting().optimization, precision="float32")
    found = evaluation(task, pairs("en", 6), tokenizer, optimization).scores(model)
    theirs = AutoTokenizer.from_pretrained(headed_folder)
    for example, scores in zip(pairs("en", 6), found, strict=True):
        given = theirs(example.first, example.second, return_tensors="pt")
        if headed_folder.name not in {"bert", "rembert"}:
            given.pop("token_type_ids", None)
        with torch.no_grad():
            torch.testing.assert_close(model(**given).logits, scores)
