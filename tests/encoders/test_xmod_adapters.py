"""X-MOD's own adapters: switched by the language of the text, as modules are."""

import pytest
import torch

from isogloss.core.errors import ConfigError
from isogloss.encoders.added.active_language import active_language, check_languages
from isogloss.encoders.added.added_weights import shared_parameters
from isogloss.encoders.families import family_of
from isogloss.runs.pretrained import identify_encoder, model_folders
from networks import IDS, fresh, hooks

TEXTS = torch.cat([IDS, IDS.flip(1), IDS])


def states(model, ids=IDS, languages=None):
    with torch.no_grad():
        if languages is None:
            return model(ids).last_hidden_state
        with active_language(model, languages):
            return model(ids).last_hidden_state


@pytest.fixture
def model(xmod_folder):
    return fresh(xmod_folder)


def test_a_language_is_read_by_its_own_adapters_as_transformers_reads_it(model):
    for index, language in enumerate(("en", "sw", "de")):
        with torch.no_grad():
            expected = model(IDS, lang_ids=torch.full((1,), index)).last_hidden_state
        assert torch.equal(states(model, languages=language), expected)
    assert torch.equal(states(model, languages="en"), states(model))  # The default of config.json.
    assert torch.equal(states(model, languages="en-sw"), states(model, languages="sw"))
    assert hooks(model) == 0


def test_languages_in_one_batch_are_read_as_each_alone(model):
    joint_last_hidden_states = states(model, TEXTS, ("sw", "en", "de"))
    for row, language in enumerate(("sw", "en", "de")):
        torch.testing.assert_close(
            joint_last_hidden_states[row : row + 1], states(model, TEXTS[row : row + 1], language)
        )


def test_a_language_without_adapters_is_refused(model, xmod_folder):
    for ask in (lambda: states(model, languages="fr"), lambda: check_languages(model, ["en", "fr"])):
        with pytest.raises(ConfigError, match=r"'fr'.*en, sw, de"):
            ask()
    model.config.default_language = None
    with pytest.raises(ConfigError, match="unspecified"):
        states(model, languages="")
    encoder = identify_encoder(str(xmod_folder))
    folders = model_folders([str(xmod_folder)])
    encoder.check_read(["en", "sw"], folders, "here")
    with pytest.raises(ConfigError, match=r"modules.*'fr'"):
        encoder.check_read(["fr"], folders, "here")


def test_adapters_are_not_shared_and_only_a_languages_own_learn_from_its_text(model):
    with active_language(model, "sw"):
        model(IDS).last_hidden_state.sum().backward()
    adapters = dict(model.named_parameters()).keys() - shared_parameters(model).keys()
    assert len(adapters) == 3 * 3 * 4 and all(".adapter_modules." in name for name in adapters)
    learned_names = {
        name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()
    }
    assert adapters & learned_names and not {
        name for name in learned_names if ".en_XX." in name or ".de_DE." in name
    }
    assert family_of(model).languages(model.config) == ("en", "sw", "de")
