"""Perplexity: e to the mean cross entropy at the same hidden places whenever it is asked."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.features.pretraining import held_out as module
from isogloss.features.pretraining.held_out import (
    frequency_perplexity,
    held_out_batches,
    perplexity_rows,
    plateau_warnings,
)
from isogloss.features.pretraining.streams import write_stream
from isogloss.tasks.masked_lm import Masking, TextStream, Vocabulary
from isogloss.training.batching import BatchSampling, perplexity
from made_up import TEXT

DRAWING = BatchSampling(steps=1, batch_subwords=64, block=16)
PLAIN = Vocabulary(size=100, first=2, last=3, padding=0, mask=4, special=(0, 1, 2, 3, 4))


@pytest.fixture(scope="module")
def masking(bert_folder):
    return Masking(vocabulary=Vocabulary.from_tokenizer(load_tokenizer(bert_folder)))


@pytest.fixture(scope="module")
def batches(bert_folder, masking, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    stream = write_stream([TEXT] * 9, load_tokenizer(bert_folder), folder, longest=14)
    return held_out_batches(stream, DRAWING, masking, seed=0, language="en")


@pytest.fixture(scope="module")
def model(bert_folder):
    return load_masked_lm(bert_folder).eval()


def test_perplexity_is_that_of_hugging_faces_loss(model, batches):
    total = hidden = 0
    for batch in batches:
        labels = torch.full_like(batch.subwords, -100).flatten()
        labels[batch.masked] = batch.gold
        with torch.inference_mode():
            loss = model(input_ids=batch.subwords, labels=labels.view_as(batch.subwords)).loss
        total, hidden = total + float(loss) * len(batch.gold), hidden + len(batch.gold)
    assert perplexity(model, batches, precision="float32") == pytest.approx(math.exp(total / hidden))


def test_a_model_that_knows_nothing_is_as_perplexed_as_the_vocabulary_is_large(model, batches):
    weights = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
    result = perplexity(model, batches, precision="float32")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(weights[name])
    assert result == pytest.approx(model.config.vocab_size, rel=1e-4)


def test_perplexity_that_is_too_large_to_say_is_infinite(model, batches):
    with torch.no_grad():
        model.cls.predictions.decoder.bias.copy_(torch.linspace(0, 1e6, model.config.vocab_size))
    result = perplexity(model, batches, precision="float32")
    with torch.no_grad():
        model.cls.predictions.decoder.bias.zero_()
    assert result == math.inf


def test_rows_say_step_epoch_and_language(model, batches):
    held_out = {"en": batches, "sw": batches[:1]}
    rows, again = (
        perplexity_rows(model, held_out, 9, steps_per_epoch=4, precision="float32") for _ in range(2)
    )
    assert [(row["step"], row["epoch"], row["language"]) for row in rows] == [(9, 3, "en"), (9, 3, "sw")]
    assert rows == again


def a_stream(lengths):
    starts = np.cumsum([0, *lengths[:-1]])
    return TextStream(np.arange(5, 5 + sum(lengths), dtype=np.int32), starts)


def whole(batch):
    flat = batch.subwords.flatten().clone()
    flat[batch.masked] = batch.gold
    return flat.view_as(batch.subwords)[:, 1:-1]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(8, 24))
def test_held_out_blocks_begin_at_lines_and_none_lies_over_another(lengths, block):
    stream = a_stream(lengths)
    masking = Masking(vocabulary=replace(PLAIN, size=10**6))
    sampling = replace(DRAWING, block=block)
    result = held_out_batches(stream, sampling, masking, seed=0, language="sw")
    rows = [row.tolist() for batch in result for row in whole(batch)]
    firsts = [row[0] - 5 for row in rows]
    assert rows == [list(range(row[0], row[0] + min(block - 2, len(stream)))) for row in rows]
    assert set(firsts) <= set(stream.starts.tolist()) | {0}
    assert all(b - a >= block - 2 for a, b in pairwise(firsts))
    assert {batch.languages for batch in result} == {("sw",)}
    assert all(len(batch.subwords) <= sampling.rows for batch in result)


def test_of_a_long_text_blocks_are_spread_evenly(monkeypatch):
    monkeypatch.setattr(module, "MAX_HELD_OUT", 140)
    result = held_out_batches(
        a_stream([14] * 1000), DRAWING, Masking(vocabulary=replace(PLAIN, size=10**6)), seed=0, language="sw"
    )
    firsts = [int(row[0] - 5) // 14 for batch in result for row in whole(batch)]
    assert firsts == [0, 111, 222, 333, 444, 555, 666, 777, 888, 999]


def test_masks_follow_from_seed_and_language(masking):
    def places(**options):
        stream = a_stream([14] * 20)
        result = held_out_batches(
            stream, DRAWING, Masking(vocabulary=PLAIN), **{"seed": 0, "language": "sw", **options}
        )
        return torch.cat([batch.masked for batch in result])

    assert torch.equal(places(), places())
    assert not torch.equal(places(), places(seed=1))
    assert not torch.equal(places(), places(language="en"))


# Encoders that learn nothing but frequencies


def stream_of(subwords):
    return TextStream(np.array(subwords), np.array([0]))


def test_guessing_by_frequency_is_as_perplexed_as_equally_frequent_subwords_are_many():
    assert frequency_perplexity(stream_of([7, 8, 9, 10] * 5), special=(1,)) == pytest.approx(4)


@given(st.lists(st.integers(5, 30), min_size=1, max_size=60))
def test_guessing_by_frequency_has_the_entropy_of_the_subwords_that_can_be_hidden(subwords):
    counts = np.unique(subwords, return_counts=True)[1]
    expected = math.exp(entropy(counts))
    with_separators = [subword for element in subwords for subword in (element, 2)]
    assert frequency_perplexity(stream_of(with_separators), special=(0, 2)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("scores", "warned_value"), [((9.0, 3.0), False), ((9.0, 4.5), True), ((3.0, 4.0), True)]
)
def test_an_encoder_no_better_than_guessing_by_frequency_is_warned_of(scores, warned_value):
    rows = [
        {"metric": "perplexity", "language": "qaa", "step": 100 * index, "score": score}
        for index, score in enumerate(scores)
    ]
    warnings = plateau_warnings([{"step": 1, "loss": 2.0}, *rows], {"qaa": stream_of([7, 8, 9, 10])}, (1,))
    assert bool(warnings) == warned_value
    facts = ("qaa", "100 steps", f"{scores[-1]:.0f}", "4")
    assert all(fact in warning for warning in warnings for fact in facts)
