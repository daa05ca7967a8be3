"""A decoder in a recipe: with its mask and without, from the plan to the saved model."""

import json
from shutil import copytree

import pytest

import isogloss
from isogloss.core.errors import ConfigError
from isogloss.core.identity import identity
from isogloss.encoders.folders import load_encoder_config
from isogloss.planning.plan import plan_recipe
from isogloss.runs.fine_tune import FineTune
from isogloss.runs.pretrained import Pretrained
from tiny import TINY, tiny


def recipe(tmp_path, encoder, **fields):
    message = "".join(f'\n{name} = "{value}"' for name, value in fields.items())
    text = TINY.partition('[[grid.method]]\nname = "bilingual"')[0]
    return tiny(
        tmp_path, text.replace('encoder = "shipped"', f'[encoder]\npretrained = "{encoder}"{message}')
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_decoder_is_trained_and_saved_without_its_mask(gemma3_text_folder, tmp_path):
    path = recipe(tmp_path, gemma3_text_folder, attention="bidirectional")
    changes = {"grid.seeds": [0], "grid.targets": ["qab"]}
    result = isogloss.run(path, out=tmp_path / "runs", changes=changes, jobs=1, report=False)
    assert not result.outcome.failed
    (record,) = result.records
    assert record.run["encoder"]["attention"] == "bidirectional"
    config = load_encoder_config(tmp_path / "runs" / record.id / "model")
    assert config.use_bidirectional_attention is True
    assert (
        json.loads((gemma3_text_folder / "config.json").read_text())["use_bidirectional_attention"] is False
    )
    model = isogloss.load_model(tmp_path / "runs" / record.id)
    assert len(model.predict([["a", "cat"]], language="qab")[0]) == 2


def test_attention_is_part_of_the_run_where_it_is_said_alone(llama_folder, tmp_path):
    plain_encoder, causal, lifted_encoder = (
        plan_recipe(recipe(tmp_path, llama_folder, **message), out=tmp_path).runs[0].encoder
        for message in ({}, {"attention": "causal"}, {"attention": "bidirectional"})
    )
    assert plain_encoder.attention is None
    assert identity(plain_encoder) == identity(Pretrained(source="llama", data=plain_encoder.data))
    assert len({identity(item) for item in (plain_encoder, causal, lifted_encoder)}) == 3
    assert lifted_encoder.label == "llama, bidirectional"


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ({"attention": "both"}, "encoder.attention"),
        ({"attention": "bidirectional"}, "attends"),
    ],
)
def test_what_cannot_be_is_refused_in_the_plan(bert_folder, tmp_path, messages, message):
    with pytest.raises(ConfigError) as error:
        plan_recipe(recipe(tmp_path, bert_folder, **messages), out=tmp_path)
    assert message in str(error.value)


def test_a_decoder_that_cannot_be_looked_at_is_planned_with_its_mask_lifted(tmp_path):
    path = recipe(tmp_path, "somebody/small-decoder", attention="bidirectional")
    (model,) = {run.encoder for run in plan_recipe(path, out=tmp_path).runs if isinstance(run, FineTune)}
    assert isinstance(model, Pretrained)
    assert (model.source, model.attention) == ("somebody/small-decoder", "bidirectional")


def test_a_decoder_is_not_pretrained_from_scratch(tmp_path):
    text = (
        '[encoder]\npretrain = { text = ["text"], languages = ["qaa"], architecture = { family = "llama" } }'
    )
    path = tiny(tmp_path, TINY.replace('encoder = "shipped"', text))
    with pytest.raises(Exception, match="llama") as error:
        plan_recipe(path, out=tmp_path)
    assert "Use bert or camembert" in str(error.value)


@pytest.mark.parametrize(("tied_value", "head"), [(True, True), (False, False)])
def test_modules_alone_are_trained_where_the_decoder_has_its_head(
    tied_value, head, gemma3_text_folder, tmp_path
):
    """A folder of GGUF, as others, may name the decoder without its head, which is the embeddings."""
    folder = copytree(gemma3_text_folder, tmp_path / "decoder")
    config = json.loads((folder / "config.json").read_text())
    changes = {**config, "architectures": ["Gemma3TextModel"], "tie_word_embeddings": tied_value}
    (folder / "config.json").write_text(json.dumps(changes))
    encoders = f"""
[[encoder]]
label = "lifted"
pretrained = "{folder}"
attention = "bidirectional"

[[encoder]]
label = "adapters"

[encoder.pretrain]
start = "lifted"
text = ["rawtext"]
languages = ["qaa", "qab", "qad"]
modules = {{ kind = "adapter" }}
trained = "modules"
method = {{ name = "masked-next-token", steps = 2 }}
"""
    path = tiny(tmp_path, TINY.replace('encoder = "shipped"', encoders))
    if head:
        assert len(plan_recipe(path, out=tmp_path).runs) > 2
        path = tiny(
            tmp_path, TINY.replace('encoder = "shipped"', encoders.replace("bidirectional", "causal"))
        )
        with pytest.raises(ConfigError, match=r"masked-next-token: .*'lifted'"):
            plan_recipe(path, out=tmp_path)
    else:
        with pytest.raises(ConfigError, match="head"):
            plan_recipe(path, out=tmp_path)
