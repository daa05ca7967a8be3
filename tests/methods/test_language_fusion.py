"""FLARE: its equations by hand, LoRA exactly without a source, its training, and scores with translations."""

import json
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import peft
import pytest
import torch
from torch.nn.functional import cross_entropy

import in_translation
import isogloss
from any_models import make_model
from each import each
from isogloss.core.errors import ConfigError, ModelError
from isogloss.core.run_parts import Modules, Optimization, with_fields
from isogloss.diagnostics.setting import MeasureSetting, Subject
from isogloss.encoders.added.language_modules import add_modules
from isogloss.encoders.loading import load_whole
from isogloss.encoders.saving import save_model
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.language_fusion.diagnostic import LanguageFusion, shuffle_partners
from isogloss.features.language_fusion.method import Flare, load_fusion, save_fusion
from isogloss.features.peft.methods import DoRA, LoRA
from isogloss.features.peft.peft_adapters import add_adapters, module_names
from isogloss.methods.plain import SourceOnly
from isogloss.tasks import TASKS
from isogloss.training.batching import Bucketed
from isogloss.training.evaluation import evaluation
from isogloss.training.fine_tuning import Training, fine_tune
from isogloss.training.pairs import paired_batches
from isogloss.training.parallel_text import BitextSentences
from isogloss.training.setting import Reads
from isogloss.training.sides import RowPair, collate_pairs
from says import says
from trained import equal, interrupt_batches

FUSIONS = ("add", "multiply", "add-relu", "attention")
NLI = TASKS["nli"]


def adapted(name="bert", *, seed=1, modules=("query", "value"), rank=4, **fields):
    """Return a tiny encoder with LoRA whose weights are drawn from a seed."""
    model, tokenizer = make_model(name)
    targets = module_names(model, modules)
    config = peft.LoraConfig(r=rank, lora_alpha=6, target_modules=targets, **fields)
    add_adapters(model, config, seed=0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter_name, weight in model.named_parameters():
            if "lora_" in parameter_name:
                weight.copy_(0.5 * torch.randn(weight.shape, generator=generator))
    return model.eval(), tokenizer


def pair_of_batches(tokenizer):
    """Return source and target texts, padded to one width, and the mask of both."""
    sources = ["the cat sat on the mat", "a dog ran"]
    targets = ["hills over ran dog a", "mat the on sat cat the"]
    batch = tokenizer([*sources, *targets], padding=True, return_tensors="pt")
    return {key: batch[key] for key in ("input_ids", "attention_mask")}


def states_of(model, batch):
    with torch.no_grad():
        return model(**batch)[0]


# The equations


def fuse_by_hand(source, target, fusion, mask):
    """Fuse states [subword rank] of one pair, position by position."""
    fused = []
    for position, own in enumerate(target):
        other = source[position]
        if fusion == "attention":
            real = [index for index in range(len(source)) if mask[index]]
            raw = torch.stack([own @ source[index] / len(own) ** 0.5 for index in real])
            shares = raw.exp() / raw.exp().sum()
            fused.append(own + sum(share * source[index] for share, index in zip(shares, real, strict=True)))
        elif not mask[position]:
            fused.append(own)
        else:
            fused.append(
                {
                    "add": own + other,
                    "multiply": own * other,
                    "add-relu": own.clamp(min=0) + other.clamp(min=0),
                }[fusion]
            )
    return torch.stack(fused)


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("name", ["bert", "gemma3_text", "eurobert"])
def test_each_adapter_computes_the_equation(name, fusion):
    model, tokenizer = adapted(name)
    batch = pair_of_batches(tokenizer)
    records = []

    def record(layer, inputs, output):
        records.append((layer, inputs[0], output))

    layers = [module for module in model.modules() if isinstance(module, peft.tuners.lora.LoraLayer)]
    handles = [layer.register_forward_hook(record) for layer in layers]
    with isogloss.fusing(model, fusion=fusion, mask=batch["attention_mask"]):
        states_of(model, batch)
    for handle in handles:
        handle.remove()
    assert len(records) == len(layers) == 2 * model.config.num_hidden_layers
    for layer, inputs, output in each(records):
        base = layer.base_layer(inputs)
        down, up = (getattr(layer, part)["default"].weight for part in ("lora_A", "lora_B"))
        torch.testing.assert_close(output[:2], base[:2], rtol=0, atol=0)
        for row in (0, 1):
            source, target = inputs[row] @ down.T, inputs[row + 2] @ down.T
            fused = fuse_by_hand(source, target, fusion, batch["attention_mask"][row].tolist())
            torch.testing.assert_close(
                output[row + 2], base[row + 2] + 6 / 4 * fused @ up.T, rtol=1e-4, atol=1e-5
            )


@pytest.mark.parametrize("fusion", FUSIONS)
def test_source_rows_run_through_the_model_without_adapters(fusion):
    model, tokenizer = adapted()
    batch = pair_of_batches(tokenizer)
    plain, _ = make_model("bert")
    with isogloss.fusing(model, fusion=fusion, mask=batch["attention_mask"]):
        states = states_of(model, batch)
    torch.testing.assert_close(states[:2], states_of(plain, batch)[:2], rtol=0, atol=0)
    assert not torch.allclose(states[2:], states_of(model, batch)[2:])


def test_the_context_leaves_nothing_behind():
    model, tokenizer = adapted()
    batch = pair_of_batches(tokenizer)
    before = states_of(model, batch)
    with isogloss.fusing(model, mask=batch["attention_mask"]):
        states_of(model, batch)
    assert torch.equal(states_of(model, batch), before)
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.parametrize("fusion", ["add", "add-relu"])
def test_translations_without_any_states_change_nothing_of_lora(fusion):
    """Where the source has no subword, the target row is that of LoRA."""
    model, tokenizer = adapted()
    batch = pair_of_batches(tokenizer)
    mask = batch["attention_mask"].clone()
    mask[:2] = 0
    with isogloss.fusing(model, fusion=fusion, mask=mask):
        states = states_of(model, batch)
    torch.testing.assert_close(states[2:], states_of(model, batch)[2:], rtol=0, atol=0)


def test_no_gradient_reaches_the_source_but_through_the_adapters():
    model, tokenizer = adapted()
    batch = pair_of_batches(tokenizer)
    with isogloss.fusing(model, fusion="add", mask=batch["attention_mask"]):
        output = model(**batch)[0]
    trained = [weight for name, weight in model.named_parameters() if "lora_" in name]
    of_source, of_target = (
        torch.autograd.grad(rows.sum(), trained, allow_unused=True, retain_graph=True)
        for rows in output.chunk(2)
    )
    for source, target in each(zip(of_source, of_target, strict=True)):
        assert source is None or not source.any()
        assert target is not None and target.any()


def test_models_that_do_not_fit_are_refused():
    plain, tokenizer = make_model("bert")
    with says(ModelError, "LoRA", "none", "BertModel"):
        isogloss.fusing(plain)
    dora, _ = adapted(use_dora=True)
    with says(ModelError, "DoRA"):
        isogloss.fusing(dora)
    merged, _ = adapted()
    for layer in merged.modules():
        if isinstance(layer, peft.tuners.lora.LoraLayer):
            layer.merge()
    with says(ModelError, "LoRA", "merged"):
        isogloss.fusing(merged)
    model, _ = adapted()
    with says(ConfigError, "fusing: fusion", "'sum'", "'add'"):
        isogloss.fusing(model, fusion="sum")
    batch = {key: value[:3] for key, value in pair_of_batches(tokenizer).items()}
    with isogloss.fusing(model), says(ModelError, "[3, ", "even"):
        states_of(model, batch)


# The method


def setting(task, folder, work, *, kind=None, teacher="", target=("de",), **options):
    options = {"batch_size": 8, "epochs": 2, "learning_rate": 5e-3, "checkpoint_every": 2, **options}
    made = in_translation.setting(task, folder, work, target=target, teacher=teacher, **options)
    return replace(made, peft=kind or LoRA(rank=4))


@pytest.fixture(scope="module")
def train_once(tmp_path_factory, bert_folder):
    @cache
    def train(method, seed=0):
        made = setting("nli", bert_folder, tmp_path_factory.mktemp("work"))
        return method.train(replace(made, seed=seed))

    return train


def test_without_fusion_it_is_lora_on_the_translations_to_the_bit(train_once, bert_folder, tmp_path):
    def prepare(setting, _, tokenizer, train):
        batches, _ = paired_batches(setting, tokenizer, train)

        def loss(model, batch):
            pairs = len(batch.target.subwords)
            scores = NLI.scores(model, batch.joined.chosen(range(pairs, 2 * pairs)))
            return cross_entropy(scores, batch.target.gold)

        return Training(batches=batches, loss=loss)

    by_hand = fine_tune(
        setting("nli", bert_folder, tmp_path), Reads(train=("en", "en-de"), dev=("en",)), prepare=prepare
    )
    without_fusion = train_once(Flare(fusion="none"))
    assert equal(without_fusion, by_hand)
    assert without_fusion.rows == by_hand.rows
    assert not any(equal(train_once(Flare(fusion=fusion)), by_hand) for fusion in FUSIONS)


def test_without_a_target_it_is_source_only_with_lora_to_the_bit(bert_folder, tmp_path):
    trainings = [
        method.train(setting("nli", bert_folder, tmp_path / method.name, target=()))
        for method in (Flare(), SourceOnly())
    ]
    assert equal(*trainings)
    assert trainings[0].rows == trainings[1].rows


@pytest.mark.parametrize("fusion", FUSIONS)
def test_the_loss_is_that_of_the_target_rows_of_a_fused_pass(fusion, bert_folder, tmp_path):
    made = setting("nli", bert_folder, tmp_path)
    model = NLI.head(bert_folder, seed=0)
    config = peft.LoraConfig(r=4, target_modules=module_names(model, ("query", "value")))
    add_adapters(model, config, seed=0)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_()
    model.eval()
    train = {language: in_translation.pairs(language, 6) for language in ("en", "en-de")}
    batch = paired_batches(made, load_tokenizer(bert_folder), train)[0][0]
    with torch.no_grad():
        loss = Flare(fusion=fusion).loss(NLI, model, batch)
        with isogloss.fusing(model, fusion=fusion, mask=batch.joined.mask):
            scores = NLI.scores(model, batch.joined)
        plain = NLI.scores(model, batch.joined)
    pairs = len(scores) // 2
    assert float(loss) == pytest.approx(float(cross_entropy(scores[pairs:], batch.target.gold)), rel=1e-6)
    assert float(loss) != pytest.approx(float(cross_entropy(plain[pairs:], batch.target.gold)), rel=1e-4)


@pytest.mark.parametrize("task", ["upos", "qa", "multiple-choice"])
def test_other_tasks_are_learned_as_well(task, bert_folder, tmp_path, teacher):
    result = Flare().train(setting(task, bert_folder, tmp_path, teacher=teacher if task == "upos" else ""))
    scores = [row["score"] for row in result.rows if "score" in row]
    assert scores and all(0 <= score <= 1 for score in scores)
    save_model(result.model, result.tokenizer, tmp_path / "saved", result.extra_writers, result.difference)
    assert load_fusion(tmp_path / "saved") == "add-relu"


@pytest.mark.slow
def test_the_seed_decides_the_model_of_an_interrupted_training_too(
    train_once, bert_folder, tmp_path, monkeypatch
):
    whole_training = train_once(Flare())
    assert not equal(train_once(Flare(), seed=1), whole_training)
    with interrupt_batches(Bucketed, monkeypatch, at=-1):
        Flare().train(setting("nli", bert_folder, tmp_path))
    again = Flare().train(setting("nli", bert_folder, tmp_path))
    assert equal(again, whole_training)
    assert again.rows == whole_training.rows


@pytest.mark.slow
def test_recomputed_layers_and_batches_in_parts_give_the_same_model(train_once, bert_folder, tmp_path):
    whole_training = train_once(Flare())
    recomputed = Flare().train(setting("nli", bert_folder, tmp_path / "a", gradient_checkpointing=True))
    assert equal(recomputed, whole_training)


def test_methods_and_tasks_that_do_not_fit_are_refused(bert_folder, tmp_path):
    with says(ConfigError, "flare", "parsing", "translate-train"):
        Flare().check(TASKS["parsing"], None)
    for kind, name in ((None, "none"), (DoRA(), "dora")):
        made = replace(setting("nli", bert_folder, tmp_path), peft=kind)
        with says(ConfigError, "flare", "peft", name, 'kind = "lora"'):
            Flare().train(made)


def test_an_encoder_whose_languages_run_apart_is_refused(bert_folder, tmp_path):
    model = load_whole(bert_folder)
    add_modules(model, Modules(kind="attention"), ("en", "de"), seed=0)
    save_model(model, load_tokenizer(bert_folder), tmp_path / "encoder")
    with says(ModelError, "LoRA", "separate attention"):
        Flare().train(setting("nli", tmp_path / "encoder", tmp_path / "work"))


def test_a_damaged_file_is_refused(tmp_path):
    assert load_fusion(tmp_path) is None
    (tmp_path / "language_fusion.json").write_text(json.dumps(["add"]))
    with says(ModelError, "language_fusion.json", "damaged"):
        load_fusion(tmp_path)


# Scores with translations


@pytest.fixture(scope="module")
def fused_model(bert_folder, tmp_path_factory):
    """A tagger with LoRA drawn from a seed, and a folder that names its fusion."""
    model = TASKS["upos"].head(bert_folder, seed=0)
    config = peft.LoraConfig(r=4, target_modules=module_names(model, ("query", "value")))
    add_adapters(model, config, seed=0)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_" in name or "classifier" in name:
                weight.copy_(torch.randn(weight.shape, generator=generator))
    folder = tmp_path_factory.mktemp("fused")
    save_fusion("attention", folder)
    return model.eval(), folder


def read_evaluation(bert_folder, language, count=12):
    optimization = with_fields(Optimization(), limit=40, overlap=8, precision="float32")
    return evaluation(
        TASKS["upos"],
        in_translation.sentences(language, count),
        load_tokenizer(bert_folder),
        optimization,
        language=language.rpartition("-")[2],
    )


def measure_setting(bert_folder, model, folder, translated="de-en", count=12):
    return MeasureSetting(
        subjects=(Subject(id="m", rows=(), folder=folder),),
        languages=("en", "de"),
        split="test",
        source=("en",),
        load=lambda _: model,
        load_factors=lambda _: model,
        evaluation=lambda language: read_evaluation(bert_folder, language),
        translated_evaluation=lambda _: read_evaluation(bert_folder, translated, count),
        encoder=lambda _: (model.base_model, load_tokenizer(bert_folder)),
        bitext=lambda _: [],
        parallel=BitextSentences(lambda _: []),
    )


def score_by_hand(bert_folder, model):
    """Score sentence by sentence, each with its translation in a batch of two rows."""
    task = TASKS["upos"]
    data = read_evaluation(bert_folder, "de")
    translated = read_evaluation(bert_folder, "de-en")
    padding = load_tokenizer(bert_folder).pad_token_id
    scores = []
    for row, partner in zip(data.rows, translated.rows, strict=True):
        sides = collate_pairs([RowPair(partner, row)], padding=padding, languages=("en", "de"))
        with torch.no_grad(), isogloss.fusing(model, fusion="attention", mask=sides.joined.mask):
            scores.append(sides.split(task.scores(model, sides.joined))[1])
    return task.score(data.gold, task.decode(data.examples, data.rows, scores))


def test_scores_with_translations_are_those_of_pairs_one_by_one(fused_model, bert_folder):
    model, folder = fused_model
    (row,) = LanguageFusion().measure(measure_setting(bert_folder, model, folder))
    assert (row.language, row.translated, row.examples) == ("de", 1.0, 12)
    assert row.alone == pytest.approx(read_evaluation(bert_folder, "de").score(model))
    assert row.fused == pytest.approx(score_by_hand(bert_folder, model))
    assert len({row.alone, row.fused, row.shuffled}) > 1


def test_examples_without_a_translation_are_read_alone(fused_model, bert_folder):
    model, folder = fused_model
    (row,) = LanguageFusion().measure(measure_setting(bert_folder, model, folder, count=3))
    assert row.translated == 0.25


def test_a_translation_is_shuffled_to_a_different_example():
    rows = {index: SimpleNamespace(example=index, options=()) for index in range(7)}
    shuffled = shuffle_partners(rows, seed=1)
    assert sorted(row.example for row in shuffled.values()) == list(range(7))
    assert all(row.example != index for index, row in each(shuffled.items()))
    assert shuffle_partners(rows, seed=1) == shuffled != shuffle_partners(rows, seed=2)
    assert shuffle_partners({0: rows[0]}, seed=1) is None


def test_models_that_fuse_nothing_are_not_measured(fused_model, bert_folder, tmp_path):
    model, _ = fused_model
    with says(ModelError, "language-fusion", "flare"):
        LanguageFusion().measure(measure_setting(bert_folder, model, tmp_path))
    with says(ConfigError, "language-fusion", "between", "2", "one"):
        LanguageFusion(between=("a", "b"))


RECIPE = """
title = "Fusion"
encoder = "shipped"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 30
dev_examples = 8
optimization = { epochs = 1, learning_rate = 1e-3, checkpoint_every = 0 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "flare"
start = "source-only"
peft = { kind = "lora" }

[[measure]]
name = "language-fusion"
split = "test"
examples = 10
inputs = "paired"
"""


def test_a_recipe_without_lora_is_refused_before_anything_trains(plan, tmp_path):
    with says(ConfigError, "flare", "peft", 'kind = "lora"'):
        plan(RECIPE.replace('peft = { kind = "lora" }', ""))


@pytest.mark.slow
def test_a_recipe_starts_from_the_source_and_scores_with_translations(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE, encoding="utf-8")
    result = isogloss.run(path, out=tmp_path / "runs", jobs=1)
    assert not result.outcome.failed
    (row,) = isogloss.read(tmp_path / "runs").measurements.frame("language-fusion").to_dict("records")
    assert row["language"] == "qab" and row["translated"] == 1.0
    assert all(0 <= row[name] <= 1 for name in ("alone", "fused", "shuffled"))
    assert "Scores with translations in the adapters" in (tmp_path / "runs" / "report.html").read_text()
