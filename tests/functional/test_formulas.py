"""Functions equal their formulas on five families, with any padding side, bytes, and words without subwords.

States of the reference are transformers' own, of one text at a time; formulas are computed in float64.
"""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch

import isogloss
from any_models import make_model
from made_up import SPANS

FAMILIES = ("bert", "roberta", "gpt2", "t5", "gemma3_text")
"""Subwords of words, bytes in a frame, bytes without one, a closed text, and one that is opened."""

FIRST = list(SPANS[:24])
SECOND = [" ".join(reversed(text.split()[:4])) for text in FIRST]
LINKS = [[(word, 3 - word) for word in range(4)]] * len(FIRST)
QUIET = {"on_progress": lambda _: None}


@cache
def load_side(family, side="right"):
    model, tokenizer = make_model(family)
    tokenizer = deepcopy(tokenizer)
    tokenizer.padding_side = side
    return model, tokenizer


@cache
def states_of(family, texts):
    """Return the mean states of texts [layer text dim] in float64."""
    model, tokenizer = load_side(family)
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    vectors = []
    for text in texts:
        encoding = tokenizer(text, return_tensors="pt", return_special_tokens_mask=True)
        is_kept = encoding.pop("special_tokens_mask")[0] == 0
        with torch.no_grad():
            hidden = encoder(
                input_ids=encoding["input_ids"],
                attention_mask=encoding["attention_mask"],
                output_hidden_states=True,
            ).hidden_states
        vectors.append(torch.stack([layer[0, is_kept].double().mean(dim=0) for layer in hidden]))
    return torch.stack(vectors, dim=1).numpy()


def sides(family):
    return states_of(family, tuple(FIRST)), states_of(family, tuple(SECOND))


def linear_cka(x, y):
    """Kornblith et al. (2019), Eq. 3, by its Gram matrices."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    return np.linalg.norm(y.T @ x) ** 2 / (np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y))


def unbiased_cka(x, y):
    """Song et al. (2012), Eq. 5, of Gram matrices without their diagonals."""

    def hsic(k, m):
        n = len(k)
        k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
        unit_tensor = np.ones(n)
        middle_ratio = unit_tensor @ k @ unit_tensor * (unit_tensor @ m @ unit_tensor) / ((n - 1) * (n - 2))
        return (np.trace(k @ m) + middle_ratio - 2 / (n - 2) * unit_tensor @ k @ m @ unit_tensor) / (
            n * (n - 3)
        )

    k = x @ x.T
    product = y @ y.T
    return hsic(k, product) / np.sqrt(hsic(k, k) * hsic(product, product))


def cosines(x, y, *, is_centred=False):
    if is_centred:
        x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    x, y = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y))
    return x @ y.T


def csls(similarity, neighbours):
    """Conneau et al. (2018), Eq. 3."""
    row_mean = np.sort(similarity, axis=1)[:, -neighbours:].mean(axis=1)
    column_mean = np.sort(similarity, axis=0)[-neighbours:].mean(axis=0)
    return 2 * similarity - row_mean[:, None] - column_mean[None]


@pytest.mark.each_value
@pytest.mark.parametrize("padding", ["right", "left"])
@pytest.mark.parametrize("family", FAMILIES)
def test_cka_is_its_formula(family, padding):
    x, y = sides(family)
    model, tokenizer = load_side(family, padding)
    for debiased_value, formula in ((False, linear_cka), (True, unbiased_cka)):
        cka = isogloss.cka(model, tokenizer, FIRST, SECOND, debiased=debiased_value, **QUIET)
        expected = [formula(*layers) for layers in zip(x, y, strict=True)]
        assert cka.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def ties(similarity):
    """Return the share of rows whose two highest numbers are equal, such as bags of the same embeddings."""
    best_value = np.sort(similarity, axis=1)[:, -2:]
    return (best_value[:, 1] - best_value[:, 0] < 1e-6).mean()


@pytest.mark.each_value
@pytest.mark.parametrize("name", ["cosine", "centred", "CSLS"])
@pytest.mark.parametrize("family", FAMILIES)
def test_retrieval_is_the_share_of_nearest_sentences(family, name):
    x, y = sides(family)
    options = {"centred": name == "centred", "csls": 3 if name == "CSLS" else 0}
    retrieval = isogloss.retrieval(*load_side(family, "left"), FIRST, SECOND, **options, **QUIET)
    for layer, (queries, keys) in enumerate(zip(x, y, strict=True)):
        similarity = cosines(queries, keys, is_centred=options["centred"])
        similarity = csls(similarity, 3) if options["csls"] else similarity
        for column, table in (("forward", similarity), ("backward", similarity.T)):
            expected = (table.argmax(axis=1) == np.arange(len(FIRST))).mean()
            assert abs(retrieval.loc[layer, column] - expected) <= ties(table) + 1e-9


@pytest.mark.parametrize("family", FAMILIES)
def test_anisotropy_is_the_mean_cosine_of_pairs(family):
    x, _ = sides(family)
    anisotropy = isogloss.anisotropy(isogloss.states(*load_side(family), FIRST))
    upper_bound = np.triu_indices(len(FIRST), 1)
    expected = [cosines(layer, layer)[upper_bound].mean() for layer in x]
    assert anisotropy.tolist() == pytest.approx(expected, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_map_has_the_first_two_principal_components(family):
    x, y = (side[-1] for side in sides(family))
    states = [isogloss.states(*load_side(family), texts) for texts in (FIRST, SECOND)]
    representation_map = isogloss.representation_map({"en": states[0], "de": states[1]})
    concatenations = np.concatenate([x, y])
    left, sizes, _ = np.linalg.svd(concatenations - concatenations.mean(axis=0), full_matrices=False)
    for column, axis in (("x", 0), ("y", 1)):
        expected = left[:, axis] * sizes[axis]
        sign = np.sign(representation_map[column].to_numpy() @ expected)
        assert representation_map[column].tolist() == pytest.approx(
            (sign * expected).tolist(), rel=1e-3, abs=1e-3
        )
    assert representation_map.attrs["explained"] == pytest.approx((sizes**2 / (sizes**2).sum())[:2], rel=1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("margin", ["ratio", "distance", "cosine"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_best_mined_pair_has_the_highest_margin(family, margin):
    states = [isogloss.states(*load_side(family), texts) for texts in (FIRST, SECOND)]
    pairs = isogloss.mine(*states, margin=margin, neighbours=3)
    similarity = cosines(*(side[-1] for side in sides(family)))
    row_mean = np.sort(similarity, axis=1)[:, -3:].mean(axis=1)
    column_mean = np.sort(similarity, axis=0)[-3:].mean(axis=0)
    mean = (row_mean[:, None] + column_mean[None]) / 2
    score = {"ratio": similarity / mean, "distance": similarity - mean, "cosine": similarity}[margin]
    best_row = pairs.iloc[0]
    assert best_row["score"] == pytest.approx(score.max(), rel=1e-4)
    assert score[int(best_row["first"]), int(best_row["second"])] == pytest.approx(score.max(), rel=1e-4)


@pytest.mark.each_value
@pytest.mark.parametrize("distance", ["l2", "cosine"])
@pytest.mark.parametrize("family", FAMILIES)
def test_related_words_have_the_mean_distance_of_their_states(family, distance):
    model, tokenizer = load_side(family, "left")
    words = [isogloss.states(model, tokenizer, texts, words="average") for texts in (FIRST, SECOND)]
    word_distances = isogloss.word_distances(
        model, tokenizer, FIRST, SECOND, LINKS, distance=distance, **QUIET
    )
    x, y = (
        [side.vectors[:, [n for n, item in enumerate(side.sentences) if item == index]].double().numpy()
         for index in range(len(FIRST))]
        for side in words
    )  # fmt: skip
    for layer in words[0].layers:
        distances = []
        for value, links in enumerate(LINKS):
            for i, j in links:
                a = x[value][layer, i]
                b = y[value][layer, j]
                cosine = 1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
                distances.append(cosine if distance == "cosine" else np.linalg.norm(a - b))
        assert word_distances.loc[layer, "related"] == pytest.approx(np.mean(distances), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_links_do_not_depend_on_the_side_of_padding(family):
    links = [
        isogloss.align(FIRST, SECOND, *load_side(family, side), layer=2, **QUIET)
        for side in ("left", "right")
    ]
    assert links[0] == links[1] and all(links[0])


NOTHING = "\u200b"
"""A word that the normalizer of BERT's tokenizers drops."""


@pytest.mark.parametrize("place", [0, 2, 5])
@pytest.mark.parametrize("family", ["bert", "distilbert", "electra"])
def test_a_word_without_a_subword_is_read_as_an_unknown_one(family, place):
    model, tokenizer = load_side(family)
    sentence = FIRST[0].split()
    words = [*sentence[:place], NOTHING, *sentence[place:]]
    encoding = tokenizer(words, is_split_into_words=True)
    assert place not in encoding.word_ids()
    ids = encoding["input_ids"]
    ids = [*ids[: place + 1], tokenizer.unk_token_id, *ids[place + 1 :]]
    with torch.no_grad():
        hidden = model(torch.tensor([ids]), output_hidden_states=True).hidden_states
    assert len(ids) == len(words) + 2, "each word of this sentence is one subword"
    states = isogloss.states(model, tokenizer, [words], words="average")
    torch.testing.assert_close(states.vectors, torch.stack(hidden)[:, 0, 1:-1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_other_words_keep_their_numbers_beside_a_word_without_a_subword(place):
    model, tokenizer = load_side("bert")
    texts = [text.split() for text in FIRST[:6]]
    holed_words = [[*words[:place], NOTHING, *words[place:]] for words in texts]
    unknown_words = [[*words[:place], tokenizer.unk_token, *words[place:]] for words in texts]
    links = [[(word + (word >= place), word) for word in range(len(words))] for words in texts]
    word_distances, expected = (
        isogloss.word_distances(model, tokenizer, side, texts, links, **QUIET)
        for side in (holed_words, unknown_words)
    )
    assert word_distances["related"].tolist() == pytest.approx(
        expected["related"].tolist(), rel=1e-4, abs=1e-5
    )
    assert all(pair.first == tuple(words) for pair, words in zip(
        isogloss.align(holed_words, texts, model, tokenizer, layer=1, **QUIET), holed_words, strict=True
    ))  # fmt: skip
