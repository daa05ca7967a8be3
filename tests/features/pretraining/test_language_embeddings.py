"""A vector for each language at the embeddings, with modules of any other kind, as in XLM."""

import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.core.identity import content
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.added_weights import (
    language_parameters,
    read_language_modules,
    write_language_modules,
)
from isogloss.encoders.added.language_modules import add_language, add_modules, modules_of
from isogloss.encoders.loading import load_whole
from isogloss.features.pretraining.parameters import module_parameters, parameter_counts
from networks import LANGUAGES, fresh, modular, stir_modules

IDS = torch.tensor([[2, 7, 9, 11, 3], [2, 12, 8, 5, 3], [2, 5, 6, 9, 3]])
OTHERS = ("feed-forward", "attention", "adapter", "shared-adapter")


def states(model, ids=IDS):
    with torch.no_grad():
        return torch.stack(model.base_model(input_ids=ids, output_hidden_states=True).hidden_states)


def vector(model, language):
    (name,) = (
        name for name in language_parameters(model, language) if name not in drop_embedding(model, language)
    )
    return language_parameters(model, language)[name]


def drop_embedding(model, language):
    return language_parameters(model, language, embedding=False)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OTHERS)
def test_new_ones_change_nothing_to_the_bit_and_later_are_added_to_each_rows_embeddings(
    any_language_folder, kind
):
    model = fresh(any_language_folder)
    plain_tensor = states(model)
    modular(model, kind, embedding=True)
    for language in LANGUAGES:
        with active_language(model, language):
            assert torch.equal(states(model), plain_tensor)
    with torch.no_grad():
        for index, language in enumerate(LANGUAGES, 1):
            vector(model, language).copy_(torch.linspace(-index, index, vector(model, language).numel()))
        inputs = plain_tensor[0]
    with active_language(model, ("sw", "en", "to")):
        mixed_tensor = states(model)
    with active_language(model, "sw"):
        single_tensor = states(model, IDS[:1])
    torch.testing.assert_close(mixed_tensor[:, 0], single_tensor[:, 0], atol=1e-5, rtol=1e-4)
    if vector(model, "sw").numel() == inputs.shape[-1]:
        for row, language in enumerate(("sw", "en", "to")):
            torch.testing.assert_close(mixed_tensor[0, row], inputs[row] + vector(model, language))
    assert not torch.allclose(mixed_tensor[-1], plain_tensor[-1], atol=1e-3)


@pytest.mark.parametrize("kind", OTHERS)
def test_the_vector_is_one_parameter_of_a_language_and_the_others_are_as_without(bert_folder, kind):
    model, plain_modular = (
        modular(fresh(bert_folder), kind, **fields) for fields in ({"embedding": True}, {})
    )
    dim = model.config.hidden_size
    assert vector(model, "sw").numel() == dim
    assert drop_embedding(model, "sw").keys() == language_parameters(plain_modular, "sw").keys()
    more = {language: dim * (language != "") for language in ("", *LANGUAGES)}
    assert parameter_counts(model) == {
        language: n + more[language] for language, n in parameter_counts(plain_modular).items()
    }
    assert len(module_parameters(model, LANGUAGES)) == len(module_parameters(plain_modular, LANGUAGES)) + 3


@pytest.mark.parametrize("kind", OTHERS)
def test_a_folder_and_a_new_language_have_it_too(bert_folder, tmp_path, kind):
    model = stir_modules(modular(fresh(bert_folder), kind, embedding=True))
    write_language_modules(model, tmp_path)
    again = load_whole(bert_folder)
    read_language_modules(again, tmp_path)
    assert modules_of(again) == modules_of(model)
    add_language(model, "fr")
    mean = torch.stack([vector(model, language) for language in LANGUAGES]).mean(dim=0)
    torch.testing.assert_close(vector(model, "fr"), mean)
    for language_code in LANGUAGES:
        assert torch.equal(vector(again, language_code), vector(model, language_code))


def test_a_shared_adapter_with_vectors_refuses_a_language_without_one(bert_folder):
    model = modular(fresh(bert_folder), "shared-adapter", embedding=True)
    message = "'ws'.*'sw'"
    with pytest.raises(ConfigError, match=message), active_language(model, "ws"):
        pass
    assert language_parameters(model, "sw").keys() != drop_embedding(model, "sw").keys() == {}.keys()


@pytest.mark.parametrize(
    ("modules", "other_name"),
    [
        (Modules(kind="embedding", embedding=True), "the kind embedding"),
        (Modules(kind="adapter", invertible=True, embedding=True), "invertible"),
    ],
)
def test_two_things_at_the_embeddings_are_refused(bert_folder, modules, other_name):
    with pytest.raises(ConfigError, match=f"modules: .*{other_name}"):
        add_modules(fresh(bert_folder), modules, LANGUAGES, seed=0)


def test_what_leaves_it_out_has_the_content_it_had():
    assert content(Modules(kind="adapter")) == {
        "kind": "Modules",
        "fields": {"kind": "adapter", "reduction": 4, "fallback": ""},
    }
