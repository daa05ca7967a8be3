"""A meta-learner leaves the model trainable, and what it saves is read by transformers and by isogloss."""

import logging

import pytest
import torch

import isogloss
from any_models import make_model
from isogloss.core.errors import ConfigError
from says import says

TEXTS = ["ka lomi sute", "sute ka"]
FAMILIES = ("bert", "xlm-roberta", "distilbert", "modernbert", "gemma3_text")


def loss_of(model, batch):
    return model(**batch)[0].square().mean()


@pytest.fixture(params=FAMILIES)
def learner_case(request):
    """A model after a step of meta-learning, its tokenizer, the learner, and a batch."""
    model, tokenizer = make_model(request.param)
    encoding = tokenizer(TEXTS[:1], return_tensors="pt")
    batch = {name: encoding[name] for name in ("input_ids", "attention_mask")}
    meta = isogloss.MetaLearner(model, ["en", "sw"], loss_of, own_rate=0.1)
    meta("sw", batch, {"en": batch, "sw": batch}).backward()
    return model, tokenizer, meta, batch


def test_all_parameters_of_a_model_still_require_gradients(learner_case):
    model, _, _, _ = learner_case
    assert not [name for name, weight in model.named_parameters() if not weight.requires_grad]
    missing = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert missing and not [
        name for name in missing if "language_modules" not in name and "pooler" not in name
    ]


def test_isogloss_reads_each_language_as_it_was_learned(learner_case, tmp_path):
    _, tokenizer, meta, batch = learner_case
    folder = meta.save(tmp_path / "saved", tokenizer)
    loaded_encoder = isogloss.load_encoder(folder)
    for language in ("en", "sw"):
        with torch.no_grad(), meta.language(language):
            expected = meta._learner[0].model(**batch, output_hidden_states=True).hidden_states[-1]
        states = isogloss.states(*loaded_encoder, TEXTS[:1], layers=[-1], language=language, words="average")
        whole_states = isogloss.states(meta._learner[0].model, tokenizer, TEXTS[:1], layers=[-1],
                                language=language, words="average")  # fmt: skip
        torch.testing.assert_close(states.vectors, whole_states.vectors)
        assert bool(expected.isfinite().all())


def test_transformers_loads_the_shared_weights_without_a_remark(learner_case, tmp_path, caplog):
    from transformers import AutoModel

    model, tokenizer, meta, _ = learner_case
    folder = meta.save(tmp_path / "saved", tokenizer)
    with caplog.at_level(logging.WARNING, logger="transformers"):
        loaded_model, report = AutoModel.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values()) and "language_modules" not in caplog.text
    own_weights = {
        name: weight for name, weight in model.state_dict().items() if "language_modules" not in name
    }
    weights = loaded_model.state_dict()
    assert set(own_weights) >= set(weights)
    assert all(torch.equal(own_weights[name], weight) for name, weight in weights.items())


def test_a_model_that_reads_no_language_says_how_one_is_named(learner_case):
    model, _, _, batch = learner_case
    with says(ConfigError, "unspecified", "en, sw", "MetaLearner"):
        model(**batch)


def test_parameters_by_name_are_saved_by_the_model(tmp_path):
    model, tokenizer = make_model("bert")
    name = next(name for name, _ in model.named_parameters())
    meta = isogloss.MetaLearner(model, {"sw": [name]}, loss_of)
    with says(ConfigError, "MetaLearner.save", "BertModel", "save_pretrained"):
        meta.save(tmp_path / "saved", tokenizer)
