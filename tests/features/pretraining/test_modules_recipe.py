"""Recipes whose encoders have language modules: planned, refused with a reason, and run end to end."""

import pytest
import transformers

from isogloss.core.errors import ConfigError
from isogloss.core.identity import content, identity
from isogloss.core.run_parts import Architecture, Modules
from isogloss.data.sources import Sources
from isogloss.encoders.added.language_modules import modules_of
from isogloss.encoders.loading import load_model as load_encoder
from isogloss.features.pretraining.methods import MaskedLanguageModelling
from isogloss.features.pretraining.run import Pretrain
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.measure import Measure
from isogloss.using import load_model
from tiny import select_kind

RECIPE = """
title = "Modules"

[[encoder]]
label = "adapter"
[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qad"]
architecture = { layers = 2, dim = 32, heads = 2, feed_forward = 64, vocabulary = 500, positions = 128 }
modules = { kind = "adapter" }
method = { steps = 12, batch_subwords = 512, block = 32, vocabulary_lines = 400, precision = "float32" }

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qad"]
seeds = [0]
examples = 24
dev_examples = 8
optimization = { epochs = 1, learning_rate = 5e-4, batch_size = 8, precision = "float32" }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "bilingual"

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "interpolation"
examples = 8
alphas = [0.0, 1.0]

[[measure]]
name = "cka"
corpus = "bitext"
examples = 40
"""


def pretrain(modules=None, languages=("qaa", "qad"), **fields):
    return Pretrain(
        text=("rawtext",), languages=languages, method=MaskedLanguageModelling(), modules=modules, **fields
    )


def test_an_encoder_without_modules_keeps_its_id():
    assert "modules" not in content(pretrain())
    element = [
        None,
        *(Modules(kind=kind) for kind in ("feed-forward", "attention", "adapter", "shared-adapter")),
    ]
    element += [Modules(kind="adapter", reduction=8), Modules(kind="adapter", fallback="qaa")]
    assert len({identity(pretrain(modules)) for modules in element}) == len(element)


def test_the_label_names_the_modules():
    shape = Architecture(family="bert", layers=4, dim=256)
    plain_example, modular = (pretrain(item, architecture=shape) for item in (None, Modules(kind="adapter")))
    assert plain_example.label.startswith("bert 4x256 on qaa+qad (")
    assert modular.label.startswith("bert 4x256 on qaa+qad, adapter modules (")


def test_an_encoder_with_modules_reads_its_languages_alone():
    modular = pretrain(Modules(kind="attention"))
    assert modular.module_languages({}) == {"qaa", "qad"} and modular.mapped_languages({}) is None
    assert modular.reads("qad", {}) and not modular.reads("qab", {})
    for any_language in (None, Modules(kind="shared-adapter"), Modules(kind="adapter", fallback="qaa")):
        assert pretrain(any_language).reads("qab", {})


def test_languages_without_modules_are_refused_when_the_recipe_is_read(plan, get_refusal):
    (encoder,) = set(select_kind(Pretrain, plan()))
    assert encoder.modules == Modules(kind="adapter")
    refusal = get_refusal(grid__targets=["qad", "qab"])
    assert "'adapter'" in refusal
    assert "Known:" in refusal
    for table in ({"name": "retrieval", "corpus": "bitext"}, {"name": "scores"}):
        refusal = get_refusal(measure=[{**table, "languages": ["qaa", "qab"]}])
        assert "measure[0]: encoder " in refusal
        assert "none for 'qab'" in refusal
    adjust = {
        "name": "cross-lingual-adjustment",
        "bitext": "bitext",
        "pairs": ["qaa-qab"],
        "start": "adapter",
    }
    assert "adjust[0]: pairs: encoder 'adapter' has" in get_refusal(adjust=[adjust])


def test_a_fallback_reads_what_has_no_modules(plan):
    text = RECIPE.replace('kind = "adapter"', 'kind = "adapter", fallback = "qaa"')
    assert text != RECIPE
    measured_runs = select_kind(Measure, plan(text, grid__targets=["qad", "qab"]))
    assert {run.languages for run in measured_runs} >= {("qaa", "qab", "qad")}


def rows(result, diagnostic):
    return [
        row
        for run in select_kind("measure", result.records)
        if run.title.startswith(diagnostic)
        for row in run.rows
    ]


@pytest.mark.nightly
@pytest.mark.slow
def test_an_encoder_is_pretrained_with_its_modules_and_its_parameters_counted(finished_study):
    (record,) = select_kind("pretrain", finished_study.records)
    model = load_encoder(finished_study.out / record.id / "model")
    assert modules_of(model).languages == ("qaa", "qad")
    counts = {row["language"]: row["parameters"] for row in record.rows if "parameters" in row}
    adapters = 2 * 2 * (2 * 32 * 8 + 8 + 32)
    assert counts.keys() == {"", "qaa", "qad"} and counts["qaa"] == counts["qad"] == adapters
    own_parameters = [
        list(model.language_modules.get_submodule(f"of_{language}").parameters())
        for language in ("qaa", "qad")
    ]
    assert not any(x.equal(y) for x, y in zip(*own_parameters, strict=True))
    transformers.AutoModelForMaskedLM.from_pretrained(finished_study.out / record.id / "model")


@pytest.mark.nightly
@pytest.mark.slow
def test_its_models_are_scored_and_mixed_in_each_language(finished_study):
    models = {run.run["method"]["kind"]: run.id for run in select_kind(FineTune.name, finished_study.records)}
    scores = [
        row
        for run in select_kind("measure", finished_study.records)
        if run.title.startswith("scores")
        for row in run.rows
    ]
    assert {(row["model"], row["language"]) for row in scores} == {
        (models[method], language) for method in ("source-only", "bilingual") for language in ("qaa", "qad")
    }
    path = [
        row
        for run in select_kind("measure", finished_study.records)
        if run.title.startswith("interpolation")
        for row in run.rows
    ]
    for row in path:
        end = row["start"] if row["alpha"] == 0.0 else row["end"]
        ends = end, row["language"], row["metric"]
        (scored_row,) = [r for r in scores if (r["model"], r["language"], r["metric"]) == ends]
        assert row["score"] == scored_row["score"]
    cka = [run for run in select_kind("measure", finished_study.records) if run.title.startswith("cka")]
    assert len(cka) == 3 and all(record.rows for record in cka)


@pytest.mark.nightly
@pytest.mark.slow
def test_its_models_are_used_in_a_language(finished_study):
    run = next(
        item.id
        for item in select_kind(FineTune.name, finished_study.records)
        if item.title.startswith("bilingual")
    )
    model = load_model(finished_study.out / run, precision="float32")
    dev = Sources().examples("ud", "qad", "dev", examples=8)
    assert len(model.predict(dev, language="qad")) == 8
    with pytest.raises(ConfigError, match="unspecified"):
        model.predict(dev)
