"""Models that store only what was trained load again, whatever encoder they were trained on."""

import shutil
from pathlib import Path

import pytest

import isogloss
from command_line import Command
from each import each
from isogloss.core.errors import IsoglossError
from isogloss.core.records import base_of

RECIPE = """
title = "Few weights on every kind of encoder"

[[encoder]]
label = "folder"
pretrained = "{bert}"

[[encoder]]
label = "lifted"
pretrained = "{decoder}"
attention = "bidirectional"

[[encoder]]
label = "own"
[encoder.pretrain]
text = ["rawtext"]
languages = ["qaa", "qab"]
architecture = {{ layers = 2, dim = 32, heads = 2, feed_forward = 64, vocabulary = 300, positions = 128 }}
method = {{ steps = 2, batch_subwords = 512, block = 32, vocabulary_lines = 200 }}

[[adjust]]
label = "adjusted"
name = "cross-lingual-adjustment"
start = "folder"
bitext = "bitext"
pairs = ["qaa-qab"]
examples = 8
pulled = "words"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 8
dev_examples = 4
optimization = {{ epochs = 1, learning_rate = 5e-4, batch_size = 4, precision = "float32" }}

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "source-only"
label = "layers"
peft = {{ kind = "layer-freezing", layers = 0 }}

[[grid.method]]
name = "source-only"
label = "lora"
peft = {{ kind = "lora", rank = 2 }}

[[measure]]
name = "scores"
split = "test"
examples = 8
languages = ["qab"]
"""
MODELS = 4 * 3


@pytest.fixture(scope="module")
def study(
    bert_folder: Path, gemma3_text_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> isogloss.Result:
    folder = tmp_path_factory.mktemp("differences")
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(bert=bert_folder, decoder=gemma3_text_folder), encoding="utf-8")
    result = isogloss.run(recipe, out=folder / "runs", jobs=1, report=False)
    assert not result.outcome.failed
    return result


@pytest.mark.slow
def test_every_model_scores_after_loading_what_its_run_scored(study: isogloss.Result) -> None:
    scores = study.frame("scores")
    scores = scores[scores["main"].astype(bool)].set_index("model")["score"]
    examples = isogloss.load_corpus("ud", "qab", "test", examples=8)
    models = [run for run in study.runs if run.kind == "fine-tune"]
    assert len(models) == MODELS
    for run in models:
        model = isogloss.load_model(run.folder)
        predicted_tags = model.predict(examples, language="qab")
        pairs = [
            (predicted_tag, gold_tag)
            for tags, example in zip(predicted_tags, examples, strict=True)
            for predicted_tag, gold_tag in zip(tags, example.tags, strict=True)
        ]
        assert sum(one == two for one, two in pairs) / len(pairs) == pytest.approx(scores[run.id]), run


@pytest.mark.slow
def test_every_model_is_exported_and_predicts_as_before(
    study: isogloss.Result, command: Command, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("a b c\n", encoding="utf-8")
    for run in each(run for run in study.runs if run.kind == "fine-tune"):
        outputs = []
        exported_folder = tmp_path / run.id
        assert command("export", run.folder, exported_folder).status == 0
        for folder in (run.folder, exported_folder):
            result = command("predict", folder, text, "--language", "qab")
            assert result.status == 0, result.err
            outputs.append(result.out)
        assert outputs[0] == outputs[1], run


@pytest.mark.slow
def test_a_changed_weight_of_a_prepared_encoder_is_found_on_loading(study: isogloss.Result) -> None:
    (prepared,) = (
        path.parent for path in study.out.glob("*/model") if not (path.parent / "record.json").exists()
    )
    weights = prepared / "model" / "model.safetensors"
    content = weights.read_bytes()
    models = [
        run.folder
        for run in study.runs
        if run.kind == "fine-tune" and base_of(run.folder / "model") == prepared.name
    ]
    assert len(models) == 2
    try:
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        for model in models:
            with pytest.raises(IsoglossError, match=prepared.name):
                isogloss.load_model(model)
    finally:
        weights.write_bytes(content)


@pytest.mark.slow
def test_a_prepared_encoder_that_is_missing_is_prepared_again_to_measure(
    study: isogloss.Result, tmp_path: Path
) -> None:
    """As on a second machine of a study in a bucket, where only finished runs are shared."""
    runs = tmp_path / "runs"
    shutil.copytree(study.out, runs, symlinks=True)
    for path in runs.glob("*/model"):
        if not (path.parent / "record.json").exists():
            shutil.rmtree(path.parent)
    more = '\n[[measure]]\nname = "scores"\nsplit = "dev"\nexamples = 4\nlanguages = ["qab"]\n'
    recipe = tmp_path / "recipe.toml"
    recipe.write_text((study.out.parent / "recipe.toml").read_text(encoding="utf-8") + more, encoding="utf-8")
    result = isogloss.run(recipe, out=runs, jobs=1, report=False)
    assert not result.outcome.failed
    assert len(result.outcome.made) == MODELS
