"""States that are kept and compared: every function gives the same number from them as from the model."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch

import isogloss
from isogloss.core.errors import ConfigError, DataError
from isogloss.encoders.loading import load_masked_lm
from isogloss.encoders.tokenizers import load_tokenizer
from made_up import TEXT
from says import says

WORDS = TEXT.split()
FIRST = [" ".join(WORDS[start : start + 5]) for start in range(12)]
SECOND = [" ".join(reversed(WORDS[start : start + 4])) for start in range(12)]


@pytest.fixture(scope="module")
def encoder(bert_folder):
    return load_masked_lm(bert_folder), load_tokenizer(bert_folder)


@pytest.fixture(scope="module")
def tuned_encoder(bert_folder):
    """The same encoder with other weights."""
    model = load_masked_lm(bert_folder)
    with torch.no_grad(), torch.random.fork_rng():
        torch.manual_seed(1)
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model, load_tokenizer(bert_folder)


@pytest.fixture(scope="module")
def sides(encoder):
    return isogloss.states(*encoder, FIRST), isogloss.states(*encoder, SECOND)


def naive_states(encoder, text):
    """Return the mean of a text's states by layer, computed by transformers without batching."""
    model, tokenizer = encoder
    inputs = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        hidden = model.eval().base_model(**inputs, output_hidden_states=True).hidden_states
    return torch.stack([states[0, 1:-1].mean(dim=0) for states in hidden])


def naive_cka(x, y):
    """Compute CKA from kernels with centring matrices, as Kornblith et al. define it."""
    count = len(x)
    centre = np.eye(count) - 1 / count
    k, other_product = (centre @ (side @ side.T) @ centre for side in (x.astype(float), y.astype(float)))
    return np.sum(k * other_product) / np.sqrt(np.sum(k * k) * np.sum(other_product * other_product))


def test_states_of_texts_are_means_of_their_subwords(encoder, sides):
    for index, text in enumerate(FIRST):
        torch.testing.assert_close(sides[0].vectors[:, index], naive_states(encoder, text))
    assert sides[0].layers == (0, 1, 2, 3)
    assert np.asarray(sides[0]).shape == (4, 12, sides[0].vectors.shape[2])
    assert torch.equal(sides[0].layer(2), sides[0].vectors[2])
    assert repr(sides[0]).startswith("States(12 texts, layers 0, 1, 2, 3, ")


def test_chosen_layers_have_their_numbers_from_zero(encoder, sides):
    chosen_states = isogloss.states(*encoder, FIRST, layers=[-1, 0])
    assert chosen_states.layers == (3, 0)
    assert torch.equal(chosen_states.layer(0), sides[0].layer(0))
    with says(ConfigError, "layer 2", "layers 3, 0"):
        chosen_states.layer(2)


def test_states_of_words_are_in_their_order_with_their_sentences(encoder):
    texts = ["the slowly unhappening casual", "slowly", "the casual"]
    word_states = isogloss.states(*encoder, texts, words="average")
    assert word_states.sentences == (0, 0, 0, 0, 1, 2, 2)
    split = isogloss.states(*encoder, [text.split() for text in texts], words="average")
    assert torch.equal(split.vectors, word_states.vectors)
    first_vectors, last_vectors = (
        isogloss.states(*encoder, texts, words=words).vectors for words in ("first", "last")
    )
    whole_all = (first_vectors == last_vectors).all(dim=2).all(dim=0)  # Words of one subword.
    assert whole_all.any() and not whole_all.all()
    torch.testing.assert_close(word_states.vectors[:, whole_all], first_vectors[:, whole_all])


@pytest.mark.parametrize("debiased_value", [False, True])
def test_cka_of_states_is_that_of_the_model(encoder, sides, debiased_value):
    model_cka = isogloss.cka(*encoder, FIRST, SECOND, debiased=debiased_value)
    pd.testing.assert_series_equal(isogloss.cka(*sides, debiased=debiased_value), model_cka, rtol=1e-10)


def test_cka_of_two_models_of_each_layer_with_each_equals_the_formula(sides, tuned_encoder):
    other_states = isogloss.states(*tuned_encoder, FIRST, layers=[0, -1])
    table = isogloss.cka(sides[0], other_states, across=True)
    assert (table.index.tolist(), table.columns.tolist()) == ([0, 1, 2, 3], [0, 3])
    expected = [
        [naive_cka(x, y) for y in np.asarray(other_states)]
        for x in np.asarray(sides[0])
    ]  # fmt: skip
    np.testing.assert_allclose(table.to_numpy(), expected, rtol=1e-6)
    same_cka = isogloss.cka(sides[0], sides[0], across=True)
    np.testing.assert_allclose(np.diag(same_cka), 1, rtol=1e-10)
    np.testing.assert_allclose(np.diag(isogloss.cka(*sides, across=True)), isogloss.cka(*sides), rtol=1e-10)


@pytest.mark.parametrize(
    "make", [np.asarray, lambda states: states.vectors, lambda states: states.vectors.tolist()]
)
def test_arrays_and_lists_are_states(sides, make):
    inputs = [make(side) for side in sides]
    assert isogloss.cka(*inputs).tolist() == isogloss.cka(*sides).tolist()
    assert isogloss.retrieval(*inputs, csls=3).equals(isogloss.retrieval(*sides, csls=3))
    assert isogloss.anisotropy(inputs[0]).tolist() == isogloss.anisotropy(sides[0]).tolist()
    item = make(sides[0])[1]
    assert isogloss.cka(item, item).tolist() == pytest.approx([1])


@pytest.mark.parametrize("settings", [{}, {"centred": True}, {"csls": 3}])
def test_retrieval_of_states_is_that_of_the_model(encoder, sides, settings):
    model_retrieval = isogloss.retrieval(*encoder, FIRST, SECOND, **settings)
    pd.testing.assert_frame_equal(isogloss.retrieval(*sides, **settings), model_retrieval)


def test_retrieval_of_arrays_is_what_all_cosines_say():
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 30, 4))
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y)]
    cosines = unit[0] @ unit[1].T
    row = isogloss.retrieval(x, y).loc[0]
    assert row["forward"] == np.mean(cosines.argmax(axis=1) == np.arange(30))
    assert row["backward"] == np.mean(cosines.argmax(axis=0) == np.arange(30))
    assert row["chance"] == pytest.approx(1 / 30)


def test_anisotropy_is_the_mean_cosine_of_all_pairs(sides):
    vectors = np.asarray(sides[0])[2].astype(float)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[~np.eye(12, dtype=bool)]
    assert isogloss.anisotropy(sides[0])[2] == pytest.approx(pairs.mean(), rel=1e-6)


def test_a_map_has_the_components_of_all_sentences_together(sides):
    frame = isogloss.representation_map({"en": sides[0], "de": sides[1]})
    assert frame["language"].tolist() == ["en"] * 12 + ["de"] * 12
    joint_values = np.concatenate([np.asarray(side)[-1] for side in sides]).astype(float)
    centred_difference = joint_values - joint_values.mean(axis=0)
    _, values, axes = np.linalg.svd(centred_difference, full_matrices=False)
    for column, axis, value, explained_value in zip(
        "xy", axes, values, frame.attrs["explained"], strict=False
    ):
        np.testing.assert_allclose(np.abs(frame[column]), np.abs(centred_difference @ axis), atol=1e-6)
        assert explained_value == pytest.approx(value**2 / np.sum(values**2), rel=1e-6)
    means = [side.mean(axis=0) for side in (joint_values[:12], joint_values[12:])]
    distance = 12 * sum(np.sum((mean - joint_values.mean(axis=0)) ** 2) for mean in means)
    assert frame.attrs["between"] == pytest.approx(distance / np.sum(centred_difference**2), rel=1e-6)


def test_shuffled_sentences_are_mined(sides):
    order = np.random.default_rng(1).permutation(12)
    vectors = np.asarray(sides[0])[-1]
    mined_pairs = isogloss.mine(vectors, vectors[order], margin="cosine")
    assert sorted(mined_pairs["first"]) == list(range(12))
    assert [order[index] for index in mined_pairs.sort_values("first")["second"]] == list(range(12))
    assert mined_pairs["score"].is_monotonic_decreasing and mined_pairs["score"].iloc[0] == pytest.approx(
        1, abs=1e-6
    )


WRONG = {
    "other numbers of items": (lambda x: isogloss.cka(x[:, :5], x), ("cka: 5 items and 12", "same ones")),
    "other numbers of layers": (lambda x: isogloss.cka(x[:2], x), ("2 layers and 4", "across=True")),
    "integers": (lambda x: isogloss.cka(np.ones((5, 3), dtype=int), x), ("cka: first", "int64", "[1, 5, 3]")),
    "one vector": (lambda x: isogloss.anisotropy(x[0, 0]), ("anisotropy", "shape", "[item, dim]")),
    "no number": (lambda x: isogloss.retrieval(x * np.nan, x), ("retrieval: first", "not all", "finite")),
    "few items": (lambda x: isogloss.cka(x[:, :3], x[:, :3]), ("3 sentences; 4",)),
    "one language": (lambda x: isogloss.representation_map({"en": x}), ("1 languages; 2",)),
    "other shapes": (lambda x: isogloss.representation_map({"a": x, "b": x[:, :3]}), ("12, ", "3, ", "same")),
}


@pytest.mark.parametrize("name", WRONG)
def test_arrays_that_are_no_states_of_the_same_items_are_refused(sides, name):
    call, texts = WRONG[name]
    with says(DataError, *texts):
        call(np.asarray(sides[0]))


SETTINGS = {
    "settings of how states are made": (
        lambda x: isogloss.cka(x, x, layers=[1]),
        ("layers", "isogloss.states"),
    ),
    "across with sentences": (lambda x: isogloss.cka(x, x, FIRST, SECOND, across=True), ("across",)),
    "a side of sentences": (lambda x: isogloss.retrieval(x, x, FIRST), ("retrieval", "translations")),
    "negative neighbours": (lambda x: isogloss.retrieval(x, x, csls=-1), ("retrieval: csls", "-1")),
    "no neighbours": (lambda x: isogloss.mine(x, x, neighbours=0), ("mine: neighbours", "0")),
    "an unknown margin": (lambda x: isogloss.mine(x, x, margin="rato"), ("'rato'", "'ratio'")),
    "an unknown layer": (lambda x: isogloss.mine(x, x, layer=4), ("layer 4", "4 layers")),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_that_mean_nothing_are_refused(sides, name):
    call, texts = SETTINGS[name]
    with says(ConfigError, *texts):
        call(np.asarray(sides[0]))


@pytest.mark.parametrize("setting", [{"precision": "float31"}, {"words": "mean"}, {"layers": [9]}])
def test_a_setting_that_is_none_is_refused_with_what_is_allowed(encoder, setting):
    with says(ConfigError, "states", str(next(iter(setting.values()))).strip("[]")):
        isogloss.states(*encoder, FIRST, **setting)


def test_no_texts_are_refused(encoder):
    with says(DataError, "states: no texts"):
        isogloss.states(*encoder, [])


LOADED = {"cka": 40, "retrieval": 40, "states": 40, "mine": 40, "anisotropy": 40, "MixupLoss": 85, "path": 85}
"""Modules of the package that a name may load."""


@pytest.mark.slow
@pytest.mark.every_case
@pytest.mark.parametrize("name", LOADED)
def test_a_function_loads_what_it_needs_alone(name):
    program = (
        f"import isogloss, sys; isogloss.{name}; print(sum(m.startswith('isogloss') for m in sys.modules))"
    )
    count = int(
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    )
    assert count <= LOADED[name]
