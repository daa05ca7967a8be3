"""The content of a batch depends only on the seed and the step, and a batch knows its languages."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from each import each
from isogloss.tasks.masked_lm import Masking, TextStream, Vocabulary
from isogloss.training.batching import BatchSampling, TextBatches

CODES = ("en", "de", "sw")
VOCABULARY = Vocabulary(size=100, first=2, last=3, padding=0, mask=4, special=(0, 1, 2, 3, 4))
DRAWING = BatchSampling(steps=8, batch_subwords=96, block=16, temperature=1.43)


def same_batch(left, right):
    pairs = [(getattr(left, name), getattr(right, name)) for name in type(left).__dataclass_fields__]
    return all(a == b if not isinstance(a, torch.Tensor) else torch.equal(a, b) for a, b in pairs)


def stream(size, first_item=5):
    """A text of ``size`` subwords, in lines of ten, each subword in ``first`` to ``first + 9``."""
    subwords = np.resize(np.arange(first_item, first_item + 10, dtype=np.int32), size)
    return TextStream(subwords, np.arange(0, size, 10))


def parallel(count, languages=("en", "de"), longest=12):
    rng = np.random.default_rng(0)
    return [
        {
            language: np.full(rng.integers(1, longest), 10 * (place + 1), dtype=np.int32)
            for place, language in enumerate(languages)
        }
        for _ in range(count)
    ]


def batches(sampling=DRAWING, *, sizes=(1000, 1000), translated_texts=(), seed=0):
    streams = {
        language: stream(size, 10 * n + 10)
        for n, (language, size) in enumerate(zip(CODES, sizes, strict=False))
    }
    masking = Masking(vocabulary=VOCABULARY)
    return TextBatches(
        sampling=sampling, streams=streams, translations=translated_texts, masking=masking, seed=seed
    )


def languages_of(batch):
    """Return the tens of the subwords at the hidden places: the language, in the streams above."""
    return set((batch.gold // 10).tolist())


@pytest.mark.slow
@settings(max_examples=20)
@given(st.permutations(range(12)), st.booleans())
def test_a_batch_follows_from_seed_and_step_alone(order, mixed_result):
    sampling = replace(DRAWING, steps=12, translation=0.4, mixed=mixed_result)
    text_batches = batches(sampling, translated_texts=parallel(30))
    whole_result = [text_batches[step] for step in range(len(text_batches))]
    again = batches(sampling, translated_texts=parallel(30))
    for step in order:
        assert same_batch(again[step], whole_result[step])
    other_text_batches = batches(sampling, translated_texts=parallel(30), seed=1)
    assert not all(same_batch(item, other_text_batches[step]) for step, item in enumerate(whole_result))


def test_a_batch_of_text_fills_its_budget_without_padding():
    batch = batches()[0]
    assert tuple(batch.subwords.shape) == (96 // 16, 16)
    assert batch.mask is None


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [1.0, 1.43, 5.0])
def test_languages_are_drawn_by_the_power_of_their_size(temperature):
    sizes = (8000, 2000, 500)
    sampling = replace(DRAWING, steps=1000, temperature=temperature)
    text_batches = batches(sampling, sizes=sizes)
    drawn_golds = [languages_of(text_batches[step]) for step in range(1000)]
    assert all(len(drawn_gold) == 1 for drawn_gold in drawn_golds)
    counts = np.bincount([next(iter(drawn_gold)) - 1 for drawn_gold in drawn_golds], minlength=3) / 1000
    weights = np.array(sizes) ** (1 / temperature)
    assert counts == pytest.approx(weights / weights.sum(), abs=4 * (0.25 / 1000) ** 0.5)


def test_mixed_batches_hold_rows_of_all_languages_in_the_same_proportions():
    sampling = replace(DRAWING, steps=300, batch_subwords=16 * 8, mixed=True, temperature=1.0)
    text_batches = batches(sampling, sizes=(6000, 2000))
    samples = [text_batches[step] for step in range(300)]
    assert sum(len(languages_of(sample)) == 2 for sample in samples) > 200
    firsts = np.concatenate([(sample.gold // 10).numpy() for sample in samples])
    assert (firsts == 1).mean() == pytest.approx(0.75, abs=0.05)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_share_of_the_updates_is_translation(share):
    sampling = replace(DRAWING, steps=400, translation=share)
    text_batches = batches(sampling, translated_texts=parallel(30))
    ratio = sum(text_batches[step].positions is not None for step in range(400)) / 400
    assert ratio == pytest.approx(share, abs=4 * (share * (1 - share) / 400) ** 0.5)


def test_a_pair_is_a_text_and_its_translation_in_either_order():
    sampling = replace(DRAWING, steps=60, translation=1.0)
    text_batches = batches(sampling, translated_texts=parallel(50, languages=("en", "de", "sw")))
    orders = set()
    for step in range(60):
        batch = text_batches[step]
        flat = batch.subwords.flatten().clone()
        flat[batch.masked] = batch.gold
        for row in flat.view_as(batch.subwords).tolist():
            end = row.index(VOCABULARY.last)
            (first_row,) = set(row[1:end])
            (second,) = set(row[end + 1 : row.index(VOCABULARY.last, end + 1)])
            assert first_row != second
            orders.add((first_row, second))
    assert len(orders) == 6


@given(st.integers(0, 999), st.sampled_from([64, 128, 512]), st.integers(3, 25))
def test_a_batch_of_pairs_stays_in_its_budget(seed, budget, longest):
    sampling = replace(DRAWING, translation=1.0, batch_subwords=budget)
    batch = batches(sampling, translated_texts=parallel(20, longest=longest), seed=seed)[0]
    rows, width = batch.subwords.shape
    assert rows == 1 or rows * width <= budget


def test_pairs_of_similar_length_waste_little_padding():
    sampling = replace(DRAWING, steps=60, translation=1.0, batch_subwords=1024)
    text_batches = batches(sampling, translated_texts=parallel(400, longest=40))
    masks = [text_batches[step].mask for step in range(60)]
    assert np.mean([1.0 if mask is None else float(mask.float().mean()) for mask in masks]) > 0.9


def test_batches_of_pairs_use_their_budget():
    sampling = replace(DRAWING, steps=60, translation=1.0, batch_subwords=1024)
    text_batches = batches(sampling, translated_texts=parallel(400, longest=40))
    assert np.mean([text_batches[step].subwords.numel() for step in range(60)]) > 0.85 * 1024


# Languages


@settings(max_examples=20)
@given(st.integers(0, 999))
def test_a_batch_of_one_language_says_which(seed):
    text_batches = batches(sizes=(1000, 800, 600), seed=seed)
    for step in range(len(text_batches)):
        (tens,) = languages_of(text_batches[step])
        assert text_batches[step].languages == (CODES[tens - 1],)


@settings(max_examples=20)
@given(st.integers(0, 999))
def test_a_mixed_batch_says_the_language_of_each_row(seed):
    batch = batches(replace(DRAWING, mixed=True), sizes=(1000, 800, 600), seed=seed)[0]
    rows = batch.subwords.flatten().clone()
    rows[batch.masked] = batch.gold
    assert len(batch.languages) == len(batch.subwords) == 6
    for language, row in zip(batch.languages, rows.view_as(batch.subwords), strict=True):
        assert set((row[row > 9] // 10).tolist()) == {CODES.index(language) + 1}


def test_a_row_of_translations_is_in_both_its_languages():
    sampling = replace(DRAWING, translation=1.0)
    batch = batches(sampling, translated_texts=parallel(30, CODES))[0]
    rows = batch.subwords.flatten().clone()
    rows[batch.masked] = batch.gold
    for language, row in each(zip(batch.languages, rows.view_as(batch.subwords), strict=True)):
        tens = [int(item) // 10 for item in row if item > 9]
        assert language == "+".join(CODES[index - 1] for index in dict.fromkeys(tens))


# Parts


@given(st.integers(0, 999), st.integers(1, 9), st.booleans(), st.booleans())
def test_parts_are_the_whole_batch(seed, count, mixed_result, translations):
    sampling = replace(DRAWING, mixed=mixed_result, translation=float(translations))
    whole_text_batch = batches(sampling, translated_texts=parallel(30) if translations else (), seed=seed)[0]
    parts = [part for part, _ in whole_text_batch.parts(count)]
    shares = [share for _, share in whole_text_batch.parts(count)]
    assert len(parts) == min(count, len(whole_text_batch.subwords))
    assert sum(shares) == pytest.approx(1)
    assert torch.equal(torch.cat([part.subwords for part in parts]), whole_text_batch.subwords)
    assert torch.equal(torch.cat([part.gold for part in parts]), whole_text_batch.gold)
    for name in ("mask", "positions"):
        pieces = [getattr(part, name) for part in parts]
        assert (pieces[0] is None) == (getattr(whole_text_batch, name) is None)
        assert pieces[0] is None or torch.equal(torch.cat(pieces), getattr(whole_text_batch, name))
    width = whole_text_batch.subwords.size(1)
    rows_before = 0
    places = []
    for part in parts:
        places += (part.masked + rows_before * width).tolist()
        rows_before += len(part.subwords)
    assert places == whole_text_batch.masked.tolist()
    languages = [part.languages for part in parts]
    assert set(languages) == {whole_text_batch.languages} or sum(languages, ()) == whole_text_batch.languages
    sizes = {len(part.subwords) for part in parts}
    assert max(sizes) - min(sizes) <= 1
