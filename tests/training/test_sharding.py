"""Processes that hold shares of a model train what one process does. Model and checkpoints stay ordinary."""

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest
import torch
from processes import run_in_processes
from torch import nn

from each import each
from isogloss.core.errors import ConfigError
from isogloss.core.run_parts import Conflict, Modules
from isogloss.encoders.added.language_modules import ensure_modules
from isogloss.encoders.family import freeze
from isogloss.tasks.masked_lm import MaskedBatch, masked_lm_loss
from isogloss.training.batching import parts_of
from isogloss.training.checkpoints import Checkpoints
from isogloss.training.distributed import Shards, is_sharded, local, prepare_sharding
from isogloss.training.fit import Callback, Callbacks, fit
from isogloss.training.gradient_conflict import Pool, conflict_callback
from isogloss.training.optimizer import adamw, check_optimizer_states
from toys import UPDATES, no_time
from trained import weights

SHARDED = {"ACCELERATE_USE_FSDP": "true"}
HOW = replace(UPDATES, learning_rate=2e-3, accumulation=2, clip=0.5, gradient_checkpointing=True)
WORDS = 51
STEPS = 8


def model():
    """A masked-LM model with tied embeddings, modules of three languages, and what is not trained."""
    from transformers import BertConfig, BertForMaskedLM

    shape = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertForMaskedLM(BertConfig(vocab_size=WORDS, max_position_embeddings=12, **shape))
    ensure_modules(model, Modules(kind="adapter"), ("en", "de", "sw"), seed=0)
    freeze(model.bert.embeddings.position_embeddings.parameters())
    return model


class Texts:
    """Rows in English, then in German: a part of a batch has one language, and Swahili is absent."""

    def __init__(self, stop=-1):
        self.stop = stop

    def __len__(self):
        return STEPS

    def __getitem__(self, step):
        if step == self.stop:
            raise KeyboardInterrupt
        generator = torch.Generator().manual_seed(step)
        rows = 3 if step == STEPS - 1 else 8
        subwords = torch.randint(WORDS, (rows, 10), generator=generator)
        masked_indices = torch.rand(rows * 10, generator=generator).lt(0.3).nonzero().flatten()
        languages = ("en",) * (rows - rows // 2) + ("de",) * (rows // 2)
        gold = subwords.flatten()[masked_indices] % 7
        return MaskedBatch(subwords, None, None, masked_indices, gold, languages)


def train_in(folder, stop=-1):
    """Train a model. Dev scores choose the weights after some updates before the last."""
    folder.mkdir(exist_ok=True)
    network = model()

    def notes(done):
        with torch.inference_mode():
            loss = float(masked_lm_loss(network, Texts()[0]))
        return [{"step": done, "score": loss if done != 3 else 99.0}]

    callbacks = Callbacks(
        evaluate=notes,
        evaluate_at=(3, 6),
        checkpoints=Checkpoints(folder, 4, no_time),
        periodic=(Callback(rows=notes, every=STEPS, at_start=True),),
    )
    rows = fit(network, Texts(stop), masked_lm_loss, updates=HOW, seed=0, callbacks=callbacks)
    return network, rows


def train(rank, folder, stop=-1):
    """Train, and write what this process ends with."""
    with suppress(KeyboardInterrupt):
        network, rows = train_in(folder, stop)
        assert all(type(parameter) is nn.Parameter for parameter in network.parameters())
        assert network.cls.predictions.decoder.weight is network.bert.embeddings.word_embeddings.weight
        assert {type(part).__name__ for part in network.modules()} == parts(model())
        torch.save({"weights": weights(network), "rows": rows}, folder / f"{rank}.pt")


def parts(network):
    return {type(part).__name__ for part in network.modules()}


def assert_near(first_data, other_single_process):
    """The same rows and weights within rounding, Adam's of gradients that are 0 but for that left out."""
    for ours, theirs in zip(first_data["rows"], other_single_process["rows"], strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    for name, weight in first_data["weights"].items():
        if not name.endswith("key.bias"):
            assert torch.allclose(weight, other_single_process["weights"][name], atol=1e-5), name


@pytest.fixture(scope="module")
def single_process(tmp_path_factory):
    network, rows = train_in(tmp_path_factory.mktemp("alone"))
    return {"weights": weights(network), "rows": rows}


@pytest.mark.slow
def test_two_processes_with_shares_do_what_one_does(single_process, tmp_path):
    """Parts with different modules, tied and frozen weights, recomputed layers."""
    run_in_processes(2, train, tmp_path, **SHARDED)
    first_data, second = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert_near(first_data, single_process)
    weights_before = weights(model())
    for name, weight in each(first_data["weights"].items()):
        assert torch.equal(second["weights"][name], weight)
        assert torch.equal(weights_before[name], weight) == ("of_sw" in name or "position" in name), name


@pytest.mark.nightly
@pytest.mark.slow
def test_a_checkpoint_is_gone_on_from_with_shares_and_without(single_process, tmp_path):
    for name, begin, go_on in (
        ("shared", partial(run_in_processes, 2, train, **SHARDED), partial(train, 0)),
        ("whole", partial(train, 0), partial(run_in_processes, 2, train, **SHARDED)),
    ):
        begin(tmp_path / name, 6)
        assert [path.name for path in (tmp_path / name).glob("checkpoint-*")] == ["checkpoint-000000004"]
        go_on(tmp_path / name)
        assert_near(torch.load(tmp_path / name / "0.pt"), single_process)


def measure_shares(rank, folder):
    """Make an update. Write what part of weights, gradients and moments this process holds after it."""
    network = model()
    whole_result = 4 * sum(parameter.nbytes for parameter in network.parameters() if parameter.requires_grad)
    shares = Shards(network)
    optimizer = adamw(network, HOW)
    batch, _ = parts_of(Texts()[0], 2, "a test")[rank]
    with shares.gradients_summed(during_pass=True):
        shares.loss(lambda item: masked_lm_loss(item, batch)).backward()
    optimizer.step()
    trained_parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
    held_values = [
        *trained_parameters,
        *(
            trained_parameter.grad
            for trained_parameter in trained_parameters
            if trained_parameter.grad is not None
        ),
    ]
    held_values += [item for state in optimizer.state.values() for item in state.values() if item.dim()]
    assert not any(type(parameter) is nn.Parameter for parameter in network.parameters())
    memory = {
        untyped_storage.data_ptr(): untyped_storage.nbytes()
        for untyped_storage in (local(held_value).untyped_storage() for held_value in held_values)
    }
    (folder / f"{rank}.txt").write_text(str(sum(memory.values()) / whole_result))


@pytest.mark.slow
def test_each_of_two_processes_holds_half_of_weights_gradients_and_moments(tmp_path):
    run_in_processes(2, measure_shares, tmp_path, **SHARDED)
    held_texts = [float((tmp_path / f"{rank}.txt").read_text()) for rank in (0, 1)]
    assert sum(held_texts) > 0.9
    assert max(held_texts) < 0.55


@pytest.fixture
def shard_loading(monkeypatch):
    monkeypatch.setattr("isogloss.training.distributed.world_size", lambda: 2)
    monkeypatch.setenv(*next(iter(SHARDED.items())))
    monkeypatch.setenv("FSDP_CPU_RAM_EFFICIENT_LOADING", "true")


def test_a_model_is_sharded_where_the_launcher_says_so(monkeypatch, shard_loading):
    assert is_sharded()
    prepare_sharding()
    assert os.environ["FSDP_CPU_RAM_EFFICIENT_LOADING"] == "False"  # All processes read weights.
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "false")
    assert not is_sharded()


def test_every_process_gets_a_part(shard_loading):
    """Three rows in four parts: the last is computed twice, and counts once."""
    batch = replace(Texts()[STEPS - 1], languages=("en",))
    result = parts_of(batch, 4, "a test")
    assert [share is None for _, share in result] == [False, False, False, True]
    assert result[3][0] is result[2][0]
    assert sum(share or 0 for _, share in result) == pytest.approx(1)


@pytest.mark.parametrize("name", ["FSDP_OFFLOAD_PARAMS", "FSDP_ACTIVATION_CHECKPOINTING"])
def test_what_a_launcher_asks_of_sharding_in_vain_is_refused(name, monkeypatch, shard_loading):
    monkeypatch.setenv(name, "true")
    with pytest.raises(ConfigError, match=f"{name}.*--fsdp"):
        prepare_sharding()


def test_what_cannot_be_sharded_is_refused(shard_loading):
    from isogloss.methods import PRETRAINING

    with pytest.raises(ConfigError, match=r"optimizer_states: .*--use_fsdp"):
        check_optimizer_states("8-bit")
    with pytest.raises(ConfigError, match="conflict:"):
        conflict_callback(Conflict(), nn.Linear(1, 1), Pool({}, lambda *_: ()), seed=0)
    with pytest.raises(ConfigError, match=r"meta-learning: .*masked-language-modelling"):
        PRETRAINING["meta-learning"]().check("bert", Modules(kind="adapter"), ("en", "de"))
