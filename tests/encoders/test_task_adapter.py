"""Adapters of a task: behind the language's, in every family. What changes, is saved, is refused."""

import pytest
import torch
import transformers
from safetensors.torch import save_file

from isogloss.core.errors import ConfigError
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.language_modules import add_language, language_site
from isogloss.encoders.added.module_settings import KINDS
from isogloss.encoders.added.task_adapters import TASK_FILE, add_task_adapter, task_adapter
from isogloss.encoders.families import family_of
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from networks import LANGUAGES, fresh, modular, refusal, same, stir_modules, tagger

IDS = torch.tensor([[2, 7, 9, 11, 3], [2, 12, 8, 5, 3]])


def states(model, language="sw"):
    with torch.no_grad(), active_language(model, language):
        return torch.stack(model.base_model(IDS, output_hidden_states=True).hidden_states)


def with_task(model, *, is_moved=True, reduction=4):
    add_task_adapter(model, reduction, seed=0)
    with torch.no_grad():
        for weight in task_adapter(model).parameters() if is_moved else ():
            weight.add_(torch.empty_like(weight).normal_(0, 0.3, generator=torch.Generator().manual_seed(2)))
    return model


@pytest.mark.each_value
@pytest.mark.parametrize("kind", [None, *KINDS])
def test_a_new_one_changes_nothing_to_the_bit(encoder_folder, kind):
    model = fresh(encoder_folder) if kind is None else stir_modules(modular(fresh(encoder_folder), kind))
    plain_tensor = states(model)
    assert torch.equal(states(with_task(model, is_moved=False)), plain_tensor)
    assert not torch.allclose(states(with_task(model)), plain_tensor, atol=1e-2)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
def test_it_reads_what_the_languages_modules_say(encoder_folder, kind):
    """With copies of the feed-forward, the adapter follows each language's copy, in any order of adding."""
    model = stir_modules(modular(fresh(encoder_folder), kind))
    site = family_of(model).sites(model)[0]
    tensor = torch.randn(2, 5, site.module(model, "feed_forward_out").in_features)

    def answers():
        with torch.no_grad():
            for language in LANGUAGES:
                with active_language(model, language):
                    yield language_site(model, site, language).module(model, "feed_forward_out")(tensor)

    answers_before = list(answers())
    adapter = task_adapter(with_task(model))[0]
    with torch.no_grad():
        for answer, plain_result in zip(answers(), answers_before, strict=True):
            assert torch.equal(answer, adapter(plain_result)) and not torch.equal(answer, plain_result)
    if kind != "shared-adapter":
        answers_after = list(answers())
        add_language(model, "fr")
        assert all(torch.equal(*pair) for pair in zip(answers(), answers_after, strict=True))


def test_modules_are_swapped_beneath_it(bert_folder):
    model = with_task(stir_modules(modular(fresh(bert_folder), "adapter", invertible=True)))
    single_tensors = {language: states(model, language) for language in LANGUAGES}
    assert not torch.allclose(single_tensors["sw"], single_tensors["en"], atol=1e-2)
    torch.testing.assert_close(states(model, ("sw", "en"))[:, 0], single_tensors["sw"][:, 0])


@pytest.mark.parametrize("kind", [None, "adapter", "feed-forward"])
def test_it_is_saved_beside_an_ordinary_model(bert_folder, tmp_path, kind):
    model = tagger(bert_folder)
    if kind is not None:
        stir_modules(modular(model, kind, reduction=2, **({"invertible": True} if kind == "adapter" else {})))
    save_model(with_task(model, reduction=5), load_tokenizer(bert_folder), tmp_path / "saved")
    again = tagger(tmp_path / "saved")
    assert same(again, model) and task_adapter(again).placement.reduction == 5
    assert torch.equal(states(again), states(model))
    plain_model, info = transformers.AutoModelForTokenClassification.from_pretrained(
        tmp_path / "saved", output_loading_info=True
    )
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert "task_adapter" not in str(plain_model)


def test_a_model_keeps_the_one_it_has(bert_folder):
    model = with_task(fresh(bert_folder))
    tensor_before = states(model)
    add_task_adapter(model, 4, seed=9)
    assert torch.equal(states(model), tensor_before)
    with pytest.raises(ConfigError, match=r"one of reduction 4, not 8\..* reduction = 4"):
        add_task_adapter(model, 8, seed=0)
    with pytest.raises(ConfigError, match=r"task adapter: .*32 / 64"):
        add_task_adapter(fresh(bert_folder), 64, seed=0)


def test_a_damaged_file_or_that_of_another_encoder_is_refused(bert_folder, tmp_path):
    folder = tmp_path / "saved"
    save_model(with_task(tagger(bert_folder)), load_tokenizer(bert_folder), folder)
    save_file(
        {"task_adapter.0.down.weight": torch.ones(2, 2)}, folder / TASK_FILE, metadata={"reduction": "4"}
    )
    assert "encoder's: task_adapter.0.down.bias" in refusal(tagger, folder)
    (folder / TASK_FILE).write_bytes(b"no tensors")
    assert f"{folder / TASK_FILE}:" in refusal(tagger, folder)
