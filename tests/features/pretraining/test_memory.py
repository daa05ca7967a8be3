"""Estimates of memory equal the tensors that autograd keeps. A benchmark measures whole processes."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from isogloss.core.run_parts import Architecture, Updates
from isogloss.encoders import FAMILIES
from isogloss.encoders.computation import fastest_attention, quick_dropout
from isogloss.features.pretraining.starts import config_of, set_dropout
from isogloss.training.memory import (
    STATUS,
    Load,
    Machine,
    activations,
    layer_memory,
    measured_peak,
    restart_measurement,
    scoring_memory,
    shape_of,
    training_memory,
)

LOAD = Load(rows=4, length=128)
SMALL = Architecture(layers=1, dim=64, heads=4, feed_forward=128, vocabulary=60)
ENCODERS = ("bert", "deberta-v2", "distilbert", "modernbert", "xlm-roberta")


def autograd_bytes(config, *, half_size):
    """Count the bytes that are kept for the gradients, weights aside, as in a training."""
    from transformers import AutoModel

    family = FAMILIES[config.model_type]
    attention = "eager" if "attention-kinds" in family.lacks else fastest_attention()
    model = AutoModel.from_config(config, attn_implementation=attention).train()
    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    storages = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            storages[storage.data_ptr()] = storage, storage.nbytes()
        return tensor

    ids = torch.full((LOAD.rows, LOAD.length), 7)
    mask = torch.ones(LOAD.rows, LOAD.length, dtype=torch.long)
    mask[0, -1] = 0
    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", torch.bfloat16, enabled=half_size),
        quick_dropout(model),
    ):
        output = model(input_ids=ids, attention_mask=mask)
    del output
    return sum(size for _, size in storages.values())


@cache
def tiny_config(family, layers, dropout):
    config = config_of(replace(SMALL, family=family, layers=layers), bos_token_id=1, eos_token_id=2)
    set_dropout(config, dropout)
    return config


@pytest.mark.skipif(torch.cuda.is_available(), reason="counts what a CPU keeps")
@pytest.mark.parametrize("half_size", [False, True])
@pytest.mark.parametrize("dropout", [0.1, 0.0])
@pytest.mark.parametrize("family", ENCODERS)
def test_a_layer_keeps_what_is_said(family, dropout, half_size):
    # Each third layer of modernbert sees all of the text; all layers keep the same.
    more, fewer = (
        autograd_bytes(tiny_config(family, layers, dropout), half_size=half_size) for layers in (3, 2)
    )
    shape, other_shape = (shape_of(tiny_config(family, layers, dropout)) for layers in (3, 2))
    converted_value = 2 * (shape.parameters - other_shape.parameters) if half_size else 0
    assert layer_memory(shape, LOAD, Machine(half=half_size)) == pytest.approx(
        more - fewer - converted_value, rel=0.1
    )


def test_the_parameters_are_those_of_the_model():
    from transformers import AutoModelForMaskedLM

    config = tiny_config("bert", 2, 0.1)
    model = AutoModelForMaskedLM.from_config(config)
    assert shape_of(config).parameters == sum(weight.numel() for weight in model.parameters())


@pytest.mark.skipif(torch.cuda.is_available() or not STATUS.exists(), reason="as Linux counts a process")
def test_the_peak_is_of_what_was_done_since():
    restart_measurement()
    measured_peak_before = measured_peak()
    block = torch.ones(50_000_000)
    assert measured_peak() - measured_peak_before > 0.9 * 4 * len(block)
    del block
    restart_measurement()
    assert measured_peak() - measured_peak_before < 100_000_000


@pytest.mark.parametrize("gpu", [False, True])
def test_every_way_to_save_memory_saves_some(gpu):
    shape = replace(shape_of(tiny_config("bert", 3, 0.1)), layers=12)
    load = Load(rows=32, length=128, predicted=600)
    machine = Machine(gpu=gpu)

    def peak(*, best=False, **updates):
        return training_memory(shape, load, Updates(**updates), machine, best_weights=best)

    plain_peak = peak()
    for less in ({"gradient_checkpointing": True}, {"accumulation": 4}, {"optimizer_states": "8-bit"}):
        assert peak(**less) < plain_peak
    assert peak(accumulation=4, gradient_checkpointing=True) < peak(accumulation=4)
    assert peak(accumulation=1) == plain_peak == peak(best=True) - 4 * shape.parameters
    assert scoring_memory(shape, load, machine) < plain_peak
    assert activations(shape, load, machine) > 12 * layer_memory(shape, load, machine)
