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
    drawn_choices = [(rng.choice(list(labels)), rng.choices(TEXT.split(), k=6)) for _ in range(count)]
    return [
        SentencePair(
            id=str(n),
            first=f"{words[0]} {last_drawn_choice}",
            second=" ".join(words[1:]),
            label=labels[last_drawn_choice],
        )
        for n, (last_drawn_choice, words) in enumerate(drawn_choices)
    ]


@pytest.fixture(params=["upos", "nli"])
def setting(request, make_setting, encoder_folder):
    result = make_setting(encoder=encoder_folder, learning_rate=5e-3, epochs=1, checkpoint_every=2)
    if request.param == "upos":
        return result
    return replace(
        result, task=TASKS["nli"], train=pairs, dev=lambda language: pairs(language, seed=1, count=12)
    )


@pytest.mark.slow
def test_it_trains_resumes_saves_and_loads_with_the_same_predictions(setting, tmp_path, monkeypatch):
    whole_training = fine_tune(replace(setting, folder=tmp_path / "whole"), on("en"))
    weights_before = weights(setting.task.head(setting.start, seed=0))
    frozen_names = {
        name
        for name, weight in weights(whole_training.model).items()
        if torch.equal(weight, weights_before[name])
    }
    idle = re.compile(r"key\.bias|k_(lin|proj)\.bias|adapter_modules\.(sw|de)_")
    assert not {name for name in frozen_names if not idle.search(name)}

    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        fine_tune(setting, on("en"))
    assert list(setting.folder.glob("checkpoint-*"))
    again = fine_tune(setting, on("en"))
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows

    save_model(whole_training.model, whole_training.tokenizer, tmp_path / "model")
    auto_class = AUTO_CLASS[setting.task.name]
    is_own = auto_class in family_of(whole_training.model).own_heads
    head = partial(setting.task.head, seed=1) if is_own else partial(load_model, auto_class=auto_class)
    loaded_model = head(tmp_path / "model")
    tokenizer = load_tokenizer(tmp_path / "model")
    mine_evaluation, theirs = (
        evaluation(setting.task, setting.dev("en"), item, setting.optimization)
        for item in (whole_training.tokenizer, tokenizer)
    )
    assert theirs.predict(loaded_model) == mine_evaluation.predict(whole_training.model)
    for left, right in zip(
        theirs.scores(loaded_model), mine_evaluation.scores(whole_training.model), strict=True
    ):
        torch.testing.assert_close(left, right)  # Trained with explicit attention, loaded with fused.


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("setting", ["nli"], indirect=True)
def test_it_learns_in_bfloat16(setting):
    optimization = with_fields(setting.optimization, precision="bfloat16", epochs=4, checkpoint_every=0)
    training = fine_tune(replace(setting, optimization=optimization), on("en"))
    losses = [row["loss"] for row in training.rows if "loss" in row]
    assert losses[-1] < 0.9 * losses[0]


def test_pairs_are_scored_as_by_transformers(headed_folder, make_setting):
    """Segments are given only to encoders that use them."""
    from transformers import AutoTokenizer

    task = TASKS["nli"]
    tokenizer = load_tokenizer(headed_folder)
    model = task.head(headed_folder, seed=0)
    optimization = with_fields(make_setting().optimization, precision="float32")
    result = evaluation(task, pairs("en", 6), tokenizer, optimization).scores(model)
    theirs = AutoTokenizer.from_pretrained(headed_folder)
    for example, scores in zip(pairs("en", 6), result, strict=True):
        inputs = theirs(example.first, example.second, return_tensors="pt")
        if headed_folder.name not in {"bert", "rembert"}:
            inputs.pop("token_type_ids", None)
        with torch.no_grad():
            torch.testing.assert_close(model(**inputs).logits, scores)
