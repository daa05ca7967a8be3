"""Parts of models: they partition the parameters, and swaps, removals and perturbations follow their laws."""

from copy import deepcopy

import peft
import pytest
import torch
from torch import nn

import isogloss
from any_models import MODELS, make_model
from each import each
from isogloss.core.errors import ConfigError, DataError, ModelError
from isogloss.core.run_parts import Modules
from isogloss.encoders.added.active_language import active_language
from isogloss.encoders.added.added_weights import language_parameters
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.added.task_adapters import add_task_adapter, task_adapter
from isogloss.encoders.loading import load_masked_lm, load_model
from says import says

TAGS = "AutoModelForTokenClassification"
IDS = torch.tensor([[2, 5, 6, 7, 3]])
WITHOUT_TAGGER = ("gemma3_text", "m2m_100")
SUPPORTED = (
    "bert",
    "camembert",
    "deberta-v2",
    "distilbert",
    "eurobert",
    "gemma3_text",
    "llama",
    "modernbert",
    "mt5",
    "qwen3",
    "rembert",
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
)
LANGUAGES = ("en", "de", "fr")


def tagger(name="bert", seed=0, **fields):
    """Return a tiny model with weights moved by noise from a seed."""
    model, _ = make_model(name, "AutoModel" if name in WITHOUT_TAGGER else TAGS, **fields)
    return stir(model, seed)


def stir(model, seed, size=0.2):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(size * torch.randn(weight.shape, generator=generator))
    return model


def parameters(model):
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def changed_names(before, after):
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def same(model, expected):
    return not changed_names(parameters(model), parameters(expected))


@torch.no_grad()
def output(model, language=None):
    if language is None:
        return model(input_ids=IDS)[0]
    with active_language(model, language):
        return model(input_ids=IDS)[0]


def total(model):
    return float(output(model).sum())


def modular(kind="adapter", seed=1, **fields):
    model = tagger()
    add_modules(model, Modules(kind=kind, **fields), LANGUAGES, seed=0)
    return stir(model, seed)


# Parts


def check_partition(model):
    parts = isogloss.list_parts(model)
    names = [name for part in parts.values() for name in part]
    assert len(names) == len(set(names))
    assert set(names) == {name for name, _ in model.named_parameters()}
    assert all(parts.values())
    return parts


def test_the_parts_of_every_family_contain_each_parameter_once(any_folder):
    for load in (load_model, load_masked_lm):
        try:
            model = load(any_folder)
        except ModelError:  # Some families have no masked-LM head.
            assert load is load_masked_lm
            continue
        parts = check_partition(model)
        for layer in range(1, model.config.num_hidden_layers + 1):
            for kind in ("attention", "feed-forward", "norms"):
                assert f"layer {layer} {kind}" in parts
        assert "embeddings" in parts
        assert ("head" in parts) == any(
            not name.startswith(f"{model.base_model_prefix}.") or ".pooler." in name
            for name, _ in model.named_parameters()
            if load is load_masked_lm or "pooler" in name
        )


@pytest.mark.parametrize("name", MODELS)
def test_the_parts_of_other_families_contain_each_parameter_once(name):
    check_partition(make_model(name)[0])


@pytest.mark.parametrize("name", SUPPORTED)
def test_norms_of_a_layer_are_apart_from_attention_and_feed_forward(name):
    parts = isogloss.list_parts(tagger(name))
    layer_parts = {part: names for part, names in parts.items() if part.startswith("layer")}
    for part, names in each(layer_parts.items()):
        is_norm = ["norm" in name.lower() for name in names]
        assert all(is_norm) if part.endswith("norms") else not any(is_norm)


@pytest.mark.parametrize("kind", ["adapter", "feed-forward", "attention", "embedding", "shared-adapter"])
def test_modules_of_languages_and_tasks_are_parts(kind):
    model = modular(kind)
    add_task_adapter(model, 4, seed=0)
    parts = check_partition(model)
    assert {f"layer {layer} task adapter" for layer in (1, 2, 3)} <= set(parts)
    if kind == "shared-adapter":
        assert {f"layer {layer} shared adapter" for layer in (1, 2, 3)} <= set(parts)
        return
    for language in LANGUAGES:
        names = [name for part in parts if part.endswith(f"modules of {language}") for name in parts[part]]
        assert set(names) == language_parameters(model, language).keys()


def test_invertible_adapters_are_at_the_embeddings():
    parts = check_partition(modular("adapter", invertible=True))
    assert {"embeddings modules of en", "layer 3 modules of fr"} <= set(parts)


def adapted(kind, seed=1):
    fields = {"target_modules": ["query", "value"]}
    if kind == "ia3":
        config = peft.IA3Config(feedforward_modules=[], **fields)
    else:
        config = peft.LoraConfig(r=2, use_dora=kind == "dora", **fields)
    return stir(peft.get_peft_model(tagger(), config), seed).eval()


@pytest.mark.parametrize("kind", ["lora", "dora", "ia3"])
def test_adapters_of_peft_are_parts(kind):
    model = adapted(kind)
    parts = check_partition(model.get_base_model())
    for part, names in each(isogloss.list_parts(model).items()):
        is_adapter = ["lora_" in name or "ia3_" in name for name in names]
        assert all(is_adapter) if part.endswith("adapters") else not any(is_adapter)
    assert "layer 3 adapters" in parts


def test_unions_are_the_parts_that_they_name():
    model = tagger()
    parts = isogloss.list_parts(model)
    donor = tagger(seed=1)
    unions = {
        "layer 2": [part for part in parts if part.startswith("layer 2 ")],
        "layers 1-2": [part for part in parts if part.startswith(("layer 1 ", "layer 2 "))],
        "attention": [part for part in parts if part.endswith(" attention")],
        "encoder": [part for part in parts if part != "head"],
        "all": list(parts),
    }
    for union, members in each(unions.items()):
        swapped = isogloss.swap_parts(model, donor, [union])
        expected = {name for part in members for name in parts[part]}
        assert changed_names(parameters(model), parameters(swapped)) == expected


def test_a_module_is_a_part_by_its_name():
    model = tagger()
    swapped = isogloss.swap_parts(model, tagger(seed=1), ["bert.encoder.layer.0.attention.self.query"])
    prefix = "bert.encoder.layer.0.attention.self.query."
    expected = {f"{prefix}weight", f"{prefix}bias"}
    assert changed_names(parameters(model), parameters(swapped)) == expected


# Swaps


@pytest.mark.parametrize("name", SUPPORTED)
def test_a_swap_with_itself_changes_nothing_and_of_all_parts_everything(name):
    model = tagger(name)
    donor = tagger(name, seed=1)
    before = parameters(model)
    parts = list(isogloss.list_parts(model))
    assert same(isogloss.swap_parts(model, deepcopy(model), parts), model)
    everything = isogloss.swap_parts(model, donor, parts)
    assert same(everything, donor)
    assert torch.equal(output(everything), output(donor))
    assert not changed_names(before, parameters(model))


def test_one_swap_after_another_is_both_at_once_in_any_order():
    model = tagger()
    donor = tagger(seed=1)
    first, second = ["layer 1 attention", "head"], ["layer 2", "embeddings"]
    at_once = isogloss.swap_parts(model, donor, [*first, *second])
    for order in ((first, second), (second, first)):
        swapped = model
        for parts in order:
            swapped = isogloss.swap_parts(swapped, donor, parts)
        assert same(swapped, at_once)


def test_a_part_moved_into_the_start_is_the_end_with_all_other_parts_of_the_start():
    start = tagger()
    end = tagger(seed=1)
    for part in each(isogloss.list_parts(start)):
        other_parts = [name for name in isogloss.list_parts(start) if name != part]
        into_start = isogloss.swap_parts(start, end, [part])
        assert same(into_start, isogloss.swap_parts(end, start, other_parts))


def test_an_encoder_without_a_head_gives_its_parts_and_no_head():
    model = tagger()
    encoder = stir(make_model("bert", add_pooling_layer=False)[0], 5)
    swapped = isogloss.swap_parts(model, encoder, ["embeddings", "layers 1-3"])
    found = {name.removeprefix("bert."): weight for name, weight in parameters(swapped).items()}
    for name, weight in each(parameters(swapped.base_model).items()):
        assert torch.equal(weight, encoder.get_parameter(name))
    assert torch.equal(found["classifier.weight"], model.classifier.weight)
    with says(ConfigError, "'head'", "embeddings"):
        isogloss.swap_parts(swapped.base_model, encoder, ["head"])


@pytest.mark.parametrize("kind", ["adapter", "feed-forward", "attention"])
def test_a_language_is_read_with_the_modules_of_a_related_one(kind):
    model = modular(kind)
    swapped = isogloss.swap_parts(model, model, {"modules of de": "modules of fr"})
    assert not torch.equal(output(model, "de"), output(model, "fr"))
    assert torch.equal(output(swapped, "de"), output(model, "fr"))
    assert torch.equal(output(swapped, "en"), output(model, "en"))


def test_a_layer_takes_the_place_of_another_layer():
    model = tagger()
    swapped = isogloss.swap_parts(model, model, {"layer 1": "layer 2"})
    for name, weight in each(swapped.base_model.encoder.layer[0].named_parameters()):
        assert torch.equal(weight, model.base_model.encoder.layer[1].get_parameter(name))


def test_modules_of_torch_have_a_part_for_each_child():
    model, donor = (nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1)) for _ in range(2))
    assert isogloss.list_parts(model) == {"0": ["0.weight", "0.bias"], "1": ["1.weight", "1.bias"]}
    swapped = isogloss.swap_parts(model, donor, ["1"])
    assert torch.equal(swapped[0].weight, model[0].weight)
    assert torch.equal(swapped[1].weight, donor[1].weight)


def test_a_wrapped_model_has_its_parts():
    model, donor = (nn.Sequential(tagger(seed=seed), nn.Linear(2, 2)) for seed in (0, 1))
    assert set(isogloss.list_parts(model)) == {*isogloss.list_parts(model[0]), "1"}
    swapped = isogloss.swap_parts(model, donor, ["layer 1", "1"])
    expected = isogloss.swap_parts(model[0], donor[0], ["layer 1"])
    assert same(swapped[0], expected) and same(swapped[1], donor[1])


# Removals


def test_removed_adapters_of_languages_leave_the_encoder_without_them():
    plain = tagger()
    model = tagger()
    add_modules(model, Modules(kind="adapter", invertible=True), LANGUAGES, seed=0)
    with torch.no_grad():
        for language in LANGUAGES:
            for weight in language_parameters(model, language).values():
                weight.normal_()
    stripped = isogloss.strip_parts(model, ["modules of de"])
    assert not torch.equal(output(model, "de"), output(plain))
    assert torch.equal(output(stripped, "de"), output(plain))
    assert torch.equal(output(stripped, "fr"), output(model, "fr"))


def test_a_removed_task_adapter_leaves_the_model_without_it():
    plain = tagger()
    model = tagger()
    add_task_adapter(model, 4, seed=0)
    stir(task_adapter(model), 3)
    assert not torch.equal(output(model), output(plain))
    assert torch.equal(output(isogloss.strip_parts(model, ["task adapter"])), output(plain))


@pytest.mark.parametrize("kind", ["lora", "ia3"])
def test_removed_adapters_of_peft_leave_the_base_model(kind):
    model = adapted(kind)
    with model.disable_adapter():
        expected = output(model)
    assert not torch.equal(output(model), expected)
    stripped = isogloss.strip_parts(model, ["adapters"])
    assert isinstance(stripped, peft.PeftModel)
    torch.testing.assert_close(output(stripped), expected, rtol=0, atol=0)


def test_removing_dora_is_refused():
    with says(ModelError, "strip_parts", "DoRA", "magnitude"):
        isogloss.strip_parts(adapted("dora"), ["adapters"])


SCALES = {"bert": 1.0, "llama": 1.0, "gemma3_text": 0.0, "mt5": 1.0}
"""The weight with which a norm of each family does not scale."""


@pytest.mark.parametrize(("name", "scale"), SCALES.items())
def test_removed_norms_scale_by_one(name, scale):
    model = tagger(name)
    norms = [part for part in isogloss.list_parts(model) if part.endswith("norms")]
    stripped = isogloss.strip_parts(model, norms)
    names = [name for part in norms for name in isogloss.list_parts(model)[part]]
    for weight_name in each(names):
        expected = scale if weight_name.endswith("weight") else 0.0
        assert bool((stripped.get_parameter(weight_name) == expected).all())


def test_without_attention_a_word_does_not_see_its_neighbours():
    model = isogloss.strip_parts(tagger(), ["attention"])
    other_ids = IDS.clone()
    other_ids[0, 2] = 9
    outputs = [model(input_ids=ids)[0] for ids in (IDS, other_ids)]
    torch.testing.assert_close(outputs[0][0, 1], outputs[1][0, 1], rtol=0, atol=0)
    assert not torch.equal(outputs[0][0, 2], outputs[1][0, 2])


# Random directions


def test_random_directions_are_as_long_as_the_swap_row_by_row():
    model = tagger()
    donor = tagger(seed=1)
    with torch.no_grad():  # A subword that was not trained.
        donor.base_model.embeddings.word_embeddings.weight[4] = model.get_input_embeddings().weight[4]
    perturbed = isogloss.perturb_parts(model, donor, ["all"], seed=3)
    for name, weight in each(model.named_parameters()):
        moved, expected = (
            (model_parameters.get_parameter(name) - weight).reshape(len(weight) if weight.ndim > 1 else 1, -1)
            for model_parameters in (perturbed, donor)
        )
        torch.testing.assert_close(moved.norm(dim=1), expected.norm(dim=1), rtol=1e-3, atol=1e-5)
    embeddings = perturbed.get_input_embeddings().weight
    assert torch.equal(embeddings[4], model.get_input_embeddings().weight[4])
    assert not torch.equal(embeddings[5], donor.get_input_embeddings().weight[5])


def test_random_directions_depend_on_the_seed_and_stay_at_equal_models():
    model = tagger()
    donor = tagger(seed=1)
    draws = [isogloss.perturb_parts(model, donor, ["layer 1"], seed=seed) for seed in (0, 0, 1)]
    assert same(draws[0], draws[1])
    assert not same(draws[0], draws[2])
    assert same(isogloss.perturb_parts(model, deepcopy(model), ["all"]), model)


# Scores


@pytest.mark.parametrize("name", ["bert", "gemma3_text", "mt5"])
def test_scores_are_those_of_the_changed_models(name):
    models = {"start": tagger(name), "end": tagger(name, seed=1)}
    before = {key: parameters(model) for key, model in models.items()}
    rows = isogloss.score_parts(*models.values(), total, changes=("swap", "strip", "random"), draws=2, seed=4)
    assert set(isogloss.list_parts(models["start"])) < set(rows["part"])
    for row in each(rows[rows["change"] != "random"].itertuples()):
        model = models[row.model]
        donor = models["end" if row.model == "start" else "start"]
        expected = {
            "none": lambda model=model: model,
            "swap": lambda model=model, donor=donor, part=row.part: isogloss.swap_parts(model, donor, [part]),
            "strip": lambda model=model, part=row.part: isogloss.strip_parts(model, [part]),
        }[row.change]()
        assert row.score == total(expected)
    swapped = rows[(rows["change"] == "swap") & (rows["part"] == "all")].set_index("model")["score"]
    assert swapped["start"] == total(models["end"]) and swapped["end"] == total(models["start"])
    swaps = rows[rows["change"] == "swap"].set_index(["model", "part"])["norm"]
    random_rows = rows[rows["change"] == "random"].set_index(["model", "part"])
    assert set(random_rows["draw"]) == {0, 1}
    assert random_rows["norm"].to_numpy() == pytest.approx(swaps[random_rows.index].to_numpy(), rel=1e-3)
    for key, model in models.items():
        assert not changed_names(before[key], parameters(model))


def test_scores_may_have_names_and_progress_counts_them():
    seen = []
    rows = isogloss.score_parts(
        tagger(),
        tagger(seed=1),
        lambda model: {"qaa": 1.0, "qab": total(model)},
        ["layer 1", "head"],
        on_progress=seen.append,
    )
    assert list(rows.columns[-2:]) == ["qaa", "qab"]
    assert rows["part"].tolist() == ["none", "layer 1", "head"] * 2
    assert [(step.done, step.total) for step in seen] == [(index, 6) for index in range(1, 7)]


# What does not fit


def test_wrong_parts_and_models_are_refused():
    model = tagger()
    with says(ConfigError, "'layer 4'", "1 to 3"):
        isogloss.swap_parts(model, model, ["layer 4"])
    with says(ConfigError, "'heads'", "'head'", "layer 1 attention"):
        isogloss.swap_parts(model, model, ["heads"])
    with says(ConfigError, "swap_parts", "'head'", "['head']"):
        isogloss.swap_parts(model, model, "head")
    with says(ConfigError, "strip_parts", "none"):
        isogloss.strip_parts(model, [])
    with says(ConfigError, "score_parts", "changes", "'swaps'", "'swap'"):
        isogloss.score_parts(model, model, total, changes=("swaps",))
    with says(ModelError, "swap_parts", "layer 1", "[32, 16]", "[24, 16]"):
        isogloss.swap_parts(model, tagger(intermediate_size=24), ["layer 1"])
    with says(ModelError, "'head'", "classifier"):
        isogloss.swap_parts(model, make_model("bert")[0], {"head": "layer 1"})
    with says(DataError, "score", "[1]"):
        isogloss.score_parts(model, model, lambda _: [1], ["head"])


def test_heads_with_other_labels_are_refused_and_encoders_fit():
    models = [tagger(num_labels=2), tagger(num_labels=2)]
    for model, labels in zip(models, (("A", "B"), ("B", "A")), strict=True):
        model.config.id2label = dict(enumerate(labels))
    with says(ModelError, "swap_parts", "'A'", "'B'"):
        isogloss.swap_parts(*models, ["head"])
    with says(ModelError, "score_parts", "'A'", "'B'"):
        isogloss.score_parts(*models, total, ["encoder"])
    assert same(isogloss.swap_parts(*models, ["encoder"]), models[0])
