from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from each import each
from isogloss.core.errors import DataError
from isogloss.encoders.added import active_language as active
from isogloss.encoders.families import family_of
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.tokenizers import load_tokenizer
from isogloss.tasks.masked_lm import Masking, Vocabulary, masked_lm_loss

LOW = Vocabulary(size=60, first=2, last=3, padding=0, mask=4, special=(1, 3, 0, 2, 4))
"""Special subwords first, as trained vocabularies have them."""

SPREAD = Vocabulary(size=60, first=7, last=31, padding=30, mask=59, special=(59, 0, 7, 31, 30))
"""Special subwords anywhere, as published vocabularies have them."""

ONE_END = Vocabulary(size=60, first=0, last=0, padding=0, mask=4, special=(0, 4))
"""One subword opens texts, closes them, and is the padding, as in Qwen."""

ONE_OR_TWO = st.integers(1, 2)
VOCABULARIES = st.sampled_from([LOW, SPREAD, ONE_END])


@st.composite
def rows(draw, vocabulary, texts=ONE_OR_TWO):
    ordinary = [index for index in range(vocabulary.size) if index not in vocabulary.special]
    text = st.lists(st.sampled_from(ordinary), min_size=1, max_size=9).map(np.array)
    return [[draw(text) for _ in range(draw(texts))] for _ in range(draw(st.integers(1, 5)))]


def whole(batch):
    """The subwords before masking."""
    flat = batch.subwords.flatten().clone()
    flat[batch.masked] = batch.gold
    return flat.view_as(batch.subwords)


def join_texts(texts, vocabulary):
    line = [vocabulary.first]
    for text in texts:
        line += [*text.tolist(), vocabulary.last]
    return line


# What is hidden


@given(st.data(), VOCABULARIES, st.integers(0, 99))
def test_what_stood_there_is_the_text_with_its_special_subwords(data, vocabulary, seed):
    drawn_sample = data.draw(rows(vocabulary))
    batch = Masking(vocabulary=vocabulary).batch(drawn_sample, seed=seed)
    lines = whole(batch)
    real_tensor = torch.ones_like(lines) if batch.mask is None else batch.mask
    for texts, line, kept_values in zip(drawn_sample, lines, real_tensor.bool(), strict=True):
        assert line[kept_values].tolist() == join_texts(texts, vocabulary)
        assert set(line[~kept_values].tolist()) <= {vocabulary.padding}


@pytest.mark.slow
@given(st.data(), VOCABULARIES, st.sampled_from([0.15, 0.5, 1.0]), st.integers(0, 99))
def test_no_special_subword_is_hidden_nor_stands_in_for_a_word(data, vocabulary, share, seed):
    drawn_sample = data.draw(rows(vocabulary))
    batch = Masking(vocabulary=vocabulary, share=share).batch(drawn_sample, seed=seed)
    assert not np.isin(batch.gold.numpy(), vocabulary.special).any()
    subword = batch.subwords.flatten()[batch.masked].numpy()
    assert not np.isin(subword, [index for index in vocabulary.special if index != vocabulary.mask]).any()
    ordinary = sum(len(text) for texts in drawn_sample for text in texts)
    assert len(batch.masked) == max(1, round(share * ordinary))
    assert len(set(batch.masked.tolist())) == len(batch.masked)


def many(vocabulary, share=0.15, seed=0):
    rng = np.random.default_rng(1)
    ordinary = np.setdiff1d(np.arange(vocabulary.size), vocabulary.special)
    texts = [[rng.choice(ordinary, size=200)] for _ in range(400)]
    return Masking(vocabulary=vocabulary, share=share).batch(texts, seed=seed)


@pytest.mark.parametrize("vocabulary", [LOW, SPREAD])
def test_fifteen_percent_are_hidden_and_eight_of_ten_by_the_mask(vocabulary):
    """With 12,000 hidden subwords 80 % are masked, 10 % replaced, 10 % stay (within four standard errors)."""
    batch = many(vocabulary)
    assert len(batch.masked) == 0.15 * 400 * 200
    subword = batch.subwords.flatten()[batch.masked]
    is_masked = subword == vocabulary.mask
    is_kept = subword == batch.gold
    error = 4 * (0.1 * 0.9 / len(subword)) ** 0.5
    ordinary = vocabulary.size - len(vocabulary.special)
    ratio_by_chance = 0.1 / ordinary  # A random subword is the true one now and then.
    assert float(is_masked.float().mean()) == pytest.approx(0.8, abs=2 * error)
    assert float(is_kept.float().mean()) == pytest.approx(0.1 + ratio_by_chance, abs=error)
    assert float((~is_masked & ~is_kept).float().mean()) == pytest.approx(0.1 - ratio_by_chance, abs=error)


@pytest.mark.parametrize("vocabulary", [LOW, SPREAD])
def test_random_subwords_are_drawn_evenly_from_all_ordinary_ones(vocabulary):
    batch = many(vocabulary, share=1.0)
    subword = batch.subwords.flatten()[batch.masked]
    replaced_value = subword[(subword != vocabulary.mask) & (subword != batch.gold)].numpy()
    counts = np.bincount(replaced_value, minlength=vocabulary.size)
    assert not counts[list(vocabulary.special)].any()
    ordinary = np.delete(counts, list(vocabulary.special))
    chi_squared = float(((ordinary - ordinary.mean()) ** 2 / ordinary.mean()).sum())
    assert chi_squared < 100  # 54 degrees of freedom: a chance of one in 10,000.


def test_places_are_drawn_evenly():
    hits = np.zeros(20)
    masking = Masking(vocabulary=LOW)
    for seed in range(600):
        batch = masking.batch([[np.arange(5, 25)]], seed=seed)
        hits[batch.masked.numpy() - 1] += 1
    assert hits.sum() == 600 * 3
    assert hits.min() > 90 - 4.5 * 9
    assert hits.max() < 90 + 4.5 * 9


def test_a_batch_follows_its_seed():
    batch, same_batch, other_batch = (many(LOW, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(batch.subwords, same_batch.subwords) and torch.equal(batch.masked, same_batch.masked)
    assert not torch.equal(batch.masked, other_batch.masked)


def test_a_batch_with_nothing_to_hide_is_an_error():
    with pytest.raises(DataError, match="masked"):
        Masking(vocabulary=LOW).batch([[np.array([1, 1])]], seed=0)


# Positions and padding


@given(st.data(), st.sampled_from([0, 2]))
def test_positions_begin_anew_for_the_second_text(data, first_position):
    drawn_sample = data.draw(rows(LOW, texts=st.just(2)))
    batch = Masking(vocabulary=LOW, first_position=first_position).batch(drawn_sample, seed=0)
    for (left, right), line in zip(drawn_sample, batch.positions, strict=True):
        expected = [*range(len(left) + 2), *range(len(right) + 1)]
        assert (line[: len(expected)] - first_position).tolist() == expected


def test_single_texts_have_no_positions_and_a_mask_only_where_there_is_padding():
    masking = Masking(vocabulary=LOW)
    assert masking.batch([[np.array([9, 8])]], seed=0).positions is None
    assert masking.batch([[np.array([9, 8])], [np.array([7, 6])]], seed=0).mask is None
    assert masking.batch([[np.array([9, 8])], [np.array([7])]], seed=0).mask.tolist() == [
        [1] * 4,
        [1, 1, 1, 0],
    ]


# The loss


@pytest.fixture
def model(encoder_folder):
    return load_masked_lm(encoder_folder)


@pytest.fixture
def masking(encoder_folder, model):
    return Masking(
        vocabulary=Vocabulary.from_tokenizer(load_tokenizer(encoder_folder)),
        first_position=family_of(model).first_position,
    )


def texts_of(masking, lengths, seed=0):
    rng = np.random.default_rng(seed)
    ordinary = np.setdiff1d(np.arange(masking.vocabulary.size), masking.vocabulary.special)
    return [[rng.choice(ordinary, size=length) for length in row] for row in lengths]


def theirs(model, batch):
    """Hugging Face's own loss: labels everywhere, -100 where nothing is predicted."""
    labels = torch.full_like(batch.subwords, -100).flatten()
    labels[batch.masked] = batch.gold
    inputs = {"input_ids": batch.subwords, "labels": labels.view_as(batch.subwords)}
    if batch.mask is not None:
        inputs["attention_mask"] = batch.mask
    if batch.positions is not None:
        inputs["position_ids"] = batch.positions
    return model(**inputs).loss


TEXT_PAIRS = [[5, 7], [9, 3], [2, 2]]


def gradients(model, loss, batch):
    model.zero_grad()
    loss(model, batch).backward()
    return {name: w.grad.clone() for name, w in model.named_parameters() if w.grad is not None}


@pytest.mark.each_value
@pytest.mark.parametrize("lengths", [[[9], [9]], [[9], [4]], TEXT_PAIRS])
def test_loss_and_gradients_are_those_of_hugging_face(model, masking, lengths):
    batch = masking.batch(texts_of(masking, lengths), seed=0)
    torch.testing.assert_close(masked_lm_loss(model, batch), theirs(model, batch), atol=1e-5, rtol=1e-5)
    grads, expected = (gradients(model, loss, batch) for loss in (masked_lm_loss, theirs))
    torch.testing.assert_close(grads, expected, atol=1e-5, rtol=1e-3)


@pytest.mark.parametrize(("count", "lengths"), [(2, [[9], [4], [2]]), (9, [[9], [4], [2]]), (3, TEXT_PAIRS)])
def test_parts_weighed_by_their_shares_have_the_gradient_of_the_whole(model, masking, lengths, count):
    batch = masking.batch(texts_of(masking, lengths), seed=0)
    whole_grads = gradients(model, masked_lm_loss, batch)
    model.zero_grad()
    for part, share in batch.parts(count):
        (masked_lm_loss(model, part) * share).backward()
    for name, gradient in each(whole_grads.items()):
        assert torch.allclose(model.get_parameter(name).grad, gradient, atol=1e-5)


def test_a_part_where_nothing_is_hidden_has_no_loss_but_a_gradient(model, masking):
    batch = masking.batch(texts_of(masking, [[9], [9]]), seed=0)
    first_batch = replace(batch, masked=batch.masked[:1], gold=batch.gold[:1])
    (_, share), (part, none) = (
        first_batch.parts(2) if int(first_batch.masked[0]) < 11 else first_batch.parts(2)[::-1]
    )
    assert (share, none) == (1, 0)
    loss = masked_lm_loss(model, part)
    loss.backward()
    assert float(loss.detach()) == 0
    assert all(not bool(w.grad.any()) for w in model.parameters() if w.grad is not None)


def test_a_batch_is_read_in_its_languages_where_it_says_some(model, masking, monkeypatch):
    read = []
    monkeypatch.setattr(
        active, "active_language", lambda _, languages: read.append(languages) or nullcontext()
    )
    texts = texts_of(masking, [[9], [9]])
    for languages in (("sw",), ("sw", "en"), ()):
        masked_lm_loss(model, masking.batch(texts, seed=0, languages=languages))
    assert read == [("sw",), ("sw", "en")]


def test_the_first_text_has_the_positions_the_model_gives_it(model, masking):
    (text, other_choice), *_ = texts_of(masking, [[6, 3]])
    batch = masking.batch([[text, other_choice]], seed=0)
    first_count = len(text) + 2
    arguments = []
    position_embeddings = getattr(model.base_model.embeddings, "position_embeddings", None)
    if position_embeddings is None:  # Positions are rotated in, or distances weighed: no table is looked up.
        assert batch.positions[0, :first_count].tolist() == list(range(first_count))
        return
    handle = position_embeddings.register_forward_pre_hook(
        lambda _, args: arguments.append(args[0].flatten())
    )
    with torch.inference_mode():
        model.base_model(batch.subwords[:, :first_count])
    handle.remove()
    assert batch.positions[0, :first_count].tolist() == arguments[0].tolist()
