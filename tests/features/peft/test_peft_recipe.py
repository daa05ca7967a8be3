"""Recipes that train a part of the weights: planned, run, measured, used, exported, read by the library."""

import json
import shutil

import pytest
import torch

import isogloss
from isogloss.core.errors import ModelError
from isogloss.core.identity import identity
from isogloss.data.corpora.catalogue import CORPORA
from isogloss.encoders.folders import shipped_folder
from isogloss.encoders.loading import load_model
from isogloss.features.built_in_languages import BuiltInLanguages
from isogloss.features.peft.methods import LoRA, LotteryTicket
from isogloss.runs.fine_tune import FineTune
from isogloss.tasks import TASKS
from says import check_wording
from tiny import select_kind
from trained import equal

RECIPE = """
title = "LoRA"
encoder = "shipped"

[grid]
corpus = "ud"
task = "upos"
source = "qaa"
targets = ["qab"]
seeds = [0]
examples = 24
dev_examples = 8
optimization = { epochs = 1, learning_rate = 1e-3, batch_size = 8 }
peft = { kind = "lora", rank = 4 }

[[grid.method]]
name = "source-only"

[[grid.method]]
name = "source-only"
label = "whole"
peft = { kind = "none" }

[[grid.method]]
name = "few-shot"
start = "source-only"
shots = 8
peft = { kind = "lt-sft", share = 0.05 }

[[measure]]
name = "scores"
examples = 8

[[measure]]
name = "interpolation"
between = ["source-only", "whole"]
examples = 8
alphas = [0.0, 1.0]
"""


def test_the_grid_says_which_weights_are_trained_unless_a_method_does(plan):
    lora, whole_run, sparse = select_kind(FineTune, plan())
    assert (lora.peft, whole_run.peft, sparse.peft) == (LoRA(rank=4), None, LotteryTicket(share=0.05))
    assert lora.label == "source-only + lora (rank=4)"
    assert sparse.start == lora


def test_without_peft_a_run_is_the_run_it_was(plan):
    _, whole_run, _ = select_kind(FineTune, plan())
    plain_run, *_ = select_kind(FineTune, plan(RECIPE.replace('peft = { kind = "lora", rank = 4 }', "")))
    assert whole_run == plain_run and identity(whole_run) == identity(plain_run)


def test_a_method_is_labelled_by_its_own_peft(plan):
    text = RECIPE.replace('label = "whole"\npeft = { kind = "none" }', 'peft = { kind = "ia3" }')
    text = text.replace('"whole"', '"source-only + ia3"')
    assert len(select_kind(FineTune, plan(text))) == 3


@pytest.mark.parametrize(
    ("peft", "fact"),
    [
        ({"kind": "lroa"}, "kind: no kind of peft 'lroa'. Did you mean 'lora'?"),
        ({"rank": 4}, "kind:"),
        ({"kind": "lora", "rnak": 4}, "rnak: peft lora "),
        ({"kind": "lora", "rank": 0}, "rank: found 0; expected at least 1."),
        ({"kind": "lora", "modules": ["qeury"]}, "modules[0]: found 'qeury'; expected"),
        ({"kind": "lt-sft", "share": 0}, "share: found 0; expected more than 0."),
        ({"kind": "none", "rank": 4}, "rank: peft none "),
    ],
)
def test_mistakes_are_told_before_anything_is_trained(peft, fact, get_refusal):
    check_wording(get_refusal(grid__peft=peft), f"grid.peft: {fact}")


def test_factors_are_mixed_of_models_with_one_kind_of_adapters(plan, get_refusal):
    text = RECIPE + 'part = "factors"\n'
    refusal = get_refusal(text)
    assert "lora, dora, ia3" in refusal
    assert "source-only + lora (rank=4), source-only." in refusal
    assert plan(
        text.replace('label = "whole"\npeft = { kind = "none" }', 'label = "whole"\nlearning_rate = 2e-3')
    )


def model(finished_study, peft):
    (run,) = [
        record
        for record in select_kind("fine-tune", finished_study.records)
        if record.run.get("peft", {}).get("kind") == peft
    ]
    return finished_study.out / run.id


@pytest.fixture(scope="module")
def dev():
    return list(CORPORA["ud"].read(BuiltInLanguages(), "qab", "dev"))[:8]


@pytest.mark.nightly
def test_trained_parameters_are_recorded(finished_study):
    counts = finished_study.frame("trained-parameters").set_index("run")
    lora, whole_count = (counts.loc[model(finished_study, peft).name] for peft in ("lora", None))
    assert whole_count["trained"] == whole_count["parameters"] == lora["parameters"]
    head = 17 * 128 + 17
    assert lora["trained"] == head + 4 * 2 * 4 * 2 * 128  # layers, modules, rank, two matrices of the width


@pytest.mark.nightly
def test_scores_and_ends_of_the_path_agree(finished_study):
    rows = [row for record in select_kind("measure", finished_study.records) for row in record.rows]
    scores = {(row["model"], row["language"]): row["score"] for row in rows if row.get("main")}
    ends = {(row["alpha"], row["language"]): row["score"] for row in rows if "alpha" in row}
    for alpha, peft in ((0.0, "lora"), (1.0, None)):
        assert ends[alpha, "qab"] == scores[model(finished_study, peft).name, "qab"]


@pytest.mark.nightly
def test_a_model_on_a_model_on_an_encoder_is_put_together_again(finished_study):
    sparse = model(finished_study, "lt-sft") / "model"
    lora = model(finished_study, "lora") / "model"
    assert json.loads((sparse / "difference.json").read_text())["base"] == f"../../{lora.parent.name}/model"
    assert json.loads((lora / "difference.json").read_text())["base"] == "shipped"
    head = TASKS["upos"].head(sparse, seed=0)
    own_parameters = dict(head.named_parameters())
    parameters_below = dict(TASKS["upos"].head(lora, seed=0).named_parameters())
    changed_total = sum(
        int((weight != parameters_below[name]).sum()) for name, weight in own_parameters.items()
    )
    assert (
        0
        < changed_total
        <= 0.05 * sum(torch.numel(own_parameter) for own_parameter in own_parameters.values()) + 17 * 129
    )
    assert sum(path.stat().st_size for path in sparse.glob("*.safetensors")) < 2**20


@pytest.mark.nightly
def test_a_store_that_was_moved_is_read_and_a_base_that_is_gone_is_missed(finished_study, tmp_path):
    shutil.copytree(finished_study.out, tmp_path / "moved")
    sparse, lora = (
        tmp_path / "moved" / model(finished_study, peft).name / "model" for peft in ("lt-sft", "lora")
    )
    assert equal(
        TASKS["upos"].head(sparse, seed=0),
        TASKS["upos"].head(model(finished_study, "lt-sft") / "model", seed=0),
    )
    path = lora / "adapter_config.json"
    path.write_text(path.read_text() + "\n")
    with pytest.raises(ModelError, match="since"):
        load_model(sparse)
    shutil.rmtree(lora)
    with pytest.raises(ModelError, match="folder"):
        load_model(sparse)


@pytest.mark.nightly
@pytest.mark.parametrize("peft", ["lora", "lt-sft"])
def test_an_export_is_an_ordinary_model_with_the_same_answers(peft, finished_study, dev, tmp_path):
    from transformers import AutoModelForTokenClassification

    result = isogloss.load_model(model(finished_study, peft))
    result.export(tmp_path / "export")
    assert not (tmp_path / "export" / "difference.json").exists()
    plain_model = AutoModelForTokenClassification.from_pretrained(tmp_path / "export")
    assert equal(plain_model, result.network)
    assert isogloss.load_model(tmp_path / "export").predict(dev) == result.predict(dev)


@pytest.mark.nightly
def test_the_library_reads_the_folder_as_its_own(finished_study):
    from peft import PeftModel
    from transformers import AutoModelForTokenClassification

    folder = model(finished_study, "lora") / "model"
    base = AutoModelForTokenClassification.from_pretrained(shipped_folder(), num_labels=17)
    theirs = PeftModel.from_pretrained(base, str(folder)).eval()
    ours = TASKS["upos"].head(folder, seed=0)
    ids = torch.arange(5, 25).view(2, 10)
    with torch.inference_mode():
        assert torch.allclose(theirs(input_ids=ids).logits, ours(input_ids=ids).logits, atol=1e-5)
