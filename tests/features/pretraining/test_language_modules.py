"""Modules of a language's own: every family, every kind. What changes, what does not, and who is refused."""

from copy import deepcopy
from dataclasses import fields

import pytest
import torch
from transformers import AutoModelForMaskedLM

from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import active_language, check_languages
from isogloss.encoders.added.added_weights import language_parameters, shared_parameters
from isogloss.encoders.added.language_modules import (
    add_language,
    add_modules,
    fall_back,
    language_site,
    modules_of,
)
from isogloss.encoders.added.module_settings import KINDS
from isogloss.encoders.computation import offer_explicit_attention
from isogloss.encoders.families import family_of
from isogloss.encoders.folders import load_encoder_config
from isogloss.encoders.loading import load_masked_lm, load_model, load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining.new_subwords import add_embeddings
from isogloss.features.pretraining.parameters import module_parameters, parameter_counts
from networks import LANGUAGES, fresh, modular, refusal, stir_modules, tagger

OWN = ("feed-forward", "attention", "adapter", "embedding")
IDS = torch.tensor([[2, 7, 9, 11, 3, 0], [2, 12, 8, 3, 0, 0], [2, 5, 6, 9, 10, 3], [2, 14, 3, 0, 0, 0]])
MASK = (IDS != 0).long()
ROWS = ("sw", "en", "sw", "to")


@pytest.fixture
def encoder_folder(any_language_folder):
    return any_language_folder


def states(model, ids=IDS, mask=MASK):
    inputs = {"input_ids": ids, "attention_mask": mask, "output_hidden_states": True}
    return torch.stack(model.base_model(**inputs).hidden_states)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
def test_new_modules_change_nothing_to_the_bit(encoder_folder, kind):
    model = fresh(encoder_folder)
    with torch.no_grad():
        plain_tensor = states(model)
        modular(model, kind)
        for languages in (*LANGUAGES, "en-sw", ("en",) * 4):
            with active_language(model, languages):
                assert torch.equal(states(model), plain_tensor)


MAD_X = {"reduction": 2, "after": "feed-forward", "invertible": True}


def test_new_adapters_at_the_embeddings_change_nothing_to_the_bit(tied_folder):
    model = load_masked_lm(tied_folder)
    with torch.no_grad():
        plain_logits = model(IDS, MASK).logits
        modular(model, "adapter", **MAD_X)
        with active_language(model, ROWS):
            assert torch.equal(model(IDS, MASK).logits, plain_logits)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["adapter", "shared-adapter"])
def test_adapters_at_the_embeddings_are_undone_before_the_scores(tied_folder, kind):
    plain_model = load_masked_lm(tied_folder)
    model = modular(deepcopy(plain_model), kind, **MAD_X)
    names = {named_module: name for name, named_module in model.base_model.named_modules()}
    position = names[family_of(model).embeddings(model.base_model)]
    moved_weights = {
        name: weight for name, weight in module_parameters(model, ["sw"]).items() if position in name
    }
    assert len(moved_weights) == 8
    with torch.no_grad():
        for weight in moved_weights.values():
            weight.normal_(0, 0.5, generator=torch.Generator().manual_seed(0))
        with active_language(model, "sw"):
            item = model.base_model.language_modules.get("sw" if kind == "adapter" else kind, position)
            changed_tensor = states(model)[0]
            torch.testing.assert_close(changed_tensor, item(states(plain_model)[0]))
            tensor = torch.randn(3, model.config.hidden_size)
            expected = plain_model.get_output_embeddings()(item.inverse(tensor))
            torch.testing.assert_close(model.get_output_embeddings()(tensor), expected)


def test_they_are_undone_before_the_scores_of_new_subwords_too(tied_folder):
    model = stir_modules(modular(load_masked_lm(tied_folder), "adapter", **MAD_X))
    with torch.no_grad(), active_language(model, "sw"):
        logits_before = model(IDS, MASK).logits
        add_embeddings(model, {logits_before.size(-1): {}}, special=(), seed=0)
        torch.testing.assert_close(model(IDS, MASK).logits[..., :-1], logits_before)


def test_a_new_language_has_an_adapter_at_the_embeddings_too(bert_folder):
    model = stir_modules(modular(load_masked_lm(bert_folder), "adapter", **MAD_X))
    with torch.no_grad():
        with active_language(model, "sw"):
            logits_before = model(IDS, MASK).logits
        add_language(model, "fr")
        with active_language(model, "sw"):
            assert torch.equal(model(IDS, MASK).logits, logits_before)
        with active_language(model, "fr"):
            assert not torch.allclose(model(IDS, MASK).logits, logits_before)
    mean = torch.stack(
        [
            language_parameter
            for language in LANGUAGES
            for language_parameter in embedding_parameters(model, language)
        ]
    ).mean(dim=0)
    torch.testing.assert_close(embedding_parameters(model, "fr")[0], mean)


def embedding_parameters(model, language):
    return [
        language_parameter
        for name, language_parameter in language_parameters(model, language).items()
        if "embeddings.f.up.weight" in name
    ]


def test_a_head_that_cannot_undo_them_is_refused(deberta_v2_folder):
    config = load_encoder_config(deberta_v2_folder)
    config.legacy = False
    model = AutoModelForMaskedLM.from_config(config)
    with pytest.raises(ModelError, match=r"invertible: .*masked-LM.*Deberta\w+"):
        modular(model, "adapter", invertible=True)


def test_narrow_embeddings_are_refused_although_the_head_is_as_wide_as_the_states(rembert_folder):
    config = load_encoder_config(rembert_folder)
    config.output_embedding_size = config.hidden_size
    model = AutoModelForMaskedLM.from_config(config)
    with pytest.raises(ModelError, match="RemBertForMaskedLM"):
        modular(model, "adapter", invertible=True)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OWN)
def test_languages_in_one_batch_are_read_as_each_alone(encoder_folder, kind):
    model = stir_modules(modular(fresh(encoder_folder), kind))
    with torch.no_grad():
        with active_language(model, ROWS):
            mixed_tensor = states(model)
        for row, language in enumerate(ROWS):
            with active_language(model, language):
                single_tensor = states(model, IDS[row : row + 1], MASK[row : row + 1])
                whole_tensor = states(model)
            real_mask = MASK[row].bool()
            torch.testing.assert_close(
                mixed_tensor[:, row][:, real_mask], single_tensor[:, 0][:, real_mask], atol=1e-5, rtol=1e-4
            )
            torch.testing.assert_close(
                mixed_tensor[:, row][:, real_mask], whole_tensor[:, row][:, real_mask], atol=1e-5, rtol=1e-4
            )
    assert not torch.allclose(mixed_tensor[-1, 0], mixed_tensor[-1, 1], atol=1e-2)


def test_a_batch_as_large_as_the_table_of_distances_is_read_row_by_row(deberta_v2_folder):
    model = fresh(deberta_v2_folder)
    count = len(model.base_model.encoder.rel_embeddings.weight)
    stir_modules(modular(model, "attention"))
    languages = tuple(LANGUAGES[row % 3] for row in range(count))
    ids = IDS[:1].expand(count, -1)
    with torch.no_grad():
        with active_language(model, languages):
            mixed_tensor = states(model, ids, None)
        for row, language in enumerate(LANGUAGES):
            with active_language(model, language):
                torch.testing.assert_close(mixed_tensor[:, row], states(model, ids[:1], None)[:, 0])


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OWN)
def test_a_gradient_reaches_no_other_languages_modules(encoder_folder, kind):
    model = stir_modules(modular(tagger(encoder_folder, attention=offer_explicit_attention()), kind)).train()
    weights = torch.randn(model.config.hidden_size)
    with active_language(model, ("sw", "en", "sw", "en")):
        (states(model)[-1] @ weights).sum().backward()
    for language, moved_value in (("en", True), ("sw", True), ("to", False)):
        result = language_parameters(model, language).values()
        assert [weight.grad is not None for weight in result] == [moved_value] * len(result) != []
    assert any(weight.grad is not None for weight in shared_parameters(model).values())


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
def test_each_parameter_is_shared_or_one_languages_own(encoder_folder, kind):
    model = modular(load_whole(encoder_folder), kind)
    parameters = dict(model.named_parameters())
    parts = [shared_parameters(model), *(language_parameters(model, language) for language in LANGUAGES)]
    assert sum(len(part) for part in parts) == len(parameters)
    for part in parts:
        assert all(parameters[name] is weight for name, weight in part.items())
    counts = parameter_counts(model)
    assert sum(counts.values()) == sum(weight.numel() for weight in parameters.values())
    assert len({counts[language] for language in LANGUAGES}) == 1


def test_parameters_are_counted_as_the_layers_say(bert_folder):
    model = fresh(bert_folder)
    plain_parameters = parameter_counts(model)
    layers = model.config.num_hidden_layers
    dim = model.config.hidden_size
    assert plain_parameters == {"": sum(weight.numel() for weight in model.parameters())}
    adapter = 2 * dim * (dim // 4) + dim // 4 + dim
    adapted_parameters = parameter_counts(modular(deepcopy(model), "adapter"))
    assert adapted_parameters == plain_parameters | dict.fromkeys(LANGUAGES, 2 * layers * adapter)
    inner = model.config.intermediate_size
    feed_forward = layers * (2 * dim * inner + inner + dim + 2 * dim)
    copied_parameters = parameter_counts(modular(deepcopy(model), "feed-forward"))
    assert copied_parameters == {
        "": plain_parameters[""] - feed_forward,
        **dict.fromkeys(LANGUAGES, feed_forward),
    }
    shared = parameter_counts(modular(model, "shared-adapter"))
    assert shared == {"": plain_parameters[""] + 2 * layers * adapter, **dict.fromkeys(LANGUAGES, 0)}


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OWN)
def test_a_site_names_a_languages_own_modules(encoder_folder, kind):
    model = load_whole(encoder_folder)
    sites_before = family_of(model).sites(model)
    modular(model, kind)
    assert family_of(model).sites(model) == sites_before
    for site in sites_before:
        assert language_site(model, site, "en") == site
        own_language_site = language_site(model, site, "sw")
        names = set(language_parameters(model, "sw"))
        region = {"feed-forward": "feed_forward", "attention": "attention"}.get(kind)
        if region is None:
            assert own_language_site == site
            continue
        assert {name for name, _ in own_language_site.parameters(model, region)} <= names
        for field in fields(own_language_site):
            value = getattr(own_language_site, field.name)
            for name in value if isinstance(value, tuple) else (value,) if isinstance(value, str) else ():
                assert not name or model.get_submodule(name) is not None


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OWN)
def test_a_copy_of_a_model_has_modules_of_its_own(encoder_folder, kind):
    model = stir_modules(modular(fresh(encoder_folder), kind))
    with torch.no_grad(), active_language(model, "sw"):
        tensor_before = states(model)
    copied_model = stir_modules(deepcopy(model), seed=7)
    with torch.no_grad(), active_language(model, "sw"), active_language(copied_model, "en"):
        assert torch.equal(states(model), tensor_before)
        assert not torch.allclose(states(copied_model), tensor_before)
    with torch.no_grad(), active_language(copied_model, "sw"):
        assert not torch.allclose(states(copied_model), tensor_before)


@pytest.mark.each_value
@pytest.mark.parametrize("kind", OWN)
def test_a_new_language_starts_at_the_mean_of_the_others(encoder_folder, kind):
    equal = modular(fresh(encoder_folder), kind)
    with torch.no_grad():
        plain_tensor = states(fresh(encoder_folder))
        add_language(equal, "fr")
        with active_language(equal, "fr"):
            assert torch.equal(states(equal), plain_tensor)
    model = stir_modules(modular(fresh(encoder_folder), kind))
    weights_before = {name: weight.clone() for name, weight in model.named_parameters()}
    add_language(model, "fr")
    assert modules_of(model).languages == (*LANGUAGES, "fr")
    element = [list(language_parameters(model, language).values()) for language in LANGUAGES]
    for place, weight in enumerate(language_parameters(model, "fr").values()):
        mean = torch.stack([own_part[place] for own_part in element]).mean(dim=0)
        torch.testing.assert_close(weight, mean)
    assert all(
        torch.equal(dict(model.named_parameters())[name], weight) for name, weight in weights_before.items()
    )
    with torch.no_grad():
        with active_language(model, "fr"):
            new_tensor = states(model)
        with active_language(model, ("fr", "en", "fr", "sw")):
            torch.testing.assert_close(states(model)[:, 0], new_tensor[:, 0], atol=1e-5, rtol=1e-4)


def test_a_language_that_is_there_cannot_be_modular(bert_folder):
    model = modular(fresh(bert_folder), "adapter")
    with pytest.raises(ConfigError, match=r"modules: .*sw"):
        add_language(model, "sw")
    with pytest.raises(ConfigError, match=r"adapter.*en, sw"):
        modular(model, "attention")
    shared = modular(fresh(bert_folder), "shared-adapter")
    with pytest.raises(ConfigError, match=r"fr.*adapter"):
        add_language(shared, "fr")
    with pytest.raises(ConfigError, match="modules"):
        add_language(fresh(bert_folder), "fr")


@pytest.mark.parametrize("kind", OWN)
def test_a_language_without_modules_is_refused_with_those_there_are(bert_folder, kind):
    model = modular(fresh(bert_folder), kind)
    message = rf"{kind}.*'ws'.*'sw'\?.*en, sw"
    with pytest.raises(ConfigError, match=message), active_language(model, "ws"):
        pass
    with pytest.raises(ConfigError, match="'de'"), active_language(model, ("en", "de")):
        pass
    with pytest.raises(ConfigError, match="en, sw"):
        check_languages(model, ("",))
    with pytest.raises(ConfigError, match=r"sw\+en"):
        check_languages(model, ("sw+en",))
    with pytest.raises(ConfigError, match="unspecified"):
        states(model)


def test_a_fallback_reads_what_has_no_modules(bert_folder):
    model = stir_modules(modular(fresh(bert_folder), "adapter", fallback="sw"))
    with torch.no_grad():
        with active_language(model, "de"):
            tensor = states(model)
        with active_language(model, "sw"):
            assert torch.equal(states(model), tensor)
        with active_language(model, ("de", "en", "sw", "fr")):
            torch.testing.assert_close(states(model)[:, 0], tensor[:, 0], atol=1e-5, rtol=1e-4)
    fall_back(model, "")
    with pytest.raises(ConfigError, match="'de'"):
        check_languages(model, ("de",))
    fall_back(model, "en")
    check_languages(model, ("de",))
    with pytest.raises(ConfigError, match=r"fallback: .*'fr'.*en, sw"):
        fall_back(model, "fr")


def test_one_adapter_for_all_reads_every_language_and_needs_none_said(bert_folder):
    model = modular(fresh(bert_folder), "shared-adapter")
    with torch.no_grad():
        plain_tensor = states(model)
        for language in ("", "fr", ("en", "fr", "de", "xx")):
            with active_language(model, language):
                assert torch.equal(states(model), plain_tensor)
    assert language_parameters(model, "fr") == {}


def test_nobody_reads_any_more_when_something_fails(bert_folder):
    model = modular(fresh(bert_folder), "adapter")
    with active_language(model, "en"):
        with pytest.raises(KeyError), active_language(model, "sw"):
            raise KeyError
        states(model)  # Still read as en.
    with pytest.raises(ConfigError):
        states(model)


REFUSED = {
    "kind": (Modules(kind="ffn"), LANGUAGES, "no kind of module 'ffn'"),
    "twice": (Modules(kind="adapter"), ("en", "en"), "modules: .*en, en"),
    "none": (Modules(kind="adapter"), (), r"modules: .*\(none\)"),
    "no code": (Modules(kind="adapter"), ("English",), "modules: 'English' "),
    "place": (Modules(kind="adapter", after="attention"), LANGUAGES, "after: no place of adapters"),
    "no adapters": (Modules(kind="attention", invertible=True), LANGUAGES, "attention modules. "),
    "narrow": (Modules(kind="adapter", reduction=64), LANGUAGES, r"32 / 64 \(reduction\).*1 to 32"),
    "fallback": (Modules(kind="adapter", fallback="fr"), LANGUAGES, "no language with modules 'fr'"),
}


@pytest.mark.parametrize(("modules", "languages", "message"), REFUSED.values(), ids=REFUSED)
def test_modules_that_cannot_be_are_refused(bert_folder, modules, languages, message):
    model = fresh(bert_folder)
    with pytest.raises(ConfigError, match=message):
        add_modules(model, modules, languages, seed=0)
    assert modules_of(model) is None


def test_one_seed_gives_one_adapter_and_all_languages_the_same(bert_folder):
    item, other_modular = (modular(fresh(bert_folder), "adapter") for _ in range(2))
    first_language_parameters, second = (
        list(language_parameters(item, language).values()) for language in ("en", "sw")
    )
    assert all(torch.equal(x, y) for x, y in zip(first_language_parameters, second, strict=True))
    again = language_parameters(other_modular, "en").values()
    assert all(torch.equal(x, y) for x, y in zip(first_language_parameters, again, strict=True))
    downs = [
        weight for name, weight in language_parameters(item, "en").items() if name.endswith("down.weight")
    ]
    assert not torch.equal(downs[0], downs[1])


NORMED = {"normed": True, "activation": "relu", "leave_out": (-1,)}


def test_adapters_behind_the_norm_change_nothing_until_they_learn_and_are_saved(encoder_folder, tmp_path):
    model = fresh(encoder_folder)
    if "post-norm" in family_of(model).lacks:
        assert "normed adapters read the states behind a norm" in refusal(
            lambda: modular(model, "adapter", **NORMED)
        )
        return
    with torch.no_grad():
        plain_tensor = states(model)
    modular(model, "adapter", **NORMED)
    last_num_hidden_layers = model.config.num_hidden_layers
    with torch.no_grad(), active_language(model, "sw"):
        assert torch.equal(states(model), plain_tensor)
        changed_tensor = states(stir_modules(model))
    assert not torch.allclose(changed_tensor[1], plain_tensor[1], atol=1e-3)
    assert all(
        site.layer < last_num_hidden_layers
        for site in family_of(model).sites(model)
        if has_adapter(model, site)
    )
    save_model(model, load_tokenizer(encoder_folder), tmp_path / "saved")
    again = load_model(tmp_path / "saved")
    assert modules_of(again).modules == modules_of(model).modules
    with torch.no_grad(), active_language(again, "sw"):
        assert torch.equal(states(again), changed_tensor)


def has_adapter(model, site):
    return any(f"{site.block}." in name for name in language_parameters(model, "sw"))


@pytest.mark.parametrize("layers", [(0,), (9,), (-9,), (1, 2, 3, 4)])
def test_layers_left_out_must_be_there_and_leave_some(bert_folder, layers):
    with pytest.raises(ConfigError, match=r"modules: leave_out: .*encoder.*1"):
        modular(fresh(bert_folder), "adapter", leave_out=layers)
